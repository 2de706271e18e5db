"""The one door for models from outside: which importer reads a source."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from workbench.base.errors import ModelError, kind_of
from workbench.base.installation import install_command, is_installed
from workbench.models.model import Model, ModelSource


def load_model(source: object, *examples: object) -> Model:
    """Return a source as a Model: a torch.nn.Module, a program of torch.export, an ONNX model (the
    path of a file that ends in .onnx, its bytes, or an onnx.ModelProto), or a tinygrad Tensor,
    whose Model computes its expression and has no inputs.

    `examples` are inputs for which its graph is read at once; without them it is read at the first
    call.

    Errors: ModelError for a source of another kind, for one that its framework cannot export, and
    for a file that breaks the format's rules.
    """
    opener = _opener(source)
    if opener is None:
        what = f"cannot read {kind_of(source)} as a model"
        because = (
            "it must be a torch.nn.Module, what torch.export.export returned, the path of a file "
            "that ends in .onnx, or a tinygrad Tensor"
        )
        hint = "load_model(module, x)"
        if not is_installed("torch"):
            because, hint = f"{because}; PyTorch is not installed", install_command("torch")
        raise ModelError(what, because, hint)
    model = Model(opener(source))
    if examples:
        model.traced(examples, {})
    return model


def is_source(value: object) -> bool:
    """Whether `load_model` takes a value."""
    return _opener(value) is not None


def is_function(value: object) -> bool:
    """Whether a value is a Python function over arrays, or an object that is called like one:
    modules of PyTorch are sources, whoever wrote their class."""
    if isinstance(value, type) or not callable(value) or is_source(value):
        return False
    module = getattr(value, "__module__", None) or type(value).__module__
    return str(module).partition(".")[0] != "torch"


def framework_of(value: object) -> str:
    """Return "torch" or "onnx" for a model of that framework; "" for any other value."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and _is_of_torch(value, torch):
        return "torch"
    return "onnx" if _is_of_onnx(value) else ""


def _opener(value: object) -> Callable[[Any], ModelSource] | None:
    framework = framework_of(value)
    if framework == "torch":
        from workbench.models.torch.exported import TorchSource

        return TorchSource
    if is_tinygrads(value):
        from workbench.models.tinygrad.source import TinygradSource

        return TinygradSource
    if framework == "onnx":
        from workbench.models.onnx.source import OnnxSource

        return OnnxSource
    return None


def _is_of_torch(value: object, torch: Any) -> bool:
    export = sys.modules.get("torch.export")
    if isinstance(value, torch.nn.Module):
        return True
    return export is not None and isinstance(value, export.ExportedProgram)


def is_tinygrads(value: object) -> bool:
    """Whether a value is a tinygrad Tensor."""
    kind = getattr(sys.modules.get("tinygrad"), "Tensor", None)
    return kind is not None and isinstance(value, kind)


def _is_of_onnx(value: object) -> bool:
    if isinstance(value, (str, os.PathLike)):
        return os.fsdecode(value).lower().endswith(".onnx")
    onnx = sys.modules.get("onnx")
    return isinstance(value, bytes) or (
        onnx is not None and isinstance(value, getattr(onnx, "ModelProto", ()))
    )
