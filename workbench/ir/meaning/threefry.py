"""Threefry: random bits as a function of a counter and a key, without state.

Source: Salmon, Moraes, Dror and Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from workbench.ir.meaning.values import Array

Word = TypeVar("Word")
Block = tuple[Word, Word]
"""Two words of 32 bits."""

_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
PARITY = 0x1BD11BDA
_ROUNDS = 20
_WORD = 0xFFFFFFFF


def threefry2x32(
    counter: Block[Word],
    key: Block[Word],
    plus: Callable[[Word, Any], Word],
    shifted: Callable[[Word, int], Word],
) -> Block[Word]:
    """Return two words of random bits for a counter and a key: of integers, arrays or nodes, whose
    sums (`plus`) and shifts to the left (`shifted`) keep 32 bits."""
    first, second = key
    keys: tuple[Any, ...] = (first, second, first ^ second ^ PARITY)  # type: ignore[operator]
    x: Any = plus(counter[0], keys[0])
    y: Any = plus(counter[1], keys[1])
    for step in range(_ROUNDS):
        by = _ROTATIONS[step % 8]
        x = plus(x, y)
        y = (shifted(y, by) | y >> (32 - by)) ^ x
        if step % 4 == 3:
            turn = step // 4 + 1
            x = plus(x, keys[turn % 3])
            y = plus(plus(y, keys[(turn + 1) % 3]), turn)
    return x, y


def threefry_of_integers(counter: Block[int], key: Block[int]) -> Block[int]:
    """Return the two words of Python's integers from 0 to 2**32 - 1."""
    return threefry2x32(counter, key, lambda a, b: a + b & _WORD, lambda a, by: a << by & _WORD)


def threefry_word(a: Array, b: Array, c: Array, d: Array, second: Array) -> Array:
    """Return a word of the counter (a, b) and the key (c, d): the first where `second` is 0."""
    words = threefry2x32((a, b), (c, d), np.add, np.left_shift)
    return np.where(second == 0, *words)
