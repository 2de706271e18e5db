"""Default opts of rows that are reduced: no simple choice of work-items is predicted far faster."""

from __future__ import annotations

import pytest

from tests.support import LONG, by_rows
from workbench import Opt, OptOps, Tensor, explore
from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError
from workbench.cost.default_opts import default_opts
from workbench.cost.predicted_cost import predicted_cost
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_if_legal

MACHINES = ("CUDA:H100", "CUDA:A100", "CUDA:RTX 4090", "HIP:MI300X", "METAL:M3", "OPENCL:Iris Xe")
SHAPES = [(64, 1000), (64, 1024), (1024, 512), (1024, 1024), (16384, 1024), (4096, 1000)]
SHAPES += [(1024, 1023), (1024, 4096), (16384, 512), (16384, 100)] if LONG else []
PAIRS = [
    (machine, shape)
    for m, machine in enumerate(MACHINES)
    for n, shape in enumerate(SHAPES)
    if LONG or (m + n) % 3 == 0
]


def seconds(kernel: UOp, machine: str) -> float:
    try:
        return predicted_cost(kernel, Device[machine].target).predicted_s
    except WorkbenchError:
        return float("inf")


@by_rows(("machine", "shape"), PAIRS)
def test_work_items_share_a_row(machine: str, shape: tuple[int, int]) -> None:
    target = Device[machine].target
    kernel = explore(Tensor.empty(*shape).softmax(-1)).kernels[0].ast
    result = default_opts(kernel, target)
    assert any(opt.op is OptOps.GROUP for opt in result.opts), result.steps
    best = seconds(result.kernel, machine)
    for items in (32, 64, 128, 256):
        other: UOp | None = kernel
        for axis in ("r0", "r1"):
            opt = Opt(OptOps.GROUP, axis, items)
            other = None if other is None else apply_if_legal(other, opt, target)
        if other is not None:
            assert best < 1.5 * seconds(other, machine), items


@pytest.mark.parametrize("columns", [512, 1000, 1024, 4096])
@pytest.mark.parametrize("rows", [16, 64, 1024])
def test_work_items_share_a_row_in_a_browser(rows: int, columns: int) -> None:
    """Its figures are not known, so nothing is predicted."""
    kernel = explore(Tensor.empty(rows, columns).softmax(-1)).kernels[0].ast
    opts = default_opts(kernel, Device["WEBGPU:BROWSER"].target).opts
    assert sum(opt.op is OptOps.GROUP for opt in opts) == 2, opts
