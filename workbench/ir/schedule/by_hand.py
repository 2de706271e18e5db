"""Choices by hand for a plan: values to store or recompute, reductions to split, kernels to order.

Choices are about values of the simplified tensor graph, and stay with these values whatever else is
chosen. Two kinds change the graph before the decisions: a value that some readers recompute gets a
stored copy for the others, and a reduction in two kernels is a reduction of partial results. The
others change decisions, the order of the kernels, or the memory plan.

Sections: The choices; The graph with the choices; The order of the kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from workbench.base.dtypes import dtypes
from workbench.base.errors import WorkbenchError, plural
from workbench.base.trace import Match, PassStep
from workbench.ir.node import construct
from workbench.ir.node.ops import MOVEMENT, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.passes import Pass
from workbench.ir.schedule.plan import ScheduleItem

# --------------------------------------------------------------------------------------------------
# The choices.


@dataclass(frozen=True, slots=True)
class HandChoices:
    """The choices of a user for a plan, by value: all stay until they are undone."""

    stored: Mapping[UOp, bool] = field(default_factory=dict)
    """The values that are stored (True), or computed by every reader (False)."""
    recomputed: Mapping[UOp, tuple[UOp, ...]] = field(default_factory=dict)
    """The readers that compute a value themselves; the others read it from memory."""
    parts: Mapping[UOp, int] = field(default_factory=dict)
    """The number of partial results of reductions in two kernels."""
    before: Mapping[UOp, UOp] = field(default_factory=dict)
    """The kernel that stores the value runs before the kernel that stores the other one."""
    in_place: Mapping[UOp, UOp | Literal[False]] = field(default_factory=dict)
    """The value whose memory a value is written over; False: over that of no value."""

    def __bool__(self) -> bool:
        return any((self.stored, self.recomputed, self.parts, self.before, self.in_place))

    @property
    def nodes(self) -> tuple[UOp, ...]:
        """All values that the choices name."""
        nodes = [*self.stored, *self.recomputed, *self.parts, *self.before, *self.in_place]
        nodes += [reader for readers in self.recomputed.values() for reader in readers]
        nodes += [*self.before.values(), *[n for n in self.in_place.values() if n is not False]]
        return tuple(dict.fromkeys(nodes))

    @property
    def of_graph(self) -> HandChoices:
        """The choices that change the graph, which name the values of the others."""
        return HandChoices(recomputed=self.recomputed, parts=self.parts)

    @property
    def made(self) -> set[UOp]:
        """The values that the choices add to the graph: copies and partial results."""
        copies = {construct.contiguous(node) for node in self.recomputed}
        return copies | {partial(node, parts) for node, parts in self.parts.items()}

    def without(self, gone: set[UOp]) -> HandChoices:
        """Return the choices without those about values that are not there any more."""
        return replace(
            self,
            stored={n: each for n, each in self.stored.items() if n not in gone},
            before={n: b for n, b in self.before.items() if gone.isdisjoint((n, b))},
            in_place={n: b for n, b in self.in_place.items() if gone.isdisjoint((n, b))},
        )


NOTHING_BY_HAND = HandChoices()


def value_text(node: UOp) -> str:
    """Return a value in words: its op and its shape."""
    return f"{node.op.name} {list(node.shape)}"


# --------------------------------------------------------------------------------------------------
# The graph with the choices.


@dataclass(frozen=True, slots=True)
class ChosenGraph:
    """A graph with the choices: `roots`, and `images`, which has the value of the new graph for
    each value of the old one. `reasons` has the values that are stored by the choices alone."""

    roots: tuple[UOp, ...]
    images: Mapping[UOp, UOp]
    reasons: Mapping[UOp, str] = field(default_factory=dict)

    @property
    def originals(self) -> dict[UOp, UOp]:
        """The value of the old graph that choices about a value of the new one are about."""
        changed = {i: n for n, i in self.images.items() if self.images.get(i) is not i}
        return changed

    def stored(self, choices: HandChoices) -> dict[UOp, bool]:
        """Return the values of the new graph that are stored (True) or fused (False)."""
        stored = {self.images.get(node, node): each for node, each in choices.stored.items()}
        recomputed = (self.images[node] for node in choices.recomputed if node in self.images)
        return {**stored, **dict.fromkeys(recomputed, False)}

    def of_values(self, pairs: Mapping[UOp, UOp]) -> dict[UOp, UOp]:
        """Return pairs of values of the old graph as pairs of values of the new one."""
        return {self.images.get(a, a): self.images.get(b, b) for a, b in pairs.items()}


STEPS = {
    "recompute": PassStep(
        "read-stored-copy",
        "Some readers of a value compute it again; the others read a stored copy.",
    ),
    "split": PassStep(
        "split-by-hand",
        "A reduction combines partial results, which a kernel of their own computes.",
    ),
}
"""The steps of the choices. They are undone, and not switched off, so they are no switches."""


def chosen_graph(
    root: UOp, choices: HandChoices, matches: list[Match] | None = None
) -> ChosenGraph:
    """Return the graph of a SINK with the choices about values in it; the steps are added to
    `matches`.

    Errors: WorkbenchError for a reduction that cannot be split so, and a reader that is none.
    """
    graph = root.toposort()
    graph.popitem()
    recomputed = {n: set(r) for n, r in choices.recomputed.items() if n in graph}
    parts = {n: count for n, count in choices.parts.items() if n in graph}
    if not recomputed and not parts:
        return ChosenGraph(root.src, {})
    for node, readers in recomputed.items():
        _check_recomputed(node, readers, graph)
    images: dict[UOp, UOp] = {}
    reasons: dict[UOp, str] = {}
    steps: list[Match] = []

    def stored(reader: UOp | None, source: UOp) -> UOp:
        """Return the image of a source of a reader (None: of the results)."""
        chain = []
        while source.op in MOVEMENT and source not in recomputed:
            chain.append(source)
            source = source.src[0]
        if source not in recomputed or reader in recomputed[source]:
            return images[chain[0] if chain else source]
        copy = construct.contiguous(images[source])
        images[construct.contiguous(source)] = copy
        reasons[copy] = f"you asked for it: {_readers_text(len(recomputed[source]))}"
        for moved in reversed(chain):
            copy = moved.rebuild((copy,))
        return copy

    for node in graph:
        own = tuple([images[s] for s in node.src])
        image = before = node.rebuild(own)
        if node.op not in MOVEMENT:
            image = node.rebuild(tuple([stored(node, s) for s in node.src]))
        if image is not before:
            steps.append(Match(STEPS["recompute"].at(value_text(node)), before, image))
        if node in parts:
            inner, whole = split_in(image, parts[node])
            about = f"{value_text(node)} from {plural(parts[node], 'partial result')}"
            steps.append(Match(STEPS["split"].at(about), image, whole))
            images[partial(node, parts[node])] = inner
            reasons[inner] = f"you split the reduction over it into {parts[node]} partial results"
            image = whole
        images[node] = image
    if matches is not None:
        matches += steps
    roots = tuple([stored(None, result) for result in root.src])
    return ChosenGraph(roots, images, reasons)


CHOOSE = Pass(
    "by-hand",
    "Reductions are split, and values are recomputed, where the user chose that.",
    chosen_graph,
)


def _readers_text(count: int) -> str:
    others = "the others read it from memory"
    return (
        f"{plural(count, 'reader')} of the value {'computes' if count == 1 else 'compute'}"
        f" it again, {others}"
    )


def readers_of(node: UOp, graph: Iterable[UOp]) -> list[UOp]:
    """Return the values of a graph that are computed from a value, directly or through movement."""
    moved, readers = {node}, []
    for each in graph:
        if not moved.isdisjoint(each.src) and each is not node and each.op is not Ops.SINK:
            if each.op in MOVEMENT:
                moved.add(each)
            else:
                readers.append(each)
    return readers


def _check_recomputed(node: UOp, readers: set[UOp], graph: Mapping[UOp, None]) -> None:
    what = f"cannot compute {value_text(node)} again in a reader"
    if node.op in (Ops.BUFFER, Ops.CONST, Ops.IOTA, Ops.VAR):
        raise WorkbenchError(what, "it is in memory, or known, already: nothing computes it")
    if node.op in (Ops.CONTIGUOUS, Ops.COPY, Ops.CUSTOM):
        because = f"a {node.op.name} is always a value in memory"
        raise WorkbenchError(what, because, "the value that it is made from")
    present = readers_of(node, graph)
    for reader in readers:
        if reader not in present:
            because = f"{value_text(reader)} does not read it"
            hint = ", ".join(map(value_text, present)) or "another value: this one is only a result"
            raise WorkbenchError(what, because, hint)
        if reader.op in (Ops.COPY, Ops.CUSTOM):
            because = f"a {reader.op.name} reads memory, and computes nothing else"
            raise WorkbenchError(what, because, "another reader")


def split_in(node: UOp, parts: int) -> tuple[UOp, UOp]:
    """Return a reduction as (its partial results, a reduction of them): an axis that it reduces is
    cut into `parts` stretches of one length, of which the last ones may be padded.

    Rewrite: sum of 10 elements   ->   sum of 3 sums of 4 elements, 2 of which are zeros
    Errors: WorkbenchError where no axis has that many elements, and for a value that is no
    reduction.
    """
    axis, source = _split_axis(node, parts), node.src[0]
    length = -(-source.shape[axis] // parts)
    source = _padded(source, axis, parts * length, node.combines)
    shape = source.shape
    stretches = (*shape[:axis], parts, length, *shape[axis + 1 :])
    axes = node.reduced_axes
    inner = tuple([a + (a >= axis) for a in sorted(axes)])
    apart = UOp(Ops.RESHAPE, source.dtype, (source,), stretches)
    partials = construct.reduce_axis(apart, inner, node.combines)
    ones = [1 if a in axes else n for a, n in enumerate(shape)]
    ones[axis] = parts
    row = UOp(Ops.RESHAPE, source.dtype, (partials,), tuple(ones))
    return partials, construct.reduce_axis(row, (axis,), node.combines)


def partial(node: UOp, parts: int) -> UOp:
    """Return the partial results of a reduction in `parts` parts. Errors: as `split_in`."""
    return split_in(node, parts)[0]


def _split_axis(node: UOp, parts: int) -> int:
    """Return the axis of a reduction to cut into parts: the first whose size they divide, else the
    longest."""
    what = f"cannot split {value_text(node)} into {parts} partial results"
    if node.op is not Ops.REDUCE_AXIS:
        raise WorkbenchError(what, "it is no reduction", "a REDUCE_AXIS of .decisions")
    sizes = {axis: node.src[0].shape[axis] for axis in sorted(node.reduced_axes)}
    most = max(sizes.values(), default=0)
    if not node.src[0].size or most < 2:
        raise WorkbenchError(what, "it combines no two elements of an axis", "another reduction")
    if not 2 <= parts <= most:
        because = f"the longest axis that it reduces has {most} elements"
        raise WorkbenchError(what, because, f"2 to {most}")
    whole = [axis for axis, size in sizes.items() if size >= parts and size % parts == 0]
    return whole[0] if whole else max(sizes, key=sizes.__getitem__)


def _padded(source: UOp, axis: int, size: int, combines: Ops) -> UOp:
    """Return a value with elements after an axis, up to `size`, that change no result."""
    more = size - source.shape[axis]
    if not more:
        return source
    box = tuple([(0, more if a == axis else 0) for a in range(len(source.shape))])
    zeros = UOp(Ops.PAD, source.dtype, (source,), box)
    start = construct.identity(combines, source.dtype)
    if start is source.like(0):
        return zeros
    everywhere = construct.full(source.shape, UOp.const(dtypes.bool, True))
    inside = UOp(Ops.PAD, dtypes.bool, (everywhere,), box)
    return inside.where(zeros, zeros.like(start.arg))


# --------------------------------------------------------------------------------------------------
# The order of the kernels.


def reordered(
    items: Sequence[ScheduleItem], before: Mapping[UOp, UOp], nodes: Mapping[UOp, None]
) -> tuple[ScheduleItem, ...]:
    """Return items in an order in which, for each pair of `before`, the kernel of the first value
    runs before that of the second, with what it needs. Others keep their places. Pairs of values
    that are not in `nodes` are about another schedule.

    Errors: WorkbenchError for a value that no item stores, and where another item is needed first.
    """
    if not before:
        return tuple(items)
    order = _ItemOrder(items)
    for value, later in before.items():
        if value in nodes and later in nodes:
            order.add(value, later)
    return order.sorted()


class _ItemOrder:
    """Items, and for each the items that run before it, with the value that says so."""

    def __init__(self, items: Sequence[ScheduleItem]):
        self._items = items
        self._of = {node: n for n, item in enumerate(items) for node in item.nodes}
        writers = {buffer: n for n, item in enumerate(items) for buffer in item.outputs}
        self._first: list[dict[int, UOp | None]] = [
            {writers[b]: b for b in item.inputs if b in writers} for item in items
        ]

    def add(self, value: UOp, later: UOp) -> None:
        """Make the item of `value` run before that of `later`."""
        one, other = (self._place(node) for node in (value, later))
        what = f"cannot run the kernel of {value_text(value)} before that of {value_text(later)}"
        if one == other:
            raise WorkbenchError(what, "one kernel stores both", "values of two kernels")
        path = self._path(one, other)
        if path:
            raise WorkbenchError(what, self._because(path), "a kernel that does not need it")
        self._first[other].setdefault(one, None)

    def _place(self, node: UOp) -> int:
        place = self._of.get(node)
        if place is None:
            what = f"cannot order the kernel of {value_text(node)}"
            because = "no kernel stores this value in the plan"
            raise WorkbenchError(what, because, "a stored value, or before={value: None}, to undo")
        return place

    def _path(self, start: int, end: int) -> list[int]:
        """Return items from `start` to `end`, each of which must run after the next; [] where
        `start` does not need `end`."""
        came_from = {start: start}
        queue = [start]
        for item in queue:
            for needed in self._first[item]:
                if needed not in came_from:
                    came_from[needed] = item
                    queue.append(needed)
        if end not in came_from:
            return []
        path = [end]
        while path[-1] != start:
            path.append(came_from[path[-1]])
        return path[::-1]

    def _because(self, path: Sequence[int]) -> str:
        steps = []
        for item, needed in zip(path, path[1:], strict=False):
            one, other = (value_text(self._items[n].nodes[0]) for n in (item, needed))
            buffer = self._first[item][needed]
            if buffer is None:
                steps.append(f"you chose that the kernel of {other} runs before that of {one}")
            else:
                stored = self._items[needed]
                value = stored.nodes[stored.outputs.index(buffer)]
                steps.append(f"the kernel of {one} reads {value_text(value)}, stored by the other")
        return "; ".join(steps)

    def sorted(self) -> tuple[ScheduleItem, ...]:
        """Return the items, each after those before it, and in their old order where that allows
        it."""
        ordered: dict[int, None] = {}
        stack = [*reversed(range(len(self._items)))]
        while stack:
            first = [n for n in self._first[stack[-1]] if n not in ordered]
            if first:
                stack += sorted(first, reverse=True)
            else:
                ordered.setdefault(stack.pop())
        return tuple([self._items[n] for n in ordered])


def stored_by(items: Iterable[ScheduleItem]) -> dict[UOp, UOp]:
    """Return the BUFFER of each value that items store."""
    return {n: b for item in items for n, b in zip(item.nodes, item.outputs, strict=True)}
