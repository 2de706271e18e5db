"""Rules of the kernel level, and of the statement tree that lowering builds from it.

Each check returns why a node breaks its rule, "" where it does not; the tables at the end say
the rules in words.
"""

from __future__ import annotations

from collections import Counter
from typing import get_args

from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.exact_range import exact_range
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import KernelInfo, Storage, UOp, split_gate
from workbench.ir.node.views import LoopRole, Space, WrittenCode
from workbench.ir.verify.rows import Spec, Why, are_opts, by_op, common, is_shape, reduces, shuffle

MAX_SLOTS = 4096
"""Most parameters of a kernel; a launch packs a pointer for each."""
MAX_LANES = 1 << 14
"""Most lanes of a value: a linear program has an operation for each vector of them."""


def memory(node: UOp) -> UOp:
    """Return the memory that an INDEX points into: a PARAM, STAGE or DEFINE, behind any AFTER."""
    while node.op is Ops.AFTER and node.src:
        node = node.src[0]
    return node


def param(node: UOp) -> str:
    fits = is_shape(node.arg) and len(node.arg) == 2 and node.slot < MAX_SLOTS
    return "" if fits else f"its arg is {node.arg!r}, not (slot, size)"


def define(node: UOp) -> str:
    arg = node.arg
    fits = isinstance(arg, Storage) and is_shape(arg.shape) and arg.space in get_args(Space)
    return "" if fits else f"its arg is {arg!r}"


def stage(node: UOp) -> str:
    match node.arg:
        case (str(), tuple() as shape) if is_shape(shape):
            return _indexes(node, shape)
        case (str(), tuple() as shape, int() as n) if is_shape(shape) and n > 1:
            return _indexes(node, shape)
    return f"its arg is {node.arg!r}, not (name, shape) or (name, shape, buffers)"


def index(node: UOp) -> str:
    target = memory(node.src[0])
    if target.op not in (Ops.PARAM, Ops.STAGE, Ops.DEFINE):
        return f"it points into {target.op.name}"
    return _indexes(node, target.memory_shape)


def in_bounds(node: UOp) -> str:
    """Check each index without a gate: by its bounds, and exactly if they are too wide. Memory
    without elements may be accessed only under a condition that is always false."""
    target = node if node.op is Ops.STAGE else memory(node.src[0])
    for axis, size in zip(node.src[1:], target.memory_shape, strict=True):
        gate = split_gate(axis)[1]
        if axis.op is Ops.INVALID or (gate is not None and (size or not gate.vmax)):
            continue
        if axis.vmin >= 0 and axis.vmax < size:
            continue
        low, high = exact_range(axis)
        if low < 0 or high >= size:
            return f"an index is in {low}..{high}, and there are {size} elements"
    return ""


def load(node: UOp) -> str:
    if len(node.src) != 1:
        return f"it has {len(node.src)} sources"
    return "" if node.src[0].op is Ops.INDEX else f"it loads {node.src[0].op.name}"


def store(node: UOp) -> str:
    return _written(node, (Ops.PARAM,))


def guarded(node: UOp) -> str:
    """Check that INVALID, and an index that may be INVALID, is used only as an index."""
    for place, source in enumerate(node.src):
        gated = source.op is Ops.WHERE and source.src[-1].op is Ops.INVALID
        if source.op is not Ops.INVALID and not gated:
            continue
        is_index = node.op in (Ops.INDEX, Ops.STAGE) and place > 0
        is_gate = node.op is Ops.WHERE and place == 2 and not gated
        if not is_index and not is_gate:
            return f"{node.op.name} computes with an index that may be invalid"
    return ""


def reduce(node: UOp) -> str:
    return reduces(node) or _ranges(node)


def end(node: UOp) -> str:
    if not node.src or node.src[0].op is not Ops.STORE:
        return "it does not end a STORE"
    return _ranges(node)


def end_closes(node: UOp) -> str:
    names = sorted(r.axis_name for r in node.ranges)
    return f"{', '.join(names)} stays open" if names else ""


def sink(node: UOp) -> str:
    if not isinstance(node.arg, KernelInfo):
        return f"its arg is {node.arg!r}, not KernelInfo"
    name, order, work_groups, opts = node.arg
    if not isinstance(name, str) or not name or "\0" in name:
        return f"its name is {name!r}"
    if not isinstance(order, tuple) or not all(isinstance(n, str) for n in order):
        return f"its loop order is {order!r}, not names"
    if type(work_groups) is not bool:
        return f"whether it has work-groups is {work_groups!r}, not a bool"
    if opts is not None and not are_opts(opts):
        return f"the opts of its code are {opts!r:.80}, not plain data"
    other = next((s.op.name for s in node.src if s.op is not Ops.END), None)
    return f"{other} is a source of the SINK" if other else ""


