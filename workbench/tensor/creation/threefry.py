"""Threefry: random bits as a function of a counter and a key, without state.

Source: Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3".
"""

from __future__ import annotations

from collections.abc import Callable
from operator import add, lshift
from typing import Any, TypeVar

from workbench.ir.node.uop import UOp

Word = TypeVar("Word", UOp, int)
Block = tuple[Word, Word]
"""Two words of 32 bits."""

_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
PARITY = 0x1BD11BDA
_ROUNDS = 20
_WORD = 0xFFFFFFFF


def threefry2x32(counter: Block[UOp], key: Block[UOp]) -> Block[UOp]:
    """Return two words of random bits for a counter under a key.

    Shapes: all equal. Dtypes: uint32.
    """
    return _threefry(counter, key, add, lshift)


def threefry2x32_of_integers(counter: Block[int], key: Block[int]) -> Block[int]:
    """Return what `threefry2x32` does, of Python's integers from 0 to 2**32 - 1."""
    return _threefry(counter, key, lambda a, b: (a + b) & _WORD, lambda a, by: (a << by) & _WORD)


def _threefry(
    counter: Block[Word],
    key: Block[Word],
    plus: Callable[[Word, Any], Word],
    shifted: Callable[[Word, int], Word],
) -> Block[Word]:
    keys: tuple[Any, ...] = (*key, key[0] ^ key[1] ^ PARITY)
    x, y = plus(counter[0], keys[0]), plus(counter[1], keys[1])
    for step in range(_ROUNDS):
        by = _ROTATIONS[step % 8]
        x = plus(x, y)
        y = (shifted(y, by) | y >> (32 - by)) ^ x
        if step % 4 == 3:
            turn = step // 4 + 1
            x = plus(x, keys[turn % 3])
            y = plus(plus(y, keys[(turn + 1) % 3]), turn)
    return x, y
