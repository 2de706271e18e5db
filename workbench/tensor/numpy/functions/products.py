"""Products of vectors and matrices, norms, and sums of products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.tensor.lazily import refuse_to_compute
from workbench.tensor.numpy.functions.movement import axis_of, diagonal, moved_to
from workbench.tensor.numpy.functions.reasons import LAPACK, hint_of
from workbench.tensor.numpy.functions.table import T, row
from workbench.tensor.numpy.promotion import as_tensor, common_kind, kind_of_dtype
from workbench.tensor.numpy.ufuncs import call, reduce
from workbench.tensor.operands.arguments import dtype_error, shape_error


@row("dot")
def dot(a: Any, b: Any, beside: T = None) -> T:
    x, y = as_tensor(a, beside), as_tensor(b, beside)
    if x.ndim == 0 or y.ndim == 0:
        return call("multiply", x, y)
    return tensordot(x, y, ([x.ndim - 1], [max(y.ndim - 2, 0)]))


@row("vdot")
def vdot(a: Any, b: Any, beside: T = None) -> T:
    return dot(as_tensor(a, beside).reshape(-1), as_tensor(b, beside).reshape(-1))


@row("inner")
def inner(a: Any, b: Any, beside: T = None) -> T:
    x, y = as_tensor(a, beside), as_tensor(b, beside)
    if x.ndim == 0 or y.ndim == 0:
        return call("multiply", x, y)
    return tensordot(x, y, ([x.ndim - 1], [y.ndim - 1]))


@row("outer")
def outer(a: Any, b: Any, beside: T = None) -> T:
    x, y = as_tensor(a, beside).reshape(-1, 1), as_tensor(b, beside).reshape(1, -1)
    return call("multiply", x, y)


@row("linalg.outer")
def vector_outer(x1: Any, x2: Any, beside: T = None) -> T:
    x, y = as_tensor(x1, beside), as_tensor(x2, beside)
    if x.ndim != 1 or y.ndim != 1:
        raise shape_error(
            "np.linalg.outer takes vectors",
            f"they have {x.ndim} and {y.ndim} axes",
            "np.outer, which flattens both",
        )
    return outer(x, y)


@row("linalg.matmul")
def matmul(x1: Any, x2: Any) -> T:
    return call("matmul", x1, x2)


@row("linalg.vecdot")
def vecdot(x1: Any, x2: Any, axis: int = -1) -> T:
    return call("vecdot", x1, x2, axis=axis)


@row("tensordot", "linalg.tensordot")
def tensordot(a: Any = None, b: Any = None, axes: Any = 2, beside: T = None, x1: Any = None,
              x2: Any = None) -> T:  # fmt: skip
    x, y = as_tensor(x1 if a is None else a, beside), as_tensor(x2 if b is None else b, beside)
    mine, theirs = _paired_axes(axes, x.ndim, y.ndim)
    if [x.shape[i] for i in mine] != [y.shape[i] for i in theirs]:
        raise shape_error(
            f"cannot multiply shapes {x.shape} and {y.shape} along axes {mine} and {theirs}",
            "the axes that are summed over have equal sizes",
            "other axes, or a transposed operand",
        )
    kept, others = ([i for i in range(t.ndim) if i not in axes] for t, axes in
                    ((x, mine), (y, theirs)))  # fmt: skip
    shape = [x.shape[i] for i in kept] + [y.shape[i] for i in others]
    count = math.prod(x.shape[i] for i in mine)
    left = (
        x.permute(*kept, *mine).reshape(math.prod(shape[: len(kept)]), count)
        if x.ndim
        else (x.reshape(1, 1))
    )
    right = (
        y.permute(*theirs, *others).reshape(count, math.prod(shape[len(kept) :]))
        if (y.ndim)
        else y.reshape(1, 1)
    )
    return call("matmul", left, right).reshape(*shape)


def _paired_axes(axes: Any, left: int, right: int) -> tuple[list[int], list[int]]:
    if isinstance(axes, int | np.integer):
        count = int(axes)
        return list(range(left - count, left)), list(range(count))
    both = [each if isinstance(each, tuple | list) else [each] for each in axes]
    return [axis_of(i, left) for i in both[0]], [axis_of(i, right) for i in both[1]]


@row("einsum")
def einsum(*operands: Any, dtype: Any = None, beside: T, out: Any = None, optimize: Any = False,
           order: str = "K", casting: str = "safe") -> T:  # fmt: skip
    formula, *arrays = operands
    if out is not None:
        raise dtype_error(
            "np.einsum: out is not computed for Tensors",
            "a Tensor is an expression",
            "the result of np.einsum without out",
        )
    if not isinstance(formula, str):
        raise dtype_error(
            "np.einsum with lists of axes is not computed for Tensors",
            "the formula is text here",
            'np.einsum("ij,jk->ik", a, b)',
        )
    kind = common_kind(*arrays) if dtype is None else kind_of_dtype(dtype)
    wide = dtypes.int64 if kind.is_bool else kind
    tensors = [as_tensor(each, beside).cast(wide) for each in arrays]
    result = type(beside).einsum(formula, *tensors, dtype=wide)
    return result.ne(0) if kind.is_bool else result.cast(kind)


@row("kron")
def kron(a: Any, b: Any, beside: T = None) -> T:
    x, y = as_tensor(a, beside), as_tensor(b, beside)
    ndim = max(x.ndim, y.ndim)
    x, y = (t.reshape(*(1,) * (ndim - t.ndim), *t.shape) for t in (x, y))
    left = [n for size in x.shape for n in (size, 1)]
    right = [n for size in y.shape for n in (1, size)]
    both = call("multiply", x.reshape(*left), y.reshape(*right))
    return both.reshape(*[m * n for m, n in zip(x.shape, y.shape, strict=True)])


@row("cross")
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None,
          beside: T = None) -> T:  # fmt: skip
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = as_tensor(a, beside), as_tensor(b, beside)
    x, y = (moved_to(t, axis_of(i, t.ndim), t.ndim - 1) for t, i in ((x, axisa), (y, axisb)))
    if x.shape[-1] != 3 or y.shape[-1] != 3:
        raise shape_error(
            f"np.cross of vectors of {x.shape[-1]} and {y.shape[-1]} elements",
            "it is for vectors of 3",
            "vectors of 3 elements along the axis that axisa and axisb name",
        )
    parts = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        plus = call("multiply", x[..., j], y[..., k])
        parts.append(call("subtract", plus, call("multiply", x[..., k], y[..., j])).unsqueeze(-1))
    result = parts[0].cat(*parts[1:], dim=-1)
    return moved_to(result, result.ndim - 1, axis_of(axisc, result.ndim))


@row("linalg.cross")
def linalg_cross(x1: Any, x2: Any, axis: int = -1, beside: T = None) -> T:
    return cross(x1, x2, axis=axis, beside=beside)


@row("trace")
def trace(a: T, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> T:
    return reduce("add", diagonal(a, offset, axis1, axis2), -1, dtype)


@row("linalg.trace")
def matrix_trace(x: T, offset: int = 0, dtype: Any = None) -> T:
    return trace(x, offset, -2, -1, dtype)


@row("linalg.multi_dot")
def multi_dot(arrays: Any, beside: T = None) -> T:
    first, *others = [as_tensor(each, beside) for each in arrays]
    if not others:
        raise shape_error(
            "np.linalg.multi_dot of one array", "a product has two or more", "the array itself"
        )
    for each in others:
        first = dot(first, each)
    return first


@row("linalg.matrix_power")
def matrix_power(a: T, n: int) -> T:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise shape_error(
            f"a power of matrices of shape {a.shape}",
            "they are square",
            "a matrix of as many rows as columns",
        )
    if n < 0:
        what = "a negative power of a matrix needs its inverse"
        refuse_to_compute(what, LAPACK, hint_of("linalg.inv"))
        return as_tensor(np.linalg.matrix_power(a.numpy(), n), a)
    if n == 0:
        unit = as_tensor(np.eye(a.shape[-1]), a).cast(a.dtype)
        return unit.expand(*a.shape)
    result, square = None, a
    while True:
        if n & 1:
            result = square if result is None else call("matmul", result, square)
        n >>= 1
        if not n:
            return result
        square = call("matmul", square, square)


# norms


@row("linalg.norm")
def norm(x: T, ord: Any = None, axis: Any = None, keepdims: bool = False) -> T:
    x = x if x.dtype.is_float else x.cast(dtypes.float64)
    if axis is None and (ord is None or (ord in ("f", "fro") and x.ndim == 2) or
                         (ord == 2 and x.ndim == 1)):  # fmt: skip
        length = x.square().sum(dtype=x.dtype).sqrt()
        return length.reshape(*(1,) * x.ndim) if keepdims else length
    axes = tuple(range(x.ndim)) if axis is None else axis
    axes = axes if isinstance(axes, tuple | list) else (axes,)
    axes = tuple(axis_of(each, x.ndim) for each in axes)
    if len(axes) == 1:
        return _vector_norm(x, axes[0], 2 if ord is None else ord, keepdims)
    if len(axes) == 2 and axes[0] != axes[1]:
        return _matrix_norm(x, axes, ord, keepdims)
    raise shape_error(
        f"np.linalg.norm over the axes {axes}",
        "it is of vectors and matrices",
        "one axis, or two different ones",
    )


def _vector_norm(x: T, axis: Any, ord: Any, keepdims: bool) -> T:
    size = x.abs()
    if ord == math.inf:
        return size.max(axis, keepdims)
    if ord == -math.inf:
        return size.min(axis, keepdims)
    if isinstance(ord, str):
        raise shape_error(
            f"np.linalg.norm: ord={ord!r} of a vector",
            "a vector's is a number",
            "ord=2, or math.inf",
        )
    if ord == 0:
        return x.ne(0).cast(x.dtype).sum(axis, keepdims, x.dtype)
    if ord == 1:
        return size.sum(axis, keepdims, x.dtype)
    if ord == 2:
        return x.square().sum(axis, keepdims, x.dtype).sqrt()
    return size.pow(float(ord)).sum(axis, keepdims, x.dtype).pow(1.0 / ord)


def _matrix_norm(x: T, axes: tuple[int, int], ord: Any, keepdims: bool) -> T:
    if ord is None or ord in ("f", "fro"):
        return x.square().sum(axes, keepdims, x.dtype).sqrt()
    if ord not in (1, -1, math.inf, -math.inf):
        what = f"ord={ord!r} of a matrix needs its singular values"
        refuse_to_compute(what, LAPACK, hint_of("linalg.norm"))
        return as_tensor(np.linalg.norm(x.numpy(), ord, axes, keepdims), x)
    rows, columns = axes if abs(ord) == 1 else axes[::-1]
    totals = x.abs().sum(rows, True, x.dtype)
    result = totals.max(columns, True) if ord > 0 else totals.min(columns, True)
    shape = [n for i, n in enumerate(result.shape) if keepdims or i not in axes]
    return result.reshape(*shape)


@row("linalg.vector_norm")
def vector_norm(x: T, axis: Any = None, ord: Any = 2, keepdims: bool = False) -> T:
    x = x if x.dtype.is_float else x.cast(dtypes.float64)
    if axis is None:
        length = _vector_norm(x.reshape(-1), 0, ord, False)
        return length.reshape(*(1,) * x.ndim) if keepdims else length
    return _vector_norm(x, axis, ord, keepdims)


@row("linalg.matrix_norm")
def matrix_norm(x: T, ord: Any = "fro", keepdims: bool = False) -> T:
    x = x if x.dtype.is_float else x.cast(dtypes.float64)
    return _matrix_norm(x, (x.ndim - 2, x.ndim - 1), ord, keepdims)
