"""EXP2, LOG2, SIN and COS, taken apart, against numpy in a wider type: units in the last place,
and the edges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.ir.lower.graphs import FLOATS, Array, decomposed, evaluate, fused_multiply_add, variable
from tests.support import count
from workbench.base.dtypes import DType, dtypes
from workbench.ir.lower.math import FORMATS, two_over_pi
from workbench.ir.node.ops import Ops

EXACT = {Ops.EXP2: np.exp2, Ops.LOG2: np.log2, Ops.SIN: np.sin, Ops.COS: np.cos}
# With one rounding in an FMA, as devices do it, and with two.
ULPS = {Ops.EXP2: (1.0, 2.0), Ops.LOG2: (1.0, 2.01), Ops.SIN: (1.3, 1.75), Ops.COS: (1.3, 1.75)}
# The floats that come closest to a multiple of pi/2. Source: Muller et al. 2018.
CLOSEST = {dtypes.float32: 16367173 * 2.0**72, dtypes.float64: 6381956970095103 * 2.0**797}


def ulps(actual: Array, want: Array) -> float:
    """Return the greatest distance in units in the last place of the exact result."""
    least = np.finfo(actual.dtype).tiny
    with np.errstate(all="ignore"):
        unit = np.spacing(np.maximum(np.abs(want).astype(actual.dtype), least))
        fits = np.isfinite(want.astype(actual.dtype))
        off = np.abs(actual.astype(np.longdouble) - want) / unit.astype(np.longdouble)
    return float(np.max(off[fits]))


def exp2_samples(dtype: DType) -> dict[str, Array]:
    rng = np.random.default_rng(1)
    low, high = (-152, 129) if dtype is dtypes.float32 else (-1077, 1025)
    n = count(2_000_000)
    tiny = 2.0 ** rng.uniform(-60, 0, n)
    return {
        "whole range": np.linspace(low, high, n),
        "near 0": np.concatenate([tiny, -tiny]),
        "subnormal results": np.linspace(low, low + (25 if high == 129 else 54), n),
        "halves": np.arange(low, high, 0.5),
        "zeros": np.linspace(2 * low, low, 1000),
    }


def log2_samples(dtype: DType) -> dict[str, Array]:
    rng = np.random.default_rng(2)
    info = np.finfo(dtype.numpy)
    n = count(2_000_000)
    uint = np.dtype(f"u{dtype.itemsize}")
    last = int(np.asarray(info.max).view(uint))
    away = 2.0 ** rng.uniform(-info.nmant, 0, n)
    return {
        "all magnitudes": rng.integers(1, last, n, dtype=uint).view(dtype.numpy),
        "near 1": np.concatenate([1 + away, 1 - away[away < 1] / 2]),
        "around the seam": rng.uniform(0.6, 1.6, n),
        "subnormal": info.tiny * rng.uniform(1e-3, 1, n),
    }


def sin_samples(dtype: DType) -> dict[str, Array]:
    rng = np.random.default_rng(3)
    info = np.finfo(dtype.numpy)
    n = count(500_000)
    uint = np.dtype(f"u{dtype.itemsize}")
    last = int(np.asarray(info.max).view(uint))
    either = rng.choice([-1.0, 1.0], n)
    greatest = 2.0 ** np.arange(info.minexp, info.maxexp)
    return {
        "all magnitudes": either * rng.integers(0, last, n, dtype=uint).view(dtype.numpy),
        "one turn": rng.uniform(-7, 7, n),
        "many turns": rng.uniform(-1e6, 1e6, n),
        "around the seam": rng.uniform(0.78, 0.79, n),
        "near multiples of pi/2": np.arange(-20_000, 20_000) * (math.pi / 2),
        "powers of two": np.concatenate([greatest, info.max / greatest[greatest > 1]]),
        "closest to a multiple": np.array([CLOSEST[dtype], -CLOSEST[dtype]]),
        "subnormal": info.tiny * rng.uniform(-1, 1, n),
    }


SAMPLES = {
    Ops.EXP2: exp2_samples,
    Ops.LOG2: log2_samples,
    Ops.SIN: sin_samples,
    Ops.COS: sin_samples,
}


# float64 with one rounding would need something wider to compute in.
@pytest.mark.parametrize(
    ("dtype", "fma"),
    [(dtypes.float32, None), (dtypes.float32, fused_multiply_add), (dtypes.float64, None)],
    ids=["float32", "float32 fused", "float64"],
)
@pytest.mark.parametrize("op", EXACT)
def test_transcendentals_are_accurate(op: Ops, dtype: DType, fma: Any) -> None:
    x = variable(dtype)
    graph = decomposed(x.alu(op))
    worst = {}
    for name, values in SAMPLES[op](dtype).items():
        values = values.astype(dtype.numpy)
        with np.errstate(all="ignore"):
            want = EXACT[op](values.astype(np.longdouble))
        actual = evaluate(graph, {x: values}, fma)
        assert actual.dtype == dtype.numpy
        worst[name] = ulps(actual, want)
    assert max(worst.values()) <= ULPS[op][fma is None], worst


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_transcendentals_at_the_edges(dtype: DType) -> None:
    x = variable(dtype)
    least = float(np.finfo(dtype.numpy).smallest_subnormal)
    top = 128.0 if dtype is dtypes.float32 else 1024.0
    bottom = math.log2(least)
    exp2 = [
        *(0.0, -0.0, math.inf, -math.inf, math.nan, top, top - 1, 1e30, -1e30),
        *(bottom, bottom - 0.5, bottom - 1, bottom - 1.5, 1e-300, -1e-300),
    ]
    log2 = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, least, -least]
    angles = [0.0, -0.0, math.inf, -math.inf, math.nan, least, -least, 1e-30]
    edges = {Ops.EXP2: exp2, Ops.LOG2: log2, Ops.SIN: angles, Ops.COS: angles}
    for op, exact in EXACT.items():
        values = np.array(edges[op], dtype.numpy)
        with np.errstate(all="ignore"):
            want = exact(values.astype(np.longdouble)).astype(dtype.numpy)
        actual = evaluate(decomposed(x.alu(op)), {x: values})
        np.testing.assert_array_equal(actual, want)
        np.testing.assert_array_equal(np.signbit(actual)[want == 0], np.signbit(want)[want == 0])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_the_power_of_a_mask_is_0_without_underflow(dtype: DType) -> None:
    """A product is 0 only where a factor is."""
    x = variable(dtype)
    root, values = decomposed(x.alu(Ops.EXP2)), {x: np.array([-math.inf], dtype.numpy)}
    np.testing.assert_array_equal(evaluate(root, values), [0.0])
    products = [n for n in root.toposort() if n.op is Ops.MUL and not evaluate(n, values).any()]
    for product in products:
        assert any(not evaluate(factor, values).any() for factor in product.src), product


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_powers_of_two_are_exact(dtype: DType) -> None:
    x = variable(dtype)
    low, high = (-149, 128) if dtype is dtypes.float32 else (-1074, 1024)
    exponents = np.arange(low, high).astype(dtype.numpy)
    powers = np.ldexp(np.ones_like(exponents), exponents.astype(np.int64))
    actual = evaluate(decomposed(x.alu(Ops.EXP2)), {x: exponents})
    np.testing.assert_array_equal(actual, powers)
    actual = evaluate(decomposed(x.alu(Ops.LOG2)), {x: powers})
    np.testing.assert_array_equal(actual, exponents)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("op", EXACT)
def test_transcendentals_vectorise(op: Ops, dtype: DType) -> None:
    """Nothing but arithmetic of one width, so lanes stay lanes. Only the product of SIN and COS
    in float32 is wider, and there the casts are between integers."""
    nodes = decomposed(variable(dtype).alu(op)).toposort()
    assert all(n.is_elementwise or n.op in (Ops.CONST, Ops.VAR) for n in nodes)
    assert not EXACT.keys() & {n.op for n in nodes}
    wide = {n for n in nodes if n.dtype.bits not in (dtype.bits, 1)}
    casts = {n for n in nodes if n.op is Ops.CAST}
    if op in (Ops.EXP2, Ops.LOG2) or dtype is dtypes.float64:
        assert not wide and not casts
    assert {n.dtype for n in wide} <= {dtypes.uint64}
    assert all(n.dtype.kind == n.src[0].dtype.kind == "uint" for n in casts)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sine_and_cosine_share_their_reduction(dtype: DType) -> None:
    x = variable(dtype)
    sine, cosine = (set(decomposed(x.alu(op)).toposort()) for op in (Ops.SIN, Ops.COS))
    assert len(cosine - sine) < 12


def test_the_bits_of_two_over_pi() -> None:
    """Source: Muller, Elementary Functions: the digits after the point, in base 16."""
    digits = "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041"
    for form in FORMATS.values():
        width = form.uint.bits
        text = "".join(f"{word:0{width}b}" for word in two_over_pi(form))
        assert text.startswith("0" * (form.fraction_bits + 3) + "1")
        after = text[form.fraction_bits + 3 :]
        assert after.startswith(f"{int(digits, 16):0{4 * len(digits)}b}")
        assert len(text) >= form.bias + 3 * width
