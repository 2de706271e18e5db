"""The one door for models from outside: `load_model`."""

from __future__ import annotations

import os
from typing import Any

from workbench.base.errors import ModelError, kind_of
from workbench.base.installation import install_command, is_installed
from workbench.models.model import Model, ModelSource
from workbench.models.sources import is_source, opener_of


def load_model(source: object, *examples: object) -> Model:
    """Return a source as a Model: a torch.nn.Module, a program of torch.export, an ONNX model (the
    path of a file that ends in .onnx, its bytes, or an onnx.ModelProto), a tinygrad Tensor, whose
    Model computes its expression and has no inputs, or a function over arrays.

    `examples` are inputs for which its graph is read at once; without them it is read at the first
    call.

    Errors: ModelError for a source of another kind, for one that its framework cannot export, and
    for a file that breaks the format's rules.
    """
    opener = opener_of(source)
    if opener is None and is_function(source):
        opener = _function_source
    if opener is None:
        if any(reason := weights_file(source)):
            raise ModelError(f"cannot read {source} as a model", *reason)
        what = f"cannot read {kind_of(source)} as a model"
        because = (
            "it must be a torch.nn.Module, what torch.export.export returned, the path of a file "
            "that ends in .onnx, a tinygrad Tensor, or a function over arrays"
        )
        hint = "load_model(module, x)"
        if not is_installed("torch"):
            because, hint = f"{because}; PyTorch is not installed", install_command("torch")
        raise ModelError(what, because, hint)
    model = Model(opener(source))
    if examples:
        model.traced(examples, {})
    return model


def weights_file(value: object) -> tuple[str, str]:
    """Return why the path of a file of PyTorch's cannot be read as a model, and what to pass; ("",
    "") for any other value."""
    name = os.fsdecode(value) if isinstance(value, (str, os.PathLike)) else ""
    kind = os.path.splitext(name)[1].lower()
    if kind == ".pt2":
        return "torch.export.load reads it", f"torch.export.load({name!r}), and inputs"
    if kind == ".safetensors":
        read = f"safetensors.torch.load_file({name!r})"
        return "it has weights without their module", _LOADED.format(read)
    if kind in (".pt", ".pth", ".bin", ".ckpt"):
        because = f"a {kind} file has weights without their module, or runs code when it is read"
        return because, _LOADED.format(f"torch.load({name!r})")
    return "", ""


_LOADED = "the module that they are for, after module.load_state_dict({})"


def is_function(value: object) -> bool:
    """Whether a value is a Python function over arrays, or an object that is called like one:
    modules of PyTorch are sources, whoever wrote their class."""
    if isinstance(value, type | Model) or not callable(value) or is_source(value):
        return False
    module = getattr(value, "__module__", None) or type(value).__module__
    return str(module).partition(".")[0] != "torch"


def _function_source(function: Any) -> ModelSource:
    from workbench.models.function_source import FunctionSource

    return FunctionSource(function)
