"""A linear program line by line."""

from __future__ import annotations

import numpy as np
import pytest

from workbench import Kernel, Opt, OptOps, Tensor, explore
from workbench.backends.gpu.work_group_device import common_gpu
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.program import program_lines
from workbench.pipeline import stages

GPU = common_gpu("GPU")


def linear(kernel: Kernel, *opts: Opt) -> tuple[UOp, ...]:
    return stages(kernel.ast, GPU, "linear", opts).linear


def kernel_of(tensor: Tensor) -> Kernel:
    return explore(tensor).kernels[-1]


def ones(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32)).realize()


def test_a_sum_of_a_group() -> None:
    lines = program_lines(linear(kernel_of(ones(4, 64).sum(1)), Opt(OptOps.GROUP, "r0", 4)))
    assert ["  " * line.depth + line.text for line in lines] == [
        "g0 in 4 (work-group x)",
        "x0 in 4 (work-item x)",
        "acc2 = 0.0",
        "acc0 = 0.0",
        "for r0 in 16 (reduce):",
        "  acc0 = acc0 + p1[g0*64 + x0 + r0*4]",
        "group0[x0] = acc0",
        "barrier",
        "for r1 in 4 (reduce):",
        "  acc2 = acc2 + group0[r1]",
        "if x0 < 1:",
        "  p0[g0] = acc2",
    ]


def test_registers_of_several_lanes() -> None:
    opts = Opt(OptOps.LOCAL, "g0", 2), Opt(OptOps.UPCAST, "g0", 2)
    program = linear(kernel_of(ones(4, 64).exp().sum(1)), *opts)
    texts = [line.text for line in program_lines(program)]
    assert "acc0[0] = 0.0" in texts and "acc0[1] = 0.0" in texts


def test_a_load_that_is_used_after_another_statement_has_a_line() -> None:
    product = linear(kernel_of(ones(8, 64).sum(1)), Opt(OptOps.GROUP, "r0", 32))
    load = next(n for n in product if n.op is Ops.LOAD)
    barrier = next(n for n in product if n.op is Ops.BARRIER)
    at = product.index(load) + 1
    lines = program_lines((*product[:at], barrier, *product[at:]))
    places = [n for n, line in enumerate(lines) if line.name.startswith("v")]
    (own,) = (lines[n] for n in places)
    name, value = own.text.split(" = ")
    assert value.startswith("p1[") and own.positions == (at - 1,)
    assert lines[places[0] + 1].text == "barrier"
    assert lines[places[0] + 2].text == f"acc0 = acc0 + {name}"


@pytest.mark.parametrize("size", [7, 64])
def test_every_statement_and_load_is_of_one_line(size: int) -> None:
    program = linear(kernel_of(ones(3, size).softmax(1)))
    lines = program_lines(program)
    ops = {Ops.LOAD, Ops.STORE, Ops.SET, Ops.LOOP, Ops.IF, Ops.BARRIER, Ops.SPECIAL}
    expected = [n for n, node in enumerate(program) if node.op in ops]
    positions = [p for line in lines for p in line.positions]
    assert len(set(positions)) == len(positions)
    assert set(expected) <= set(positions)
    assert [line.positions[-1] for line in lines] == sorted(line.positions[-1] for line in lines)
