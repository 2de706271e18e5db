"""Constructors of nodes by the names of their parts: the only file that knows the order of sources
and of the parts of an arg. `views.py` has the same names for reading.

Sections: Constructors of nodes by the names of their parts; Constants.
"""

from __future__ import annotations

from collections.abc import Iterable

from workbench.base.dtypes import DType, dtypes
from workbench.base.tensor_cores import Fragment, TensorCore
from workbench.ir.node.ops import MOVEMENT, REDUCTIONS, Ops
from workbench.ir.node.uop import Storage, UOp
from workbench.ir.node.views import LoopRole, Space

# --------------------------------------------------------------------------------------------------
# Constructors of nodes by the names of their parts.

Shape = tuple[int, ...]
RUNNING = "running"
"""The arg of a LOAD that reads an unfinished accumulator: another node than one that reads its
result."""

VALUE = "value"
"""The arg of an INDEX of a value of the tensor level: memory may be one, too."""

# memory


def buffer(dtype: DType, uid: int | str, device: str, shape: Shape) -> UOp:
    """Return the BUFFER that `uid` is the name of, in this process and no other."""
    return UOp(Ops.BUFFER, dtype, (), (uid, device, shape))


def param(dtype: DType, slot: int, length: int) -> UOp:
    """Return argument `slot` of a kernel, which has `length` elements."""
    return UOp(Ops.PARAM, dtype, (), (slot, length))


def stage(value: UOp, indexes: Iterable[UOp], name: str, shape: Shape, buffers: int = 1) -> UOp:
    """Return the STAGE that holds `value` at every point of its own loops, `indexes`, in `buffers`
    that are filled in turn."""
    arg = (name, shape) if buffers == 1 else (name, shape, buffers)
    return UOp(Ops.STAGE, value.dtype, (value, *indexes), arg)


def define(dtype: DType, name: str, shape: Shape, space: Space, buffers: int = 1) -> UOp:
    """Return storage inside a kernel; the first dimension has `buffers` that are filled in turn."""
    return UOp(Ops.DEFINE, dtype, (), Storage(name, shape, space, buffers))


def register(dtype: DType, name: str, first_lane: int) -> UOp:
    """Return the REG of `name` that holds its lanes from `first_lane` on."""
    return UOp(Ops.REG, dtype, (), (name, first_lane))


# reading and writing


def index(memory: UOp, *indexes: UOp) -> UOp:
    """Return the place of one element of `memory`, by one index per dimension."""
    return UOp(Ops.INDEX, memory.dtype, (memory, *indexes))


def read(value: UOp, *indexes: UOp) -> UOp:
    """Return the element of a tensor-level value at an index per axis, while a schedule becomes
    kernels."""
    return UOp(Ops.INDEX, value.dtype, (value, *indexes), VALUE)


def is_read(node: UOp) -> bool:
    """Whether a node is a `read` of a tensor-level value."""
    return node.op is Ops.INDEX and node.arg == VALUE


def load(place: UOp) -> UOp:
    """Return the element at `place`, an INDEX."""
    return UOp(Ops.LOAD, place.dtype, (place,))


def running(place: UOp, step: int | None = None) -> UOp:
    """Return what is in an accumulator while others are still to be combined with it. Reads at
    several moments, which other statements lie between, are told apart by a `step`."""
    arg = RUNNING if step is None else f"{RUNNING} {step}"
    return UOp(Ops.LOAD, place.dtype, (place,), arg)


def is_running(node: UOp) -> bool:
    """Whether a node is a `running` read of an accumulator."""
    return node.op is Ops.LOAD and str(node.arg).startswith(RUNNING)


def store(
    place: UOp, value: UOp, vector: str | None = None, condition: tuple[UOp, ...] = ()
) -> UOp:
    """Return the STORE of `value`; `vector` names the axis along which it writes vectors. A linear
    program's has a `condition`, a node, where it does not happen everywhere."""
    return UOp(Ops.STORE, dtypes.void, (place, value, *condition), vector)


