"""The arguments of a function that writes a kernel: indexable memory of each tensor, and its axes.

    def row_sum(out, x):
        i, k = out.axis(0), x.axis(1)
        out[i] = x[i, k].reduce(k)

Nothing runs: `x[i, k]` is a LOAD, and `out[i] = ...` a STORE in the loops of its axes.

Sections: The arguments of a function that writes a kernel; The IR and the slots of a kernel that
a user wrote as a function, as IR text, or as C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.backends.device import Device
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import ParseError, VerifyError, plural, shape_text
from workbench.execution.buffers import allocated, is_absent
from workbench.ir.nest.loops import kinds
from workbench.ir.node import construct
from workbench.ir.node.construct import identity
from workbench.ir.node.exact_range import exact_range
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import KernelInfo, UOp, gated
from workbench.ir.node.views import Shape
from workbench.ir.schedule.access import flatten
from workbench.ir.schedule.build import named
from workbench.ir.schedule.plan import base
from workbench.ir.text.printer import to_text
from workbench.ir.verify.tensor import custom_kernel, kernel_of
from workbench.tensor.base import Base
from workbench.tensor.custom.source import Operand, SlotLayout, is_source, laid_out, source_layout
from workbench.tensor.operands.arguments import (
    axis_error,
    dtype_error,
    shape_error,
    short,
    where,
    whole,
)

# --------------------------------------------------------------------------------------------------
# The arguments of a function that writes a kernel.


@dataclass(slots=True)
class Draft:
    """A kernel that a function is writing: its axes in loop order, and its stores. `empty` has the
    axes without elements."""

    axes: list[UOp] = field(default_factory=list)
    stores: list[UOp] = field(default_factory=list)
    empty: set[UOp] = field(default_factory=set)

    def loop(self, steps: int) -> UOp:
        """Return a new axis, inside of those before it."""
        # An empty axis has two steps here: an axis of one would be simplified away.
        axis = UOp.range(steps or 2, f"g{len(self.axes)}", AxisType.GLOBAL)
        self.axes.append(axis)
        if not steps:
            self.empty.add(axis)
        return axis

    def kernel(self, name: str) -> UOp | None:
        """Return the SINK; None if no store has an element to write."""
        stores = [
            s
            for s in map(self._with_identities, self.stores)
            if s.place.param.length and not s.ranges & self.empty
        ]
        if self.stores and not stores:
            return None
        used = set(UOp.sink(*stores).toposort())
        order = [axis for axis in self.axes if axis in used]
        outer = [[axis for axis in order if axis in store.ranges] for store in stores]
        ends = [construct.end(s, axes) for s, axes in zip(stores, outer, strict=True)]
        written = {axis for axes in outer for axis in axes}
        changes = {
            axis: UOp.range(axis.extent, axis.axis_name, AxisType.REDUCE)
            for axis in order
            if axis not in written
        }
        info = KernelInfo(name, tuple([axis.axis_name for axis in order]))
        draft = UOp.sink(*ends, arg=info).substitute(changes)
        if not stores:
            return draft
        kernel = named(kinds(draft))
        return kernel.replace(arg=kernel.arg._replace(name=name))

    def _with_identities(self, store: UOp) -> UOp:
        """Return `store` with each reduction over no elements replaced by its identity."""
        reductions = [n for n in store.toposort() if n.op is Ops.REDUCE]
        return store.substitute(
            {
                node: identity(node.combines, node.dtype)
                for node in reductions
                if self.empty.intersection(node.src[1:])
            }
        )


class KernelArgument:
    """An argument of a kernel that a function writes.

    `axis(dim)` makes a loop over an axis, `loop(n)` a loop of n steps; a later loop is inside.
    `arg[i, j]` reads an element, with its value before the kernel. `arg.read(i, j,
    where=condition)` reads 0 where the condition is false: there the index may be outside.
    `arg[i, j] = value` writes an element. An index is an integer, an axis, or arithmetic on these.
    """

    def __init__(self, draft: Draft, slot: int, shape: Shape, dtype: DType, size: int):
        self._draft, self.slot = draft, slot
        self.shape, self.dtype, self.size = shape, dtype, size
        self._memory = construct.param(dtype, slot, size)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __repr__(self) -> str:
        return f"<argument {self.slot} of a kernel: {self.dtype} {self.shape}>"

    def axis(self, dim: int = 0) -> UOp:
        """Return a new loop over axis `dim`. Errors: AxisError where there is none."""
        place = whole(dim, "dim of an axis")
        if not -self.ndim <= place < self.ndim:
            raise axis_error(
                f"argument {self.slot} has no axis {place}",
                f"its shape is {self.shape}",
                f"an axis from {-self.ndim} to {self.ndim - 1}" if self.ndim else "loop(1)",
            )
        return self._draft.loop(self.shape[place])

    def loop(self, steps: int) -> UOp:
        """Return a new loop of `steps` steps."""
        return self._draft.loop(whole(steps, "steps of a loop", least=0))

    def __getitem__(self, index: Any) -> UOp:
        return construct.load(self._place(index))

    def read(self, *index: Any, where: UOp) -> UOp:
        """Return the element at `index` if the condition `where` is true, else 0: the index may
        then be outside. Errors: DTypeError for a condition that is not bool."""
        if not isinstance(where, UOp) or not where.dtype.is_bool:
            raise dtype_error(
                f"where = {short(where)} is not a condition",
                "an element is read where a bool of axes and elements holds",
                "x.read(i - 1, where=i >= 1)",
            )
        return construct.load(self._place(index, where))

    def __setitem__(self, index: Any, value: Any) -> None:
        place = self._place(index)
        if isinstance(value, bool | int | float):
            value = place.like(value)
        if not isinstance(value, UOp) or value.dtype is not self.dtype:
            kind = value.dtype if isinstance(value, UOp) else type(value).__name__
            raise dtype_error(
                f"cannot write {short(value)} to argument {self.slot} of a kernel",
                f"it holds {self.dtype}, and this is {kind}",
                f".cast(dtypes.{self.dtype})" if isinstance(value, UOp) else "a number",
            )
        self._draft.stores.append(construct.store(place, value))

    def _place(self, index: Any, where: UOp | None = None) -> UOp:
        indexes = index if isinstance(index, tuple) else (index,)
        if len(indexes) != self.ndim:
            raise shape_error(
                f"argument {self.slot} has {self.ndim} axes, and not {len(indexes)}",
                f"its shape is {self.shape}, and an element has an index for each axis",
                f"an index of {plural(self.ndim, 'loop')}",
            )
        each = [self._index(i, axis) for axis, i in enumerate(indexes)]
        if where is None:
            for axis, one in enumerate(each):
                self._check(one, axis)
        flat = flatten(tuple(each), self.shape)
        flat = flat if where is None else gated(flat, where)
        place: UOp = construct.index(self._memory, flat)
        return place

    def _index(self, position: Any, axis: int) -> UOp:
        if isinstance(position, int) and not isinstance(position, bool):
            position = UOp.index(position)
        if not isinstance(position, UOp) or not (
            position.dtype.is_int or position.dtype is dtypes.index
        ):
            raise dtype_error(
                f"{short(position)} is not an index",
                f"argument {self.slot} is indexed by integers and axes",
                f"i = x.axis({axis})",
            )
        index: UOp = position.cast(dtypes.index)
        return index

    def _check(self, index: UOp, axis: int) -> None:
        size = self.shape[axis]
        if self._draft.empty & index.ranges:
            return
        low, high = exact_range(index)
        if low < 0 or high >= size:
            raise axis_error(
                f"an index of argument {self.slot} leaves its axis {axis}",
                f"it is in {low}..{high}, and {shape_text(self.shape)} has {size} there",
                f".max(0).min({max(0, size - 1)}) of it, or .read(.., where=..)",
            )


# --------------------------------------------------------------------------------------------------
# The IR and the slots of a kernel that a user wrote as a function, as IR text, or as C.

KernelFunction = Callable[..., UOp | str | None]


def layout_of(fxn: KernelFunction | str, tensors: Sequence[Base]) -> SlotLayout | None:
    """Return the kernel for `tensors` with its outputs first; None where these have no elements.

    Errors: DTypeError for what is not a kernel; else as `custom_kernel` of a tensor.
    """
    operands = [Operand(t.shape, t.dtype) for t in tensors]
    name = getattr(fxn, "__name__", "of this text").strip("<>")
    try:
        layout = _layout(fxn, name, operands, tensors)
        if layout is not None:
            name = str(layout.kernel.arg.name)
            custom_kernel(to_text(layout.kernel))
        return layout
    except (VerifyError, ParseError) as error:
        error.what = f"the kernel {name} is not valid: {error.what}"
        place = error.where
        if place:
            error.because = f"{error.because}: {place}" if error.because else place
        error.where = where()
        raise


def _layout(
    fxn: KernelFunction | str, name: str, operands: Sequence[Operand], tensors: Sequence[Base]
) -> SlotLayout | None:
    draft = Draft()
    kernel: Any = fxn
    if callable(fxn):
        arguments = [
            KernelArgument(draft, slot, o.shape, o.dtype, o.size) for slot, o in enumerate(operands)
        ]
        kernel = fxn(*arguments)
    if isinstance(kernel, str) and is_source(kernel):
        named = next((t._device for t in tensors if t._device), Device.DEFAULT)
        empty = [slot for slot, t in enumerate(tensors) if _is_empty(t.uop)]
        return source_layout(kernel, Device[named], operands, empty)
    if isinstance(kernel, str):
        kernel = kernel_of(kernel)
    elif kernel is None and draft.stores:
        kernel = draft.kernel(name)
        if kernel is None:
            return None
    if not isinstance(kernel, UOp) or kernel.op is not Ops.SINK:
        raise dtype_error(
            f"custom_kernel: {short(kernel)} is not a kernel",
            "fxn is text, or a function that writes to its arguments or returns a SINK",
            "def add(out, x, y): i = out.axis(0); out[i] = x[i] + y[i]",
        )
    if isinstance(kernel.arg, KernelInfo):
        name = kernel.arg.name
    if any(n.op is Ops.EXTERN for n in kernel.toposort()):
        raise ParseError(
            "its source text is missing",
            "the IR of a kernel in another language only names its memory",
            "the source text itself",
        )
    return laid_out(kernel, name, operands)


def _is_empty(node: UOp) -> bool:
    memory = base(node)
    is_memory = memory.op is Ops.BUFFER and not is_absent(memory)
    return is_memory and allocated(memory) is None
