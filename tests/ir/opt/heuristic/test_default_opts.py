"""The default opts: which tile they choose, what they pack, and how sums are kept apart."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from workbench import Context, Tensor
from workbench.base.target import Target
from workbench.bench.suite import ENTRIES, Array, Entry
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_opt, why_not
from workbench.ir.opt.heuristic import default_opts as module
from workbench.ir.opt.heuristic.default_opts import STEPS, heuristic
from workbench.ir.opt.heuristic.step import HeuristicStep, HeuristicSteps
from workbench.ir.opt.opt import Opt, OptOps, ranges

AVX2 = Target("LLVM", vector_bytes=32, vector_registers=16)
AVX512 = Target("LLVM", vector_bytes=64, vector_registers=32)
TARGETS = {"AVX2": AVX2, "AVX-512": AVX512}


def kernels(tensor: Tensor) -> list[UOp]:
    return [i.kernel for i in tensor.schedule() if i.kernel is not None]


def zeros(*shape: int) -> Tensor:
    return Tensor(np.zeros(shape, np.float32)).realize()


def steps(kernel: UOp, target: Target) -> dict[str, HeuristicStep]:
    return {step.name: step for step in heuristic(kernel, target)[2]}


def upcast(kernel: UOp) -> int:
    axes = ranges(kernel).values()
    return math.prod(r.extent for r in axes if r.axis_kind is AxisType.UPCAST)


PRODUCTS = {
    "matmul": lambda: zeros(512, 512) @ zeros(512, 512),
    "odd matmul": lambda: zeros(509, 383) @ zeros(383, 701),
    "few columns": lambda: zeros(512, 64) @ zeros(64, 7),
    "conv": lambda: zeros(1, 64, 58, 58).conv2d(zeros(64, 64, 3, 3)),
    "conv of a small image": lambda: zeros(1, 64, 9, 9).conv2d(zeros(64, 64, 3, 3)),
    "conv, stride 2": lambda: zeros(1, 16, 57, 57).conv2d(zeros(64, 16, 3, 3), stride=2),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_get_a_tile_that_fits_the_registers(name: str, target: str) -> None:
    on = TARGETS[target]
    kernel = kernels(PRODUCTS[name]())[-1]
    variant, opts, fired = heuristic(kernel, on)
    tile = next(step for step in fired if step.name == "register-tile")
    assert set(tile.opts) <= set(opts)  # none was refused
    assert tile.counts["registers"] <= on.vector_registers
    amounts = [o.arg for o in tile.opts if o.op is OptOps.UPCAST and isinstance(o.arg, int)]
    assert math.prod(amounts) >= 4 * on.vector_width(4)
    assert upcast(variant) >= math.prod(amounts)


@pytest.mark.parametrize("target", TARGETS)
def test_windows_that_overlap_stay_in_place(target: str) -> None:
    """On 64 columns no tile has to be rounded up."""
    weight = zeros(64, 64, 3, 3)
    plain = kernels(zeros(1, 64, 66, 66).conv2d(weight))[-1]
    step = steps(plain, TARGETS[target])["pack-operand"]
    assert [opt.op for opt in step.opts] == [OptOps.ORDER] * len(step.opts)
    assert step.counts["tile_bytes"] >= 2 * step.counts["bytes_in_place"]


@pytest.mark.parametrize("target", TARGETS)
def test_a_tile_packed_across_is_turned_in_registers(target: str) -> None:
    kernel = kernels(zeros(512, 512) @ zeros(512, 512).transpose(0, 1))[-1]
    wide = TARGETS[target].vector_width(4)
    opts = heuristic(kernel, TARGETS[target])[1]
    lanes = next(o.arg for o in opts if o.op is OptOps.UPCAST and o.axis == "g1")
    assert Opt(OptOps.UPCAST, "b_u0", lanes) in opts
    assert Opt(OptOps.UPCAST, "b_r0", wide) in opts


@pytest.mark.parametrize("target", TARGETS)
def test_windows_too_narrow_for_lanes_leave_them_to_the_result(target: str) -> None:
    """Windows of 3 that lie 2 apart are nearer along the window, where no vector fits."""
    pool = kernels(zeros(1, 8, 66, 66).max_pool2d((3, 3), stride=2, padding=1))[-1]
    assert "vector-lanes" in steps(pool, TARGETS[target])
    small = zeros(1, 8, 20, 20).conv2d(zeros(16, 8, 3, 3), stride=2, padding=1)
    assert steps(kernels(small)[-1], TARGETS[target])


def gram(x: Tensor) -> Tensor:
    return x @ x.transpose(-1, -2)


def joint(x: Tensor) -> Tensor:
    """The scores of attention, of queries and keys in one buffer."""
    parts = x.reshape(64, 2, 4, 16).permute(1, 2, 0, 3)
    return parts[0] @ parts[1].transpose(-1, -2)


SAME_INPUT = {
    "a @ a": (lambda x: x @ x, 1),
    "a @ a.T": (gram, 1),
    "a.T @ a": (lambda x: x.T @ x, 1),
    "queries and keys": (joint, 1),
    "batches": (lambda x: gram(x.reshape(2, 64, 64)), 1),
}


@pytest.mark.parametrize("name", SAME_INPUT)
def test_an_operand_from_the_same_buffer_as_the_other_is_packed(name: str) -> None:
    build, slot = SAME_INPUT[name]
    shape = (64, 128) if name == "queries and keys" else (128, 128)
    shape = (128, 64) if name == "batches" else shape
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    (kernel,) = kernels(build(Tensor(x).realize()))
    opts = heuristic(kernel, AVX2)[1]
    assert [o.arg for o in opts if o.op is OptOps.STAGE] == [slot]
    for device in ("LLVM", "PYTHON"):
        with Context(DEV=device):
            actual = build(Tensor(x)).numpy()
        expected = build(Tensor(x.astype(np.float64))).numpy()
        np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("steps_of_sum", [1024, 1000])
def test_a_long_sum_over_an_operand_read_across_comes_in_blocks(steps_of_sum: int) -> None:
    """In a.T @ b each step reads another line of a, more of them than a core's first cache has."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (steps_of_sum, n)).astype(np.float32) for n in (48, 72))
    product = Tensor(a).realize().T @ Tensor(b).realize()
    (kernel,) = kernels(product)
    block = steps(kernel, AVX2)["sum-blocks"]
    length = int(block.counts["block"])
    assert block.opts == (
        Opt(OptOps.SPLIT, "r0", length),
        Opt(OptOps.ORDER, "r0", "g1"),
        Opt(OptOps.STAGE, "g1", 2),
    )
    assert length * 64 <= AVX2.l1_bytes / 4 and steps_of_sum % length == 0
    np.testing.assert_array_equal(product.numpy(), a.T @ b)
    for other in (zeros(48, 1024) @ zeros(1024, 72), zeros(64, 48).T @ zeros(64, 72)):
        assert "sum-blocks" not in steps(kernels(other)[0], AVX2)


