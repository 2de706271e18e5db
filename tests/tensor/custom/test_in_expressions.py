"""A kernel written by hand in the middle of an expression: scheduled once, in its place."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from tests.tensor.custom.kernels import add, moments, numbers, row_sums
from workbench import Opt, OptOps, Tensor, TinyJit, explore, load
from workbench.base.context import Context
from workbench.base.errors import WorkbenchError
from workbench.counters import GlobalCounters
from workbench.viz.record.record import build


def names(*tensors: Tensor) -> list[str]:
    """Return the kernels of a schedule: those of ours by their kind."""
    kernels = [i.kernel for i in tensors[0].schedule(*tensors[1:]) if i.kernel is not None]
    return [k.arg.name if "_" not in k.arg.name[:2] else "ours" for k in kernels]


def sums_of(x: Tensor) -> Tensor:
    return Tensor.empty(x.shape[0]).custom_kernel(x, fxn=row_sums)[0]


def test_neighbours_are_fused_up_to_it() -> None:
    x = Tensor(numbers(5, 7)).realize()
    y = (sums_of((x + 1) * 2) * 3 - 1).relu()
    assert names(y) == ["ours", "row_sums", "ours"]
    expected = np.maximum(((x.numpy() + 1) * 2).sum(1) * 3 - 1, 0)
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5)
    assert names(sums_of(x)) == ["row_sums"], "what is in memory needs no kernel before"
    assert names(sums_of(x.reshape(7, 5))) == ["row_sums"], "in another shape neither"


def test_equal_kernels_are_one_and_run_once() -> None:
    x, y = Tensor(numbers(5, 7)).realize(), Tensor(numbers(5, 7) * 2).realize()
    both = sums_of(x) + sums_of(x) * 2 + sums_of(y)
    assert names(both) == ["row_sums", "row_sums", "ours"]
    kernels = [i.kernel for i in both.schedule()]
    assert kernels[0] is kernels[1], "it is compiled once"
    expected = x.numpy().sum(1) * 3 + y.numpy().sum(1)
    np.testing.assert_allclose(both.numpy(), expected, rtol=1e-5)


def test_one_feeds_another() -> None:
    x = Tensor(numbers(4, 4)).realize()
    once = sums_of(x)
    twice = Tensor.empty(4).custom_kernel(once, once, fxn=add)[0]
    assert names(twice) == ["row_sums", "add"]
    np.testing.assert_allclose(twice.numpy(), x.numpy().sum(1) * 2, rtol=1e-6)


def test_outputs_are_computed_together() -> None:
    x = Tensor(numbers(6, 11)).realize()
    mean, square, same = Tensor.empty(6).custom_kernel(Tensor.empty(6), x, fxn=moments)
    assert same is x
    assert names(square - mean * mean) == ["moments", "ours"]
    variance = (square - mean * mean).numpy()
    np.testing.assert_allclose(variance, x.numpy().var(1), rtol=1e-4)
    values = square.numpy()
    assert not mean.schedule(), "it was computed with the other one"
    np.testing.assert_allclose(values, (x.numpy() ** 2).mean(1), rtol=1e-5)


def test_no_cycle_comes_of_joint_kernels() -> None:
    x = Tensor(numbers(8, 8)).realize()
    first = (x * 2).sum(1)
    between = Tensor.empty(8).custom_kernel(first, first, fxn=add)[0]
    second = x.sum(1) + between
    results = Tensor.realize(first, second, between)
    assert results is first
    np.testing.assert_allclose(second.numpy(), x.numpy().sum(1) * 5, rtol=1e-5)


def test_memory_is_written_over_only_where_nothing_is_lost() -> None:
    x = Tensor(numbers(9)).realize()
    before, memory = x.numpy(), x.clone().realize()
    reverse = lambda out, x: out.__setitem__(i := out.axis(0), x[i * -1 + 8] + x[i])  # noqa: E731
    memory.assign(Tensor.empty(9).custom_kernel(memory, fxn=reverse)[0]).realize()
    np.testing.assert_allclose(memory.numpy(), before[::-1] + before, rtol=1e-6)
    memory += Tensor.empty(9).custom_kernel(memory, memory, fxn=add)[0]
    np.testing.assert_allclose(memory.numpy(), 3 * (before[::-1] + before), rtol=1e-6)


@pytest.mark.parametrize("device", ["LLVM", "C", "PYTHON"])
def test_a_captured_function_runs_it_again(device: str) -> None:
    with Context(DEV=device):
        step = TinyJit(lambda x: (sums_of(x + 1) * 2).realize())
        for seed in range(4):
            x = numbers(3, 5) + seed
            GlobalCounters.reset()
            result = step(Tensor(x).realize()).numpy()
            np.testing.assert_allclose(result, (x + 1).sum(1) * 2, rtol=1e-5)
        assert GlobalCounters.kernel_count == 3


def test_it_is_explored_like_others(tmp_path: Path) -> None:
    x = Tensor(numbers(64, 32)).realize()
    total = sums_of(x + 1)
    y = total * 2
    ex = explore(y)
    kernel = ex.kernels[1]
    assert [k.title for k in ex.kernels] == [
        "elementwise add", "row_sums: sum", "elementwise mul",
    ]  # fmt: skip
    assert kernel.name == "row_sums" and kernel.names[0] == "total"
    assert kernel.line is not None and "sums_of" in kernel.line.text
    opts = kernel.apply(Opt(OptOps.SPLIT, "g0", 8), Opt(OptOps.UPCAST, "g1", 4))
    assert opts.check().ok and opts.legal_opts()
    assert opts.time(budget_s=0.01).median_s > 0
    assert "row_sums" in opts.compile().source and opts.compile().assembly
    assert "kernel row_sums" in str(ex.pane("plan")) and "row_sums" in str(ex.pane("rewrites"))
    record = build(ex)
    rows = [r for r in record.variants if r.kernel == 1]
    assert [r.error for r in rows] == [None] * len(rows) and len(rows) > 1
    assert rows[0].loops and rows[0].code and rows[0].offers
    assert [n.label for n in record.plan.nodes if "row_sums" in n.label]
    path = tmp_path / "sums.json"
    ex.save(path)
    assert [k.title for k in load(path).kernels] == [k.title for k in ex.kernels]
    assert load(path).kernels[1].ast is kernel.ast


def test_a_file_cannot_bring_a_kernel_that_leaves_its_memory(tmp_path: Path) -> None:
    path = tmp_path / "sums.json"
    explore(sums_of(Tensor(numbers(64, 32)).realize() + 1)).save(path)
    text = path.read_text("utf-8")
    assert text.count("RANGE.index 32") == 1
    path.write_text(text.replace("RANGE.index 32", "RANGE.index 33"), "utf-8")
    with pytest.raises(WorkbenchError, match="it is damaged: custom: "):
        load(path)


def test_it_is_pickled_and_read_in_another_process() -> None:
    total = sums_of(Tensor(numbers(4, 6)) + 1)
    assert pickle.loads(pickle.dumps(total)).tolist() == total.tolist()
