"""Functions with a custom gradient: a result, and the function of its gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from workbench.ir.gradient.custom import with_gradient
from workbench.ir.node.constants import full
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base
from workbench.tensor.operands.arguments import short
from workbench.tensor.operands.broadcast import cast_to
from workbench.tensor.operands.refuse import dtype_error, shape_error

Function = Callable[..., tuple[Any, Callable[[Any], Any]]]


def custom_gradient(function: Function) -> Callable[..., Any]:
    """Return a function of tensors whose gradient is the one that `function` says.

    `function` returns its result and a function of the result's gradient: that returns the gradient
    of each argument that is a tensor, in order, alone where there is one; None where none flows.
    Errors: DTypeError or ShapeError where these do not fit.
    Also known as: torch.autograd.Function; TensorFlow's and JAX's custom gradients.

    >>> from workbench import Tensor
    >>> @Tensor.custom_gradient
    ... def rounded(x):
    ...     return x.round(), lambda g: g
    >>> x = Tensor([1.2, 2.7], requires_grad=True)
    >>> (rounded(x) * 3).sum().backward().item(), x.grad.tolist()
    (12.0, [3.0, 3.0])
    """
    name = getattr(function, "__name__", type(function).__name__)

    @wraps(function)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        pair = function(*args, **kwargs)
        if not (isinstance(pair, tuple) and len(pair) == 2 and callable(pair[1])):
            raise dtype_error(
                f"{name} with a gradient of its own returns {short(pair)}",
                "it returns a tensor, and a function of the gradient of that",
                "return y, lambda g: g * 2",
            )
        result, gradient_of = pair
        _check_tensor(result, f"the result of {name}")
        tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, Base)]

        def rule(g: UOp) -> list[UOp | None]:
            return shares_of(name, gradient_of(result._on(g, result._device)), tensors)

        sources = [t.uop for t in tensors]
        node = with_gradient(result.uop, sources, name, rule)
        return result._with(node, *tensors)

    return differentiated


def shares_of(name: str, results: Any, tensors: Sequence[Base]) -> list[UOp | None]:
    """Return the gradients of `tensors`, as the function of the gradient returned them.

    Errors: DTypeError or ShapeError where these do not fit.
    """
    each = list(results) if isinstance(results, tuple | list) else [results]
    if len(each) != len(tensors):
        raise shape_error(
            f"the gradient of {name} has {len(each)} results",
            f"it has one for each tensor that {name} was called with, {len(tensors)} here",
            "None for one without a gradient",
        )
    shares: list[UOp | None] = []
    for share, tensor in zip(each, tensors, strict=True):
        if share is None:
            shares.append(None)
            continue
        _check_tensor(share, f"a gradient of {name}")
        if share.shape != tensor.shape:
            raise shape_error(
                f"a gradient of {name} has shape {share.shape}",
                f"the tensor that it is of has shape {tensor.shape}",
                ".sum() over what was broadcast",
            )
        node = cast_to(share.uop, tensor.dtype)
        shares.append(full(tensor.shape, node) if node.is_const else node)
    return shares


def _check_tensor(value: Any, what: str) -> None:
    if not isinstance(value, Base) or not value.dtype.is_float:
        kind = value.dtype if isinstance(value, Base) else type(value).__name__
        raise dtype_error(f"{what} is {short(value)}", f"it is a tensor of floats, not {kind}")
