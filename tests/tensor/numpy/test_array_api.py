"""The namespace of the array API standard, compared with `array_api_strict`: names, signatures,
values."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest

from workbench import Tensor
from workbench.base.errors import DTypeError
from workbench.tensor.numpy import array_api

strict.set_array_api_strict_flags(api_version="2025.12")
ABSENT = {
    "complex64": "no Tensor has complex numbers",
    "complex128": "no Tensor has complex numbers",
    "fft": "its results are complex",
    "nextafter": "no expression for it has been written",
    "Array": "a name of array_api_strict's own",
    "ArrayAPIStrictFlags": "a name of array_api_strict's own",
    "get_array_api_strict_flags": "a name of array_api_strict's own",
    "set_array_api_strict_flags": "a name of array_api_strict's own",
    "reset_array_api_strict_flags": "a name of array_api_strict's own",
}


def names(module: Any) -> list[str]:
    return [name for name in module.__all__ if not name.startswith("__")]


@pytest.mark.parametrize("room", ["", "linalg"])
def test_the_names_are_the_standards(room: str) -> None:
    theirs, ours = (getattr(m, room) if room else m for m in (strict, array_api))
    missing = {name for name in names(theirs) if not hasattr(ours, name)}
    assert missing == {name for name in ABSENT if name in names(theirs)}


@pytest.mark.parametrize("room", ["", "linalg"])
def test_the_signatures_are_the_standards(room: str) -> None:
    theirs, ours = (getattr(m, room) if room else m for m in (strict, array_api))
    for name in names(theirs):
        function = getattr(theirs, name)
        if name in ABSENT or not inspect.isfunction(function):
            continue
        wanted = _parameters(function)
        assert _parameters(getattr(ours, name)) == wanted, name


def _parameters(function: Any) -> list[tuple[str, Any]]:
    parameters = inspect.signature(function).parameters.values()
    return [
        ("" if p.kind is p.POSITIONAL_ONLY else p.name, p.kind)
        for p in parameters
        if not p.name.startswith("_")
    ]


A = np.array([[3.0, -1.5, 0.25], [0.5, 2.0, -4.0]])
N = np.array([[3, 1, 7], [0, 5, 2]], np.int64)
V = np.array([2.0, 0.5, 1.0])
S = np.array([[4.0, 1.0], [1.0, 3.0]])
B = np.array([[True, False, True], [False, False, True]])
Call = Callable[[Any, Callable[[Any], Any]], Any]
CALLS: dict[str, Call] = {
    **{name: (lambda xp, of, name=name: getattr(xp, name)(of(A))) for name in (
        *("abs", "atan", "ceil", "conj", "cos", "exp", "expm1", "floor", "isfinite", "isinf"),
        *("isnan", "negative", "positive", "reciprocal", "round", "sign", "signbit", "sin", "sinh"),
        *("square", "tan", "tanh", "trunc", "cosh", "asinh", "all", "any", "argmax", "argmin"),
        *("argsort", "sort", "count_nonzero", "diff", "max", "mean", "min", "prod", "std", "sum"),
        *("var", "zeros_like", "ones_like", "matrix_transpose", "tril", "triu", "flip"),
        *("unstack", "broadcast_arrays", "nonzero", "unique_values"))},
    **{name: (lambda xp, of, name=name: getattr(xp, name)(of(np.abs(A) + 1))) for name in (
        *("acosh", "log", "log1p", "log2", "log10", "sqrt"),)},
    **{name: (lambda xp, of, name=name: getattr(xp, name)(of(A / 5))) for name in (
        *("acos", "asin", "atanh"),)},
    **{name: (lambda xp, of, name=name: getattr(xp, name)(of(A), of(V))) for name in (
        *("add", "atan2", "copysign", "divide", "equal", "floor_divide", "greater"),
        *("greater_equal", "hypot", "less", "less_equal", "logaddexp", "maximum", "minimum"),
        *("multiply", "not_equal", "remainder", "subtract", "vecdot"))},
    **{name: (lambda xp, of, name=name: getattr(xp, name)(of(N), of(N))) for name in (
        "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")},
    **{name: (lambda xp, of, name=name: getattr(xp, name)(of(B), of(B[::-1].copy())))
       for name in ("logical_and", "logical_or", "logical_xor")},
    **{name: (lambda xp, of, name=name: getattr(xp, name)(of(V))) for name in (
        "cumulative_sum", "cumulative_prod", "empty_like")},
    **{name: (lambda xp, of, name=name: getattr(xp, name)(of(N))) for name in (
        "unique_all", "unique_counts", "unique_inverse", "bitwise_invert")},
    "expand_dims": lambda xp, of: xp.expand_dims(of(A), axis=1),
    "isin": lambda xp, of: xp.isin(of(N), of(np.array([1, 5]))),
    "broadcast_shapes": lambda xp, of: xp.broadcast_shapes((2, 1), (3,)),
    "pow": lambda xp, of: xp.pow(of(A), 2),
    "logical_not": lambda xp, of: xp.logical_not(of(B)),
    "clip": lambda xp, of: xp.clip(of(A), -1, 1),
    "arange": lambda xp, of: xp.arange(2, 9, 3),
    "asarray": lambda xp, of: xp.asarray([[1, 2], [3, 4]]),
    "full": lambda xp, of: xp.full((2, 3), 7),
    "full_like": lambda xp, of: xp.full_like(of(A), 7),
    "eye": lambda xp, of: xp.eye(3, 4, k=1, dtype=xp.float64),
    "zeros": lambda xp, of: xp.zeros((2, 3), dtype=xp.int32),
    "ones": lambda xp, of: xp.ones(3, dtype=xp.float64),
    "linspace": lambda xp, of: xp.linspace(0, 1, 5, dtype=xp.float64),
    "meshgrid": lambda xp, of: xp.meshgrid(of(V), of(V), indexing="ij"),
    "astype": lambda xp, of: xp.astype(of(A), xp.int32),
    "broadcast_to": lambda xp, of: xp.broadcast_to(of(V), (2, 3)),
    "concat": lambda xp, of: xp.concat([of(A), of(A)], axis=1),
    "moveaxis": lambda xp, of: xp.moveaxis(of(A), 0, 1),
    "permute_dims": lambda xp, of: xp.permute_dims(of(A), (1, 0)),
    "repeat": lambda xp, of: xp.repeat(of(A), 2, axis=1),
    "reshape": lambda xp, of: xp.reshape(of(A), (3, 2)),
    "roll": lambda xp, of: xp.roll(of(A), 1, axis=1),
    "squeeze": lambda xp, of: xp.squeeze(of(V[None]), 0),
    "stack": lambda xp, of: xp.stack([of(V), of(V)], axis=1),
    "tile": lambda xp, of: xp.tile(of(A), (2, 1)),
    "take": lambda xp, of: xp.take(of(A), of(np.array([2, 0])), axis=1),
    "take_along_axis": lambda xp, of: xp.take_along_axis(of(A), of(np.array([[0, 2], [1, 1]]))),
    "where": lambda xp, of: xp.where(of(B), of(A), of(V)),
    "searchsorted": lambda xp, of: xp.searchsorted(of(np.sort(V)), of(V)),
    "matmul": lambda xp, of: xp.matmul(of(A), of(V)),
    "tensordot": lambda xp, of: xp.tensordot(of(A), of(A), axes=((1,), (1,))),
    "result_type": lambda xp, of: str(xp.result_type(xp.int8, xp.uint8)).split(".")[-1],
    "can_cast": lambda xp, of: xp.can_cast(xp.int8, xp.int16),
    "isdtype": lambda xp, of: (xp.isdtype(xp.int8, "integral"), xp.isdtype(xp.int8, "bool")),
    "finfo": lambda xp, of: (xp.finfo(xp.float32).eps, xp.finfo(xp.float32).bits),
    "iinfo": lambda xp, of: (xp.iinfo(xp.int8).min, xp.iinfo(xp.int8).max),
    "real": lambda xp, of: of(A) if xp is strict else xp.real(of(A)),
    "imag": lambda xp, of: xp.zeros_like(of(A)) if xp is strict else xp.imag(of(A)),
    "empty": lambda xp, of: xp.zeros_like(xp.empty((2, 3), dtype=xp.float64)),
    "from_dlpack": lambda xp, of: xp.from_dlpack(of(A)) + 0,
    **{f"linalg.{name}": (lambda xp, of, name=name: getattr(xp.linalg, name)(of(S))) for name in (
        *("cholesky", "det", "diagonal", "eigvalsh", "inv", "matrix_norm", "matrix_rank"),
        *("matrix_transpose", "pinv", "slogdet", "svdvals", "trace", "vector_norm", "eigh", "qr"),
        "svd")},
    **{f"linalg.{name}": (lambda xp, of, name=name: getattr(xp.linalg, name)(of(V), of(V + 1)))
       for name in ("cross", "outer", "vecdot")},
    **{f"linalg.{name}": (lambda xp, of, name=name: getattr(xp.linalg, name)(of(S), of(S)))
       for name in ("matmul", "solve", "tensordot")},
    "linalg.matrix_power": lambda xp, of: xp.linalg.matrix_power(of(S), 3),
}  # fmt: skip


def arrays(value: Any) -> Any:
    """Return a result as numpy's arrays, a tuple of them, or a plain value."""
    if isinstance(value, tuple | list):
        return tuple(arrays(part) for part in value)
    if isinstance(value, Tensor):
        return value.numpy()
    return np.asarray(value) if isinstance(value, strict._array_object.Array) else value


