"""Scheduling tensors under observation: the kernels, why those, and the passes that led there."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench import engine
from workbench.context import Context
from workbench.errors import EndlessRewrite, VerifyError, WorkbenchError
from workbench.ir.ops import Ops
from workbench.ir.rewrite import check_names, without
from workbench.ir.schedule.item import Decision, ScheduleItem
from workbench.ir.schedule.schedule import base
from workbench.ir.uop import UOp
from workbench.kernel.inputs import FromSchedule, Run
from workbench.kernel.kernel import Kernel
from workbench.pipeline import COMPILE_RULES, SCHEDULE_RULES
from workbench.source import SourceLine, source_of
from workbench.tensor.tensor import Tensor
from workbench.trace import PassRecord, observe, unobserved
from workbench.viz.model.title import title_of


@dataclass(slots=True)
class Planned:
    """What scheduling gave: see `Exploration`, which has the same fields."""

    kernels: list[Kernel] = field(default_factory=list)
    items: list[ScheduleItem] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    passes: list[PassRecord] = field(default_factory=list)
    outputs: list[UOp] = field(default_factory=list)
    line: SourceLine | None = None
    error: Exception | None = None


def planned(
    tensors: tuple[Tensor, ...], forced: Mapping[UOp, bool], rules_off: tuple[str, ...]
) -> Planned:
    """Return what computing `tensors` would run; nothing is computed. `forced` says of values
    that they are stored (True) or fused (False); `rules_off` names rules to do without.

    Errors: WorkbenchError where a value cannot be, or a rule does not exist.
    """
    check_names(rules_off, (*SCHEDULE_RULES, *COMPILE_RULES))
    of_kernels = {rule.name for rules in COMPILE_RULES for rule in rules.rules}
    found = Planned()
    for device, group in _by_device(tensors).items():
        with Context(DEV=device), without(rules_off), observe() as watching:
            try:
                made, outputs = engine.planned([t.uop for t in group], forced)
            except Exception as error:
                if not _is_of_a_rule(error):
                    raise
                found.error = error
        if found.error is not None:
            return _failed(found, tensors, watching.records)
        run = Run(made.items)
        shapes = {base(output): output.shape for output in outputs}
        for number, item in enumerate(made.items):
            if item.kernel is not None:
                shape = shapes.get(item.node, item.node.shape)
                data = FromSchedule(run, number)
                off = tuple(name for name in rules_off if name in of_kernels)
                found.kernels.append(_kernel(item.node, item.kernel, shape, data, off))
        found.items += made.items
        found.decisions += made.decisions
        found.passes += watching.records
        found.outputs += outputs
    found.line = next((li for t in tensors if (li := nearest_line(t.uop))), None)
    return found


def _is_of_a_rule(error: Exception) -> bool:
    """Whether an error says that a rule is wrong, and not that something else was asked for
    than can be."""
    of_rules = (EndlessRewrite, VerifyError)
    return isinstance(error, of_rules) or not isinstance(error, WorkbenchError)


def _failed(
    found: Planned, tensors: tuple[Tensor, ...], records: list[PassRecord]
) -> Planned:
    """Return what there is to look at where a rule of the scheduler raised."""
    line = next((li for t in tensors if (li := nearest_line(t.uop))), None)
    outputs = [t.uop for t in tensors]
    passes = [*found.passes, *records]
    return Planned(passes=passes, outputs=outputs, line=line, error=found.error)


def value_of(tensor: Tensor) -> UOp:
    """Return the node that scheduling decides about where it meets a tensor's value."""
    with unobserved():
        return base(engine.planned([tensor.uop])[1][0])


def _by_device(tensors: tuple[Tensor, ...]) -> dict[str, list[Tensor]]:
    groups: dict[str, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault(tensor.device, []).append(tensor)
    return groups


def _kernel(
    node: UOp,
    graph: UOp,
    shape: tuple[int, ...],
    data: FromSchedule,
    off: tuple[str, ...],
) -> Kernel:
    line, title = nearest_line(node), title_of(graph)
    return Kernel(graph, graph, data, shape, line=line, title=title, rules_off=off)


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
