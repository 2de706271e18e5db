"""Elementwise operations against numpy, as a table: operation, numpy's formula, tolerance."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.support import by_rows
from tests.tensor.agree import assert_agrees, numbers, quiet
from workbench.base.dtypes import dtypes
from workbench.tensor import Tensor

pytestmark = pytest.mark.usefixtures("device")

INF, NAN = float("inf"), float("nan")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3e-5, 1e30, -1e30, INF, -INF, NAN]
SHAPES = [(), (1,), (7,), (3, 5), (1, 1), (2, 3, 5), (0,), (4, 0)]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


class Case(NamedTuple):
    """`ours` and `numpys` take the same number of operands; `ulps` is the tolerance."""

    name: str
    ours: Callable[..., Tensor]
    numpys: Callable[..., Any]
    ulps: float = 0


def _sigmoid(x: Any) -> Any:
    return (1 / (1 + np.exp(-x.astype(np.float64)))).astype(x.dtype)


def _in_double(formula: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: formula(x.astype(np.float64)).astype(x.dtype)


# fmt: off
UNARY = [
    Case("neg", lambda t: -t, lambda x: -x),
    Case("abs", lambda t: t.abs(), np.abs),
    Case("builtin abs", lambda t: abs(t), np.abs),
    Case("sign", lambda t: t.sign(), np.sign),
    Case("exp", lambda t: t.exp(), _in_double(np.exp), 4),
    Case("exp2", lambda t: t.exp2(), _in_double(np.exp2), 4),
    Case("log", lambda t: t.log(), _in_double(np.log), 4),
    Case("log2", lambda t: t.log2(), _in_double(np.log2), 4),
    Case("sqrt", lambda t: t.sqrt(), np.sqrt, 1),
    Case("rsqrt", lambda t: t.rsqrt(), lambda x: 1 / np.sqrt(x), 2),
    Case("reciprocal", lambda t: t.reciprocal(), lambda x: 1 / x, 1),
    Case("relu", lambda t: t.relu(), lambda x: np.maximum(x, 0)),
    Case("sigmoid", lambda t: t.sigmoid(), _sigmoid, 5),
    Case("tanh", lambda t: t.tanh(), _in_double(np.tanh), 5),
    Case("erf", lambda t: t.erf(), _in_double(np.vectorize(math.erf, otypes=[float])), 2),
    Case("square", lambda t: t.square(), np.square),
    Case("trunc", lambda t: t.trunc(), np.trunc),
    Case("floor", lambda t: t.floor(), np.floor),
    Case("ceil", lambda t: t.ceil(), np.ceil),
    Case("round", lambda t: t.round(), np.round),
    Case("clip", lambda t: t.clip(-0.5, 0.75),
         lambda x: np.clip(x, np.float32(-0.5), np.float32(0.75))),
    Case("clip low", lambda t: t.clamp(min_=0.25), lambda x: np.maximum(x, np.float32(0.25))),
    Case("clip high", lambda t: t.clip(max_=0.25), lambda x: np.minimum(x, np.float32(0.25))),
    Case("isnan", lambda t: t.isnan(), np.isnan),
    Case("logical_not", lambda t: t.logical_not(), np.logical_not),
    Case("1 - t", lambda t: 1 - t, lambda x: 1 - x),
    Case("2 / t", lambda t: 2 / t, lambda x: np.float32(2) / x, 1),
    Case("t / 3", lambda t: t / 3, lambda x: x / np.float32(3), 1),
    Case("t * 2.5", lambda t: 2.5 * t, lambda x: x * np.float32(2.5)),
    Case("t ** 0", lambda t: t ** 0, lambda x: x ** 0),
    Case("t ** 1", lambda t: t ** 1, lambda x: x ** 1),
    Case("t ** 2", lambda t: t ** 2, lambda x: x ** 2, 1),
    Case("t ** 3", lambda t: t ** 3, lambda x: _in_double(lambda y: y ** 3)(x), 2),
    Case("t ** -2", lambda t: t ** -2, lambda x: _in_double(lambda y: y ** -2.0)(x), 2),
    Case("t ** 0.5", lambda t: t ** 0.5, lambda x: np.sqrt(x), 1),
    Case("t ** 2.5", lambda t: t ** 2.5, lambda x: _in_double(lambda y: y ** 2.5)(x), 3),
]
BINARY = [
    Case("add", lambda a, b: a + b, np.add),
    Case("sub", lambda a, b: a - b, np.subtract),
    Case("mul", lambda a, b: a * b, np.multiply),
    Case("div", lambda a, b: a / b, np.divide, 1),
    Case("maximum", lambda a, b: a.maximum(b), np.maximum),
    Case("minimum", lambda a, b: a.minimum(b), np.minimum),
    Case("<", lambda a, b: a < b, np.less),
    Case("<=", lambda a, b: a <= b, np.less_equal),
    Case(">", lambda a, b: a > b, np.greater),
    Case(">=", lambda a, b: a >= b, np.greater_equal),
    Case("==", lambda a, b: a == b, np.equal),
    Case("!=", lambda a, b: a != b, np.not_equal),
    Case("where", lambda a, b: (a < b).where(a, b), lambda a, b: np.where(a < b, a, b)),
]
INTEGER = [
    Case("add", lambda a, b: a + b, np.add),
    Case("sub", lambda a, b: a - b, np.subtract),
    Case("mul", lambda a, b: a * b, np.multiply),
    Case("floordiv", lambda a, b: a // b, lambda a, b: np.where(b == 0, 0, a // b).astype(a.dtype)),
    Case("mod", lambda a, b: a % b, lambda a, b: np.where(b == 0, 0, a % b).astype(a.dtype)),
    Case("and", lambda a, b: a & b, np.bitwise_and),
    Case("or", lambda a, b: a | b, np.bitwise_or),
    Case("xor", lambda a, b: a ^ b, np.bitwise_xor),
    Case("invert", lambda a, b: ~a, lambda a, b: ~a),
    Case("shift left", lambda a, b: a << 3, lambda a, b: a << 3),
    Case("shift right", lambda a, b: a >> 2, lambda a, b: a >> 2),
    Case("shift too far", lambda a, b: a << 300, lambda a, b: a * 0),
    Case("square", lambda a, b: a ** 2, lambda a, b: a ** 2),
    Case("abs", lambda a, b: a.abs(), lambda a, b: np.abs(a)),
    Case("sign", lambda a, b: a.sign(), lambda a, b: np.sign(a)),
    Case("less", lambda a, b: a < b, np.less),
    Case("minimum", lambda a, b: a.minimum(b), np.minimum),
    Case("trunc", lambda a, b: a.trunc(), lambda a, b: a),
]
# fmt: on


def by_name(case: Case) -> str:
    return case.name


@by_rows("case", UNARY, ids=by_name)
def test_unary_on_special_values(case: Case) -> None:
    x = np.array(SPECIAL, np.float32)
    assert_agrees(case.ours(Tensor(x)), quiet(case.numpys, x), case.ulps)


@by_rows("case", UNARY, ids=by_name)
def test_unary_in_double(case: Case) -> None:
    x = np.array([0.25, -0.25, 0.5, 2.0, -3.5, 17.0, 0.0])
    assert_agrees(case.ours(Tensor(x)), quiet(case.numpys, x), 4 * case.ulps)


@by_rows("shape", SHAPES, ids=str)
@by_rows("name", ["neg", "exp", "relu", "floor", "t / 3"])
def test_unary_on_shapes(name: str, shape: tuple[int, ...]) -> None:
    case = next(c for c in UNARY if c.name == name)
    x = numbers(shape)
    assert_agrees(case.ours(Tensor(x)), case.numpys(x), case.ulps)


@by_rows("case", BINARY, ids=by_name)
def test_binary_on_special_values(case: Case) -> None:
    a = np.array(SPECIAL, np.float32)[:, None]
    b = np.array(SPECIAL, np.float32)[None, :]
    actual = case.ours(Tensor(a), Tensor(b))
    assert_agrees(actual, quiet(case.numpys, a, b), case.ulps)


# fmt: off
BROADCASTS = [
    ((3, 5), (5,)), ((3, 1), (1, 5)), ((7,), (1,)), ((), (2, 3)), ((2, 3), ()), ((), ()),
    ((2, 1, 3), (4, 1)), ((1,), (0,)), ((3, 1), (3, 0)), ((5, 1, 1), (1, 2, 3)), ((13,), (13,)),
]
# fmt: on


@by_rows("shapes", BROADCASTS, ids=str)
@by_rows("name", ["add", "div", "<", "where"])
def test_broadcasting(name: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    case = next(c for c in BINARY if c.name == name)
    a, b = numbers(shapes[0], seed=1), numbers(shapes[1], seed=2)
    assert_agrees(case.ours(Tensor(a), Tensor(b)), case.numpys(a, b), case.ulps)


@by_rows("dtype", INTEGERS)
@by_rows("case", INTEGER, ids=by_name)
def test_integers(case: Case, dtype: str) -> None:
    info = np.iinfo(dtype)
    edge = np.array([info.min, info.max, 0, 1, info.max // 3], dtype)
    a = np.concatenate([numbers((11,), dtype, 1), edge, edge[::-1]])
    b = np.concatenate([numbers((11,), dtype, 2), edge, np.roll(edge, 2)])
    assert_agrees(case.ours(Tensor(a), Tensor(b)), quiet(case.numpys, a, b))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_least_integer_divided_by_minus_one_wraps(dtype: str) -> None:
    least = np.array([np.iinfo(dtype).min], dtype)
    assert_agrees(Tensor(least) // Tensor(np.array([-1], dtype)), least)
    assert_agrees(Tensor(least) % Tensor(np.array([-1], dtype)), least * 0)


def test_truncating_division() -> None:
    a = np.array([7, -7, 7, -7, 6, 0], np.int32)
    b = np.array([2, 2, -2, -2, 3, 5], np.int32)
    actual = Tensor(a).div(Tensor(b), rounding_mode="trunc")
    assert_agrees(actual, np.trunc(a / b).astype(np.int32))
    actual = Tensor(a).float().div(Tensor(b), rounding_mode="trunc")
    assert_agrees(actual, np.trunc(a / b).astype(np.float32))


def test_float_floor_division_and_remainder() -> None:
    a = np.array([7.5, -7.5, 7.5, -7.5, 0.0, 6.0], np.float32)
    b = np.array([2.0, 2.0, -2.0, -2.0, 3.0, 1.5], np.float32)
    assert_agrees(Tensor(a) // Tensor(b), a // b)
    assert_agrees(Tensor(a) % Tensor(b), a % b)


def test_bools() -> None:
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    s, t = Tensor(a), Tensor(b)
    assert_agrees(s + t, a | b)
    assert_agrees(s * t, a & b)
    assert_agrees(s & t, a & b)
    assert_agrees(s | t, a | b)
    assert_agrees(s ^ t, a ^ b)
    assert_agrees(~s, ~a)
    assert_agrees(-s, ~a)
    assert_agrees(s.maximum(t), a | b)
    assert_agrees(s.minimum(t), a & b)
    assert_agrees(s < t, a < b)
    assert_agrees(s + 1, a.astype(np.int32) + 1)
    assert_agrees(s / t, quiet(np.divide, a.astype(np.float32), b.astype(np.float32)))


def test_general_powers() -> None:
    base = np.array([0.0, 0.5, 1.0, 2.0, 3.7, 10.0, INF, -2.0, -1.5, -8.0, NAN, 1.0, 4.0])
    exponent = np.array([2.5, 3.3, 9.9, -1.5, 0.0, -3.0, 2.0, 3.0, 4.0, 1 / 3, 0.0, NAN, INF])
    want = quiet(np.power, base, exponent)
    assert_agrees(Tensor(base) ** Tensor(exponent), want, 64)
    narrow = quiet(np.power, base.astype("f4"), exponent.astype("f4"))
    actual = Tensor(base.astype("f4")) ** Tensor(exponent.astype("f4"))
    assert_agrees(actual, narrow, 64)
    assert_agrees(2 ** Tensor([0.5, -1.0, 3.0]), np.float32([2**0.5, 0.5, 8.0]), 4)


def test_integer_powers() -> None:
    a = np.array([0, 1, 2, -3, 7, 10], np.int32)
    b = np.array([0, 5, 30, 3, 2, 9], np.int32)
    assert_agrees(Tensor(a) ** Tensor(b), a**b)
    assert_agrees(Tensor(a) ** 13, a**13)
    assert_agrees(Tensor([1, 4, 9]) ** 0.5, np.float32([1, 2, 3]), 2)


@pytest.mark.parametrize("name", ["exp", "log", "sigmoid", "tanh"])
def test_accuracy_over_the_whole_range(name: str) -> None:
    case = next(c for c in UNARY if c.name == name)
    x = np.linspace(-87, 88.5, 4099).astype(np.float32)
    x = np.concatenate([x, np.logspace(-30, 30, 1021).astype(np.float32)])
    x = x[x < 88.7] if name == "exp" else x
    assert_agrees(case.ours(Tensor(x)), quiet(case.numpys, x), 5)


def test_extremes_do_not_give_nan() -> None:
    x = Tensor([300.0, -300.0, INF, -INF])
    assert x.sigmoid().tolist() == [1.0, 0.0, 1.0, 0.0]
    assert x.tanh().tolist() == [1.0, -1.0, 1.0, -1.0]
    assert x.exp().tolist() == [INF, 0.0, INF, 0.0]


def test_absolute_value_has_no_sign() -> None:
    assert (1 / Tensor([0.0, -0.0]).abs()).tolist() == [INF, INF]


# fmt: off
CASTS = [
    ([1.9, -1.9, 0.5, 300.0, -300.0, 1e10, -1e10, INF, -INF, NAN], "float32", "int8",
     [1, -1, 0, 127, -128, 127, -128, 127, -128, 0]),
    ([1.9, -1.9, 300.0, 1e10, INF, NAN], "float32", "uint8", [1, 0, 255, 255, 255, 0]),
    ([1.9, -1.9, 3e9, -3e9, NAN], "float32", "int32", [1, -1, 2**31 - 1, -(2**31), 0]),
    ([1e19, -1e19, NAN], "float64", "int64", [2**63 - 1, -(2**63), 0]),
    ([300, -1, 127], "int32", "int8", [44, -1, 127]),
    ([-1, 255], "int32", "uint8", [255, 255]),
    ([0.0, -0.0, 0.1, NAN], "float32", "bool", [False, False, True, True]),
    ([0, 2, -1], "int32", "bool", [False, True, True]),
    ([True, False], "bool", "float32", [1.0, 0.0]),
    ([2**24 + 1, -5], "int32", "float32", [float(2**24), -5.0]),
    ([2**64 - 1], "uint64", "float64", [float(2**64)]),
    ([0.1], "float32", "float64", [float(np.float32(0.1))]),
]
# fmt: on


@pytest.mark.parametrize(("values", "source", "target", "want"), CASTS)
def test_cast(values: list[Any], source: str, target: str, want: list[Any]) -> None:
    actual = Tensor(np.array(values, source)).cast(target)
    assert_agrees(actual, np.array(want, target))


def test_short_casts() -> None:
    t = Tensor([1.5, 0.0])
    assert [c().dtype.name for c in (t.float, t.double, t.int, t.long, t.bool)] == [
        "float32", "float64", "int32", "int64", "bool",
    ]  # fmt: skip


def test_bitcast() -> None:
    x = np.array([1.0, -0.0, NAN], np.float32)
    assert_agrees(Tensor(x).bitcast(dtypes.int32), x.view(np.int32))
    assert_agrees(Tensor(x).bitcast(dtypes.uint32).bitcast(dtypes.float32), x)


def test_clip_to_bounds_beyond_the_type() -> None:
    assert Tensor([-5, 5], dtype="int8").clip(-1000, 3).tolist() == [-5, 3]


def test_where_with_numbers() -> None:
    c = np.array([True, False])
    assert_agrees(Tensor(c).where(1, 0), np.array([1, 0], np.int32))
    assert_agrees(Tensor(c).where(1, 0.5), np.array([1, 0.5], np.float32))
    assert_agrees(Tensor(c).where(Tensor([1.0, 2.0]), 0), np.float32([1, 0]))
    assert_agrees(Tensor(c).where(0, Tensor([1, 2])), np.int32([0, 2]))
    assert_agrees(Tensor(c).where(Tensor([[1], [2]]), -1), np.int32([[1, -1], [2, -1]]))


def test_numpy_operands_on_either_side() -> None:
    x = numbers((3, 4))
    assert_agrees(Tensor(x) + x, x + x)
    assert_agrees(x - Tensor(x[0]), x - x[0])
    assert_agrees(np.float32(2) * Tensor(x), 2 * x)
    assert_agrees(x[0] < Tensor(x), x[0] < x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float_floor_division(dtype: str) -> None:
    """numpy's answers: exact where the quotient is below 2 ** 26, NaN of infinity."""
    values = [v for v in SPECIAL if not 1e9 < abs(v) < INF] + [0.1, -0.1, 7.0, 1e-3, 3.25]
    pairs = np.array([(a, b) for a in values for b in values]).astype(dtype)
    near = np.abs(quiet(np.divide, pairs[:, 0], pairs[:, 1]))
    a, b = pairs[~((near > 2**26) & (near < INF))].T
    assert_agrees(Tensor(a) // Tensor(b), quiet(np.floor_divide, a, b))
    assert_agrees(Tensor(a) % Tensor(b), quiet(np.remainder, a, b), 1)
    wild = np.random.default_rng(4).normal(size=(2, 500)).astype(dtype) * 100
    assert_agrees(Tensor(wild[0]) // Tensor(wild[1]), wild[0] // wild[1])
    actual = (Tensor(wild[0]) % Tensor(wild[1])).numpy()
    np.testing.assert_allclose(actual, wild[0] % wild[1], rtol=1e-6, atol=1e-9)
    assert_agrees(Tensor(wild[0]) // 0.5, wild[0] // wild.dtype.type(0.5))
    assert_agrees(7.0 % Tensor(wild[1]), wild.dtype.type(7) % wild[1], 1)


@pytest.mark.parametrize("exponent", [2**31, 2**31 + 1, 10**18, 10**40 + 1])
def test_powers_of_integers_wrap(device: str, exponent: int) -> None:
    for base in (3, 2, -1, -7):
        expected = (pow(base, exponent, 1 << 32) + (1 << 31)) % (1 << 32) - (1 << 31)
        assert (Tensor([base]) ** exponent).tolist() == [expected]
