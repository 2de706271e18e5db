"""Two kernels side by side: what differs is said, and wrong answers are not called equal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from workbench import Kernel, Opt, OptOps, Tensor, explore
from workbench.base.errors import DTypeError

A = np.random.default_rng(0).standard_normal((16, 32)).astype(np.float32)


def product() -> Kernel:
    (kernel,) = explore(Tensor(A) @ Tensor(A).transpose()).kernels
    return kernel


def test_opts_counts_source_and_answers() -> None:
    plain = product()
    wide = plain.apply(Opt(OptOps.UPCAST, "g1", 8)).without("form-fma")
    comparison = plain.compare(wide)
    assert comparison.opts == ("none", 'UPCAST("g1", 8), without form-fma')
    assert comparison.counts == (plain.counts, wide.counts)
    assert comparison.equal is True and comparison.error <= comparison.tolerance < 1e-3
    assert "+" in comparison.difference and comparison.times is None
    text = str(comparison)
    assert "answers: equal" in text and "--- this\n+++ other" in text
    assert "stores" in text and f"{plain.counts.stores:,}" in text
    assert "the sources are equal" in str(plain.compare(plain))
    long = plain.apply(Opt(OptOps.UPCAST, "g1", 0), Opt(OptOps.UPCAST, "g0", 8))
    assert "lines more" in str(plain.compare(long))


def test_times_are_measured_in_turns() -> None:
    plain = product()
    comparison = plain.compare(plain.optimized(), budget_s=0.02)
    assert comparison.times is not None
    assert list(comparison.times.samples) == ["this", "other"]
    assert str(comparison.times) in str(comparison)
    with pytest.raises(DTypeError, match="cannot use budget_s"):
        plain.compare(plain, budget_s="long")  # type: ignore[arg-type]


def test_answers_that_differ_are_told_from_equal_ones() -> None:
    plain = product()
    doubled = replace(plain, ast=explore(_twice()).kernels[0].ast)
    comparison = plain.compare(doubled)
    assert comparison.equal is False and comparison.error > 1
    assert "answers: DIFFERENT" in str(comparison)
    comparison = plain.compare(explore(Tensor(A) + 1).kernels[0])
    assert comparison.equal is None and "different computations" in str(comparison)
    (whole,) = explore(Tensor((A * 9).astype(np.int32)) // 4).kernels
    comparison = whole.compare(whole.without("idiv-by-shift"))
    assert comparison.equal and (comparison.error, comparison.tolerance) == (0, 0)


def _twice() -> Tensor:
    return (Tensor(A) @ Tensor(A).transpose()) * 2.0
