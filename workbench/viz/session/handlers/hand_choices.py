"""Choices by hand about a value: those that are possible, what each would lead to, and one made.

A prediction is of the whole plan with the choice: its kernels, the sum of their predicted times
with the default opts, and the most memory that it holds. Each offer plans again, so the page asks
for them when a value is picked. The choices of a session are saved; the next one makes them again
on request.

Sections: The choices about a value; Plans by hand of earlier sessions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from workbench.base.errors import WorkbenchError
from workbench.base.trace import unobserved
from workbench.execution.memory_plan import without_detach
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.passes import Memo
from workbench.ir.schedule.by_hand import NOTHING_BY_HAND, HandChoices, readers_of, stored_by
from workbench.ir.schedule.plan import ScheduleItem
from workbench.kernel.kernel import Kernel
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.exploration.planned import planned
from workbench.viz.files.files import loaded_choices, saved_choices
from workbench.viz.model.title import value_title
from workbench.viz.model.words import kernel_number
from workbench.viz.record.about import expression_key
from workbench.viz.record.variants import cost_rows
from workbench.viz.schema.messages import ChoiceOffer, OfferedChoices, PlanForecast
from workbench.viz.schema.plan import HandKind
from workbench.viz.schema.record import SavedPlanRow
from workbench.viz.schema.saved import SavedPlan, SavedStep
from workbench.viz.session import persistence
from workbench.viz.session.handlers import variants
from workbench.viz.session.live_record import LiveRecord

MOST_READERS = 4
"""Most readers of a value that are offered one by one."""
PARTS = (2, 4, 16, 64)
"""The numbers of partial results that are offered; the reader may write any other one."""
MOST_KERNELS = 100
"""Most kernels of a plan whose times are predicted."""
_predicted: Memo[float | None] = Memo()


class _Choice(NamedTuple):
    """A choice that can be offered: the arguments of a request."""

    kind: HandKind
    title: str
    node: UOp
    store: bool | None = None
    others: tuple[UOp, ...] = ()
    parts: int = 0
    undo: bool = False

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `replan`."""
        others, parts = self.others, self.parts
        return arguments(self.kind, self.node, self.store, others, parts, self.undo)


def arguments(
    kind: HandKind, node: UOp, store: bool | None, others: Sequence[UOp], parts: int, undo: bool
) -> dict[str, Any]:
    """Return the arguments of `replan` for a request of the page."""
    choice: Any = None
    if kind == "changes":
        choice = store
    elif not undo and kind == "recompute":
        choice = list(others)
    elif not undo and kind == "split":
        choice = parts
    elif not undo and kind == "before":
        choice = others[0] if others else None
    elif not undo:
        choice = others[0] if others else False
    return {kind: {node: choice}}


def offered(session: LiveRecord, node: int, parts: int) -> OfferedChoices:
    """Return the choices about the value at a place of the record (with `parts` the split into so
    many partial results alone), and what the plan would be with each; of an impossible one, why it
    is refused."""
    ex = session.recorder.exploration
    value = session.recorder.node(node)
    rows = []
    for choice in [_split(value, parts)] if parts else _choices(ex, value):
        refused, forecast = "", None
        try:
            with unobserved():
                made = ex.replan(**choice.arguments())
            forecast = _forecast(session, made)
        except WorkbenchError as error:
            refused = error.because or str(error)
        rows.append((choice, refused, forecast))
    with session.lock:
        place = session.recorder.place
        offers = [
            ChoiceOffer(
                kind=choice.kind,
                title=choice.title,
                node=place(choice.node),
                store=choice.store,
                others=[place(other) for other in choice.others],
                parts=choice.parts,
                undo=choice.undo,
                refused=refused,
                forecast=forecast,
            )
            for choice, refused, forecast in rows
        ]
        session.send_changes()
    return OfferedChoices(offers, _forecast(session, ex), _most_parts(value))


def _most_parts(node: UOp) -> int:
    """Return the most partial results that a value can have; 0 if it is no reduction."""
    if node.op is not Ops.REDUCE_AXIS:
        return 0
    return max([node.src[0].shape[axis] for axis in node.reduced_axes], default=0)


def _forecast(session: LiveRecord, ex: Exploration) -> PlanForecast:
    """Return the number of kernels of a plan, their predicted time, and the most bytes it holds."""
    seconds = plan_prediction(session, ex)
    return PlanForecast(len(ex.kernels), seconds, ex.memory_plan.peak_bytes)


def plan_prediction(session: LiveRecord, ex: Exploration) -> float | None:
    """Return the sum of the predicted times of the kernels of a plan, with the default opts on the
    device of a record; None where it is not known."""
    times = []
    if len(ex.kernels) <= MOST_KERNELS:
        for kernel in ex.kernels:
            times.append(_predicted_s(session, variants.on_device(kernel, session.device)))
    known = [each for each in times if each is not None]
    return sum(known) if times and len(known) == len(ex.kernels) else None


