"""Repeated elements and circular shifts: repeats, rolls, windows, grids."""

from __future__ import annotations

from typing import Any, Self

from workbench.tensor.base import Base
from workbench.tensor.movement.joining import arguments
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.movement.windows import Window, along
from workbench.tensor.operands.arguments import listed, short, text, whole
from workbench.tensor.operands.axes import one_axis, sizes, with_named
from workbench.tensor.operands.broadcast import expanded
from workbench.tensor.operands.refuse import dtype_error, shape_error


class Repetition(Base):
    """repeat, repeat_interleave, roll, unfold, meshgrid."""

    __slots__ = ()

    def repeat(self, *repeats: Any, **named: Any) -> Self:
        """Return the tensor `repeats[i]` times after itself along axis i.

        Shapes: more numbers than axes add leading axes, as in PyTorch.
        Errors: ShapeError for fewer numbers than axes. Also known as: numpy tile.
        """
        times = sizes(with_named(repeats, named, "repeat", "repeats"), "repeat")
        if len(times) < self.ndim:
            raise shape_error(
                f"cannot repeat shape {self.shape} by {short(times)}",
                f"there are {len(times)} numbers for {self.ndim} axes",
                f"repeat{(1,) * (self.ndim - len(times)) + times}",
            )
        shape = (1,) * (len(times) - self.ndim) + self.shape
        ones = [size for n in shape for size in (1, n)]
        beside = [size for pair in zip(times, shape, strict=True) for size in pair]
        wide = expanded(reshaped(self.uop, tuple(ones)), tuple(beside))
        whole = tuple(t * n for t, n in zip(times, shape, strict=True))
        return self._with(reshaped(wide, whole))

    def repeat_interleave(self, repeats: int, dim: int | None = None) -> Self:
        """Return the tensor with each element of axis `dim` repeated in place.

        Shapes: None for `dim` flattens first. Also known as: numpy repeat.
        """
        if dim is None:
            return self.flatten().repeat_interleave(repeats, 0)
        times = whole(repeats, "repeat_interleave: repeats", 0)
        axis = one_axis(dim, self.ndim, "repeat_interleave")
        before, size = self.shape[:axis], self.shape[axis : axis + 1] or (1,)
        after = self.shape[axis + 1 :]
        with_one = reshaped(self.uop, (*before, *size, 1, *after))
        wide = expanded(with_one, (*before, *size, times, *after))
        return self._with(reshaped(wide, (*before, size[0] * times, *after)))

    def roll(self, shifts: Any, dims: Any = None) -> Self:
        """Return the tensor with the elements of each axis of `dims` moved `shifts` places on;
        what leaves at the end comes in at the start.

        Shapes: None for `dims` rolls the elements in row-major order.
        Errors: ShapeError unless there is a shift for each axis.
        """
        if dims is None:
            flat = self.reshape(-1) if self.numel() else self.reshape(0)
            return flat.roll(_one("roll: shifts", shifts), 0).reshape(self.shape)
        amounts = _numbers("roll: shifts", shifts)
        axes = [one_axis(d, self.ndim, "roll") for d in _numbers("roll: dims", dims)]
        if len(amounts) != len(axes):
            raise shape_error(
                f"cannot roll shape {self.shape} by {short(shifts)} along {short(dims)}",
                f"there are {len(amounts)} shifts and {len(axes)} axes",
                "a shift for each axis",
            )
        result = self
        for amount, axis in zip(amounts, axes, strict=True):
            result = result._rolled(amount, axis)
        return result

    def unfold(self, dim: int, size: int, step: int) -> Self:
        """Return windows of `size` elements along axis `dim`, one every `step` elements, as a view:
        only windows that do not overlap can be written to.

        Shapes: the axis counts the windows, and a last axis is added for their elements.
        Errors: ShapeError if `size` is larger than the axis, or `step` below 1.
        """
        axis = one_axis(dim, self.ndim, "unfold")
        value = self.uop if self.ndim else reshaped(self.uop, (1,))
        length = value.shape[axis]
        window = Window(whole(size, "unfold: size", 1), whole(step, "unfold: step", 1), 1, 0, 0)
        if window.size > length:
            raise shape_error(
                f"cannot unfold axis {axis} of shape {self.shape} in windows of {short(size)}",
                f"the axis has {length} elements",
            )
        windows = along(value, axis, window)
        return self._view(windows if self.ndim else reshaped(windows, (window.size,)))

    def meshgrid(*vectors: Self, indexing: str = "ij") -> tuple[Self, ...]:
        """Return for each vector its values along an axis of its own of a grid; all have the grid's
        shape.

        Shapes: with `indexing` "xy" the first two axes are exchanged; a scalar is a vector of one.
        Errors: ShapeError for tensors of more axes.
        """
        if text(indexing, "meshgrid: indexing") not in ("ij", "xy"):
            raise dtype_error(
                f"cannot make a grid with indexing={indexing!r}",
                'it is "ij", matrix-like, or "xy", Cartesian',
            )
        parts: list[Any] = arguments(vectors, "meshgrid")
        maker: Any = next((part for part in parts if isinstance(part, Base)), None)
        if maker is None:
            raise dtype_error(
                f"cannot meshgrid {type(parts[0]).__name__} {short(parts[0])}",
                "none of the arguments is a tensor",
                "Tensor.meshgrid(a, b)",
            )
        lines: list[Any] = [maker._lift(part, "meshgrid") for part in parts]
        wrong = next((v for v in lines if v.ndim > 1), None)
        if wrong is not None:
            raise shape_error(
                f"cannot make a grid of a tensor of shape {wrong.shape}",
                "its axes are made of vectors and scalars",
                ".flatten()",
            )
        order = list(range(len(lines)))
        if indexing == "xy" and len(order) > 1:
            order[:2] = 1, 0
        grid = [1] * len(order)
        for vector, axis in zip(lines, order, strict=True):
            grid[axis] = vector.numel()
        return tuple(
            vector.reshape(*(-1 if i == axis else 1 for i in range(len(grid)))).expand(grid)
            for vector, axis in zip(lines, order, strict=True)
        )

    def _rolled(self, amount: int, axis: int) -> Self:
        size = self.shape[axis] if self.ndim else 1
        start = -amount % size if size else 0
        if not start:
            return self._with(self.uop)
        twice = self.repeat(*(2 if i == axis else 1 for i in range(self.ndim)))
        box = [None] * self.ndim
        return twice.shrink(
            [(start, start + size) if i == axis else none for i, none in enumerate(box)]
        )


def _one(name: str, value: Any) -> int:
    numbers = _numbers(name, value)
    if len(numbers) != 1:
        raise shape_error(
            f"{name}: {short(value)} does not fit",
            "without dims there is one number for all elements",
            "dims, an axis for each",
        )
    return numbers[0]


def _numbers(name: str, value: Any) -> tuple[int, ...]:
    """Return one integer, or several, as a tuple."""
    many = isinstance(value, list | tuple)
    return tuple(whole(n, name) for n in (listed(value, name) if many else (value,)))
