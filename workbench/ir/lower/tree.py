"""The statement tree: which loops, in which order, with what storage.

place.py puts the statements into loops. Then a value is a register, or an array over exactly
those loops whose instance differs between the places that make it and the places that read it.
"""

from __future__ import annotations

import math

from workbench.dtypes import dtypes
from workbench.errors import CompileError
from workbench.ir.axis import AxisType
from workbench.ir.identity import identity
from workbench.ir.loops import Statement, statements
from workbench.ir.lower.place import Item, Loop, place
from workbench.ir.lower.vectors import Vectors, choose_vectors
from workbench.ir.ops import Ops
from workbench.ir.uop import KernelInfo, Storage, UOp
from workbench.target import Target
from workbench.trace import became

RUNNING = "running"
"""The arg of a LOAD that reads an accumulator on the way: not the node that reads it finished."""


def build_tree(sink: UOp, target: Target) -> UOp:
    """Return the BLOCK of a kernel.

    Errors: CompileError when arrays and stages need more than `target.scratch_bytes`.
    """
    found = statements(sink)
    root, items = place(found)
    return _Emission(sink, found, items, root, target).block()


class _Emission:
    """Turns placed items into statements: decides storage, then writes the tree as UOps."""

    def __init__(
        self,
        sink: UOp,
        found: dict[UOp, Statement],
        items: list[Item],
        root: Loop,
        target: Target,
    ):
        self.info: KernelInfo = sink.arg
        self.found, self.items, self.root, self.target = found, items, root, target
        self.vectors: Vectors = choose_vectors(found, target)
        self.arrays: dict[UOp, tuple[UOp, ...]] = {}
        self.defines: dict[UOp, UOp] = {}
        self.registers: dict[UOp, UOp] = {}
        self.held_lanes: dict[UOp, tuple[UOp, ...]] = {}

    def block(self) -> UOp:
        for number, node in enumerate(n for n in self.found if n.op is not Ops.STORE):
            self._storage(node, number)
        self._check_budget()
        for item in self.items:
            self._around_own_loops(item)
        children = self._children(self.root)
        return UOp(Ops.BLOCK, dtypes.void, self._sliced(children), self.info)

    # storage

    def _storage(self, node: UOp, number: int) -> None:
        statement = self.found[node]
        places = [i for i in self.items if i.statement.node is node]
        readers = [i for i in self.items if node in i.statement.reads and not i.init]
        paths = [i.place.path() for i in (*places, *readers)]
        inside = self._inside_own(statement, places[-1].place.path())
        self.arrays[node] = array = tuple(
            axis
            for axis in statement.pre
            if axis in inside or len({p[axis] for p in paths if axis in p}) > 1
        )
        extents = [a.extent for a in array]
        if node.op is Ops.STAGE:
            name, logical = node.arg
            shape = (*extents, *(r.extent for r in statement.lanes), *logical)
            define = Storage(name, shape, "scratch")
        else:
            vector = self.vectors.axes[
                node
            ]  # last, so that arrays keep its elements together
            lanes = tuple(sorted(statement.lanes, key=lambda r: r is vector))
            lanes += self.vectors.held(statement)
            self.held_lanes[node] = lanes
            shape = (*extents, *(r.extent for r in lanes))
            define = Storage(f"acc{number}", shape, "scratch" if array else "register")
        self.defines[node] = UOp(Ops.DEFINE, node.dtype, (), define)

    def _inside_own(self, statement: Statement, path: dict[UOp, Loop]) -> set[UOp]:
        """Return the loops round a reduction that lie inside its outermost own loop."""
        if statement.node.op is not Ops.REDUCE:
            return set()
        order = list(path)
        first = min(order.index(r) for r in statement.own)
        return {a for a in order[first:] if a not in statement.own}

    def _check_budget(self) -> None:
        """Refuse arrays and stages that together are more than the device gives a kernel."""
        sizes = {
            node: node.dtype.itemsize * math.prod(define.arg.shape)
            for node, define in self.defines.items()
            if define.arg.space == "scratch"
        }
        total, limit = sum(sizes.values()), self.target.scratch_bytes
        if total <= limit:
            return
        largest = max(sizes, key=lambda node: sizes[node])
        name, size = self.defines[largest].arg.name, sizes[largest]
        split = ", ".join(a.axis_name for a in self.arrays[largest])
        others = f", {total:,} with the other arrays" if total > size else ""
        raise CompileError(
            "statement-tree",
            f"{name} is an array of {size:,} bytes over {split or 'its own axes'}{others}; "
            f"this device gives a kernel {limit:,} bytes",
            hint=f"another loop order, with {split} outside of what reads it"
            if split
            else "a smaller tile",
        )

    def _around_own_loops(self, item: Item) -> None:
        """Where an array accumulator's innermost loops are its own, keep it in registers there:
        load it before those loops, store it after."""
        node = item.statement.node
        if item.init or node.op is not Ops.REDUCE or not self.arrays[node]:
            return
        loop, around = item.home, None
        while loop is not None and loop.axis in item.statement.own:
            loop, around = loop.parent, loop
        if around is None:
            return
        assert loop is not None
        lanes = self.held_lanes[node]
        name = self.defines[node].arg.name + "r"
        arg = Storage(name, tuple(r.extent for r in lanes), "register")
        self.registers[node] = register = UOp(Ops.DEFINE, node.dtype, (), arg)
        inside, outside = _at(register, lanes), self._element(node)
        vector = self.vectors.axis(node)
        before = _store(inside, _load(outside, RUNNING), vector)
        after = _store(outside, _load(inside), vector)
        became({node: before})
        became({node: after})
        at = loop.body.index(around)
        loop.body[at : at + 1] = [before, around, after]

    # statements

    def _children(self, loop: Loop) -> tuple[UOp, ...]:
        out = []
        for child in loop.body:
            if isinstance(child, Loop):
                assert child.axis is not None
                out.append(
                    UOp(Ops.LOOP, dtypes.void, (child.axis, *self._children(child)))
                )
            elif isinstance(child, Item):
                statement = self._statement(child)
                out.append(statement)
                became({child.statement.node: statement})
            else:
                out.append(child)
        return tuple(out)

    def _statement(self, item: Item) -> UOp:
        node = item.statement.node
        vector = self.vectors.axis(node)
        if item.init:
            return _store(self._element(node), identity(node.arg, node.dtype), vector)
        here = item.place.path()
        reads = {
            n: self._read(n, here) for n in item.statement.reads if n.op is Ops.REDUCE
        }
        stages = [n for n in item.statement.reads if n.op is Ops.STAGE]
        value = node.src[1] if node.op is Ops.STORE else node.src[0]
        value = self._stage_reads(value, stages, here, reads)
        if node.op is Ops.STORE:
            return _store(
                self._stage_reads(node.src[0], stages, here, reads), value, vector
            )
        if node.op is Ops.REDUCE:
            register = self.registers.get(node)
            into = (
                self._element(node)
                if register is None
                else _at(register, self.held_lanes[node])
            )
            return UOp(Ops.ACCUMULATE, dtypes.void, (into, value), (node.arg, vector))
        lanes = item.statement.lanes
        indexes = tuple(self._stage_reads(s, stages, here, reads) for s in node.src[1:])
        return _store(
            _at(self.defines[node], (*self.arrays[node], *lanes, *indexes)),
            value,
            vector,
        )

    def _element(self, node: UOp) -> UOp:
        return _at(self.defines[node], (*self.arrays[node], *self.held_lanes[node]))

    def _read(self, node: UOp, here: dict[UOp, Loop]) -> UOp:
        """Return the finished value of a reduction; lanes it still holds are combined."""
        zero = UOp.index(0)
        array = tuple(a if a in here else zero for a in self.arrays[node])
        value = _load(_at(self.defines[node], (*array, *self.held_lanes[node])))
        held = self.vectors.held(self.found[node])
        return UOp(Ops.REDUCE, node.dtype, (value, *held), node.arg) if held else value

    def _stage_reads(
        self,
        value: UOp,
        stages: list[UOp],
        here: dict[UOp, Loop],
        reads: dict[UOp, UOp],
    ) -> UOp:
        """Point every value of another statement at that statement's storage."""
        changes = dict(reads)
        stop = set(stages) | set(reads)
        for node in value.toposort(lambda n: n not in stop):
            if node.op is Ops.INDEX and node.src[0] in stop:
                stage = node.src[0]
                zero = UOp.index(0)
                array = tuple(a if a in here else zero for a in self.arrays[stage])
                lanes = self.found[stage].lanes
                inner = tuple(s.substitute(changes) for s in node.src[1:])
                changes[node] = _at(self.defines[stage], (*array, *lanes, *inner))
        return value.substitute(changes)

    def _sliced(self, children: tuple[UOp, ...]) -> tuple[UOp, ...]:
        """Mark the loops that a launch takes a part of, where they are the only outermost ones:
        each thread does one step of a THREAD loop, and a GLOBAL loop may run in slices."""
        if len(children) != 1 or children[0].op is not Ops.LOOP:
            return children
        loop = children[0]
        if loop.src[0].axis_kind is AxisType.THREAD:
            inner = self._sliced(loop.src[1:])
            return (loop.replace(src=(loop.src[0], *inner), arg="thread"),)
        if loop.src[0].axis_kind is AxisType.GLOBAL:
            return (loop.replace(arg="sliced"),)
        return children


def _at(define: UOp, indexes: tuple[UOp, ...]) -> UOp:
    return UOp(Ops.INDEX, define.dtype, (define, *indexes))


def _load(at: UOp, arg: str | None = None) -> UOp:
    return UOp(Ops.LOAD, at.dtype, (at,), arg)


def _store(at: UOp, value: UOp, vector: str | None) -> UOp:
    return UOp(Ops.STORE, dtypes.void, (at, value), vector)
