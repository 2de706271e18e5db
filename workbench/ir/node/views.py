"""Names for the sources and the arg of a node, op by op. `construct.py` has the constructors that
put them there.

Sections: Names for the sources and the arg of a node, op by op; Shapes of tensor-level values,
derived from op, sources and arg.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, Self

from workbench.base.errors import ShapeError, VerifyError, cut
from workbench.base.source import user_line
from workbench.ir.node.ops import ELEMENTWISE, AxisType, Ops

# --------------------------------------------------------------------------------------------------
# Names for the sources and the arg of a node, op by op.

Space = Literal["register", "scratch", "shared"]
"""Where a DEFINE is: in registers, in memory of its own, or in memory that a work-group shares."""
LoopRole = Literal["chunked", "thread", "grid", "item"]
"""How a launch runs a LOOP: in chunks, one after the other, or with a thread, a work-group or a
work-item per step."""


class WrittenCode(NamedTuple):
    """The arg of an EXTERN: source text in a language, whose function takes the sources in order.
    `starts` are the positions of sources whose memory begins as a copy of other memory; this other
    memory is the last sources, in the same order. `is_foreign` text came from a file, and is never
    run."""

    language: str
    text: str
    starts: tuple[int, ...] = ()
    is_foreign: bool = False


class Views:
    """The parts of a UOp by name. A property is defined for the ops that its docstring names."""

    __slots__ = ()

    op: Ops
    src: tuple[Self, ...]
    arg: Any

    # kernels

    @property
    def stores(self) -> tuple[Self, ...]:
        """The STOREs of a kernel (a SINK), one per END."""
        return tuple([end.store for end in self.src])

    @property
    def outputs(self) -> tuple[int, ...]:
        """The slots that a kernel (a SINK) writes, in order."""
        return tuple(sorted({store.place.param.slot for store in self.stores}))

    @property
    def store(self) -> Self:
        """The STORE of an END, whose loops it closes."""
        return self.src[0]

    @property
    def code(self) -> WrittenCode | None:
        """The source text of a kernel (a SINK) in some language; None for a kernel of IR."""
        values = [store.value for store in self.stores]
        return next((v.arg for v in values if v.op is Ops.EXTERN), None)

    # memory, and the nodes that read and write it

    @property
    def place(self) -> Self:
        """The INDEX at which a LOAD, STORE or ACCUMULATE reads or writes."""
        return self.src[0]

    @property
    def value(self) -> Self:
        """The value that a STORE or ACCUMULATE writes."""
        return self.src[1]

    @property
    def memory(self) -> Self:
        """The memory that an INDEX points into, or that an AFTER orders."""
        return self.src[0]

    @property
    def indexes(self) -> tuple[Self, ...]:
        """The positions of an INDEX, one per dimension of its memory."""
        return self.src[1:]

    @property
    def flat_index(self) -> Self:
        """The only position of an INDEX into a PARAM, with its gate; of other memory, the last."""
        return self.src[-1]

    @property
    def param(self) -> Self:
        """The PARAM, DEFINE or STAGE below an INDEX and any AFTER."""
        node = self
        while node.op in _LEADS_TO_MEMORY:
            node = node.memory
        return node

    @property
    def slot(self) -> int:
        """The number of a PARAM among the arguments of its kernel."""
        return self.arg[0]  # type: ignore[no-any-return]

    @property
    def length(self) -> int:
        """The number of elements of a PARAM."""
        return self.arg[1]  # type: ignore[no-any-return]

    @property
    def memory_shape(self) -> tuple[int, ...]:
        """The dimensions of a STAGE or DEFINE, and of a PARAM, which has one."""
        return (self.length,) if self.op is Ops.PARAM else self.arg[1]

    @property
    def buffers(self) -> int:
        """The number of tiles that a STAGE or DEFINE holds; they are filled in turn."""
        if self.op is Ops.STAGE:
            return self.arg[2] if len(self.arg) > 2 else 1
        return self.arg.buffers  # type: ignore[no-any-return]

    @property
    def buffer_shape(self) -> tuple[int, ...]:
        """The shape of a BUFFER."""
        return self.arg[2]  # type: ignore[no-any-return]

    @property
    def device(self) -> str:
        """The device of the memory of a BUFFER, or the target of a COPY."""
        return self.arg if self.op is Ops.COPY else self.arg[1]  # type: ignore[no-any-return]

    @property
    def name(self) -> str:
        """The name of a STAGE, DEFINE, REG, VAR or CUSTOM; a RANGE's is `axis_name`, too."""
        return self.arg[0]  # type: ignore[no-any-return]

    @property
    def output(self) -> int:
        """Which output of its kernel a CUSTOM is."""
        return self.arg[1]  # type: ignore[no-any-return]

    @property
    def output_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of all outputs of the kernel of a CUSTOM."""
        return self.arg[2]  # type: ignore[no-any-return]

    @property
    def kernel_text(self) -> str:
        """The kernel of a CUSTOM as IR text: its outputs have the first slots."""
        return self.arg[3]  # type: ignore[no-any-return]

    @property
    def first_lane(self) -> int:
        """The position in its accumulator from which a REG holds lanes."""
        return self.arg[1]  # type: ignore[no-any-return]

    @property
    def space(self) -> Space:
        """Where a DEFINE is."""
        return self.arg[2]  # type: ignore[no-any-return]

    # statements of lowered kernels

    @property
    def vector(self) -> str | None:
        """The name of the axis along which a STORE or ACCUMULATE writes vectors."""
        return self.arg[1] if self.op is Ops.ACCUMULATE else self.arg  # type: ignore[no-any-return]

    @property
    def role(self) -> LoopRole | None:
        """How a launch runs a LOOP (`LaunchShape` has the meanings; None: a plain loop), or what a
        SPECIAL numbers: the groups of a grid, or the items of a group."""
        is_number = self.op is Ops.SPECIAL and self.arg is not None
        return self.arg[0] if is_number else self.arg  # type: ignore[no-any-return]

    @property
    def elements(self) -> Self:
        """The axis of the elements that a lane holds of the result of a WMMA or an EXCHANGE, in a
        statement tree."""
        return self.src[2 if self.op.name == "WMMA" else 1]

    @property
    def dimension(self) -> int:
        """The dimension of a launch along which a SPECIAL counts; 0 is the innermost."""
        return self.arg[1]  # type: ignore[no-any-return]

    @property
    def axis(self) -> Self:
        """The RANGE that a LOOP or an ENDLOOP is over, or that a SPECIAL is a step of."""
        return self.src[0]

    @property
    def condition(self) -> Self:
        """The condition of an IF or ENDIF."""
        return self.src[0]

    @property
    def body(self) -> tuple[Self, ...]:
        """The statements in a LOOP, an IF or a BLOCK, in order."""
        return self.src[1:] if self.op in (Ops.LOOP, Ops.IF) else self.src

    # axes and reductions

    @property
    def axis_name(self) -> str:
        """The name of a RANGE."""
        return self.arg[0]  # type: ignore[no-any-return]

    @property
    def axis_kind(self) -> AxisType:
        """The kind of a RANGE."""
        return self.arg[1]  # type: ignore[no-any-return]

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest value of a VAR."""
        return self.arg[1:]  # type: ignore[no-any-return]

    @property
    def combines(self) -> Ops:
        """The operation of a REDUCE, REDUCE_AXIS, HREDUCE or ACCUMULATE."""
        return self.arg[0] if isinstance(self.arg, tuple) else self.arg  # type: ignore[no-any-return]

    @property
    def reduced_axes(self) -> tuple[int, ...]:
        """The axes that a REDUCE_AXIS combines."""
        return self.arg[1]  # type: ignore[no-any-return]


