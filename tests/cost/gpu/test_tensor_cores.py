"""The predicted cost of products on tensor cores."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workbench import Tensor, dtypes, explore
from workbench.backends.device import Device
from workbench.base.dtypes import DType
from workbench.cost.gpu.gpu_cost import GpuCost, gpu_bottleneck, gpu_change, gpu_cost, peaks
from workbench.cost.gpu.item_work import item_work
from workbench.emulator.emulate import emulate
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_opt
from workbench.ir.opt.heuristic.default_opts import heuristic
from workbench.ir.opt.opt import Opt, OptOps
from workbench.pipeline import stages

TARGETS = {name: Device[name].target for name in Device.machine_names()}
MACHINES = [
    name for name, target in TARGETS.items()
    if target.tensor_cores and target.hardware and target.has_groups
]  # fmt: skip
H100 = Device["CUDA:H100"].target
REGISTERS = (Opt(OptOps.UPCAST, "g0", 4), Opt(OptOps.UPCAST, "g1", 8))
WARPS = (Opt(OptOps.LOCAL, "g0", 2), Opt(OptOps.LOCAL, "g1", 2))


def product(size: int, operand: DType, accumulator: DType) -> UOp:
    a, b = (Tensor.empty(size, size, dtype=operand) for _ in range(2))
    y = a.cast(accumulator) @ b.cast(accumulator)
    return explore(y).kernels[-1].ast


def cost(size: int, core: int, *opts: Opt, machine: str = "CUDA:H100") -> GpuCost:
    """Return the cost of a square product on a tensor core of a machine, by its number."""
    target = Device[machine].target
    chosen = target.tensor_cores[core]
    plain = kernel = product(size, chosen.operand, chosen.accumulator)
    for opt in (Opt(OptOps.TC, "g0 g1 r0", chosen.shape), *opts):
        kernel, _ = apply_opt(kernel, opt, target)
    return gpu_cost(kernel, target, plain)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_products_of_a_kernel_take_as_long_as_its_peak_lets_them(machine: str) -> None:
    target = Device[machine].target
    hardware = target.hardware
    assert hardware is not None
    for number, core in enumerate(target.tensor_cores):
        size = 512
        result = cost(size, number, machine=machine)
        at_peak = 2 * size**3 / hardware.tensor_peak(core.operand_format)
        assert result.seconds["tensor cores"] * result.busy == pytest.approx(at_peak)
        assert result.kind == f"{core.operand_format} tensor cores"
        assert result.roofs()[result.kind] == hardware.tensor_peak(core.operand_format)
        assert result.peak == peaks(target)[result.kind]


def test_a_tile_is_counted_as_the_emulator_runs_it() -> None:
    core = H100.tensor_cores[0]
    ex = explore(
        Tensor.empty(32, 32, dtype=core.operand).float()
        @ Tensor.empty(32, 32, dtype=core.operand).float(),
        device="CUDA:H100",
    )
    kernel = ex.kernels[-1].apply(Opt(OptOps.TC, "g0 g1 r0", core.shape))
    trace = emulate(kernel)
    items = math.prod(trace.launch.grid) * math.prod(trace.launch.group)
    work = item_work(trace.linear)
    run = sum(trace.executed[p] for p, n in enumerate(trace.linear) if n.op is Ops.WMMA)
    volume = core.m * core.n * core.k
    assert work.products == {"float16": volume * run // items}
    assert run // H100.warp_lanes * volume == 32**3


def test_tensor_cores_are_the_bottleneck_where_nothing_else_is_slower() -> None:
    """Products of doubles: few, for the bytes that they need."""
    cores = Device["CUDA:A100"].target.tensor_cores
    number = [core.operand for core in cores].index(dtypes.float64)
    result = cost(2048, number, *REGISTERS, *WARPS, machine="CUDA:A100")
    assert result.limit == "tensor cores", result
    said = str(gpu_bottleneck(result))
    assert said.startswith("tensor cores: the 19.5 TFLOP/s of float64 tensor cores,")


def test_a_kernel_with_tensor_cores_is_predicted_faster() -> None:
    plain = product(2048, dtypes.float16, dtypes.float32)
    without = plain
    for opt in (*REGISTERS, Opt(OptOps.LOCAL, "g0", 8), Opt(OptOps.LOCAL, "g1", 16)):
        without, _ = apply_opt(without, opt, H100)
    usual, fast = gpu_cost(without, H100, plain), cost(2048, 0, *REGISTERS, *WARPS)
    assert "tensor cores" not in usual.seconds and list(usual.roofs())[0] == "peak"
    assert usual.predicted_s > 1.25 * fast.predicted_s  # neither is staged
    default = gpu_cost(heuristic(plain, H100)[0], H100, plain)
    assert usual.predicted_s > 2 * default.predicted_s
    assert fast.seconds["arithmetic"] < usual.seconds["arithmetic"] / 10
    assert "->" in gpu_change(usual, fast)


def test_its_operations_are_not_those_of_a_work_item() -> None:
    kernel, _ = apply_opt(
        product(64, dtypes.float16, dtypes.float32), Opt(OptOps.TC, "g0 g1 r0", "16x8x16"), H100
    )
    work = item_work(stages(kernel, H100, upto="linear").linear)
    assert "float32" not in work.operations
    assert work.products == {"float16": 16 * 8 * 64}


@pytest.mark.parametrize("machine", ["CUDA:H100", "HIP:MI300X"])
@pytest.mark.parametrize("ahead", [False, True])
def test_what_some_work_items_fill_is_counted_as_the_emulator_runs_it(
    machine: str, ahead: bool
) -> None:
    """A tile that has fewer vectors than a group has work-items is filled by some of them; of a
    warp that reads two matrices by rows, half of the lanes read. A tile that is filled ahead is not
    in the last steps: those loads are masked, and the count of instructions has them."""
    a, b = (np.ones(shape, np.float16) for shape in ((64, 256), (256, 64)))
    kernel = explore(Tensor(a) @ Tensor(b), device=machine).kernels[0]
    target = Device[machine].target
    _, proposed, _ = heuristic(kernel.ast, target)
    opts = [o for o in proposed if o.op is not OptOps.PIPELINE]
    assert any(o.op is OptOps.STAGE for o in opts)
    kernel = kernel.apply(*opts)
    if ahead:
        kernel = kernel.apply(Opt(OptOps.PIPELINE, "r0", 3))
    accesses = emulate(kernel).accesses.values()
    stored = sum(a.bytes_wanted for a in accesses if a.is_store)
    loaded = sum(a.bytes_wanted for a in accesses if not a.is_store)
    assert kernel.counts.bytes_stored == stored
    assert kernel.counts.bytes_loaded == loaded or ahead
    assert kernel.counts.bytes_loaded >= loaded


def test_two_matrices_are_read_by_half_of_a_warp() -> None:
    """16 rows of 16 bytes: 256 bytes for each warp, and not 512."""
    a, b = (np.ones(shape, np.float16) for shape in ((64, 256), (256, 64)))
    kernel = explore(Tensor(a) @ Tensor(b), device="CUDA:H100").kernels[0].optimized()
    steps = kernel.compile()["linear"]
    pairs = [
        at
        for at, node in enumerate(steps)
        for other in steps
        if other.op is Ops.EXCHANGE and other.src[0] is node and "-" in other.arg[0].lane
    ]
    assert pairs
    accesses = emulate(kernel).accesses
    for at in pairs:
        assert accesses[at].bytes_wanted == 256 * accesses[at].requests
