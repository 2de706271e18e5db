"""The estimate of registers, against what a compiler said."""

from __future__ import annotations

import pytest

from tests.kernel.support import array, kernel_of, upcast
from workbench.backends.device import Device
from workbench.cost.gpu.registers import estimated_registers
from workbench.ir.node.uop import UOp
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


def test_more_accumulators_need_more_registers() -> None:
    kernel = kernel_of(X @ Y)
    amounts = [(upcast("g1", n),) if n > 1 else () for n in (1, 4, 16, 64)]
    estimates = [estimated_registers(linear(kernel, *opts)) for opts in amounts]
    assert estimates == sorted(estimates) and estimates[-1] >= estimates[0] + 63
    assert estimated_registers(linear(kernel, *amounts[-1]), 48) == 48
