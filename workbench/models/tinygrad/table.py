"""The table of tinygrad's ops: each name with its function over Tensors, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

from workbench.models.model import UNWRITTEN

Function = TypeVar("Function", bound=Callable[..., Any])


def all_sources(node: Any) -> Sequence[Any]:
    """Return the sources of a node."""
    sources: Sequence[Any] = node.src
    return sources


def first_source(node: Any) -> Sequence[Any]:
    """Return the first source of a node: those after it are sizes."""
    sources: Sequence[Any] = node.src[:1]
    return sources


class OpRow(NamedTuple):
    """A function that computes an op, of a node and the values of its `operands`. It returns a
    Tensor, or a tuple of them."""

    function: Callable[..., Any]
    operands: Callable[[Any], Sequence[Any]]


ROWS: dict[str, OpRow] = {}
"""Rows by the name of the op."""

OF_THE_GRAPH: dict[str, Callable[[Any], Sequence[Any]]] = {
    "BUFFER": lambda node: (),
    "FUNCTION": lambda node: node.src[1:],
    "PARAM": lambda node: (),
}
"""Ops whose values the graph has: memory, arguments of a function, its results; with their
operands."""

_DEVICES = "its values are on several devices: explore the tensor before .shard()"
_KERNEL = "it is a part of a kernel: explore the tensor before it is scheduled"
REFUSED: dict[str, str] = {
    "ALLREDUCE": _DEVICES,
    "BARRIER": _KERNEL,
    "BINARY": _KERNEL,
    "CALL": "it calls a kernel: explore the tensor before it is scheduled",
    "CUSTOM": "it is text of a program",
    "CUSTOMI": "it is text of a program",
    "CUSTOM_FUNCTION": "it is a function of a device",
    "END": _KERNEL,
    "ENDIF": _KERNEL,
    "GETADDR": _KERNEL,
    "GROUP": _KERNEL,
    "IF": _KERNEL,
    "INDEX": _KERNEL,
    "INS": _KERNEL,
    "LINEAR": _KERNEL,
    "LOAD": _KERNEL,
    "MSELECT": _DEVICES,
    "MSTACK": _DEVICES,
    "NOOP": "it has no value",
    "PROGRAM": _KERNEL,
    "PYLITERAL": "it is a part of a rule",
    "RANGE": _KERNEL,
    "REWRITE_ERROR": "a rewrite failed there",
    "SINK": _KERNEL,
    "SOURCE": _KERNEL,
    "SPECIAL": _KERNEL,
    "STAGE": _KERNEL,
    "STORE": "it has no value: explore the tensor that is written",
    "UNSHARD": _DEVICES,
    "WMMA": _KERNEL,
}
"""Ops that cannot be computed here, each with the reason."""


def load_rows() -> None:
    """Fill the table."""
    for family in ("elementwise", "memory", "movement"):
        import_module(f"workbench.models.tinygrad.operators.{family}")


def row(
    *names: str, operands: Callable[[Any], Sequence[Any]] = all_sources
) -> Callable[[Function], Function]:
    """Enter a function in the table under the names of ops."""

    def entered(function: Function) -> Function:
        for name in names:
            assert name not in ROWS, f"two rows of {name}"
            ROWS[name] = OpRow(function, operands)
        return function

    return entered


def operands_of(node: Any) -> Sequence[Any]:
    """Return the sources of a node that are values, those of which its row is a function."""
    name = node.op.name
    if name in ROWS:
        return ROWS[name].operands(node)
    return OF_THE_GRAPH[name](node) if name in OF_THE_GRAPH else ()


def refusal_of(node: Any) -> str:
    """Return why the op of a node cannot be computed here; "" if it can."""
    name = node.op.name
    if name in ROWS or name in OF_THE_GRAPH:
        return ""
    return REFUSED.get(name, f"{UNWRITTEN}: workbench has those of tinygrad 0.14")
