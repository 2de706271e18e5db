"""From a plan to kernels: each stored value becomes one, or several of them together, with the
ranges named in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

from workbench.base.trace import derived_from, note_steps, tentative
from workbench.ir.nest.loops import kinds
from workbench.ir.node import construct
from workbench.ir.node.axis import AxisType
from workbench.ir.node.constants import identity
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp, gated
from workbench.ir.schedule.access import TRUE, ZERO, Access, condition, flatten
from workbench.ir.schedule.decide import devices_of, outputs_of
from workbench.ir.schedule.item import ScheduleItem, base
from workbench.ir.schedule.plan import SchedulePlan
from workbench.ir.schedule.range_steps import Values, range_steps
from workbench.ir.schedule.staging import read, stage
from workbench.ir.verify.custom import custom_kernel

_uids = count()


def buffer(node: UOp, device: str) -> UOp:
    """Return a new BUFFER that holds a value like `node` on `device`."""
    return construct.buffer(node.dtype, next(_uids), device, node.shape)


def build(
    plan: SchedulePlan, device: str
) -> tuple[tuple[ScheduleItem, ...], dict[UOp, UOp]]:
    """Return the items in execution order and the BUFFER of each stored value.

    A value is on the device of its data; `device` is for values without data.
    """
    devices = devices_of(plan.nodes)
    values: Values = {}
    buffers: dict[UOp, UOp] = {}
    stores: dict[UOp, UOp] = {}
    items: list[ScheduleItem] = []
    rows = count()
    for node in plan.nodes:
        if node in plan.stored:
            with derived_from(node):
                buffers[node] = buffer(node, devices[node] or device)
        if not node.size:  # there is nothing to compute, and no kernel reads it
            continue
        if node.op is Ops.COPY:
            items.append(_copy(node, plan, buffers))
            continue
        if node.op is Ops.CUSTOM:
            if node.output == len(node.output_shapes) - 1:
                items.append(_custom(node, plan, buffers))
            continue
        if node.op is not Ops.CONST or node in plan.stored:
            _add_values(node, plan, values, buffers, rows)
        if node not in plan.stored:
            continue
        stores[node] = _store(node, plan, values, buffers)
        members = plan.members(node)
        if stores.keys() >= set(members):
            items.append(_item(members, plan, stores))
    items = in_order(items) if plan.groups else items
    note_steps(lambda: range_steps(plan, values, buffers, stores, items))
    return tuple(items), buffers


def in_order(items: Sequence[ScheduleItem]) -> list[ScheduleItem]:
    """Return items so that each comes after those whose results it reads, in their order where that
    is free."""
    writer = {output: item for item in items for output in item.outputs}
    ordered: dict[int, ScheduleItem] = {}
    stack = list(reversed(items))
    while stack:
        item = stack[-1]
        first = [
            w for b in item.inputs if (w := writer.get(b)) and id(w) not in ordered
        ]
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


def _add_values(
    node: UOp,
    plan: SchedulePlan,
    values: Values,
    buffers: Mapping[UOp, UOp],
    rows: Iterator[int],
) -> None:
    """Add what each read of `node` is in its kernel."""
    with derived_from(node):
        for access in plan.reads[node]:
            value = _value(node, access, plan, values, buffers)
            if node in plan.staged:
                value = stage(node, plan.staged[node], value, f"_{next(rows)}")
            values[node, access] = value


def _value(
    node: UOp,
    access: Access,
    plan: SchedulePlan,
    values: Values,
    buffers: Mapping[UOp, UOp],
) -> UOp:
    """Return the kernel-level value of `node` read by `access`."""
    if node.op is Ops.BUFFER:
        return _load(node, node, access)
    if node.op is Ops.CONST:
        return node
    if node.op is Ops.IOTA:
        return access.indices[0].cast(node.dtype)
    sources = []
    for source, at in zip(node.src, plan.links[node, access], strict=True):
        if at is None:
            sources.append(source)
        elif plan.is_inside(source, access):
            sources.append(values[source, plan.reads[source][0]])
        elif source in buffers:
            with derived_from(node, buffers[source]):
                sources.append(_load(buffers[source], source, at))
        elif source in plan.staged:
            row = plan.staged[source]
            with derived_from(node, values[source, row.fill]):
                sources.append(read(values[source, row.fill], row, at))
        else:
            sources.append(values[source, at])
    if node.op is Ops.REDUCE_AXIS:
        if not node.src[0].size:  # there are no elements to combine
            return identity(node.combines, node.dtype)
        below = plan.links[node, access][0]
        assert below is not None
        return _reduce(node, access, below, sources[0])
    if node.op is Ops.PAD:
        if not node.src[0].size:
            return node.like(0)
        valid = condition(node, access)
        return sources[0] if valid is TRUE else valid.where(sources[0], node.like(0))
    if node.is_elementwise:
        return UOp(node.op, node.dtype, tuple(sources), node.arg)
    return sources[0]


def _load(target: UOp, source: UOp, access: Access) -> UOp:
    index = gated(flatten(access.indices, source.shape), access.valid)
    return construct.load(construct.index(target, index))


def _reduce(node: UOp, access: Access, below: Access, value: UOp) -> UOp:
    indices = [below.indices[a] for a in sorted(node.reduced_axes)]
    ranges = [index for index in indices if index is not ZERO]
    return construct.reduce(value, ranges, node.combines)


def _store(
    node: UOp, plan: SchedulePlan, values: Values, buffers: Mapping[UOp, UOp]
) -> UOp:
    """Return the STORE of a value in its memory."""
    access = plan.reads[node][0]
    with derived_from(node):
        at = flatten(access.indices, node.shape)
        return construct.store(construct.index(buffers[node], at), values[node, access])


def _item(
    members: Sequence[UOp], plan: SchedulePlan, stores: Mapping[UOp, UOp]
) -> ScheduleItem:
    """Return the item of the kernel that stores `members`."""
    loops = plan.reads[members[0]][0].loops
    with tentative(members[0]) as part:
        kernel, params = _kernel([stores[node] for node in members], loops)
        if members[0].op is Ops.CONTIGUOUS:  # it is alone
            kernel = kernel.replace(arg=kernel.arg._replace(opts=members[0].arg))
        part.after = kernel
    decisions = tuple([plan.stored[node] for node in members])
    return ScheduleItem(kernel, params, tuple(members), decisions)


def _kernel(
    stores: Sequence[UOp], outer: tuple[UOp, ...]
) -> tuple[UOp, tuple[UOp, ...]]:
    """Return (SINK, buffers by slot) of STOREs in the loops `outer`: buffers become PARAMs,
    ranges get their final names."""
    targets = [store.place.memory for store in stores]
    nodes = UOp.sink(*stores).toposort()
    inner = [n for n in nodes if n.op is Ops.RANGE and n not in outer]
    read = [n for n in nodes if n.op is Ops.BUFFER and n not in targets]
    params = [*targets, *read]
    changes = {
        b: construct.param(b.dtype, slot, b.size) for slot, b in enumerate(params)
    }
    order = [*outer, *_nested_last(inner, nodes)]
    ends = [construct.end(store, outer) for store in _readers_first(stores)]
    ends = [end.substitute(changes) for end in ends]
    draft = UOp.sink(*ends, arg=KernelInfo("", tuple(r.axis_name for r in order)))
    return named(kinds(draft)), tuple(params)


def _readers_first(stores: Sequence[UOp]) -> Sequence[UOp]:
    """Return STOREs, sources first, in the order in which they are made: one whose value is
    computed from another's comes before it. It reads all that this one does, whose memory may be
    that of an operand (see `in_place/reads.py`)."""
    for place, store in enumerate(stores[1:], 1):
        below = store.toposort()
        if any(source.value in below for source in stores[:place]):
            return stores[::-1]
    return stores


def _nested_last(inner: list[UOp], nodes: dict[UOp, None]) -> list[UOp]:
    """Order reduce ranges so that a reduction inside another's value comes after it."""
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
