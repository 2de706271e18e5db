"""Choices by hand about a value: those that are possible, what each would lead to, and one made.

A prediction is of the whole plan with the choice: its kernels, the sum of their predicted times
with the default opts, and the most memory that it holds. Each offer plans again, so the page asks
for them when a value is picked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from workbench.base.errors import WorkbenchError
from workbench.base.trace import unobserved
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.passes import Memo
from workbench.ir.schedule.by_hand import readers_of, stored_by
from workbench.ir.schedule.plan import ScheduleItem
from workbench.kernel.kernel import Kernel
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.model.title import value_title
from workbench.viz.model.words import kernel_number
from workbench.viz.record.variants import cost_rows
from workbench.viz.schema.messages import ChoiceOffer, OfferedChoices, PlanForecast
from workbench.viz.schema.plan import HandKind
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


# the choices about a value


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
