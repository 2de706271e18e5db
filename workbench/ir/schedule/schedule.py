"""Scheduling: from tensor expressions to kernels in execution order, with large reductions split
and axes merged.

Sections: Merging axes; Splitting large reductions to few values; Scheduling.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from workbench.base.garbage import fewer_collections
from workbench.base.trace import Match, PassStep, Repeats, note_steps, tentative
from workbench.ir.functions.expand import EXPAND_FUNCTIONS, FUNCTIONS
from workbench.ir.nest.loops import kinds
from workbench.ir.node import construct
from workbench.ir.node.construct import is_known
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.passes import Pass
from workbench.ir.rewriting.patterns import op, var
from workbench.ir.rewriting.rewrite import Rule, RuleSet, is_off
from workbench.ir.rules.collapse import SIMPLIFY_KERNEL
from workbench.ir.rules.index import SIMPLIFY_AXES, SIMPLIFY_INDEX
from workbench.ir.rules.movement import TENSOR_RULES
from workbench.ir.schedule.build import NAME_AXES, OPEN_LOOPS, build, named
from workbench.ir.schedule.by_hand import (
    CHOOSE,
    NOTHING_BY_HAND,
    ChosenGraph,
    HandChoices,
    chosen_graph,
    reordered,
)
from workbench.ir.schedule.cost import FEW_RESULTS, SPLIT_WORK
from workbench.ir.schedule.decide import decide
from workbench.ir.schedule.plan import Schedule, ScheduleItem, drawing
from workbench.ir.schedule.plan import base as base
from workbench.ir.schedule.rangeify import RANGEIFY_RULES

# --------------------------------------------------------------------------------------------------
# Merging axes: two neighbouring loops become one where a single loop can walk every buffer.
#
# An elementwise kernel over (3, 4, 5) contiguous elements is a loop over 60. A merge is tried by
# substitution (m // n for the outer axis, m % n for the inner), and kept if simplification leaves
# no more divisions than before. Source of the idea: axis coalescing (ISL, TVM's fuse).

MERGE_LOOPS = PassStep(
    "merge-loops", "Two neighbouring loops that walk every buffer as one are one loop."
)


def merge_axes(kernel: UOp) -> UOp:
    """Return `kernel` with every pair of axes merged that one loop can walk; none while the step
    `MERGE_LOOPS` is off."""
    merges: list[tuple[UOp, UOp, UOp, UOp]] = []
    changed = not is_off(MERGE_LOOPS)
    while changed:
        changed = False
        axes = {n.axis_name: n for n in kernel.toposort() if n.op is Ops.RANGE}
        order = [axes[name] for name in kernel.arg.order]
        for outer, inner in zip(order, order[1:], strict=False):
            merged = _merged(kernel, outer, inner)
            if merged is not None:
                merges.append((outer, inner, kernel, merged))
                kernel, changed = merged, True
                break
    if merges:
        note_steps(lambda: [_step(*merge) for merge in merges])
    return kernel


def _step(outer: UOp, inner: UOp, before: UOp, after: UOp) -> Match:
    names, sizes = zip(*[(a.axis_name, a.extent) for a in (outer, inner)], strict=True)
    about = f"{' and '.join(names)}: {sizes[0]} times {sizes[1]} is {sizes[0] * sizes[1]}"
    return Match(MERGE_LOOPS.at(about), before, after)


def _merged(kernel: UOp, outer: UOp, inner: UOp) -> UOp | None:
    if outer.axis_kind is not inner.axis_kind or not _closed_together(kernel, outer, inner):
        return None
    size = inner.extent
    both = UOp.range(outer.extent * size, outer.axis_name, outer.axis_kind)
    order = [name for name in kernel.arg.order if name != inner.axis_name]
    with tentative(kernel) as part:
        tried = kernel.substitute({outer: both // size, inner: both % size})
        tried = construct.in_order(tried, order)
        simple = SIMPLIFY_AXES(tried)
        if _divisions(simple) > _divisions(kernel):
            return None
        part.after = simple
    return named(kinds(simple))


def _closed_together(kernel: UOp, outer: UOp, inner: UOp) -> bool:
    """Whether every list of ranges that has one of the two has both."""
    for node in kernel.toposort():
        if node.op in (Ops.REDUCE, Ops.END) and (outer in node.src) != (inner in node.src):
            return False
    return True


def _divisions(kernel: UOp) -> int:
    return sum(n.op in (Ops.IDIV, Ops.MOD) for n in kernel.toposort())


# --------------------------------------------------------------------------------------------------
# Splitting large reductions to few values: partial reductions, then a reduction of their results.
#
# A sum of a million numbers to one has no output axis: cores cannot share it, and it cannot be
# stopped half way. As 256 partial sums and a small sum of those it allows both, and rounds less:
# errors grow with the length of a chain. Source of the idea: the two-stage reductions of GPUs.

PARTS = 256
"""Most partial results per result."""
FEWEST_PARTS = 16
"""Fewest partial results per result: fewer would not occupy the cores of a large machine."""


def is_large(n: UOp, x: UOp) -> bool:
    """Whether the reduction is long enough, and its results few enough, to share the work out."""
    return x.size >= SPLIT_WORK and 0 < n.size <= FEW_RESULTS


def split(n: UOp, x: UOp) -> UOp | None:
    """A large reduction is a reduction of partial ones, each over a stretch of one axis."""
    axes = n.reduced_axes
    for axis in sorted(axes):
        parts = _divisor(x.shape[axis])
        if parts:
            break
    else:
        return None
    shape = (*x.shape[:axis], parts, x.shape[axis] // parts, *x.shape[axis + 1 :])
    stretches = UOp(Ops.RESHAPE, x.dtype, (x,), shape)
    inner = tuple(a + (a >= axis) for a in sorted(axes))
    partial = construct.reduce_axis(stretches, inner, n.combines)
    ones = tuple(1 if a in axes and a != axis else s for a, s in enumerate(x.shape))
    rows = (*ones[:axis], parts, *ones[axis + 1 :])
    row = UOp(Ops.RESHAPE, x.dtype, (partial,), rows)
    return construct.reduce_axis(row, (axis,), n.combines)


def _divisor(size: int) -> int:
    """Return the largest divisor of `size` between FEWEST_PARTS and PARTS, or 0."""
    return next((d for d in range(PARTS, FEWEST_PARTS - 1, -1) if size % d == 0), 0)


SPLIT_RULES = RuleSet(
    "split-reductions",
    [Rule("split-reduction", op(Ops.REDUCE_AXIS, var("x"), name="n"), split, where=is_large)],
)


# --------------------------------------------------------------------------------------------------
# Scheduling.

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
    "rangeify",
    "Stored values are kernels over ranges; movement is gone.",
    build,
    RANGEIFY_RULES,
    steps=(OPEN_LOOPS, NAME_AXES),
)
MERGE_AXES = Pass(
    "merge-axes",
    "Neighbouring loops that walk every buffer as one are one loop.",
    merge_axes,
    steps=(MERGE_LOOPS,),
)


def schedule(
    outputs: Sequence[UOp],
    device: str,
    choices: HandChoices = NOTHING_BY_HAND,
    keys: Collection[UOp] = (),
) -> tuple[Schedule, tuple[UOp, ...]]:
    """Return the schedule of `outputs` on `device`, and the simplified outputs.

    An output that is a constant under movement ops, a BUFFER or a RESHAPE of one needs no kernel.
    `choices` are a user's, about simplified values. Random numbers of `keys` are drawn before all
    else. Errors: WorkbenchError for a choice that is impossible.
    """
    with fewer_collections():
        return _scheduled(outputs, device, choices, keys)


def _scheduled(
    outputs: Sequence[UOp], device: str, choices: HandChoices, keys: Collection[UOp]
) -> tuple[Schedule, tuple[UOp, ...]]:
    chosen = _chosen(SPLIT_REDUCTIONS(SIMPLIFY_TENSOR(UOp.sink(*outputs))), choices)
    simple, forced = chosen.roots, chosen.stored(choices)
    roots = list(dict.fromkeys(b for b in map(base, simple) if needs_kernel(b)))
    with DECIDE.recording(UOp.sink(*roots)) as r:
        with SIMPLIFY_INDEX.merged():
            plan = decide(roots, forced, chosen.reasons)
        decisions = tuple(plan.decisions)
        r.after = plan
        if r.matches is not None:
            r.matches += [Match(d, d.node, d.node) for d in decisions]
    with RANGEIFY.recording(UOp.sink(*plan.stored)) as r:
        with SIMPLIFY_INDEX.merged():
            built, buffers = build(plan, device, r.matches)
        first = drawing(built, keys, roots)
        places = sorted(range(len(built)), key=lambda place: place not in first)
        in_order = [built[place] for place in places]
        items = reordered(in_order, chosen.of_values(choices.before), plan.nodes)
        r.after = items
    has_functions = not FUNCTIONS.isdisjoint([node.op for node in plan.nodes])
    equal: SimplestKernels = Repeats()
    final = tuple([simplified(item, has_functions, equal) for item in items])
    return Schedule(final, buffers, decisions, chosen.originals), simple


def _chosen(root: UOp, choices: HandChoices) -> ChosenGraph:
    """Return the graph with the choices that change it, in a pass that is recorded if any do."""
    if not choices.of_graph:
        return ChosenGraph(root.src, {})
    with CHOOSE.recording(root) as r:
        chosen = chosen_graph(root, choices, r.matches)
        r.after = UOp.sink(*chosen.roots)
    return chosen


def needs_kernel(node: UOp) -> bool:
    """Whether a value has to be computed: it is neither in memory already nor a known constant."""
    return node.op is not Ops.BUFFER and not is_known(node)


SimplestKernels = Repeats[tuple[UOp, tuple[int, ...]]]
"""Kernels in their simplest form, by the kernel before, each with the slots that it still reads."""


def simplified(
    item: ScheduleItem, has_functions: bool = False, equal: SimplestKernels | None = None
) -> ScheduleItem:
    """Return an item whose kernel is in its simplest form: axes named and merged, the buffers that
    it does not read gone. `has_functions`: functions are expanded before. `equal` has the kernels
    that were simplified before."""
    kernel = item.kernel
    if kernel is None:
        return item
    is_users = item.is_users
    simplest, slots = (equal or Repeats()).value(
        (kernel, is_users), (), lambda: _simplest(kernel, has_functions, is_users)
    )
    return replace(item, kernel=simplest, buffers=tuple([item.buffers[slot] for slot in slots]))


def _simplest(kernel: UOp, has_functions: bool, is_users: bool) -> tuple[UOp, tuple[int, ...]]:
    order = kernel.arg.order
    if has_functions:
        kernel = EXPAND_FUNCTIONS(kernel)
    kernel = kinds(SIMPLIFY_KERNEL(kernel))
    if is_users:  # its name and its loops are the user's
        return _compacted(kernel)
    if kernel.arg.order != order:
        # A removed axis leaves its name free: with new names, equal kernels are one object.
        kernel = named(kernel)
    kernel, slots = _compacted(kernel)
    return MERGE_AXES(kernel), slots


def _compacted(kernel: UOp) -> tuple[UOp, tuple[int, ...]]:
    """Return a simplified kernel with its PARAMs numbered anew, and the slots that they had: it no
    longer reads the others."""
    params = [n for n in kernel.toposort() if n.op is Ops.PARAM]
    params.sort(key=lambda n: n.slot)
    changes = {p: construct.param(p.dtype, slot, p.length) for slot, p in enumerate(params)}
    return kernel.substitute(changes), tuple([p.slot for p in params])
