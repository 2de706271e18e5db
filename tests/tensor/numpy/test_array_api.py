"""The namespace of the array API standard, compared with `array_api_strict`: names, signatures,
values, dtypes, special values.

`array_api_strict` refuses what the standard does not state; there a Tensor has a meaning of its
own, or refuses, too.
"""

from __future__ import annotations

import inspect
import operator
import warnings
from collections.abc import Callable
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest

from tests.support import ROOT, by_rows, count
from tests.tensor.numpy.array_api_cases import (
    ALL,
    FLOATS,
    FROM_FLOATS,
    OPERATORS,
    STANDARD,
    TO_FLOAT,
    Kind,
    index,
    some,
)
from workbench import Context, Tensor
from workbench.base.dtypes import DType
from workbench.base.errors import DTypeError, WorkbenchError
from workbench.tensor.numpy import array_api

strict.set_array_api_strict_flags(api_version="2025.12")
Of = Callable[[Any], Any]
BY_DEVICE = "PYTHON"
"""The reference interpreter: it needs no compiler for each of thousands of expressions."""
OWN = {
    "Device",
    "ArrayAPIStrictFlags",
    "get_array_api_strict_flags",
    "set_array_api_strict_flags",
    "reset_array_api_strict_flags",
}
"""Names of array_api_strict that are not the standard's."""
ULPS = {np.dtype("float32"): 3e-5, np.dtype("float64"): 1e-11}


def names(module: Any) -> set[str]:
    return {name for name in module.__all__ if not name.startswith("__")} - OWN


# names


@pytest.mark.parametrize("room", ["", "linalg"])
def test_the_names_are_the_standards(room: str) -> None:
    theirs, ours = (getattr(m, room) if room else m for m in (strict, array_api))
    missing = {name for name in names(theirs) if not hasattr(ours, name)}
    assert missing == (set() if room else set(array_api.REASONS))


def test_what_is_absent_has_a_reason() -> None:
    with pytest.raises(AttributeError, match="no 'fft': its results are complex"):
        _ = array_api.fft
    with pytest.raises(AttributeError, match="no 'sinn'$"):
        _ = array_api.sinn


@pytest.mark.parametrize("room", ["", "linalg"])
def test_the_signatures_are_the_standards(room: str) -> None:
    theirs, ours = (getattr(m, room) if room else m for m in (strict, array_api))
    for name in names(theirs) - set(array_api.REASONS):
        function = getattr(theirs, name)
        if inspect.isfunction(function):
            assert _parameters(getattr(ours, name)) == _parameters(function), name


def _parameters(function: Any) -> list[tuple[str, Any]]:
    parameters = inspect.signature(function).parameters.values()
    return [
        ("" if p.kind is p.POSITIONAL_ONLY else p.name, p.kind)
        for p in parameters
        if not p.name.startswith("_")
    ]


def test_a_tensor_has_the_standards_names() -> None:
    theirs = {name for name in vars(strict._array_object.Array) if name not in vars(object)}
    theirs -= {name for name in theirs if name.startswith("_") and not name.startswith("__")}
    theirs -= {"__slots__", "__module__", "__array__", "__buffer__", "__annotations__"}
    missing = {name for name in theirs if not hasattr(Tensor, name)}
    assert missing == {"__index__", "__complex__"}
    assert missing <= set(array_api.DEVIATIONS)
    why = (ROOT / "docs" / "why" / "tensors.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in why for name in (*array_api.REASONS, *array_api.DEVIATIONS))


# values


def of_namespace(value: Any, xp: Any, of: Of) -> Any:
    """Return arguments with arrays and dtypes of a namespace."""
    if isinstance(value, Kind):
        return getattr(xp, value)
    if isinstance(value, np.ndarray):
        return of(value)
    if type(value) in (list, tuple):
        return type(value)(of_namespace(part, xp, of) for part in value)
    if type(value) is dict:
        return {key: of_namespace(part, xp, of) for key, part in value.items()}
    return value


def plain(value: Any) -> Any:
    """Return a result as numpy's arrays, names of dtypes, and Python values."""
    if isinstance(value, tuple | list):
        is_info = hasattr(value, "bits")
        return tuple(plain(part) for part in value) if not is_info else _info(value)
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, strict._array_object.Array):
        return value._array
    if isinstance(value, DType | strict._dtypes.DType):
        return str(value).rpartition(".")[2]
    return _info(value) if hasattr(value, "bits") else value


