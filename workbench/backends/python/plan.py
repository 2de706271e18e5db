"""The plan of a kernel on the PYTHON device: its loops, the steps of each statement, and the loop
that owns each storage.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from workbench.base.errors import CompileError
from workbench.base.sequences import common_prefix
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, leaves, split_gate

Path = tuple[int, ...]
"""The position of a loop: its number among its parent's children, outermost first."""


Access = tuple[UOp, tuple[UOp, ...], tuple[UOp, ...]]
_REACHES = (Ops.LOAD, Ops.STORE, Ops.ACCUMULATE)


@dataclass(frozen=True, slots=True)
class EmulatorStatement:
    """A STORE or ACCUMULATE. `steps`: the values that it needs, sources first, each with those that
    no later step needs; `lanes`: its lane axes; `accesses`: the access of each INDEX."""

    node: UOp
    steps: tuple[tuple[UOp, tuple[UOp, ...]], ...]
    lanes: tuple[UOp, ...]
    accesses: Mapping[UOp, Access]


@dataclass(frozen=True, slots=True)
class EmulatorLoop:
    """A loop, and the storage that each iteration has. `lanes` is the number of elements of one
    iteration; `independent` says that iterations may run together."""

    axis: UOp
    body: tuple[EmulatorLoop | EmulatorStatement, ...]
    storage: tuple[UOp, ...]
    lanes: int

    @property
    def independent(self) -> bool:
        """Whether the loop is a dimension of arrays: no step needs another one's result."""
        return self.axis.axis_kind.is_independent


@dataclass(frozen=True, slots=True)
class EmulatorPlan:
    """A whole kernel; all its loops share `storage`."""

    name: str
    body: tuple[EmulatorLoop | EmulatorStatement, ...]
    storage: tuple[UOp, ...]


def make_plan(block: UOp) -> EmulatorPlan:
    """Return the plan of a statement tree.

    Errors: CompileError for a node that is neither a loop nor a statement.
    """
    owned = _storage_by_owner(block)
    return EmulatorPlan(block.arg.name, _body(block.src, (), owned), owned.get((), ()))


def access(index: UOp) -> Access:
    """Return (PARAM or DEFINE, indexes, conditions) of an INDEX."""
    plain, gates = [], []
    for part in index.indexes:
        part, gate = split_gate(part)
        while gate is not None:
            gates.append(gate)
            part, gate = split_gate(part)
        plain.append(part)
    return index.param, tuple(plain), tuple(gates)


def _body(
    children: Sequence[UOp], path: Path, owned: Mapping[Path, tuple[UOp, ...]]
) -> tuple[EmulatorLoop | EmulatorStatement, ...]:
    body: list[EmulatorLoop | EmulatorStatement] = []
    for place, child in enumerate(children):
        if child.op is Ops.LOOP:
            inside = (*path, place)
            parts = _body(child.src[1:], inside, owned)
            storage = owned.get(inside, ())
            body.append(EmulatorLoop(child.src[0], parts, storage, _lanes(parts, storage)))
        elif child.op in (Ops.STORE, Ops.ACCUMULATE):
            body.append(_statement(child))
        elif child.op not in (Ops.DEFINE, Ops.BARRIER):
            raise CompileError("emulator", f"{child.op.name} is not a statement", child)
    return tuple(body)


def _lanes(body: Sequence[EmulatorLoop | EmulatorStatement], storage: Sequence[UOp]) -> int:
    sizes = [math.prod(define.memory_shape) for define in storage]
    for part in body:
        if isinstance(part, EmulatorStatement):
            sizes.append(math.prod(axis.extent for axis in part.lanes))
        else:
            sizes.append(part.lanes * (part.axis.extent if part.independent else 1))
    return max(1, *sizes) if sizes else 1


def _statement(node: UOp) -> EmulatorStatement:
    order = _values(node)
    last = {source: i for i, value in enumerate(order) for source in _needs(value)}
    for operand in _needs(node):
        last.pop(operand, None)
    unneeded = defaultdict(list)
    for value, i in last.items():
        unneeded[i].append(value)
    steps = tuple((value, tuple(unneeded[i])) for i, value in enumerate(order))
    ranges = [r for v in order for r in (v, *_closed(v)) if r.op is Ops.RANGE]
    lanes = dict.fromkeys(r for r in ranges if r.axis_kind.is_lane)
    accesses = {v.src[0]: access(v.src[0]) for v in (*order, node) if v.op in _REACHES}
    return EmulatorStatement(node, steps, tuple(lanes), accesses)


def _values(statement: UOp) -> list[UOp]:
    """Return the values that a statement needs, sources first; addresses are not values."""
    visited: dict[UOp, None] = {}
    stack = [(need, False) for need in reversed(_needs(statement))]
    while stack:
        node, ready = stack.pop()
        if node in visited:
            continue
        if ready:
            visited[node] = None
        else:
            stack.append((node, True))
            stack.extend((need, False) for need in reversed(_needs(node)))
    return list(visited)


def _needs(node: UOp) -> tuple[UOp, ...]:
    """Return the values that a node is computed from."""
    if node.op in _REACHES:
        _, indexes, gates = access(node.src[0])
        return (*indexes, *gates, *node.src[1:])
    if node.op is Ops.REDUCE:
        return node.src[:1]
    return () if node.op is Ops.RANGE else node.src


def _closed(node: UOp) -> tuple[UOp, ...]:
    return node.src[1:] if node.op is Ops.REDUCE else ()


def _storage_by_owner(block: UOp) -> dict[Path, tuple[UOp, ...]]:
    """Return the storage of each loop: a DEFINE belongs to the innermost loop around all its
    uses."""
    owner: dict[UOp, Path] = {}
    for path, statement in _statements(block.src, ()):
        for define in leaves([statement], Ops.DEFINE):
            owner[define] = common_prefix(owner.get(define, path), path)
    owned: dict[Path, tuple[UOp, ...]] = {}
    for define, path in owner.items():
        owned[path] = (*owned.get(path, ()), define)
    return owned


def _statements(children: Sequence[UOp], path: Path) -> Iterator[tuple[Path, UOp]]:
    for place, child in enumerate(children):
        if child.op is Ops.LOOP:
            yield from _statements(child.src[1:], (*path, place))
        elif child.op not in (Ops.DEFINE, Ops.BARRIER):
            yield path, child
