"""A row of the tables that the Tensor API is compared with torch by: one call, and its operands.

    case("roll", lambda x: x.roll(2, 0), (4, 5))
    case("gather", lambda x, i: x.gather(1, i), (4, 5), index((4, 3), 5))
    case("einsum", lambda a, b: Tensor.einsum("ij,jk", a, b), (2, 3), (3, 4),
         torch=lambda a, b: torch.einsum("ij,jk", a, b), dtypes=FLOATS, ulps=8)

The call gets our tensors, and torch's where `torch` is not given; it returns a tensor, or several.
An operand is a shape (normal numbers of the row's dtype), or what a function below returns. Each
dtype of a row is a comparison. A table is a module in `tables/` with a list CASES.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from tests.peers import torch
from tests.tensor.agree import Array, numbers
from workbench.base.context import Context
from workbench.tensor import Tensor

Shape = tuple[int, ...]

NARROW = {
    "arange", "argmax", "argmin", "argsort", "cummax", "cummin", "full", "max_pool2d", "nonzero",
    "one_hot", "sort", "topk",
}  # fmt: skip
"""Methods of which positions and whole numbers are int32 here, int64 in torch."""

F32 = ("float32",)
FLOATS = ("float32", "float16", "bfloat16", "float64")
INTS = ("int32", "int64", "int16", "int8", "uint8")
ALL = (*FLOATS, *INTS, "bool")
"""Dtypes of rows; the first is the one that a short run compares."""


@dataclass(frozen=True)
class Operand:
    """Values of an operand: `draw` gets a random generator and the row's dtype; an index is of
    int32 for us and of int64 for torch, which takes no other."""

    draw: Callable[[np.random.Generator, str], Array]
    is_index: bool = False


@dataclass(frozen=True)
class Case:
    """A row; see the top of the file.

    `ulps` is the tolerance in units of the last place of the greatest value; 0 is equality.
    `has_gradient` says whether a gradient reaches its float operands.
    """

    name: str
    call: Callable[..., Any]
    operands: tuple[Operand, ...]
    torch: Callable[..., Any] | None
    dtypes: tuple[str, ...]
    ulps: float
    has_gradient: bool

    def inputs(self, dtype: str) -> list[Array]:
        """Return the operands' values: the same ones at each call."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [operand.draw(rng, dtype) for operand in self.operands]

    def our_tensors(self, inputs: list[Array]) -> list[Tensor]:
        """Return the operands as our tensors."""
        return [Tensor(array) for array in inputs]

    def torch_tensors(self, inputs: list[Array]) -> list[Any]:
        """Return the operands as torch's tensors."""
        return [
            _in_torch(array.astype(np.int64) if operand.is_index else array)
            for operand, array in zip(self.operands, inputs, strict=True)
        ]

    def ours(self, tensors: list[Tensor]) -> list[Tensor]:
        """Return the results of the call on our tensors."""
        return _listed(self.call(*tensors))

    def theirs(self, tensors: list[Any]) -> list[Any]:
        """Return the results of the call on torch's tensors."""
        return _listed((self.torch or self.call)(*tensors))


def case(
    name: str,
    call: Callable[..., Any],
    *operands: Shape | Operand,
    torch: Callable[..., Any] | None = None,
    dtypes: tuple[str, ...] = F32,
    ulps: float = 4,
    has_gradient: bool = True,
) -> Case:
    """Return a row; `name` is that of the method of Tensor that it is about."""
    each = tuple(normal(x) if isinstance(x, tuple) else x for x in operands)
    return Case(name, call, each, torch, dtypes, ulps, has_gradient)


# operands


def normal(shape: Shape) -> Operand:
    """Return normal numbers of the row's dtype; small integers for an integer dtype."""
    return Operand(lambda rng, dtype: numbers(shape, dtype, int(rng.integers(1 << 30))))


def uniform(shape: Shape, low: float, high: float) -> Operand:
    """Return numbers from `low` up to `high`, of the row's dtype."""
    return Operand(lambda rng, dtype: rng.uniform(low, high, shape).astype(dtype))


def values(*entries: Any) -> Operand:
    """Return the numbers given, in the row's dtype."""
    return Operand(lambda rng, dtype: np.array(entries).astype(dtype))


def index(shape: Shape, count: int, low: int = 0) -> Operand:
    """Return integers from `low` up to `count`, without it, whatever the row's dtype."""
    return Operand(lambda rng, _: rng.integers(low, count, shape, np.int32), True)


def mask(shape: Shape) -> Operand:
    """Return bools, whatever the row's dtype."""
    return Operand(lambda rng, _: rng.integers(0, 2, shape).astype(bool))


# results


def as_array(tensor: Any) -> Array:
    """Return the values of torch's tensor; bfloat16, which numpy lacks, as float32."""
    tensor = tensor.detach()
    tensor = tensor.float() if tensor.dtype is torch.bfloat16 else tensor
    return np.asarray(tensor.numpy())


def compare_values(case: Case, dtype: str, device: str) -> None:
    """Compare the results of a row in one dtype on one device with torch's."""
    inputs = case.inputs(dtype)
    expected = case.theirs(case.torch_tensors(inputs))
    with Context(DEV=device):
        actual = case.ours(case.our_tensors(inputs))
        assert len(actual) == len(expected)
        for ours, theirs in zip(actual, expected, strict=True):
            assert_same(case, ours, theirs)


def assert_same(case: Case, actual: Tensor, expected: Any) -> None:
    """Check shape, dtype and values; in rows of NARROW int32 stands for int64.

    NaN equals NaN. A float may differ by `case.ulps` of the greatest finite value, or its own.
    """
    want = as_array(expected)
    have = actual.numpy()
    assert have.shape == want.shape
    is_narrow = case.name in NARROW and str(actual.dtype) == "int32"
    assert f"torch.{actual.dtype}" == str(expected.dtype) or is_narrow
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(have, want)
        return
    eps = torch.finfo(expected.dtype).eps * case.ulps
    scale = np.max(np.abs(want[np.isfinite(want)]), initial=0.0)
    np.testing.assert_allclose(have, want, rtol=eps, atol=eps * float(scale))


def _in_torch(array: Array) -> Any:
    if array.dtype == bfloat16:
        return torch.tensor(array.astype(np.float32)).to(torch.bfloat16)
    return torch.tensor(array)


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple | list) else [results]
