"""Kernels that write several buffers: from text through every stage, and in a schedule."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tests.tools.compiler import needs_c
from tests.viz.record.support import broken, plain
from workbench import Kernel, Tensor, TinyJit, explore
from workbench.ir.meaning.interpret import interpret_kernel
from workbench.ir.node.uop import UOp
from workbench.ir.text.parser import parse
from workbench.ir.text.printer import to_text
from workbench.ir.verify.verify import verify
from workbench.pipeline import stages
from workbench.viz.record.record import build

TEXT = """p0 = PARAM.float32 {0, 16}
g0 = RANGE.index 16 {"g0", GLOBAL}
v2 = INDEX.float32 p0, g0
p2 = PARAM.float32 {2, 512}
v4 = MUL.index g0, 32
r0 = RANGE.index 32 {"r0", REDUCE}
v6 = ADD.index v4, r0
v7 = INDEX.float32 p2, v6
v8 = LOAD.float32 v7
s9 = REDUCE.float32 v8, r0 {ADD}
v10 = STORE v2, s9
v11 = END v10, g0
p1 = PARAM.float32 {1, 512}
g1 = RANGE.index 32 {"g1", GLOBAL}
v14 = ADD.index v4, g1
v15 = INDEX.float32 p1, v14
v16 = INDEX.float32 p2, v14
v17 = LOAD.float32 v16
v18 = MUL.float32 v17, 2.0
v19 = STORE v15, v18
v20 = END v19, g0, g1
SINK v11, v20 {KernelInfo("two", ("g0", "g1", "r0"))}"""
DEVICES = ("LLVM", pytest.param("C", marks=needs_c), "PYTHON")


def expected(x: np.ndarray) -> list[np.ndarray]:
    return [x.reshape(16, 32).sum(1), x * 2]


def test_parts_have_names() -> None:
    graph = parse(TEXT)
    assert isinstance(graph, UOp) and to_text(graph) == TEXT
    first, second = graph.stores
    assert graph.outputs == (0, 1) and [s.place.param.slot for s in (first, second)] == [0, 1]
    assert first.place.param.length == 16 and first.value.combines.name == "ADD"
    assert second.place.flat_index is second.place.indexes[0]
    assert second.value.src[0].place.memory.slot == 2


def test_text_is_verified_and_interpreted() -> None:
    graph = parse(TEXT)
    assert isinstance(graph, UOp)
    verify(graph, "kernel")
    x = np.random.default_rng(0).standard_normal(512).astype(np.float32)
    outputs = [np.zeros(16, np.float32), np.zeros(512, np.float32)]
    for interpreted, want in zip(interpret_kernel(graph, [*outputs, x]), expected(x), strict=True):
        np.testing.assert_allclose(interpreted, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_every_stage_has_both(device: str) -> None:
    kernel = Kernel.from_text(TEXT, shape=(4, 4))
    reached = stages(kernel.ast, device, upto="source")
    verify(reached.linear, "linear")
    assert [size for _, size in reached.source.params] == [16, 512, 512]
    first, second = kernel.run(device)
    assert kernel.shape == (4, 4) == first.shape and second.shape == (512,)
    by_op = {opt.op: opt for opt in kernel.legal_opts()}
    for one in (kernel, kernel.optimized(), *map(kernel.apply, by_op.values())):
        result = one.check(device)
        assert result.ok and result.total == 528, one.applied_opts
    assert kernel.time(device, 0.01).median_s > 0
    assert kernel.bisect(device) is None


def test_values_and_pickles() -> None:
    kernel = Kernel.from_text(TEXT)
    for store, shape in zip(kernel.ast.stores, ((16,), (16, 32)), strict=True):
        assert kernel.values(store.value).array.shape == shape
    again = pickle.loads(pickle.dumps(kernel))
    for outputs, want in zip(again.run(), kernel.run(), strict=True):
        np.testing.assert_array_equal(outputs, want)


X = np.random.default_rng(1).standard_normal((8, 16)).astype(np.float32)


def two(x: Tensor) -> tuple[Tensor, Tensor]:
    return x * 2.0, (x + 1.0).relu()


WANTED = (X * 2, np.maximum(X + 1, 0))


@pytest.mark.parametrize("device", DEVICES)
def test_a_schedule_runs_it(device: str) -> None:
    outputs = two(Tensor(X, device=device).realize())
    Tensor.realize(*outputs)
    for tensor, want in zip(outputs, WANTED, strict=True):
        np.testing.assert_allclose(tensor.numpy(), want, rtol=1e-6)


def test_a_replay_runs_it() -> None:
    @TinyJit
    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        outputs = two(x)
        Tensor.realize(*outputs)
        return outputs

    for number in range(5):
        outputs = step(Tensor(X + number).realize())
        expected = (X + number) * 2, np.maximum(X + number + 1, 0)
        for tensor, want in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(tensor.numpy(), want, rtol=1e-6)


def test_an_exploration_shows_it() -> None:
    ex = explore(*two(Tensor(X)))
    (kernel,) = ex.kernels
    assert kernel.shapes == ((8, 16), (8, 16)) and len(ex.decisions) >= 2
    for shown_outputs, want in zip(kernel.run(), WANTED, strict=True):
        np.testing.assert_allclose(shown_outputs, want, rtol=1e-6)
    assert kernel.check().ok
    for shown_outputs, want in zip(pickle.loads(pickle.dumps(kernel)).run(), WANTED, strict=True):
        np.testing.assert_allclose(shown_outputs, want, rtol=1e-6)
    record = plain(build(ex, "full"))
    assert broken(record) == [] and plain(record) == record
    assert record["variants"][0]["error"] is None and record["variants"][0]["code"]
    stored = [d for d in record["plan"]["decisions"] if d["stored"] and d["kernel"] == 0]
    assert len(stored) == 2
    assert "elementwise mul, add+relu" in str(ex.code()) and kernel.bisect() is None
