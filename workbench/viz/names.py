"""The user's names of values: `a` for the array that the variable `a` holds where `explore` is
called.

A variable names the node of its tensor. An array in memory also has the names of tensors with the
same elements in another shape or on another device. A node may have several names: the first is
shown, and a name of one step (`weight`) comes before one of two (`net.weight`).

Sections: The paths of the user's objects; The user's names of values.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple
from weakref import ref

from workbench.base.source import Calls, Derivation, ModuleCall, NamedModule
from workbench.base.variables import DEEPEST, MOST_LOOKED_INTO, is_open, named_variables, parts_of
from workbench.execution.memory_plan import with_computed
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# The paths of the user's objects: `net.layers.2.conv` of the layer that made a value.
#
# The variables of the code that calls `explore` are searched, by attributes and positions in lists,
# as for names of arrays. An object in a list of another object has its path through that list, even
# if the variable of a finished loop still refers to it.


class ModulePath(NamedTuple):
    """A weak reference to an object, and its shortest path, with dots instead of brackets."""

    object: ref[Any]
    path: str


ModulePaths = Mapping[int, ModulePath]
"""The paths of objects by their identity, which is valid as long as the object lives."""


def module_paths(function: object = None) -> ModulePaths:
    """Return the paths of the objects that the calling code, or that of a function, has names
    for."""
    roots = [(name, value, 0) for name, value in named_variables(function)]
    of_lists = {id(part) for part in _listed(roots)}
    roots.sort(key=lambda root: id(root[1]) in of_lists)
    paths: dict[int, ModulePath] = {}
    first = [root for root in roots if id(root[1]) not in of_lists]
    for some in (first, roots):
        for path, value, _ in _walk(some):
            if id(value) not in paths and _is_object(value):
                try:
                    paths[id(value)] = ModulePath(ref(value), _dotted(path))
                except TypeError:  # its class has slots, without one for weak references
                    continue
    return paths


def module_call(derivation: Derivation, paths: ModulePaths, viewer: Calls) -> ModuleCall | None:
    """Return the module whose method made a value: the path of the object, or its class if it has
    no path, and the method. Without an object the path is the function that made the value, or ""
    in code of the `viewer`. None if path and method are both ""."""
    value = None if derivation.owner is None else derivation.owner()
    entry = None if value is None else paths.get(id(value))
    if entry is not None and entry.object() is value:
        path = entry.path
    elif isinstance(value, NamedModule):
        path = value.path
    elif value is not None:
        path = type(value).__name__
    else:
        path = _function(derivation.calls, viewer)
    method = derivation.method.strip("_")
    return ModuleCall(path, method) if path or method else None


def _function(calls: Calls, viewer: Calls) -> str:
    """Return the name of the user's innermost function, or of the class of a method; "" for a
    function of the viewer."""
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
    """Yield the values in the lists, tuples and dicts that objects have."""
    for _, value, _ in _walk(roots):
        if _is_object(value):
            for _, part in parts_of(value, True):
                if type(part) in (list, tuple, dict):
                    yield from (one for _, one in parts_of(part))


def _walk(roots: list[tuple[str, object, int]]) -> Iterator[tuple[str, object, int]]:
    """Yield (path, value, depth) of the variables and of their parts, each once."""
    waiting = deque(roots)
    visited: set[int] = set()
    while waiting:
        path, value, depth = waiting.popleft()
        if id(value) in visited:
            continue
        yield path, value, depth
        if depth < DEEPEST and len(visited) < MOST_LOOKED_INTO:
            parts = list(parts_of(value, True))
            if parts:
                visited.add(id(value))
            waiting.extend((path + step, part, depth + 1) for step, part in parts)


def _is_object(value: object) -> bool:
    return not isinstance(value, ModuleType) and is_open(value)


def _dotted(path: str) -> str:
    """Return a path of Python as it stands in a state dict: `layers[0]` as `layers.0`."""
    return re.sub(r"\['?([^\]']*)'?\]", r".\1", path)


# --------------------------------------------------------------------------------------------------
# The user's names of values.

Names = Mapping[UOp, tuple[str, ...]]
"""The user's names of nodes; the name to show comes first."""
_SAME_MEMORY = frozenset({Ops.RESHAPE, Ops.COPY, Ops.CONTIGUOUS, Ops.DETACH})
"""Ops whose first source has all elements of the node, and no others."""


def names_of(roots: Sequence[UOp], variables: Iterable[tuple[str, UOp]]) -> Names:
    """Return the names of the nodes under `roots`, from the user's variables; also of the nodes
    that take their place when computed values are arrays in memory."""
    root = UOp.sink(*roots)
    nodes = {*root.toposort(), *with_computed(root).toposort()}
    named: dict[UOp, dict[str, None]] = {}
    of_arrays: dict[UOp, dict[str, None]] = {}
    all_named = list(variables)
    inside = [(name, n) for name, n in all_named if n in nodes]
    scheduled = with_computed(UOp.sink(*[node for _, node in inside])).src
    for (name, node), now in zip(inside, scheduled, strict=True):
        if now.is_const:  # literals are the same node
            continue
        named.setdefault(node, {})[name] = None
        named.setdefault(now, {})[name] = None
        all_named.append((name, now))
    for name, node in all_named:
        array = _array_of(node)
        if array in nodes and array.op is Ops.BUFFER:
            of_arrays.setdefault(array, {})[name] = None
    return {node: tuple(names) for node, names in (of_arrays | named).items()}


def _array_of(node: UOp) -> UOp:
    """Return the node that `node` only reshapes or copies."""
    while node.op in _SAME_MEMORY:
        node = node.src[0]
    return node
