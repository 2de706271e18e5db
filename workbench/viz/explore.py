"""`explore(*tensors)`: schedule tensors under observation and hand back what happened."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from workbench import engine
from workbench.context import Context
from workbench.errors import WorkbenchError
from workbench.ir.ops import Ops
from workbench.ir.schedule.item import Decision, ScheduleItem
from workbench.ir.schedule.schedule import base
from workbench.ir.uop import UOp
from workbench.kernel.inputs import FromSchedule, Run
from workbench.kernel.kernel import Kernel
from workbench.source import SourceLine, source_of
from workbench.tensor.tensor import Tensor
from workbench.trace import PassRecord, observe
from workbench.viz import formatters
from workbench.viz.exploration import Exploration
from workbench.viz.model.title import title_of


def explore(*tensors: Tensor) -> Exploration:
    """Return the Exploration of `tensors`: the kernels that would compute them, and why those.

    Nothing is computed. As the last line of a notebook cell it is a picture.

    Errors: WorkbenchError for what is not a Tensor, and for no tensor at all.
    """
    _check(tensors)
    formatters.register_all()
    found = _Found()
    for device, group in _by_device(tensors).items():
        _schedule(device, group, found)
    line = next((li for t in tensors if (li := nearest_line(t.uop))), None)
    return Exploration(
        tensors, tuple(found.kernels), tuple(found.items), tuple(found.decisions),
        tuple(found.passes), tuple(found.outputs), line,
    )  # fmt: skip


@dataclass(slots=True)
class _Found:
    kernels: list[Kernel] = field(default_factory=list)
    items: list[ScheduleItem] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    passes: list[PassRecord] = field(default_factory=list)
    outputs: list[UOp] = field(default_factory=list)


def _check(tensors: tuple[object, ...]) -> None:
    if not tensors:
        raise WorkbenchError(
            "nothing to explore", "explore() takes tensors", "explore(a + b)"
        )
    for place, value in enumerate(tensors, 1):
        if isinstance(value, Tensor):
            continue
        listed = isinstance(value, (list, tuple)) and all(
            isinstance(v, Tensor) for v in value
        )
        kind = type(value).__name__
        raise WorkbenchError(
            f"cannot explore argument {place}, {'an' if kind[0] in 'aeiou' else 'a'} {kind}",
            "only the expression that a Tensor stands for can be scheduled",
            "explore(*tensors)"
            if listed and value
            else "Tensor(...) on the data first",
        )


def _by_device(tensors: tuple[Tensor, ...]) -> dict[str, list[Tensor]]:
    groups: dict[str, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault(tensor.device, []).append(tensor)
    return groups


def _schedule(device: str, tensors: list[Tensor], found: _Found) -> None:
    with Context(DEV=device), observe() as watching:
        made, outputs = engine.planned([t.uop for t in tensors])
    run = Run(made.items)
    shapes = {base(output): output.shape for output in outputs}
    for number, item in enumerate(made.items):
        if item.kernel is not None:
            shape = shapes.get(item.node, item.node.shape)
            found.kernels.append(_kernel(item, shape, FromSchedule(run, number)))
    found.items += made.items
    found.decisions += made.decisions
    found.passes += watching.records
    found.outputs += outputs


def _kernel(item: ScheduleItem, shape: tuple[int, ...], data: FromSchedule) -> Kernel:
    graph = item.kernel
    assert graph is not None
    line, title = nearest_line(item.node), title_of(graph)
    return Kernel(graph, graph, data, shape, line=line, title=title)


def nearest_line(node: UOp) -> SourceLine | None:
    """Return the user's line that made `node`, or else the nearest node below it."""
    queue, seen = deque([node]), {node}
    while queue:
        below = queue.popleft()
        line = source_of(below)
        if line is not None:
            return line
        if below.op is Ops.BUFFER:
            continue
        for source in below.src:
            if source not in seen:
                seen.add(source)
                queue.append(source)
    return None
