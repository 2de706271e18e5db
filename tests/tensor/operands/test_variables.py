"""Variables as data: one kernel for all values, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support import by_rows
from tests.tensor.agree import assert_agrees
from workbench import Tensor, TinyJit, Variable
from workbench.base.errors import AxisError, DTypeError, JitError, ShapeError, WorkbenchError

pytestmark = pytest.mark.usefixtures("device")

X = np.arange(24, dtype=np.float32).reshape(4, 6)
I = Variable("i", 0, 3)  # noqa: E741 - the table reads better with short names
FORMULAS: dict[str, tuple[Callable[[int], Tensor], Callable[[int], object]]] = {
    "alone": (lambda n: Tensor(I.bind(n)), lambda n: np.int32(n)),
    "of a dtype": (lambda n: Tensor(I.bind(n), dtype="float64") / 2, lambda n: np.float64(n / 2)),
    "an operand": (lambda n: Tensor(X) * I.bind(n), lambda n: X * np.float32(n)),
    "on the left": (lambda n: I.bind(n) - Tensor(X), lambda n: np.float32(n) - X),
    "an index": (lambda n: Tensor(X)[Tensor(I.bind(n))], lambda n: X[n]),
    "an index of the second axis": (lambda n: Tensor(X)[:, I.bind(n)], lambda n: X[:, n]),
    "added to": (lambda n: (I.bind(n) + 1) * 2, lambda n: np.int32((n + 1) * 2)),
    "divided": (lambda n: 7 // (I.bind(n) + 1), lambda n: np.int32(7 // (n + 1))),
    "negated": (lambda n: -I.bind(n) % 3, lambda n: np.int32(-n % 3)),
    "an index of itself": (lambda n: Tensor(X)[I.bind(n) // 2], lambda n: X[n // 2]),
    "below a number": (lambda n: I.bind(n) < 2, lambda n: np.bool_(n < 2)),
    "two indexes": (lambda n: Tensor(X)[I.bind(n), 1:4], lambda n: X[n, 1:4]),
    "compared": (lambda n: Tensor.arange(4) < I.bind(n), lambda n: np.arange(4) < n),
}  # fmt: skip


@by_rows("name", FORMULAS)
def test_one_kernel_computes_with_every_value(name: str) -> None:
    formula, numpys = FORMULAS[name]
    kernels = set()
    for n in range(4):
        items = formula(n).schedule()
        kernels.update(item.kernel for item in items if item.kernel is not None)
        assert_agrees(formula(n), numpys(n))
    assert len(kernels) == (name != "alone")


def test_a_variable_is_its_name_and_range() -> None:
    bound = Variable("i", 0, 3).bind(2)
    assert bound.unbind() == (I, 2) and bound == I.bind(2) != I.bind(1)
    big = Variable("n", 0, 2**40)
    assert_agrees(Tensor(big.bind(2**40)) + 1, np.int64(2**40 + 1))
    assert_agrees(Tensor(big.bind(1)), np.int64(1))


REFUSED: dict[str, tuple[Callable[[], object], type[WorkbenchError], str]] = {
    "no value": (lambda: Tensor(I), DTypeError, "variable i has no value"),
    "no value beside a tensor": (lambda: Tensor(X) + I, DTypeError, "i.bind(0), or up to 3"),
    "below": (lambda: I.bind(-1), ShapeError, "i cannot be -1"),
    "above": (lambda: I.bind(4), ShapeError, "it is a number from 0 to 3"),
    "a fraction": (lambda: I.bind(1.5), DTypeError, "bind: val: 1.5 does not fit"),  # type: ignore[arg-type]
    "a range of nothing": (lambda: Variable("n", 3, 2), ShapeError, "no number lies between"),
    "no name": (lambda: Variable(3, 0, 1), DTypeError, "Variable: name: 3"),  # type: ignore[arg-type]
    "a size": (lambda: Tensor(X).reshape(I.bind(2), -1), ShapeError, "sizes are integers"),
    "the end of a slice": (lambda: Tensor(X)[: I.bind(2)], DTypeError, "are integers"),  # type: ignore[misc]
    "an index that is too large": (
        lambda: Tensor(X)[Variable("n", 0, 9).bind(4)], AxisError, "index 4 is out of range"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    call, error, words = REFUSED[name]
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_what_a_variable_names_is_written() -> None:
    for n in range(4):
        t, want = Tensor(X).realize(), X.copy()
        t[I.bind(n)] = 7
        t[I.bind(n), 2] += 1
        want[n], want[n, 2] = 7, 8
        assert_agrees(t, want)


def test_a_replay_is_for_the_value_that_was_captured() -> None:
    jit = TinyJit(lambda x, n: x * n)
    x = Tensor(X).realize()
    for _ in range(3):
        assert_agrees(jit(x, I.bind(2)), X * 2)
    with pytest.raises(JitError):
        jit(x, I.bind(3))


def test_a_bound_variable_equals_its_value() -> None:
    three = I.bind(3)
    assert three == 3 and three == I.bind(3) and int(three) == 3
    assert three != 2 and three != I.bind(2) and three != Variable("j", 0, 3).bind(3)
    assert three != "3" and len({three, I.bind(3), 3}) == 1