_LEADS_TO_MEMORY = (Ops.INDEX, Ops.AFTER)


# --------------------------------------------------------------------------------------------------
# Shapes of tensor-level values, derived from op, sources and arg.

Shape = tuple[int, ...]
Node = Any  # a UOp: uop.py imports this file, not the other way round

LIMIT = 1 << 63
"""Positions are 64-bit integers: a shape has fewer elements than this."""


def shape_of(node: Node) -> Shape:
    """Return the shape of `node`; its sources' shapes are known.

    A constant has shape () and fits beside any shape; other operands must agree exactly.
    Errors: ShapeError (see `addressable`); VerifyError for operands of different shapes.
    """
    return addressable(_derived(node))


def addressable(shape: Shape) -> Shape:
    """Return `shape`. Errors: ShapeError for more elements than 64-bit positions can number."""
    if math.prod(shape) >= LIMIT or max(shape, default=0) >= LIMIT:
        line = user_line()
        raise ShapeError(
            f"cannot make a tensor of shape {cut(str(shape), 80)}",
            "positions are 64-bit integers, and it has 2**63 elements or more",
            "a smaller shape: of an expression, only what is read needs to fit memory",
            "" if line is None else line.where,
        )
    return shape


def _derived(node: Node) -> Shape:
    op, src = node.op, node.src
    if op is Ops.BUFFER:
        shape: Shape = node.buffer_shape
        return shape
    if op is Ops.IOTA:
        return (node.arg,)
    if op is Ops.CUSTOM:
        own: Shape = node.output_shapes[node.output]
        return own
    if op in (Ops.RESHAPE, Ops.EXPAND):
        target: Shape = node.arg
        return target
    if op in ELEMENTWISE:
        return _elementwise(node)
    if op is Ops.PERMUTE:
        return tuple(src[0].shape[axis] for axis in node.arg)
    if op is Ops.SHRINK:
        return tuple(hi - lo for lo, hi in node.arg)
    if op is Ops.PAD:
        return tuple(n + lo + hi for n, (lo, hi) in zip(src[0].shape, node.arg, strict=True))
    if op is Ops.REDUCE_AXIS:
        axes = node.reduced_axes
        return tuple(1 if i in axes else n for i, n in enumerate(src[0].shape))
    if op in (Ops.FLIP, Ops.CONTIGUOUS, Ops.COPY, Ops.DETACH, Ops.GRADIENT):
        same: Shape = src[0].shape
        return same
    return ()


def _elementwise(node: Node) -> Shape:
    shapes: set[Shape] = {s.shape for s in node.src if not s.is_const}
    if not shapes:
        return ()
    if len(shapes) > 1:
        raise VerifyError(f"{node.op.name} of shapes {sorted(shapes)}", "operands must agree")
    return shapes.pop()
