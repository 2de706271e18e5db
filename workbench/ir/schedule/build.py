"""Kernels from a plan: one for each stored value or group of them, with ranges named in order."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import count

from workbench.base.errors import WorkbenchError, plural
from workbench.base.trace import Match, PassStep, Repeats, derived_from, tentative
from workbench.ir.nest.loops import kinds
from workbench.ir.node import construct
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import KernelInfo, UOp
from workbench.ir.rewriting.rewrite import advice, applied, require_on
from workbench.ir.schedule.decide import devices_of, outputs_of
from workbench.ir.schedule.plan import ScheduleItem, SchedulePlan, base
from workbench.ir.schedule.rangeify import RANGEIFY_RULES, Loops, opened, using
from workbench.ir.verify.tensor import custom_kernel

_uids = count()
OPEN_LOOPS = PassStep(
    "open-loops", "Each value that is stored gets a range for every axis, and a STORE."
)
NAME_AXES = PassStep(
    "name-axes",
    "Its reads resolved, a STORE, or several together, are a kernel: memory has slots, and ranges"
    " their names.",
)


def buffer(node: UOp, device: str) -> UOp:
    """Return a new BUFFER that holds a value like `node` on `device`."""
    return construct.buffer(node.dtype, next(_uids), device, node.shape)


def build(
    plan: SchedulePlan, device: str, matches: list[Match] | None = None
) -> tuple[tuple[ScheduleItem, ...], dict[UOp, UOp]]:
    """Return the items in execution order and the BUFFER of each stored value; the matches of the
    rules are added to `matches`.

    A value is on the device of its data; `device` is for values without data.
    """
    devices = devices_of(plan.nodes)
    buffers: dict[UOp, UOp] = {}
    for node in plan.stored:
        with derived_from(node):
            buffers[node] = buffer(node, devices[node] or device)
    stores = _stores(plan, buffers, matches)
    items: list[ScheduleItem] = []
    complete: set[UOp] = set()
    equal: EqualKernels = Repeats()
    for node in plan.nodes:
        if node not in plan.stored or not node.size:
            continue  # there is nothing to compute, and no kernel reads it
        if node.op is Ops.COPY:
            items.append(_copy(node, plan, buffers))
        elif node.op is Ops.CUSTOM:
            if node.output == len(node.output_shapes) - 1:
                items.append(_custom(node, plan, buffers))
        else:
            complete.add(node)
            members = plan.members(node)
            if complete.issuperset(members):
                own = [stores[m] for m in members]
                item = _item(members, plan, own, equal, matches)
                items.append(item)
    items = in_order(items) if plan.groups else items
    return tuple(items), buffers


def _stores(
    plan: SchedulePlan, buffers: Mapping[UOp, UOp], matches: list[Match] | None
) -> dict[UOp, UOp]:
    """Return the STORE of each value that a kernel stores, all reads resolved."""
    separate = (Ops.COPY, Ops.CUSTOM)
    kernels = dict.fromkeys(
        plan.members(n) for n in plan.nodes if n in plan.stored and n.size and n.op not in separate
    )
    if not kernels:
        return {}
    require_on("build a kernel", (OPEN_LOOPS, NAME_AXES))
    loops: Loops = {}
    first = [opened(plan, members, buffers, loops) for members in kernels]
    state = UOp.sink(*map(_kernel_root, first))
    if matches is not None:
        count = sum(map(len, first))
        step = OPEN_LOOPS.at(plural(count, "stored value"))
        matches.append(Match(step, UOp.sink(*plan.stored), state))
    with using(loops):
        kernels_after = applied(state, RANGEIFY_RULES, "rangeify", matches)
    stores: dict[UOp, UOp] = {}
    for members, kernel in zip(kernels, kernels_after.src, strict=True):
        own = (kernel,) if len(members) == 1 else kernel.src
        stores.update(zip(members, own, strict=True))
    return stores


def _kernel_root(stores: Sequence[UOp]) -> UOp:
    """Return the STORE of a kernel, or a SINK of several."""
    return UOp.sink(*stores) if len(stores) > 1 else stores[0]


def in_order(items: Sequence[ScheduleItem]) -> list[ScheduleItem]:
    """Return items, each after the items whose results it reads, and in their old order where that
    allows it."""
    writer = {output: item for item in items for output in item.outputs}
    ordered: dict[int, ScheduleItem] = {}
    stack = list(reversed(items))
    while stack:
        item = stack[-1]
        first = [w for b in item.inputs if (w := writer.get(b)) and id(w) not in ordered]
        if first:
            stack += reversed(first)
            continue
        ordered.setdefault(id(item), stack.pop())
    return list(ordered.values())


def _copy(node: UOp, plan: SchedulePlan, buffers: Mapping[UOp, UOp]) -> ScheduleItem:
    source = buffers.get(node.src[0], node.src[0])
    return ScheduleItem(None, (buffers[node], source), (node,), (plan.stored[node],))


def _custom(node: UOp, plan: SchedulePlan, buffers: Mapping[UOp, UOp]) -> ScheduleItem:
    """Return the item of a kernel that a user wrote."""
    outputs = outputs_of(node)
    read = [buffers.get(base(source), base(source)) for source in node.src]
    with tentative(node) as part:
        part.after = kernel = custom_kernel(node.kernel_text)
    return ScheduleItem(
        kernel,
        (*[buffers[output] for output in outputs], *read),
        outputs,
        tuple([plan.stored[output] for output in outputs]),
    )


def _item(
    members: Sequence[UOp],
    plan: SchedulePlan,
    stores: Sequence[UOp],
    equal: EqualKernels,
    matches: list[Match] | None,
) -> ScheduleItem:
    """Return the item of the kernel that stores `members`."""
    loops = plan.reads[members[0]][0].loops
    with tentative(members[0]) as part:
        key, nodes = structure_of(stores, loops)
        kernel, places = equal.value(key, nodes, lambda: _placed(kernel_of(stores, loops), nodes))
        params = tuple([nodes[place] for place in places])
        if members[0].op is Ops.CONTIGUOUS:  # its kernel has no other outputs
            kernel = kernel.replace(arg=kernel.arg._replace(opts=members[0].arg))
        part.after = kernel
    if matches is not None:
        about = f"axes {' '.join(kernel.arg.order)}"
        matches.append(Match(NAME_AXES.at(about), _kernel_root(stores), kernel))
    decisions = tuple([plan.stored[node] for node in members])
    return ScheduleItem(kernel, params, tuple(members), decisions)


EqualKernels = Repeats[tuple[UOp, tuple[int, ...]]]
"""Kernels by structure, each with the places of its buffers among the nodes of the structure."""


def structure_of(stores: Sequence[UOp], outer: tuple[UOp, ...]) -> tuple[Hashable, Sequence[UOp]]:
    """Return (key, nodes) of STOREs in the loops `outer`, before they are a kernel. Those with
    equal keys are equal but for their BUFFERs, the names of ranges and of staged rows, which a
    kernel numbers anew; their nodes correspond one by one."""
    nodes = list(UOp.sink(*stores).toposort())
    place = {node: n for n, node in enumerate(nodes)}
    rows: list[Hashable] = []
    for node in nodes:
        own: Hashable = (node.arg, node.arg.__class__)
        if node.op is Ops.RANGE:
            own = node.axis_kind
        elif node.op is Ops.BUFFER:
            own = node.size
        elif node.op is Ops.STAGE:
            own = node.memory_shape
        elif not node.src:  # one object per value: -0.0 is not 0.0
            own = node
        rows.append((node.op, node.dtype, own, *[place[s] for s in node.src]))
    loops = [place.get(axis, (axis.extent, axis.axis_kind)) for axis in outer]
    return (*rows, *loops), nodes


def _placed(
    built: tuple[UOp, tuple[UOp, ...]], nodes: Sequence[UOp]
) -> tuple[UOp, tuple[int, ...]]:
    kernel, buffers = built
    return kernel, tuple([nodes.index(buffer) for buffer in buffers])


def kernel_of(stores: Sequence[UOp], outer: tuple[UOp, ...]) -> tuple[UOp, tuple[UOp, ...]]:
    """Return (SINK, buffers by slot) of STOREs in the loops `outer`: buffers become PARAMs,
    ranges get their final names. Errors: WorkbenchError for a read that no rule has replaced."""
    targets = [store.place.memory for store in stores]
    nodes = UOp.sink(*stores).toposort()
    left = next(filter(construct.is_read, nodes), None)
    if left is not None:
        because = f"no rule says what a read of {left.src[0].op.name} is"
        raise WorkbenchError("cannot build a kernel", because, advice())
    inner = [n for n in nodes if n.op is Ops.RANGE and n not in outer]
    read = [n for n in nodes if n.op is Ops.BUFFER and n not in targets]
    params = [*targets, *read]
    changes = {b: construct.param(b.dtype, slot, b.size) for slot, b in enumerate(params)}
    order = [*outer, *_nested_last(inner, nodes)]
    ends = [construct.end(store, outer) for store in _readers_first(stores)]
    ends = [end.substitute(changes) for end in ends]
    draft = UOp.sink(*ends, arg=KernelInfo("", tuple(r.axis_name for r in order)))
    return named(kinds(draft)), tuple(params)


def _readers_first(stores: Sequence[UOp]) -> Sequence[UOp]:
    """Return STOREs, sources first, in execution order. A value that is computed from another one
    is stored first: it reads all operands of the other, which may be stored over one of them (see
    `in_place.py`)."""
    for place, store in enumerate(stores[1:], 1):
        below = store.toposort()
        if any(source.value in below for source in stores[:place]):
            return stores[::-1]
    return stores


def _nested_last(inner: list[UOp], nodes: dict[UOp, None]) -> list[UOp]:
    """Order the ranges of reductions: the ranges of an inner reduction after those around it."""
    depth = dict.fromkeys(inner, 0)
    for node in reversed(nodes):
        if node.op is Ops.REDUCE:
            below = max(depth[r] for r in node.src[1:]) + 1
            for reduce in node.src[0].toposort():
                if reduce.op is Ops.REDUCE and reduce.src[0].ranges & set(node.src[1:]):
                    for r in reduce.src[1:]:
                        depth[r] = max(depth[r], below)
    return sorted(inner, key=lambda r: depth[r])


def named(draft: UOp) -> UOp:
    """Number the axes of each kind in loop order, and name the kernel after its sizes: equal
    kernels become one object."""
    ranges = {n.axis_name: n for n in draft.toposort() if n.op is Ops.RANGE}
    numbers = {kind: count() for kind in AxisType}
    changes = {}
    for old in draft.arg.order:
        kind = ranges[old].axis_kind
        name = f"{kind.letter}{next(numbers[kind])}"
        changes[ranges[old]] = UOp.range(ranges[old].extent, name, kind)
    order = tuple(changes[ranges[old]].axis_name for old in draft.arg.order)
    sizes = [str(ranges[old].extent) for old in draft.arg.order]
    reduces = any(n.op is Ops.REDUCE for n in draft.toposort())
    title = "_".join(["r" if reduces else "e", *sizes])
    return _rows_named(draft.substitute(changes)).replace(
        arg=draft.arg._replace(name=title, order=order)
    )


def _rows_named(kernel: UOp) -> UOp:
    """Number the staged rows in the order in which they are filled."""
    changes: dict[UOp, UOp] = {}
    for number, row in enumerate(n for n in kernel.toposort() if n.op is Ops.STAGE):
        value, *fills = [s.substitute(changes) for s in row.src]
        changes[row] = construct.stage(value, fills, f"row{number}", row.memory_shape)
    return kernel.substitute(changes)
