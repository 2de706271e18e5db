"""Checks of the inputs of layers."""

from __future__ import annotations

from workbench.tensor.operands.arguments import short
from workbench.tensor.operands.refuse import dtype_error
from workbench.tensor.tensor import Tensor


def tensor_input(value: object, layer: object) -> Tensor:
    """Return the input of a layer. Errors: DTypeError for a value that is not a tensor."""
    if isinstance(value, Tensor):
        return value
    name, kind = type(layer).__name__, type(value).__name__
    raise dtype_error(
        f"cannot apply {name} to {short(value)}",
        f"the input of a layer must be a tensor, and this is {kind}",
        "Tensor(x)",
    )