def axis_names(node: UOp) -> str:
    names = Counter(r.axis_name for r in node.toposort() if r.op is Ops.RANGE)
    twice = sorted(name for name, count in names.items() if count > 1)
    return f"{', '.join(twice)} names two ranges" if twice else ""


def loop_order(node: UOp) -> str:
    order = Counter(node.arg.order)
    ranges = [r for r in node.toposort() if r.op is Ops.RANGE]
    loops = {r.axis_name for r in ranges if not r.axis_kind.is_lane}
    lanes = {r.axis_name for r in ranges} - loops
    problems = (
        ("has no place in the order", loops - set(order)),
        ("is a lane and has no place in the order", lanes & set(order)),
        ("is in the order and not in the kernel", set(order) - loops - lanes),
        ("is in the order twice", {name for name, count in order.items() if count > 1}),
    )
    return next((f"{', '.join(sorted(names))} {why}" for why, names in problems if names), "")


def one_thread(node: UOp) -> str:
    ranges = [r for r in node.toposort() if r.op is Ops.RANGE]
    names = sorted(r.axis_name for r in ranges if r.axis_kind is AxisType.THREAD)
    return f"{', '.join(names)} are spread over threads" if len(names) > 1 else ""


def few_lanes(node: UOp) -> str:
    lanes = 1
    for axis in node.toposort():
        if axis.op is Ops.RANGE and axis.axis_kind.is_lane:
            lanes = max(lanes, axis.extent)
    return "" if lanes <= MAX_LANES else f"{lanes} lanes are more than {MAX_LANES}"


def slots(node: UOp) -> str:
    counts = Counter(p.slot for p in node.toposort() if p.op is Ops.PARAM)
    twice = sorted(slot for slot, count in counts.items() if count > 1)
    return f"slot {twice[0]} has two parameters" if twice else ""


def arrays(node: UOp) -> str:
    """Check that an array is not written as one type and read as another: they would be two."""
    names = Counter(d.name for d in node.toposort() if d.op is Ops.DEFINE)
    twice = sorted(name for name, count in names.items() if count > 1)
    return f"{twice[0]} has two" if twice else ""


def stage_names(node: UOp) -> str:
    names = Counter(s.name for s in node.toposort() if s.op is Ops.STAGE)
    twice = sorted(name for name, count in names.items() if count > 1)
    return f"two stages have the name {twice[0]}" if twice else ""


def no_race(node: UOp) -> str:
    """Check that no statement reads a parameter that the kernel writes: its value would depend on
    the order of loops on a device. A read behind an AFTER of all writes of the parameter is
    ordered."""
    writes: dict[UOp, set[UOp]] = {}
    for end in node.src:
        writes.setdefault(end.store.place.param, set()).add(end.store)
    for load in node.toposort():
        place = load.place.memory if load.op is Ops.LOAD else node
        stores = writes.get(memory(place))
        if stores and not stores.issubset(place.toposort()):
            return f"slot {memory(place).slot} is read and written"
    return ""


# the statement tree


def statements(node: UOp) -> str:
    inside = node.src
    if node.op is Ops.LOOP:
        if not node.src or node.src[0].op is not Ops.RANGE or node.src[0].axis_kind.is_lane:
            return "it has no range to loop over"
        inside = node.body
    elif node.op is Ops.IF:
        inside = node.body
        if not inside or node.condition.dtype is not dtypes.bool:
            return "it has no condition, or nothing to do"
        for inner in node.toposort():
            if inner.op in (Ops.BARRIER, Ops.WARP_SHUFFLE):
                return f"a {inner.op.name} stands in it, to which some work-items do not come"
    elif not isinstance(node.arg, KernelInfo):
        return f"its arg is {node.arg!r}, not KernelInfo"
    else:
        inside = tuple(n for n in inside if n.op is not Ops.SPECIAL)
    other = next((s.op.name for s in inside if s.op not in _STATEMENTS), None)
    return f"{other} is not a statement" if other else ""


def _shared_loops(block: UOp) -> list[UOp]:
    """Return the loops around all statements that a launch shares out: a "thread" loop, and in it,
    or without it, a "chunked" one; or "grid" and "item" loops, in any order with other loops."""
    launch_loops: list[UOp] = []
    body = block.src
    roles: tuple[LoopRole, ...] = ("thread", "chunked")
    for role in roles:
        if len(body) == 1 and body[0].op is Ops.LOOP and body[0].role == role:
            launch_loops.append(body[0])
            body = body[0].src[1:]
    while len(body) == 1 and body[0].op is Ops.LOOP:
        if body[0].role in ("grid", "item"):
            launch_loops.append(body[0])
        body = body[0].src[1:]
    return launch_loops


