"""Amounts that a refusal offers: only those that are legal, by the predicate that judges opts."""

from __future__ import annotations

from collections.abc import Callable

from workbench.ir.opt.opt import Opt

LARGEST = 64
"""Larger amounts are legal too, often; a hint is to be short."""


def offered(opt: Opt, extent: int, is_legal: Callable[[Opt], bool]) -> str:
    """Return which amounts `opt` could have on its axis of `extent` elements, the nearest first:
    'UPCAST("g1", 4)   (legal here: 2, 4, 8, 16)'."""

    def of(amount: int) -> Opt:
        return Opt(opt.op, opt.axis, amount)

    tried = range(2, min(extent, LARGEST) + 1)
    legal = [n for n in tried if extent % n == 0 and is_legal(of(n))]
    if legal:
        target = opt.arg if isinstance(opt.arg, int) and opt.arg else extent
        nearest = min(legal, key=lambda n: abs(n - target))
        return f"{of(nearest)}   (legal here: {', '.join(map(str, legal))})"
    if is_legal(of(0)):
        return f"{of(0)}   (legal here: {extent}, the whole axis)"
    return "another axis (no amount is legal here)"
