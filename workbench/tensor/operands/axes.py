"""Axes and shapes in all their notations: negative, missing, one or many; counting; opts.

Sections: Axes and shapes in all their notations; Counting; Opts in tensor code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape, addressable
from workbench.ir.opt.opt import Opt, OptKind
from workbench.tensor.operands.arguments import (
    axis_error,
    dtype_error,
    keyword_error,
    listed,
    shape_error,
    short,
)
from workbench.tensor.operands.broadcast import cast_to, expanded

# --------------------------------------------------------------------------------------------------
# Axes and shapes in all their notations.

Axes = int | Sequence[int] | None


def one_axis(axis: int, ndim: int, what: str, extra: int = 0) -> int:
    """Return `axis` counted from 0. A scalar has the axes 0 and -1, as in PyTorch.

    Errors: AxisError if there is no such axis, where `extra` more axes are allowed at the end;
    ShapeError for a value that is not an integer.
    """
    count = max(1, ndim + extra)
    axis = int(axis) if isinstance(axis, np.integer) else axis
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise shape_error(
            f"{what}: axis {short(axis)} is not an axis",
            f"an axis is an integer, and this is {type(axis).__name__}",
            f"an axis from {-count} to {count - 1}",
        )
    if not -count <= axis < count:
        raise axis_error(
            f"{what}: axis={short(axis)} is out of range",
            f"the tensor has {ndim} ax{'i' if ndim == 1 else 'e'}s",
            f"an axis from {-count} to {count - 1}",
        )
    return axis % count


def many_axes(axes: Axes, ndim: int, what: str) -> tuple[int, ...]:
    """Return axes in ascending order; None means all. A scalar gives ().

    Errors: AxisError if one does not exist, ShapeError if it is named twice.
    """
    if axes is None:
        return tuple(range(ndim))
    many = isinstance(axes, list | tuple | range | np.ndarray)
    named = listed(axes, what) if many else (axes,)
    numbers = [one_axis(axis, ndim, what) for axis in named]
    if len(set(numbers)) < len(numbers):
        twice = next(axis for axis in numbers if numbers.count(axis) > 1)
        raise shape_error(
            f"{what}: axes {short(tuple(named))} name axis {twice} twice",
            "an axis can be named once",
            f"axis={tuple(dict.fromkeys(numbers))}",
        )
    return tuple(sorted(numbers)) if ndim else ()


def flat(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `f(2, 3)` and `f((2, 3))` alike, as (2, 3); numpy's integers as Python's."""
    if len(args) == 1 and isinstance(args[0], list | tuple):
        args = tuple(args[0])
    return tuple(int(n) if isinstance(n, np.integer) else n for n in args)


def with_named(
    args: tuple[Any, ...], named: dict[str, Any], what: str, *names: str
) -> tuple[Any, ...]:
    """Return `args`, or the argument named as one of `names`: `f(2, 3)` is `f(shape=(2, 3))`.

    Errors: DTypeError for another name, TypeError for arguments of both kinds.
    """
    if not named:
        return args
    (name, *more) = named
    if name not in names or more or args:
        wrong = next((n for n in named if n not in names), None)
        if wrong is not None:
            raise keyword_error(what, (wrong, named[wrong]), names)
        raise TypeError(f"{what}() got several values for argument {names[0]!r}")
    return (named[name],)


def sizes(args: tuple[Any, ...], what: str) -> Shape:
    """Return a shape, from one tuple or several arguments.

    Errors: ShapeError if a size is not an integer, or below 0.
    """
    shape = flat(args)
    for size in shape:
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise shape_error(
                f"{what}: {short(shape)} is not a shape",
                f"{short(size)} is not a size: sizes are integers, 0 or more",
                "(2, 3), say; reshape and view alone work out a size of -1",
            )
    return shape


def with_inferred(new: Sequence[Any], old: Shape, what: str = "reshape") -> Shape:
    """Return the shape `new` for a tensor of shape `old`: -1 stands for the size that remains, None
    for the size that the axis has. `what` names the method, for errors.

    Errors: ShapeError if the number of elements differs, or -1 is ambiguous.
    """
    shape = [old[i] if s is None and i < len(old) else s for i, s in enumerate(new)]
    unknown = [i for i, size in enumerate(shape) if is_minus_one(size)]
    if len(unknown) > 1:
        raise shape_error(
            f"cannot reshape {old} to {short(tuple(new))}",
            "only one size can be -1: the others decide it",
            "the size of one of them",
        )
    rest = sizes(([s for i, s in enumerate(shape) if i not in unknown],), what)
    count, product = math.prod(old), math.prod(rest)
    if unknown:
        if product == 0 or count % product:
            raise _cannot_reshape(old, tuple(new), count, product)
        shape[unknown[0]] = count // product
    elif product != count:
        raise _cannot_reshape(old, tuple(new), count, product)
    return tuple(shape)


def is_minus_one(size: object) -> bool:
    """Whether a size is -1, the size that remains."""
    return isinstance(size, int) and size == -1


def _cannot_reshape(old: Shape, new: Sequence[Any], count: int, product: int) -> Exception:
    return shape_error(
        f"cannot reshape {old} to {short(tuple(new))}",
        f"{old} has {count} elements, and the sizes given make {short(product)}"
        + (", which does not divide it" if -1 in new else ""),
        "-1 for one size that is to be worked out, or shrink and pad to change the number",
    )


# --------------------------------------------------------------------------------------------------
# Counting: the node of the values 0, 1, 2, ...


def iota(count: int, dtype: DType | None = None) -> UOp:
    """Return 0, 1, .. count - 1 as `dtype` (None: that of `position_dtype`), of shape (count,).

    Errors: ShapeError for more than 64-bit integers can count.
    """
    addressable((count,))
    own = position_dtype(count)
    kind = own if dtype is None else dtype
    if count == 0:
        return expanded(UOp.const(kind, 0), (0,))
    return cast_to(UOp(Ops.IOTA, own, (), count), kind)


def position_dtype(count: int) -> DType:
    """Return the dtype of positions among `count`, and of `count` itself: int32, or int64."""
    return dtypes.int32 if count <= dtypes.int32.max else dtypes.int64


# --------------------------------------------------------------------------------------------------
# Opts in tensor code.


def checked_opts(value: Any, name: str) -> tuple[Opt, ...]:
    """Return a list of opts. Errors: DTypeError for anything else."""
    opts = value if isinstance(value, list | tuple) else (None,)
    for opt in opts:
        if not isinstance(opt, Opt) or not isinstance(opt.op, OptKind):
            break
        if not all(type(part) in (str, int, type(None)) for part in (opt.axis, opt.arg)):
            break
    else:
        return tuple(opts)
    raise dtype_error(
        f"{name}: {short(value)} does not fit",
        "it must be a list of opts, whose axes are names or places",
        '[Opt(OptOps.UPCAST, "g0", 4)]',
    )
