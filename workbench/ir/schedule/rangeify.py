"""Rangeify: rules that push ranges through the tensor graph, one op a match.

`read(value, i, j)` is a read of a value of the tensor level. First there is one for each stored
value, in a STORE, at ranges over all its axes. A rule replaces a read by the value's op over reads
of its sources; movement only changes the indexes. When no read is left, a STORE is a kernel.
Source of the idea: tinygrad's rangeify.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import NamedTuple

from workbench.base.interrupts import scope
from workbench.base.trace import derived_from, replaced
from workbench.ir.node import construct
from workbench.ir.node.construct import identity
from workbench.ir.node.ops import ELEMENTWISE, AxisType, Ops
from workbench.ir.node.uop import UOp, gated, invalid, split_gate
from workbench.ir.rewriting.patterns import Pat, var
from workbench.ir.rewriting.rewrite import Rule, RuleSet
from workbench.ir.schedule.access import TRUE, ZERO, Access, Ranges, flatten, inside_of_pad, moved
from workbench.ir.schedule.plan import SchedulePlan

Loops = dict[UOp, Ranges]
"""The ranges of reductions, as `decide` chose them, by the read of each: several reductions of one
kernel may share theirs."""
_loops: ContextVar[Mapping[UOp, Ranges]] = ContextVar("loops", default=MappingProxyType({}))


@scope
def using(loops: Loops) -> Generator[None, None, None]:
    """Give `open_reduction` the ranges in `loops`, in a `with` block."""
    token = _loops.set(loops)
    try:
        yield
    finally:
        _loops.reset(token)


def read(value: UOp, indexes: Iterable[UOp], valid: UOp = TRUE) -> UOp:
    """Return the read of a value at `indexes`. It is used where `valid` holds, which becomes the
    gate of the last index; a scalar, which has no index, gets an index 0 for it."""
    indexes = tuple(indexes)
    if valid is not TRUE:
        *others, last = indexes or (ZERO,)
        indexes = (*others, valid.where(last, invalid()))
    return construct.read(value, *indexes)


def parts_of(node: UOp) -> tuple[UOp, tuple[UOp, ...], UOp]:
    """Return (value, indexes, condition) of a read."""
    value, *indexes = node.src
    valid = None
    if indexes:
        indexes[-1], valid = split_gate(indexes[-1])
    return value, tuple(indexes[: len(value.shape)]), TRUE if valid is None else valid


class OpenedKernel(NamedTuple):
    """The STOREs of the values that one kernel stores, whose reads are to be resolved, and the
    ranges of its reductions."""

    stores: tuple[UOp, ...]
    loops: Loops


def opened(
    plan: SchedulePlan, members: tuple[UOp, ...], buffers: Mapping[UOp, UOp], loops: Loops
) -> OpenedKernel:
    """Return the kernel that stores `members`, and add the ranges of its reductions to `loops`.
    Values that other kernels store are BUFFERs in it. A staged row is a CONTIGUOUS: its sources are
    the value and the indexes at which it is filled, its arg the row's axes."""
    root = plan.reads[members[0]][0].root
    graph = UOp.sink(*members).toposort(lambda n: n in members or n not in buffers)
    graph.popitem()
    new: dict[UOp, UOp] = {}
    rows: dict[UOp, UOp] = {}
    own_loops: Loops = {}
    with derived_from():
        for node in graph:
            is_memory = node in buffers and node not in members and not node.is_const
            sources = tuple([new[s] for s in node.src]) if not is_memory else ()
            new[node] = buffers[node] if is_memory else node.rebuild(sources)
            if new[node].op is Ops.REDUCE_AXIS:
                for access in plan.reads[node]:
                    if access.root is root:
                        inner = _ranges_of(node, plan.links[node, access][0])
                        at = _read_by(new[node], access)
                        own_loops[at] = loops.setdefault(at, inner)
            row = plan.staged.get(node)
            if row is not None:
                rows[node] = new[node]
                filled = (new[node], *row.fill.indices)
                new[node] = UOp(Ops.CONTIGUOUS, node.dtype, filled, row.private)
    replaced(new)
    replaced(rows)
    stores = []
    for node in members:
        own = plan.reads[node][0]
        with derived_from(node):
            place = construct.index(buffers[node], flatten(own.indices, node.shape))
            stores.append(construct.store(place, _read_by(new[node], own)))
    return OpenedKernel(tuple(stores), own_loops)


def _read_by(value: UOp, access: Access) -> UOp:
    return read(value, access.indices, access.valid)


