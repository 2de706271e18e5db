"""The estimate of registers, against what a compiler said."""

from __future__ import annotations

import statistics

import pytest

from tests.kernel.support import array, kernel_of, upcast
from workbench import dtypes, explore
from workbench.backends.device import Device
from workbench.cost.gpu.item_work import estimated_registers
from workbench.ir.node.uop import UOp
from workbench.ir.opt.heuristic.default_opts import heuristic
from workbench.ir.opt.opt import Opt, OptOps
from workbench.pipeline import stages
from workbench.tensor.tensor import Tensor

MACHINE = "CUDA:H100"
X, Y = array(256, 256), array(256, 256)
LOCAL = Opt(OptOps.LOCAL, "g0", 32)
# registers that ptxas 13.0 says of a kernel for sm_90
CASES: list[tuple[Tensor, tuple[Opt, ...], int]] = [
    (X + Y, (), 12),
    (X + Y, (upcast("g0", 8), LOCAL), 22),
    (X.exp(), (), 12),
    (X.exp(), (upcast("g0", 8), LOCAL), 23),
    (X.gelu(), (), 15),
    (X.gelu(), (upcast("g0", 8), LOCAL), 28),
    (X.T.contiguous() + 1, (), 10),
]


def linear(kernel: UOp, *opts: Opt) -> tuple[UOp, ...]:
    return stages(kernel, Device[MACHINE].target, "linear", opts).linear


@pytest.mark.parametrize(("tensor", "opts", "registers"), CASES)
def test_straight_code_needs_about_what_a_compiler_says(
    tensor: Tensor, opts: tuple[Opt, ...], registers: int
) -> None:
    estimate = estimated_registers(linear(kernel_of(tensor), *opts))
    assert estimate == pytest.approx(registers, rel=0.3)


HALVES = [Tensor.empty(n, n, dtype=dtypes.float16) for n in (512, 1024, 4096)]
ROWS = Tensor.empty(4096, 4096)
# registers that NVRTC 13.5 says of a kernel with its proposed opts, or without, for sm_90
KERNELS: list[tuple[Tensor, bool, int]] = [
    (Tensor.empty(512, 512) @ Tensor.empty(512, 512), True, 40),
    (Tensor.empty(1024, 1024) @ Tensor.empty(1024, 1024), True, 112),
    (Tensor.empty(4096, 4096) @ Tensor.empty(4096, 4096), True, 115),
    (Tensor.empty(4096, 4096) @ Tensor.empty(4096, 4096), False, 47),
    *[(a @ Tensor.empty(*a.shape, dtype=a.dtype), True, said) for a, said in
      zip(HALVES, (76, 142, 208), strict=True)],
    (Tensor.empty(1 << 24).sum(), True, 32), (ROWS.sum(1), False, 62),
    (ROWS.softmax(-1), True, 32), (ROWS.softmax(-1), False, 62),
    (ROWS.layernorm(), True, 32), (ROWS.layernorm(), False, 64), (ROWS.argmax(-1), False, 62),
    (Tensor.empty(16, 256, 64) @ Tensor.empty(16, 64, 256), True, 77),
    (Tensor.empty(64, 4096) @ Tensor.empty(4096, 64), True, 32),
]  # fmt: skip


def test_the_estimate_is_mostly_near_and_never_far() -> None:
    target, ratios = Device[MACHINE].target, []
    for tensor, is_optimized, said in KERNELS:
        kernel = explore(tensor).kernels[0].ast
        if is_optimized:
            kernel = heuristic(kernel, target)[0]
        ratios.append(estimated_registers(linear(kernel)) / said)
    assert 0.85 < statistics.median(ratios) < 1.15
    assert 0.6 < min(ratios) and max(ratios) < 1.7
    assert sum(0.7 < r < 1.35 for r in ratios) >= 0.8 * len(ratios), ratios


def test_more_accumulators_need_more_registers() -> None:
    kernel = kernel_of(X @ Y)
    amounts = [(upcast("g1", n),) if n > 1 else () for n in (1, 4, 16, 64)]
    estimates = [estimated_registers(linear(kernel, *opts)) for opts in amounts]
    assert estimates[1:] == sorted(estimates[1:]) and estimates[-1] >= 64 + 8
    assert estimated_registers(linear(kernel, *amounts[-1]), 48) == 48