def _is_of_item(loop: UOp) -> bool:
    """Whether a LOOP is over work-items of a group: these may stand anywhere."""
    return loop.role == "item" and loop.axis.axis_kind.is_work_item


def loops(node: UOp) -> str:
    """Walk the tree: a range is open inside its LOOP, where it is used, and nowhere else."""
    opened = {n.axis for n in node.src if n.op is Ops.SPECIAL}
    stack = [(s, False) for s in reversed(node.src) if s.op is not Ops.SPECIAL]
    shared = _shared_loops(node)
    while stack:
        inner, is_done = stack.pop()
        if inner.op is Ops.IF:
            stack.extend([(s, False) for s in reversed(inner.src)])
            continue
        if inner.op is not Ops.LOOP:
            free = {r for r in inner.ranges if not r.axis_kind.is_lane} - opened
            if free:
                names = ", ".join(sorted(r.axis_name for r in free))
                return Why(f"{inner.op.name} uses {names} outside of its loop", inner)
            continue
        axis = inner.src[0]
        if is_done:
            opened.remove(axis)
            continue
        if axis in opened:
            return Why(f"a loop over {axis.axis_name} stands inside another", inner)
        if inner.arg is not None and inner not in shared and not _is_of_item(inner):
            why = f"the loop over {axis.axis_name} is {inner.arg}, and one outermost loop may be"
            return Why(why, inner)
        opened.add(axis)
        stack.append((inner, True))
        stack.extend([(s, False) for s in reversed(inner.src[1:])])
    return ""


def barrier(node: UOp) -> str:
    fits = node.arg is None or type(node.arg) is int and node.arg >= 0
    return "" if not node.src and fits else f"its arg is {node.arg!r}"


def special(node: UOp) -> str:
    match node.arg:
        case ("grid" | "item", int()):
            axis = node.axis
        case _:
            return f"its arg is {node.arg!r}, not a role and a dimension"
    return "" if axis.op is Ops.RANGE else "it numbers the steps of no range"


def specials(node: UOp) -> str:
    """Check that the numbers of a launch come first, each along a dimension of its own."""
    first = [n for n in node.src if n.op is Ops.SPECIAL]
    if tuple(first) != node.src[: len(first)]:
        return "a SPECIAL stands after a statement"
    places = [n.arg for n in first]
    return "" if len(set(places)) == len(places) else "two SPECIALs number one dimension"


def lane_reduce(node: UOp) -> str:
    loop = next((r.axis_name for r in node.src[1:] if not r.axis_kind.is_lane), None)
    return f"{loop} is a loop" if loop else ""


def lowered_store(node: UOp) -> str:
    return _written(node, (Ops.PARAM, Ops.DEFINE)) or _vector_axis(node, node.arg)


def accumulate(node: UOp) -> str:
    if not isinstance(node.arg, tuple) or len(node.arg) != 2:
        return f"its arg is {node.arg!r}, not (op, vector axis)"
    return reduces(node) or _written(node, (Ops.DEFINE,)) or _vector_axis(node, node.vector)


def code(node: UOp) -> str:
    """Check that source text takes parameters alone, each as long as its initial contents."""
    match node.arg:
        case WrittenCode(str(), str(), tuple() as starts, bool()) if is_shape(starts):
            pass
        case _:
            return f"its arg is {node.arg!r:.80}, not WrittenCode"
    other = next((s.op.name for s in node.src if s.op is not Ops.PARAM), None)
    if other:
        return f"it takes {other}, not a PARAM"
    count = len(node.src) - len(starts)
    pairs = zip(starts, node.src[max(0, count) :], strict=False)
    fits = all(s < count and node.src[s].arg[1] == p.length for s, p in pairs)
    return "" if fits and count > 0 else "what an argument begins with is not like it"


def _indexes(node: UOp, shape: tuple[int, ...]) -> str:
    indexes = node.src[1:]
    if len(indexes) != len(shape):
        return f"it has {len(indexes)} indexes for {len(shape)} dimensions"
    return next(filter(None, (wrong_index(i.dtype) for i in indexes)), "")


def wrong_index(dtype: DType) -> str:
    """Return why a value of a dtype is no index; "" if it is one. In text, a number without a dtype
    has that of its line."""
    wanted = "a value of dtype index, or a number such as 0:index"
    return "" if dtype is dtypes.index else f"an index is {dtype}, not {wanted}"


