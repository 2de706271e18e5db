"""UOp: the one node type of every IR level. Immutable, interned, compared by identity.

Equal nodes are one object, weakly held, so a graph is a DAG and "same expression" is `is`.
Everything else about a node (shape, bounds, open ranges) is derived from its sources, on
demand and without recursion: graphs are thousands of nodes deep. Source of the idea: hash
consing (Ershov 1958); one node type for all levels is tinygrad's.

Sections: Open ranges; UOp; Functions of a whole kernel, memoised as long as the kernel lives,
since opts, menus and searches call them again and again.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, wraps
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from workbench.base.dtypes import Const, DType, dtypes
from workbench.base.errors import DeviceError
from workbench.base.interrupts import free_lock
from workbench.base.trace import SCOPES, created, derived_from, observer, replaced
from workbench.ir.node.bounds import bounds_of
from workbench.ir.node.operators import Operators
from workbench.ir.node.ops import COMPARE, ELEMENTWISE, AxisType, Ops
from workbench.ir.node.views import Space, Views, shape_of
from workbench.pickles import pickled

# --------------------------------------------------------------------------------------------------
# Open ranges: the RANGEs that a value depends on, and the nodes that close them.
#
# A RANGE is open in all nodes above it until a REDUCE, END or STAGE closes it. The ranges that a
# node closes are a list among its sources; a STAGE closes the ranges of its indexes.

Node = Any  # a UOp: the functions of this section stand before the class

_NONE: frozenset[Node] = frozenset()


def ranges_of(node: Node) -> frozenset[Node]:
    """Return the open ranges of `node`; those of its sources are known."""
    if node.op is Ops.RANGE:
        return frozenset((node,))
    if not node.src:
        return _NONE
    if node.op is Ops.WMMA:
        return _of_product(node)
    if node.op is Ops.EXCHANGE:
        rows, *axes = node.src  # no axes at the linear level
        return rows.ranges.difference(axes[1:]).union(axes[:1])  # type: ignore[no-any-return]
    if node.op in (Ops.REDUCE, Ops.END, Ops.STAGE):
        return node.src[0].ranges.difference(closed(node))  # type: ignore[no-any-return]
    if len(node.src) == 1:
        return node.src[0]._ranges  # type: ignore[no-any-return]
    return _NONE.union(*[s._ranges for s in node.src])


def _of_product(node: Node) -> frozenset[Node]:
    """A WMMA closes the elements that a lane holds of its operands, and opens those that it holds
    of the result; at the linear level, where they are lanes, it adds a third operand."""
    a, b, *elements = node.src
    if node.dtype.count > 1:
        return _NONE.union(*[s.ranges for s in node.src])
    operands: frozenset[Node] = a.ranges | b.ranges
    return operands.difference(elements[1:]).union(elements[:1])


def closed(node: Node) -> tuple[Node, ...]:
    """Return the ranges that a REDUCE, END or STAGE closes, in the order they are listed."""
    if node.op is Ops.STAGE:
        ranges = {r: None for s in node.src[1:] for r in sorted(s.ranges, key=_name)}
        return tuple(ranges)
    return node.src[1:]  # type: ignore[no-any-return]


def _name(node: Node) -> str:
    return str(node.axis_name)


def listed_sources(node: Node, src: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return sources for `node` in which the list of a REDUCE or END holds RANGEs only: an
    expression in it stands for all ranges of the expression, each once."""
    if node.op not in (Ops.REDUCE, Ops.END):
        return src
    listed: dict[Node, None] = {}
    for source in src[1:]:
        if source.op is Ops.RANGE:
            listed[source] = None
        else:
            listed.update(dict.fromkeys(sorted(source.ranges, key=_name)))
    return (src[0], *listed)


# --------------------------------------------------------------------------------------------------
# UOp.

WrittenOpt = tuple[str, str | int | None, str | int | None]
"""An opt that a user wrote in tensor code: its kind, axis and argument."""


@pickled
class KernelInfo(NamedTuple):
    """The arg of a kernel's SINK (and BLOCK): its name, and `order`, the names of its loop axes,
    outermost first, which the graph does not determine. `work_groups`: whether opts may make
    work-groups of its axes (False after NOLOCALS). `opts` are the opts in the user's code; None:
    they are still to be chosen."""

    name: str
    order: tuple[str, ...]
    work_groups: bool = True
    opts: tuple[WrittenOpt, ...] | None = None


