"""The steps of rangeify, for a reader: the reads of values become what computes them.

`INDEX(value, i, j)` is a read of a value of the tensor level. First there is one for each stored
value, in a STORE. Then a read is replaced by the value's op over reads of its sources: ranges are
pushed through movement, which only changes their indexes, until they are in memory. When no read is
left, a STORE is a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from workbench.base.trace import Match, PassStep
from workbench.base.words import plural, shape_text
from workbench.ir.node import construct
from workbench.ir.node.ops import MOVEMENT, Ops
from workbench.ir.node.uop import UOp, gated
from workbench.ir.schedule.access import TRUE, Access
from workbench.ir.schedule.item import ScheduleItem
from workbench.ir.schedule.plan import SchedulePlan
from workbench.ir.schedule.staging import read

OPEN_LOOPS = PassStep(
    "open-loops", "Each value that is stored gets a range for every axis, and a STORE."
)
PUSH_MOVEMENT = PassStep(
    "push-through-movement",
    "What moves a value, or only stores it, computes nothing: its source is read instead, at other"
    " indexes where it moves.",
)
PUSH_PAD = PassStep(
    "push-through-pad",
    "A padded value is its source, read at shifted indexes where they are inside of it, and 0"
    " elsewhere.",
)
PUSH_OP = PassStep(
    "push-through-op",
    "What is computed element by element reads its operands at its own indexes.",
)
OPEN_REDUCTION = PassStep(
    "open-reduction", "A reduction gets a range for every axis that it reduces."
)
OPEN_ROW = PassStep(
    "open-row", "A row that is kept in the kernel is filled over ranges of its own."
)
LOAD_MEMORY = PassStep(
    "load-memory", "A value in memory is loaded: its indexes become one position."
)
NAME_AXES = PassStep(
    "name-axes",
    "Its reads resolved, a STORE, or several together, are a kernel: memory has slots, and ranges"
    " their names.",
)
Values = dict[tuple[UOp, Access], UOp]
"""What each read of a value became."""


def range_steps(
    plan: SchedulePlan,
    values: Values,
    buffers: Mapping[UOp, UOp],
    stores: Mapping[UOp, UOp],
    items: Sequence[ScheduleItem],
) -> Iterator[Match]:
    """Yield the steps from the tensor graph to kernels, the results first. `stores` has the STORE
    of each value that a kernel stores, `items` the kernels, `buffers` the memory of what is
    stored."""
    if not stores:
        return
    first = {
        node: construct.store(store.place, read_of(node, plan.reads[node][0]))
        for node, store in stores.items()
    }
    items = [item for item in items if item.nodes[0] in stores]
    outputs = [item.nodes for item in items]
    state = UOp.sink(*[_together([first[n] for n in nodes]) for nodes in outputs])
    yield Match(
        OPEN_LOOPS.at(plural(len(first), "stored value")), UOp.sink(*plan.stored), state
    )
    visible = set(state.toposort())
    loaded: set[UOp] = set()
    for node, access in reversed(values):
        before = read_of(node, access)
        if before in visible:  # a copy reads its source by itself
            value = values[node, access]
            sources = _sources(node, access, value, plan, values, buffers)
            after = _over(node, value, sources, plan)
            if after is not before:
                yield Match(_step_of(node, plan).at(_about(node)), before, after)
            for source in sources:
                if source.is_loaded and source.read not in loaded:
                    loaded.add(source.read)
                    if source.read is not source.value:
                        size = shape_text(source.read.src[0].src[0].shape)
                        yield Match(LOAD_MEMORY.at(size), source.read, source.value)
            visible.update(after.toposort(lambda n: n not in visible))
    for item in items:
        if item.kernel is not None:
            about = f"axes {' '.join(item.kernel.arg.order)}"
            whole = _together([stores[node] for node in item.nodes])
            yield Match(NAME_AXES.at(about), whole, item.kernel)


def _together(stores: Sequence[UOp]) -> UOp:
    """Return the STORE of a kernel, or a SINK of several."""
    return UOp.sink(*stores) if len(stores) > 1 else stores[0]


class OperandRead(NamedTuple):
    """A source of a value in a kernel: its value there, and the read that became that. It may be
    `is_loaded` from memory that another kernel, or a copy, has written."""

    value: UOp
    read: UOp
    is_loaded: bool = False


def read_of(node: UOp, access: Access) -> UOp:
    """Return a read of a value, as the steps show it: of memory it is a LOAD by all indexes."""
    indexes = access.indices
    if access.valid is not TRUE:
        last = gated(indexes[-1], access.valid) if indexes else access.valid
        indexes = (*indexes[:-1], last)
    place = construct.index(node, *indexes)
    return construct.load(place) if node.op is Ops.BUFFER else place


def _sources(
    node: UOp,
    access: Access,
    value: UOp,
    plan: SchedulePlan,
    values: Values,
    buffers: Mapping[UOp, UOp],
) -> list[OperandRead]:
    """Return the sources of a read of `node`; a constant is read as itself."""
    if node.op in (Ops.BUFFER, Ops.IOTA):
        return []
    sources = []
    below = zip(node.src, plan.links[node, access], strict=True)
    for place, (source, at) in enumerate(below):
        row = plan.staged.get(source)
        if at is None:
            sources.append(OperandRead(source, source))
        elif plan.is_inside(source, access):
            own = plan.reads[source][0]
            sources.append(OperandRead(values[source, own], read_of(source, own)))
        elif source in buffers:
            loaded = _operand(node, value, place)
            sources.append(OperandRead(loaded, read_of(buffers[source], at), True))
        elif row is not None:
            staged = values[source, row.fill], read_of(source, row.fill)
            sources.append(
                OperandRead(read(staged[0], row, at), read(staged[1], row, at))
            )
        else:
            sources.append(OperandRead(values[source, at], read_of(source, at)))
    return sources


def _operand(node: UOp, value: UOp, place: int) -> UOp:
    """Return the LOAD of source `place` in the value of `node`."""
    element = value.src[0] if value.op is Ops.STAGE else value
    if element.op is Ops.LOAD and not node.is_elementwise:
        return element  # moved, a value is its source
    return element.src[_place(node, place)]


def _place(node: UOp, place: int) -> int:
    """Return where source `place` stands in the value of a node: a PAD is a WHERE."""
    return 1 if node.op is Ops.PAD else place


def _over(node: UOp, value: UOp, sources: list[OperandRead], plan: SchedulePlan) -> UOp:
    """Return the value of `node` over reads of its sources."""
    if node in plan.staged:
        element = _over_element(node, value.src[0], sources)
        return value.replace(src=(element, *value.src[1:]))
    return _over_element(node, value, sources)


def _over_element(node: UOp, value: UOp, sources: list[OperandRead]) -> UOp:
    if not node.is_elementwise and sources and value is sources[0].value:
        return sources[0].read
    parts = list(value.src)
    for place, source in enumerate(sources):
        at = _place(node, place)
        if at < len(parts) and parts[at] is source.value:
            parts[at] = source.read
    return value.replace(src=tuple(parts))


def _about(node: UOp) -> str:
    """Return the op, with its axes or the shape it moves from and to."""
    op, shape = node.op.name.lower(), shape_text(node.shape)
    if node.op is Ops.REDUCE_AXIS:
        axes = " and ".join(map(str, sorted(node.reduced_axes)))
        return f"{node.combines.name.lower()} over axis {axes} of {shape_text(node.src[0].shape)}"
    if node.op in MOVEMENT or node.op is Ops.PAD:
        return f"{op} from {shape_text(node.src[0].shape)} to {shape}"
    return f"{op} {shape}"


def _step_of(node: UOp, plan: SchedulePlan) -> PassStep:
    if node in plan.staged:
        return OPEN_ROW
    if node.op is Ops.PAD:
        return PUSH_PAD
    if node.op in (Ops.BUFFER, Ops.IOTA):
        return LOAD_MEMORY
    if node.op is Ops.REDUCE_AXIS:
        return OPEN_REDUCTION
    return PUSH_OP if node.is_elementwise else PUSH_MOVEMENT
