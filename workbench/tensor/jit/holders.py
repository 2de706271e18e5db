"""Where a function finds tensors: its variables, its object, and what is reached from these.

Only what lies there is read, none of the user's code runs: variables of enclosing functions,
globals that its code names, defaults, attributes, items of lists, tuples and dicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import ref

from workbench.base.unpicklable import Unpicklable
from workbench.tensor.tensor import Tensor

MOST_OBJECTS = 100_000
"""Number of objects after which the search ends: tensors beyond are not found."""

Path = tuple["Step", ...]
"""The way from a root to a tensor."""


@dataclass(frozen=True, slots=True)
class Step:
    """From an object to a part of it: `kind` is "attribute", "item", "cell" or "global", and
    `name` which one it is."""

    kind: str
    name: Any

    def part(self, holder: Any) -> Any:
        """Return the part. Errors: LookupError, AttributeError or ValueError where it is gone."""
        match self.kind:
            case "attribute":
                return getattr(holder, self.name)
            case "item":
                return holder[self.name]
            case "cell":
                return holder.__closure__[self.name].cell_contents
        return holder.__globals__[self.name]

    def bind(self, holder: Any, value: Any) -> None:
        """Put `value` in the place of the part."""
        match self.kind:
            case "attribute":
                setattr(holder, self.name, value)
            case "item":
                holder[self.name] = value
            case "cell":
                holder.__closure__[self.name].cell_contents = value
            case _:
                holder.__globals__[self.name] = value


def tensor_at(root: Any, path: Path) -> Any:
    """Return what is at a path now; None where the path is gone."""
    try:
        for step in path:
            root = step.part(root)
    except (LookupError, AttributeError, ValueError, TypeError):
        return None
    return root


def bind_at(root: Any, path: Path, value: Any) -> None:
    """Put `value` where a path leads to."""
    for step in path[:-1]:
        root = step.part(root)
    path[-1].bind(root, value)


def words_of(path: Path) -> str:
    """Return the last steps of a path as code."""
    text = ""
    for step in path:
        if step.kind == "attribute":
            text += f".{step.name}"
        elif step.kind == "item":
            text += f"[{step.name!r}]"
        else:
            text = step.name if isinstance(step.name, str) else ""
    return text


def tensors_by_path(root: Any) -> dict[Path, Tensor]:
    """Return the tensors that are reached from `root`, each by the first path to its holder."""
    tensors: dict[Path, Tensor] = {}
    visited: dict[int, Any] = {}
    stack: list[tuple[Path, Any]] = [((), root)]
    while stack and len(visited) < MOST_OBJECTS:
        path, holder = stack.pop()
        if isinstance(holder, Tensor):
            tensors[path] = holder
            continue
        if isinstance(holder, _PLAIN) or id(holder) in visited:
            continue
        visited[id(holder)] = holder
        parts = [((*path, step), part) for step, part in _parts(holder)]
        stack.extend(reversed(parts))
    return tensors


class HeldTensors:
    """Tensors that a function reaches, each by its path: `are_at(root)` says whether they are still
    there. None of them is kept alive."""

    def __init__(self, tensors: Mapping[Path, Tensor]):
        self._steps: dict[Path, list[tuple[Step, ref[Tensor]]]] = {}
        for path, tensor in tensors.items():
            self._steps.setdefault(path[:-1], []).append((path[-1], ref(tensor)))

    def are_at(self, root: Any) -> bool:
        """Whether the same tensors are at the paths from `root`."""
        for path, steps in self._steps.items():
            holder = tensor_at(root, path)
            for step, tensor in steps:
                if tensor_at(holder, (step,)) is not tensor():
                    return False
        return True


_PLAIN = (str, bytes, int, float, complex, type, ModuleType, type(None))
"""What holds no tensor."""


def _parts(holder: Any) -> Iterator[tuple[Step, Any]]:
    if isinstance(holder, list | tuple):
        yield from ((Step("item", n), part) for n, part in enumerate(holder))
    elif isinstance(holder, dict):
        yield from ((Step("item", key), part) for key, part in [*holder.items()])
    elif isinstance(holder, FunctionType):
        yield from _variables(holder)
    elif isinstance(holder, MethodType):
        yield Step("attribute", "__self__"), holder.__self__
        yield Step("attribute", "__func__"), holder.__func__
    elif isinstance(holder, partial):
        for name in ("func", "args", "keywords"):
            yield Step("attribute", name), getattr(holder, name)
    if isinstance(
        holder, Unpicklable
    ):  # a captured function: the captures in it are its own
        yield Step("attribute", "_function"), getattr(holder, "_function", None)
    elif not isinstance(holder, FunctionType):
        yield from _attributes(holder)


def _variables(function: FunctionType) -> Iterator[tuple[Step, Any]]:
    for n, cell in enumerate(function.__closure__ or ()):
        try:
            yield Step("cell", n), cell.cell_contents
        except ValueError:  # not bound yet
            continue
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield Step("global", name), function.__globals__[name]
    yield Step("attribute", "__defaults__"), function.__defaults__
    yield Step("attribute", "__kwdefaults__"), function.__kwdefaults__
    if hasattr(function, "__wrapped__"):
        yield Step("attribute", "__wrapped__"), function.__wrapped__


def _names(code: CodeType) -> dict[str, None]:
    """Return the names that code and the functions in it use, of globals and of attributes."""
    names = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names.update(_names(constant))
    return names


def _attributes(holder: Any) -> Iterator[tuple[Step, Any]]:
    own = getattr(holder, "__dict__", None)
    if isinstance(own, dict):
        yield from ((Step("attribute", name), part) for name, part in [*own.items()])
    for kind in type(holder).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            try:
                yield Step("attribute", name), object.__getattribute__(holder, name)
            except AttributeError:
                continue