def _ranges_of(node: UOp, below: Access | None) -> Ranges:
    if below is None:
        return ()
    indexes = [below.indices[axis] for axis in sorted(node.reduced_axes)]
    return tuple([index for index in indexes if index is not ZERO])


def open_row(r: UOp, x: UOp) -> UOp | None:
    """A staged row is filled over ranges of its own, and its element is loaded."""
    value, *fills = x.src
    if not fills:
        return None
    axes, indexes = x.arg, parts_of(r)[1]
    shape = tuple([value.shape[axis] for axis in axes])
    own = [fills[axis] for axis in axes]
    row = construct.stage(construct.read(value, *fills), own, own[0].axis_name, shape)
    return construct.load(construct.index(row, *[indexes[axis] for axis in axes]))


def push_through_op(r: UOp, x: UOp) -> UOp:
    """An elementwise op reads its operands at the indexes at which it is read."""
    at = r.src[1:]
    operands = [s if s.is_const else construct.read(s, *at) for s in x.src]
    return UOp(x.op, x.dtype, tuple(operands), x.arg)


def push_through_movement(r: UOp, x: UOp) -> UOp:
    """An op that moves a value, or only stores it, computes nothing: its source is read instead, at
    other indexes where it moves."""
    _, indexes, valid = parts_of(r)
    return read(x.src[0], moved(x, indexes), valid)


def push_through_pad(r: UOp, x: UOp) -> UOp:
    """A PAD is its source, read at shifted indexes where these are inside of the source, and 0
    elsewhere."""
    source = x.src[0]
    if not source.size:
        return x.like(0)
    _, indexes, valid = parts_of(r)
    inside, shifted = inside_of_pad(x, indexes)
    both = inside if valid is TRUE else inside_of_pad(x, indexes, valid)[0]
    element = read(source, shifted, both)
    return element if inside is TRUE else inside.where(element, x.like(0))


def open_reduction(r: UOp, x: UOp) -> UOp:
    """A reduction gets a range for every axis that it reduces."""
    source, axes = x.src[0], sorted(x.reduced_axes)
    if not source.size:  # there are no elements to combine
        return identity(x.combines, x.dtype)
    _, indexes, valid = parts_of(r)
    ranges = _loops.get().get(r)
    if ranges is None:  # in an example, which has no plan
        long = [a for a in axes if source.shape[a] != 1]
        ranges = tuple([UOp.range(source.shape[a], f"r{a}", AxisType.REDUCE) for a in long])
    left, at = iter(ranges), list(indexes)
    for axis in axes:
        at[axis] = ZERO if source.shape[axis] == 1 else next(left)
    return construct.reduce(read(source, at, valid), ranges, x.combines)


def load_memory(r: UOp, x: UOp) -> UOp:
    """A value in memory is loaded: its indexes become one position."""
    _, indexes, valid = parts_of(r)
    at = gated(flatten(indexes, x.shape), valid)
    return construct.load(construct.index(x, at))


def read_position(r: UOp, x: UOp) -> UOp:
    """An element of an IOTA is its index."""
    return parts_of(r)[1][0].cast(x.dtype)


def _read_of(*ops: Ops) -> Pat:
    """Match a read of a value `x` by one of `ops`."""
    return Pat(Ops.INDEX, (Pat(ops, None, name="x"),), name="r", arg=construct.VALUE, more=True)


_MOVES_OR_STORES = (
    Ops.RESHAPE, Ops.EXPAND, Ops.PERMUTE, Ops.SHRINK, Ops.FLIP, Ops.CONTIGUOUS, Ops.DETACH,
)  # fmt: skip
RANGEIFY_RULES = RuleSet(
    "rangeify",
    [
        Rule("push-through-op", _read_of(*sorted(ELEMENTWISE, key=str)), push_through_op),
        Rule("open-row", _read_of(Ops.CONTIGUOUS), open_row),
        Rule("push-through-movement", _read_of(*_MOVES_OR_STORES), push_through_movement),
        Rule("load-memory", _read_of(Ops.BUFFER), load_memory),
        Rule("open-reduction", _read_of(Ops.REDUCE_AXIS), open_reduction),
        Rule("push-through-pad", _read_of(Ops.PAD), push_through_pad),
        Rule("read-position", _read_of(Ops.IOTA), read_position),
        Rule(
            "read-constant", _read_of(Ops.CONST), var("x"), doc="A constant is itself everywhere."
        ),
    ],
)
