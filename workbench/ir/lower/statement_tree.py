"""The statement tree: which loops, in which order, with what storage.

`ir/nest/placement.py` places the statements in loops, and `ir/nest/storage.py` their values in
registers or arrays; this file writes both as UOps.
"""

from __future__ import annotations

from workbench.base.dtypes import dtypes
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.base.trace import derived_from
from workbench.ir.nest.placement import Item, Loop
from workbench.ir.nest.storage import StoragePlan, plan_storage
from workbench.ir.node import construct
from workbench.ir.node.axis import AxisType
from workbench.ir.node.constants import identity
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp


def build_tree(sink: UOp, target: Target) -> UOp:
    """Return the BLOCK of a kernel.

    Errors: CompileError when arrays and stages need more than `target.scratch_bytes`.
    """
    placed = plan_storage(sink, target)
    _check_budget(placed, target)
    return _Emission(sink.arg, placed).block()


def _check_budget(placed: StoragePlan, target: Target) -> None:
    """Raise CompileError where arrays and stages need more scratch memory than the device gives a
    kernel."""
    excess = placed.excess(target)
    if excess is None:
        return
    split = ", ".join(excess.split)
    hint = f"another loop order, with {split} outside of what reads it"
    raise CompileError(
        "statement-tree", str(excess), hint=hint if split else "a smaller tile"
    )


class _Emission:
    """Writes placed statements and their storage as UOps."""

    def __init__(self, info: KernelInfo, placed: StoragePlan):
        self.info, self.placed = info, placed
        self.vectors, self.allocations = placed.vectors, placed.allocations
        self.registers: dict[UOp, UOp] = {}

    def block(self) -> UOp:
        for item in self.placed.items:
            self._around_own_loops(item)
        children = self._children(self.placed.root)
        return UOp(Ops.BLOCK, dtypes.void, self._with_launch_loops(children), self.info)

    def _around_own_loops(self, item: Item) -> None:
        """Where an array accumulator's innermost loops are its own, use registers there: load it
        before those loops, store it after."""
        node = item.statement.node
        if item.init or node.op is not Ops.REDUCE or not self.allocations[node].array:
            return
        loop, around = item.loop, None
        while loop is not None and loop.axis in item.statement.own:
            loop, around = loop.parent, loop
        if around is None:
            return
        assert loop is not None
        define, _, lanes = self.allocations[node]
        name, shape = define.name + "r", tuple(r.extent for r in lanes)
        register = construct.define(node.dtype, name, shape, "register")
        self.registers[node] = register
        vector = self.vectors.axis(node)
        with derived_from(node):
            inside = construct.index(register, *lanes)
            outside = self._element(node)
            before = construct.store(inside, construct.running(outside), vector)
            after = construct.store(outside, construct.load(inside), vector)
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
                with derived_from(child.statement.node):
                    out.append(self._statement(child))
            else:
                out.append(child)
        return tuple(out)

    def _statement(self, item: Item) -> UOp:
        node = item.statement.node
        vector = self.vectors.axis(node)
        if item.init:
            return construct.store(
                self._element(node), identity(node.combines, node.dtype), vector
            )
        here = item.insertion_point.path()
        reads = {
            n: self._read(n, here) for n in item.statement.reads if n.op is Ops.REDUCE
        }
        stages = [n for n in item.statement.reads if n.op is Ops.STAGE]
        value = node.value if node.op is Ops.STORE else node.src[0]
        value = self._stage_reads(value, stages, here, reads)
        if node.op is Ops.STORE:
            return construct.store(
                self._stage_reads(node.place, stages, here, reads), value, vector
            )
        if node.op is Ops.REDUCE:
            register = self.registers.get(node)
            into = (
                self._element(node)
                if register is None
                else construct.index(register, *self.allocations[node].lanes)
            )
            return construct.accumulate(into, value, node.combines, vector)
        define, array, lanes = self.allocations[node]
        indexes = tuple(self._stage_reads(s, stages, here, reads) for s in node.src[1:])
        return construct.store(
            construct.index(define, *array, *lanes, *indexes),
            value,
            vector,
        )

    def _element(self, node: UOp) -> UOp:
        define, array, lanes = self.allocations[node]
        return construct.index(define, *array, *lanes)

    def _read(self, node: UOp, here: dict[UOp, Loop]) -> UOp:
        """Return the result of a reduction; lanes that its accumulator keeps apart are combined."""
        zero = UOp.index(0)
        define, array, lanes = self.allocations[node]
        place = tuple(a if a in here else zero for a in array)
        with derived_from(node):
            value = construct.load(construct.index(define, *place, *lanes))
            open_lanes = self.vectors.accumulator_lanes(self.placed.statements[node])
            return construct.reduce(value, open_lanes, node.combines)

    def _stage_reads(
        self,
        value: UOp,
        stages: list[UOp],
        here: dict[UOp, Loop],
        reads: dict[UOp, UOp],
    ) -> UOp:
        """Replace every value of another statement by a read of that statement's storage."""
        changes = dict(reads)
        stop = set(stages) | set(reads)
        for node in value.toposort(lambda n: n not in stop):
            if node.op is Ops.INDEX and node.src[0] in stop:
                stage = node.src[0]
                zero = UOp.index(0)
                define, array, lanes = self.allocations[stage]
                place = tuple(a if a in here else zero for a in array)
                inner = tuple(s.substitute(changes) for s in node.src[1:])
                with derived_from(node):
                    changes[node] = construct.index(define, *place, *lanes, *inner)
        return value.substitute(changes)

    def _with_launch_loops(self, children: tuple[UOp, ...]) -> tuple[UOp, ...]:
        """Mark the loops that a launch takes a part of, where they are the only outermost ones:
        each thread does one step of a THREAD loop, and a GLOBAL loop may run in chunks."""
        if len(children) != 1 or children[0].op is not Ops.LOOP:
            return children
        loop = children[0]
        if loop.src[0].axis_kind is AxisType.THREAD:
            inner = self._with_launch_loops(loop.src[1:])
            return (loop.replace(src=(loop.src[0], *inner), arg="thread"),)
        if loop.src[0].axis_kind is AxisType.GLOBAL:
            return (loop.replace(arg="chunked"),)
        return children