def _predicted_s(session: LiveRecord, kernel: Kernel) -> float | None:
    speeds = session.recorder.speeds

    def predict() -> float | None:
        with suppress(WorkbenchError), unobserved():
            costs = cost_rows(kernel.optimized(), speeds, None)
            return None if costs is None else costs[1].predicted_s
        return None

    if speeds is None:
        return predict()
    return _predicted.value((kernel.original, kernel.rules_off, session.device), predict)


# --------------------------------------------------------------------------------------------------
# The choices about a value.


def _choices(ex: Exploration, node: UOp) -> Iterator[_Choice]:
    """Yield the choices about a value that have a meaning in a plan."""
    decision = next((d for d in ex.decisions if d.node is node), None)
    original = ex.originals.get(node, node)
    if decision is None or original in ex.choices.made or node.op is Ops.COPY:
        yield from _of_kernel(ex, node)
        return
    if decision.forced or original in ex.choices.stored:
        yield _Choice("changes", "leave it to the scheduler", node)
    else:
        title = "fuse it into its readers" if decision.stored else "store it: a kernel ends here"
        yield _Choice("changes", title, node, store=not decision.stored)
    yield from _of_readers(ex, node, original)
    yield from _of_reduction(ex, node, original)
    yield from _of_kernel(ex, node)


def _of_readers(ex: Exploration, node: UOp, original: UOp) -> Iterator[_Choice]:
    """Yield a choice for each reader of a value that has several, or is a result."""
    graph = UOp.sink(*ex.outputs).toposort()
    readers = [r for r in readers_of(node, graph) if r.op not in (Ops.COPY, Ops.CUSTOM)]
    own = set(ex.choices.recomputed.get(original, ()))
    copies = [r for r in readers if r.op is Ops.CONTIGUOUS and own]
    if copies:  # the others read the copy
        readers = [r for r in readers if r not in copies] + readers_of(copies[0], graph)
    is_result = node in ex.outputs or any(copy in ex.outputs for copy in copies)
    if len(readers) + is_result < 2:
        return
    for reader in readers[:MOST_READERS]:
        name = ex.originals.get(reader, reader)
        if name in own:
            title = f"read it from memory in {value_title(reader, ex.lines)}"
            others = tuple([r for r in readers if ex.originals.get(r, r) in own - {name}])
            yield _Choice("recompute", title, node, others=others, undo=not others)
        else:
            title = f"compute it again in {value_title(reader, ex.lines)} alone"
            others = tuple([r for r in readers if ex.originals.get(r, r) in own])
            yield _Choice("recompute", title, node, others=(*others, reader))


def _of_reduction(ex: Exploration, node: UOp, original: UOp) -> Iterator[_Choice]:
    """Yield the numbers of partial results of a reduction."""
    split = next((n for n in ex.choices.parts if ex.originals.get(node) is n or n is node), None)
    if split is not None:
        parts = ex.choices.parts[split]
        yield _Choice("split", f"one kernel, not {parts} partial results", node, undo=True)
        return
    for parts in PARTS:
        if parts <= _most_parts(node):
            yield _split(node, parts)


def _split(node: UOp, parts: int) -> _Choice:
    return _Choice("split", f"split it: {parts} partial results", node, parts=parts)


def _of_kernel(ex: Exploration, node: UOp) -> Iterator[_Choice]:
    """Yield the places and the memory of the kernel that stores a value."""
    items = [item for item in ex.items if item.kernel is not None]
    own = next((n for n, item in enumerate(items) if node in item.nodes), None)
    if own is None:
        return
    original = ex.originals.get(node, node)
    if original in ex.choices.before:
        yield _Choice("before", "the kernel in its own place", node, undo=True)
    if own:
        earlier = items[own - 1].nodes[0]
        named = f"{kernel_number(own - 1)} ({value_title(earlier, ex.lines)})"
        title = f"run the kernel before kernel {named}"
        yield _Choice("before", title, node, others=(earlier,))
    if own + 1 < len(items):
        later = items[own + 1].nodes[0]
        named = f"{kernel_number(own + 1)} ({value_title(later, ex.lines)})"
        title = f"run the kernel after kernel {named}"
        yield _Choice("before", title, later, others=(node,))
    yield from _of_memory(ex, node, items[own])


def _of_memory(ex: Exploration, node: UOp, item: ScheduleItem) -> Iterator[_Choice]:
    """Yield the values that a value may be written over."""
    stored = stored_by(ex.items)
    if ex.originals.get(node, node) in ex.choices.in_place:
        yield _Choice("in_place", "leave its memory to the planner", node, undo=True)
    piece = ex.memory_plan.pieces.get(stored[node])
    over = None if piece is None else piece.over
    values = {buffer: value for value, buffer in stored.items()}
    for buffer in item.inputs:
        value = values.get(buffer, buffer)
        if buffer is over:
            title = f"do not write it over {value_title(value, ex.lines)}"
            yield _Choice("in_place", title, node)
        else:
            yield _Choice(
                "in_place", f"write it over {value_title(value, ex.lines)}", node, others=(value,)
            )


