"""The tensor front end."""

from workbench.tensor import variable_operators as variable_operators
from workbench.tensor.tensor import Tensor

__all__ = ["Tensor"]
