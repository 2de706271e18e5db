"""The importer that reads a value: asked are the libraries that are imported, as one made it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from workbench.models.model import ModelSource


def is_source(value: object) -> bool:
    """Whether a value is a network of PyTorch or ONNX, or a Tensor of tinygrad."""
    return opener_of(value) is not None


def framework_of(value: object) -> str:
    """Return "torch" or "onnx" for a model of that framework; "" for any other value."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and _is_of_torch(value, torch):
        return "torch"
    return "onnx" if _is_of_onnx(value) else ""


def opener_of(value: object) -> Callable[[Any], ModelSource] | None:
    """Return what makes a source of a value; None for a value of another kind."""
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