def _info(value: Any) -> dict[str, Any]:
    fields = ("bits", "eps", "max", "min", "smallest_normal", "dtype")
    return {name: plain(getattr(value, name)) for name in fields if hasattr(value, name)}


def difference(got: Any, wanted: Any, are_zeros_signed: bool) -> str:
    """Return how a result differs from the standard's; "" if it does not."""
    if isinstance(wanted, tuple):
        if not isinstance(got, tuple) or len(got) != len(wanted):
            return f"{got!r}, not {wanted!r}"
        parts = zip(got, wanted, strict=True)
        return next(filter(None, (difference(*p, are_zeros_signed) for p in parts)), "")
    if not isinstance(wanted, np.ndarray):
        return "" if got == wanted else f"{got!r}, not {wanted!r}"
    if not isinstance(got, np.ndarray) or (got.dtype, got.shape) != (wanted.dtype, wanted.shape):
        return f"{got!r}, not {wanted!r}"
    tolerance = ULPS.get(wanted.dtype, 0)
    try:
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)
    except AssertionError as error:
        return str(error)
    if wanted.dtype.kind == "f" and are_zeros_signed:
        zeros = wanted == 0
        if (np.signbit(got) != np.signbit(wanted))[zeros].any():
            return f"a zero has another sign: {got!r}, not {wanted!r}"
    return ""


def outcome(function: Callable[[], Any]) -> Any:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return function()
    except Exception as error:
        return error


def check(call: Callable[[Any, Of], Any], what: str, are_zeros_signed: bool = True) -> bool:
    """Compare a call over both namespaces; return whether the standard states its result."""
    wanted = outcome(lambda: plain(call(strict, lambda a: strict.asarray(a.copy()))))
    if isinstance(wanted, Exception):
        return False
    with Context(DEV=BY_DEVICE):
        got = outcome(lambda: plain(call(array_api, lambda a: Tensor(a).realize())))
    assert not isinstance(got, Exception), f"{what}\n  raises {got!r}"
    how = difference(got, wanted, are_zeros_signed)
    assert not how, f"{what}\n  {how}"
    return True


SHAPES_ALONE = {"empty", "empty_like"}
UNSIGNED_ZEROS = {
    "sign",
    "unique_all",
    "unique_counts",
    "unique_values",
    "linalg.qr",
    "linalg.svd",
    "linalg.eigh",
    "linalg.inv",
    "linalg.solve",
}


@pytest.mark.parametrize("name", sorted(STANDARD))
def test_a_function_is_the_standards(name: str) -> None:
    stated = 0
    for seed in range(count(60, 12)):
        args, named = STANDARD[name](np.random.default_rng([seed, *name.encode()]))

        def call(xp: Any, of: Of, args: Any = args, named: Any = named) -> Any:
            function = operator.attrgetter(name)(xp)
            result = function(*of_namespace(args, xp, of), **of_namespace(named, xp, of))
            return result.shape if name in SHAPES_ALONE else result

        stated += check(
            call, f"seed {seed}: xp.{name}(*{args!r}, **{named!r})", name not in UNSIGNED_ZEROS
        )
    assert stated


def test_each_function_is_called() -> None:
    functions = {name for name in names(strict) if inspect.isfunction(getattr(strict, name))}
    functions |= {f"linalg.{name}" for name in names(strict.linalg)}
    assert set(STANDARD) == functions - {"real", "imag"}


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_an_operator_is_the_standards(name: str) -> None:
    function, case = OPERATORS[name]
    stated = 0
    for seed in range(count(60, 12)):
        args, _ = case(np.random.default_rng([seed, *name.encode()]))
        what = f"seed {seed}: operator.{name}(*{args!r})"
        stated += check(lambda xp, of, a=args: function(*of_namespace(a, xp, of)), what)
        if len(args) == 2 and not isinstance(args[1], np.ndarray):
            check(lambda xp, of, a=args: function(a[1], of(a[0])), f"{what}, reflected")
        in_place = getattr(operator, f"i{name.strip('_')}", None)
        if in_place is not None and len(args) == 2:
            check(lambda xp, of, f=in_place, a=args: _written(f, of, a), f"{what}, in place")
    assert stated