def _ranges(node: UOp) -> str:
    closes = node.src[1:]
    other = next((r.op.name for r in closes if r.op is not Ops.RANGE), None)
    if other:
        return f"{other} is not a RANGE to close"
    return "it closes a range twice" if len(set(closes)) < len(closes) else ""


def _written(node: UOp, targets: tuple[Ops, ...]) -> str:
    if len(node.src) != 2:
        return f"it has {len(node.src)} sources"
    target, value = node.src
    if target.op is not Ops.INDEX or memory(target.src[0]).op not in targets:
        return f"it does not write to an INDEX of {' or '.join(t.name for t in targets)}"
    return "" if value.dtype is target.dtype else f"it writes {value.dtype} to {target.dtype}"


def _vector_axis(node: UOp, name: object) -> str:
    lanes = {r.axis_name for r in node.ranges if r.axis_kind.is_lane}
    return "" if name is None or name in lanes else f"{name!r} is not one of its lanes"


_STATEMENTS = (Ops.LOOP, Ops.IF, Ops.STORE, Ops.ACCUMULATE, Ops.BARRIER)
_HOLD = (Ops.BLOCK, Ops.LOOP, Ops.IF)
# fmt: off
_SHARED = (
    Spec("param",     (Ops.PARAM,),           param,     "a parameter has a slot and a size"),
    Spec("index",     (Ops.INDEX,),           index,     "an INDEX has one index per dimension"),
    Spec("in-bounds", (Ops.INDEX, Ops.STAGE), in_bounds, "an index is in bounds or guarded"),
    Spec("load",      (Ops.LOAD,),            load,      "a LOAD reads an INDEX"),
    Spec("guarded",   None,                   guarded,   "INVALID is only ever an index"),
    Spec("reduce",    (Ops.REDUCE,),          reduce,    "a REDUCE combines over ranges"),
    Spec("code",      (Ops.EXTERN,),            code,      "EXTERN takes parameters"),
)
KERNEL = by_op((
    *common("k"),
    Spec("stage",      (Ops.STAGE,), stage,      "a STAGE has one index per dimension"),
    *_SHARED,
    Spec("store",      (Ops.STORE,), store,      "a kernel stores to its parameters"),
    Spec("end",        (Ops.END,),   end,        "an END closes ranges of a STORE"),
    Spec("end-closes", (Ops.END,),   end_closes, "an END closes every range of its STORE"),
    Spec("sink",       (Ops.SINK,),  sink,       "a SINK holds the ENDs of a kernel"),
    Spec("axis-names", (Ops.SINK,),  axis_names, "each axis has its own name"),
    Spec("loop-order", (Ops.SINK,),  loop_order, "the order names each loop once, and no lane"),
    Spec("one-thread", (Ops.SINK,),  one_thread, "one axis is spread over threads at most"),
    Spec("slots",      (Ops.SINK,),  slots,      "each slot has one parameter"),
    Spec("stage-names", (Ops.SINK,), stage_names, "each STAGE has its own name"),
    Spec("no-race",    (Ops.SINK,),  no_race,    "a kernel reads no parameter that it writes"),
    Spec("few-lanes",  (Ops.SINK,),  few_lanes,  "lanes are few enough to write out"),
))
LOWERED = by_op((
    *common("l"),
    Spec("define",      (Ops.DEFINE,),         define,        "a DEFINE has Storage"),
    *_SHARED,
    Spec("lane-reduce", (Ops.REDUCE,),         lane_reduce,   "a lowered REDUCE is over lanes"),
    Spec("write",       (Ops.STORE,),          lowered_store, "a STORE writes an INDEX"),
    Spec("accumulate",  (Ops.ACCUMULATE,),     accumulate,    "an ACCUMULATE changes a DEFINE"),
    Spec("barrier",     (Ops.BARRIER,),        barrier,       "a BARRIER stands alone"),
    Spec("shuffle",     (Ops.WARP_SHUFFLE,),   shuffle,       "a shuffle has a distance"),
    Spec("special",     (Ops.SPECIAL,),        special,       "a SPECIAL numbers a RANGE"),
    Spec("specials",    (Ops.BLOCK,),          specials,      "SPECIALs come first"),
    Spec("statements",  _HOLD,                 statements,    "BLOCK, LOOP and IF hold statements"),
    Spec("loops",       (Ops.BLOCK,),          loops,         "a range is used inside its loop"),
    Spec("slots",       (Ops.BLOCK,),          slots,         "each slot has one parameter"),
    Spec("arrays",      (Ops.BLOCK,),          arrays,        "each array has one DEFINE"),
))
# fmt: on
