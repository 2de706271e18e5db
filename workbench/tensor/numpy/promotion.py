"""numpy's promotion: the dtypes in which its ufuncs compute, and values as Tensors of them.

`np.exp(int32)` is float64 and `np.add(int32, float32)` is too, as numpy itself says: a ufunc
resolves its dtypes without values. Tensor's own methods promote otherwise
(`operands/broadcast.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from workbench.base.dtypes import DType, dtypes, promote
from workbench.base.errors import short
from workbench.tensor.base import Base
from workbench.tensor.operands.arguments import dtype_error
from workbench.tensor.operands.literal import as_dtype

Scalar = (bool, int, float)


def is_scalar(value: object) -> bool:
    """Whether a value is a Python number, whose dtype is that of the operands beside it."""
    return type(value) in Scalar


def as_tensor(value: Any, beside: Any) -> Any:
    """Return a Tensor of an array, a list or a number, on the device of the Tensor `beside` it."""
    if isinstance(value, Base):
        return value
    if is_scalar(value):  # as numpy's array of it; the dtype of others comes by a cast
        kind = dtypes.from_numpy(np.asarray(value).dtype)
        return type(beside)(value, dtype=kind)
    return type(beside)(with_values(value), device=beside._device)


def with_values(value: Any) -> Any:
    """Return a value as numpy's array. Errors: DTypeError for a list that has Tensors inside."""
    if isinstance(value, list | tuple) and first_tensor(value) is not None:
        raise dtype_error(
            f"cannot make one array of {short(value)}",
            "it is a list of Tensors, which are expressions",
            "np.stack(list)",
        )
    return np.asarray(value)


def first_tensor(value: Any) -> Any:
    """Return the first Tensor in a value: itself, or one in a list, a tuple or a dict; or None."""
    if isinstance(value, Base):
        return value
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            if (tensor := first_tensor(part)) is not None:
                return tensor
    return None


def kind_of_dtype(dtype: Any) -> DType:
    """Return an argument `dtype` as one of Tensor's.

    Errors: DTypeError for one that Tensors lack, such as a complex one.
    """
    if isinstance(dtype, DType):
        return dtype
    try:
        return dtypes.from_numpy(np.dtype(dtype))
    except (KeyError, TypeError):
        return as_dtype(getattr(dtype, "__name__", None) or str(dtype))


def numpy_kind(value: Any) -> Any:
    """Return the numpy dtype of an operand; the type of a Python int or float, which is weak."""
    if isinstance(value, Base):
        return value.dtype.numpy
    if type(value) in (int, float):
        return type(value)
    return np.dtype(bool) if isinstance(value, bool) else np.asarray(value).dtype


def loop_dtypes(
    ufunc: np.ufunc, operands: Sequence[Any], dtype: Any = None, is_reduction: bool = False
) -> tuple[list[DType], list[DType]]:
    """Return the dtypes in which a ufunc computes its operands, and those of its results.

    Errors: DTypeError where numpy has a TypeError, and for types that Tensors lack.
    """
    kinds = [numpy_kind(operand) for operand in operands]
    foreign = [x.dtype for x in operands if isinstance(x, Base) and not x.dtype.in_numpy]
    if foreign:  # computed in float32, as everywhere; floats of the result have the tensor's dtype
        is_foreign = [isinstance(x, Base) and not x.dtype.in_numpy for x in operands]
        kinds = [
            np.dtype("float32") if flag else k for flag, k in zip(is_foreign, kinds, strict=True)
        ]
    signature = None
    if dtype is not None:
        signature = (None,) * ufunc.nin + (kind_of_dtype(dtype).numpy,) * ufunc.nout
    resolved = _resolved(ufunc, tuple(kinds), signature, is_reduction)
    try:
        own = [dtypes.from_numpy(each) for each in resolved]
    except KeyError as error:
        raise dtype_error(
            f"np.{ufunc.__name__} does not take {_texts(kinds)}",
            f"numpy computes it in {error.args[0]}, which no Tensor has",
            'cast the operands first, as in x.cast("float32")',
        ) from None
    outputs = own[ufunc.nin :]
    if foreign and dtype is None:
        kind = _joined([x.dtype for x in operands if isinstance(x, Base)])
        outputs = [kind if each.is_float else each for each in outputs]
    return own[: ufunc.nin], outputs


@cache
def _resolved(ufunc: np.ufunc, kinds: Any, signature: Any, is_reduction: bool) -> Any:
    asked: Any = (None, kinds[0], None) if is_reduction else (*kinds, *(None,) * ufunc.nout)
    options = {} if signature is None else {"signature": signature}
    try:
        return ufunc.resolve_dtypes(asked, reduction=is_reduction, **options)
    except TypeError as error:
        raise dtype_error(
            f"np.{ufunc.__name__} does not take {_texts(kinds)}",
            str(error).partition("\n")[0].partition(", and the inputs")[0],
            "t.cast(dtypes.float32), or another dtype",
        ) from None


def _joined(kinds: Sequence[DType]) -> DType:
    kind = kinds[0]
    for other in kinds[1:]:
        kind = promote(kind, other)
    return kind


def _texts(kinds: Sequence[Any]) -> str:
    return " and ".join(getattr(kind, "__name__", None) or str(kind) for kind in kinds)


def common_kind(*values: Any) -> DType:
    """Return the dtype that numpy joins values to, as in np.concatenate: `np.result_type`.

    Errors: DTypeError for types that Tensors lack.
    """
    foreign = [v.dtype for v in values if isinstance(v, Base) and not v.dtype.in_numpy]
    if foreign:
        return _joined([v.dtype for v in values if isinstance(v, Base)])
    return kind_of_dtype(np.result_type(*[weak(v) for v in values]))


def weak(value: Any) -> Any:
    """Return a value for np.result_type: the dtype of a Tensor, others as they are."""
    return value.dtype.numpy if isinstance(value, Base) else value


@cache
def kind_after(function: Any, dtype: DType) -> DType:
    """Return the dtype of what a numpy function makes of `dtype`, by a call with one element."""
    if not dtype.in_numpy:
        return dtype
    return kind_of_dtype(np.asarray(function(np.ones(1, dtype.numpy))).dtype)
