"""Partial results of a work-group are combined in halves, with a barrier after each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support import by_rows
from workbench import Kernel, Opt, OptOps, Tensor, emulate, explore
from workbench.backends.gpu.work_group_device import common_gpu
from workbench.backends.program.analysis import analyse
from workbench.backends.program.text import signature
from workbench.emulator.program import emulated
from workbench.emulator.steps import Trace
from workbench.ir.lower.launch import barriers, halvings
from workbench.ir.node.ops import Ops
from workbench.pipeline import stages

GPU = common_gpu("GPU")
Array = np.ndarray[Any, Any]
REDUCTIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Array], Array]]] = {
    "sum": (lambda x: x.sum(1), lambda a: a.sum(1)),
    "max": (lambda x: x.max(1), lambda a: a.max(1)),
    "prod": (lambda x: x.prod(1), lambda a: a.prod(1)),
    "two at once": (lambda x: x.sum(1) * (x * x).sum(1), lambda a: a.sum(1) * (a * a).sum(1)),
}


def grouped(tensor: Tensor, items: int, *opts: Opt) -> Kernel:
    kernel = explore(tensor).kernels[-1]
    for opt in (*opts, Opt(OptOps.GROUP, "r0", items)):
        kernel = kernel.apply(opt)
    return kernel


def values_of(trace: Trace) -> Array:
    (values,) = trace.outputs.values()
    return values


@by_rows("items", [2, 5, 7, 8, 13, 64, 100, 255])
@by_rows("name", REDUCTIONS)
def test_any_number_of_parts(name: str, items: int) -> None:
    of_tensor, of_array = REDUCTIONS[name]
    rng = np.random.default_rng(items)
    values = rng.uniform(0.9, 1.1, (3, 2 * items)).astype(np.float32)
    kernel = grouped(of_tensor(Tensor(values).realize()), items)
    trace = emulate(kernel, GPU)
    np.testing.assert_allclose(values_of(trace), of_array(values), rtol=1e-4)
    assert not trace.findings
    waits = 1 + len([*halvings(items)])
    assert sum(trace.barriers.values()) == 3 * waits == barriers(kernel.ast, GPU)


def test_each_barrier_is_needed() -> None:
    values = np.ones((2, 64), np.float32)
    kernel = grouped(Tensor(values).realize().sum(1), 32)
    linear = stages(kernel.ast, GPU, "linear").linear
    places = [i for i, n in enumerate(linear) if n.op is Ops.BARRIER]
    assert len(places) == 4, "before 32 parts are read, and 16, 8, 4"
    for place in places:
        (race, *rest) = run((*linear[:place], *linear[place + 1 :])).findings
        assert (race.kind, race.memory) == ("race", "group0") and not rest


def run(linear: tuple[Any, ...]) -> Trace:
    params = signature(analyse(linear, GPU).params)
    arrays = [np.ones(size, dtype.numpy) for dtype, size in params]
    return emulated(linear, arrays, GPU)


def test_rows_beside_each_other() -> None:
    """Work-items of several rows combine theirs at the same time, again for each step of a loop."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((4, 96, 12), dtype=np.float32)
    x = Tensor(values).realize()
    kernel = grouped(x.sum(1), 6, Opt(OptOps.LOCAL, "g1", 4), Opt(OptOps.UPCAST, "g1", 3))
    trace = emulate(kernel, GPU)
    assert trace.launch.group == (4, 6) and not trace.findings
    np.testing.assert_allclose(values_of(trace), values.sum(1).ravel(), rtol=1e-4, atol=1e-5)


def test_a_sum_of_sums() -> None:
    values = np.random.default_rng(1).standard_normal((9, 5, 12), dtype=np.float32)
    kernel = explore(Tensor(values).realize().sum((0, 2))).kernels[-1]
    for opt in (Opt(OptOps.GROUP, "r0", 9), Opt(OptOps.GROUP, "r1", 6)):
        kernel = kernel.apply(opt)
    trace = emulate(kernel, GPU)
    assert sorted(trace.launch.group) == [6, 9] and not trace.findings
    expected = values.sum((0, 2))
    np.testing.assert_allclose(values_of(trace), expected, rtol=1e-4, atol=1e-5)


def test_fewer_work_items_than_parts() -> None:
    """An element is read again in a later step: by then it is another value."""
    values = np.arange(64, dtype=np.float32)
    kernel = explore(Tensor(values).realize().sum()).kernels[-1]
    for opt in (Opt(OptOps.GROUP, "r0", 16), Opt(OptOps.UNROLL, "x0", 8)):
        kernel = kernel.apply(opt)
    trace = emulate(kernel, GPU)
    assert trace.launch.group == (2,) and not trace.findings
    assert values_of(trace).tolist() == [values.sum()]


def test_what_else_reads_the_parts_sees_them_whole() -> None:
    """Only a tile that nobody else reads is combined in its own place."""
    values = np.random.default_rng(2).standard_normal((4, 64), dtype=np.float32)
    kernel = explore(Tensor(values).realize().softmax(1)).kernels[-1]
    kernel = kernel.apply(Opt(OptOps.GROUP, "r1", 64))
    trace = emulate(kernel, GPU)
    expected = np.exp(values - values.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(values_of(trace), expected.ravel(), rtol=1e-4, atol=1e-6)
    assert not trace.findings
