"""Scheduling: from tensor expressions to kernels in execution order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from workbench.base.trace import Match
from workbench.ir.functions.expand import EXPAND_FUNCTIONS, FUNCTIONS
from workbench.ir.nest.loops import kinds
from workbench.ir.node import construct
from workbench.ir.node.constants import is_known
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.passes import Pass
from workbench.ir.rules.collapse import SIMPLIFY_KERNEL
from workbench.ir.rules.index import SIMPLIFY_INDEX
from workbench.ir.rules.movement import TENSOR_RULES
from workbench.ir.schedule.access import ranges_from_0
from workbench.ir.schedule.build import build, named
from workbench.ir.schedule.decide import NOTHING_FORCED, decide
from workbench.ir.schedule.item import Schedule, ScheduleItem
from workbench.ir.schedule.item import base as base
from workbench.ir.schedule.merge import merge_axes
from workbench.ir.schedule.rangeify import RANGEIFY_RULES
from workbench.ir.schedule.split import SPLIT_RULES

SIMPLIFY_TENSOR = Pass(
    "simplify-tensor", "Constants are folded and movement that moves nothing is gone.", TENSOR_RULES
)
SPLIT_REDUCTIONS = Pass(
    "split-reductions",
    "Large reductions to few values have a first stage that cores can share.",
    SPLIT_RULES,
)
DECIDE = Pass("decide", "Every value is stored or fused, for a reason.", decide)
RANGEIFY = Pass(
    "rangeify", "Stored values are kernels over ranges; movement is gone.", build, RANGEIFY_RULES
)
MERGE_AXES = Pass(
    "merge-axes", "Neighbouring loops that walk every buffer as one are one loop.", merge_axes
)


def schedule(
    outputs: Sequence[UOp], device: str, forced: Mapping[UOp, bool] = NOTHING_FORCED
) -> tuple[Schedule, tuple[UOp, ...]]:
    """Return the schedule of `outputs` on `device`, and the outputs as simplified.

    An output that is a constant under movement ops, a BUFFER or a RESHAPE of one needs no kernel.
    `forced` stores (True) or fuses (False) simplified values.
    Errors: WorkbenchError where that is impossible.
    """
    simple = SPLIT_REDUCTIONS(SIMPLIFY_TENSOR(UOp.sink(*outputs))).src
    roots = list(dict.fromkeys(b for b in map(base, simple) if needs_kernel(b)))
    with DECIDE.recording(UOp.sink(*roots)) as r:
        with SIMPLIFY_INDEX.merged(), ranges_from_0():
            plan = decide(roots, forced)
        decisions = tuple(plan.decisions)
        r.after = plan
        if r.matches is not None:
            r.matches += [Match(d, d.node, d.node) for d in decisions]
    with RANGEIFY.recording(UOp.sink(*plan.stored)) as r:
        with SIMPLIFY_INDEX.merged():
            items, buffers = build(plan, device, r.matches)
        r.after = items
    has_functions = not FUNCTIONS.isdisjoint([node.op for node in plan.nodes])
    final = tuple([simplified(item, has_functions) for item in items])
    return Schedule(final, buffers, decisions), simple


def needs_kernel(node: UOp) -> bool:
    """Whether a value has to be computed: it is neither in memory already nor a known constant."""
    return node.op is not Ops.BUFFER and not is_known(node)


def simplified(item: ScheduleItem, has_functions: bool = False) -> ScheduleItem:
    """Return an item whose kernel is in its simplest form: axes named and merged, the buffers that
    it does not read gone. `has_functions`: functions are expanded before."""
    if item.kernel is None:
        return item
    kernel = EXPAND_FUNCTIONS(item.kernel) if has_functions else item.kernel
    kernel = kinds(SIMPLIFY_KERNEL(kernel))
    if item.nodes[0].op is Ops.CUSTOM:  # its name and its loops are the user's
        return _compacted(replace(item, kernel=kernel))
    if kernel.arg.order != item.kernel.arg.order:
        kernel = named(
            kernel
        )  # a removed axis leaves its name free; renaming makes equal kernels one object
    item = _compacted(replace(item, kernel=kernel))
    return replace(item, kernel=MERGE_AXES(item.kernel))


def _compacted(item: ScheduleItem) -> ScheduleItem:
    """Drop the buffers that a simplified kernel no longer reads, and number its PARAMs anew."""
    assert item.kernel is not None
    params = [n for n in item.kernel.toposort() if n.op is Ops.PARAM]
    if len(params) == len(item.buffers):
        return item
    params.sort(key=lambda n: n.slot)
    changes = {p: construct.param(p.dtype, slot, p.length) for slot, p in enumerate(params)}
    buffers = tuple(item.buffers[p.slot] for p in params)
    return replace(item, kernel=item.kernel.substitute(changes), buffers=buffers)
