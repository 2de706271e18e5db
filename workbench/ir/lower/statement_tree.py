"""The statement tree: the loops of a kernel, their order, and the storage of values.

`ir/nest/loops.py` places the statements in loops, and `ir/nest/storage.py` their values in
registers or arrays; this file writes both as UOps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from workbench.base.dtypes import dtypes
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.base.trace import PassStep, derived_from, note_steps
from workbench.ir.lower.expand_statements import LOOPS, matches_between
from workbench.ir.lower.launch import (
    PLACE_HALVES,
    WarpTile,
    barrier_points,
    in_halves,
    launch_roles,
    tree_loops,
)
from workbench.ir.nest.fragments import PLACE_SHUFFLE, zero_outside
from workbench.ir.nest.loops import Item, Loop
from workbench.ir.nest.pipelines import PLACE_PIPELINE, Pipeline, is_fill_of, is_repeated
from workbench.ir.nest.storage import StoragePlan, plan_storage
from workbench.ir.node import construct
from workbench.ir.node.construct import identity
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp
from workbench.ir.rewriting.rewrite import is_off, require_on

PLACE_IDENTITY = PassStep(
    "place-identity",
    "An accumulator begins with the identity of its reduction, in the loops around those that the"
    " reduction closes.",
)
PLACE_REDUCE = PassStep(
    "place-reduction",
    "A reduction stands in the loops that it closes and in those that its value depends on. It"
    " shares a loop with other statements, unless one of them needs a value that is complete only"
    " after that loop.",
)
PLACE_STAGE = PassStep(
    "place-stage",
    "A row or a tile is filled in the loops that it depends on, before its readers' loops.",
)
PLACE_STORE = PassStep(
    "place-store", "A result is stored in the loops of its axes, after what it reads is complete."
)
PLACE_REGISTERS = PassStep(
    "place-registers",
    "In the innermost loops that a reduction closes, elements of its array are in registers: loaded"
    " before, stored after.",
)
PLACE_BARRIER = PassStep(
    "place-barrier",
    "A work-group waits here, until all that its work-items have written can be read.",
)
STEPS = (
    PLACE_IDENTITY, PLACE_REDUCE, PLACE_STAGE, PLACE_STORE, PLACE_REGISTERS, PLACE_SHUFFLE,
    PLACE_HALVES, PLACE_PIPELINE, PLACE_BARRIER,
)  # fmt: skip


def build_tree(sink: UOp, target: Target) -> UOp:
    """Return the BLOCK of a kernel.

    Errors: CompileError when arrays and stages need more than `target.scratch_bytes` or
    `target.shared_bytes`.
    """
    placed = plan_storage(sink, target)
    _check_budget(placed, target)
    block, steps = _Emission(sink.arg, placed, target).block()
    require_on("place the statements in loops", map(_step_of, steps))
    note_steps(lambda: matches_between(sink, _states(block, steps)))
    return block


def _states(block: UOp, steps: Sequence[Step]) -> Iterator[tuple[PassStep, UOp]]:
    """Yield the tree with its first statement, its first two, .., each with the step of the
    last."""
    for count, step in enumerate(steps, 1):
        yield _step_of(step), _first_statements(block, count)


def _first_statements(node: UOp, count: int) -> UOp:
    """Return the tree, or the loop, with its first `count` statements."""
    body = list(node.src[: len(node.src) - len(node.body)])
    for child in node.body:
        if count <= 0:
            break
        body.append(_first_statements(child, count) if child.op in LOOPS else child)
        count -= sum(1 for _ in _statements(child))
    return node.replace(src=tuple(body))


def _check_budget(placed: StoragePlan, target: Target) -> None:
    """Raise CompileError where arrays and stages need more scratch or shared memory than the device
    gives a kernel."""
    excess = placed.excess(target)
    if excess is None:
        return
    split = ", ".join(excess.split)
    hint = f"another loop order, with {split} around the readers of the array"
    raise CompileError("statement-tree", str(excess), hint=hint if split else "a smaller tile")


Step = Item | PassStep
"""The reason for a statement in the tree: the item that it computes, or a step."""


class TreePart(NamedTuple):
    """A statement, or a loop of statements, and the step of each statement, in order."""

    node: UOp
    steps: tuple[Step, ...]

    @classmethod
    def of(cls, node: UOp, step: Step) -> TreePart:
        """Return a statement or a loop with one step for all of its statements; a plain BARRIER has
        its own."""
        return cls(node, tuple([_or_barrier(n, step) for n in _statements(node)]))


def _statements(node: UOp) -> Iterator[UOp]:
    if node.op in LOOPS:
        for child in node.body:
            yield from _statements(child)
    else:
        yield node


def _or_barrier(node: UOp, step: Step) -> Step:
    is_plain = node.op is Ops.BARRIER and step is not PLACE_PIPELINE
    return PLACE_BARRIER if is_plain else step


def _nodes(parts: Sequence[TreePart]) -> list[UOp]:
    return [part.node for part in parts]


def _steps(parts: Sequence[TreePart]) -> tuple[Step, ...]:
    return tuple([step for part in parts for step in part.steps])


class _Emission:
    """Writes placed statements and their storage as UOps."""

    def __init__(self, info: KernelInfo, placed: StoragePlan, target: Target):
        self.info, self.placed, self.target = info, placed, target
        self.vectors, self.allocations = placed.vectors, placed.allocations
        self.registers: dict[UOp, UOp] = {}
        self.trees: Mapping[Loop, int] = {}

    def block(self) -> tuple[UOp, tuple[Step, ...]]:
        """Return the tree, and the step of each of its statements, in their order."""
        if not is_off(PLACE_REGISTERS):
            for item in self.placed.items:
                self._around_own_loops(item)
        self.roles = launch_roles(self.placed.root, self.target)
        if self.target.has_groups:
            self.trees = tree_loops(self.placed.items, self.placed.warps)
            self._add_barriers()
        parts = self._children(self.placed.root)
        block = UOp(Ops.BLOCK, dtypes.void, tuple(_nodes(parts)), self.info)
        return block, _steps(parts)

    def _add_barriers(self) -> None:
        """Add the BARRIERs of a work-group: before work-items read what others wrote, and, in a
        body that is repeated, at its end, before they write again."""
        barrier, warps = construct.barrier(), self.placed.warps
        for loop, points in barrier_points(self.placed.items, warps).items():
            for at in reversed(points):
                loop.body.insert(at, barrier)
            if any(self._repeats(axis) for axis in loop.path()):
                loop.body.append(barrier)

    def _repeats(self, axis: UOp) -> bool:
        """Whether a work-item runs the loop over an axis step by step."""
        return axis not in self.roles

    def _around_own_loops(self, item: Item) -> None:
        """Keep elements of an array accumulator in registers around its innermost own loops: load
        them before these loops, store them after."""
        node = item.statement.node
        if item.init or node.op is not Ops.REDUCE or not self.allocations[node].array:
            return
        loop, around = item.loop, None
        while loop is not None and loop.axis in item.statement.own:
            loop, around = loop.parent, loop
        if around is None:
            return
        assert loop is not None
        define, _, lanes, _ = self.allocations[node]
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

    def _children(self, loop: Loop) -> list[TreePart]:
        out: list[TreePart] = []
        for child in loop.body:
            if isinstance(child, Loop) and child in self.placed.pipelines:
                out += self._pipeline(child, self.placed.pipelines[child])
            elif isinstance(child, Loop):
                assert child.axis is not None
                parts, role = self._children(child), self.roles.get(child.axis)
                node = UOp(Ops.LOOP, dtypes.void, (child.axis, *_nodes(parts)), role)
                out += self._of_group(TreePart(node, _steps(parts)), child)
            elif isinstance(child, Item):
                with derived_from(child.statement.node):
                    out += self._statements(child)
            else:
                out.append(TreePart.of(child, PLACE_REGISTERS))
        return out

    def _pipeline(self, loop: Loop, pipeline: Pipeline) -> list[TreePart]:
        """Return the statements that fill the tiles of the first steps, and the loop, which fills
        the tiles of later steps."""
        axis, distance = pipeline.axis, pipeline.distance
        count = sum(is_fill_of(child, pipeline.tiles) for child in loop.body)
        fills = _nodes(self._children(Loop(axis, loop.parent, loop.body[:count])))
        others = self._children(Loop(axis, loop.parent, loop.body[count:]))
        own = _steps(others)
        first = pipeline.first if distance > 1 else UOp.index(0)
        begin = [part.substitute({axis: first}) for part in fills]
        if axis.extent < distance:
            begin = [construct.when(first < axis.extent, begin)]
        parts: Sequence[UOp] = _nodes(others)
        if axis.extent > distance:
            has_step = axis < axis.extent - distance
            later = [_zero_unless(p.substitute({axis: axis + distance}), has_step) for p in fills]
            parts = interleaved(parts, later)
            own += _steps([TreePart.of(fill, PLACE_PIPELINE) for fill in later])
        repeated = is_repeated(loop)
        waits = 0 if repeated and distance == 1 else distance
        prologue = [construct.barrier(waits), *begin]
        if distance > 1:
            prologue = [UOp(Ops.LOOP, dtypes.void, (first, *prologue))]
        if repeated and distance > 1:
            prologue.insert(0, construct.barrier(0))
        wait = construct.barrier(distance - 1)
        return [
            *[TreePart.of(part, PLACE_PIPELINE) for part in prologue],
            TreePart(UOp(Ops.LOOP, dtypes.void, (axis, wait, *parts)), (PLACE_PIPELINE, *own)),
        ]

    def _of_group(self, loop: TreePart, child: Loop) -> list[TreePart]:
        """Return what replaces a loop over partial results of a work-group; other loops as is."""
        tiles = [self._warp_tile(item) for item in child.body]
        if None not in tiles:
            return self._of_warps(loop, child, [t for t in tiles if t is not None])
        return self._tree(loop, self.trees[child]) if child in self.trees else [loop]

    def _tree(self, loop: TreePart, count: int) -> list[TreePart]:
        """Return the statements of a loop over `count` partial results, combined in halves."""
        with derived_from(loop.node):
            *halves, rest = in_halves(loop.node, count)
        return [*[TreePart.of(half, PLACE_HALVES) for half in halves], TreePart(rest, loop.steps)]

    def _of_warps(self, part: TreePart, child: Loop, tiles: list[WarpTile]) -> list[TreePart]:
        """Return what replaces a loop over the parts of tiles, which warps have combined."""
        plan, loop = tiles[0].plan, part.node
        if child in self.trees:
            return self._tree(part, plan.cells)
        with derived_from(loop):
            if plan.cells > 1 and not plan.is_repeated:
                rest = UOp.range(plan.cells, loop.axis.axis_name, loop.axis.axis_kind)
                return [TreePart(loop.substitute({loop.axis: rest}), part.steps)]
            repeats = [tile.repeated() for tile in tiles] if plan.is_repeated else []
            updates = zip(tiles, loop.body, strict=True)
            reads = [tile.read(update) for tile, update in updates]
        shuffles = [TreePart.of(statement, PLACE_SHUFFLE) for statement in repeats]
        pairs = zip(reads, part.steps, strict=True)
        return [*shuffles, *[TreePart(read, (step,)) for read, step in pairs]]

    def _warp_tile(self, child: object) -> WarpTile | None:
        """Return the tile, combined by warps, that the statement of a child reads; None if it reads
        none."""
        reads = child.statement.reads if isinstance(child, Item) else ()
        tile = next((node for node in reads if node in self.placed.warps), None)
        if tile is None or not isinstance(child, Item) or child.init:
            return None
        return self._warps(tile)

    def _warps(self, tile: UOp) -> WarpTile:
        plan, storage = self.placed.warps[tile], self.allocations[tile]
        return WarpTile(tile, plan, storage, self.vectors.axis(tile))

    def _statements(self, item: Item) -> list[TreePart]:
        """Return the statements of an item: several for a tile that warps combine."""
        written = self._statement(item)
        if item.statement.node not in self.placed.warps:
            return [TreePart(written, (item,))]
        first, *others = self._warps(item.statement.node).combined(written.value)
        is_stored = bool(others) and others[-1].op is Ops.STORE
        last = len(others) - is_stored
        return [
            TreePart(first, (item,)),
            *[TreePart(n, (PLACE_SHUFFLE,)) for n in others[:last]],
            *[TreePart(n, (item,)) for n in others[last:]],
        ]

    def _statement(self, item: Item) -> UOp:
        node = item.statement.node
        vector = self.vectors.axis(node)
        if item.init:
            return construct.store(self._element(node), identity(node.combines, node.dtype), vector)
        loops = item.insertion_point.path()
        reads = {n: self._read(n, loops) for n in item.statement.reads if n.op is Ops.REDUCE}
        stages = [n for n in item.statement.reads if n.op is Ops.STAGE]
        value = node.value if node.op is Ops.STORE else node.src[0]
        value = self._stage_reads(value, stages, loops, reads)
        if node.op is Ops.STORE:
            return construct.store(
                self._stage_reads(node.place, stages, loops, reads), value, vector
            )
        if node.op is Ops.REDUCE:
            register = self.registers.get(node)
            into = (
                self._element(node)
                if register is None
                else construct.index(register, *self.allocations[node].lanes)
            )
            return construct.accumulate(into, value, node.combines, vector)
        define, array, lanes, pipeline = self.allocations[node]
        buffer = () if pipeline is None else (pipeline.buffer,)
        indexes = tuple(self._stage_reads(s, stages, loops, reads) for s in node.src[1:])
        return construct.store(
            construct.index(define, *buffer, *array, *lanes, *indexes), value, vector
        )

    def _element(self, node: UOp) -> UOp:
        define, array, lanes, _ = self.allocations[node]
        return construct.index(define, *array, *lanes)

    def _read(self, node: UOp, loops: dict[UOp, Loop]) -> UOp:
        """Return the result of a reduction; lanes with accumulators of their own are combined."""
        zero = UOp.index(0)
        define, array, lanes, _ = self.allocations[node]
        place = tuple(a if a in loops else zero for a in array)
        with derived_from(node):
            value = construct.load(construct.index(define, *place, *lanes))
            open_lanes = self.vectors.accumulator_lanes(self.placed.statements[node])
            return construct.reduce(value, open_lanes, node.combines)

    def _stage_reads(
        self, value: UOp, stages: list[UOp], loops: dict[UOp, Loop], reads: dict[UOp, UOp]
    ) -> UOp:
        """Replace every value of another statement by a read of that statement's storage."""
        changes = dict(reads)
        stop = set(stages) | set(reads)
        for node in value.toposort(lambda n: n not in stop):
            if node.op is Ops.INDEX and node.src[0] in stop:
                stage = node.src[0]
                zero = UOp.index(0)
                define, array, lanes, pipeline = self.allocations[stage]
                buffer = () if pipeline is None else (pipeline.buffer,)
                place = tuple(a if a in loops else zero for a in array)
                inner = tuple(s.substitute(changes) for s in node.src[1:])
                with derived_from(node):
                    changes[node] = construct.index(define, *buffer, *place, *lanes, *inner)
        return value.substitute(changes)