def accumulate(place: UOp, value: UOp, combines: Ops, vector: str | None) -> UOp:
    """Return the statement that combines one more value into an accumulator."""
    return UOp(Ops.ACCUMULATE, dtypes.void, (place, value), (combines, vector))


def end(statement: UOp, loops: Iterable[UOp]) -> UOp:
    """Return `statement`, a STORE, in the loops that it closes."""
    return UOp(Ops.END, dtypes.void, (statement, *loops))


# statements of work-groups


def barrier(batches: int | None = None) -> UOp:
    """Return the BARRIER, after which what work-items have written is there for all; of what is
    copied ahead, all but the last `batches` fills."""
    return UOp(Ops.BARRIER, dtypes.void, (), batches)


def special(axis: UOp, role: LoopRole, dimension: int) -> UOp:
    """Return the statement that `axis`, a RANGE, is the number of this work-group ("grid") or
    work-item ("item") along a dimension of the launch, from here on."""
    return UOp(Ops.SPECIAL, dtypes.void, (axis,), (role, dimension))


def when(condition: UOp, body: Iterable[UOp]) -> UOp:
    """Return the IF that runs statements where `condition` holds."""
    return UOp(Ops.IF, dtypes.void, (condition, *body))


def warp_shuffle(value: UOp, distance: int) -> UOp:
    """Return the `value` of another lane of the warp: the one whose number differs from this one's
    in the bits of `distance`."""
    return UOp(Ops.WARP_SHUFFLE, value.dtype, (value,), distance)


# reductions


def reduce(value: UOp, ranges: Iterable[UOp], combines: Ops) -> UOp:
    """Return `value` combined over `ranges`: itself, where there are none."""
    axes = tuple(ranges)
    return UOp(Ops.REDUCE, value.dtype, (value, *axes), combines) if axes else value


def wmma(a: UOp, b: UOp, elements: UOp, closes: Iterable[UOp], core: TensorCore) -> UOp:
    """Return the product of two tiles of a warp: each lane has the `elements` of the result, and
    the elements of the operands that `closes` has the axes of."""
    return UOp(Ops.WMMA, core.accumulator, (a, b, elements, *closes), core)


def exchange(rows: UOp, elements: UOp, closes: UOp, before: Fragment, after: Fragment) -> UOp:
    """Return a tile of a warp in another layout: each lane had the elements of a row, along
    `closes`, and has the `elements` of its fragment."""
    return UOp(Ops.EXCHANGE, rows.dtype, (rows, elements, closes), (before, after))


def reduce_axis(value: UOp, axes: Shape, combines: Ops) -> UOp:
    """Return a tensor-level value combined over `axes`, which keep size 1."""
    return UOp(Ops.REDUCE_AXIS, value.dtype, (value,), (combines, axes))


def in_order(kernel: UOp, order: Iterable[str]) -> UOp:
    """Return a kernel with its loops in `order`, outermost first."""
    return kernel.replace(arg=kernel.arg._replace(order=tuple(order)))


# --------------------------------------------------------------------------------------------------
# Constants: the neutral element of each combining op, and constants of a shape. EXPAND(CONST) is
# one value at every point, and needs no memory.


def identity(combines: Ops, dtype: DType) -> UOp:
    """Return what an accumulator of ADD, MUL, MAX or MIN starts from."""
    return UOp.const(dtype, REDUCTIONS[combines].identity(dtype))


def full(shape: tuple[int, ...], value: UOp) -> UOp:
    """Return the constant `value` at every point of `shape`."""
    return value if shape == () else UOp(Ops.EXPAND, value.dtype, (value,), shape)


def constant_of(node: UOp) -> UOp | None:
    """Return the CONST that a node is everywhere, or None."""
    if node.op is Ops.EXPAND and node.src[0].op is Ops.CONST:
        return node.src[0]
    return node if node.op is Ops.CONST else None


def is_known(node: UOp) -> bool:
    """Whether a value is a constant under movement ops and casts: no kernel has to run for it."""
    while node.op in MOVEMENT or node.op in (Ops.CAST, Ops.DETACH):
        node = node.src[0]
    return node.op is Ops.CONST
