"""Decomposed graphs against numpy: all the corners for integers; and each rule fires."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ir.lower.graphs import Array, decomposed, evaluate, variable
from tests.support import by_rows
from workbench.base.dtypes import DType, dtypes
from workbench.base.trace import observe
from workbench.ir.lower.decompose import DECOMPOSE_RULES
from workbench.ir.lower.examples import EXAMPLES
from workbench.ir.node.construct import reduce
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp

SIGNED = [dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.index]
UNSIGNED = [dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64]


def corners(dtype: DType) -> Array:
    """Return values of an integer dtype: all of 8 bits, else edges and random ones."""
    if dtype.bits == 8:
        return np.arange(int(dtype.min), int(dtype.max) + 1, dtype=dtype.numpy)
    rng = np.random.default_rng(3)
    near = [v for k in range(9) for v in (k, -k) if dtype.min <= v]
    edges = [int(dtype.min) + k for k in range(4)] + [int(dtype.max) - k for k in range(4)]
    wide = rng.integers(dtype.min, dtype.max, 150, dtype=dtype.numpy, endpoint=True)
    some = np.arange(20, 60).astype(dtype.numpy)
    return np.concatenate([np.array(near + edges, dtype.numpy), wide, some])


@by_rows("dtype", SIGNED + UNSIGNED, ids=str)
@by_rows("op", [Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR])
def test_integer_ops_keep_their_meaning(op: Ops, dtype: DType) -> None:
    x, y = variable(dtype), variable(dtype, "y")
    graph = decomposed(x.alu(op, y))
    assert_machine_safe(graph, dtype)
    a, b = (v.ravel() for v in np.meshgrid(corners(dtype), corners(dtype)))
    np.testing.assert_array_equal(
        evaluate(graph, {x: a, y: b}), evaluate(x.alu(op, y), {x: a, y: b})
    )


BOUNDS = [(-7, -1), (-7, 0), (-7, 9), (0, 9), (1, 9), (-1, -1), (-128, 127), (2, 3)]


@pytest.mark.parametrize("op", [Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR])
def test_guards_that_bounds_leave_out_are_not_missed(op: Ops) -> None:
    for x_bounds in BOUNDS:
        for y_bounds in BOUNDS:
            x = variable(dtypes.int8, "x", *x_bounds)
            y = variable(dtypes.int8, "y", *y_bounds)
            graph = decomposed(x.alu(op, y))
            spans = [np.arange(lo, hi + 1, dtype=np.int8) for lo, hi in (x_bounds, y_bounds)]
            a, b = (v.ravel() for v in np.meshgrid(*spans))
            want = evaluate(x.alu(op, y), {x: a, y: b})
            np.testing.assert_array_equal(evaluate(graph, {x: a, y: b}), want)


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 8, 64, 100, -1, -2, -3, 0])
@pytest.mark.parametrize("op", [Ops.IDIV, Ops.MOD])
def test_constant_divisors(op: Ops, divisor: int) -> None:
    for dtype in (dtypes.int8, dtypes.int32, dtypes.index):
        x = variable(dtype)
        graph = decomposed(x.alu(op, x.like(divisor)))
        values = corners(dtype)
        want = evaluate(x.alu(op, x.like(divisor)), {x: values})
        np.testing.assert_array_equal(evaluate(graph, {x: values}), want)


def assert_machine_safe(graph: UOp, dtype: DType) -> None:
    """No floored op is left; shifts stay below the width, and divisors by construction."""
    nodes = graph.toposort()
    assert not any(n.op in (Ops.IDIV, Ops.MOD) for n in nodes)
    for node in nodes:
        if node.op in (Ops.SHL, Ops.SHR):
            assert 0 <= node.src[1].vmin and node.src[1].vmax < dtype.bits


def test_axes_divide_without_guards() -> None:
    g0 = UOp.range(12, "g0", AxisType.GLOBAL)
    assert decomposed(g0 // 3) is g0.alu(Ops.CDIV, UOp.index(3))
    assert decomposed(g0 % 3) is g0.alu(Ops.CMOD, UOp.index(3))
    assert decomposed(g0 // 4) is g0.alu(Ops.SHR, UOp.index(2))
    assert decomposed(g0 % 4) is g0 & 3


def test_only_products_of_a_reduction_are_fused() -> None:
    """A product of elements is rounded by itself, as any other value is."""
    a, b, c = (variable(dtypes.float32, name) for name in "abc")
    for value in (a * b + c, c + a * b, c - a * b, -(a * b) + c):
        assert decomposed(value) is value
    u0 = UOp.range(4, "u0", AxisType.UNROLL)
    product = a.alu(Ops.FMA, b, a.like(-0.0))
    assert decomposed(reduce(a * b, [u0], Ops.ADD)) is reduce(product, [u0], Ops.ADD)
    i, j = variable(dtypes.int32, "i"), variable(dtypes.int32, "j")
    for value in (a + b, a.max(b), i * j):
        assert decomposed(reduce(value, [u0], Ops.ADD)).src[0] is value
    assert decomposed(reduce(a * b, [u0], Ops.MAX)).src[0] is a * b


def test_every_rule_has_an_example_and_a_doc() -> None:
    assert set(EXAMPLES) == {rule.name for rule in DECOMPOSE_RULES.rules}
    assert all(rule.doc for rule in DECOMPOSE_RULES.rules)


@pytest.mark.parametrize("name", EXAMPLES)
def test_rule_fires(name: str) -> None:
    with observe() as observation:
        decomposed(EXAMPLES[name])
    assert name in {str(match.rule.name) for match in observation.records[0].matches}


def drawn(node: UOp, rng: np.random.Generator) -> Array:
    if node.dtype.is_float:
        return rng.normal(size=1000).astype(node.dtype.numpy)
    low, high = max(int(node.vmin), -40), min(int(node.vmax), 40)
    return rng.integers(low, high, 1000, dtype=node.dtype.numpy, endpoint=True)


@pytest.mark.parametrize("name", EXAMPLES)
def test_both_sides_of_a_rule_agree(name: str) -> None:
    """Bit for bit, but for polynomials: `test_transcendentals` measures those."""
    rng = np.random.default_rng(4)
    root = EXAMPLES[name]
    env = {n: drawn(n, rng) for n in root.toposort() if n.op is Ops.VAR}
    want, actual = evaluate(root, env), evaluate(decomposed(root), env)
    off = 4 * np.finfo(want.dtype).eps if name.endswith("-polynomial") else 0
    np.testing.assert_allclose(actual, want, rtol=off, atol=off)
