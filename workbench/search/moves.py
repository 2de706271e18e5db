"""The moves of a search: add an opt, change one opt of the list, or remove it.

Opts to add come in an order that tries each kind and axis early: one of each in turn, medium
amounts before small and large ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from workbench.base.target import Target
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import actions, apply_if_legal, resolve
from workbench.ir.opt.opt import Opt, OptKind

MIDDLING = 12
"""The medium amount: amounts near it are tried first."""
Opts = tuple[Opt, ...]


class Move(NamedTuple):
    """A list of opts, and in words how it differs from the one before."""

    opts: Opts
    how: str


def moves(kernel: UOp, opts: Opts, current: UOp, target: Target) -> Iterator[tuple[Move, UOp]]:
    """Yield the moves from `opts`, with which `kernel` became `current`, each with the kernel that
    it gives."""
    for pair in zip_longest(_longer(opts, current, target), _varied(kernel, opts, target)):
        yield from (candidate for candidate in pair if candidate is not None)


def _longer(opts: Opts, current: UOp, target: Target) -> Iterator[tuple[Move, UOp]]:
    for opt in in_turns(list(actions(current, target))):
        candidate = apply_if_legal(current, opt, target)
        if candidate is not None:
            yield Move((*opts, opt), f"+ {opt}"), candidate


def applied(kernel: UOp, opts: Opts, target: Target) -> UOp | None:
    """Return `kernel` with `opts` applied; None where one of them is not legal."""
    for opt in opts:
        next_kernel = apply_if_legal(kernel, resolve(kernel, opt, target), target)
        if next_kernel is None:
            return None
        kernel = next_kernel
    return kernel


def in_turns(opts: Sequence[Opt]) -> list[Opt]:
    """Return opts in an order in which one of each op and axis comes before the second of any."""
    turns: dict[tuple[OptKind, str], int] = {}
    keys: list[tuple[int, int, int, Opt]] = []
    for opt in sorted(opts, key=_distance):
        kind = opt.op, str(opt.axis)
        turns[kind] = turns.get(kind, 0) + 1
        keys.append((turns[kind], opt.op.promise, len(keys), opt))
    return [key[-1] for key in sorted(keys, key=lambda key: key[:3])]


def _distance(opt: Opt) -> float:
    """Return the distance of an amount from the medium one; the whole axis comes last."""
    if not isinstance(opt.arg, int):
        return 0.0
    return abs(math.log2(opt.arg / MIDDLING)) if opt.arg else math.inf


def _varied(kernel: UOp, opts: Opts, target: Target) -> Iterator[tuple[Move, UOp]]:
    for move in _changed(opts, target):
        candidate = applied(kernel, move.opts, target)
        if candidate is not None:
            yield move, candidate


def _changed(opts: Opts, target: Target) -> Iterator[Move]:
    """Yield `opts` with one of them changed or left out, the last ones first."""
    for place in reversed(range(len(opts))):
        opt, before, after = opts[place], opts[:place], opts[place + 1 :]
        others = [Opt(opt.op, opt.axis, n) for n in opt.op.amounts_on(target)]
        for other in sorted(others, key=_distance):
            if other != opt:
                yield Move((*before, other, *after), f"{other} for {opt}")
        yield Move((*before, *after), f"- {opt}")
