"""Constructors of nodes, with a parameter for each part of `src` and `arg`. `views.py` has the same
names for reading.

Sections: Constructors of nodes by the names of their parts; Constants.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workbench.base.dtypes import DType, dtypes
from workbench.base.tensor_cores import Fragment, TensorCore
from workbench.ir.node.ops import MOVEMENT, REDUCTIONS, Ops
from workbench.ir.node.uop import Storage, UOp
from workbench.ir.node.views import LoopRole, Space

# --------------------------------------------------------------------------------------------------
# Constructors of nodes by the names of their parts.

Shape = tuple[int, ...]
RUNNING = "running"
"""The arg of a LOAD of an unfinished accumulator; a LOAD of the result is another node."""

VALUE = "value"
"""The arg of an INDEX of a tensor-level value, such as a BUFFER: it is no INDEX into memory."""

# memory


def buffer(dtype: DType, uid: int | str, device: str, shape: Shape) -> UOp:
    """Return the BUFFER named `uid`; the name holds in this process only."""
    return UOp(Ops.BUFFER, dtype, (), (uid, device, shape))


def empty(dtype: DType, number: int, device: str, shape: Shape) -> UOp:
    """Return a BUFFER whose values are whatever its memory holds, until another version of it is
    written."""
    return buffer(dtype, f"{_EMPTY}{number}", device, shape)


def is_empty(node: UOp) -> bool:
    """Whether a BUFFER is one of `empty`."""
    return str(node.arg[0]).startswith(_EMPTY)


_EMPTY = "empty"


def param(dtype: DType, slot: int, length: int) -> UOp:
    """Return argument `slot` of a kernel, which has `length` elements."""
    return UOp(Ops.PARAM, dtype, (), (slot, length))


def stage(value: UOp, indexes: Iterable[UOp], name: str, shape: Shape, buffers: int = 1) -> UOp:
    """Return the STAGE that stores `value` for every step of its own loops, the ranges of
    `indexes`, in `buffers` tiles that are filled in turn."""
    arg = (name, shape) if buffers == 1 else (name, shape, buffers)
    return UOp(Ops.STAGE, value.dtype, (value, *indexes), arg)


def define(dtype: DType, name: str, shape: Shape, space: Space, buffers: int = 1) -> UOp:
    """Return storage inside a kernel. With several `buffers`, which are filled in turn, the first
    dimension of `shape` counts them."""
    return UOp(Ops.DEFINE, dtype, (), Storage(name, shape, space, buffers))


def register(dtype: DType, name: str, first_lane: int) -> UOp:
    """Return the REG with the lanes of the accumulator `name` from `first_lane` on."""
    return UOp(Ops.REG, dtype, (), (name, first_lane))


# reading and writing


def index(memory: UOp, *indexes: UOp) -> UOp:
    """Return the INDEX of an element of `memory`, with one index per dimension."""
    return UOp(Ops.INDEX, memory.dtype, (memory, *indexes))


def read(value: UOp, *indexes: UOp) -> UOp:
    """Return the element of a tensor-level value, with one index per axis; such nodes exist only
    while kernels are built."""
    return UOp(Ops.INDEX, value.dtype, (value, *indexes), VALUE)


def is_read(node: UOp) -> bool:
    """Whether a node is a `read` of a tensor-level value."""
    return node.op is Ops.INDEX and node.arg == VALUE


def load(place: UOp) -> UOp:
    """Return the element at `place`, an INDEX."""
    return UOp(Ops.LOAD, place.dtype, (place,))


def running(place: UOp, step: int | None = None) -> UOp:
    """Return a LOAD of an unfinished accumulator. Reads at several moments, with other statements
    between them, differ in their `step`."""
    arg = RUNNING if step is None else f"{RUNNING} {step}"
    return UOp(Ops.LOAD, place.dtype, (place,), arg)


def is_running(node: UOp) -> bool:
    """Whether a node is a `running` read of an accumulator."""
    return node.op is Ops.LOAD and str(node.arg).startswith(RUNNING)


def store(
    place: UOp, value: UOp, vector: str | None = None, condition: tuple[UOp, ...] = ()
) -> UOp:
    """Return the STORE of `value`; `vector` names the axis along which it writes vectors. In a
    linear program, `condition` may hold one node: where it is false, nothing is stored."""
    return UOp(Ops.STORE, dtypes.void, (place, value, *condition), vector)


def accumulate(place: UOp, value: UOp, combines: Ops, vector: str | None) -> UOp:
    """Return the ACCUMULATE that combines `value` into an accumulator."""
    return UOp(Ops.ACCUMULATE, dtypes.void, (place, value), (combines, vector))


def end(statement: UOp, loops: Iterable[UOp]) -> UOp:
    """Return the END of `statement`, a STORE, and of the loops that it closes."""
    return UOp(Ops.END, dtypes.void, (statement, *loops))


# statements of work-groups


def barrier(batches: int | None = None) -> UOp:
    """Return the BARRIER after which all work-items see what others of the group have written. The
    last `batches` fills by asynchronous copies may still be incomplete."""
    return UOp(Ops.BARRIER, dtypes.void, (), batches)


def special(axis: UOp, role: LoopRole, dimension: int) -> UOp:
    """Return the SPECIAL after which `axis`, a RANGE, is the number of this work-group ("grid") or
    work-item ("item") along a dimension of the launch."""
    return UOp(Ops.SPECIAL, dtypes.void, (axis,), (role, dimension))


def when(condition: UOp, body: Iterable[UOp]) -> UOp:
    """Return the IF that runs statements where `condition` holds."""
    return UOp(Ops.IF, dtypes.void, (condition, *body))


def warp_shuffle(value: UOp, distance: int) -> UOp:
    """Return `value` of another lane of the warp: the lane whose number differs from this one's in
    the bits of `distance`."""
    return UOp(Ops.WARP_SHUFFLE, value.dtype, (value,), distance)


# reductions


def reduce(value: UOp, ranges: Iterable[UOp], combines: Ops) -> UOp:
    """Return `value` combined over `ranges`: itself, where there are none."""
    axes = tuple(ranges)
    return UOp(Ops.REDUCE, value.dtype, (value, *axes), combines) if axes else value


def wmma(a: UOp, b: UOp, elements: UOp, closes: Iterable[UOp], core: TensorCore) -> UOp:
    """Return the product of two tiles of a warp. `elements` is the axis of the result's elements
    that a lane holds; `closes` are the axes of the operands' elements that it holds."""
    return UOp(Ops.WMMA, core.accumulator, (a, b, elements, *closes), core)


