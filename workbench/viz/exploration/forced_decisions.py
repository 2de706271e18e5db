"""Forced decisions: checking the argument of `Exploration.replan`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.base.errors import WorkbenchError
from workbench.ir.node.uop import UOp
from workbench.tensor.tensor import Tensor
from workbench.viz.exploration.expression import Expression
from workbench.viz.exploration.planned import value_of
from workbench.viz.model.graph import label_of
from workbench.viz.model.words import shape_text


def forced_by(
    changes: object, before: Mapping[UOp, bool], outputs: Sequence[UOp], expression: Expression
) -> dict[UOp, bool]:
    """Return the forced decisions `before`, changed by `changes` (a dict from nodes or tensors to
    True: store, False: fuse, None: leave it to the scheduler).

    Errors: WorkbenchError for a value that is not such a dict, and for a value that no kernel
    computes.
    """
    named = {_node_of(value, expression): store for value, store in _changes(changes)}
    nodes = UOp.sink(*outputs).toposort()
    for node in named:
        if node not in nodes:
            what = f"there is no value {label_of(node)} {shape_text(node.shape)} here"
            hint = "a node of .decisions, or a tensor of the expression"
            raise WorkbenchError(what, "none of the kernels computes it", hint)
    merged = {**before, **named}
    return {node: store for node, store in merged.items() if store is not None}


def _changes(changes: object) -> Iterator[tuple[Any, bool | None]]:
    hint = "ex.replan({ex.decisions[0].node: True})"
    if not isinstance(changes, Mapping):
        because = f"{type(changes).__name__} is not a dict from values to True, False or None"
        raise WorkbenchError("cannot read these decisions", because, hint)
    for value, store in changes.items():
        if store is not None and not isinstance(store, bool):
            because = f"{store!r:.40} is not True (store), False (fuse) or None"
            raise WorkbenchError("this is not a decision", because, hint)
        yield value, store


def _node_of(value: UOp | Tensor, expression: Expression) -> UOp:
    if isinstance(value, Tensor):
        return value_of(expression, value)
    if isinstance(value, UOp):
        return value
    because = f"{type(value).__name__} is neither a node nor a Tensor"
    raise WorkbenchError("this is not a value", because, "a node of .decisions")
