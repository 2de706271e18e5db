"""State dicts: the tensors of a model by name, `layers.0.weight`.

A model is any object: its attributes, lists, tuples and dicts are searched, as in tinygrad. With
the names of the modules here, the keys are those of PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from workbench.tensor.jit import TinyJit
from workbench.tensor.operands.arguments import short
from workbench.tensor.operands.refuse import dtype_error
from workbench.tensor.tensor import Tensor

_OPAQUE = (
    type, ModuleType, FunctionType, MethodType, BuiltinFunctionType, np.ndarray, TinyJit,
)  # fmt: skip
"""Values that are not searched: what they refer to is not a part of the model."""


def get_state_dict(obj: Any, prefix: str = "", tensor_type: type = Tensor) -> dict[str, Any]:
    """Return the tensors in `obj` by name; each name begins with `prefix`.

    A name is the way to the tensor: attributes, keys, and places in lists, with dots between them.
    An object that is inside itself is not searched again. Errors: DTypeError unless `tensor_type`
    is a class.

    >>> from workbench.nn import Linear
    >>> list(get_state_dict({"first": Linear(2, 3)}))
    ['first.weight', 'first.bias']
    """
    if not isinstance(tensor_type, type):
        raise dtype_error(
            f"get_state_dict: tensor_type: {short(tensor_type)} does not fit",
            f"it must be a class, and this is {type(tensor_type).__name__}",
        )
    return dict(_walk(obj, prefix, tensor_type, ()))


def get_parameters(obj: Any) -> list[Tensor]:
    """Return the tensors in `obj`, in the order of `get_state_dict`."""
    return list(get_state_dict(obj).values())


def _walk(
    obj: Any, prefix: str, tensor_type: type, above: tuple[int, ...]
) -> Iterator[tuple[str, Any]]:
    if isinstance(obj, tensor_type):
        yield prefix.strip("."), obj
        return
    if id(obj) in above:
        return
    for name, value in _parts(obj):
        yield from _walk(value, f"{prefix}{name}.", tensor_type, (*above, id(obj)))


def _parts(obj: Any) -> Iterator[tuple[Any, Any]]:
    """Yield what is directly in an object, by name."""
    if isinstance(obj, _OPAQUE):
        return
    if isinstance(obj, dict):
        yield from list(obj.items())
    elif hasattr(obj, "_asdict"):  # a named tuple
        yield from obj._asdict().items()
    elif isinstance(obj, list | tuple):
        yield from enumerate(obj)
    elif hasattr(obj, "__dict__"):
        yield from list(vars(obj).items())
