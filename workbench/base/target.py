"""The capabilities of a device, as data: limits and widths that passes and opts read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """Capabilities of one device.

    cores: how many run at once. native_half_precision: it computes in float16 and bfloat16.
    converts_float16: it loads and stores float16, and converts it from and to float32.
    fmas_in_flight: how many vector multiply-adds a core must start before the first is done so that
    none waits: the cycles of one times the number that start in a cycle.
    Units: vector_bytes is one vector register; l1_bytes and l2_bytes are the data caches of one
    core; a kernel that touches more than non_temporal_bytes writes with non-temporal stores (0: it
    never does); scratch_bytes bounds the arrays a kernel may hold; max_lanes bounds the lanes that
    one statement holds at once (the product of its UPCAST and UNROLL axes).
    """

    device: str
    vector_bytes: int = 32
    vector_registers: int = 16
    fmas_in_flight: int = 8
    l1_bytes: int = 32 << 10
    l2_bytes: int = 512 << 10
    non_temporal_bytes: int = 0
    max_lanes: int = 512
    scratch_bytes: int = 64 << 20
    stack_bytes: int = 64 << 10
    native_transcendentals: bool = False
    native_half_precision: bool = False
    converts_float16: bool = False
    cores: int = 1

    def vector_width(self, itemsize: int) -> int:
        """Elements of `itemsize` bytes in one vector register."""
        return max(1, self.vector_bytes // itemsize)
