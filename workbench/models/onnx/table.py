"""The table of ONNX's operators: each name, the first opset of its row, and its function over
Tensors; or why there is none."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


class OperatorRow(NamedTuple):
    """A function that computes an operator from an opset on.

    The inputs of a node are its positional arguments, None for those left out; attributes are its
    keywords. `known` are the places of inputs that must be known while the graph is read (-1: all);
    they are arrays of numpy. With a keyword `count`, it gets the number of outputs.
    """

    since: int
    function: Callable[..., Any]
    known: frozenset[int]
    keywords: frozenset[str]

    def needs(self, place: int) -> bool:
        """Whether the value of an input must be known while the graph is read."""
        return place in self.known or -1 in self.known


ROWS: dict[tuple[str, str], list[OperatorRow]] = {}
"""Rows by domain and name, of the latest opset first."""

MICROSOFT = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""

_VALUES = "the shape of its result depends on values"
_SEQUENCE = "it is about sequences of tensors"
_TEXT = "it is about strings"
REFUSED: dict[str, str] = {
    "Compress": _VALUES,
    "NonMaxSuppression": _VALUES,
    "NonZero": _VALUES,
    "Unique": _VALUES,
    "ConcatFromSequence": _SEQUENCE,
    "SequenceAt": _SEQUENCE,
    "SequenceConstruct": _SEQUENCE,
    "SequenceEmpty": _SEQUENCE,
    "SequenceErase": _SEQUENCE,
    "SequenceInsert": _SEQUENCE,
    "SequenceLength": _SEQUENCE,
    "SequenceMap": _SEQUENCE,
    "SplitToSequence": _SEQUENCE,
    "Optional": "it is about optional values",
    "OptionalGetElement": "it is about optional values",
    "OptionalHasElement": "it is about optional values",
    "RegexFullMatch": _TEXT,
    "StringConcat": _TEXT,
    "StringNormalizer": _TEXT,
    "StringSplit": _TEXT,
    "TfIdfVectorizer": "it counts words",
    "ImageDecoder": "it reads the file of a picture",
}
"""Operators of the default domain that cannot be computed here, each with the reason."""

FAMILIES = (
    *("attention", "constants", "contrib", "elementwise", "indexing", "movement"),
    *("normalization", "pooling", "products", "quantization", "recurrent", "reductions", "regions"),
    *("resize", "signal"),
)
"""The files of rows."""


def load_rows() -> None:
    """Fill the table."""
    for family in FAMILIES:
        import_module(f"workbench.models.onnx.operators.{family}")


def row(
    *names: str,
    since: int = 1,
    known: Sequence[str] = (),
    domain: str = "",
    shared: type | None = None,
) -> Callable[[Function], Function]:
    """Enter a function in the table: for operators of a domain, from the opset `since` on. `known`
    names the arguments that must be known while the graph is read. `shared` is a dataclass of
    attributes that several operators have: its fields are keywords of the function, too."""

    def entered(function: Function) -> Function:
        parameters = inspect.signature(function).parameters.values()
        inputs = [p.name for p in parameters if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
        variadic = any(p.kind is p.VAR_POSITIONAL and p.name in known for p in parameters)
        places = {-1} if variadic else {inputs.index(name) for name in known}
        keywords = frozenset(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
        keywords |= {each.name for each in fields(shared)} if shared else set()
        for name in names:
            rows = ROWS.setdefault((domain, name), [])
            assert all(other.since != since for other in rows), f"two rows of {name} {since}"
            rows.append(OperatorRow(since, function, frozenset(places), keywords))
            rows.sort(key=lambda each: -each.since)
        return function

    return entered


def row_of(domain: str, name: str, opset: int) -> OperatorRow | None:
    """Return the row of an operator in an opset; None if there is none."""
    rows = ROWS.get((domain, name), ())
    return next((each for each in rows if each.since <= opset), None)
