"""The choices by hand of an exploration: their changes, and their code.

Sections: The arguments of `Exploration.replan`, checked and merged; Choices as calls of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from workbench.base.errors import WorkbenchError, integer_of
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.by_hand import (
    NOTHING_BY_HAND,
    HandChoices,
    partial,
    split_in,
    value_text,
)
from workbench.tensor.tensor import Tensor
from workbench.viz.exploration.planned import Planned, planned, value_of
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model.graph import label_of
from workbench.viz.model.words import shape_text

# --------------------------------------------------------------------------------------------------
# The arguments of `Exploration.replan`, checked and merged.

Value = UOp | Tensor
"""A value of an expression: a node of `decisions`, or a tensor."""
HINTS = {
    "changes": "ex.replan({ex.decisions[0].node: True})",
    "recompute": "ex.replan(recompute={value: [reader]})",
    "split": "ex.replan(split={ex.decisions[0].node: 4})",
    "before": "ex.replan(before={value: value_of_a_later_kernel})",
    "in_place": "ex.replan(in_place={value: value_that_its_kernel_reads})",
}
"""An example of each argument."""


class ChoiceChanges(NamedTuple):
    """Changes of choices by hand, by value; None undoes a choice."""

    stored: Mapping[Value, bool | None] = {}
    recompute: Mapping[Value, Iterable[Value] | None] = {}
    split: Mapping[Value, int | None] = {}
    before: Mapping[Value, Value | None] = {}
    in_place: Mapping[Value, Value | bool | None] = {}


def changed_choices(ex: ScheduledTensors, changes: ChoiceChanges) -> HandChoices:
    """Return the choices of an exploration, changed.

    Errors: WorkbenchError for an argument that is no dict from values, and for a value that no
    kernel computes.
    """
    names = _Names(ex)
    old = ex.choices
    stored = names.read("changes", changes.stored, _store)
    recompute = names.read("recompute", changes.recompute, names.readers)
    split = names.read("split", changes.split, _count)
    before = names.read("before", changes.before, names.node)
    in_place = names.read("in_place", changes.in_place, names.memory)
    for node in (*recompute, *split):
        if node in old.made:
            what = f"cannot recompute or split {value_text(node)}"
            because = "another choice by hand made this value"
            raise WorkbenchError(what, because, "that choice, about another value")
    for node, parts in split.items():
        if parts is not None:
            split_in(node, parts)
    merged = HandChoices(
        stored=_merged({n: s for n, s in old.stored.items() if not recompute.get(n)}, stored),
        recomputed=_merged({n: r for n, r in old.recomputed.items() if n not in stored}, recompute),
        parts=_merged(old.parts, split),
        before=_merged(old.before, before),
        in_place={n: m for n, m in {**old.in_place, **in_place}.items() if m is not None},
    )
    return merged.without(old.made - merged.made)


def _merged(old: Mapping[UOp, Any], new: Mapping[UOp, Any]) -> dict[UOp, Any]:
    """Return choices with the changes `new`; the latest stand last."""
    kept = {node: choice for node, choice in old.items() if node not in new}
    return {**kept, **{node: choice for node, choice in new.items() if choice is not None}}


class _Names:
    """The values of an exploration, by what a caller names them with."""

    def __init__(self, ex: ScheduledTensors):
        self._expression, self._originals = ex.expression, ex.originals
        self._nodes = UOp.sink(*ex.outputs).toposort()
        self._known = {*ex.originals.values(), *ex.choices.nodes}
        self._reductions = {partial(n, parts): n for n, parts in ex.choices.parts.items()}

    def read(self, name: str, changes: object, choice: Callable[[Any], Any]) -> dict[UOp, Any]:
        """Return the changes of one argument, by value."""
        if not isinstance(changes, Mapping):
            because = f"{name} is {type(changes).__name__}, not a dict from values"
            raise WorkbenchError("cannot read these decisions", because, HINTS[name])
        rows = changes.items()
        return {self.node(v): None if each is None else choice(each) for v, each in rows}

    def node(self, value: object) -> UOp:
        """Return the node that choices about a value are about."""
        if isinstance(value, Tensor):
            node = value_of(self._expression, value)
        elif isinstance(value, UOp):
            node = value
        else:
            because = f"{type(value).__name__} is neither a node nor a Tensor"
            raise WorkbenchError("this is not a value", because, "a node of .decisions")
        if node in self._nodes:
            return self._originals.get(node, node)
        if node not in self._known:
            what = f"there is no value {label_of(node)} {shape_text(node.shape)} here"
            hint = "a node of .decisions, or a tensor of the expression"
            raise WorkbenchError(what, "none of the kernels computes it", hint)
        return node

    def readers(self, values: object) -> tuple[UOp, ...]:
        """Return the nodes of a list of readers. Partial results stand for their reduction."""
        if not isinstance(values, Iterable) or isinstance(values, str):
            because = f"{values!r:.40} is not a list of readers"
            raise WorkbenchError("this is not a decision", because, HINTS["recompute"])
        found = [self.node(value) for value in values]
        nodes = tuple(dict.fromkeys([self._reductions.get(node, node) for node in found]))
        if not nodes:
            because = "the list of readers is empty"
            raise WorkbenchError("this is not a decision", because, "{value: True}, to store it")
        return nodes

    def memory(self, value: object) -> UOp | bool:
        """Return the node over whose memory a value is written, or False."""
        if value is False:
            return False
        if value is True:
            because = "True does not say over which value"
            raise WorkbenchError("this is not a decision", because, HINTS["in_place"])
        return self.node(value)


def _store(value: object) -> bool:
    if not isinstance(value, bool):
        because = f"{value!r:.40} is not True (store), False (fuse) or None"
        raise WorkbenchError("this is not a decision", because, HINTS["changes"])
    return value


def _count(value: object) -> int:
    count = integer_of(value)
    if count is None:
        because = f"{value!r:.40} is not a number of partial results"
        raise WorkbenchError("this is not a decision", because, HINTS["split"])
    return count


# --------------------------------------------------------------------------------------------------
# Choices as calls of `Exploration.replan`.


def replan_calls(ex: ScheduledTensors) -> list[str]:
    """Return calls of `ex.replan` that make the choices of an exploration on one that has none: two
    if choices are about a graph that others change, because the second names its values. The user's
    names of the values follow as a comment: where the calls run, the variables may be others."""
    choices = ex.choices
    if not choices:
        return []
    users = dict.fromkeys(filter(None, map(ex.lines.name, choices.nodes)))
    note = f"  # {', '.join(users)}" if users else ""
    names = _NodeNames(_planned(ex, NOTHING_BY_HAND))
    calls = []
    if choices.of_graph and not all(map(names.has, choices.nodes)):
        calls.append(_replan_call(choices.of_graph, names))
        names = _NodeNames(_planned(ex, choices.of_graph))
        choices = replace(choices, recomputed={}, parts={})
    calls += [_replan_call(choices, names)] if choices else []
    return [call + note for call in calls[:1]] + calls[1:]


def _planned(ex: ScheduledTensors, choices: HandChoices) -> Planned:
    return planned(ex.expression, choices, ex.rules_off, on=ex.on)


def _replan_call(choices: HandChoices, names: _NodeNames) -> str:
    """Return a call that makes choices, on an exploration in which their values have `names`."""
    name = names.name
    readers = {node: f"[{', '.join(map(name, own))}]" for node, own in choices.recomputed.items()}
    in_place = {n: "False" if over is False else name(over) for n, over in choices.in_place.items()}
    arguments: dict[str, Mapping[UOp, object]] = {
        "": choices.stored,
        "recompute=": readers,
        "split=": choices.parts,
        "before=": {node: name(later) for node, later in choices.before.items()},
        "in_place=": in_place,
    }
    texts = [
        f"{argument}{{{', '.join(f'{name(node)}: {choice}' for node, choice in rows.items())}}}"
        for argument, rows in arguments.items()
        if rows
    ]
    return f"ex = ex.replan({', '.join(texts)})"


class _NodeNames:
    """Code for the values of an exploration `ex`, as choices by hand name them."""

    def __init__(self, ex: Planned):
        self._names: dict[UOp, str] = {}
        for place, output in enumerate(ex.outputs):
            for number, node in enumerate(output.toposort()):
                self._add(ex, node, f"list(ex.outputs[{place}].toposort())[{number}]")
        for place, decision in enumerate(ex.decisions):
            self._names[ex.originals.get(decision.node, decision.node)] = (
                f"ex.decisions[{place}].node"
            )

    def _add(self, ex: Planned, node: UOp, name: str) -> None:
        self._names.setdefault(ex.originals.get(node, node), name)

    def has(self, node: UOp) -> bool:
        """Whether a value has a name."""
        return node in self._names

    def name(self, node: UOp) -> str:
        """Return code for a value: "y" if it is not in the expression."""
        return self._names.get(node, "y")
