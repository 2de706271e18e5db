"""The tensor front end."""

from workbench.tensor.tensor import Tensor

__all__ = ["Tensor"]
