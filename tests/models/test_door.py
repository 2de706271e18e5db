"""What `load_model` and `explore` say where a source is no model, or its library is missing."""

from __future__ import annotations

import sys

import pytest

from workbench import ModelError, explore, load_model
from workbench.models import door


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
