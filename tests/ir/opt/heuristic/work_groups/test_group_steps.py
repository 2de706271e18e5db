"""The default opts of a device with work-groups: right, free of races, and what memory moves is
what work-items ask for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.agreement.hunt import attempts, report
from tests.emulator.device import NAME, Emulated
from tests.ir.opt.heuristic.work_groups.kernels import KERNELS, Build
from tests.support import by_rows, count
from workbench import Tensor, explore
from workbench.backends.device import Device
from workbench.backends.gpu.work_group_device import common_gpu
from workbench.backends.program.launch import launch_shape
from workbench.base.target import Target
from workbench.emulator.steps import Trace
from workbench.ir.nest.estimates import executed
from workbench.ir.nest.loops import GROUP_DIMENSIONS, group_shape
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_opt, refuse_bytes
from workbench.ir.opt.heuristic.default_opts import GROUP_STEPS, heuristic
from workbench.ir.opt.heuristic.work_groups import item_count, width_along
from workbench.ir.opt.opt import Opt, OptOps, ranges
from workbench.pipeline import stages

Array = np.ndarray[Any, Any]
GPU = common_gpu("GPU")
MANY_UNITS = replace(GPU, cores=132, group_items=1024, shared_bytes=48 << 10)
WIDE_WARPS = replace(MANY_UNITS, warp_lanes=64, cores=304)
SEEDS = 740_000


@pytest.fixture
def device() -> Iterator[Emulated]:
    emulator = Device.register(Emulated())
    assert isinstance(emulator, Emulated)
    yield emulator
    Device.unregister(NAME)


def load(values: Array) -> Tensor:
    return Tensor(values, device=NAME).realize()


def run(device: Emulated, build: Build) -> list[Trace]:
    """Run a kernel, compare it with numpy, and return what happened."""
    tensor, expected = build(load)
    device.traces.clear()
    np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-3, atol=1e-4)
    return [*device.traces]


@by_rows("name", KERNELS)
def test_memory_moves_what_is_wanted(device: Emulated, name: str) -> None:
    most, build = KERNELS[name]
    traces = run(device, build)
    assert not [str(f) for trace in traces for f in trace.findings]
    totals = [trace.total("global") for trace in traces]
    moved, wanted = (
        sum(getattr(t, what) for t in totals) for what in ("bytes_moved", "bytes_wanted")
    )
    assert moved <= most * wanted
    shared = [trace.total("shared") for trace in traces]
    passes = sum(t.transactions for t in shared)
    assert sum(t.conflicts for t in shared) <= passes / 2


def test_a_transpose_is_without_conflicts(device: Emulated) -> None:
    for name in ("transposed", "transposed, long"):
        (trace,) = run(device, KERNELS[name][1])
        assert trace.total("shared").conflicts == 0 < trace.total("shared").requests


@by_rows("name", KERNELS)
def test_every_limit_is_kept(name: str) -> None:
    for kernel in kernels(name):
        for target in (
            GPU,
            MANY_UNITS,
            WIDE_WARPS,
            replace(GPU, group_items=64, shared_bytes=2048),
        ):
            graph, opts, steps = heuristic(kernel, target)
            shape = group_shape(graph)
            assert len(shape) <= GROUP_DIMENSIONS
            assert np.prod(shape) <= target.group_items, (opts, shape)
            if opts:
                assert refuse_bytes(opts[-1], kernel, graph, target) is None
            again = kernel
            for opt in opts:
                again, _ = apply_opt(again, opt, target)
            assert again is graph
            assert opts == tuple(o for step in steps for o in step.opts)
            assert all(step.why and str(step) for step in steps)


def kernels(name: str) -> list[UOp]:
    tensor, _ = KERNELS[name][1](lambda values: Tensor(values).realize())
    return [item.kernel for item in tensor.schedule() if item.kernel is not None]


def chosen(name: str, target: Target = GPU) -> dict[str, dict[str, float]]:
    (kernel,) = kernels(name)
    return {step.name: dict(step.counts) for step in heuristic(kernel, target)[2]}


def test_what_each_kernel_gets() -> None:
    assert chosen("elementwise").keys() == {"vectors", "work-items"}
    assert chosen("transposed").keys() == {"transposed-tile"}
    assert chosen("columns").keys() == {"group-columns"}
    for name in ("softmax", "rows", "softmax of column sums", "norm of column sums"):
        assert chosen(name).keys() == {"group-rows"}
    for name in ("product, 128", "product, odd", "convolution", "product with a transpose"):
        assert chosen(name)["product-tile"]["staged_inputs"] == 2


def test_work_items_share_out_the_sums_of_a_row() -> None:
    """Each work-item has some columns, and does not sum all of them."""
    (kernel,) = kernels("norm of column sums")
    graph, _, (step, *_) = heuristic(kernel, MANY_UNITS)
    linear = stages(graph, MANY_UNITS, "linear").linear
    loads = sum(
        times
        for node, times, _ in executed(linear)
        if node.op is Ops.LOAD and node.place.param.op is Ops.PARAM
    )
    items = int(np.prod(group_shape(graph)))
    assert loads * items <= step.counts["rows_of_a_group"] * 30 * 256


@pytest.mark.parametrize("name", ["product of few steps", "product, 128", "convolution"])
def test_a_tile_keeps_no_loop_from_the_grid(name: str) -> None:
    """Tiles that are the same in a loop would be copied before it, by the group that then has all
    of its steps."""
    (kernel,) = kernels(name)
    graph, _, (step, *_) = heuristic(kernel, MANY_UNITS)
    grid = launch_shape(stages(graph, MANY_UNITS, "linear").linear).grid
    assert step.name == "product-tile" and np.prod(grid) == step.counts["groups"]


def test_tiles_are_smaller_where_units_would_be_idle() -> None:
    few = chosen("product, 128")["product-tile"]
    many = chosen("product, 128", MANY_UNITS)["product-tile"]
    assert few["groups"] < many["groups"] and few["outputs_of_an_item"] > many["outputs_of_an_item"]


def test_a_long_sum_has_parts_where_units_have_one_group() -> None:
    """Each part has some steps to copy ahead; a length that has no whole tiles has none."""
    sizes = {128: "product, 128", 1024: "product, long"}
    parts = {k: chosen(name, MANY_UNITS)["product-tile"]["parts"] for k, name in sizes.items()}
    assert parts == {128: 2, 1024: 8}
    assert chosen("product, odd", MANY_UNITS)["product-tile"]["parts"] == 1


def test_columns_are_fewer_where_units_would_be_idle() -> None:
    columns = [chosen("columns", target)["group-columns"]["items"] for target in (GPU, MANY_UNITS)]
    assert columns == [32, 8], "a warp, and no less than a sector"


def test_a_vector_needs_aligned_rows() -> None:
    def width(columns: int) -> int:
        x = Tensor(np.ones((6, columns + 4), np.float32)).realize()
        (kernel,) = [i.kernel for i in (x[:, :columns] * 2).schedule() if i.kernel]
        return width_along(kernel, ranges(kernel)["g1"], GPU)

    assert [width(n) for n in (8, 12, 9, 10)] == [4, 4, 1, 2]


@pytest.mark.parametrize(
    "extent, most, warp, items",
    [
        (1024, 256, 32, 256),
        (1000, 256, 32, 250),
        (8385, 256, 32, 256),  # 8448 of them: 0.8 % are idle
        (77, 256, 32, 77),
        (7, 256, 32, 7),
        (1, 256, 32, 1),
        (53, 4, 32, 1),  # it has no divisor, and a warp is too long
    ],
)
def test_work_items_of_an_axis(extent: int, most: int, warp: int, items: int) -> None:
    assert item_count(extent, most, warp) == items


def test_work_items_of_any_axis() -> None:
    for extent in range(1, 300):
        for most in (1, 5, 64, 256):
            for warp in (1, 8, 32):
                items = item_count(extent, most, warp)
                assert 1 <= items <= max(1, most)
                assert -(-extent // items) * items <= 1.2 * extent


def test_a_processor_has_other_steps() -> None:
    (kernel,) = kernels("product, 128")
    names = {step.name for step in heuristic(kernel, Target("LLVM"))[2]}
    assert not names & {"product-tile", "work-items"} and "register-tile" in names
    assert len(GROUP_STEPS) == len(set(GROUP_STEPS))


def test_no_groups_where_a_user_wants_none(device: Emulated) -> None:
    x = load(np.arange(64, dtype=np.float32))
    kernel = explore(x * 2).kernels[-1].apply(Opt(OptOps.NOLOCALS))
    graph, _, _ = heuristic(kernel.ast, GPU)
    assert group_shape(graph) == ()


@pytest.mark.parametrize(
    "shape", [(1,), (2, 3), (17,), (31, 33), (1, 257), (257, 1), (3, 1, 5), (0, 4), (97, 101)]
)  # fmt: skip
def test_odd_sizes(device: Emulated, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)
    x = load(values)
    for tensor, expected in (
        (x * 2 + 1, values * 2 + 1),
        (x.sum(-1), values.sum(-1)),
        (x.sum(), values.sum()),
        (x.transpose(0, -1).contiguous(), values.swapaxes(0, -1)),
        (x.sum(0) + x.exp().sum(0), values.sum(0) + np.exp(values).sum(0)),
    ):
        np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-4, atol=1e-4)
    assert not [str(f) for trace in device.traces for f in trace.findings]


def test_random_programs(device: Emulated) -> None:
    seeds = range(SEEDS, SEEDS + count(300))
    for attempt in attempts(seeds, NAME, "default"):
        assert not attempt.verdict and not attempt.refusal, report(attempt)
        findings = [str(f) for trace in device.traces for f in trace.findings]
        assert not findings, (attempt.program.seed, findings)
        device.traces.clear()
