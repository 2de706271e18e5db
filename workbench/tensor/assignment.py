"""Writing to tensors: assign, the operators that write in place, and `t[...] = value`.

A write gives the memory of a tensor and its views a new version (versions.py). It computes nothing,
except to a file, or to count the true elements of a mask. Expressions that were built before read
the old version. Semantics: tinygrad's and PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeVar

import numpy as np

from workbench.base.errors import plural, type_name
from workbench.base.interrupts import Uninterrupted
from workbench.base.situation import process_changes
from workbench.base.source import derived
from workbench.execution.buffers import have_others_overwritten
from workbench.execution.memory_plan import require_readable, to_numpy
from workbench.execution.realize import realize, running
from workbench.ir.gradient.occurrences import duplicate, with_gradient, without_alias
from workbench.search.realization import tuned
from workbench.tensor.autograd.leaves import gradients_flow, leaf_node, number_of
from workbench.tensor.autograd.origins import depends_on_leaf
from workbench.tensor.base import Base, Operand
from workbench.tensor.files import check_readable, is_file, write
from workbench.tensor.movement.indexing import Gather, TensorIndex
from workbench.tensor.operands.arguments import (
    device_error,
    dtype_error,
    python_scalar,
    shape_error,
    short,
)
from workbench.tensor.operands.axes import iota, position_dtype
from workbench.tensor.operands.broadcast import cast_to, expanded
from workbench.tensor.versions import is_detached, replacements, with_view_written

T = TypeVar("T", bound="Assignment")


def _in_place(operator: str) -> Callable[[T, Operand], T]:
    """Return the operator that writes the result of `operator` to its left operand."""
    return lambda self, x: self.assign(getattr(self, operator)(x))


class Assignment(Gather):
    """assign, +=, `t[index] = value`."""

    __slots__ = ()

    def assign(self, x: Operand | list[Any] | tuple[Any, ...]) -> Self:
        """Write `x` to this tensor, and so to every view of its memory, and return this tensor.

        Shapes: `x` broadcasts to this tensor's. Dtypes: this tensor's; a Python number takes it.
        Errors: ShapeError, DTypeError or DeviceError for an `x` that does not fit; ShapeError for a
        tensor with elements that expand() repeats.
        """
        value = self._value(x, "assign")
        if value.dtype is not self.dtype:
            raise dtype_error(
                f"cannot assign {value.dtype} to a tensor of {self.dtype}",
                "memory has one dtype",
                f".cast(dtypes.{self.dtype}) on the value",
            )
        return self._write(value)

    def replace(self, x: Self) -> Self:
        """Give this tensor the value, device and source lines of `x`, of the same shape, and return
        it. Nothing is written: views that shared its memory keep their values. A leaf stays one.

        Errors: ShapeError for another shape, DTypeError for an `x` that is no tensor.
        """
        if not isinstance(x, Base):
            raise dtype_error(
                f"cannot replace a tensor by {short(x)}",
                f"it must be a tensor, and this is {type_name(type(x))}",
                ".assign(), which takes numbers, too",
            )
        if x.shape != self.shape:
            raise shape_error(
                f"cannot replace a tensor of shape {self.shape}",
                f"the other one has shape {x.shape}",
                f"a tensor of shape {self.shape}",
            )
        number = number_of(self)
        node = leaf_node(number, x.uop) if number else duplicate(x.uop)
        with running, Uninterrupted():
            self._uop = node
            self._device, self.derivation = x._device, x.derivation
            self._memory = self._version = self._expression = None
            replacements.count += 1
            process_changes.count += 1
        return self

    def __setitem__(self, index: TensorIndex | tuple[TensorIndex, ...], x: Any) -> None:
        """Write `x` to the elements that `index` names.

        Shapes: `x` broadcasts to `self[index]`. Dtypes: it is cast to this tensor's. Where an index
        tensor has equal elements, the last one counts. An index out of range writes nothing if its
        tensor is not computed yet; else it is an error.
        Errors: those of `self[index]`; ShapeError or DeviceError for an `x` that does not fit;
        ShapeError for another number of rows in `x` than of true elements in a mask.
        """
        value = self._value(x, "write", broadcast=False)
        if _is_mask(index):
            self._write_masked(index, value)
            return
        view, places = self._located(index)
        if places:
            shape = view._at(places).shape
            value = view._with_elements(places, _to_shape(value, shape))
        view._write(_to_shape(value, view.shape))
        if view.derivation is not None:
            # `view` is gone after this; the lines of what it got are those of this tensor, too
            sources = [self.derivation, view.derivation]
            self.derivation = derived(without_alias(self.uop), sources)

    def _value(self, x: Any, what: str, broadcast: bool = True) -> Self:
        """Return `x` as a tensor on this one's device, and with `broadcast` in its shape."""
        x = python_scalar(x)
        if is_file(self._device) and isinstance(x, list | tuple | np.ndarray):
            x = type(self)(x)  # a file computes nothing: the value is made on a device
        if isinstance(x, list | tuple):
            x = type(self)(x, device=self._device, dtype=self.dtype)
        if isinstance(x, bool | int | float):
            x = self._with(cast_to(self._lift(x, what).uop, self.dtype))
        if not isinstance(x, Base | np.ndarray):
            raise dtype_error(
                f"cannot {what} {type_name(type(x))} {short(x)}",
                "what is written is a tensor, a numpy array, a number or a list of numbers",
                "Tensor([1.0, 2.0])",
            )
        value = self._lift(x, what)
        if value._device not in (None, self.device) and not is_file(self._device):
            raise device_error(
                f"cannot {what} a value on {value.device} to a tensor on {self.device}",
                "memory is on one device",
                f'.to("{self.device}") on the value',
            )
        return _to_shape(value, self.shape) if broadcast else value

    def _write(self, value: Self) -> Self:
        """Make `value`, of this tensor's shape, the value of this tensor and its views."""
        with running:  # wait for a version that another thread computes
            return self._write_version(value)

    def _write_version(self, value: Self) -> Self:
        node = self.uop
        if value.uop is node or not node.size:
            return self
        if is_file(self._device):
            return self._write_file(value)
        self._share(self)
        memory, whole = self._memory, self._version
        assert memory is not None and whole is not None
        written = self._with(cast_to(expanded(value.uop, self.shape), self.dtype), value)
        version = with_view_written(whole, node, written.uop)
        is_recorded = gradients_flow() and not is_detached(node, whole)
        if not is_recorded and not memory.leaf and depends_on_leaf(whole):
            # As in PyTorch, the write changes the values, and gradients flow as before it.
            version = with_gradient(version, [whole], "write", lambda g: [g])
        if have_others_overwritten():
            # The value may read an old version that was written over. Only another thread can do
            # that, and checking each write would cost a training step a seventh of its time.
            require_readable(version)
        with Uninterrupted():
            self._device, self.derivation = written._device, written.derivation
            memory.write(version)
        return self

    def _write_file(self, value: Self) -> Self:
        """Compute a value and write it to the file at once."""
        whole = cast_to(expanded(value.uop, self.shape), self.dtype)
        check_readable([whole])
        (result,) = realize([whole], tuned)
        write(self.uop, to_numpy(result))
        return self

    def _write_masked(self, mask: Any, value: Self) -> None:
        where = type(self)(mask, device=self._device) if not isinstance(mask, Base) else mask
        if where.shape != self.shape[: where.ndim]:
            raise shape_error(
                f"cannot index shape {self.shape} with a mask of shape {where.shape}",
                "a mask has the sizes of the axes that it stands for",
                f"a mask of shape {self.shape}",
            )
        rest = self.shape[where.ndim :]
        if value.ndim > len(rest) and value.shape[-len(rest) - 1 if rest else -1] != 1:
            value = self._spread_over_mask(where, value)
        new = where.reshape(*where.shape, *(1,) * len(rest)).where(
            _to_shape(value.cast(self.dtype), self.shape), self
        )
        self._write(new)  # type: ignore[arg-type]

    def _spread_over_mask(self, mask: Any, value: Self) -> Self:
        """Return a tensor with row n of `value` at the n-th true element of `mask`."""
        count = int(np.asarray(mask.sum()))
        if value.shape[0] != count:
            raise shape_error(
                f"cannot write shape {value.shape} where a mask is true",
                f"it is true at {count} places",
                f"{plural(count, 'row')}, or one that is repeated",
            )
        rest = value.shape[1:]
        if not count:  # nothing is written
            return value.sum(0).expand(*mask.shape, *rest)
        places = mask.flatten().cumsum(0, position_dtype(mask.numel())) - 1
        return value._elements_at(0, places).reshape(*mask.shape, *rest)

    def _with_elements(self, places: list[tuple[int, Any]], value: Self) -> Self:
        """Return this tensor with `value`, of the shape of `self._at(places)`, at `places`.

        Rewrite: an element becomes the last value whose index is its position, if there is one.
        """
        axes, first, index = self._merged(places)
        if not index.numel():
            return self
        count, sizes = index.ndim, [self.shape[a] for a in axes]
        rest = [axis for axis in range(self.ndim) if axis not in axes]
        numbers = list(range(value.ndim))
        front = numbers[first : first + count]
        ordered = value.permute(front + [n for n in numbers if n not in front])
        rows = ordered.reshape(index.numel(), *[self.shape[a] for a in rest])
        moved = self.permute(*axes, *rest)
        if index.numel() == 1:
            is_written = self._with(iota(int(np.prod(sizes)))).eq(index.flatten())
            new_rows = rows.reshape(*(1,) * len(axes), *rows.shape[1:])
        else:
            last = index.flatten()._last_of_equal(int(np.prod(sizes)))
            is_written = last.ge(1)
            new_rows = rows._elements_at(0, last - 1).reshape(moved.shape)
        is_written = is_written.reshape(*sizes, *(1,) * len(rest))
        new = is_written.where(new_rows, moved)
        return new.permute([(axes + rest).index(a) for a in range(self.ndim)])

    def _last_of_equal(self, size: int) -> Self:
        """Return, for each position below `size`, the number, from 1, of the last element of this
        index that equals it; 0 where none does."""
        positions = self._with(iota(size)).reshape(size, 1)
        numbers = self._with(iota(self.numel())) + 1
        same = positions.eq(self.reshape(1, -1))
        return same.where(numbers, 0).max(1) if self.numel() else positions.flatten() * 0

    # operators that write

    __iadd__, __isub__ = _in_place("__add__"), _in_place("__sub__")
    __imul__, __itruediv__ = _in_place("__mul__"), _in_place("__truediv__")
    __ifloordiv__, __imod__ = _in_place("__floordiv__"), _in_place("__mod__")
    __ipow__, __imatmul__ = _in_place("__pow__"), _in_place("__matmul__")
    __iand__, __ior__ = _in_place("__and__"), _in_place("__or__")
    __ixor__ = _in_place("__xor__")
    __ilshift__, __irshift__ = _in_place("__lshift__"), _in_place("__rshift__")


def _to_shape(value: Any, shape: tuple[int, ...]) -> Any:
    """Return `value` broadcast to `shape`. Errors: ShapeError if it does not."""
    if value.shape == shape:
        return value
    wide = value.shape
    while len(wide) > len(shape) and wide[0] == 1:  # as numpy does
        wide = wide[1:]
    pairs = zip(reversed(wide), reversed(shape), strict=False)
    if len(wide) > len(shape) or any(n not in (1, size) for n, size in pairs):
        raise shape_error(
            f"cannot write shape {value.shape} to shape {shape}",
            "sizes are aligned at the last axis, and only size 1 is repeated to fit",
            f"a value of shape {shape}, or a number",
        )
    return value.reshape(wide).expand(shape)


def _is_mask(entry: object) -> bool:
    if isinstance(entry, Base):
        return entry.dtype.is_bool
    if isinstance(entry, list):
        entry = np.asarray(entry)
    return isinstance(entry, np.ndarray) and entry.dtype == bool
