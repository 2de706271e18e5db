"""The steps of a pass that makes a statement tree, or makes something of one, as matches.

The pass says which tree there is after each step. `note_steps` (base/trace.py) has the matches
listed when somebody looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from workbench.base.trace import Match, PassStep
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


def matches_between(
    before: UOp, states: Iterable[tuple[PassStep, UOp]]
) -> Iterator[Match]:
    """Yield the matches that lead from one statement tree through others, each with the step that
    led to it: it replaces the innermost loop in which the two trees differ.

    Replayed, a match replaces a loop that is as it was when the step was taken: what is inside of
    it changed before."""
    for step, after in states:
        if after is not before:
            yield Match(step, *innermost_change(before, after))
        before = after


def innermost_change(before: UOp, after: UOp) -> tuple[UOp, UOp]:
    """Return the innermost loops of two statement trees (or the whole trees) such that one in the
    place of the other turns the first tree into the second."""
    while (before.op, before.arg, len(before.src)) == (
        after.op,
        after.arg,
        len(after.src),
    ):
        pairs = zip(before.src, after.src, strict=True)
        changes = [(a, b) for a, b in pairs if a is not b]
        if len(changes) != 1 or {n.op for n in changes[0]} != {Ops.LOOP}:
            break
        ((before, after),) = changes
    return before, after