@pytest.mark.parametrize("name", sorted(CALLS))
def test_the_values_are_the_standards(name: str) -> None:
    wanted = arrays(CALLS[name](strict, strict.asarray))
    got = arrays(CALLS[name](array_api, lambda a: Tensor(a).realize()))
    if name == "empty_like":
        assert got.shape == wanted.shape
        return
    pairs = [(got, wanted)] if not isinstance(wanted, tuple) else zip(got, wanted, strict=True)
    for ours, theirs in pairs:
        if isinstance(theirs, np.ndarray):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
        else:
            assert ours == theirs


def test_each_function_is_called() -> None:
    functions = {name for name in names(strict) if inspect.isfunction(getattr(strict, name))}
    functions |= {f"linalg.{name}" for name in names(strict.linalg)}
    assert functions - set(CALLS) - set(ABSENT) == {"linalg.linalg"} & functions


def test_a_tensor_has_the_namespace() -> None:
    x = Tensor([1.0, 2.0])
    xp = x.__array_namespace__()
    assert xp is x.__array_namespace__(api_version="2022.12") is array_api
    with pytest.raises(DTypeError, match="no version '1999'"):
        x.__array_namespace__(api_version="1999")
    assert xp.sum(xp.exp(x) * 2).dtype is xp.float32
    assert x.to_device(x.device) is x


def test_the_namespace_says_what_it_has() -> None:
    info = array_api.__array_namespace_info__()
    assert info.default_device() in info.devices()
    assert set(info.dtypes(kind="signed integer")) == {"int8", "int16", "int32", "int64"}
    assert info.default_dtypes()["integral"] is array_api.asarray([1]).dtype
    assert info.default_dtypes()["real floating"] is array_api.asarray([1.0]).dtype
