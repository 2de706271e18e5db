"""The guard of a captured function: the tensors and numbers that it reaches must mean the same as
at the capture.

A replay runs no Python. So a name that leads to other memory than at the capture must be found
before, and the function is then captured anew. Searching all that is reached would take long at
each call: the parts of each holder are compared by identity, and searched only if one differs.

Sections: The guard of a captured function; Numbers that a captured function itself changes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import ref

from workbench.base.source import warn_user
from workbench.ir.node.construct import is_known
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.schedule import base
from workbench.tensor.jit.holders import Reached, reached
from workbench.tensor.jit.parts import (
    ASPECTS,
    GRADIENT,
    Path,
    Step,
    gradient_of,
    tensor_at,
    words_of,
)
from workbench.tensor.jit.state import Kind, kind_of
from workbench.tensor.tensor import Tensor
from workbench.tensor.variable_operators import equal_nests
from workbench.tensor.versions import VersionedMemory, steps_to

# --------------------------------------------------------------------------------------------------
# The guard of a captured function.

FUNCTION: Path = (Step("item", 0),)
"""The path of the function from (function, args, kwargs)."""
Roots = Sequence[tuple[Path, Any]]


@dataclass(frozen=True, slots=True)
class TensorMeaning:
    """The meaning of a tensor before a capture: `memory` that a replay reads anew, and the
    `movement` from it to the tensor; or, of another tensor, its value `node`."""

    tensor: ref[Tensor]
    kind: Kind
    memory: VersionedMemory | None
    movement: tuple[Any, ...]
    node: UOp | None

    @staticmethod
    def of(tensor: Tensor, own: Collection[VersionedMemory]) -> TensorMeaning:
        """Return the meaning of a tensor now; `own` is the memory that a replay reads anew."""
        memory = tensor._memory
        if memory is None or memory not in own:
            return TensorMeaning(ref(tensor), kind_of(tensor), None, (), tensor.uop)
        return TensorMeaning(ref(tensor), kind_of(tensor), memory, _movement(tensor), None)

    def without_node(self) -> TensorMeaning:
        """Return the meaning of a tensor that is not used, without its value: a gradient of earlier
        would keep all that it was computed from in memory as long as the guard."""
        return replace(self, node=None)


@dataclass(frozen=True, slots=True)
class Uses:
    """What a captured function uses: `memory` that it reads or writes, other values (`nodes`), and
    `tensors`, by their identity: those that it returns as they are, and constants of which it
    returns views."""

    memory: Collection[VersionedMemory]
    nodes: Collection[UOp]
    tensors: Collection[int]


class Guard:
    """The check that a captured function reaches the same as before its capture.

    `before` has the meaning of each tensor by its path. `paths` are those of all numbers and texts;
    `values` has the ones that the function did not change itself. A name outside of `paths` is new,
    and may hide one. `leaves` has what `requires_grad` was after the capture. Tensors at `bound`
    paths are bound anew by the function, and not checked here. `uses` is what the function uses.
    """

    def __init__(
        self,
        before: Mapping[Path, TensorMeaning],
        values: Mapping[Path, Any],
        paths: Collection[Path],
        leaves: Mapping[Path, bool | None],
        bound: Collection[Path],
        uses: Uses,
    ):
        self._values, self._bound, self._uses = values, {*bound}, uses
        self._paths, self._leaf_paths = paths, leaves
        own = {p: s for p, s in before.items() if p not in bound}
        self._before = {p: s if self._is_used(s) else s.without_node() for p, s in own.items()}
        self._named = {p for p, s in before.items() if id(s.tensor()) in uses.tensors}
        """The paths of tensors that the function returns as they are: later they may be gone."""
        self.changed_paths: list[Path] = []
        """Paths of constants that have other values now, and so are memory for the next capture."""
        self._now: Reached | None = None
        self._dead: list[Any] = []
        self._references: list[ref[Tensor]] = []
        self._memories: list[tuple[ref[Tensor], VersionedMemory]] = []
        self._gradients: list[tuple[ref[Tensor], int]] = []
        self._leaves: list[tuple[ref[Tensor], bool | None]] = []
        self._nodes: list[tuple[ref[Tensor], UOp]] = []

    def holds(self, roots: Roots) -> bool:
        """Whether all that is reached from `roots`, the function and its arguments, has the meaning
        that it had at the capture."""
        return self.is_unchanged(roots) or self._holds_anew(roots)

    def is_unchanged(self, roots: Roots) -> bool:
        """Whether all is as it was when it last held."""
        if self._now is None or self._dead or not self._now.is_unchanged(roots):
            return False
        if not self._references:  # it reaches no tensor
            return True
        for tensor, memory in self._memories:
            if tensor()._memory is not memory:  # type: ignore[union-attr]  # it is alive
                return False
        for tensor, is_leaf in self._leaves:
            if has_gradients(tensor()) is not is_leaf:
                return False
        for tensor, gradient in self._gradients:
            if id(tensor()._grad_state.grad) != gradient:  # type: ignore[union-attr]
                return False
        for tensor, node in self._nodes:
            if tensor().uop is not node:  # type: ignore[union-attr]
                return False
        return True

    def _holds_anew(self, roots: Roots) -> bool:
        now = reached(roots, self._bound)
        tensors = {p: t for p, t in now.tensors.items() if p not in self._bound}
        missing = self._before.keys() - tensors.keys()
        if any(p[-1] != GRADIENT or self._is_used(self._before[p]) for p in missing):
            return False
        both = [(p, s) for p, s in self._before.items() if p in tensors]
        others = [p for p, s in both if not self._means_the_same(p, tensors[p], s)]
        if others:
            self.changed_paths = [p for p in others if self._before[p].node is not None]
            return False
        added = [p for p in tensors if p not in self._before]
        if not all(self._collects_results(path[:-1], roots) for path in added):
            return False
        for path, value in self._values.items():
            if not is_at(path, now.values, value):
                return False
        if any(_is_name(p) for p in now.values.keys() - self._paths):
            return False
        leaves = self._leaf_paths
        paths = tensors.keys() & leaves.keys()
        if any(has_gradients(tensors[p]) is not leaves[p] for p in paths):
            return False
        self._note(now, tensors)
        return True

    def _means_the_same(self, path: Path, tensor: Tensor, before: TensorMeaning) -> bool:
        """Whether a tensor means what it did `before`; an unused one may be any of its kind."""
        is_same = tensor is before.tensor()
        if path in self._named and not is_same:
            return False
        if before.node is not None and tensor.uop is before.node:
            return True
        if not self._is_used(before):
            return is_same or kind_of(tensor) == before.kind
        if before.memory is None:
            return False
        return tensor._memory is before.memory and (is_same or _movement(tensor) == before.movement)

    def _is_used(self, before: TensorMeaning) -> bool:
        """Whether the function may depend on the values of a tensor: it may on any constant."""
        if before.node is None:
            return before.memory in self._uses.memory
        return before.node in self._uses.nodes or is_known(base(before.node))

    def _collects_results(self, path: Path, roots: Roots) -> bool:
        """Whether a path leads to a list that had tensors before, none of which is used: it may
        grow, since the function, or other code, collects results there."""
        beside = [s for p, s in self._before.items() if p[:-1] == path]
        if not beside or any(map(self._is_used, beside)):
            return False
        starts = [(start, root) for start, root in roots if path[: len(start)] == start]
        return any(isinstance(tensor_at(root, path[len(start) :]), list) for start, root in starts)

    def _note(self, now: Reached, tensors: Mapping[Path, Tensor]) -> None:
        """Note what is reached now, for the quick check. A tensor that dies ends the quick checks,
        since another one may get its identity. `_now`, without which there are none, is set last:
        Ctrl-C may come before."""
        self._now = None
        self._dead = []
        note = self._dead.append
        self._references = [ref(tensor, note) for tensor in tensors.values()]
        pairs = [(ref(tensors[p]), s) for p, s in self._before.items() if p in tensors]
        self._gradients = [
            (ref(t), id(gradient_of(t))) for t in tensors.values() if t._grad_state is not None
        ]
        self._leaves = [(ref(t), has_gradients(t)) for t in tensors.values()]
        self._memories = [
            (t, s.memory)
            for t, s in pairs
            if s.memory is not None and s.memory in self._uses.memory
        ]
        self._nodes = [
            (ref(t), t.uop)
            for p, t in tensors.items()
            if p in self._before and self._before[p].node is not None
        ]
        self._now = Reached({}, {}, now.holders, constants=now.constants)


def roots_of(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Roots:
    """Return the function and the objects among its arguments, each with its path from (function,
    args, kwargs). Tensors among the arguments are left out: they are inputs."""
    roots = [(FUNCTION, function)]
    if not kwargs and all(isinstance(argument, Tensor) for argument in args):
        return roots
    stack: list[tuple[Path, Any]] = [((Step("item", 2),), kwargs), ((Step("item", 1),), args)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict):
            parts = [*value.items()]
        elif isinstance(value, list | tuple):
            parts = [*enumerate(value)]
        else:
            if not isinstance(value, Tensor):
                roots.append((path, value))
            continue
        stack.extend(((*path, Step("item", name)), part) for name, part in parts)
    return roots


def is_at(path: Path, values: Mapping[Path, Any], value: Any) -> bool:
    """Whether `values` has `value`, or an equal one, at `path`."""
    return path in values and equal_nests(value, values[path])


def has_gradients(tensor: Tensor | None) -> bool | None:
    """Return the `requires_grad` that was set for a tensor; None if none was."""
    state = None if tensor is None else tensor._grad_state
    return None if state is None else state.requires_grad


def _is_name(path: Path) -> bool:
    """Whether a path ends with a name (attribute, global, cell), and not with an item."""
    kinds = [step.kind for step in path if step.kind not in ASPECTS]
    return kinds[-1] in ("attribute", "global", "cell")


def _movement(tensor: Tensor) -> tuple[Any, ...]:
    """Return the steps from the memory of a tensor to it."""
    memory = tensor._memory
    assert memory is not None
    return tuple((step.op, step.arg) for step in steps_to(tensor.uop, memory.value))


# --------------------------------------------------------------------------------------------------
# Numbers that a captured function itself changes.


@dataclass(frozen=True, slots=True)
class NumberChanges:
    """The numbers and texts at `paths` that the function `name` changed in its capture,
    and what ran there: its `items`, the `data` of constants, and the result without its tensors.

    A replay would not change them. That does not matter for a mere counter, but a number that
    kernels depend on would stay the same. Two captures in succession show which it is: the numbers
    differ, so what ran differs, too, if it depends on them. The length of a list does not count:
    the function collects results in it.
    """

    name: str
    paths: Sequence[Path]
    items: Sequence[tuple[Any, Sequence[int]]]
    data: Sequence[bytes]
    result: Any

    def runs_like(self, other: NumberChanges) -> bool:
        """Whether the same ran in both captures."""
        return (
            self.items == other.items
            and self.data == other.data
            and equal_nests(self.result, other.result)
        )

    def warn(self) -> None:
        """Warn that the function runs at each call, and name the numbers."""
        names = ", ".join(dict.fromkeys(filter(None, map(words_of, self.paths))))
        warn_user(
            f"TinyJit: {self.name} changes {names or 'a number that it reaches'}, and its kernels "
            "depend on that, so its Python code is run at each call: keep the number in a tensor, "
            "or change it outside of the function"
        )