@pickled
class Storage(NamedTuple):
    """Storage that lowering gives a REDUCE or STAGE. `shape` has its dimensions; with several
    `buffers`, which are filled in turn, the first dimension counts them."""

    name: str
    shape: tuple[int, ...]
    space: Space
    buffers: int = 1


_nodes: WeakValueDictionary[tuple[Any, ...], UOp] = WeakValueDictionary()
_entries = _nodes.data  # type: ignore[attr-defined]  # its types lack it
"""Weak references to the nodes: most nodes are found here, without a call of a Python function."""
_lock = free_lock()
_UNSET: Any = object()


@pickled
class UOp(Views, Operators):
    """A node: `op` applied to `src`, giving a `dtype`; `arg` has its parameters that are not nodes.

    `UOp(...)` returns the existing node where an equal one is alive. Constants are keyed by
    dtype and bit pattern, so -0.0 is not 0.0 and NaN equals itself.
    """

    __slots__ = (
        "__weakref__",
        "_below",
        "_bounds",
        "_normal_by",
        "_of_axes",
        "_ranges",
        "_shape",
        "arg",
        "dtype",
        "op",
        "src",
    )

    op: Ops
    dtype: DType
    src: tuple[UOp, ...]
    arg: Any
    _shape: Any
    _bounds: Any
    _ranges: Any
    _of_axes: Any
    _below: Any
    """Of a SINK: all nodes below it, sources first."""
    _normal_by: Any
    """The last table of rules of which none matches at this node or below it."""

    def __new__(cls, op: Ops, dtype: DType, src: tuple[UOp, ...] = (), arg: Any = None) -> UOp:
        if op in _CONSTANTS:
            key = (op, dtype, src, _const_key(op, dtype, arg), None)
        else:  # the class too: a KernelInfo equals a plain tuple, and True equals 1
            key = (op, dtype, src, arg, arg.__class__)
        entry = _entries.get(key)
        node = None if entry is None else entry()
        if node is None:
            with _lock:
                node = _nodes.get(key)
                if node is None:
                    node = object.__new__(cls)
                    fill = object.__setattr__
                    fill(node, "op", op)
                    fill(node, "dtype", dtype)
                    fill(node, "src", src)
                    fill(node, "arg", dtype.const(arg) if op is Ops.CONST else arg)
                    fill(node, "_shape", _UNSET)
                    fill(node, "_bounds", _UNSET)
                    fill(node, "_ranges", _UNSET)
                    fill(node, "_of_axes", _UNSET)
                    fill(node, "_below", _UNSET)
                    fill(node, "_normal_by", None)
                    _nodes[key] = node
        if SCOPES:
            created(node)
        return node

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"UOp is immutable: use .replace({name}=...)")

    def __reduce__(self) -> tuple[Any, ...]:
        if self.op is Ops.BUFFER:  # a copy in another process would be other memory
            raise DeviceError(
                "cannot pickle a BUFFER by itself",
                "it names memory of this process",
                "pickle the Tensor or the Kernel: they take their data along",
            )
        return UOp, (self.op, self.dtype, self.src, self.arg)

    def __copy__(self) -> UOp:
        return self

    def __deepcopy__(self, memo: object) -> UOp:
        return self

    def __repr__(self) -> str:
        inner = "" if self.arg is None else f" {self.arg!r}"
        return f"<{self.op.name} {self.dtype}{inner} src={len(self.src)}>"

    def replace(self, **fields: Any) -> UOp:
        """Return this node with another op, dtype, src or arg."""
        current = {"op": self.op, "dtype": self.dtype, "src": self.src, "arg": self.arg}
        return UOp(**(current | fields))

    # properties that are derived lazily, without recursion

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a tensor-level value; () for constants and kernel-level scalars."""
        if self._shape is _UNSET:
            derive(self, "_shape", shape_of)
        return self._shape  # type: ignore[no-any-return]

    @property
    def bounds(self) -> tuple[Const, Const]:
        """(least, greatest) value the node can take, apart from NaN."""
        if self._bounds is _UNSET:
            derive(self, "_bounds", bounds_of)
        return self._bounds  # type: ignore[no-any-return]

    @property
    def vmin(self) -> Const:
        """The least value the node can take."""
        return self.bounds[0]

    @property
    def vmax(self) -> Const:
        """The greatest value the node can take."""
        return self.bounds[1]

    @property
    def is_of_axes(self) -> bool:
        """Whether the value depends on constants and RANGEs alone: a pass may compute it."""
        if self._of_axes is _UNSET:
            derive(self, "_of_axes", _is_of_axes)
        return self._of_axes  # type: ignore[no-any-return]

    @property
    def ranges(self) -> frozenset[UOp]:
        """The open ranges: RANGEs that the value depends on, and that neither it nor a node below
        it closes."""
        if self._ranges is _UNSET:
            derive(self, "_ranges", ranges_of)
        return self._ranges  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """Number of elements of a tensor-level value."""
        return math.prod(self.shape)

    # building

    @staticmethod
    def const(dtype: DType, value: Const) -> UOp:
        """Return the scalar constant `value`, rounded to `dtype`."""
        return UOp(Ops.CONST, dtype, (), value)

    @staticmethod
    def index(value: int) -> UOp:
        """Return the index constant `value`."""
        return UOp(Ops.CONST, dtypes.index, (), value)

    @staticmethod
    def range(size: int, name: str, kind: AxisType) -> UOp:
        """Return the axis `name` that counts 0 .. size-1."""
        return UOp(Ops.RANGE, dtypes.index, (UOp.index(size),), (name, kind))

    @staticmethod
    def sink(*src: UOp, arg: KernelInfo | None = None) -> UOp:
        """Return the root of a graph: a kernel's has its KernelInfo."""
        return UOp(Ops.SINK, dtypes.void, src, arg)

    def like(self, value: Const) -> UOp:
        """Return a constant of this node's dtype."""
        return UOp(Ops.CONST, self.dtype, (), value)

    def alu(self, op: Ops, *others: UOp) -> UOp:
        """Return `op` applied to this node and others; a comparison gives bool."""
        dtype = self.dtype
        if op in COMPARE:
            dtype = dtypes.bool.vec(dtype.count)
        elif op is Ops.WHERE:
            dtype = others[0].dtype
        return UOp(op, dtype, (self, *others))

    def cast(self, dtype: DType) -> UOp:
        """Return the value as `dtype`: a float becomes an integer truncated and clamped, NaN 0."""
        return self if self.dtype is dtype else UOp(Ops.CAST, dtype, (self,))

    def bitcast(self, dtype: DType) -> UOp:
        """Return the same bits, read as `dtype` of the same width."""
        return self if self.dtype is dtype else UOp(Ops.BITCAST, dtype, (self,))

    def where(self, yes: UOp, no: UOp) -> UOp:
        """Return `yes` where this bool holds, else `no`."""
        return UOp(Ops.WHERE, yes.dtype, (self, yes, no))

    def reduce(self, *ranges: UOp, arg: Ops = Ops.ADD) -> UOp:
        """Return this combined over `ranges` by the op `arg`; itself where there are no ranges."""
        return UOp(Ops.REDUCE, self.dtype, (self, *ranges), arg) if ranges else self

    # walking

    def toposort(self, gate: Callable[[UOp], bool] | None = None) -> dict[UOp, None]:
        """Return this node and all nodes below it, sources first, as an ordered set.

        Where `gate(node)` is False, the sources of the node are skipped. The nodes of a SINK are
        stored with it: opts, menus and passes walk the same kernel dozens of times.
        """
        if self.op is not Ops.SINK or gate is not None:
            return self._walked(gate)
        if self._below is _UNSET:
            nodes = self._walked(None)
            del nodes[self]  # it must not keep itself alive
            object.__setattr__(self, "_below", nodes)
        return {**self._below, self: None}

    def _walked(self, gate: Callable[[UOp], bool] | None) -> dict[UOp, None]:
        visited: dict[UOp, None] = {}
        stack: list[UOp | None] = [self]
        pop, push = stack.pop, stack.append
        while stack:
            node = pop()
            if node is None:  # the sources of the node below it have been visited
                visited[pop()] = None  # type: ignore[index]
            elif node not in visited:
                if not node.src or (gate is not None and not gate(node)):
                    visited[node] = None
                    continue
                push(node)
                push(None)
                for source in reversed(node.src):
                    if source not in visited:
                        push(source)
        return visited

    def substitute(self, changes: Mapping[UOp, UOp]) -> UOp:
        """Return the graph with each key replaced by its value, everywhere, once.

        The values themselves are not searched again. Where a RANGE in the list of a
        REDUCE or END is replaced by an expression, the list gets all ranges of the expression
        instead.
        """
        if not changes:
            return self
        substitutes: dict[UOp, UOp] = dict(changes)
        graph = self.toposort(lambda n: n not in changes)
        with derived_from():
            for node in graph:
                if node not in substitutes:
                    substitutes[node] = node.rebuild(tuple([substitutes[s] for s in node.src]))
        if observer() is not None:
            replaced(substitutes)
            _derive_indexes(changes, graph)
        return substitutes[self]

    def rebuild(self, src: tuple[UOp, ...]) -> UOp:
        """Return this node over other sources (see `substitute` for lists of ranges)."""
        if src == self.src:
            return self
        return UOp(self.op, self.dtype, listed_sources(self, src), self.arg)

    @property
    def is_const(self) -> bool:
        """Whether this is a scalar constant."""
        return self.op is Ops.CONST

    @property
    def is_elementwise(self) -> bool:
        """Whether each element of the result depends on the same element of the sources only."""
        return self.op in ELEMENTWISE

    @property
    def extent(self) -> int:
        """The number of steps of a RANGE."""
        return int(self.src[0].vmax)