def test_a_read_that_cannot_be_packed_has_no_lanes_across() -> None:
    """Both reads of a change with g1, so that STAGE cannot say which."""
    (kernel,) = kernels((a := zeros(96, 96)) @ (a.T + a))
    walks = steps(kernel, AVX2)
    assert all(o.op is not OptOps.STAGE for s in walks.values() for o in s.opts)


def test_sums_of_strided_elements_are_kept_apart() -> None:
    """A chain of 350,000 additions would be off by some 1e-4 of the variance."""
    x = np.random.default_rng(0).standard_normal((500, 1400)).astype(np.float32) + 3
    strided = Tensor(x).realize()[:, ::2]
    (kernel,) = kernels(strided.sum())
    assert "reduction-lanes" in steps(kernel, AVX2)
    wide = x[:, ::2].astype(np.float64)
    assert strided.sum().item() == pytest.approx(wide.sum(), rel=1e-6)
    assert strided.var().item() == pytest.approx(wide.var(ddof=1), rel=1e-5)


def _with_l2(size_bytes: int) -> Target:
    return replace(AVX2, caches=(("L1", 32 << 10), ("L2", size_bytes)))


def test_what_is_packed_and_which_rows_are_kept_is_for_the_caches() -> None:
    """A tile of 1024 rows of 32 lanes has 128 KiB, and 2000 sums have 8,000 bytes."""
    product = kernels(zeros(512, 1024) @ zeros(1024, 512))[-1]
    (columns,) = kernels(zeros(3000, 2000).sum(axis=0))
    tile = int(steps(product, AVX2)["pack-operand"].counts["tile_bytes"])
    row = 4 * int(steps(columns, AVX2)["reduce-outside"].counts["row_bytes"])
    for kernel, name, least in ((product, "pack-operand", tile), (columns, "reduce-outside", row)):
        holds, lacks = (_with_l2(n) for n in (least, least - 1))
        assert name in steps(kernel, holds)
        assert name not in steps(kernel, lacks)
        assert heuristic(kernel, holds)[1] != heuristic(kernel, lacks)[1]


