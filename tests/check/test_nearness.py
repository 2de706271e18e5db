"""An element that is like neither reference is right only where a rounding decides it, and only
with a value that a rounding can give it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.check.test_meanings import registered
from tests.support import by_rows
from workbench import Tensor, explore, var
from workbench.check.answer import CheckResult
from workbench.check.nearness import References, nearness
from workbench.ir.node.ops import Ops
from workbench.ir.rewriting.patterns import op
from workbench.kernel.kernel import Kernel

Array = np.ndarray[Any, Any]
SIZE = 4096
DTYPES = ("float32", "float64", "float16", "bfloat16")
EXPRESSIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "floor": lambda a, b: (a * b * 5).floor(),
    "rest": lambda a, b: (a * b * 5) % 1.0,
    "round": lambda a, b: (a * b * 5).round(),
    "cast": lambda a, b: (a * b * 100).cast("int32"),
    "large cast": lambda a, b: ((a * 3).exp() * 1000).cast("int32"),
    "comparison": lambda a, b: (a * b) > (b * b * 0.5),
    "choice": lambda a, b: (a * b > 0.1).where(a * 2, b * 3),
    "argmax": lambda a, b: (a * b).reshape(-1, 4).argmax(1),
    "sine": lambda a, b: (a * 100).sin(),
    "wide range": lambda a, b: (a * 20).exp(),
    "overflow": lambda a, b: (a * 60).exp(),
    "sum": lambda a, b: (a * b).reshape(-1, 16).sum(1),
    "softmax": lambda a, b: (a * b).reshape(-1, 32).softmax(1),
    "product": lambda a, b: a.reshape(64, 64) @ b.reshape(64, 64),
    "remainder": lambda a, b: (a * 50).cast("int32") % 7,
    "bits": lambda a, b: (a.cast("float32").bitcast("int32") >> 3) ^ 5,
}


def last_kernel(name: str, dtype: str = "float32", seed: int = 0) -> Kernel:
    random = np.random.default_rng(seed)
    a, b = (
        Tensor(random.standard_normal(SIZE).astype(np.float32)).cast(dtype).realize()
        for _ in range(2)
    )
    return explore(EXPRESSIONS[name](a, b)).kernels[-1]


def verdict_on(kernel: Kernel, change: Callable[[Array], None]) -> CheckResult:
    """Return the verdict on the right answer after a change."""
    (answer,) = kernel.run("LLVM")
    wrong = answer.copy()
    change(wrong.reshape(-1))
    assert not np.array_equal(wrong, answer, equal_nan=True)
    run = kernel.data.check_run(kernel.original, "LLVM")
    return run.verdict([wrong])


def far(values: Array) -> Array:
    """Return values that no rounding makes of the given ones."""
    if values.dtype.kind == "b":
        return ~values
    if values.dtype.kind == "i":
        return values + 1000
    with np.errstate(over="ignore"):
        return (values.astype(np.float64) * 3 + 7).astype(values.dtype)


def one_in_64(answer: Array) -> None:
    finite = np.flatnonzero(np.isfinite(answer.astype(np.float64)))
    places = finite[:: max(1, finite.size // (answer.size // 64))]
    answer[places[: answer.size // 64]] = far(answer[places[: answer.size // 64]])


def last(answer: Array) -> None:
    place = np.flatnonzero(np.isfinite(answer.astype(np.float64)))[-1]
    answer[place] = far(answer[place : place + 1])[0]


@by_rows("dtype", DTYPES)
@by_rows("name", EXPRESSIONS)
def test_no_wrong_element_is_an_exception(name: str, dtype: str) -> None:
    kernel = last_kernel(name, dtype)
    assert kernel.check("LLVM") and kernel.optimized().check("LLVM")
    # the other of two values is one that a rounding can give
    for change in (one_in_64,) if name == "comparison" else (one_in_64, last):
        result = verdict_on(kernel, change)
        assert not result and result.is_told, (change, result)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["rest", "softmax", "sine", "product", "floor"])
def test_no_rounding_gives_what_is_not_finite(name: str, wrong: float) -> None:
    def change(answer: Array) -> None:
        answer[5] = wrong

    assert "WRONG" in str(verdict_on(last_kernel(name), change))


def test_a_small_element_of_a_wide_range_is_compared_as_closely() -> None:
    """Beside the greatest value, which in float64 may be beyond the dtype, it is nothing."""

    def change(answer: Array) -> None:
        place = np.argmin(np.abs(answer - 1e-3))
        answer[place] *= 1.001

    for name in ("wide range", "overflow"):
        assert "WRONG" in str(verdict_on(last_kernel(name), change))


def test_rounding_to_whole_numbers_is_not_cutting_off() -> None:
    """`round` adds a large number for its rounding, which float64 would not do."""
    x = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32) * 9
    kernel = explore(Tensor(x).round()).kernels[-1]
    assert kernel.check("LLVM")
    run = kernel.data.check_run(kernel.original, "LLVM")
    assert "WRONG" in str(run.verdict([np.trunc(x)]))


@pytest.mark.parametrize("greatest", [6, 200])
def test_a_value_that_a_rounding_can_give_is_an_exception(greatest: int) -> None:
    """7 * (n / 7), rounded otherwise, is below n, and has another floor; none has the one before.
    Nothing else of an element in 64 is right there, and nothing but n elsewhere."""
    random = np.random.default_rng(3)
    whole = random.integers(1, greatest, SIZE)
    a = whole.astype(np.float32)
    a[: SIZE // 64] = np.where(whole % 7, whole, 1)[: SIZE // 64] / np.float32(7)
    b = np.where(np.arange(SIZE) < SIZE // 64, 7, 1).astype(np.float32)
    kernel = explore((Tensor(a) * Tensor(b)).floor()).kernels[-1]
    (answer,) = kernel.run("LLVM")
    run = kernel.data.check_run(kernel.original, "LLVM")
    others, below = answer.copy(), answer.copy()
    is_whole = (np.arange(SIZE) < SIZE // 64) & (answer == a * b)
    assert np.count_nonzero(is_whole) > SIZE // 100
    below[is_whole] -= 1
    assert run.verdict([below])
    below[is_whole] -= 1
    assert "WRONG" in str(run.verdict([below]))
    others[-1] -= 1
    assert "WRONG" in str(run.verdict([others]))


def test_where_roundings_decide_nearly_all_it_cannot_be_told() -> None:
    """Of the sine of a large product each value from -1 to 1 may be right, and nothing else."""
    random = np.random.default_rng(0)
    a = random.standard_normal(SIZE).astype(np.float32)
    kernel = explore((Tensor(a) * 1e12 * 3).sin()).kernels[-1]
    assert kernel.check("LLVM"), "it is like the reference in its own dtypes"
    run = kernel.data.check_run(kernel.original, "LLVM")
    other = np.sin(a.astype(np.float64) * 3.0000009e12).astype(np.float32)
    result = run.verdict([other])
    assert not result and not result.ok and not result.is_told
    assert str(result).startswith("cannot be told: 4,096 of 4,096 elements compared")
    assert "roundings decide too many elements" in str(result)
    assert "WRONG" in str(run.verdict([other * 9]))


X, Y = var("x"), var("y")


@pytest.mark.parametrize("into", ["simplify-tensor", "simplify-kernel", "decompose"])
@pytest.mark.parametrize("name", ["cast", "small cast", "floor"])
def test_a_wrong_rule_under_a_cast_is_wrong(name: str, into: str) -> None:
    """It changes one element in a hundred, of an expression of which a rounding decides others."""
    random = np.random.default_rng(1)
    a, b = (Tensor(random.standard_normal(SIZE).astype(np.float32)).realize() for _ in range(2))
    product = (a * b).exp().minimum(8.0) * 1000
    casts = {
        "cast": lambda: product.cast("int32"),
        "small cast": lambda: (product * 0.01).cast("int8"),
        "floor": lambda: (product * 0.01).floor().cast("float16"),
    }
    assert explore(casts[name]()).kernels[-1].check("LLVM")
    with registered(op(Ops.MIN, X, Y), X, into):
        kernel = explore(casts[name]()).kernels[-1]
        for each in (kernel, kernel.optimized()):
            assert "WRONG" in str(each.check("LLVM"))


def test_what_is_between_two_indexes_is_not_right() -> None:
    """Two elements of each row are equal but for a rounding; no rounding gives an index between."""
    a = np.random.default_rng(0).random((64, 1000)).astype(np.float32)
    a[:, 3], a[:, 100] = 1.7, np.nextafter(np.float32(1.7), np.float32(2))
    a[0, 999] = 9
    kernel = explore((Tensor(a) * (1 / 3)).argmax(1)).kernels[-1]
    assert kernel.check("LLVM")

    def change(answer: Array) -> None:
        answer[1:] = 50

    assert not verdict_on(kernel, change)


def test_not_everything_is_between_infinities() -> None:
    wide = np.zeros(6400, np.float32)
    wide[:100] = np.inf
    runs = [np.where(wide == np.inf, sign * wide, wide) for sign in (1, -1)]
    answer = wide.copy()
    answer[:100] = 5.0
    references = References(wide, wide, runs, 1)
    assert nearness(wide, references).ok and not nearness(answer, references).ok
