"""The default opts: which tile they choose, what they pack, and how sums are kept apart."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workbench import Tensor
from workbench.ir.axis import AxisType
from workbench.ir.opt.heuristic import heuristic
from workbench.ir.opt.heuristic_step import Step
from workbench.ir.opt.opt import Opt, OptOps, ranges
from workbench.ir.uop import UOp
from workbench.target import Target

AVX2 = Target("LLVM", vector_bytes=32, vector_registers=16)
AVX512 = Target("LLVM", vector_bytes=64, vector_registers=32)
TARGETS = {"AVX2": AVX2, "AVX-512": AVX512}


def kernels(tensor: Tensor) -> list[UOp]:
    return [i.kernel for i in tensor.schedule() if i.kernel is not None]


def zeros(*shape: int) -> Tensor:
    return Tensor(np.zeros(shape, np.float32)).realize()


def steps(kernel: UOp, target: Target) -> dict[str, Step]:
    return {step.name: step for step in heuristic(kernel, target)[2]}


def upcast(kernel: UOp) -> int:
    found = ranges(kernel).values()
    return math.prod(r.extent for r in found if r.axis_kind is AxisType.UPCAST)


PRODUCTS = {
    "matmul": lambda: zeros(512, 512) @ zeros(512, 512),
    "odd matmul": lambda: zeros(509, 383) @ zeros(383, 701),
    "few columns": lambda: zeros(512, 64) @ zeros(64, 7),
    "conv": lambda: zeros(1, 64, 58, 58).conv2d(zeros(64, 64, 3, 3)),
    "conv of a small image": lambda: zeros(1, 64, 9, 9).conv2d(zeros(64, 64, 3, 3)),
    "conv, stride 2": lambda: zeros(1, 16, 57, 57).conv2d(
        zeros(64, 16, 3, 3), stride=2
    ),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_get_a_tile_that_fits_the_registers(name: str, target: str) -> None:
    on = TARGETS[target]
    kernel = kernels(PRODUCTS[name]())[-1]
    made, opts, fired = heuristic(kernel, on)
    tile = next(step for step in fired if step.name == "register-tile")
    assert set(tile.opts) <= set(opts)  # none was refused
    assert tile.figures["registers"] <= on.vector_registers
    amounts = [
        o.arg for o in tile.opts if o.op is OptOps.UPCAST and isinstance(o.arg, int)
    ]
    assert math.prod(amounts) >= 4 * on.vector_width(4)
    assert upcast(made) >= math.prod(amounts)


@pytest.mark.parametrize("target", TARGETS)
def test_windows_that_overlap_stay_in_place(target: str) -> None:
    """On 64 columns no tile has to be rounded up."""
    weight = zeros(64, 64, 3, 3)
    plain = kernels(zeros(1, 64, 66, 66).conv2d(weight))[-1]
    held = steps(plain, TARGETS[target])["pack-operand"]
    assert [opt.op for opt in held.opts] == [OptOps.ORDER] * len(held.opts)
    assert held.figures["tile_bytes"] >= 2 * held.figures["bytes_in_place"]


@pytest.mark.parametrize("target", TARGETS)
def test_a_tile_packed_across_is_turned_in_registers(target: str) -> None:
    kernel = kernels(zeros(512, 512) @ zeros(512, 512).transpose(0, 1))[-1]
    wide = TARGETS[target].vector_width(4)
    opts = heuristic(kernel, TARGETS[target])[1]
    lanes = next(o.arg for o in opts if o.op is OptOps.UPCAST and o.axis == "g1")
    assert Opt(OptOps.UPCAST, "b_u0", lanes) in opts
    assert Opt(OptOps.UPCAST, "b_r0", wide) in opts


def test_sums_of_strided_elements_are_kept_apart() -> None:
    """A chain of 350,000 additions would be off by some 1e-4 of the variance."""
    x = np.random.default_rng(0).standard_normal((500, 1400)).astype(np.float32) + 3
    strided = Tensor(x).realize()[:, ::2]
    (kernel,) = kernels(strided.sum())
    assert "dot-lanes" in steps(kernel, AVX2)
    wide = x[:, ::2].astype(np.float64)
    assert strided.sum().item() == pytest.approx(wide.sum(), rel=1e-6)
    assert strided.var().item() == pytest.approx(wide.var(ddof=1), rel=1e-5)
