"""What `load_model` and `explore` say of a source: the line that explores it; where it is no model,
or its library is missing, why."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tests.peers import torch
from workbench import ModelError, WorkbenchError, explore, load, load_model
from workbench.models import door
from workbench.viz.record.recipe import recipe


@pytest.mark.parametrize("read", [load_model, explore])
def test_without_onnx_the_command_that_installs_it_is_named(
    read: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModelError, match=r"(?s)onnx package.*pip install 'onnx>="):
        read("model.onnx")  # type: ignore[operator]


def test_what_is_no_model_is_refused_by_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="cannot read a dict as a model"):
        load_model({})
    monkeypatch.setattr(door, "is_installed", lambda name: False)
    with pytest.raises(ModelError, match=r"(?s)PyTorch is not installed.*pip install 'torch>="):
        load_model({})


def test_the_line_of_a_model_is_the_one_that_explores_it(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    ex = explore(net, torch.ones(2, 4))
    assert ex.line is not None
    assert ex.line.text == "ex = explore(net, torch.ones(2, 4))"
    assert "ex = explore(net, torch.ones(2, 4))" in recipe(ex)
    opened = load(ex.save(tmp_path / "net.json"))
    assert opened.line is not None
    assert opened.line.text == ex.line.text

    ex = explore(np.exp, np.ones(3))
    assert ex.line is not None
    assert ex.line.text == "ex = explore(np.exp, np.ones(3))"


def test_inputs_of_a_model_may_be_named() -> None:
    class Scaled(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: object, scale: object = 2) -> object:
            return x * scale  # type: ignore[operator]

    x = torch.ones(3)
    assert len(explore(Scaled(), x=x).kernels) == 1
    assert len(explore(Scaled(), x, scale=torch.arange(3.0)).kernels) == 1
    with pytest.raises(WorkbenchError, match="no argument 'shwo'"):
        explore(np.exp, np.ones(3), shwo="plan")
