"""Nodes of PyTorch's graphs: their names, modules and lines, and the rows that compute them."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from workbench.base.errors import ModelError, WorkbenchError
from workbench.base.source import Attribution, NamedModule, attributed, frame_at
from workbench.models.model import UNWRITTEN
from workbench.models.torch.table import REFUSED, ROWS
from workbench.models.torch.values import dtype_of

FAMILIES = (
    *("backward", "creation", "elementwise", "indexing", "movement", "normalization"),
    *("own_gradients", "pooling", "products", "reductions"),
)
"""The files of rows."""


def load_rows() -> None:
    """Fill the table."""
    for family in FAMILIES:
        import_module(f"workbench.models.torch.operators.{family}")


class NodeCalls:
    """Calls of the table's rows, with the module, the operator and the line of each node."""

    def __init__(self) -> None:
        self._modules: dict[str, NamedModule] = {}

    def __call__(self, node: Any, value_of: Callable[[str], Any]) -> Any:
        """Return what a node computes; `value_of` returns the value of another by its name.

        Errors: ModelError for an operator that cannot be computed here, and what its row raises,
        with its module and line.
        """
        if node.target is operator.getitem:
            return value_of(node.args[0].name)[node.args[1]]
        name = operator_name(node)
        if reason := refusal_of(node):
            raise cannot_compute(node, reason)
        with attributed(self._attribution(node, name)):
            try:
                arguments = [argument_of(a, value_of) for a in node.args]
                options = {key: argument_of(a, value_of) for key, a in node.kwargs.items()}
                result = ROWS[name](*arguments, **options)
                return _as_declared(result, node.meta.get("val"), name)
            except WorkbenchError as error:
                error.what = f"cannot compute {name} of the module: {error.what}"
                error.where = where(node) or error.where
                raise

    def _attribution(self, node: Any, name: str) -> Attribution:
        path = _path(node)
        module = self._modules.setdefault(path, NamedModule(path))
        calls = tuple(frame_at(*frame) for frame in _frames(node)[::-1])
        return Attribution(calls, lambda: module, name.partition(".")[0])


def argument_of(argument: Any, value_of: Callable[[str], Any]) -> Any:
    """Return an argument of a node as its row takes it."""
    import torch

    if isinstance(argument, torch.fx.Node):
        return value_of(argument.name)
    if isinstance(argument, (list, tuple)):
        return [argument_of(a, value_of) for a in argument]
    if isinstance(argument, torch.dtype):
        return dtype_of(argument)
    return argument


def operator_name(node: Any) -> str:
    """Return the name of a node's operator in the table."""
    return name_of(operator_of(node))


def name_of(operator: Any) -> str:
    """Return the name of an operator in the table."""
    name = getattr(operator, "__name__", str(operator))
    return str(name).removesuffix(".default")


def is_random(target: Any) -> bool:
    """Whether an operator draws random numbers."""
    import torch

    return torch.Tag.nondeterministic_seeded in getattr(target, "tags", ())


def operator_of(node: Any) -> Any:
    """Return the operator that a node calls: one with effects is called by another, which takes a
    token of their order and returns the next with the results."""
    import torch

    return node.args[1] if node.target is torch.ops.higher_order.with_effects else node.target


def refusal_of(node: Any) -> str:
    """Return why the operator of a node cannot be computed here; "" if it can."""
    name = operator_name(node)
    if operator_of(node) is not node.target:
        return "it has effects besides its result"
    if getattr(node.target, "namespace", "aten") != "aten":
        return f"{node.target} is no operator of ATen"
    if name == "as_strided" and _is_view(node.args[0]):
        return STRIDES_OF_A_VIEW
    if name in ROWS:
        return ""
    return REFUSED.get(name, UNWRITTEN)


STRIDES_OF_A_VIEW = "it reads memory by strides, and its values are a view of other memory"


def cannot_compute(node: Any, reason: str) -> ModelError:
    """Return the error of a node that cannot be computed here, with its module and line."""
    what = f"cannot compute {operator_name(node)} of the module"
    return ModelError(what, reason, where=where(node))


def where(node: Any) -> str:
    """Return the module and line of a node, in words."""
    frames = _frames(node)
    line = f"{frames[-1][0]}, line {frames[-1][1]}" if frames else ""
    return ": ".join(filter(None, (_path(node), line)))


def _as_declared(result: Any, declared: Any, name: str) -> Any:
    """Return what a row made, in the dtypes that the program declares for it."""
    if isinstance(result, tuple):
        pairs = zip(result, declared, strict=False)
        return tuple(None if r is None else _as_declared(r, d, name) for r, d in pairs)
    if declared is None:
        return result
    kind, shape = dtype_of(declared.dtype), tuple(declared.shape)
    are_numbers = all(isinstance(n, int) for n in shape)  # the others are symbols
    if (
        are_numbers and result.shape != shape and 0 not in shape
    ):  # ATen leaves out what nobody reads
        raise AssertionError(f"{name} has shape {result.shape}, and {shape} is declared")
    return result if result.dtype is kind else result.cast(kind)


def _path(node: Any) -> str:
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return re.sub(r"^L\['self'\]\.?", "", stack[-1][0]) if stack else ""


def _is_view(node: Any) -> bool:
    """Whether a node's value is a part of its memory, or in another order there."""
    value = node.meta["val"]
    size_bytes = value.untyped_storage().nbytes()
    is_part = isinstance(size_bytes, int) and size_bytes != value.nbytes  # or a symbol: an input's
    return is_part or not value.is_contiguous()


_FRAME = re.compile(r'File "(.*)", line (\d+), in (.*)')


def _frames(node: Any) -> list[tuple[str, int, str]]:
    """Return (file, line, function) of the frames of the module's code, outermost first, without
    those of PyTorch and of Python's own modules."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    return [(file, int(line), name) for file, line, name in frames if _is_of_module(file)]


@cache
def _is_of_module(file: str) -> bool:
    import torch

    files = str(os.__file__), str(torch.__file__)
    python, own = (os.path.join(os.path.dirname(each), "") for each in files)
    is_pythons = file.startswith(python) and "site-packages" not in file[len(python) :]
    return not is_pythons and not file.startswith(own)