def _written(in_place: Any, of: Of, args: Any) -> Any:
    x = of(args[0])
    name = x
    x = in_place(x, of(args[1]) if isinstance(args[1], np.ndarray) else args[1])
    return x, name


@pytest.mark.parametrize("kind", ["basic", "mask", "integers"])
def test_an_index_is_the_standards(kind: str) -> None:
    stated = 0
    for seed in range(count(400, 25)):
        rng = np.random.default_rng(seed)
        x = some(rng)
        at = index(rng, x.shape, kind)
        row = np.ones(x[at].shape[-1:], x.dtype)
        what = f"seed {seed}: x = np.array({x.tolist()}, np.{x.dtype}); x[{at!r}]"
        stated += check(lambda xp, of, x=x, at=at: of(x)[of_namespace(at, xp, of)], what)
        for value in (x.dtype.type(1).item(), row):

            def write(xp: Any, of: Of, x: Any = x, at: Any = at, value: Any = value) -> Any:
                y = of(x)
                y[of_namespace(at, xp, of)] = of_namespace(value, xp, of)
                return y

            check(write, f"{what} = {value!r}")
    assert stated


# special values: NaN, the infinities, both zeros, and the ends of a dtype


def special_values(kind: str) -> Any:
    ends = np.finfo(kind)
    sizes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 1e-3, 1e-8, 85.0, 100.0, 709.0, 1e5, np.pi / 2, np.inf]
    sizes += [float(ends.max), float(ends.max) / 2, float(ends.tiny), float(ends.eps)]
    values = [np.nan, *(sign * size for size in sizes for sign in (1, -1))]
    with np.errstate(over="ignore"):
        return np.array(values, kind)


UNARY = (
    *TO_FLOAT,
    *("abs", "ceil", "floor", "isfinite", "isinf", "isnan", "negative", "positive", "round"),
    *("sign", "square", "trunc", "conj"),
)
BINARY = (
    *FROM_FLOATS,
    *("add", "equal", "floor_divide", "greater", "greater_equal", "less", "less_equal"),
    *("maximum", "minimum", "multiply", "not_equal", "pow", "remainder", "subtract"),
)


@by_rows("name", UNARY + BINARY)
def test_special_values_are_the_standards(name: str) -> None:
    for kind in FLOATS:
        x = special_values(kind)
        args = (x,) if name in UNARY else (x[:, None].copy(), x[None].copy())
        with np.errstate(all="ignore"):
            wanted = getattr(strict, name)(*map(strict.asarray, args))._array
            got = getattr(array_api, name)(*[Tensor(a, device=BY_DEVICE) for a in args]).numpy()
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), name
        if name == "pow":  # it is off by some ulps, and the greatest float overflows with them
            is_end = np.abs(wanted) >= np.finfo(kind).max
            got = np.where(is_end & ~np.isinf(wanted) & np.isinf(got), wanted, got)
        np.testing.assert_allclose(got, wanted, rtol=4e-6 if kind == "float32" else 1e-13,
                                   err_msg=f"{name} of {kind}")  # fmt: skip
        if wanted.dtype.kind == "f" and name != "sign":  # whose zero has the sign of its operand
            odd = (np.signbit(got) != np.signbit(wanted)) & (wanted == 0)
            assert not odd.any(), (name, [np.broadcast_to(a, odd.shape)[odd] for a in args])


@by_rows("name", ["exp", "expm1", "log", "log1p", "sinh", "tanh", "asinh", "sqrt", "hypot"])
def test_the_whole_range_is_right(name: str) -> None:
    rng = np.random.default_rng(5)
    for kind in FLOATS:
        ends, size = np.finfo(kind), count(4000)
        least, most = np.log2(float(ends.tiny)) + 2, np.log2(float(ends.max))
        x, y = (
            np.where(rng.random(size) < 0.5, rng.uniform(least, most, size), rng.uniform(-9, 10))
            for _ in "xy"
        )
        args = [(2.0**each).astype(kind) for each in (x, y)][: 2 if name == "hypot" else 1]
        function = getattr(np, {"asinh": "arcsinh"}.get(name, name))
        with np.errstate(all="ignore"):
            wanted = function(*[a.astype(np.longdouble) for a in args]).astype(kind)
        got = getattr(array_api, name)(*[Tensor(a, device=BY_DEVICE) for a in args]).numpy()
        is_normal = np.isfinite(wanted) & (np.abs(wanted) < ends.max / 2) & (wanted > ends.tiny)
        np.testing.assert_allclose(got[is_normal], wanted[is_normal], rtol=20 * float(ends.eps),
                                   err_msg=f"{name} of {kind}")  # fmt: skip


