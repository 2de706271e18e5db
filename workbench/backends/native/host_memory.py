"""The memory of this process: what numpy, and the kernels of all devices that run here, read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from workbench.backends.memory import Bytes, Memory, memories

HOST = "NPY"
"""The name of host data, which no kernel reads before it is copied to a device."""


class HostMemory(Memory):
    """This process's memory; a handle is an array of bytes."""

    shares_host_memory = True

    def allocate(self, size_bytes: int, alignment_bytes: int) -> Bytes:
        whole = np.empty(size_bytes + alignment_bytes, np.uint8)
        first = -_address(whole) % alignment_bytes
        return whole[first : first + size_bytes]

    def free(self, handle: Bytes) -> None:
        """Python does when nobody has the array."""

    def copy_in(self, handle: Bytes, offset: int, data: Bytes) -> None:
        np.copyto(handle[offset : offset + data.size], data)

    def copy_out(self, handle: Bytes, offset: int, data: Bytes) -> None:
        np.copyto(data, handle[offset : offset + data.size])

    def copy(
        self,
        target: Bytes,
        target_offset: int,
        source: Bytes,
        source_offset: int,
        size_bytes: int,
    ) -> None:
        data = source[source_offset : source_offset + size_bytes]
        self.copy_in(target, target_offset, data)

    def address(self, handle: Any) -> int:
        return _address(handle)

    def available_bytes(self) -> int | None:
        return available_bytes()


host_memory = HostMemory()
"""What devices that run in this process have in common."""
data_memory = HostMemory()
data_memory.spare_limit_bytes = (
    16 << 20
)  # it is read once: small pieces are worth keeping
memories[HOST] = data_memory


def _address(array: Bytes) -> int:
    return int(array.__array_interface__["data"][0])  # .ctypes takes four times as long


def available_bytes() -> int | None:
    """Return how much memory can be had without swapping; None if the system does not say."""
    limits = [n for n in (_system_available(), _container_available()) if n is not None]
    return min(limits, default=None)


def _system_available() -> int | None:
    for name, amount in _pairs("/proc/meminfo"):
        if name == "MemAvailable:":
            return amount * 1024
    return None


def _container_available() -> int | None:
    """Return what a container's limit leaves (cgroup 2); file caches can be dropped."""
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
    """Yield (word, number) of each line that begins so."""
    try:
        with open(path) as file:
            lines = file.readlines()
    except OSError:
        return
    for line in lines:
        words = line.split()
        if len(words) > 1 and words[1].isdigit():
            yield words[0], int(words[1])
