"""Parts of a reduction are combined from lane to lane where a machine has warp shuffles."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support import LONG, by_rows, count
from workbench import Kernel, Opt, OptOps, Tensor, emulate, explore
from workbench.backends.device import Device
from workbench.backends.gpu.work_group_device import common_gpu
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import WorkbenchError
from workbench.base.target import SHUFFLE_ALL, Target
from workbench.emulator.steps import Trace
from workbench.ir.lower.launch import barriers
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.pipeline import stages
from workbench.search.realization import tuned

Array = np.ndarray[Any, Any]
TREE = replace(common_gpu("GPU"), group_items=1024, group_limits=())
REDUCTIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Array], Array]]] = {
    "sum": (lambda x: x.sum(1), lambda a: a.sum(1)),
    "max": (lambda x: x.max(1), lambda a: a.max(1)),
    "prod": (lambda x: x.prod(1), lambda a: a.prod(1)),
    "two at once": (lambda x: x.sum(1) * (x * x).sum(1), lambda a: a.sum(1) * (a * a).sum(1)),
}
NUMBERS = [
    dtypes.bool, dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.int32,
    dtypes.uint32, dtypes.int64, dtypes.uint64, dtypes.float32, dtypes.float64,
]  # fmt: skip


def with_warps(lanes: int) -> Target:
    return replace(TREE, warp_lanes=lanes, shuffle_dtypes=SHUFFLE_ALL)


def applied(tensor: Tensor, *opts: Opt) -> Kernel:
    kernel = explore(tensor).kernels[-1]
    for opt in opts:
        kernel = kernel.apply(opt)
    return kernel


def right(kernel: Kernel, target: Target, expected: Array) -> Trace:
    trace = emulate(kernel, target)
    (values,) = trace.outputs.values()
    np.testing.assert_allclose(values, expected.ravel(), rtol=1e-4, atol=1e-5)
    assert not trace.findings, str(trace)
    assert sum(trace.barriers.values()) >= barriers(kernel.ast, target)
    return trace


def shared(linear: tuple[UOp, ...]) -> list[tuple[int, ...]]:
    return [n.memory_shape for n in linear if n.op is Ops.DEFINE and n.space == "shared"]


LANES = 16, 32, 64
ITEMS = 2, 6, 13, 16, 20, 48, 64, 100, 256, 320, 1000, 1024
PARTS = [
    (name, items, lanes)
    for i, name in enumerate(REDUCTIONS)
    for j, items in enumerate(ITEMS)
    for k, lanes in enumerate(LANES)
    if LONG or (i + j + k) % len(LANES) == 0
]
"""In a short run, each reduction with each number of parts, and each number with each warp."""


@by_rows(("name", "items", "lanes"), PARTS)
def test_any_number_of_parts(name: str, items: int, lanes: int) -> None:
    of_tensor, of_array = REDUCTIONS[name]
    rng = np.random.default_rng(items)
    values = rng.uniform(0.9, 1.1, (3, 2 * items)).astype(np.float32)
    kernel = applied(of_tensor(Tensor(values).realize()), group(items))
    trace = right(kernel, with_warps(lanes), of_array(values))
    assert sum(trace.barriers.values()) == barriers(kernel.ast, with_warps(lanes))
    assert bool(trace.shuffles) == (items % 2 == 0), "of an odd number none are paired"


def group(items: int, axis: str = "r0") -> Opt:
    return Opt(OptOps.GROUP, axis, items)


def test_one_cell_for_each_warp_and_one_barrier() -> None:
    values = np.random.default_rng(0).standard_normal((2, 2048), dtype=np.float32)
    kernel = applied(Tensor(values).realize().sum(1), group(1024))
    tree = right(kernel, TREE, values.sum(1))
    trace = right(kernel, with_warps(32), values.sum(1))
    assert [shared(t.linear) for t in (tree, trace)] == [[(1024,)], [(32,)]]
    assert [sum(t.barriers.values()) for t in (tree, trace)] == [2 * 9, 2 * 1]
    warps, steps, rounds = 2 * 32, 5, 2
    assert sum(trace.shuffles.values()) == warps * steps * rounds
    passes = [t.total("shared").transactions for t in (tree, trace)]
    assert passes == [2 * 262, warps * 2], "a warp stores once, and loads once"


@pytest.mark.parametrize("items", [2, 4, 16, 32])
def test_a_row_of_one_warp_needs_no_memory(items: int) -> None:
    values = np.random.default_rng(0).standard_normal((5, 64), dtype=np.float32)
    kernel = applied(Tensor(values).realize().sum(1), group(items))
    trace = right(kernel, with_warps(32), values.sum(1))
    assert not shared(trace.linear) and not trace.barriers
    assert barriers(kernel.ast, with_warps(32)) == 0 < barriers(kernel.ast, TREE)


@by_rows("dtype", NUMBERS, ids=str)
@by_rows("machine", ["CUDA:H100", "HIP:MI300X", "METAL:M3"])
def test_dtypes(machine: str, dtype: DType) -> None:
    """What a machine does not hand on stays in the tree, and is as right."""
    target = Device[machine].target
    rng = np.random.default_rng(1)
    if dtype.is_bool:
        values: Array = rng.random((4, 128)) < 0.01
        pairs = [(Tensor.any, values.any(1)), (Tensor.all, (~values).all(1))]
    else:
        values = rng.integers(0, 100, (4, 128)).astype(dtype.numpy)
        total = values.sum(1).astype(Tensor.empty(1, dtype=dtype).sum().dtype.numpy)
        pairs = [(Tensor.max, values.max(1)), (Tensor.sum, total)]
    for method, expected in pairs:
        x = Tensor(~values if method is Tensor.all else values).realize()
        kernel = applied(method(x, 1), group(64))
        linear = stages(kernel.ast, target, "linear").linear
        register = next(n.src[0] for n in linear if n.op is Ops.SET)
        shuffles = [n for n in linear if n.op is Ops.WARP_SHUFFLE]
        assert bool(shuffles) == target.can_shuffle(register.dtype), register
        right(kernel, target, expected)


def test_parts_of_neighbouring_results_stay_in_the_tree() -> None:
    """Work-items of a warp have parts of other results: they are lanes apart."""
    values = np.random.default_rng(0).standard_normal((96, 64), dtype=np.float32)
    opts = group(8), Opt(OptOps.LOCAL, "g0", 16), Opt(OptOps.ORDER, "x0", "l0")
    kernel = applied(Tensor(values).realize().sum(0), *opts)
    trace = right(kernel, with_warps(32), values.sum(0))
    assert not trace.shuffles and trace.barriers


def test_a_group_of_which_some_have_no_part_stays_in_the_tree() -> None:
    """The row's 64 work-items compute what 16 of them combine: not all come to a shuffle."""
    values = np.random.default_rng(0).standard_normal((4, 64), dtype=np.float32)
    kernel = explore(Tensor(values).realize().softmax(1)).kernels[-1]
    for opt in (group(16), Opt(OptOps.LOCAL, "i0", 64)):
        kernel = kernel.apply(opt)
    expected = np.exp(values - values.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)
    trace = right(kernel, with_warps(32), expected)
    assert trace.launch.group == (64,) and not trace.shuffles


