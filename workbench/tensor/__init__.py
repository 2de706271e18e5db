"""The tensor front end."""

from workbench.tensor import variable_operators as variable_operators  # of BoundVariable
from workbench.tensor.tensor import Tensor

__all__ = ["Tensor"]
