"""The formula of THREEFRY: a random word of nodes, in sums, shifts and bit operations."""

from __future__ import annotations

from operator import add, lshift

from workbench.ir.meaning.threefry import threefry2x32
from workbench.ir.node.uop import UOp


def random_word(a: UOp, b: UOp, c: UOp, d: UOp, second: UOp) -> UOp:
    """Return a random word of the counter (a, b) and the key (c, d): the first where `second` is
    0. Dtypes: uint32."""
    first_word, second_word = threefry2x32((a, b), (c, d), add, lshift)
    return second.ne(0).where(second_word, first_word)