# promotion, casts, copies


def test_dtypes_promote_as_the_standard_states() -> None:
    for one in ALL:
        for other in ALL:
            kinds = [(getattr(xp, one), getattr(xp, other)) for xp in (strict, array_api)]
            wanted = outcome(lambda k=kinds: plain(strict.result_type(*k[0])))
            if isinstance(wanted, Exception):
                continue
            assert plain(array_api.result_type(*kinds[1])) == wanted, (one, other)
            if strict.can_cast(*kinds[0]):  # a cast to another kind is not stated
                assert array_api.can_cast(*kinds[1]) is True


def test_copies_are_made_where_they_are_asked_for() -> None:
    for copied in (
        lambda x: array_api.astype(x, x.dtype),
        lambda x: array_api.asarray(x, copy=True),
        lambda x: array_api.reshape(x, x.shape, copy=True),
        lambda x: array_api.from_dlpack(x, copy=True),
    ):
        x = Tensor([1, 2]).realize()
        y = copied(x)
        y[0] = 5
        assert (x.tolist(), y.tolist()) == ([1, 2], [5, 2])
    x = Tensor([1, 2]).realize()
    for same in (array_api.astype(x, x.dtype, copy=False), array_api.asarray(x, copy=False)):
        same[0] += 1
    assert x.tolist() == [3, 2]
    memory = np.arange(3)
    shared, own = (array_api.from_dlpack(memory, copy=flag) for flag in (None, True))
    memory[0] = 7
    assert (shared.tolist(), own.tolist()) == ([7, 1, 2], [0, 1, 2])


@by_rows(
    "call",
    [
        lambda xp: xp.take(xp.zeros((2, 2)), xp.asarray([0])),
        lambda xp: xp.squeeze(xp.zeros((2, 3)), 0),
        lambda xp: xp.sum(xp.zeros(1), axis=3),
        lambda xp: xp.sum(xp.zeros((1, 1)), axis=(0, -2)),
        lambda xp: xp.max(xp.zeros(0)),
        lambda xp: xp.argmax(xp.zeros(0)),
        lambda xp: xp.isdtype(xp.int8, "small"),
        lambda xp: xp.reshape(xp.zeros(2), (3,)),
        lambda xp: xp.expand_dims(xp.zeros(1), axis=5),
        lambda xp: xp.stack([xp.zeros(1), xp.zeros(2)]),
        lambda xp: xp.concat([xp.zeros((1, 1)), xp.zeros(2)]),
        lambda xp: xp.broadcast_to(xp.zeros(2), (3,)),
        lambda xp: xp.matmul(xp.ones((2, 3)), xp.ones((2, 3))),
        lambda xp: xp.linalg.cross(xp.ones(2), xp.ones(2)),
        lambda xp: xp.cumulative_sum(xp.ones((2, 2))),
        lambda xp: xp.vecdot(xp.ones(2), xp.ones(3)),
        lambda xp: xp.diff(xp.ones(3), n=-1),
        lambda xp: xp.bitwise_and(xp.ones(1), xp.ones(1)),
        lambda xp: xp.zeros(3)[0, 0],
    ],
)
def test_what_is_wrong_is_refused(call: Callable[[Any], Any]) -> None:
    for xp, errors in ((strict, (ValueError, TypeError, IndexError)), (array_api, WorkbenchError)):
        with pytest.raises(errors):
            call(xp)


def test_isin_may_be_inverted() -> None:  # array_api_strict takes no notice of `invert`
    x, tests = array_api.asarray([1, 2, 3]), array_api.asarray([3, 1])
    assert array_api.isin(x, tests, invert=True).tolist() == [False, True, False]


# the namespace of a Tensor


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
    for made in (array_api.asarray([1.0]), array_api.zeros(2), array_api.linspace(0, 1, 3)):
        assert info.default_dtypes()["real floating"] is made.dtype
