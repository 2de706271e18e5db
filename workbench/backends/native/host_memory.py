"""The memory of this process, which numpy and all devices on this processor share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from workbench.backends.memory import Bytes, Memory, memories

HOST = "NPY"
"""The name of host data, which is copied to a device before a kernel reads it."""


class HostMemory(Memory):
    """This process's memory; a handle is an array of bytes."""

    shares_host_memory = True

    def allocate(self, size_bytes: int, alignment_bytes: int) -> Bytes:
        whole = np.empty(size_bytes + alignment_bytes, np.uint8)
        first = -_address(whole) % alignment_bytes
        return whole[first : first + size_bytes]

    def free(self, handle: Bytes) -> None:
        """Do nothing: Python frees the array."""

    def copy_in(self, handle: Bytes, offset: int, data: Bytes) -> None:
        np.copyto(handle[offset : offset + data.size], data)

    def copy_out(self, handle: Bytes, offset: int, data: Bytes) -> None:
        np.copyto(data, handle[offset : offset + data.size])

    def copy(
        self, target: Bytes, target_offset: int, source: Bytes, source_offset: int, size_bytes: int
    ) -> None:
        data = source[source_offset : source_offset + size_bytes]
        self.copy_in(target, target_offset, data)

    def adopt(self, data: Bytes) -> Bytes | None:
        return data

    def address(self, handle: Any) -> int:
        return _address(handle)

    def available_bytes(self) -> int | None:
        return available_bytes()


host_memory = HostMemory()
"""The memory of all devices that run in this process."""
data_memory = HostMemory()
data_memory.spare_limit_bytes = 16 << 20  # host data are read once: large blocks are not kept
memories[HOST] = data_memory


def _address(array: Bytes) -> int:
    return int(array.__array_interface__["data"][0])  # .ctypes takes four times as long


def available_bytes() -> int | None:
    """Return how many bytes are free without swapping; None if the system does not say."""
    limits = [n for n in (_system_available(), _container_available()) if n is not None]
    return min(limits, default=None)


def _system_available() -> int | None:
    for name, amount in _pairs("/proc/meminfo"):
        if name == "MemAvailable:":
            return amount * 1024
    return None


def _container_available() -> int | None:
    """Return the bytes that are free under a container's limit (cgroup 2); file caches count as
    free."""
    root = "/sys/fs/cgroup"
    limit, used = _number(f"{root}/memory.max"), _number(f"{root}/memory.current")
    if limit is None or used is None:
        return None
    cached = dict(_pairs(f"{root}/memory.stat")).get("inactive_file", 0)
    return max(0, limit - used + cached)


def _number(path: str) -> int | None:
    try:
        with open(path) as file:
            text = file.read().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def _pairs(path: str) -> Iterator[tuple[str, int]]:
    """Yield (word, number) of each line that begins with a word and a number."""
    try:
        with open(path) as file:
            lines = file.readlines()
    except OSError:
        return
    for line in lines:
        words = line.split()
        if len(words) > 1 and words[1].isdigit():
            yield words[0], int(words[1])
