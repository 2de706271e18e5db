"""The paths of the user's objects: `net.layers.2.conv` of the layer that made a value.

The variables of the code that calls `explore` are walked, by attributes and places in lists, as for
names of arrays. What is in a list of another object is called by that list, though a variable (that
of a loop) is left over which is it, too.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from types import ModuleType
from typing import Any, NamedTuple
from weakref import ref

from workbench.base.source import Calls, Derivation, ModuleCall
from workbench.viz.names.variables import (
    DEEPEST,
    MOST_INSIDE,
    MOST_LOOKED_INTO,
    is_open,
    named_variables,
    parts_of,
)


class ModulePath(NamedTuple):
    """An object, referred to weakly, and its path: the shortest, with dots for brackets."""

    object: ref[Any]
    path: str


ModulePaths = Mapping[int, ModulePath]
"""The paths of objects by their identity, which counts while an object lives."""


def module_paths() -> ModulePaths:
    """Return the paths of the objects that the calling code has names for."""
    roots = [(name, value, 0) for name, value in named_variables()]
    of_lists = {id(part) for part in _listed(roots)}
    roots.sort(key=lambda root: id(root[1]) in of_lists)
    paths: dict[int, ModulePath] = {}
    first = [root for root in roots if id(root[1]) not in of_lists]
    for some in (first, roots):
        for path, value, _ in _walk(some):
            if id(value) not in paths and _is_object(value):
                try:
                    paths[id(value)] = ModulePath(ref(value), _dotted(path))
                except TypeError:  # its class has slots
                    continue
    return paths


def module_call(derivation: Derivation, paths: ModulePaths, viewer: Calls) -> ModuleCall | None:
    """Return the module whose method made a value, and what it called; of an object without a path
    the class, else the function, and "" for code of the `viewer` itself; None where that called
    nothing."""
    value = None if derivation.owner is None else derivation.owner()
    entry = None if value is None else paths.get(id(value))
    if entry is not None and entry.object() is value:
        path = entry.path
    elif value is not None:
        path = type(value).__name__
    else:
        path = _function(derivation.calls, viewer)
    method = derivation.method.strip("_")
    return ModuleCall(path, method) if path or method else None


def _function(calls: Calls, viewer: Calls) -> str:
    """Return the name of the nearest function that the user's code called, or of its class; "" for
    the viewer's own."""
    own = {call[0] for call in viewer}
    of_files = [call for call in calls if call[0].co_filename != "<string>"]
    for code, _, _ in of_files[:-1]:  # the outermost is a script, or what a tool calls
        if code in own:
            return ""
        name = code.co_qualname.rpartition("<locals>.")[2]
        if "<" not in name:
            return name.rpartition(".")[0] or name
    return ""


def _listed(roots: list[tuple[str, object, int]]) -> Iterator[object]:
    """Yield what is in a list, tuple or dict that an object has."""
    for _, value, _ in _walk(roots):
        if _is_object(value):
            for _, part in islice(parts_of(value, True), MOST_INSIDE):
                if type(part) in (list, tuple, dict):
                    yield from (one for _, one in islice(parts_of(part), MOST_INSIDE))


def _walk(roots: list[tuple[str, object, int]]) -> Iterator[tuple[str, object, int]]:
    """Yield (path, value, depth) of the variables and of what is in them, each once."""
    waiting = deque(roots)
    visited: set[int] = set()
    while waiting:
        path, value, depth = waiting.popleft()
        if id(value) in visited:
            continue
        yield path, value, depth
        if depth < DEEPEST and len(visited) < MOST_LOOKED_INTO:
            parts = list(islice(parts_of(value, True), MOST_INSIDE))
            if parts:
                visited.add(id(value))
            waiting.extend((path + step, part, depth + 1) for step, part in parts)


def _is_object(value: object) -> bool:
    return not isinstance(value, ModuleType) and is_open(value)


def _dotted(path: str) -> str:
    """Return a path of Python as it stands in a state dict: `layers[0]` as `layers.0`."""
    return re.sub(r"\['?([^\]']*)'?\]", r".\1", path)
