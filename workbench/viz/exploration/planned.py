"""Scheduling tensors under observation: the kernels, the decisions and the passes.

Sections: The expression of tensors at the time of `explore`, whatever is computed or written
later; Scheduling tensors under observation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from workbench.backends.device import Device
from workbench.base.context import Context
from workbench.base.errors import EndlessRewrite, VerifyError, WorkbenchError
from workbench.base.source import Derivation, SourceLine
from workbench.base.trace import PassRecord, observe, unobserved
from workbench.check.meanings import Meanings
from workbench.execution import realize
from workbench.execution.memory_plan import (
    computed_below,
    results_of,
    value_in_memory,
    with_computed,
    without_detach,
)
from workbench.execution.realize import register_reader
from workbench.ir.functions.expand import FUNCTIONS
from workbench.ir.gradient.occurrences import without_aliases
from workbench.ir.node.ops import MOVEMENT, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import rewrite, without
from workbench.ir.rules.collapse import KERNEL_RULES
from workbench.ir.schedule.by_hand import HandChoices
from workbench.ir.schedule.plan import Decision, Schedule, ScheduleItem, drawing
from workbench.ir.schedule.schedule import RANGEIFY, base
from workbench.kernel.inputs import FromSchedule
from workbench.kernel.kernel import Kernel
from workbench.kernel.run import ScheduleRun
from workbench.pipeline import check_switches, compile_switches, switches
from workbench.search.realization import tuned
from workbench.tensor.autograd.lines import backward_passes
from workbench.tensor.tensor import Tensor
from workbench.viz.model.lines import HERE, NOBODY, FileOrigin, UserLines, Viewer
from workbench.viz.model.phases import (
    BACKWARD,
    FORWARD,
    OPTIMISER,
    WEIGHTS,
    in_order,
    keys_of_weights,
)
from workbench.viz.model.title import title_of

# --------------------------------------------------------------------------------------------------
# The expression of tensors at the time of `explore`, whatever is computed or written later.


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Expression:
    """The nodes of some tensors, their devices (None: the default), and the lines that made them.

    `computed` has the memory of the values that had been computed: a plan reads these, and computes
    all others, even if they have been computed since. `written` are the derivations of tensors
    whose memory was written.
    """

    nodes: tuple[UOp, ...]
    devices: tuple[str | None, ...]
    derivations: tuple[Derivation | None, ...]
    written: tuple[Derivation, ...]
    computed: Mapping[UOp, UOp]

    def __post_init__(self) -> None:
        register_reader(self)

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> Expression:
        """Return the present expression of tensors."""
        nodes = without_aliases([t.uop for t in tensors])
        written = (t.derivation for t in tensors if t._memory and t._memory.is_written)
        return cls(
            nodes,
            tuple([t._device for t in tensors]),
            tuple([t.derivation for t in tensors]),
            tuple([derivation for derivation in written if derivation is not None]),
            computed_below(nodes),
        )

    def buffers_read(self) -> Iterator[UOp]:
        """Return the BUFFERs that it is computed from, which must not be overwritten."""
        graph = with_computed(UOp.sink(*self.nodes), self.computed).toposort()
        return (node for node in graph if node.op is Ops.BUFFER)

    def places_by_device(self) -> dict[str, list[int]]:
        """Return the positions of the tensors by device."""
        places: dict[str, list[int]] = {}
        for place, device in enumerate(self.devices):
            places.setdefault(device or Device.DEFAULT, []).append(place)
        return places

    def node_of(self, tensor: Tensor) -> UOp:
        """Return the node of this expression that a tensor stood for; its present node if it is not
        a part of the expression."""
        graph = UOp.sink(*self.nodes).toposort()
        (node,) = without_aliases([tensor.uop])
        memory = value_in_memory(node)
        if node in graph or memory.op is not Ops.BUFFER:
            return node
        results = zip(graph, results_of(list(graph)), strict=True)
        same = [n for n, result in results if result and base(result) is memory]
        same.sort(key=lambda n: n.shape != tensor.shape)
        return same[0] if same else node


# --------------------------------------------------------------------------------------------------
# Scheduling tensors under observation.


@dataclass(slots=True)
class Planned:
    """The result of scheduling: see `Exploration`, which has the same fields. `outputs` are in the
    order of the tensors."""

    kernels: list[Kernel] = field(default_factory=list)
    items: list[ScheduleItem] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    passes: list[PassRecord] = field(default_factory=list)
    outputs: list[UOp] = field(default_factory=list)
    lines: UserLines = field(default_factory=UserLines)
    line: SourceLine | None = None
    error: Exception | None = None
    runs: list[ScheduleRun] = field(default_factory=list)
    originals: dict[UOp, UOp] = field(default_factory=dict)
    weights: set[UOp] = field(default_factory=set)
    """The values that are drawn before all else."""


def planned(
    expression: Expression,
    choices: HandChoices,
    rules_off: tuple[str, ...],
    viewer: Viewer = NOBODY,
    origin: FileOrigin = HERE,
    on: str = "",
) -> Planned:
    """Return the kernels that would compute tensors, without running them. `choices` are
    the reader's, by hand; `rules_off` names rules that are switched off; `viewer` has the
    user's calls and names; `origin` has the lines of tensors that were loaded; `on` is the device
    that the kernels are for ("": the tensors' own).

    Errors: WorkbenchError for a choice that is impossible, and a rule that does not exist.
    """
    check_switches(rules_off, switches())
    off = compile_rules(rules_off)
    passes = [*origin.gradients, *_gradients(expression)]
    plan = Planned(passes=passes, outputs=[*expression.nodes])
    keys = keys_of_weights(expression.nodes, expression.computed, viewer.names) | origin.keys
    for device, places in expression.places_by_device().items():
        group = [expression.nodes[place] for place in places]
        whole = without_detach(group)
        with Context(DEV=device), without(rules_off), observe() as watching:
            try:
                schedule, outputs = realize.planned(group, choices, expression.computed, keys)
            except Exception as error:
                if not _is_rule_error(error):
                    raise
                plan.error = error
        if plan.error is not None:
            plan.kernels, plan.items, plan.decisions = [], [], []
            plan.passes += watching.records
            plan.outputs = [*expression.nodes]
            break
        rangeified = (r.after for r in watching.records if r.name == RANGEIFY.name)
        built = next(rangeified, schedule.items)
        meanings = Meanings(watching.records, outputs, _given_rules(expression), whole)
        run = ScheduleRun(schedule.items, meanings, tuned, device, rules_off=off)
        plan.runs.append(run)
        plan.kernels += _kernels(schedule, built, outputs, off, on, run)
        plan.items += schedule.items
        first = drawing(schedule.items, keys, {base(output) for output in outputs})
        plan.weights.update(n for place in first for n in schedule.items[place].nodes)
        plan.decisions += schedule.decisions
        plan.originals |= schedule.originals
        plan.passes += watching.records
        for place, output in zip(places, outputs, strict=True):
            plan.outputs[place] = output
    _add_lines(plan, expression, viewer, origin, keys)
    plan.lines.on = on
    return plan


def compile_rules(rules_off: tuple[str, ...]) -> tuple[str, ...]:
    """Return the rules among `rules_off` that compiling a kernel uses."""
    kernel_rules = {switch.name for switch in compile_switches()}
    return tuple(name for name in rules_off if name in kernel_rules)


def _gradients(expression: Expression) -> Iterator[PassRecord]:
    """Yield the records of the backward passes that tensors come from, in their order."""
    derivations = [d for d in expression.derivations if d is not None]
    for made_by in backward_passes(derivations):
        record = made_by.record()
        if record is not None and record.matches:
            yield record


def _given_rules(expression: Expression) -> list[str]:
    """Return the names of the user's rules that made gradients of the expression."""
    derivations = [d for d in expression.derivations if d is not None]
    passes = backward_passes(derivations)
    return sorted({name for made_by in passes for name in made_by.user_rules})


def _add_lines(
    plan: Planned, expression: Expression, viewer: Viewer, origin: FileOrigin, keys: Collection[UOp]
) -> None:
    """Add the user's lines and names to a plan: results get the names of the tensors, memory the
    name of the value in it, kernels their line, modules and phases of training."""
    nodes = expression.nodes
    results = {
        base(output): viewer.names[node]
        for node, output in zip(nodes, plan.outputs, strict=True)
        if node in viewer.names
    }
    viewer = viewer._replace(names={**results, **viewer.names})
    derivations, written = expression.derivations, expression.written
    lines = UserLines(nodes, derivations, viewer, plan.passes, origin, written, keys)
    values = {
        buffer: node
        for item in plan.items
        for buffer, node in zip(item.outputs, item.nodes, strict=True)
    }
    lines.add_names({buffer: lines.names(node) for buffer, node in values.items()})
    plan.lines = lines
    own = (li for node in nodes if (li := lines.nearest(node)))
    plan.line = viewer.line or next(own, None)
    computed = [item for item in plan.items if item.kernel is not None]
    ends = {node for item in plan.items for node in item.nodes}
    by_work = [_by_work(item, ends) for item in computed]
    modules = [
        tuple(dict.fromkeys(call for node in nodes for call in lines.modules(node)))
        for nodes in by_work
    ]
    if not any(call.path for calls in modules for call in calls):
        modules = [()] * len(computed)  # no module made anything
    phases = [
        (WEIGHTS,) if plan.weights.issuperset(item.nodes) else _phases(item, ends, lines)
        for item in computed
    ]
    is_trained = any(each not in ((FORWARD,), (WEIGHTS,)) for each in phases)
    plan.kernels = [
        replace(
            kernel,
            modules=calls,
            line=_line(lines, item.nodes[0], nodes[0] if nodes else None, viewer),
            title=_with_phases(kernel.title, own),
            names=tuple([lines.name(b) for b in item.buffers]),
            phases=own if is_trained or own == (WEIGHTS,) else (),
        )
        for kernel, item, nodes, calls, own in zip(
            plan.kernels, computed, by_work, modules, phases, strict=True
        )
    ]


def _line(lines: UserLines, stored: UOp, first: UOp | None, viewer: Viewer) -> SourceLine | None:
    """Return the line of a kernel: that of the value it stores. Of a model or a function it is that
    of the `first` value by work, and the innermost line: the calls around it are the same for many
    kernels."""
    if viewer.line is None:
        return lines.nearest(stored)
    line = lines.nearest(stored if first is None else first) or lines.nearest(stored)
    return line if line is None or not line.inner else line.inner[-1]


def _phases(item: ScheduleItem, ends: set[UOp], lines: UserLines) -> tuple[str, ...]:
    """Return the phases of the values that a kernel stores. A kernel of the optimiser that also
    computes gradients is of the backward, too; values of the forward that it computes again do not
    count."""
    stored = {lines.phase(node) or FORWARD for node in item.nodes}
    if OPTIMISER in stored:
        computed = (n for n in item.computed(ends) if n.op not in _PASSED)
        if any(lines.phase(node) == BACKWARD for node in computed):
            stored.add(BACKWARD)
    return in_order(stored)


def _with_phases(title: str, phases: tuple[str, ...]) -> str:
    """Return the title of a kernel after its phases, which are left out if it is only forward."""
    return title if phases == (FORWARD,) else f"{', '.join(phases)}: {title}"


_PASSED = MOVEMENT | {Ops.CONTIGUOUS, Ops.COPY, Ops.DETACH, Ops.BITCAST}
"""Ops that compute nothing: for the modules of a kernel they count only if it has no others."""


def _by_work(item: ScheduleItem, ends: set[UOp]) -> list[UOp]:
    """Return the nodes that a kernel computes: reductions, the largest first, and then the value it
    stores, and those below it."""
    nodes = item.computed(ends)[::-1]
    nodes = [n for n in nodes if n.src]
    nodes = [n for n in nodes if n.op not in _PASSED] or nodes
    nodes.sort(key=lambda node: node.src[0].size if node.op is Ops.REDUCE_AXIS else 0, reverse=True)
    return nodes


def _kernels(
    schedule: Schedule,
    built: Sequence[ScheduleItem],
    outputs: Sequence[UOp],
    rules_off: tuple[str, ...],
    on: str,
    run: ScheduleRun,
) -> Iterator[Kernel]:
    """Yield the kernels of a schedule for the device `on`, each with its data, for which `run` runs
    the kernels before it; `built` has the items as rangeify built them."""
    shapes = {base(output): output.shape for output in outputs}
    titles: dict[tuple[UOp, UOp], str] = {}
    for number, item in enumerate(schedule.items):
        as_built = built[number].kernel
        if item.kernel is not None and as_built is not None:
            own_shapes = tuple([shapes.get(node, node.shape) for node in item.nodes])
            data = FromSchedule(run, number, on)
            graphs = item.kernel, as_built
            if graphs not in titles:
                titles[graphs] = title_of(_with_functions(*graphs))
            title, graph = titles[graphs], item.kernel
            if item.nodes[0].op is Ops.CUSTOM:
                title = f"{graph.arg.name}: {title}"
            yield Kernel(graph, graph, data, own_shapes, title=title, rules_off=rules_off)


def _is_rule_error(error: Exception) -> bool:
    """Whether an error says that a rule is wrong, not that a request is impossible."""
    of_rules = (EndlessRewrite, VerifyError)
    return isinstance(error, of_rules) or not isinstance(error, WorkbenchError)


def value_of(expression: Expression, tensor: Tensor) -> UOp:
    """Return the node of a tensor's value that scheduling decides about."""
    with unobserved():
        node = expression.node_of(tensor)
        return base(realize.planned([node], computed=expression.computed)[1][0])


def _with_functions(kernel: UOp, as_built: UOp) -> UOp:
    """Return `kernel` with its functions as ops: `as_built`, simplified."""
    if FUNCTIONS.isdisjoint([node.op for node in as_built.toposort()]):
        return kernel
    return rewrite(as_built, KERNEL_RULES)
