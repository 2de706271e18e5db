"""numpy's ufuncs and functions of Tensors, compared with those of arrays.

The property: `f(tensors)` has the dtype, the shape and the values of `f(arrays)`, or is refused in
words. A failure prints a script that repeats it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.support import count
from tests.tensor.numpy.function_cases import CASES, LIKE, WITHOUT_VALUES, Rng, array, shape_of
from workbench import Tensor
from workbench.base.errors import WorkbenchError
from workbench.tensor.numpy.dispatch import ROWS, UFUNCS

ULPS = {np.dtype("float16"): 4e-3, np.dtype("float32"): 2e-5, np.dtype("float64"): 1e-12}
BY_DEVICE = "PYTHON"
"""The reference interpreter: it needs no compiler for each of thousands of expressions."""


def as_tensors(value: Any, rng: Rng, share: float) -> Any:
    """Return arguments with Tensors in place of a share of their arrays."""
    if isinstance(value, np.ndarray) and rng.random() < share:
        return Tensor(value, device=BY_DEVICE)
    if type(value) in (list, tuple):
        return type(value)(as_tensors(part, rng, share) for part in value)
    if type(value) is dict:
        return {key: as_tensors(part, rng, share) for key, part in value.items()}
    return value


def has_tensor(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return any(map(has_tensor, value))
    return isinstance(value, Tensor)


def outcome(function: Any, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """Return a result, or the error that a call raised."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **named)
    except (WorkbenchError, TypeError, ValueError, IndexError) as error:
        return error


def largest_of(values: Any) -> float:
    """Return the largest magnitude: running totals cancel, and what they had may be larger than
    what is left."""
    return max([0.1, *np.abs(values[np.isfinite(values)]).flat])


def difference(got: Any, wanted: Any, is_running: bool = False) -> str:
    """Return how a result, which may be one of running totals, differs from numpy's; "" if it does
    not."""
    if isinstance(wanted, list | tuple):
        if len(got) != len(wanted):
            return f"{len(got)} parts, not {len(wanted)}"
        return next(filter(None, map(difference, got, wanted)), "")
    if not isinstance(got, Tensor):
        return "" if got == wanted else f"{got!r}, not {wanted!r}"
    wanted = np.asarray(wanted)
    values = got.numpy()
    if (values.dtype, values.shape) != (wanted.dtype, wanted.shape):
        return f"{values.dtype}{values.shape}, not {wanted.dtype}{wanted.shape}"
    tolerance = ULPS.get(wanted.dtype, 0)
    try:
        with np.errstate(all="ignore"):
            largest = largest_of(wanted) if is_running else 0.1
            np.testing.assert_allclose(values, wanted, rtol=tolerance, atol=tolerance * largest)
    except AssertionError as error:
        return str(error)
    return ""


def check(name: str, rng: Rng, args: Any, named: Any) -> str:
    """Compare one call; return "refused" or "equal". Errors: AssertionError with a script."""
    function: Any = np
    for step in name.split("."):
        function = getattr(function, step)
    tensor_args, tensor_named = (as_tensors(each, rng, 0.7) for each in (args, named))
    if name == "take" or not has_tensor((tensor_args, tensor_named)):  # numpy asks the first alone
        tensor_args, tensor_named = (as_tensors(each, rng, 1) for each in (args, named))
    wanted = outcome(function, args, named)
    got = outcome(function, tensor_args, tensor_named)
    script = f"np.{name}(*{tensor_args!r}, **{tensor_named!r})\n  of {args!r} {named!r}"
    if isinstance(got, Exception):
        assert isinstance(got, WorkbenchError) or isinstance(wanted, Exception), (
            f"{script}\n  raises {got!r}"
        )
        return "refused"
    if isinstance(wanted, Exception):
        return "more"  # a Tensor broadcasts, or promotes, where numpy does not
    is_operators = not isinstance(tensor_args[0], Tensor) and isinstance(got, Tensor)
    if is_operators and name in PROMOTED_BY_TENSORS and len(tensor_args) == 2:
        wanted = np.asarray(wanted).astype(got.dtype.numpy)
    assert has_tensor(got) or not isinstance(wanted, np.ndarray), f"{script}\n  is no Tensor"
    how = outcome(difference, (got, wanted, "cum" in name), {})
    assert not how, f"{script}\n  {how}"
    return "equal"


PROMOTED_BY_TENSORS = frozenset(
    {
        *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "matmul"),
        *("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"),
    }
)
"""numpy's operators: `array + tensor` has the Tensor's dtype."""


def ufunc_operands(name: str, rng: Rng) -> tuple[Any, ...]:
    if name in ("matmul", "matvec", "vecmat", "vecdot"):
        m, k, n = (int(i) for i in rng.integers(1, 4, 3))
        batch = shape_of(rng, 0, 1)
        shapes = {"matmul": ((m, k), (k, n)), "matvec": ((m, k), (k,)), "vecmat": ((k,), (k, n))}
        left, right = shapes.get(name, ((k,), (k,)))
        return array(rng, batch + left), array(rng, right)
    ufunc = np._core.umath.clip if name == "clip" else getattr(np, name)  # type: ignore[attr-defined]
    shape = shape_of(rng)
    operands: list[Any] = []
    for place in range(ufunc.nin):
        if place and rng.random() < 0.2:
            operands.append([2, 2.5, 0, True][int(rng.integers(4))])
            continue
        own = tuple(1 if rng.random() < 0.2 else n for n in shape)
        operands.append(array(rng, own[int(rng.integers(0, len(own) + 1)) :] if place else own))
    if name in ("left_shift", "right_shift", "power") and isinstance(operands[1], np.ndarray):
        if operands[1].dtype.kind != "f":
            operands[1] = np.abs(operands[1].astype("int16")).astype(operands[1].dtype)
    return tuple(operands)


@pytest.mark.parametrize("name", sorted(UFUNCS))
def test_a_ufunc_is_numpys(name: str) -> None:
    if not hasattr(np, name):
        pytest.skip("this numpy has no such ufunc, or calls it by a function")
    rng = np.random.default_rng(list(name.encode()))
    outcomes = [check(name, rng, ufunc_operands(name, rng), {}) for _ in range(count(300, 40))]
    assert "equal" in outcomes


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_function_is_numpys(name: str) -> None:
    rng = np.random.default_rng(list(name.encode()))
    outcomes = [check(name, rng, *CASES[name](rng)) for _ in range(count(200, 40))]
    assert "equal" in outcomes, outcomes


@pytest.mark.parametrize("name", sorted(LIKE))
def test_a_function_makes_a_tensor_like_another(name: str) -> None:
    rng = np.random.default_rng(list(name.encode()))
    args, named = LIKE[name](rng)
    got = getattr(np, name)(*args, **named, like=Tensor([1.0]))
    assert not difference(got, getattr(np, name)(*args, **named))


def test_each_row_has_a_case() -> None:
    assert set(ROWS) == {*CASES, *LIKE, *WITHOUT_VALUES}
