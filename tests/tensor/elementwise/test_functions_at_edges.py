"""Functions that are ops of their own, at the edges of every float, on every device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.agreement.edge_cases import compile_together
from tests.tensor.agree import quiet
from tests.tools.compiler import needs_c
from workbench.base.context import Context
from workbench.base.dtypes import DType, dtypes
from workbench.ir.functions.expand import FUNCTIONS
from workbench.ir.node.ops import OPS, Ops
from workbench.tensor import Tensor

Array = np.ndarray[Any, Any]
UNARY = sorted((op for op in FUNCTIONS if OPS[op].arity == 1), key=str)
FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
ULPS = 8
EXPONENTS = (0.0, 1.0, 0.5, 2.0, 3.0, np.inf, np.nan, 1e3, 1e-3)


@pytest.fixture(params=["LLVM", pytest.param("C", marks=needs_c), "PYTHON"])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    with Context(DEV=request.param):
        yield request.param


def edges(dtype: DType) -> Tensor:
    """Zeros, infinities, NaN, denormals, the largest, and what lies beside 1, of both signs."""
    limits = np.finfo(np.float32 if dtype is dtypes.bfloat16 else dtype.numpy)
    values = [0, 1, 0.5, 2, 3, 88, 89, 104, 1e4, np.pi, 0.1, np.inf, np.nan, limits.max]
    values += [limits.max / 2, limits.tiny, limits.smallest_subnormal, limits.eps]
    values += [1 + limits.eps, 1 - limits.epsneg]
    both = np.array([*values, *(-v for v in values)])
    return Tensor(quiet(both.astype, limits.dtype)).cast(dtype).realize()


def results(x: Tensor, device: str) -> list[Tensor]:
    """Return each function of `x`, computed; the C compiler is called once for all."""
    tensors = [getattr(x, OPS[op].word)() for op in UNARY]
    if device == "C":
        compiled = compile_together(tensors)
        assert all(program.is_compiled for program in compiled)
    tensors[0].realize(*tensors[1:])
    return tensors


def wide(x: Tensor) -> Array:
    """Return the values in a type that holds more digits than any that is tested."""
    return x.cast(dtypes.float64).numpy().astype(np.longdouble)


def assert_close(got: Tensor, want: Array, ulps: float) -> None:
    """Zeros have the same sign; a denormal may be 0, and what the dtype cannot hold infinite."""
    dtype = got.dtype
    values = wide(got)
    rounded = wide(Tensor(quiet(want.astype, np.float64)).cast(dtype))
    tiny = np.finfo(np.float32 if dtype is dtypes.bfloat16 else dtype.numpy).tiny
    np.testing.assert_allclose(
        values, rounded, rtol=ulps * 2.0**-dtype.fraction_bits, atol=2 * tiny
    )
    zeros = (values == 0) & (rounded == 0)
    assert (np.signbit(values) == np.signbit(rounded))[zeros].all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_functions_at_the_edges(device: str, dtype: DType) -> None:
    x = edges(dtype)
    for op, got in zip(UNARY, results(x, device), strict=True):
        meaning = OPS[op].python
        assert meaning is not None
        assert got.dtype is dtype
        assert_close(got, quiet(meaning, wide(x)), ULPS)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_powers_at_the_edges(device: str, dtype: DType) -> None:
    values = np.array([*EXPONENTS, *(-v for v in EXPONENTS)])
    a, b = (Tensor(v.ravel()).cast(dtype) for v in np.meshgrid(values, values))
    meaning = OPS[Ops.POW].python
    assert meaning is not None
    # The error grows with the exponent of the result, which is at most that of the dtype.
    ulps = ULPS if dtype.bits < 32 else 6000
    assert_close(a**b, quiet(meaning, wide(a), wide(b)), ulps)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (7,), (3, 5, 11)])
def test_functions_of_odd_shapes(device: str, shape: tuple[int, ...]) -> None:
    values = np.full(shape, 0.5, np.float32)
    x = Tensor(values)
    for op, result in zip(UNARY, results(x, device), strict=True):
        meaning = OPS[op].python
        assert meaning is not None
        got = result.numpy()
        assert got.shape == shape and got.dtype == np.float32
        np.testing.assert_allclose(got, quiet(meaning, values), rtol=1e-6)
    np.testing.assert_allclose((x**x).numpy(), values**values, rtol=1e-6)


def test_a_constant_to_a_power_has_a_known_logarithm(device: str) -> None:
    """The kernel does not compute it: 2.5 ** x has one logarithm, whatever x is."""
    values = np.linspace(-4, 4, 33, dtype=np.float32)
    power = 2.5 ** Tensor(values)
    np.testing.assert_allclose(power.numpy(), 2.5**values, rtol=1e-6)
    (item,) = [i for i in (2.5 ** Tensor(values)).schedule() if i.kernel is not None]
    assert item.kernel is not None
    assert Ops.LOG2 not in {n.op for n in item.kernel.toposort()}
