"""Arrays joined, split and stacked; grids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.tensor.base import Base
from workbench.tensor.numpy.functions.movement import atleast_2d, atleast_3d, axis_of, part
from workbench.tensor.numpy.functions.table import T, row
from workbench.tensor.numpy.promotion import as_tensor, common_kind, kind_of_dtype
from workbench.tensor.operands.arguments import shape_error


def joined(arrays: Sequence[Any], axis: int, dtype: Any, beside: T) -> T:
    """Return arrays one after the other along an axis, in their common dtype."""
    kind = common_kind(*arrays) if dtype is None else kind_of_dtype(dtype)
    first, *others = [as_tensor(each, beside).cast(kind) for each in arrays]
    if first.ndim == 0:
        raise shape_error("cannot join scalars along an axis", "they have none", "np.stack")
    return first.cat(*others, dim=axis_of(axis, first.ndim)) if others else first


@row("concatenate")
def concatenate(arrays: Any, axis: Any = 0, dtype: Any = None, beside: T = None) -> T:
    arrays = _listed(arrays)
    if axis is None:
        arrays, axis = [as_tensor(each, beside).reshape(-1) for each in arrays], 0
    return joined(arrays, axis, dtype, beside)


def _listed(arrays: Any) -> list[Any]:
    return [arrays[i] for i in range(len(arrays))] if isinstance(arrays, Base) else list(arrays)  # type: ignore[arg-type]


@row("stack")
def stack(arrays: Any, axis: int = 0, dtype: Any = None, beside: T = None) -> T:
    tensors = [as_tensor(each, beside) for each in _listed(arrays)]
    shapes = {each.shape for each in tensors}
    if len(shapes) > 1:
        raise shape_error(
            f"np.stack of shapes {shapes}",
            "all have one shape",
            "np.concatenate, or arrays of one shape",
        )
    place = axis_of(axis, tensors[0].ndim, 1)
    return joined([each.unsqueeze(place) for each in tensors], place, dtype, beside)


@row("hstack")
def hstack(tup: Any, dtype: Any = None, beside: T = None) -> T:
    tensors = [as_tensor(each, beside) for each in _listed(tup)]
    tensors = [each.reshape(1) if each.ndim == 0 else each for each in tensors]
    return joined(tensors, 0 if tensors[0].ndim == 1 else 1, dtype, beside)


@row("vstack")
def vstack(tup: Any, dtype: Any = None, beside: T = None) -> T:
    return joined([atleast_2d(each, beside=beside) for each in _listed(tup)], 0, dtype, beside)


@row("dstack")
def dstack(tup: Any, beside: T = None) -> T:
    return joined([atleast_3d(each, beside=beside) for each in _listed(tup)], 2, None, beside)


@row("column_stack")
def column_stack(tup: Any, beside: T = None) -> T:
    tensors = [as_tensor(each, beside) for each in _listed(tup)]
    tensors = [each.reshape(-1, 1) if each.ndim < 2 else each for each in tensors]
    return joined(tensors, 1, None, beside)


@row("append")
def append(arr: Any, values: Any, axis: Any = None, beside: T = None) -> T:
    return concatenate([arr, values], axis, beside=beside)


@row("block")
def block(arrays: Any, beside: T = None) -> T:
    depth, most = _depth(arrays), _most_axes(arrays, beside)
    count = max(depth, most)

    def built(part_: Any, level: int) -> T:
        if not isinstance(part_, list):
            x = as_tensor(part_, beside)
            return x.reshape(*(1,) * (count - x.ndim), *x.shape)
        return joined([built(each, level - 1) for each in part_], count - level, None, beside)

    return built(arrays, depth)


def _depth(value: Any) -> int:
    return 1 + _depth(value[0]) if isinstance(value, list) else 0


def _most_axes(value: Any, beside: T) -> int:
    if isinstance(value, list):
        return max(_most_axes(each, beside) for each in value)
    return int(as_tensor(value, beside).ndim)


# splitting


@row("split")
def split(ary: T, indices_or_sections: Any, axis: int = 0) -> list[T]:
    place = axis_of(axis, ary.ndim)
    if isinstance(indices_or_sections, int) and ary.shape[place] % indices_or_sections:
        raise shape_error(
            f"cannot split {ary.shape[place]} elements into {indices_or_sections} equal pieces",
            f"{indices_or_sections} does not divide {ary.shape[place]}",
            "np.array_split",
        )
    return array_split(ary, indices_or_sections, axis)


@row("array_split")
def array_split(ary: T, indices_or_sections: Any, axis: int = 0) -> list[T]:
    place = axis_of(axis, ary.ndim)
    pieces = np.array_split(np.arange(ary.shape[place]), indices_or_sections)
    if isinstance(indices_or_sections, int):
        ends = list(np.cumsum([len(piece) for piece in pieces]))
        return [part(ary, place, int(end) - len(p), int(end)) for p, end in
                zip(pieces, ends, strict=True)]  # fmt: skip
    bounds = [0, *[int(i) for i in indices_or_sections], ary.shape[place]]
    return [part(ary, place, lo, hi) for lo, hi in zip(bounds, bounds[1:], strict=False)]


@row("hsplit")
def hsplit(ary: T, indices_or_sections: Any) -> list[T]:
    return split(ary, indices_or_sections, 0 if ary.ndim == 1 else 1)


@row("vsplit")
def vsplit(ary: T, indices_or_sections: Any) -> list[T]:
    if ary.ndim < 2:
        raise shape_error(
            f"np.vsplit of shape {ary.shape}",
            "it is for 2 axes or more",
            "np.split(ary, parts, axis=0)",
        )
    return split(ary, indices_or_sections, 0)


@row("dsplit")
def dsplit(ary: T, indices_or_sections: Any) -> list[T]:
    if ary.ndim < 3:
        raise shape_error(
            f"np.dsplit of shape {ary.shape}",
            "it is for 3 axes or more",
            "np.split(ary, parts, axis=-1)",
        )
    return split(ary, indices_or_sections, 2)


@row("unstack")
def unstack(x: T, axis: int = 0) -> tuple[T, ...]:
    place = axis_of(axis, x.ndim)
    return tuple(x[(slice(None),) * place + (i,)] for i in range(x.shape[place]))


@row("meshgrid")
def meshgrid(*xi: Any, sparse: bool = False, indexing: str = "xy", copy: bool = True,
             beside: T) -> Any:  # fmt: skip
    count = len(xi)
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[:2] = [1, 0]
    vectors = [as_tensor(each, beside).reshape(-1) for each in xi]
    thin = [
        v.reshape(*[-1 if i == place else 1 for i in range(count)])
        for v, place in zip(vectors, order, strict=True)
    ]
    if sparse:
        return tuple(thin)
    shape = np.broadcast_shapes(*[each.shape for each in thin])
    return tuple(each.expand(shape) for each in thin)