_CONSTANTS = (Ops.CONST, Ops.LANES)


def _const_key(op: Ops, dtype: DType, arg: Any) -> Any:
    if op is Ops.LANES:
        return tuple([struct.pack("<d", v) for v in arg]) if dtype.is_float else arg
    value = dtype.const(arg)
    return struct.pack("<d", value) if dtype.is_float else value


def mark_normal(node: UOp, rules: object) -> None:
    """Record that no rule of the table `rules` matches at this node, nor at any below it."""
    object.__setattr__(node, "_normal_by", rules)


def derive(node: UOp, slot: str, rule: Callable[[UOp], Any]) -> None:
    """Fill `slot` of `node`, and before it of all nodes below that lack it, without recursion."""
    stack = [node]
    while stack:
        top = stack[-1]
        missing = [s for s in top.src if getattr(s, slot) is _UNSET]
        if missing:
            stack += missing
            continue
        stack.pop()
        if getattr(top, slot) is _UNSET:
            object.__setattr__(top, slot, rule(top))


def _is_of_axes(node: UOp) -> bool:
    if node.op in (Ops.CONST, Ops.RANGE, Ops.LANES, Ops.SPECIAL):
        return True
    is_computed = node.is_elementwise or node.op in (Ops.BROADCAST, Ops.STACK)
    return is_computed and all(s._of_axes for s in node.src)


