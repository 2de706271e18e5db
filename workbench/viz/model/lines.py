"""The user's source lines of a value, and the user's names for it, within one exploration.

A tensor has the lines and sources that it was derived from (`source.Derivation`). A node that comes
from several lines has all of them, first those that ran in the cell of the exploration; a node of a
rewrite has the lines of the node that it replaces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os.path import basename
from types import MappingProxyType
from typing import NamedTuple

from workbench.base.source import (
    Calls,
    Derivation,
    ModuleCall,
    SourceLine,
    derivations_below,
    line_for_viewer,
    nodes_between,
)
from workbench.base.trace import PassRecord
from workbench.ir.gradient.occurrences import is_alias, without_aliases
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.schedule import RANGEIFY, SIMPLIFY_TENSOR
from workbench.tensor.autograd.lines import GradientDerivation
from workbench.viz.model.ancestry import Ancestry
from workbench.viz.model.phases import WEIGHTS, in_order, phases_of
from workbench.viz.names import ModulePaths, Names, module_call


class Viewer(NamedTuple):
    """The user's code around an exploration: the `calls` that led to it, the `names` of nodes, the
    paths of objects (`modules`) in that code, and the `line` that explores a model (None: tensors
    are explored, which have lines of their own). `inputs` are those of a model or a function, by
    name; `constant` are the names of those whose values its graph depends on. `model_file` is the
    path of the file that the model was read from ("": there is none)."""

    calls: Calls = ()
    names: Names = MappingProxyType({})
    modules: ModulePaths = MappingProxyType({})
    line: SourceLine | None = None
    inputs: tuple[tuple[str, UOp], ...] = ()
    constant: frozenset[str] = frozenset()
    model_file: str = ""


NOBODY = Viewer()


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """The origin of loaded tensors, in `words` ("": this process made the tensors), with the
    `lines`, `modules` and `phases` that their nodes had there, and the passes of `gradients`."""

    words: str = ""
    lines: Mapping[UOp, Sequence[SourceLine]] = field(default_factory=dict)
    modules: Mapping[UOp, Sequence[ModuleCall]] = field(default_factory=dict)
    gradients: Sequence[PassRecord] = ()
    phases: Mapping[UOp, str] = field(default_factory=dict)

    @property
    def keys(self) -> frozenset[UOp]:
        """The keys of the random numbers that weights were made of."""
        return frozenset(node for node, phase in self.phases.items() if phase == WEIGHTS)


HERE = FileOrigin()


class UserLines:
    """The user's lines and names of nodes, as a `viewer` sees them: of the nodes under `roots`,
    which have `derivations`, and of those that the `passes` of a schedule made of them. Loaded
    nodes have the lines, modules and phases of their `file`; `written` are the derivations of
    values that are written to memory, `keys` those of the random numbers of weights."""

    def __init__(
        self,
        roots: Iterable[UOp] = (),
        derivations: Iterable[Derivation | None] = (),
        viewer: Viewer = NOBODY,
        passes: Sequence[PassRecord] = (),
        file: FileOrigin = HERE,
        written: Iterable[Derivation] = (),
        keys: Iterable[UOp] = (),
    ):
        self.roots = tuple(roots)
        self.on = ""
        """The device that kernels are for; "" if it is the tensors'."""
        self._passes = passes
        self._names = dict(viewer.names)
        self._own: dict[UOp, dict[tuple[SourceLine, ...], SourceLine]] = {
            node: {(line, *line.inner): line for line in lines}
            for node, lines in file.lines.items()
        }
        """The lines of each node; a key is the line with the lines that it called."""
        self._modules = {n: dict.fromkeys(calls) for n, calls in file.modules.items()}
        self._phases = dict(file.phases)
        ends: set[UOp] = set()
        pieces = []
        listed = [d for d in derivations if d is not None]
        phases = phases_of(listed, list(written))
        # A derivation whose node is gone is below no root.
        alive = [(d, node) for d in derivations_below(listed) if (node := d.node) is not None]
        values = without_aliases([node for _, node in alive])
        for (derivation, _), node in zip(alive, values, strict=True):
            nodes = nodes_between(node, ends)
            call = module_call(derivation, viewer.modules, viewer.calls)
            # the line that asks for a gradient says less than the line of its forward
            is_asked_for = isinstance(derivation, GradientDerivation)
            pieces.append((derivation.calls, call, nodes, is_asked_for))
            ends.add(node)
            phase = phases[derivation]
            for one in nodes:
                self._phases[one] = in_order([phase, self._phases.get(one, phase)])[0]
        self._phases.update(dict.fromkeys(keys, WEIGHTS))
        pieces.sort(key=lambda piece: (piece[3], not _is_same_run(piece[0], viewer.calls)))
        for calls, call, nodes, _ in pieces:
            if call is not None:
                for node in nodes:
                    self._modules.setdefault(node, {})[call] = None
            line = line_for_viewer(calls, viewer.calls)
            if line is not None:
                for node in nodes:
                    own_lines = self._own.setdefault(node, {})
                    own_lines.setdefault((line, *line.inner), line)

    def of(self, node: UOp) -> tuple[SourceLine, ...]:
        """Return the lines of `node`; the line to show comes first."""
        lines: dict[tuple[SourceLine, ...], SourceLine] = {}
        for one in self._ancestors(node):
            for chain, line in self._own.get(one, {}).items():
                lines.setdefault(chain, line)
        return tuple(lines.values())

    def modules(self, node: UOp) -> tuple[ModuleCall, ...]:
        """Return the modules whose methods made `node`, or the nodes that it replaces."""
        own = (self._modules.get(one, {}) for one in self._ancestors(node))
        return tuple(dict.fromkeys(call for calls in own for call in calls))

    def own_modules(self, node: UOp) -> Iterable[ModuleCall]:
        """Return the modules of `node` itself, without those of a node that it replaces."""
        return self._modules.get(node, {})

    def _ancestors(self, node: UOp) -> Iterator[UOp]:
        """Yield `node` and the nodes that it replaces, the one that was replaced last first."""
        node = _value(node)
        ancestors, visited = [node], {node}
        for one in ancestors:  # it grows: breadth first
            yield one
            for cause in self._ancestry.causes(one):
                if cause.source not in visited:
                    visited.add(cause.source)
                    ancestors.append(cause.source)

    def own(self, node: UOp) -> Iterable[SourceLine]:
        """Return the lines of `node` itself, without those of a node that it replaces."""
        return self._own.get(node, {}).values()

    def first(self, node: UOp) -> SourceLine | None:
        """Return the line of `node` that is shown; None if it has none."""
        return next(iter(self.of(node)), None)

    def phase(self, node: UOp) -> str:
        """Return the phase of `node`, or else of the nearest node with a phase that it replaces; ""
        if there is none."""
        return next((p for n in self._ancestors(node) if (p := self.own_phase(n))), "")

    def own_phase(self, node: UOp) -> str:
        """Return the phase of `node` itself, without that of a node that it replaces."""
        return self._phases.get(node, "")

    def nearest(self, node: UOp) -> SourceLine | None:
        """Return the line of `node` that is shown, or else that of the nearest node below it; None
        if no node has one."""
        queue, visited = deque([node]), {node}
        while queue:
            below = queue.popleft()
            line = self.first(below)
            if line is not None:
                return line
            if below.op is not Ops.BUFFER:
                queue.extend(s for s in below.src if s not in visited)
                visited.update(below.src)
        return None

    def names(self, node: UOp) -> tuple[str, ...]:
        """Return the user's names of `node`, or of the nodes that it replaces; the name to show
        comes first."""
        visited: set[UOp] = set()
        node = _value(node)
        while node not in self._names and node not in visited:
            visited.add(node)
            node = self._ancestry.replaced.get(node, node)
        return self._names.get(node, ())

    def add_names(self, names: Names) -> None:
        """Add names of nodes that have none."""
        self._names = {**names, **self._names}

    def name(self, node: UOp) -> str:
        """Return the user's name of `node` that is shown; "" if it has none."""
        return next(iter(self.names(node)), "")

    @cached_property
    def _ancestry(self) -> Ancestry:
        ancestry = Ancestry()
        for record in _tensor_passes(self._passes):
            ancestry.add(record)
        return ancestry


def _value(node: UOp) -> UOp:
    """Return `node`, or for an alias the node that an expression has in its place."""
    return without_aliases([node])[0] if is_alias(node) else node


def with_inner(lines: Iterable[SourceLine]) -> tuple[SourceLine, ...]:
    """Return lines in the order of the code, then the lines of functions that they called."""
    all_lines = list(lines)
    outer = sorted(set(all_lines), key=_place)
    inner = sorted({i for line in all_lines for i in line.inner} - {*outer}, key=_place)
    return (*outer, *inner)


def _place(line: SourceLine) -> tuple[str, int]:
    return basename(line.name), line.line


def _is_same_run(calls: Calls, viewer: Calls) -> bool:
    """Whether calls belong to the same run of a cell or script as `viewer`."""
    return bool(calls and viewer) and calls[-1][0] is viewer[-1][0]


def _tensor_passes(records: Iterable[PassRecord]) -> Iterator[PassRecord]:
    """Yield the passes over tensor graphs, those of each device."""
    is_tensor = True
    for record in records:
        if record.name in (SIMPLIFY_TENSOR.name, RANGEIFY.name):
            is_tensor = record.name == SIMPLIFY_TENSOR.name
        if is_tensor and record.parent is None:
            yield record
