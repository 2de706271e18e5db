"""Tensors that a captured function replaces: `m.h = m.h + x` instead of an assignment.

A replay runs no Python, so it does the same: it reads what is in such a place, and binds its result
there. It is known from a look at all that the function reaches, before the capture and after it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.base.errors import JitError
from workbench.ir.schedule.schedule import base
from workbench.tensor.jit.containers import ContainerChanges, bind, container_changes
from workbench.tensor.jit.holders import Reached
from workbench.tensor.jit.inputs import Kind, input_node, kind_of
from workbench.tensor.jit.paths import Path, tensor_at, words_of
from workbench.tensor.jit.state import buffer_of
from workbench.tensor.tensor import Tensor
from workbench.tensor.versions import VersionedMemory


@dataclass(frozen=True, slots=True)
class Rebindings:
    """The paths to the places that a function binds anew, the tensors that were there, those that
    are there now, and the containers that are others now."""

    paths: list[Path]
    old: list[Tensor]
    new: list[Tensor]
    containers: ContainerChanges

    @property
    def all_paths(self) -> set[Path]:
        """The paths of tensors and containers that are others."""
        return {*self.paths, *self.containers.paths}

    def bind(self, root: Any, tensors: Sequence[Tensor], name: str) -> None:
        """Put tensors in these places after the function `name` has run.

        Errors: JitError where a container can neither be changed nor copied.
        """
        moved = self.containers.moved_in(root, is_done=True)
        try:
            bind(root, self.paths, tensors, self.containers, moved)
        except (TypeError, AttributeError, LookupError) as error:
            raise JitError(
                f"cannot capture {name}",
                f"it binds {', '.join(filter(None, map(words_of, self.paths))) or 'a variable'} to "
                f"another tensor, which a replay cannot do: {error}",
                "a list, a dict or an attribute for the tensor, or .assign(value)",
            ) from None


class Places:
    """The places that a function binds anew: their paths, and of the tensors there at the capture
    the kind, and which memory of the state, `read`, they were (None: it was not read)."""

    def __init__(self, bindings: Rebindings, read: Sequence[VersionedMemory]):
        self._paths, self._containers = bindings.paths, bindings.containers
        self._kinds: list[Kind] = [kind_of(t) for t in bindings.old]
        numbers = {memory: n for n, memory in enumerate(read)}
        memories = [t._memory for t in bindings.old]
        self._names = _same_as(bindings.old)
        self.read = [None if m is None else numbers.get(m) for m in memories]

    @property
    def is_empty(self) -> bool:
        return not self._paths and not self._containers.moved

    def tensors_at(self, root: Any) -> list[Any]:
        """Return what is in these places now."""
        return [tensor_at(root, path) for path in self._paths]

    def fit(self, tensors: Sequence[Any], written: Collection[VersionedMemory]) -> bool:
        """Whether tensors have the shapes, dtypes and devices of those at the capture, the same of
        them are one, and none stands for memory that is `written`, which it would see."""
        return self._names == _same_as(tensors) and all(
            isinstance(t, Tensor) and kind_of(t) == kind and t._memory not in written
            for t, kind in zip(tensors, self._kinds, strict=True)
        )

    def bind(self, root: Any, tensors: Sequence[Tensor]) -> None:
        """Put tensors in these places, and containers that the function moves."""
        if self.is_empty:
            return
        moved = self._containers.moved_in(root)
        bind(root, self._paths, tensors, self._containers, moved)


def rebindings(before: Reached, after: Reached) -> Rebindings:
    """Return the places with another tensor `after` a function than `before` it. Members of a set
    have no place, and gradients are those of the call."""
    paths = [
        path
        for path, tensor in before.tensors.items()
        if after.tensors.get(path, tensor) is not tensor
        and path[-1].kind not in ("member", "gradient")
    ]
    old, new = ([reached.tensors[p] for p in paths] for reached in (before, after))
    containers = container_changes(before, after, paths)
    return Rebindings(paths, old, new, containers)


def two_names(
    bindings: Rebindings,
    after: Mapping[Path, Tensor],
    written: Collection[VersionedMemory],
    name: str,
) -> JitError | None:
    """Return the error where a tensor that the function `name` replaced is reached by another name,
    too, or is written; None where none is."""
    for path, other_path in bindings.containers.doubtful:
        return JitError(
            f"cannot capture {name}",
            f"it binds {words_of(path)} to another object with tensors, which is also "
            f"{words_of(other_path)}: a replay could not tell these names apart",
            "the object as an argument, or a function for each",
        )
    bound = set(bindings.paths)
    others = {identity(t): words_of(p) for p, t in after.items() if p not in bound}
    news: dict[int, Tensor] = {}
    for path, old, new in zip(bindings.paths, bindings.old, bindings.new, strict=True):
        other = others.get(identity(old), "")
        if old._memory in written:
            other = "written"
        elif news.setdefault(identity(old), new) is not new:
            other = "in another place"
        if other:
            return JitError(
                f"cannot capture {name}",
                f"it binds {words_of(path)} to another tensor, and the one that was there is also "
                f"{other}: a replay could not tell them apart",
                f"{words_of(path)}.assign(value), which writes to the tensor",
            )
    return None


def compute_at(root: Any, paths: Sequence[Path]) -> None:
    """Compute the tensors that paths from `root` lead to; known constants get memory."""
    for tensor in [tensor_at(root, path) for path in paths]:
        if isinstance(tensor, Tensor):
            memory_at(tensor)


def memory_at(tensor: Tensor) -> VersionedMemory:
    """Return the memory that a tensor is all of, computed where necessary: that of its own value,
    if it is a view of a part."""
    if tensor._memory is None:
        tensor._share(tensor)
    if is_whole(tensor):
        assert tensor._memory is not None
        buffer_of(tensor._memory)
        return tensor._memory
    return VersionedMemory(input_node(tensor), tensor.device, 0)


def _same_as(tensors: Sequence[Any]) -> list[int]:
    """Return, for each tensor, the place of the first one that is the same."""
    first: dict[int, int] = {}
    return [first.setdefault(id(tensor), n) for n, tensor in enumerate(tensors)]


def is_whole(tensor: Tensor) -> bool:
    """Whether a tensor is all of its memory, in its order."""
    memory = tensor._memory
    return memory is None or base(tensor.uop) is base(memory.value)


def identity(tensor: Tensor) -> int:
    """Return what two tensors have in common that see what is written to the other."""
    return id(tensor if tensor._memory is None else tensor._memory)
