"""Holders of tensors that a function reaches: variables, objects, and what these refer to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from workbench.base.dtypes import DType
from workbench.base.files import Unpicklable
from workbench.tensor.jit.parts import (
    ABSENT,
    CODE,
    CONTAINERS,
    GRADIENT,
    LENGTH,
    NAMESPACES,
    PLAIN,
    STRUCTURE,
    Parts,
    Path,
    Step,
    gradient_of,
    is_library,
    is_special,
    layout_of,
    names_in,
)
from workbench.tensor.tensor import Tensor

MOST_OBJECTS = 100_000
"""Number of objects after which the search ends: tensors beyond it are not found."""


@dataclass(slots=True)
class Holder:
    """An object that was searched: the function that returns its `parts`, their identities at the
    search, the parts that are not compared (`free`), and those that are holders (`below`)."""

    parts: Parts
    identities: list[int]
    free: list[int]
    below: list[tuple[int, Holder]]


@dataclass(slots=True)
class Reached:
    """The result of a search: `tensors`, by paths that go through the first path to each
    holder; `values`, the numbers and texts that code names; the holders below the roots; the
    `names` of attributes in the code that was found; and `iterators` that code names."""

    tensors: dict[Path, Tensor]
    values: dict[Path, Any]
    holders: list[tuple[int, Holder]]
    names: Collection[str] = ()
    iterators: Sequence[Path] = ()
    constants: Sequence[Any] = ()
    """All values, kept alive: no other object gets the identity of one that is compared."""
    containers: Mapping[Path, Any] = field(default_factory=dict)
    """Objects that may have parts, by each path to them."""

    def twice_named(self) -> set[int]:
        """Return the identities of the tensors at several paths that code names: the code may bind
        one path to the tensor at another."""
        counts = Counter(
            id(tensor)
            for path, tensor in self.tensors.items()
            if all(s.kind != "attribute" or s.name in self.names for s in path)
        )
        return {tensor for tensor, count in counts.items() if count > 1}

    def is_unchanged(self, roots: Sequence[tuple[Path, Any]]) -> bool:
        """Whether each holder from `roots`, each with its path, has the parts that it had at the
        search, except for free ones. It runs at each call of a function, so it must be quick."""
        pairs = [(roots[n][1], holder) for n, holder in self.holders]
        try:
            for value, holder in pairs:  # which grows meanwhile
                parts = holder.parts(value)
                if holder.below:
                    pairs += [(parts[n], below) for n, below in holder.below]
                for n in holder.free:
                    parts[n] = None
                if [*map(id, parts)] != holder.identities:
                    return False
        except (AttributeError, TypeError, IndexError):
            return False
        return True


HolderSteps = list[tuple[int, Holder]]


def reached(roots: Sequence[tuple[Path, Any]], free: Collection[Path] = ()) -> Reached:
    """Return what is reached from `roots`, each with its path. What is at paths in `free` is not
    compared by `is_unchanged`."""
    search, holders = _searched(roots, _HolderSearch(free))
    if search.finds_namespaces:
        search, holders = _searched(roots, _HolderSearch(free, by_text=True))
    values = search.named_values()
    return Reached(
        search.tensors,
        values,
        holders,
        search.names,
        search.iterators(),
        search.constants(),
        search.containers,
    )


def _searched(
    roots: Sequence[tuple[Path, Any]], search: _HolderSearch
) -> tuple[_HolderSearch, HolderSteps]:
    """Search from `roots`; return the search, and the roots that are holders."""
    holders: HolderSteps = []
    stack = [_FoundPart(*root, frozenset(), holders, n) for n, root in enumerate(roots)]
    stack.reverse()
    while stack and len(search.visited) < MOST_OBJECTS:
        stack.extend(search.parts_of(stack.pop()))
    for place, holder in reversed(search.holders):  # a holder comes after those below it
        place.beside.append((place.number, holder))
    return search, holders


class _FoundPart(NamedTuple):
    """A value at a path: part `number` of a holder. `beside` are the parts of that holder that are
    holders, too. `attributes` are the names of attributes in the code that led here."""

    path: Path
    value: Any
    attributes: frozenset[str]
    beside: HolderSteps
    number: int


class _HolderSearch:
    """The search, and what it has reached so far. `by_text`: whether the texts and the attributes
    in code count as variables of its module, too."""

    def __init__(self, free: Collection[Path], by_text: bool = False):
        self._free = free
        self._by_text = by_text
        self.finds_namespaces = False
        self.names: set[str] = set()
        self._values: dict[Path, Any] = {}
        self.tensors: dict[Path, Tensor] = {}
        self.visited: dict[int, Any] = {}
        self.containers: dict[Path, Any] = {}
        self.holders: list[tuple[_FoundPart, Holder]] = []

    def parts_of(self, place: _FoundPart) -> list[_FoundPart]:
        """Note a value; return its parts, the last one first."""
        path, value, attributes = place[:3]
        if isinstance(value, Tensor):
            self.tensors[path] = value
            gradient = gradient_of(value)
            if gradient is not None:
                self.tensors[(*path, GRADIENT)] = gradient
            return []
        if isinstance(value, PLAIN):
            self._values[path] = value
            return []
        self.containers[path] = value
        if id(value) in self.visited:
            return []
        self.visited[id(value)] = value
        if isinstance(value, FunctionType):
            attributes = names_in(value.__code__).attributes
            self.names |= attributes
        if isinstance(value, FunctionType | BuiltinFunctionType):
            self._note_namespaces(value)
        layout = layout_of(value, attributes, self._by_text)
        parts = [] if layout is None else layout.parts(value)
        self._note_kind(path, value, parts)
        if layout is None:
            return []
        holder = Holder(layout.parts, [], [], [])
        self.holders.append((place, holder))
        steps = [
            (n, (*path, step))
            for n, step in enumerate(layout.steps)
            if step is not None and parts[n] is not ABSENT
        ]
        below = [_FoundPart(p, parts[n], attributes, holder.below, n) for n, p in steps]
        holder.free = [n for n, p in steps if p in self._free]
        for n in holder.free:
            parts[n] = None
        holder.identities = [*map(id, parts)]
        return below[::-1]

    def _note_namespaces(self, function: FunctionType | BuiltinFunctionType) -> None:
        """Note whether a function gives the variables of a module, or its code names one that
        does."""
        names = {function.__name__}
        if isinstance(function, FunctionType) and not is_library(function.__module__):
            code = names_in(function.__code__)
            names |= code.attributes | {*code.variables}
        self.finds_namespaces |= not NAMESPACES.isdisjoint(names)

    def _note_kind(self, path: Path, value: Any, parts: list[Any]) -> None:
        """Note what is compared of an object apart from its parts: its code, its length, its class,
        or itself, if it is a constant of a library, such as a dtype or a slice."""
        if isinstance(value, FunctionType):
            self._values[(*path, Step("code", None))] = value.__code__
        elif isinstance(value, CONTAINERS):
            if not any(isinstance(part, Tensor) for part in parts):
                self._values[(*path, LENGTH)] = len(value)
        elif not isinstance(value, MethodType | np.ndarray | Unpicklable):
            is_constant = not parts or isinstance(value, (DType, Enum, *CODE))
            self._values[(*path, Step("kind", None))] = value if is_constant else type(value)

    def constants(self) -> list[Any]:
        """Return all values without parts."""
        return [*self._values.values()]

    def iterators(self) -> list[Path]:
        """Return the paths of Python's own iterators that code names. Objects of another module,
        such as an open file, are left out."""
        return [
            p[:-1] for p, v in self._values.items()
            if isinstance(v, Iterator) and type(v).__module__ in ("builtins", "itertools")
            and self._is_named(p)
        ]  # fmt: skip

    def named_values(self) -> dict[Path, Any]:
        """Return the numbers, texts and constants that code names. A text that was reached counts
        as a name, too: getattr() may use it. So do the attributes that a `match` reads by place."""
        self.names |= {v for v in self._values.values() if isinstance(v, str)}
        if "__match_args__" in self.names:
            kinds = [kind for kind in self.visited.values() if isinstance(kind, type)]
            self.names |= {n for kind in kinds for n in vars(kind).get("__match_args__", ())}
        return {p: v for p, v in self._values.items() if self._is_named(p)}

    def _is_named(self, path: Path) -> bool:
        """Whether code that was reached has the name of the last attribute on a path."""
        for step in reversed(path):
            if step.kind != "attribute" or step.name in STRUCTURE:
                continue
            if not is_special(step.name):
                return step.name in self.names
        return True