def test_rows_beside_each_other() -> None:
    values = np.random.default_rng(0).standard_normal((4, 96, 12), dtype=np.float32)
    x = Tensor(values).realize()
    opts = Opt(OptOps.LOCAL, "g1", 4), Opt(OptOps.UPCAST, "g1", 3), group(48)
    trace = right(applied(x.sum(1), *opts), with_warps(32), values.sum(1))
    assert trace.launch.group == (4, 48) and trace.shuffles
    assert shared(trace.linear) == [(4, 3, 3)], "of a row three cells, for three results"


def test_a_sum_of_sums() -> None:
    values = np.random.default_rng(1).standard_normal((8, 5, 64), dtype=np.float32)
    kernel = explore(Tensor(values).realize().sum((0, 2))).kernels[-1]
    for opt in (group(8), group(32, "r1")):
        kernel = kernel.apply(opt)
    trace = right(kernel, with_warps(32), values.sum((0, 2)))
    assert sorted(trace.launch.group) == [8, 32] and trace.shuffles


@pytest.mark.parametrize("machine", ["CUDA:H100", "CUDA:A100", "HIP:MI300X", "METAL:M3"])
def test_default_opts_use_them(machine: str) -> None:
    values = np.random.default_rng(2).standard_normal((6, 512), dtype=np.float32)
    wide = values.astype(np.float64)
    powers = np.exp(wide - wide.max(1, keepdims=True))
    centred = wide - wide.mean(1, keepdims=True)
    x, target = Tensor(values).realize(), Device[machine].target
    for tensor, expected in (
        (x.sum(1), wide.sum(1)),
        (x.softmax(1), powers / powers.sum(1, keepdims=True)),
        (x.layernorm(), centred / np.sqrt(wide.var(1, keepdims=True) + 1e-5)),
        (x.argmax(1), values.argmax(1)),
        ((x > 3).any(1), (values > 3).any(1)),
    ):
        kernel = explore(tensor).kernels[-1]
        kernel = replace(kernel, ast=tuned(kernel.ast, machine))
        trace = right(kernel, target, expected)
        parts = {n.dtype for n in trace.linear if n.op is Ops.DEFINE}
        assert trace.shuffles or not all(map(target.can_shuffle, parts)), kernel
        assert barriers(kernel.ast, target) <= barriers(
            kernel.ast, replace(target, shuffle_dtypes=())
        )


def test_any_opts() -> None:
    """Shapes, reductions and opts drawn at random; what is computed has no finding."""
    shuffled = 0
    for seed in range(count(60)):
        pick, rng = random.Random(seed), np.random.default_rng(seed)
        shape = tuple(pick.choice([2, 3, 4, 8, 16, 24, 64]) for _ in range(3))
        values = rng.integers(-9, 10, shape).astype(np.float32)
        axes = tuple(sorted(pick.sample(range(3), pick.randint(1, 2))))
        x = Tensor(values).realize()
        of_max = pick.random() < 0.5
        kernel = explore(x.max(axes) if of_max else x.sum(axes)).kernels[-1]
        kernel = with_opts(kernel, pick)
        expected = values.max(axes) if of_max else values.sum(axes)
        target = with_warps(pick.choice([4, 16, 32]))
        try:
            trace = right(kernel, target, expected)
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {kernel.applied_opts}: {error}")
        shuffled += bool(trace.shuffles)
    assert shuffled > count(60) / 6


def with_opts(kernel: Kernel, pick: random.Random) -> Kernel:
    """Return a kernel with a GROUP, and up to three of the opts that meet it."""
    ops = [OptOps.GROUP] + pick.choices(
        [OptOps.GROUP, OptOps.GROUPTOP, OptOps.LOCAL, OptOps.UPCAST, OptOps.UNROLL],
        k=pick.randint(0, 3),
    )
    for op in ops:
        axis = pick.choice([a.name for a in kernel.axes])
        try:
            kernel = kernel.apply(Opt(op, axis, pick.choice([2, 3, 4, 8, 16])))
        except WorkbenchError:
            continue
    return kernel
