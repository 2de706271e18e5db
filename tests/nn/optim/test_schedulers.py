"""Learning rates over time, against PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from workbench import Context, Tensor, TinyJit
from workbench.base.errors import OptimizerError
from workbench.nn import optim

S = torch.optim.lr_scheduler
ROWS: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = [
    (
        "MultiStepLR",
        lambda o: optim.MultiStepLR(o, [3, 7, 20], 0.3),
        lambda o: S.MultiStepLR(o, [3, 7, 20], 0.3),
    ),
    (
        "CosineAnnealingLR",
        lambda o: optim.CosineAnnealingLR(o, 12, 0.01),
        lambda o: S.CosineAnnealingLR(o, 12, 0.01),
    ),
    (
        "OneCycleLR",
        lambda o: optim.OneCycleLR(o, 2.0, 31),
        lambda o: S.OneCycleLR(o, 2.0, 31, cycle_momentum=False),
    ),
    (
        "OneCycleLR in lines",
        lambda o: optim.OneCycleLR(o, 2.0, 31, 0.4, "linear", 10.0, 100.0),
        lambda o: S.OneCycleLR(
            o, 2.0, 31, pct_start=0.4, anneal_strategy="linear",
            cycle_momentum=False, div_factor=10.0, final_div_factor=100.0,
        ),
    ),
]  # fmt: skip
"""Name, scheduler, PyTorch's."""


def optimizers() -> tuple[optim.Optimizer, Any]:
    peer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], 0.5)
    peer.step()  # a scheduler of PyTorch's warns before the first step
    return optim.SGD([Tensor([1.0])], 0.5), peer


def rate(peer: Any) -> float:
    return float(peer.param_groups[0]["lr"])


@pytest.mark.parametrize(("name", "make", "peer"), ROWS, ids=[r[0] for r in ROWS])
def test_rates_are_pytorch_s(name: str, make: Any, peer: Any) -> None:
    ours, theirs = optimizers()
    own, other = make(ours), peer(theirs)
    got, want = [ours.lr.item()], [rate(theirs)]
    for _ in range(30):
        own.step()
        theirs.step()
        other.step()
        got.append(ours.lr.item())
        want.append(rate(theirs))
    np.testing.assert_allclose(got, want, rtol=5e-6, atol=1e-7)
    assert own.epoch_counter.item() == 30


@pytest.mark.parametrize(("name", "make", "peer"), ROWS, ids=[r[0] for r in ROWS])
def test_rates_do_not_depend_on_the_default_float(name: str, make: Any, peer: Any) -> None:
    rates = {}
    for default in ("float32", "half", "bfloat16", "float64"):
        with Context(DEFAULT_FLOAT=default):
            optimizer = optim.SGD([Tensor([1.0])], 0.1)
            scheduler = make(optimizer)
            for _ in range(8):
                scheduler.step()
            rates[default] = optimizer.lr.item()
    wide = rates.pop("float64")
    assert len(set(rates.values())) == 1
    assert rates["half"] == pytest.approx(wide, rel=1e-6)


@pytest.mark.parametrize("mode", ["min", "max"])
@pytest.mark.parametrize("threshold_mode", ["rel", "abs"])
def test_a_plateau_lowers_the_rate_when_pytorch_does(mode: str, threshold_mode: str) -> None:
    ours, theirs = optimizers()
    arguments: Any = (mode, 0.5, 2, 0.05, threshold_mode)
    own, other = (
        optim.ReduceLROnPlateau(ours, *arguments),
        S.ReduceLROnPlateau(theirs, *arguments),
    )
    rng = np.random.default_rng(0)
    slow = np.abs(rng.normal(size=40)).cumsum() * (1 if mode == "max" else -1)
    for metric in [*slow[:20], *rng.normal(size=10), float("nan"), *slow[20:]]:
        own.step(Tensor([metric]) if metric > 0 else float(metric))
        theirs.step()
        other.step(float(metric))
        np.testing.assert_allclose(ours.lr.item(), rate(theirs), rtol=1e-5)
    assert ours.lr.item() < 0.5


def test_a_jit_replays_a_scheduler() -> None:
    weight = Tensor([1.0])
    optimizer = optim.SGD([weight], 0.5)
    scheduler = optim.MultiStepLR(optimizer, [2, 4], 0.5)

    @TinyJit
    def step(grad: Tensor) -> Tensor:
        weight.grad = grad
        tensors = optimizer.schedule_step() + scheduler.schedule_step()
        return weight.realize(*tensors) * 1

    with Tensor.train():
        for _ in range(5):
            step(Tensor([0.1]).realize())
    assert optimizer.lr.item() == 0.125 and scheduler.epoch_counter.item() == 5
    np.testing.assert_allclose(weight.numpy(), [1 - 0.1 * (0.5 + 0.5 + 0.25 + 0.25 + 0.125)])


def test_a_group_steps_its_schedulers() -> None:
    a, b = (optim.SGD([Tensor([1.0])], 0.5) for _ in range(2))
    group = optim.LRSchedulerGroup(optim.MultiStepLR(a, [1]), optim.MultiStepLR(b, [2]))
    group.step()
    np.testing.assert_allclose([a.lr.item(), b.lr.item()], [0.05, 0.5])


REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda o: optim.OneCycleLR(o, 1.0, 10, anneal_strategy="steps"), "anneal_strategy"),
    (lambda o: optim.OneCycleLR(o, 1.0, 10, pct_start=2.0), "pct_start"),
    (lambda o: optim.ReduceLROnPlateau(o, "least"), "mode"),
    (lambda o: optim.MultiStepLR(o, [1], -0.1), "gamma"),
    (lambda o: optim.MultiStepLR(o.params, [1]), "must be one optimiser, and this is list"),
    (lambda o: optim.OneCycleLR(optim.OptimizerGroup(o), 1.0, 9), "this is OptimizerGroup"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_what_a_scheduler_cannot_be_is_said(call: Any, words: str) -> None:
    with pytest.raises(OptimizerError, match=words):
        call(optim.SGD([Tensor([1.0])]))
