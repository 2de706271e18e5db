"""numpy's functions on a Tensor: those of its operators return a Tensor, all others are refused
with a remedy.

Source: numpy enhancement proposals 13 (`__array_ufunc__`) and 18 (`__array_function__`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.base.errors import DTypeError
from workbench.tensor.operands.refuse import dtype_error

OPERATORS = {
    "add": ("__add__", "__radd__"),
    "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__"),
    "remainder": ("__mod__", "__rmod__"),
    "power": ("__pow__", "__rpow__"),
    "matmul": ("__matmul__", "__rmatmul__"),
    "bitwise_and": ("__and__", "__rand__"),
    "bitwise_or": ("__or__", "__ror__"),
    "bitwise_xor": ("__xor__", "__rxor__"),
    "left_shift": ("__lshift__", "__rlshift__"),
    "right_shift": ("__rshift__", "__rrshift__"),
    "less": ("__lt__", "__gt__"),
    "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"),
    "equal": ("__eq__", "__eq__"),
    "not_equal": ("__ne__", "__ne__"),
    "negative": ("__neg__",),
    "positive": ("__pos__",),
    "absolute": ("abs",),
    "invert": ("__invert__",),
}
"""The methods that numpy's operators stand for: by their left operand, and by their right one."""

METHODS = {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "logical_not": "logical_not",
    "concatenate": "cat",
    "rint": "round",
    "amax": "max",
    "amin": "min",
}
"""Methods of a Tensor that have another name than numpy's function."""


def apply_ufunc(
    owner: Any, ufunc: Any, method: str, operands: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Return what an operator between an array and a tensor makes, as `array + tensor` calls it.

    Errors: DTypeError for every other function of numpy's, with the method of the tensor.
    """
    names = OPERATORS.get(ufunc.__name__)
    written = keywords.pop("out", None)  # of `array += tensor`, which then names the tensor
    in_place = written is not None and len(written) == 1 and written[0] is operands[0]
    if names and method == "__call__" and not keywords and (written is None or in_place):
        kind = type(owner)
        place = 0 if len(operands) == 1 or isinstance(operands[0], kind) else 1
        if place < len(names):
            result = getattr(kind, names[place])(
                operands[place], *(operands[:place] or operands[1:])
            )
            if result is not NotImplemented:
                return result
    raise refusal(owner, f"np.{ufunc.__name__}", "it computes on arrays in memory")


def apply_function(
    owner: Any, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """Return what a function of numpy's makes of tensors: most of them take their values.

    Errors: DTypeError where it cannot.
    """
    try:
        return function._implementation(*args, **keywords)  # type: ignore[attr-defined]
    except TypeError as error:
        if isinstance(error, DTypeError):
            raise
        because = "it calls the tensor's method with arguments that this does not take"
        raise refusal(owner, f"np.{function.__name__}", because) from error


def refusal(owner: Any, what: str, because: str) -> DTypeError:
    """Return the error of a function that does not take a tensor, with what does the same."""
    name = what.removeprefix("np.")
    method = METHODS.get(name, name)
    hint = f"{what}(t.numpy()), which computes the values"
    if hasattr(type(owner), method):
        hint = f"t.{method}(..), which is a Tensor; or {hint}"
    return dtype_error(
        f"{what} does not take a Tensor", f"{because}, and a Tensor is an expression", hint
    )
