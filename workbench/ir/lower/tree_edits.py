"""Edits of a statement tree by a pass, and their record.

The pass replaces parts of loop bodies and says which step that was; so the account that a reader
steps through is what the pass did. The states are made when they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from workbench.base.trace import Match, PassStep
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

LOOPS = (Ops.LOOP, Ops.IF)


@dataclass(eq=False, slots=True)
class OpenLoop:
    """A LOOP or an IF of a tree that is edited; the outermost is the BLOCK. `body` has its
    statements, and the loops in it."""

    node: UOp
    body: list[UOp | OpenLoop]

    @classmethod
    def of(cls, node: UOp) -> OpenLoop:
        """Return a loop, and those in it, opened."""
        return cls(node, [cls.of(n) if n.op in LOOPS else n for n in node.body])

    def loops(self) -> Iterator[OpenLoop]:
        """Yield the loops in this one, each after those in it, and at last itself."""
        for child in self.body:
            if isinstance(child, OpenLoop):
                yield from child.loops()
        yield self


class Edit(NamedTuple):
    """A step of a pass: in the body of a loop, `items` in the place of `removed` others from `at`
    on."""

    step: PassStep
    at: int
    removed: int
    items: tuple[UOp | OpenLoop, ...]

    def apply(self, body: list[UOp | OpenLoop]) -> None:
        """Change the body of the loop."""
        body[self.at : self.at + self.removed] = self.items


class TreeEdits:
    """A statement tree, `root`, and the steps by which a pass edits it."""

    def __init__(self, block: UOp):
        self.root = OpenLoop.of(block)
        self._loops = {loop: tuple(loop.body) for loop in self.root.loops()}
        self._edits: dict[OpenLoop, list[Edit]] = {loop: [] for loop in self._loops}

    def replace(
        self, loop: OpenLoop, at: int, removed: int, items: Iterable[UOp | OpenLoop], step: PassStep
    ) -> None:
        """Put `items` in the place of `removed` others from `at` on in the body of a loop."""
        edit = Edit(step, at, removed, tuple(items))
        edit.apply(loop.body)
        self._edits[loop].append(edit)

    def matches(self) -> Iterator[Match]:
        """Yield the steps, each as what it makes of its loop: those of a loop in their order, and
        after those of the loops in it. Edits of two loops do not depend on each other's order."""
        bodies = {loop: [*body] for loop, body in self._loops.items()}
        for loop, edits in self._edits.items():
            after = _tree(loop, bodies)
            for edit in edits:
                edit.apply(bodies[loop])
                before, after = after, _tree(loop, bodies)
                if after is not before:
                    yield Match(edit.step, before, after)


def _tree(loop: OpenLoop, bodies: Mapping[OpenLoop, list[UOp | OpenLoop]]) -> UOp:
    """Return a loop with the body that it has at some moment."""
    node = loop.node
    head = node.src[: len(node.src) - len(node.body)]
    body = [_tree(n, bodies) if isinstance(n, OpenLoop) else n for n in bodies[loop]]
    return node.replace(src=(*head, *body))


def innermost_change(before: UOp, after: UOp) -> tuple[UOp, UOp]:
    """Return the innermost loops of two statement trees (or the whole trees) such that one in the
    place of the other turns the first tree into the second."""
    while (before.op, before.arg, len(before.src)) == (after.op, after.arg, len(after.src)):
        pairs = zip(before.src, after.src, strict=True)
        changes = [(a, b) for a, b in pairs if a is not b]
        if len(changes) != 1 or {n.op for n in changes[0]} != {Ops.LOOP}:
            break
        ((before, after),) = changes
    return before, after


def matches_between(before: UOp, states: Iterable[tuple[PassStep, UOp]]) -> Iterator[Match]:
    """Yield the matches that lead from one statement tree through others, each with the step that
    led to it: it replaces the innermost loop in which the two trees differ.

    Replayed, a match replaces a loop that is as it was when the step was taken: what is inside of
    it changed before."""
    for step, after in states:
        if after is not before:
            yield Match(step, *innermost_change(before, after))
        before = after
