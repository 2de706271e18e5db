"""In which parts a kernel is interpreted changes no answer, and bounds what is held at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.ir import samples
from tests.ir.samples import F, at, axis, floats, kernel, load, param, reduced, stage
from workbench.ir.meaning import interpret as interpret_steps
from workbench.ir.meaning.interpret import interpret_kernel
from workbench.ir.node.ops import Ops


@pytest.mark.parametrize("name", samples.KERNELS)
def test_windows_do_not_change_the_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    k = samples.KERNELS[name]
    params = {p.arg[0]: p for p in k.toposort() if p.op is Ops.PARAM}
    arrays = [floats(params[slot].arg[1]) for slot in sorted(params)]
    whole = interpret_kernel(k, arrays, widen=True)
    monkeypatch.setattr(interpret_steps, "ELEMENTS_AT_ONCE", 5)
    np.testing.assert_allclose(interpret_kernel(k, arrays, widen=True)[0], whole[0], rtol=1e-12)


def test_a_range_that_a_stage_closes_too_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    g0 = axis("g0", 9)
    turned = at(stage("t", (9,), load(param(1, 9), g0), g0), g0 * -1 + 8)
    k = kernel("g0", (at(param(0, 9), g0), turned, "g0"))
    x = floats(9)
    monkeypatch.setattr(interpret_steps, "ELEMENTS_AT_ONCE", 2)
    np.testing.assert_array_equal(interpret_kernel(k, [floats(9), x])[0], x[::-1])


def test_a_big_product_is_never_held_whole() -> None:
    n = 512
    a, b = floats(n, n), floats(n, n)
    actual = interpret_kernel(
        samples.matmul(n, n, n), [floats(n * n), a, b, np.zeros(n, np.float32)], widen=True
    )
    want = np.maximum(a.astype(float) @ b.astype(float), 0)
    np.testing.assert_allclose(actual[0].reshape(n, n), want, rtol=1e-10, atol=1e-10)


def test_a_product_is_summed_as_ieee_says() -> None:
    """Contracting must not factor: inf - inf is NaN only where the loop would meet it."""
    g0, r0 = axis("g0", 2), axis("r0", 2)
    value = reduced(Ops.ADD, load(param(1, 2), r0) * load(param(2, 2), g0), r0)
    k = kernel("g0 r0", (at(param(0, 2), g0), value, "g0"))
    actual = interpret_kernel(
        k, [floats(2), np.array([1, -1], np.float32), np.array([np.inf, 0], np.float32)]
    )
    assert math.isnan(actual[0][0]) and actual[0][1] == 0
    huge = np.array([3e38, -3e38], np.float32)
    actual = interpret_kernel(k, [floats(2), huge, np.array([10, 1], np.float32)])
    assert math.isnan(actual[0][0])


def test_a_big_reduction_comes_in_windows() -> None:
    g0, r0 = axis("g0", 64), axis("r0", 1 << 16)
    value = load(param(1, 1 << 16), r0).alu(Ops.MAX, (g0.cast(F)))
    k = kernel("g0 r0", (at(param(0, 64), g0), reduced(Ops.ADD, value, r0), "g0"))
    x = np.arange(1 << 16, dtype=np.float32) % 70
    want = [np.maximum(x, i).sum(dtype=float) for i in range(64)]
    np.testing.assert_allclose(interpret_kernel(k, [floats(64), x], widen=True)[0], want)


def test_deep_kernels_do_not_recurse() -> None:
    g0 = axis("g0", 2)
    value = load(param(1, 2), g0)
    for _ in range(samples.DEEP):
        value = value * 0.5 + 1.0
    k = kernel("g0", (at(param(0, 2), g0), value, "g0"))
    np.testing.assert_allclose(interpret_kernel(k, [floats(2), floats(2)])[0], 2)
