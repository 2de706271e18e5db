"""A machine that is the same everywhere: the tests of costs speak of it and not of this one."""

from __future__ import annotations

import numpy as np

from workbench.base.target import Target
from workbench.cost.kernel_cost import Cost, cost
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_opt
from workbench.ir.opt.opt import Opt, OptOps
from workbench.measure.speeds import Rate, Speeds
from workbench.tensor.tensor import Tensor
from workbench.viz import explore

TARGET = Target("LLVM", cores=2)
"""AVX2: registers of 8 float32, 16 of them."""
_READ = {
    "L1": Rate(200e9, 400e9),
    "L2": Rate(100e9, 200e9),
    "L3": Rate(50e9, 80e9),
    "memory": Rate(12e9, 16e9),
}
SPEEDS = Speeds(
    {"f32": Rate(128e9, 256e9), "f64": Rate(64e9, 128e9)},
    _READ, _READ, 1e-9, 0.125e-9, 1e-6, 5e-6,
)  # fmt: skip
"""4 GHz: a multiply-add takes 4 cycles, and two begin in each."""


def array(*shape: int) -> Tensor:
    """Return a float tensor of zeros: nothing is computed here."""
    return Tensor(np.zeros(shape, np.float32), device="LLVM")


def kernel_of(tensor: Tensor) -> UOp:
    """Return the graph of the last kernel that computes `tensor`."""
    return explore(tensor).kernels[-1].ast


def applied(kernel: UOp, *opts: Opt) -> UOp:
    """Return a kernel with opts applied."""
    for opt in opts:
        kernel, _ = apply_opt(kernel, opt, TARGET)
    return kernel


def upcast(axis: str, amount: int) -> Opt:
    return Opt(OptOps.UPCAST, axis, amount)


def cost_of(kernel: UOp, *opts: Opt) -> Cost:
    """Return what a kernel with opts costs on the machine of these tests."""
    return cost(applied(kernel, *opts), TARGET, SPEEDS, kernel)
