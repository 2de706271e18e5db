"""Kernels from a plan: one for each stored value or group of them, with ranges named in order."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count

from workbench.base.errors import WorkbenchError, plural
from workbench.base.trace import Match, PassStep, Repeats, derived_from, note_steps, tentative
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
    rules are added to `matches`, those in equal kernels once; they are listed in full when the
    steps of the pass are read.

    A value is on the device of its data; `device` is for values without data.
    """
    devices = devices_of(plan.nodes)
    buffers: dict[UOp, UOp] = {}
    for node in plan.stored:
        with derived_from(node):
            buffers[node] = buffer(node, devices[node] or device)
    kernels = _kernels(plan, buffers, matches)
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
                items.append(_item(kernels[members], plan, equal))
    if matches is not None and kernels:
        opening = matches[0]
        note_steps(lambda: _steps(opening, list(kernels.values())))
    items = in_order(items) if plan.groups else items
    return tuple(items), buffers


@dataclass(slots=True, eq=False)
class _Kernel:
    """A kernel while it is built: the values that it stores (`members`), its STOREs (`before` and
    `after` all reads are resolved), its outer `loops`, its structure, and its `result`.

    It may be `like` an earlier kernel: then it has no `matches` of its own, and the STOREs after
    only if they are observed."""

    members: tuple[UOp, ...]
    before: tuple[UOp, ...]
    loops: tuple[UOp, ...]
    key: Hashable
    nodes: Sequence[UOp]
    like: _Kernel | None = None
    after: tuple[UOp, ...] = ()
    matches: Sequence[Match] = ()
    result: UOp = field(init=False)

    @property
    def nodes_after(self) -> list[UOp]:
        """The nodes of the STOREs after, in an order that equal kernels share."""
        return list(UOp.sink(*self.after).toposort()) if self.after else []

    @property
    def resolved(self) -> _Kernel:
        """This kernel, or the equal one whose reads are resolved. Groups are complete in another
        order than that in which they begin, so an equal kernel may come before the first."""
        return self if self.like is None or self.after else self.like

    def as_in(self, other: _Kernel) -> dict[UOp, UOp]:
        """Return the nodes of this kernel by those of an equal one."""
        return dict(zip(other.nodes, self.nodes, strict=True))


def _kernels(
    plan: SchedulePlan, buffers: Mapping[UOp, UOp], matches: list[Match] | None
) -> dict[tuple[UOp, ...], _Kernel]:
    """Return the kernels by the values that they store, all reads resolved."""
    separate = (Ops.COPY, Ops.CUSTOM)
    kernels = dict.fromkeys(
        plan.members(n) for n in plan.nodes if n in plan.stored and n.size and n.op not in separate
    )
    if not kernels:
        return {}
    require_on("build a kernel", (OPEN_LOOPS, NAME_AXES))
    loops: Loops = {}
    result: dict[tuple[UOp, ...], _Kernel] = {}
    for members in kernels:
        stores, own = opened(plan, members, buffers, loops)
        outer = plan.reads[members[0]][0].loops
        result[members] = _Kernel(members, stores, outer, *structure_of(stores, outer, own))
    if matches is not None:
        state = UOp.sink(*[_kernel_root(kernel.before) for kernel in result.values()])
        step = OPEN_LOOPS.at(plural(sum(map(len, kernels)), "stored value"))
        matches.append(Match(step, UOp.sink(*plan.stored), state))
    firsts: dict[Hashable, _Kernel] = {}
    with using(loops):
        for kernel in result.values():
            first = firsts.setdefault(kernel.key, kernel)
            kernel.like = None if first is kernel else first
            _resolve(kernel, matches)
    return result


