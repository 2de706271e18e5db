"""Containers that a captured function replaces: `m.state = (h + x, c)` makes a new tuple.

Another name may still refer to the old container, with the old tensors. So a replay fills a copy
and binds that. Where the function binds a container that had another name, the replay binds the one
that has this name now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from workbench.base.errors import JitError
from workbench.tensor.jit.holders import Reached, reached
from workbench.tensor.jit.parts import PLAIN, Path, Step, layout_of, part_at
from workbench.tensor.tensor import Tensor

Tree = dict[Step, Any]
"""Paths as a tree: each next step, with the tree of the steps after it."""


@dataclass(frozen=True, slots=True)
class ContainerChanges:
    """The paths at which a function puts containers. `new` has the first path of each new one,
    `names` its other paths, each with the first. `moved` has the paths of containers that were
    elsewhere before, each with the old path; `doubtful` repeats those with several old paths."""

    new: frozenset[Path] = frozenset()
    moved: Mapping[Path, Path] = field(default_factory=dict)
    names: Mapping[Path, Path] = field(default_factory=dict)
    doubtful: Sequence[tuple[Path, Path]] = ()

    @property
    def paths(self) -> frozenset[Path]:
        """The paths that lead to another container than before."""
        return self.new | self.moved.keys() | self.names.keys()

    def moved_in(self, root: Any, is_done: bool = False) -> dict[Path, Any]:
        """Return the moved containers by their new paths. They are read at the old paths or, if the
        function `is_done`, at the new ones."""
        return {
            path: part_at(root, path if is_done else origin) for path, origin in self.moved.items()
        }


def container_changes(before: Reached, after: Reached, bound: Iterable[Path]) -> ContainerChanges:
    """Return the changes from the containers `before` a function to those `after` it. The function
    binds the tensors at `bound` paths anew. Only containers with tensors matter."""
    old, new = before.containers, after.containers
    origins: dict[int, list[Path]] = {}
    for path, container in old.items():
        origins.setdefault(id(container), []).append(path)
    with_tensors = {id(new[path]) for path in _holder_paths(after.tensors) if path in new}
    above = _holder_paths(bound)
    firsts: dict[int, Path] = {}
    moved, names, doubtful = {}, {}, []
    for path, container in new.items():
        key = id(container)
        if path not in old or container is old[path] or key not in with_tensors:
            continue
        if key in origins:
            moved[path] = origins[key][0]
            if len(origins[key]) > 1:
                doubtful.append((path, origins[key][0]))
        elif key in firsts:
            names[path] = firsts[key]
        elif path in above:
            firsts[key] = path
    return ContainerChanges(frozenset(firsts.values()), moved, names, doubtful)


def _holder_paths(paths: Iterable[Path]) -> set[Path]:
    """Return the paths of all holders on the way to what is at `paths`."""
    return {path[:n] for path in paths for n in range(1, len(path))}


def bind(
    root: Any,
    paths: Sequence[Path],
    tensors: Sequence[Tensor],
    changes: ContainerChanges,
    moved: Mapping[Path, Any],
) -> None:
    """Put `tensors` at `paths` from `root`, in copies of the containers that are new, and put the
    `moved` containers at their paths."""
    binding = _Binding(changes, moved, dict(zip(paths, tensors, strict=True)))
    binding.filled(root, (), _tree([*paths, *moved]))
    for path, first in changes.names.items():
        path[-1].bind(part_at(root, path[:-1]), binding.copies[first])


class ObjectResults:
    """The objects with tensors that the function `name` makes and returns: a replay makes them
    anew. `same` are the tensors that are the same at each call. An object that was reached
    `before`, or whose tensors are all among `same`, is returned as it is."""

    def __init__(self, name: str, before: Reached, same: Iterable[Tensor]):
        self._name = name
        self._holders = {id(holder) for holder in before.containers.values()}
        self._same = {id(tensor) for tensor in same}

    def tensors_of(self, nest: Any) -> Iterator[Tensor]:
        """Yield the tensors of a nest, those in objects that the function makes included."""
        visited: set[int] = set()
        stack = [nest]
        while stack:
            part = stack.pop()
            if isinstance(part, Tensor):
                yield part
            elif isinstance(part, dict | list | tuple):
                stack.extend([*(part.values() if isinstance(part, dict) else part)][::-1])
            elif id(part) not in visited:
                visited.add(id(part))
                stack.extend(below for _, below in self.parts_of(part)[::-1])

    def parts_of(self, value: Any) -> list[tuple[Step, Any]]:
        """Return the parts with tensors of an object that the function makes; [] for other values.

        Errors: JitError for an object that cannot be made anew.
        """
        if not self._is_made(value):
            return []
        layout = layout_of(value, frozenset())
        assert layout is not None
        steps = zip(layout.steps, layout.parts(value), strict=True)
        parts = [(step, part) for step, part in steps if step is not None and _tensors_in(part)]
        try:
            other = copy_of(value)
            for step, part in parts:
                set_part(other, step, part)
        except (TypeError, AttributeError, LookupError) as error:
            raise JitError(
                f"cannot capture {self._name}",
                f"it returns a {type(value).__name__} with tensors, which a replay cannot make "
                f"anew: {error}",
                "a tuple, a dict or a dataclass of tensors",
            ) from None
        return parts

    def _is_made(self, value: Any) -> bool:
        if isinstance(value, (*PLAIN, type, ModuleType)) or id(value) in self._holders:
            return False
        return any(id(tensor) not in self._same for tensor in _tensors_in(value))


def _tensors_in(value: Any) -> list[Tensor]:
    return [*reached([((), value)]).tensors.values()]


class _Binding:
    """The binding of tensors and containers, each by its path."""

    def __init__(
        self, changes: ContainerChanges, moved: Mapping[Path, Any], tensors: Mapping[Path, Tensor]
    ):
        self._new, self._moved, self._tensors = changes.new, moved, tensors
        self.copies: dict[Path, Any] = {}

    def filled(self, part: Any, path: Path, tree: Tree) -> Any:
        """Return what belongs at `path`, where `part` was."""
        if path in self._tensors:
            return self._tensors[path]
        part = self._moved.get(path, part)
        if path not in self._new:
            for step, value, old in self._parts(part, path, tree):
                if value is not old:
                    step.bind(part, value)
        elif isinstance(part, tuple):
            items = {s.name: value for s, value, _ in self._parts(part, path, tree)}
            part = self.copies[path] = tuple.__new__(
                type(part), [items.get(n, old) for n, old in enumerate(part)]
            )
        else:
            part = self.copies[path] = copy_of(part)
            for step, value, _ in self._parts(part, path, tree):
                set_part(part, step, value)
        return part

    def _parts(self, holder: Any, path: Path, tree: Tree) -> Iterator[tuple[Step, Any, Any]]:
        for step, below in tree.items():
            old = step.part(holder)
            yield step, self.filled(old, (*path, step), below), old


def _tree(paths: Iterable[Path]) -> Tree:
    tree: Tree = {}
    for path in paths:
        below = tree
        for step in path:
            below = below.setdefault(step, {})
    return tree


def copy_of(holder: Any) -> Any:
    """Return a copy with the same parts. Errors: TypeError for functions, classes and their like,
    which copy() returns as they are."""
    other = copy(holder)
    if other is holder:
        raise TypeError(f"cannot copy {type(holder).__name__}")
    return other


def set_part(holder: Any, step: Step, value: Any) -> None:
    """Put `value` into a copy, whose class may be frozen."""
    if step.kind == "attribute":
        object.__setattr__(holder, step.name, value)
    else:
        step.bind(holder, value)
