"""The default opts of a machine leave out a step that is predicted to be in vain, and say so."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.support import LONG
from workbench import Tensor, dtypes, explore
from workbench.backends.device import Device
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.base.trace import observe
from workbench.cost import default_opts as chosen
from workbench.cost import predicted_cost as predictions
from workbench.cost.default_opts import GAIN, OPTIONAL, default_opts
from workbench.cost.gpu.gpu_cost import gpu_cost
from workbench.ir.node.uop import UOp
from workbench.ir.opt.heuristic.default_opts import heuristic
from workbench.ir.rewriting.passes import Memo
from workbench.measure.kernel_time import seconds_text

MACHINES = ["CUDA:H100", "CUDA:A100", "HIP:MI300X", "METAL:M3", "OPENCL:Iris Xe"]
WINDOWS = [
    # batch, channels in and out, window, stride, side
    (8, 1, 3, 7, 1, 14),
    (32, 1, 8, 3, 1, 28),
    (1, 64, 3, 3, 1, 28),
    (8, 4, 16, 3, 2, 28),
]


def last(tensor: Tensor) -> UOp:
    return [item.kernel for item in tensor.schedule() if item.kernel is not None][-1]


def window(case: tuple[int, ...], kind: str = "float32") -> UOp:
    batch, channels, out, size, stride, side = case
    dtype = getattr(dtypes, kind)
    x = Tensor.empty(batch, channels, side, side, dtype=dtype)
    w = Tensor.empty(out, channels, size, size, dtype=dtype)
    return last(x.conv2d(w, stride=stride))


def product(rows: int, steps: int, columns: int) -> UOp:
    return last(Tensor.empty(rows, steps) @ Tensor.empty(steps, columns))


@pytest.mark.parametrize("machine", MACHINES)
def test_no_step_makes_a_kernel_slower_than_it_is_without(machine: str) -> None:
    target = Device[machine].target
    windows = WINDOWS if LONG else WINDOWS[:1]
    kernels = [*map(window, windows), product(1000, 513, 4), product(100, 31, 8)]
    for kernel in kernels:
        usual = gpu_cost(default_opts(kernel, target).kernel, target, kernel)
        alternatives = [(), tuple(OPTIONAL.values())]
        alternatives += [(step,) for step in OPTIONAL.values()]
        for without in alternatives:
            other = gpu_cost(heuristic(kernel, target, without)[0], target, kernel)
            assert usual.predicted_s <= other.predicted_s / GAIN, without


@pytest.mark.parametrize("machine", ["CUDA:H100", "HIP:MI300X", "OPENCL:Iris Xe"])
def test_a_window_is_read_in_a_tile_of_all_its_places(machine: str) -> None:
    """With its padding in the kernel, the sum goes through the window first, and then through
    channels. A tile of many channels at one place took twice as long as one of an image that is
    stored with its zeros."""
    target = Device[machine].target
    x, w = Tensor.empty(16, 128, 28, 28), Tensor.empty(128, 128, 3, 3)
    zeros = Tensor.empty(16, 128, 30, 30)
    fused, stored = (
        gpu_cost(default_opts(kernel, target).kernel, target, kernel).predicted_s
        for kernel in (last(x.conv2d(w, padding=1)), last(zeros.conv2d(w)))
    )
    assert fused < 1.1 * stored


def test_a_step_that_is_left_out_is_told() -> None:
    target, kernel = Device["CUDA:H100"].target, product(1000, 513, 4)
    proposed = heuristic(kernel, target)[2]
    assert [step.name for step in proposed] == ["product-tile"]
    reason, *rest = default_opts(kernel, target).steps
    assert reason.name == "left-out" and "product-tile" in reason.why
    assert str(reason).splitlines()[0] == "left-out"
    assert [step.name for step in rest] == ["group-columns"]
    steps = explore(Tensor.empty(1000, 513) @ Tensor.empty(513, 4), device="CUDA:H100")
    assert steps.kernels[0].optimized().steps == (reason, *rest)


def test_a_step_without_code_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = predictions.predicted_cost

    def refuses(kernel: UOp, target: Target, original: UOp) -> Any:
        if kernel is proposed:
            raise CompileError("lower", "on purpose")
        return cost(kernel, target, original=original)

    target, kernel = Device["CUDA:H100"].target, product(1000, 511, 4)
    proposed = heuristic(kernel, target)[0]
    monkeypatch.setattr(predictions, "predicted_cost", refuses)
    why = default_opts(kernel, target).steps[0].why
    assert why.endswith("and with product-tile there is no code")


def test_a_kernel_that_is_predicted_to_be_faster_without_opts_says_so() -> None:
    target, kernel = Device["HIP:MI300X"].target, product(48, 32, 48)
    result = default_opts(kernel, target)
    plain_s, opts_s = (gpu_cost(k, target, kernel).predicted_s for k in (kernel, result.kernel))
    assert plain_s < opts_s, "the case that the step is about"
    *steps, kept = result.steps
    assert [step.name for step in steps] == ["tensor-tile"] and kept.name == "kept"
    assert f"{seconds_text(plain_s)} without opts, and {seconds_text(opts_s)} with" in kept.why
    assert "kept" not in [step.name for step in default_opts(product(256, 256, 256), target).steps]


def test_a_kernel_that_is_clearly_faster_without_opts_gets_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of the steps was compared with the others, and none with the kernel as it is."""
    target, kernel = Device["HIP:MI300X"].target, product(47, 33, 48)
    usual = default_opts(kernel, target)
    assert usual.opts and usual.kernel is not kernel
    monkeypatch.setattr(chosen, "_memo", Memo())
    for plain_s, is_plain in (0.9e-6, False), (0.7e-6, True):
        seconds = {kernel: plain_s}
        cost = lambda k, *_, s=seconds, **__: SimpleNamespace(predicted_s=s.get(k, 1e-6))  # noqa: E731
        monkeypatch.setattr(predictions, "predicted_cost", cost)
        monkeypatch.setattr(chosen, "_memo", Memo())
        opts = default_opts(kernel, target)
        assert (opts.kernel is kernel) is is_plain and bool(opts.opts) is not is_plain
        assert f"{seconds_text(plain_s)} without opts, and 1 µs with" in opts.steps[-1].why
    (step,) = opts.steps
    assert step.name == "left-out" and "-tile" in step.why


def test_what_is_fast_keeps_its_steps() -> None:
    target = Device["CUDA:H100"].target
    for kernel in (product(256, 256, 256), last(Tensor.empty(64, 512).softmax())):
        assert default_opts(kernel, target) == heuristic(kernel, target)


def test_an_observer_sees_the_steps_that_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen, "_memo", Memo())
    target, kernel = Device["CUDA:H100"].target, product(1000, 513, 4)
    for _ in range(2):  # the second time they are memoised
        with observe() as watching:
            result = default_opts(kernel, target)
        (record,) = watching.records
        assert record.name == "heuristic" and record.after is result.kernel


def test_without_figures_nothing_is_compared() -> None:
    target = replace(Device["CUDA:H100"].target, hardware=None)
    kernel = product(1000, 513, 4)
    assert default_opts(kernel, target) == heuristic(kernel, target)


@pytest.mark.parametrize("machine", ["CUDA:H100", "METAL:M3"])
def test_what_is_chosen_is_right(machine: str) -> None:
    dice = np.random.default_rng(3)
    a, b = (dice.standard_normal(s).astype(np.float32) for s in ((70, 65), (65, 3)))
    result = Tensor(a, device=machine) @ Tensor(b, device=machine)
    np.testing.assert_allclose(result.numpy(), a @ b, 1e-4, 1e-4)