def test_a_core_with_more_multiply_adds_in_flight_gets_a_larger_tile() -> None:
    product = kernels(zeros(512, 512) @ zeros(512, 512))[-1]
    sums = []
    for cycles in (1, 12):
        target = replace(AVX512, fma_cycles=cycles, fma_starts=((64, 2),))
        tile = steps(product, target)["register-tile"]
        sums.append(math.prod(int(o.arg) for o in tile.opts if isinstance(o.arg, int)))
    assert sums[0] < sums[1]


THIN = {
    "vector times matrix": lambda: zeros(1024) @ zeros(1024, 1000),
    "few rows": lambda: zeros(4, 1024) @ zeros(1024, 1000),
    "maximum over two outer axes": lambda: zeros(8, 64, 28, 28).max((0, 1)),
    "long rows": lambda: zeros(300, 30_000).sum(axis=0),
}


@pytest.mark.parametrize("name", THIN)
def test_what_is_read_once_is_read_in_order(name: str) -> None:
    """And on all cores: the reduction stands outside of the columns, inside of the threads."""
    variant, opts, fired = heuristic(kernels(THIN[name]())[-1], replace(AVX2, cores=2))
    step = next(step for step in fired if step.name == "reduce-outside")
    assert step.counts["steps_at_once"] == 4
    kinds = [ranges(variant)[axis].axis_kind for axis in variant.arg.order]
    assert kinds == [AxisType.THREAD, AxisType.REDUCE, AxisType.LOOP]


def test_rows_of_dot_products_share_what_they_load() -> None:
    """Not along the result's neighbours: those would become the vector, and gather."""
    fired = steps(kernels(zeros(4, 1024) @ zeros(1000, 1024).transpose(0, 1))[-1], AVX2)
    assert Opt(OptOps.UPCAST, "g0", 4) in fired["reduction-lanes"].opts
    assert fired["reduction-lanes"].counts == {"r0": 8, "g0": 4}


def weight_gradient(side: int) -> tuple[Tensor, Array]:
    """Return the gradient of 3 x 3 weights, 8 channels to 4, and numpy's answer."""
    random = np.random.default_rng(side)
    image = random.standard_normal((2, 8, side, side)).astype(np.float32)
    g = random.standard_normal((2, 4, side - 2, side - 2)).astype(np.float32)
    weight = Tensor.zeros(4, 8, 3, 3).contiguous().realize()
    y = Tensor(image).realize().conv2d(weight)
    taps = np.lib.stride_tricks.sliding_window_view(image, g.shape[2:], (2, 3))
    want = np.einsum("bcijyx,boyx->ocij", taps, g)
    return (y * Tensor(g).realize()).sum().gradient(weight)[0], want


@pytest.mark.parametrize("side", [10, 18, 34, 31])
def test_few_neighbours_of_results_get_a_dot_tile(side: int) -> None:
    """Three taps are no lanes; the images that are summed over have neighbours enough."""
    gradient, want = weight_gradient(side)
    (kernel,) = kernels(gradient)
    fired = steps(kernel, AVX2)
    assert "register-tile" not in fired and "vector-lanes" not in fired
    kinds = [opt.op for opt in fired["dot-tile"].opts]
    assert kinds.count(OptOps.UNROLL) == 1 and OptOps.UPCAST in kinds
    np.testing.assert_allclose(gradient.numpy(), want, rtol=1e-4, atol=1e-4)


def test_too_few_neighbours_to_sum_get_none() -> None:
    (kernel,) = kernels(weight_gradient(6)[0])
    assert "dot-tile" not in steps(kernel, AVX2)


STRIDED = {
    "few channels": ((1, 3, 64, 64), (32, 3, 3, 3), {"stride": 2}),
    "odd numbers of channels": ((1, 33, 31, 31), (31, 33, 3, 3), {"stride": 2}),
    "a large window": ((1, 13, 37, 37), (7, 13, 5, 5), {"stride": 2}),
    "each channel for itself": ((1, 32, 57, 57), (32, 1, 3, 3), {"stride": 2, "groups": 32}),
}


@pytest.mark.parametrize("name", STRIDED)
def test_strided_convolutions_get_lanes(name: str) -> None:
    """Windows are too short to be lanes of a sum, however near their elements lie."""
    image, weight, how = STRIDED[name]
    variant = heuristic(kernels(zeros(*image).conv2d(zeros(*weight), **how))[-1], AVX2)[0]
    assert upcast(variant) >= AVX2.vector_width(4)


SHORT = {
    "pooling": (lambda: zeros(1, 16, 56, 56).max_pool2d(3, stride=2, padding=1), 9),
    "each channel for itself": (
        lambda: zeros(1, 32, 58, 58).conv2d(zeros(32, 1, 3, 3), groups=32),
        3,
    ),
    "an average": (lambda: zeros(8, 512, 7, 7).mean((2, 3)), 56),
    "a product": (lambda: zeros(512, 512) @ zeros(512, 512), 1),
    "a full tile": (lambda: zeros(1, 16, 58, 58).conv2d(zeros(16, 16, 3, 3)), 1),
}


