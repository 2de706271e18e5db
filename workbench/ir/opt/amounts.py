"""The legal amounts that a refusal proposes, by the predicate that checks opts."""

from __future__ import annotations

from collections.abc import Callable

from workbench.ir.opt.opt import Opt

LARGEST = 64
"""The largest amount that a hint lists: larger ones are often legal, too, but a hint is short."""


def offered(opt: Opt, extent: int, is_legal: Callable[[Opt], bool]) -> str:
    """Return the legal amounts of `opt` on its axis of `extent` elements as a hint, with the
    nearest one in an opt: 'UPCAST("g1", 4) (legal here: 2, 4, 8, 16)'."""

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
