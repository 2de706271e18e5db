"""sort and topk of long axes against numpy, and how few kernels they and their like take."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support import count
from workbench.tensor import Tensor

# fmt: off
KERNELS: list[tuple[str, int, Callable[..., Tensor | tuple[Tensor, ...]]]] = [
    # tinygrad 0.14 takes 22, 22, 37, 22 and 67 for these
    ("argsort 32", 2, lambda x, m, i: x.argsort()),
    ("sort 32", 2, lambda x, m, i: x.sort()),
    ("sort 100", 3, lambda x, m, i: Tensor.cat(x, x, x, x)[:100].contiguous().realize().sort()),
    ("topk of 32", 2, lambda x, m, i: x.topk(3)),
    ("sort 1000", 20, lambda x, m, i: x.repeat(32)[:1000].contiguous().realize().sort()),
    # and 1 for each of these, 4 for nonzero, 2 for interpolate
    ("gather", 1, lambda x, m, i: m.gather(1, i)),
    ("scatter", 1, lambda x, m, i: m.scatter(1, i, m)),
    *((f"scatter_reduce {r}", 1, lambda x, m, i, r=r: m.scatter_reduce(1, i, m, r))
      for r in ("sum", "prod", "mean", "amax", "amin")),
    ("reflect", 1, lambda x, m, i: m.pad((1, 1), mode="reflect")),
    ("circular", 1, lambda x, m, i: m.pad((1, 1), mode="circular")),
    ("roll", 1, lambda x, m, i: m.roll((1, 2), (0, 1))),
    ("diagonal", 1, lambda x, m, i: m.diagonal()),
    ("tril", 1, lambda x, m, i: m.tril()),
    ("unfold", 1, lambda x, m, i: m.unfold(1, 2, 1)),
    ("bilinear", 1, lambda x, m, i: m.interpolate((6, 9))),
    ("isclose", 1, lambda x, m, i: m.isclose(m + 1)),
    ("allclose", 1, lambda x, m, i: m.allclose(m + 1)),
    ("einsum", 1, lambda x, m, i: Tensor.einsum("ij,kj->ik", m, m)),
    ("nonzero", 2, lambda x, m, i: m.nonzero(size=5)),
    ("masked_select", 1, lambda x, m, i: m.masked_select(m > 0, size=5)),
]
# fmt: on


@pytest.mark.parametrize(("_name", "kernels", "call"), KERNELS, ids=lambda x: str(x)[:20])
def test_kernels_are_few(
    _name: str, kernels: int, call: Callable[..., Tensor | tuple[Tensor, ...]]
) -> None:
    x = Tensor(np.arange(32, dtype=np.float32)).realize()
    m = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4)).realize()
    i = Tensor(np.array([[0, 1], [2, 0], [1, 1]], np.int32)).realize()
    results = call(x, m, i)
    first, *others = results if isinstance(results, tuple) else (results.contiguous(),)
    items = first.schedule(*others)
    assert len([item for item in items if item.kernel is not None]) == kernels


@pytest.mark.parametrize("length", [257, 1000] if count(10) == 1 else [257, 1000, 5000])
def test_long_axes_are_sorted_and_equal_values_keep_their_order(length: int) -> None:
    x = np.random.default_rng(length).integers(-40, 40, (2, length)).astype(np.float32)
    x[:, ::97] = np.nan
    values, positions = Tensor(x).sort()
    order = np.argsort(x, axis=1, kind="stable")
    np.testing.assert_array_equal(positions.numpy(), order)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order, 1))


@pytest.mark.parametrize("k", [1, 7, 100])
def test_few_of_a_long_axis(k: int) -> None:
    x = np.random.default_rng(k).integers(0, 200, (2, 1500)).astype(np.int16)
    values, positions = Tensor(x).topk(k)
    order = np.argsort(-x.astype(int), axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(positions.numpy(), order)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order, 1))


@pytest.mark.parametrize("dtype", ["int64", "uint64", "uint32", "float64"])
def test_wide_keys(dtype: str) -> None:
    """Of 64 bits both halves decide; the sign of unsigned ones is none."""
    bits = np.random.default_rng(3).integers(0, 2**64, 90, np.uint64)
    bits[::5] &= np.uint64(0xFFFFFFFF)
    bits[1::5] |= np.uint64(0xFFFFFFFF)
    x = bits.astype(dtype) if dtype == "uint32" else bits.view(dtype)
    order = np.argsort(x, kind="stable")
    np.testing.assert_array_equal(Tensor(x).argsort().numpy(), order)
    if dtype != "float64":
        flipped = np.argsort(~x, kind="stable")
        np.testing.assert_array_equal(Tensor(x).argsort(descending=True).numpy(), flipped)
