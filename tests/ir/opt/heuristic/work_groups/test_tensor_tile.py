"""The default opts use tensor cores where the dtypes fit, and what they make is right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.tools.kernels import LLVM
from workbench import Tensor, dtypes, explore
from workbench.backends.device import Device
from workbench.emulator.program import emulated
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.heuristic.default_opts import heuristic
from workbench.ir.opt.opt import OptOps
from workbench.pipeline import stages

MACHINES = ("CUDA:H100", "HIP:MI300X", "METAL:M3")
F16 = dtypes.float16


def matmul(m: int, n: int, k: int, dtype: Any = F16) -> UOp:
    a, b = Tensor.empty(m, k, dtype=dtype), Tensor.empty(k, n, dtype=dtype)
    return explore(a @ b).kernels[-1].ast


def names(graph: UOp, device: str) -> list[str]:
    return [step.name for step in heuristic(graph, Device[device].target)[2]]


@pytest.mark.parametrize("device", MACHINES)
@pytest.mark.parametrize("shape", [(128, 128, 64), (100, 70, 50), (64, 256, 96)])
def test_products_are_numpys(device: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    target = Device[device].target
    graph, _, steps = heuristic(matmul(m, n, k), target)
    assert [step.name for step in steps][:1] == ["tensor-tile"]
    dice = np.random.default_rng(3)
    a, b = (dice.uniform(-1.5, 1.5, size).astype(np.float16) for size in ((m, k), (k, n)))
    linear = stages(graph, target, "linear").linear
    arrays = [np.zeros(m * n, np.float16), a.reshape(-1), b.reshape(-1)]
    trace = emulated(linear, arrays, target)
    assert trace.findings == ()
    right = a.astype(np.float64) @ b.astype(np.float64)
    result = trace.outputs[0].view(np.float16).reshape(m, n)
    np.testing.assert_allclose(result.astype(np.float64), right, 0.01, 0.25)


def test_a_large_product_is_staged_for_warps_with_several_tiles() -> None:
    *_, steps = heuristic(matmul(4096, 4096, 4096), Device["CUDA:H100"].target)
    first = steps[0]
    assert first.counts["staged_inputs"] == 2
    assert first.counts["warps_of_a_group"] == 8
    assert first.counts["tiles_of_a_warp"] == 32
    assert first.counts["buffers"] == 3
    ops = {OptOps.TC, OptOps.UPCAST, OptOps.LOCAL, OptOps.PIPELINE}
    assert {opt.op for opt in first.opts} >= ops


@pytest.mark.parametrize("size", [4095, 4100, 1000, 4098])
def test_no_cliff_beside_a_power_of_two(size: int) -> None:
    """Axes are padded once, before the tile; copies are as wide as rows allow, and go on by
    themselves where that is a word."""
    kernel = matmul(size, size, size)
    graph, _, (first, *_) = heuristic(kernel, Device["CUDA:H100"].target)
    assert first.counts["tiles_of_a_warp"] >= 16
    assert first.counts["outputs_computed_for_a_useful_one"] < 1.12
    ops = [opt.op for opt in first.opts]
    assert OptOps.PADTO not in ops[ops.index(OptOps.TC) :]
    linear = stages(graph, Device["CUDA:H100"].target, "linear").linear
    copies = [n.dtype.count for n in linear if n.op is Ops.LOAD and _is_input(n)]
    assert {*copies} == {{4095: 1, 4100: 4, 1000: 8, 4098: 2}[size]}
    rows = [n for n in linear if n.op is Ops.EXCHANGE]
    assert len(rows) >= 8


def _is_input(load: UOp) -> bool:
    return load.place.param.op is Ops.PARAM


def test_where_they_do_not_fit() -> None:
    """float32 would be rounded to tf32; small axes would be padded too far; a core has none."""
    assert "tensor-tile" not in names(matmul(64, 64, 64, dtypes.float32), "CUDA:H100")
    assert "tensor-tile" in names(matmul(64, 64, 64, dtypes.float32), "METAL:M3")
    for shape in ((17, 9, 17), (3, 64, 64), (64, 3, 64)):
        assert "tensor-tile" not in names(matmul(*shape), "CUDA:H100")
    assert "tensor-tile" not in [s.name for s in heuristic(matmul(64, 64, 64), LLVM)[2]]


def test_axes_of_a_batch_stay_work_groups() -> None:
    a, b = Tensor.empty(8, 64, 64, dtype=F16), Tensor.empty(8, 64, 64, dtype=F16)
    graph = explore(a @ b).kernels[-1].ast
    assert names(graph, "CUDA:H100")[:1] == ["tensor-tile"]


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16])
def test_both_products_of_attention_are_of_tensor_cores(dtype: Any) -> None:
    q, k, v = (Tensor.empty(2, 64, 32, dtype=dtype) for _ in range(3))
    kernels = explore(q.scaled_dot_product_attention(k, v)).kernels
    firsts = [names(kernel.ast, "CUDA:H100")[0] for kernel in kernels]
    assert firsts.count("tensor-tile") == 2
