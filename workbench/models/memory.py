"""Memory of other libraries as Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.base.errors import DeviceError
from workbench.tensor.tensor import Tensor

Array = np.ndarray[Any, Any]


def on_memory(array: Array) -> Tensor:
    """Return a tensor on the memory of an array, or on a copy where that cannot be shared."""
    try:
        return Tensor.from_numpy(array, share=True)
    except DeviceError:
        return Tensor(array)