# --------------------------------------------------------------------------------------------------
# Plans by hand of earlier sessions. Values are named by their places in the graph that a plan
# without these choices computes, and a digest of that graph says whether it is still the same.

BY_ITSELF = "the choices have to be made anew"


def save(session: LiveRecord) -> None:
    """Save the choices by hand of the present plan for the next session, or delete what was saved
    if all were undone. Those of a plan that was loaded from a file stay in that file."""
    ex = session.recorder.exploration
    if ex.origin.words:
        return
    if not ex.choices:
        persistence.forget_plan(session.tensors_key, session.plan_id)
        return
    steps = _saved_steps(ex)
    if steps:
        now, origins = int(time.time()), [persistence.origin()]
        plan = SavedPlan(session.plan_id, now, steps, list(ex.rules_off), origins)
        left_out = persistence.store_plan(session.tensors_key, plan)
        with session.lock:
            session.leave_out(left_out, set())


def list_saved(session: LiveRecord) -> None:
    """List the plans by hand that earlier sessions of this notebook saved of the expression, with
    the present rules."""
    rows = [
        SavedPlanRow(plan.id, sum(step.count for step in plan.steps), plan.when)
        for plan in _saved_plans(session)
    ]
    if rows != session.record.saved_plans:
        session.put(("saved_plans",), rows)


def forget(session: LiveRecord, plan_id: str) -> None:
    """Delete a saved plan by hand."""
    persistence.forget_plan(session.tensors_key, plan_id)
    list_saved(session)


def saved_exploration(session: LiveRecord, plan_id: str) -> Exploration:
    """Return the exploration with the choices by hand of a saved plan. Errors: WorkbenchError if it
    is not saved any more, is about another graph, or is not possible."""
    ex = session.recorder.exploration
    plan = next((each for each in _saved_plans(session) if each.id == plan_id), None)
    if plan is None:
        because = "it is made, or was deleted"
        raise WorkbenchError("this plan is not among the saved ones", because)
    choices = NOTHING_BY_HAND
    for step in plan.steps:
        graph, nodes = _graph_with(ex, choices)
        if graph != step.graph or any(place >= len(nodes) for place in step.nodes):
            because = "the graph of these tensors is planned from another form now"
            raise WorkbenchError("cannot make this plan again", because, BY_ITSELF)
        values = [nodes[place] for place in step.nodes]
        forced = dict(zip(values, step.forced, strict=False))
        try:
            made = loaded_choices(forced, step.by_hand, values)
        except LookupError:
            because = "a choice is about a value that is not saved with it"
            raise WorkbenchError("cannot make this plan again", because, BY_ITSELF) from None
        if choices:
            made = replace(made, recomputed=choices.recomputed, parts=choices.parts)
        choices = made
    return ex.planned_again(choices, ex.rules_off)


def _saved_plans(session: LiveRecord) -> list[SavedPlan]:
    ex = session.recorder.exploration
    if ex.origin.words:
        return []
    return [
        plan
        for plan in persistence.load_plans(session.tensors_key)
        if session.shows_saved or persistence.origin() in plan.origins
        if tuple(plan.rules_off) == ex.rules_off
        if not (ex.choices and plan.id == session.plan_id)
    ]


def _saved_steps(ex: Exploration) -> list[SavedStep]:
    """Return the choices of an exploration, as `replan_calls` makes them: two steps if some are
    about values that others make. [] if a value has no place."""
    choices, steps, before = ex.choices, list[SavedStep](), NOTHING_BY_HAND
    graph, nodes = _graph_with(ex, before)
    places = _places(nodes)
    if choices.of_graph and not all(node in places for node in choices.nodes):
        steps += _step(choices.of_graph, graph, places)
        graph, nodes = _graph_with(ex, choices.of_graph)
        places = _places(nodes)
        choices = replace(choices, recomputed={}, parts={})
        if not steps:
            return []
    last = _step(choices, graph, places) if choices else []
    return [*steps, *last] if last or not choices else []


def _step(choices: HandChoices, graph: str, places: Mapping[UOp, int]) -> list[SavedStep]:
    if not all(node in places for node in choices.nodes):
        return []
    nodes, forced = [places[node] for node in choices.nodes], list(choices.stored.values())
    return [SavedStep(graph, nodes, forced, saved_choices(choices))]


def _places(nodes: Sequence[UOp]) -> dict[UOp, int]:
    """Return the first place of each value."""
    return {node: place for place, node in reversed([*enumerate(nodes)])}


def _graph_with(ex: Exploration, choices: HandChoices) -> tuple[str, list[UOp]]:
    """Return a digest of the graph that a plan with these choices computes, and the values that
    choices about each of its nodes are about."""
    with unobserved():
        plan = planned(ex.expression, choices, ex.rules_off, on=ex.on)
    nodes = UOp.sink(*plan.outputs).toposort()
    digest = expression_key(without_detach(plan.outputs))
    return digest, [plan.originals.get(node, node) for node in nodes]
