"""Two kernels side by side: what differs is said, and wrong answers are not called equal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from workbench import Kernel, Opt, OptOps, Tensor, explore
from workbench.base.errors import DTypeError

A = np.random.default_rng(0).standard_normal((16, 32)).astype(np.float32)


def product() -> Kernel:
    (found,) = explore(Tensor(A) @ Tensor(A).transpose()).kernels
    return found


def test_opts_counts_source_and_answers() -> None:
    plain = product()
    wide = plain.apply(Opt(OptOps.UPCAST, "g1", 8)).without("form-fma")
    found = plain.compare(wide)
    assert found.opts == ("none", 'UPCAST("g1", 8), without form-fma')
    assert found.counts == (plain.counts, wide.counts)
    assert found.equal is True and found.error <= found.tolerance < 1e-3
    assert "+" in found.difference and found.times is None
    text = str(found)
    assert "answers: equal" in text and "--- this\n+++ other" in text
    assert "stores" in text and f"{plain.counts.stores:,}" in text
    assert "the sources are equal" in str(plain.compare(plain))
    long = plain.apply(Opt(OptOps.UPCAST, "g1", 0), Opt(OptOps.UPCAST, "g0", 8))
    assert "lines more" in str(plain.compare(long))


def test_times_are_measured_in_turns() -> None:
    plain = product()
    found = plain.compare(plain.optimized(), budget_s=0.02)
    assert found.times is not None
    assert list(found.times.samples) == ["this", "other"]
    assert str(found.times) in str(found)
    with pytest.raises(DTypeError, match="no time"):
        plain.compare(plain, budget_s="long")  # type: ignore[arg-type]


def test_answers_that_differ_are_told_from_equal_ones() -> None:
    plain = product()
    doubled = replace(plain, ast=explore(_twice()).kernels[0].ast)
    found = plain.compare(doubled)
    assert found.equal is False and found.error > 1
    assert "answers: DIFFERENT" in str(found)
    found = plain.compare(explore(Tensor(A) + 1).kernels[0])
    assert found.equal is None and "different computations" in str(found)
    (whole,) = explore(Tensor((A * 9).astype(np.int32)) // 4).kernels
    found = whole.compare(whole.without("idiv-by-shift"))
    assert found.equal and (found.error, found.tolerance) == (0, 0)


def _twice() -> Tensor:
    return (Tensor(A) @ Tensor(A).transpose()) * 2.0
