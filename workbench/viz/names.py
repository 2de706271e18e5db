"""The user's names of values: `a` for the array that the variable `a` holds where `explore` is
called.

A variable names the node of its tensor. An array in memory also has the names of tensors with the
same elements in another shape or on another device. A node may have several names: the first is
shown, and a name of one step (`weight`) comes before one of two (`net.weight`).

Sections: The user's variables; The paths of the user's objects; The user's names of values.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from types import (
    FrameType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    NoneType,
    SimpleNamespace,
)
from typing import Any, NamedTuple, TypeVar, cast
from weakref import ref

from workbench.base.source import (
    LAYERS,
    MOST_FRAMES,
    Calls,
    Derivation,
    ModuleCall,
    NamedModule,
    is_users,
)
from workbench.execution.memory_plan import with_computed
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# The user's variables: the names in the code that calls this package.
#
# A name has the meaning that it has where the package is called: the variables of the nearest
# function come first, then those of its callers, then those of the cell, script or module. A name
# hides the same name further out. Lists, tuples, dicts, and the user's objects and modules are
# searched: `layers[0].weight`. No code of the user runs: no property, no method. If a function is
# explored, the variables that its code reads come before all others.

T = TypeVar("T")
MOST_LOOKED_INTO = 10_000
"""Most lists, dicts, objects and modules that are searched: a model of 500 layers has half that."""
MOST_INSIDE = 1000
"""Most values of each of them that are searched."""
_DATA = frozenset({int, float, complex, bool, str, bytes, NoneType})
"""Types of values that are left out: most values in long lists are numbers."""
DEEPEST = 8
"""Most steps from a variable to a value in it."""
_HISTORY = frozenset({"In", "Out"})
"""IPython's tables of past cells; the names of its other variables begin with an underscore."""


def variables(kind: type[T], function: object = None) -> Iterator[tuple[str, T]]:
    """Yield (name, value) of the values of a `kind` that the calling code, or the code of a
    `function`, has names for: first variables, from the nearest scope outwards, then values inside
    of other variables."""
    waiting = deque((name, value, 0) for name, value in named_variables(function))
    visited: set[int] = set()
    while waiting:
        name, value, depth = waiting.popleft()
        if issubclass(type(value), kind):  # `isinstance` may run a property of the value
            yield name, cast(T, value)
        elif depth < DEEPEST and id(value) not in visited:
            parts = list(parts_of(value))
            if parts and len(visited) < MOST_LOOKED_INTO:
                visited.add(id(value))
                waiting.extend((name + step, part, depth + 1) for step, part in parts)


def named_variables(function: object = None) -> Iterator[tuple[str, object]]:
    """Yield (name, value) of the variables themselves, the nearest scope's first."""
    hidden: set[str] = set()
    for scope in chain(_scopes_of(function), _scopes()):
        names = [name for name in scope if name not in hidden and _is_public(name)]
        hidden.update(names)
        yield from [(name, scope[name]) for name in names]


def _scopes() -> Iterator[Mapping[str, object]]:
    """Yield the variables of the user's functions on the call stack, the nearest first, then those
    of their modules."""
    frame: FrameType | None = sys._getframe(1)
    modules: list[Mapping[str, object]] = []
    for _ in range(MOST_FRAMES):
        if frame is None:
            break
        if is_users(frame.f_code.co_filename):
            if frame.f_code.co_name == "<module>":
                modules.append(frame.f_globals)
                break
            yield dict(frame.f_locals)
            modules.append(frame.f_globals)
        frame = frame.f_back
    yield from {id(module): dict(module) for module in modules}.values()


def _scopes_of(function: object) -> Iterator[Mapping[str, object]]:
    """Yield the variables that the code of a Python function or method reads: its object, those of
    the functions around it, those of its module."""
    if isinstance(function, MethodType):
        yield {"self": function.__self__}
        function = function.__func__
    if isinstance(function, FunctionType):
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        closure = {}
        for name, cell in cells:
            with suppress(ValueError):  # the variable is not bound yet
                closure[name] = cell.cell_contents
        yield closure
        if is_users(function.__code__.co_filename):
            yield dict(function.__globals__)


def _is_public(name: object) -> bool:
    if not isinstance(name, str) or name in _HISTORY:
        return False
    return name.isidentifier() and not name.startswith("_")


def _is_private(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and name[:2] != "__"


def parts_of(value: object, private: bool = False) -> Iterator[tuple[str, object]]:
    """Yield (step, part) of the first parts of a value, without data: ("[0]", ..) or
    (".weight", ..); with `private` also attributes whose names begin with an underscore."""
    if type(value) in (list, tuple):
        sequence: Any = value
        for place, part in enumerate(islice(sequence, MOST_INSIDE)):
            if type(part) not in _DATA:
                yield f"[{place}]", part
    elif type(value) is dict:
        mapping: Any = value
        with suppress(RuntimeError):  # another thread adds to it
            for key, part in islice(mapping.items(), MOST_INSIDE):
                if type(part) not in _DATA and type(key) in (str, int):
                    yield f"[{key!r}]", part
    elif is_open(value):
        for name, part in islice(_fields(value), MOST_INSIDE):
            is_named = _is_public(name) or (private and _is_private(name))
            if type(part) not in _DATA and is_named:
                yield f".{name}", part


def _fields(value: object) -> Iterator[tuple[object, object]]:
    """Yield (name, part) of the attributes of an object, in its dict and in slots."""
    with suppress(AttributeError):
        yield from list(object.__getattribute__(value, "__dict__").items())
    if isinstance(value, ModuleType):
        return
    for kind in type.__getattribute__(type(value), "__mro__"):
        for name, slot in list(vars(kind).items()):
            if type(slot) is MemberDescriptorType and slot.__objclass__ is kind:
                with suppress(AttributeError):  # nothing was set
                    yield name, slot.__get__(value)


def is_open(value: object) -> bool:
    """Whether the attributes of a value are searched: of a module of the user, an object whose
    class is in one, a SimpleNamespace, or a layer of this package."""
    if isinstance(value, ModuleType):
        return _is_users_module(value)
    if type(value) is SimpleNamespace:
        return True
    return _is_users_module(sys.modules.get(type(value).__module__))


def _is_users_module(module: ModuleType | None) -> bool:
    if module is None:
        return False
    names: dict[str, Any] = object.__getattribute__(module, "__dict__")
    file = names.get("__file__")
    if isinstance(file, str):
        return is_users(file) or file.startswith(LAYERS)
    return names.get("__name__") == "__main__"


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