def _step_of(item: Step) -> PassStep:
    """Return the step of an item, with what it computes and the loops that it stands in."""
    if isinstance(item, PassStep):
        return item
    node = item.statement.node
    loops = [axis.axis_name for axis in item.insertion_point.path()]
    where = f"in the loops {' '.join(loops)}" if loops else "outside of all loops"
    if node.op is Ops.REDUCE:
        closed = " ".join(axis.axis_name for axis in item.statement.closed)
        what = f"{node.combines.name.lower()} over {closed}"
        step = PLACE_IDENTITY if item.init else PLACE_REDUCE
        return step.at(f"{what}, {where}")
    is_row = node.op is Ops.STAGE
    what = "a row or tile" if is_row else f"the result p{node.place.memory.slot}"
    return (PLACE_STAGE if is_row else PLACE_STORE).at(f"{what}, {where}")


def interleaved(others: Sequence[UOp], fills: Sequence[UOp]) -> Sequence[UOp]:
    """Return statements with the fills of a later step. If the statements are one loop whose extent
    divides that of each fill, each of its steps does a part of each fill; else fills come last."""
    loop = others[0] if len(others) == 1 else None
    if loop is not None and loop.op is Ops.LOOP and loop.role is None:
        parts = [_step_part(fill, loop.axis) for fill in fills]
        if all(parts):
            return [loop.replace(src=(*loop.src, *chain(*parts)))]
    return [*others, *fills]


def _zero_unless(fill: UOp, condition: UOp) -> UOp:
    """Return a fill that, where a condition does not hold, reads nothing and writes zeros: a branch
    would keep a compiler from moving instructions past it."""
    nodes = (n for n in fill.toposort() if n.op is Ops.LOAD)
    loads = [n for n in nodes if n.place.param.op is Ops.PARAM]
    return fill.substitute({n: zero_outside(n, [condition]) for n in loads})


def _step_part(fill: UOp, step: UOp) -> Sequence[UOp]:
    """Return the part of the loop `fill` that one step of another loop does; () if the extent of
    the other loop does not divide that of `fill`."""
    if fill.op is not Ops.LOOP or fill.axis.extent % step.extent:
        return ()
    axis = fill.axis
    count = axis.extent // step.extent
    if count == 1:
        return [child.substitute({axis: step}) for child in fill.body]
    part = UOp.range(count, axis.axis_name, axis.axis_kind)
    body = [child.substitute({axis: step * count + part}) for child in fill.body]
    return [UOp(Ops.LOOP, dtypes.void, (part, *body), fill.role)]
