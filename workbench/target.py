"""What a device can do, as data: limits and widths that passes and opts read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """Capabilities of one device.

    cores: how many run at once. native_small_floats: it computes in float16 and bfloat16.
    converts_float16: it loads and stores float16, and converts it from and to float32.
    Units: vector_bytes is one vector register; scratch_bytes bounds the arrays a kernel may
    hold; max_lanes bounds the product of a kernel's UPCAST and UNROLL axes.
    """

    device: str
    vector_bytes: int = 32
    vector_registers: int = 16
    max_lanes: int = 512
    scratch_bytes: int = 64 << 20
    stack_bytes: int = 64 << 10
    native_transcendentals: bool = False
    native_small_floats: bool = False
    converts_float16: bool = False
    cores: int = 1

    def vector_width(self, itemsize: int) -> int:
        """Elements of `itemsize` bytes in one vector register."""
        return max(1, self.vector_bytes // itemsize)