def _derive_indexes(changes: Mapping[UOp, UOp], graph: Mapping[UOp, None]) -> None:
    """Record that the new nodes of an index come from the index that they replace in a graph: opts
    write such sums without a rule."""
    for source, value in changes.items():
        if value.dtype.kind == "index":
            inner = value.toposort(lambda n: n not in graph)
            with derived_from(source):
                for node in inner:
                    created(node)


@cache
def invalid() -> UOp:
    """Return the INVALID index."""
    return UOp(Ops.INVALID, dtypes.index)


def gated(index: UOp, valid: UOp) -> UOp:
    """Return `index` where `valid`, else INVALID."""
    if valid.is_const:
        return index if valid.arg else invalid()
    return valid.where(index, invalid())


def split_gate(index: UOp) -> tuple[UOp, UOp | None]:
    """Return (index, condition) of a result of `gated`; the condition is None where the index is
    always valid."""
    if index.op is Ops.WHERE and index.src[2].op is Ops.INVALID:
        return index.src[1], index.src[0]
    return index, None


def leaves(roots: Iterable[UOp], op: Ops) -> Iterator[UOp]:
    """Yield every node of `op` under `roots`, each once."""
    visited: set[UOp] = set()
    for root in roots:
        for node in root.toposort():
            if node.op is op and node not in visited:
                visited.add(node)
                yield node


# --------------------------------------------------------------------------------------------------
# Functions of a whole kernel, memoised as long as the kernel lives, since opts, menus and searches
# call them again and again.

T = TypeVar("T")


def memoised(derive: Callable[[UOp], T]) -> Callable[[UOp], T]:
    """Return `derive`, memoised by node. Callers share its result and must not change it. The
    result must not refer to the node itself: neither would ever be freed."""
    cache: WeakKeyDictionary[UOp, T] = WeakKeyDictionary()

    @wraps(derive)
    def derived(node: UOp) -> T:
        if node not in cache:
            cache[node] = derive(node)
        return cache[node]

    return derived
