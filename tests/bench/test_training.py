"""The benchmark of training: a step in each library, what is printed, and what is refused."""

from __future__ import annotations

import pytest

from tests.peers import torch
from workbench.base.errors import WorkbenchError
from workbench.bench import training as text
from workbench.bench.models import (
    MODELS,
    WIDE_MODELS,
    BenchModel,
    TorchLibrary,
    block,
    mlp,
    step_of,
)
from workbench.bench.training import TrainingMeasurement, TrainingRow, memory_of, peers_named
from workbench.cli.command import main

SMALL = BenchModel("small", (3, 5), mlp(5, 7, 10))


def test_a_step_trains_and_its_memory_is_what_is_planned() -> None:
    step, kernels = step_of("workbench", SMALL)
    losses = [step() for _ in range(5)]
    assert losses == sorted(losses, reverse=True) and len(set(losses)) == 5
    assert (kernels() or 0) > 0
    memory = memory_of("workbench", SMALL)
    assert 0 < memory["planned"] <= memory["peak"] < 2 * memory["planned"]


def test_the_models_are_those_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch takes the same steps, and its profiler sees what it holds."""
    monkeypatch.setenv("OMP_NUM_THREADS", str(torch.get_num_threads()))
    step, kernels = step_of("torch", SMALL)
    assert step() > step() and kernels() is None
    parameters = 4 * (5 * 7 + 7 + 7 * 10 + 10)
    memory = memory_of("torch", SMALL)
    assert 4 * parameters <= memory["held"] <= memory["peak"] < 16 * parameters
    x = torch.zeros(MODELS["block"].shape)
    forward, layers = block(TorchLibrary())
    assert forward(x[:1, :8]).shape == (1, 8, 384) and len(layers) == 6


def test_what_is_printed() -> None:
    ours = TrainingMeasurement(0.5, 1.0, 7, (0.1, 0.2), {"held": 10, "peak": 20})
    theirs = TrainingMeasurement(5.0, 1.0, None, (0.2, 0.8), {"held": 10, "peak": 40})
    measurements = {"workbench": ours, "torch": theirs, "tinygrad": theirs}
    row = TrainingRow("mlp", measurements, ["jax is not installed"])
    lines = "\n".join(text.lines(row))
    assert "workbench" in lines and "0.38   0.50" in lines
    summary = "\n".join(text.summary([row]))
    assert "time of a step / torch's, geometric mean of least times: 0.50, <= 1: within" in summary
    assert "time of a step / tinygrad's, the worst: 0.50, <= 0.2: OVER" in summary
    assert "time of the first step / tinygrad's, the worst: 0.10, <= 0.2: within" in summary
    assert "peak memory over torch's, the worst: 0.50" in summary
    assert "jax is not installed" in summary


def test_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    assert MODELS.keys().isdisjoint(WIDE_MODELS)
    with pytest.raises(WorkbenchError, match="numpy trains no models"):
        peers_named(["numpy"])
    assert main(["bench", "--models", "--only", "nothing"])
    assert "the rows are mlp, digits, block" in capsys.readouterr().err
    assert main(["bench", "--models", "--smoke"])
