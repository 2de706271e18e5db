"""Threefry: random bits as a function of a counter and a key, without state.

Source: Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3".
"""

from __future__ import annotations

from workbench.base.dtypes import dtypes
from workbench.ir.node.uop import UOp

_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_PARITY = 0x1BD11BDA
_ROUNDS = 20


def threefry2x32(x0: UOp, x1: UOp, k0: UOp, k1: UOp) -> tuple[UOp, UOp]:
    """Return two words of random bits for the counter (x0, x1) under the key (k0, k1).

    Shapes: all equal. Dtypes: uint32.
    """
    keys = (k0, k1, _xor(_xor(k0, k1), k0.like(_PARITY)))
    x0, x1 = x0 + k0, x1 + k1
    for step in range(_ROUNDS):
        x0 = x0 + x1
        x1 = _xor(_rotated(x1, _ROTATIONS[step % 8]), x0)
        if step % 4 == 3:
            turn = step // 4 + 1
            x0 = x0 + keys[turn % 3]
            x1 = x1 + keys[(turn + 1) % 3] + turn
    return x0, x1


def fraction(high: UOp, low: UOp, bits: int) -> UOp:
    """Return the first `bits` bits of the word `high`, then of `low`, as a float in [0, 1).

    Dtypes: float32 for up to 24 bits, float64 for 32 to 53; every value is exact.
    """
    if bits <= 24:
        return _shifted(high, 32 - bits).cast(dtypes.float32) * 2.0**-bits
    first = high.cast(dtypes.float64) * 2.0**-32
    if bits == 32:
        return first
    return first + _shifted(low, 64 - bits).cast(dtypes.float64) * 2.0**-bits


def _xor(a: UOp, b: UOp) -> UOp:
    return a ^ b


def _rotated(x: UOp, by: int) -> UOp:
    left = x << by
    return left | _shifted(x, 32 - by)


def _shifted(x: UOp, by: int) -> UOp:
    return x >> by
