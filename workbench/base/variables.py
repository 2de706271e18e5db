"""The user's variables: the names in the code that calls this package.

A name has the meaning that it has where the package is called: the variables of the nearest
function come first, then those of its callers, then those of the cell, script or module. A name
hides the same name further out. Lists, tuples, dicts, and the user's objects and modules are
searched: `layers[0].weight`. No code of the user runs: no property, no method. If a function is
explored, the variables that its code reads come before all others.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Mapping
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
from typing import Any, TypeVar, cast

from workbench.base.source import LAYERS, MOST_FRAMES, is_users

T = TypeVar("T")
MOST_LOOKED_INTO = 10_000
"""Most lists, dicts, objects and modules that are searched: a model of 500 layers has half that."""
MOST_INSIDE = 1000
"""Most values of each of them that are searched."""
_DATA = frozenset({int, float, complex, bool, str, bytes, NoneType})
"""Types of values that are left out: most values in long lists are numbers."""
DEEPEST = 8
"""Most steps from a variable to a value in it."""
_TINYGRAD_LAYERS = "tinygrad.nn"
"""The module of layers that a user's model of tinygrad consists of."""
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
    class is in one, a SimpleNamespace, or a layer of this package or of tinygrad."""
    if isinstance(value, ModuleType):
        return _is_users_module(value)
    if type(value) is SimpleNamespace:
        return True
    return _is_users_module(sys.modules.get(type(value).__module__))


def _is_users_module(module: ModuleType | None) -> bool:
    if module is None:
        return False
    names: dict[str, Any] = object.__getattribute__(module, "__dict__")
    file, name = names.get("__file__"), str(names.get("__name__"))
    if isinstance(file, str):
        return is_users(file) or file.startswith(LAYERS) or name.startswith(_TINYGRAD_LAYERS)
    return name == "__main__"
