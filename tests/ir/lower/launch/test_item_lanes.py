"""A work-item loads neighbours along any of its lanes at once, and picks from them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from workbench import Kernel, Opt, OptOps, Tensor, emulate, explore
from workbench.backends.gpu.work_group_device import common_gpu
from workbench.base.target import Target
from workbench.ir.node.ops import Ops
from workbench.pipeline import stages

Array = np.ndarray[Any, Any]
GPU = common_gpu("GPU")


def product(*opts: Opt, rows: int = 16) -> tuple[Kernel, Array]:
    """Return the kernel of `a.T @ b`, whose rows are neighbours in memory."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((24, rows), dtype=np.float32)
    b = rng.standard_normal((24, 16), dtype=np.float32)
    kernel = explore(Tensor(a).realize().T @ Tensor(b).realize()).kernels[-1]
    for opt in opts:
        kernel = kernel.apply(opt)
    return kernel, a.T @ b


def loads(kernel: Kernel, target: Target) -> Counter[int]:
    linear = stages(kernel.ast, target, "linear").linear
    return Counter(n.dtype.count for n in linear if n.op is Ops.LOAD)


TILE = (Opt(OptOps.UPCAST, "g0", 4), Opt(OptOps.UPCAST, "g1", 4))


def test_rows_and_columns_are_one_load_each() -> None:
    kernel, expected = product(*TILE)
    assert loads(kernel, GPU) == {4: 2}
    assert loads(kernel, Target("LLVM", vector_bytes=16)) == {4: 1, 1: 4}, (
        "a processor broadcasts from memory"
    )
    trace = emulate(kernel, GPU)
    (actual,) = trace.outputs.values()
    np.testing.assert_allclose(actual, expected.ravel(), rtol=1e-4, atol=1e-5)
    assert not trace.findings


def test_rows_beyond_the_end_are_loaded_one_by_one() -> None:
    kernel, expected = product(Opt(OptOps.PADTO, "g0", 4), *TILE, rows=13)
    trace = emulate(kernel, GPU)
    (actual,) = trace.outputs.values()
    np.testing.assert_allclose(actual, expected.ravel(), rtol=1e-4, atol=1e-5)
    assert not trace.findings


def test_lanes_without_a_vector() -> None:
    """A store of elements that lie apart takes them from one load."""
    values = np.arange(64, dtype=np.float32).reshape(8, 8)
    kernel = explore(Tensor(values).realize().T.contiguous()).kernels[-1]
    kernel = kernel.apply(Opt(OptOps.UPCAST, "g0", 4))
    assert loads(kernel, GPU) == {4: 1}
    (actual,) = emulate(kernel, GPU).outputs.values()
    np.testing.assert_array_equal(actual, values.T.ravel())