def exchange(rows: UOp, elements: UOp, closes: UOp, before: Fragment, after: Fragment) -> UOp:
    """Return a tile of a warp in another layout. A lane gives the elements of a row, along the axis
    `closes`, and gets those of its fragment, along `elements`."""
    return UOp(Ops.EXCHANGE, rows.dtype, (rows, elements, closes), (before, after))


def reduce_axis(value: UOp, axes: Shape, combines: Ops) -> UOp:
    """Return a tensor-level value combined over `axes`, which keep size 1."""
    return UOp(Ops.REDUCE_AXIS, value.dtype, (value,), (combines, axes))


def contiguous(value: UOp, opts: tuple[Any, ...] | None = None) -> UOp:
    """Return a tensor-level value that is stored; `opts` are the rows of its kernel's opts, None
    for those that realization chooses."""
    return UOp(Ops.CONTIGUOUS, value.dtype, (value,), opts)


def in_order(kernel: UOp, order: Iterable[str]) -> UOp:
    """Return a kernel with its loops in `order`, outermost first."""
    return kernel.replace(arg=kernel.arg._replace(order=tuple(order)))


# --------------------------------------------------------------------------------------------------
# Constants: the neutral element of each combining op, and constants of a shape. EXPAND(CONST) is
# one value at every point, and needs no memory.


def identity(combines: Ops, dtype: DType) -> UOp:
    """Return the start value of an accumulator of ADD, MUL, MAX or MIN."""
    return UOp.const(dtype, REDUCTIONS[combines].identity(dtype))


def full(shape: tuple[int, ...], value: UOp) -> UOp:
    """Return the constant `value` at every point of `shape`."""
    return value if shape == () else UOp(Ops.EXPAND, value.dtype, (value,), shape)


def constant_of(node: UOp) -> UOp | None:
    """Return the CONST that is a node's value at every point, or None."""
    if node.op is Ops.EXPAND and node.src[0].op is Ops.CONST:
        return node.src[0]
    return node if node.op is Ops.CONST else None


def is_known(node: UOp) -> bool:
    """Whether a value is a constant under movement ops, CAST and DETACH: it needs no kernel."""
    while node.op in MOVEMENT or node.op in (Ops.CAST, Ops.DETACH):
        node = node.src[0]
    return node.op is Ops.CONST
