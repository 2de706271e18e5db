"""The predicted cost of a run on a GPU that is not here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.kernel.support import array, kernel_of, upcast
from workbench.backends.device import Device
from workbench.base.errors import DeviceError, WorkbenchError
from workbench.base.target import Target
from workbench.cost.gpu.gpu_cost import GpuCost, gpu_bottleneck, gpu_change, gpu_cost
from workbench.cost.gpu.memory_traffic import kept_share
from workbench.cost.predicted_cost import predicted_cost, predicted_speedups, published_speeds
from workbench.emulator.emulate import emulate
from workbench.ir.opt.apply import apply_opt
from workbench.ir.opt.opt import Opt, OptOps
from workbench.kernel import compiled as said
from workbench.measure.kernel_time import seconds_text
from workbench.search.moves import ByPrediction
from workbench.tensor.tensor import Tensor
from workbench.viz import explore

H100 = Device["CUDA:H100"].target
GPUS = [
    name for name in Device.machine_names()
    if Device[name].target.has_groups and Device[name].target.hardware
]  # fmt: skip
A, B = array(2048, 2048), array(2048, 2048)


def local(axis: str, amount: int) -> Opt:
    return Opt(OptOps.LOCAL, axis, amount)


COALESCED = (upcast("g0", 4), local("g0", 256))
TILE = (upcast("g1", 8), upcast("g0", 8), local("g1", 16), local("g0", 16))


def cost(tensor: Tensor, *opts: Opt, target: Target = H100) -> GpuCost:
    kernel = original = kernel_of(tensor)
    for opt in opts:
        kernel, _ = apply_opt(kernel, opt, target)
    return gpu_cost(kernel, target, original)


@pytest.mark.parametrize("machine", GPUS)
def test_a_sum_of_two_large_arrays_takes_as_long_as_memory(machine: str) -> None:
    target = Device[machine].target
    assert target.hardware is not None
    big, other = (Tensor.empty(1 << 13, 1 << 13) for _ in range(2))
    result = cost(big + other, upcast("g0", 4), local("g0", 256), target=target)
    least = 3 * (4 << 26) / target.hardware.bandwidth("DRAM")
    kept = kept_share(3 * (4 << 26), target.last_cache_bytes)
    assert (1 - kept) * least <= result.predicted_s < 1.5 * least
    moved = pytest.approx((1 - kept) * 3 * (4 << 26))
    assert result.limit == "memory" and result.bytes_from["memory"] == moved
    assert gpu_bottleneck(result).what == "memory"


def test_what_fits_in_the_second_cache_stays_there() -> None:
    small = array(512, 512)
    assert cost(small + small, *COALESCED).bytes_from["memory"] == 0


def test_a_transposed_read_is_not_coalesced() -> None:
    aligned = cost(A + B, local("g0", 256))
    across = cost(A.T + B, local("g1", 32), local("g0", 8))
    rows = across.accesses
    assert aligned.accesses.transactions == aligned.accesses.least_transactions
    elements = 2048 * 2048
    assert rows.least_transactions == 3 * elements // 8
    # a warp is 4 by 8: in rows of 4 elements two accesses move twice what they want
    assert rows.transactions == 5 * elements // 8
    assert across.bytes_from["L1"] > 1.5 * aligned.bytes_from["L1"]
    assert any("would do" in line for line in across.notes())


def test_a_register_tile_makes_a_matmul_faster() -> None:
    plain, groups, tile = (
        cost(A @ B, *opts) for opts in ((), (local("g1", 32), local("g0", 8)), TILE)
    )
    assert plain.predicted_s > 5 * groups.predicted_s > 10 * tile.predicted_s
    assert tile.predicted_s > tile.estimates.flops / 66.9e12
    assert groups.bytes_from["L1"] > 3 * tile.bytes_from["L1"]
    assert tile.occupancy.limit == "registers"
    assert "L1" in gpu_bottleneck(groups).what


def test_what_is_loaded_and_stored_is_what_the_emulator_moves() -> None:
    a, b = array(64, 32), array(32, 64)
    opts = (local("g1", 16), local("g0", 8), upcast("g0", 4))
    kernel = explore(a @ b, device="CUDA:H100").kernels[0].apply(*opts)
    moved = emulate(kernel).total("global").bytes_moved
    result = gpu_cost(kernel.ast, H100, kernel.original)
    assert result.bytes_from["L1"] == pytest.approx(moved, rel=0.1)


@pytest.mark.parametrize("opts", [(), COALESCED[:1], TILE, TILE[:3], (local("g0", 32),)])
def test_each_level_moves_no_more_than_the_one_before(opts: tuple[Opt, ...]) -> None:
    result = cost(A @ B, *opts)
    moved = [result.bytes_from[level] for level in ("L1", "L2", "memory")]
    assert moved == sorted(moved, reverse=True)
    assert moved[1] >= result.estimates.bytes
    assert result.predicted_s >= max(result.seconds.values())
    assert result.limit in str(result) and str(gpu_bottleneck(result))


def test_a_launch_that_takes_longer_than_the_work_is_the_limit() -> None:
    """Of the estimate and of the bottleneck alike, and what they name adds up."""
    little = cost(array(64) + 1)
    assert little.limit == "launch" and "limited by launch" in str(little)
    times = f"it takes {seconds_text(little.launch_s)}, the work {seconds_text(little.work_s)}"
    assert str(gpu_bottleneck(little)) == f"launch: {times}"
    assert little.launch_s + little.work_s == pytest.approx(little.predicted_s)


def test_tiles_that_are_filled_ahead_come_from_the_second_cache_once() -> None:
    """The index of a copy, dealt out to work-items, is no sum of steps."""
    kernel = explore(array(512, 512) @ array(512, 512), device="CUDA:H100").kernels[0]
    moved = kernel.optimized().cost.bytes_from
    assert moved["L2"] <= moved["L1"]


def test_few_groups_leave_units_without_work() -> None:
    few = cost(array(64, 4096).sum(1), local("g0", 16))
    assert few.groups == 4 and few.busy == pytest.approx(4 / 132)
    assert gpu_bottleneck(few).what in ("latency", "work-groups")
    assert any("of the units work" in line for line in few.notes())


def test_the_last_turn_counts() -> None:
    """One group more than there are units takes two turns of each unit."""
    exact, more = (cost(array(groups * 32) * 2, local("g0", 32)) for groups in (132, 133))
    assert exact.busy == 1.0 and more.busy == pytest.approx(133 / 264)
    assert more.seconds["arithmetic"] == pytest.approx(2 * exact.seconds["arithmetic"])


def test_more_units_are_no_slower() -> None:
    assert H100.hardware is not None
    half = replace(H100.hardware, units=66, peaks=tuple((k, v / 2) for k, v in H100.hardware.peaks))
    for opts in ((), TILE):
        whole, less = (
            cost(A @ B, *opts, target=target) for target in (H100, replace(H100, hardware=half))
        )
        assert whole.predicted_s <= less.predicted_s


def test_registers_that_a_compiler_says_are_taken() -> None:
    kernel = kernel_of(A + B)
    result = gpu_cost(kernel, H100, kernel, registers=128)
    assert result.occupancy.use.registers == 128 and not result.estimated
    assert gpu_cost(kernel, H100, kernel).estimated


def test_what_an_opt_changes() -> None:
    (offer,) = predicted_speedups(kernel_of(A @ B), [(local("g1", 32),)], H100, None)
    assert offer.ratio is not None and offer.ratio > 4 and "->" in offer.why
    now = cost(A @ B, local("g1", 32))
    assert gpu_change(now, now) == ""
    assert "->" in gpu_change(now, cost(A @ B, local("g1", 32), upcast("g0", 8)))


def test_a_machine_without_figures_has_no_prediction() -> None:
    kernel = kernel_of(A + B)
    with pytest.raises(WorkbenchError, match="figures are not known"):
        predicted_cost(kernel, replace(H100, hardware=None))


def test_a_processor_that_is_not_here_is_predicted_by_its_figures() -> None:
    target = Device["LLVM:Graviton4"].target
    assert target.hardware is not None
    machine = published_speeds(target.hardware, target)
    speeds = [rate.together for rate in machine.read.values()]
    assert speeds == sorted(speeds, reverse=True)
    kernel = kernel_of(A @ B)
    plain = predicted_cost(kernel, target)
    threads, _ = apply_opt(kernel, Opt(OptOps.THREAD, "g0", 64), target)
    assert plain.predicted_s > 30 * predicted_cost(threads, target).predicted_s


def test_a_group_that_no_unit_holds_is_refused() -> None:
    assert H100.hardware is not None
    tiny = replace(H100, hardware=replace(H100.hardware, unit_items=128))
    with pytest.raises(DeviceError, match="256 work-items, and a unit holds 128"):
        cost(A + B, *COALESCED, target=tiny)


def test_shuffles_take_less_than_a_tree() -> None:
    """Less shared memory, fewer barriers and passes; a shuffle is a pass of its own."""
    plain = kernel_of(array(4096, 4096).sum(1))
    kernel, _ = apply_opt(plain, Opt(OptOps.GROUP, "r0", 512), H100)
    tree = gpu_cost(kernel, replace(H100, shuffle_dtypes=()), plain)
    warps = gpu_cost(kernel, H100, plain)
    groups = 4096
    rounds = 512 // 32
    assert warps.occupancy.use.shared_bytes == rounds * 4
    assert tree.occupancy.use.shared_bytes == 512 * 4
    assert warps.counts.barriers == groups < tree.counts.barriers
    assert warps.accesses.passes == groups * rounds * 2 < tree.accesses.passes
    steps = 5 + 4
    passes = warps.accesses.passes + groups * rounds * steps
    # what comes from memory takes the same pipe; a warp reads the last 16 by vectors of 4
    requests = groups * (rounds * 8 + 1)
    share = (passes + requests) / (tree.accesses.passes - groups * 32 + requests)
    names = "shared memory", "latency"
    ratios = [warps.seconds[name] / tree.seconds[name] for name in names]
    assert ratios[0] == pytest.approx(share) and ratios[1] < 1


def test_an_offer_says_what_it_gains() -> None:
    """More registers are the price of loads in flight, and fewer warps in a unit with them."""
    kernel = kernel_of(array(4096, 4096) @ array(4096))
    for opt in (local("g0", 32), Opt(OptOps.UNROLL, "r0", 16)):
        before = kernel
        kernel, _ = apply_opt(kernel, opt, H100)
    (offer,) = predicted_speedups(before, [(opt,)], H100, None)
    assert offer.ratio is not None and offer.ratio > 1.1
    assert offer.why.startswith(("a group waits less: ", "transactions: ")), offer.why
    now, then = (gpu_cost(ast, H100, before) for ast in (before, kernel))
    loss = gpu_change(then, now)
    assert loss.startswith(("a group waits longer: ", "transactions: ")), loss


def test_registers_of_a_compiler_are_those_of_a_kernel_and_of_a_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(said, "_registers", lambda *_: 200)
    kernel = explore(A @ B, device="CUDA:H100").kernels[0].optimized()
    result = kernel.cost
    assert isinstance(result, GpuCost) and not result.estimated
    assert result.occupancy.use.registers == 200
    (measured,) = ByPrediction(kernel.original, H100)(kernel.ast, [kernel.ast], None, False)
    assert measured.seconds == result.predicted_s
    monkeypatch.setattr(said, "_registers", lambda *_: None)
    assert kernel.cost.estimated  # type: ignore[attr-defined]
