"""Gradient passes in the file of an exploration: the gradients of rules, by node positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from workbench.base.trace import PassRecord
from workbench.ir.gradient.backward import GRADIENT
from workbench.ir.gradient.steps import Share, gradient_steps
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.viz.schema.saved import SavedGradients, SavedShare


def gradient_passes(records: Iterable[PassRecord]) -> list[PassRecord]:
    """Return the gradient passes among records."""
    return [record for record in records if record.name == GRADIENT.name]


def nodes_of(record: PassRecord) -> Iterator[UOp]:
    """Yield the nodes by whose places a gradient pass is saved."""
    shares = ((*match.before.src, match.after) for match in record.matches)
    yield from chain(record.after.src, *shares)


def saved_gradients(record: PassRecord, places: Mapping[UOp, int]) -> SavedGradients:
    """Return a gradient pass by the places of its nodes."""
    root, *gradients = record.after.src
    shares = [(*match.before.src, match.after) for match in record.matches]
    seed = next((g for _, node, g, _ in shares if node is root), root)
    targets = [_target(due, root) for due in record.before.src[1:]]
    return SavedGradients(
        root=places[root],
        seed=places[seed],
        gradients=[
            (places[target], places[gradient])
            for target, gradient in zip(targets, gradients, strict=True)
        ],
        shares=[
            SavedShare(places[node], places[g], places[source], places[value])
            for source, node, g, value in shares
        ],
        seconds=record.seconds,
    )


def gradient_record(saved: SavedGradients, nodes: Sequence[UOp]) -> PassRecord:
    """Return the record of a saved pass. Errors: LookupError for a place where no node is."""
    pairs = [(nodes[target], nodes[gradient]) for target, gradient in saved.gradients]
    shares = [
        Share(nodes[s.node], nodes[s.g], nodes[s.source], nodes[s.value], nodes[s.value])
        for s in saved.shares
    ]
    root, seed = nodes[saved.root], nodes[saved.seed]
    before, after, matches = gradient_steps(root, seed, pairs, shares)
    doc = GRADIENT.doc
    return PassRecord(GRADIENT.name, doc, before, after, matches, saved.seconds)


def _target(due: UOp, root: UOp) -> UOp:
    """Return the node whose gradient is `due`, a sum of what rules are to hand on."""
    while due.op is Ops.ADD and due.src[-1].op is Ops.GRADIENT:
        due = due.src[-1]
    return due.src[0] if due.op is Ops.GRADIENT else root
