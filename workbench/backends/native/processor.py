"""The base of devices on this machine's own processor."""

from __future__ import annotations

from workbench.backends.contract import DeviceInfo
from workbench.backends.native.host_memory import host_memory
from workbench.base.forking import no_fork


class Processor(DeviceInfo):
    """A device whose kernels run on this machine's own processor."""

    is_processor = True
    memory = host_memory


def cache_bytes() -> tuple[int, int, int]:
    """Return the bytes of the two caches that each core has, and of the largest; those of a common
    processor where the system does not say. It reads a few small files, once, in 0.5 ms."""
    with no_fork:
        from workbench.backends.native.machine import TYPICAL, caches

    sizes = dict(TYPICAL) | dict(caches())
    return sizes["L1"], sizes["L2"], max(sizes.values())