@pytest.mark.parametrize("name", SHORT)
def test_short_sums_lose_their_loops(name: str) -> None:
    """And nothing else does, nor do windows stand outside of what they are summed for."""
    make, lanes = SHORT[name]
    variant, _, fired = heuristic(kernels(make())[-1], AVX2)
    axes = ranges(variant).values()
    unrolled = [r.extent for r in axes if r.axis_kind is AxisType.UNROLL]
    assert math.prod(unrolled) == lanes
    assert "reduce-outside" not in {step.name for step in fired}


def test_the_steps_of_a_scan_in_lanes_have_no_masks() -> None:
    """Lanes take the elements up to their own one: with the steps unrolled, which is known."""
    (kernel,) = kernels(zeros(1000).cumsum())
    variant, _, fired = heuristic(kernel, AVX2)
    assert "known-masks" in {step.name for step in fired}
    reduces = [n for n in variant.toposort() if n.op is Ops.REDUCE]
    lanes = [n for n in reduces if any(r.axis_kind is AxisType.UPCAST for r in n.ranges)]
    assert lanes and all(r.axis_kind is AxisType.UNROLL for n in lanes for r in n.src[1:])
    (kernel,) = kernels(zeros(9, 8).tril().sum(1))
    assert "known-masks" not in {step.name for step in heuristic(kernel, AVX2)[2]}


def test_axes_of_a_fill_come_in_the_order_of_the_kernel() -> None:
    """Not in that of a set of nodes, which differs from process to process."""
    for side in range(17, 49, 2):  # each is a new set
        kernel = kernels(zeros(4, 32, side, side).conv2d(zeros(64, 32, 3, 3), stride=2))
        opts = heuristic(kernel[-1], AVX2)[1]
        filled = [opt.axis for opt in opts if str(opt.axis).startswith("a_")]
        assert filled == sorted(filled, key=str)


@pytest.mark.parametrize("rows, columns", [(16, 16), (512, 17)])
def test_a_factor_across_keeps_a_loop_to_be_packed_in(rows: int, columns: int) -> None:
    kernel = kernels(zeros(rows, 512) @ zeros(columns, 512).transpose(0, 1))[-1]
    packed = steps(kernel, AVX2)["pack-operand"]
    assert any(opt.op is OptOps.STAGE for opt in packed.opts)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
@pytest.mark.parametrize("smoke", [True, False], ids=["small", "full size"])
def test_a_step_says_what_was_applied(entry: Entry, smoke: bool) -> None:
    """And what the steps propose is legal, on every kernel of the benchmarks."""
    for target in (AVX2, replace(AVX512, cores=2)):
        inputs = [Tensor(a).realize() for a in entry.arrays(smoke)]
        for kernel in kernels(entry.tensor(*inputs)):
            variant, applied, fired = heuristic(kernel, target)
            assert applied == tuple(opt for step in fired for opt in step.opts)
            proposed = []
            for propose in STEPS:
                for opt in step.opts if (step := propose(kernel, target)) else ():
                    assert why_not(kernel, opt, target) is None
                    kernel, named = apply_opt(kernel, opt, target)
                    proposed.append(named)
            assert variant is kernel and applied == tuple(proposed)


def test_an_opt_that_is_refused_is_not_said_to_be_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = Opt(OptOps.UPCAST, "g0", 8), Opt(OptOps.UPCAST, "g7", 8)
    offers = [
        HeuristicStep("half", (bad, good), "one is"),
        HeuristicStep("none", (bad,), "none is"),
    ]
    proposers = tuple(lambda *_, offer=offer: offer for offer in offers)
    monkeypatch.setattr(module, "STEPS", proposers)
    kernel = kernels(zeros(128) + zeros(128))[-1]
    _, applied, fired = heuristic(kernel, AVX2)
    assert applied == (good,)
    assert [(step.name, step.opts) for step in fired] == [("half", (good,))]


def test_steps_print_with_why_and_figures() -> None:
    opts = Opt(OptOps.PADTO, "g1", 8), Opt(OptOps.UPCAST, "g1", 8)
    step_list = HeuristicSteps(
        [HeuristicStep("lanes", opts, "stride 1", {"row_bytes": 4096, "slots": 1.2})]
    )
    assert str(step_list) == (
        '1. lanes: PADTO("g1", 8), UPCAST("g1", 8)\n    stride 1\n    row bytes 4,096, slots 1.2'
    )
    assert str(HeuristicSteps()) == "no steps"