def _resolve(kernel: _Kernel, matches: list[Match] | None) -> None:
    """Resolve the reads of a kernel: by the rules, or as in the equal kernel before it."""
    if kernel.like is None:
        place = 0 if matches is None else len(matches)
        root = applied(_kernel_root(kernel.before), RANGEIFY_RULES, "rangeify", matches)
        kernel.after = (root,) if len(kernel.members) == 1 else root.src
        kernel.matches = () if matches is None else matches[place:]
    elif matches is not None:
        own = kernel.as_in(kernel.like)
        with derived_from():
            kernel.after = tuple([_renamed(store, own) for store in kernel.like.after])


def _renamed(root: UOp, own: dict[UOp, UOp]) -> UOp:
    """Return the node of an equal kernel for a node of the first; `own` has some, and gets all."""
    for node in root.toposort(lambda n: n not in own):
        if node not in own:
            own[node] = node.rebuild(tuple([own[s] for s in node.src]))
    return own[root]


def _steps(opening: Match, kernels: Sequence[_Kernel]) -> Iterator[Match]:
    """Yield the steps by which kernels were built; the matches in equal kernels are those in the
    first of them, and a match in nodes that several kernels share is one."""
    yield opening
    listed: dict[Match, None] = {}
    for kernel in kernels:
        own = {} if kernel.like is None else kernel.as_in(kernel.like)
        for match in kernel.matches if kernel.like is None else kernel.like.matches:
            if kernel.like is not None:
                before, after = _renamed(match.before, own), _renamed(match.after, own)
                match = Match(match.rule, before, after)
            if match not in listed:
                listed[match] = None
                yield match
    for kernel in kernels:
        about = f"axes {' '.join(kernel.result.arg.order)}"
        yield Match(NAME_AXES.at(about), _kernel_root(kernel.after), kernel.result)


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


def _item(kernel: _Kernel, plan: SchedulePlan, equal: EqualKernels) -> ScheduleItem:
    """Return the item of a kernel."""
    members = kernel.members
    with tentative(members[0]) as part:
        built, places = equal.value(kernel.key, kernel.nodes_after, lambda: _placed(kernel))
        params = tuple([kernel.nodes[place] for place in places])
        if members[0].op is Ops.CONTIGUOUS:  # its kernel has no other outputs
            built = built.replace(arg=built.arg._replace(opts=members[0].arg))
        part.after = kernel.result = built
    decisions = tuple([plan.stored[node] for node in members])
    return ScheduleItem(built, params, members, decisions)


EqualKernels = Repeats[tuple[UOp, tuple[int, ...]]]
"""Kernels by structure, each with the places of its buffers among the nodes of the structure."""


def structure_of(
    stores: Sequence[UOp], outer: tuple[UOp, ...], loops: Loops
) -> tuple[Hashable, Sequence[UOp]]:
    """Return (key, nodes) of STOREs in the loops `outer`, before their reads are resolved; `loops`
    are those of reductions. Those with equal keys are equal but for their BUFFERs and the names of
    ranges, which a kernel numbers anew; their nodes correspond one by one."""
    inner = [(at, *ranges) for at, ranges in loops.items()]
    nodes = list(UOp.sink(*stores, *chain(*inner)).toposort())
    place = {node: n for n, node in enumerate(nodes)}
    rows: list[Hashable] = []
    for node in nodes:
        own: Hashable = (node.arg, node.arg.__class__)
        if node.op is Ops.RANGE:
            own = node.axis_kind
        elif node.op is Ops.BUFFER:
            own = node.shape
        elif not node.src:  # one object per value: -0.0 is not 0.0
            own = node
        rows.append((node.op, node.dtype, own, *[place[s] for s in node.src]))
    axes = [place.get(axis, (axis.extent, axis.axis_kind)) for axis in outer]
    return (*rows, *axes, *[tuple([place[n] for n in each]) for each in inner]), nodes


def _placed(kernel: _Kernel) -> tuple[UOp, tuple[int, ...]]:
    resolved = kernel.resolved
    built, buffers = kernel_of(resolved.after, resolved.loops)
    return built, tuple([resolved.nodes.index(buffer) for buffer in buffers])


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
