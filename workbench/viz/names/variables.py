"""The user's variables: the names in the code that calls this package.

A name means what it means where the package is called: the nearest function's variables come
first, then those of what called it, then those of cell, script or module, and a name that a nearer
scope has hides the same name further out. Lists, tuples, dicts, and objects and modules of the
user's are looked into: `layers[0].weight`. Nothing of the user's runs: no property, no method.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from types import FrameType, MemberDescriptorType, ModuleType, SimpleNamespace
from typing import Any, TypeVar, cast

from workbench.base.source import LAYERS, MOST_FRAMES, is_users

T = TypeVar("T")
MOST_LOOKED_INTO = 3000
"""Most lists, dicts, objects and modules that are looked into."""
MOST_INSIDE = 200
"""The greatest number of values of each container that are searched."""
DEEPEST = 8
"""Most steps from a variable to a value in it."""
_HISTORY = frozenset({"In", "Out"})
"""The names of IPython's tables of past cells. Its others begin with an underscore."""


def variables(kind: type[T]) -> Iterator[tuple[str, T]]:
    """Yield (name, value) of the values of a `kind` that the calling code has names for: variables
    first, the nearest scope's before those of others, then what is inside of others."""
    waiting = deque((name, value, 0) for name, value in named_variables())
    visited: set[int] = set()
    while waiting:
        name, value, depth = waiting.popleft()
        if issubclass(type(value), kind):  # `isinstance` may ask a property of the value's
            yield name, cast(T, value)
        elif depth < DEEPEST and id(value) not in visited:
            parts = list(islice(parts_of(value), MOST_INSIDE))
            if parts and len(visited) < MOST_LOOKED_INTO:
                visited.add(id(value))
                waiting.extend((name + step, part, depth + 1) for step, part in parts)


def named_variables() -> Iterator[tuple[str, object]]:
    """Yield (name, value) of the variables themselves, the nearest scope's first."""
    hidden: set[str] = set()
    for scope in _scopes():
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


def _is_public(name: object) -> bool:
    if not isinstance(name, str) or name in _HISTORY:
        return False
    return name.isidentifier() and not name.startswith("_")


def _is_private(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and name[:2] != "__"


def parts_of(value: object, private: bool = False) -> Iterator[tuple[str, object]]:
    """Yield (step, part) of what is in a value: ("[0]", ..) or (".weight", ..); `private` ones,
    whose names begin with an underscore, where asked for."""
    if type(value) in (list, tuple):
        sequence: Any = value
        for place, part in enumerate(sequence):
            yield f"[{place}]", part
    elif type(value) is dict:
        mapping: Any = value
        with suppress(RuntimeError):  # another thread adds to it
            for key, part in mapping.items():
                if type(key) in (str, int):
                    yield f"[{key!r}]", part
    elif is_open(value):
        for name, part in _fields(value):
            if _is_public(name) or (private and _is_private(name)):
                yield f".{name}", part


def _fields(value: object) -> Iterator[tuple[object, object]]:
    """Yield (name, part) of what an object has, in its dict and in slots."""
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
    """Whether a value's attributes are the user's: an object of a class, or a module, of theirs, or
    a layer of this package."""
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
