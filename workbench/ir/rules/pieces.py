"""Pieces: the boxes that movement, padding, repetition and joins make of a value; in each of them,
positions in a source are linear.

    x.roll(3, 0)  ->  of 8 rows: rows 0:3 are rows 5:8 of x, rows 3:8 are rows 0:5
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.ir.rules.strides import LINEAR, Strided, whole

Box = tuple[tuple[int, int], ...]
"""Where a part of a value begins and ends, for each axis."""

MOST_PIECES = 32
"""Most pieces of a value; more are not worth the time."""
MOST_NODES = 96
"""Most nodes that are searched for a value with the same elements."""


class StridedPiece(NamedTuple):
    """A part of a value: the element (i, j, ..) of its `box` is element `first + i * strides[0] +
    j * strides[1] + ..` of `base`. An axis of one element has stride 0."""

    box: Box
    base: UOp
    first: int
    strides: tuple[int, ...]

    def within(self, box: Box) -> StridedPiece | None:
        """Return the part of this piece in another box; None if there is none."""
        both = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(self.box, box, strict=True))
        if any(low >= high for low, high in both):
            return None
        skipped = zip(both, self.box, self.strides, strict=True)
        first = self.first + sum((b[0] - a[0]) * s for b, a, s in skipped)
        return StridedPiece(both, self.base, first, _strides(both, self.strides))

    def outside(self, box: Box) -> Iterator[StridedPiece]:
        """Yield the parts of this piece outside of another box."""
        rest = [*self.box]
        for axis, (low, high) in enumerate(box):
            start, end = rest[axis]
            for side in ((start, min(end, low)), (max(start, high), end)):
                part = self.within((*rest[:axis], side, *rest[axis + 1 :]))
                if part is not None:
                    yield part
            rest[axis] = max(start, low), min(end, high)
            if rest[axis][0] >= rest[axis][1]:
                return

    def joined(self, other: StridedPiece) -> StridedPiece | None:
        """Return this piece and `other`, the next along an axis, as one piece; None if they form
        none."""
        pairs = zip(self.box, other.box, strict=True)
        apart = [axis for axis, (a, b) in enumerate(pairs) if a != b]
        if len(apart) != 1 or self.base is not other.base:
            return None
        (axis,) = apart
        (low, middle), (next_low, high) = self.box[axis], other.box[axis]
        if middle != next_low:
            return None
        far = other.first - self.first
        stride, uneven = divmod(far, middle - low)
        strides = (*self.strides[:axis], stride, *self.strides[axis + 1 :])
        box = (*self.box[:axis], (low, high), *self.box[axis + 1 :])
        for part in (self, other):
            if uneven or part.strides != _strides(part.box, strides):
                return None
        return StridedPiece(box, self.base, self.first, strides)


Pieces = tuple[StridedPiece, ...]
"""The pieces of a value; outside of them, it is 0."""


def _strides(box: Box, strides: tuple[int, ...]) -> tuple[int, ...]:
    sizes = zip(box, strides, strict=True)
    return tuple(0 if high - low == 1 else s for (low, high), s in sizes)


def _box(shape: Shape) -> Box:
    return tuple((0, size) for size in shape)


def _itself(node: UOp) -> Pieces:
    box = _box(node.shape)
    return (StridedPiece(box, node, 0, _strides(box, whole(node.shape).strides)),)


def _merged(pieces: Iterable[StridedPiece]) -> Pieces:
    """Return pieces, merged where two form one."""
    left = sorted(pieces, key=lambda p: p.box)
    done: list[StridedPiece] = []
    while left:
        piece = left.pop(0)
        for other in left:
            one = piece.joined(other) or other.joined(piece)
            if one is not None:
                left.remove(other)
                left.insert(0, one)
                break
        else:
            done.append(piece)
    return tuple(done)


def pieces_of(node: UOp, known: dict[UOp, Pieces]) -> Pieces:
    """Return the pieces of a value; of one with too many, the value itself is the only piece.
    `known` memoises them."""
    pieces = known.get(node)
    if pieces is None:
        pieces = _moved(node, known) if node.size else ()
        if pieces is None or len(pieces) > MOST_PIECES:
            pieces = _itself(node)
        known[node] = pieces
    return pieces


def _moved(node: UOp, known: dict[UOp, Pieces]) -> Pieces | None:
    """Return the pieces of a movement or a join, by those of its sources; None for other ops, and
    where they are too many."""
    if is_join(node):
        return _chosen(node, known)
    if node.op not in LINEAR and node.op is not Ops.PAD:
        return None
    pieces = pieces_of(node.src[0], known)
    shape, arg = node.src[0].shape, node.arg
    if node.op is Ops.RESHAPE:
        return _reshaped(pieces, shape, node.shape)
    if node.op is Ops.SHRINK:
        inside = [part for p in pieces if (part := p.within(arg)) is not None]
        return _merged(_shifted(p, [-low for low, _ in arg]) for p in inside)
    if node.op is Ops.PAD:
        return tuple(_shifted(p, [before for before, _ in arg]) for p in pieces)
    if node.op is Ops.PERMUTE:
        return tuple(
            StridedPiece(
                tuple(p.box[a] for a in arg), p.base, p.first, tuple(p.strides[a] for a in arg)
            )
            for p in pieces
        )
    if node.op is Ops.FLIP:
        return tuple(_flipped(p, shape, arg) for p in pieces)
    return tuple(_expanded(p, shape, node.shape) for p in pieces)


def _shifted(piece: StridedPiece, by: Sequence[int]) -> StridedPiece:
    moves = zip(piece.box, by, strict=True)
    return piece._replace(box=tuple((a + n, b + n) for (a, b), n in moves))


def _flipped(piece: StridedPiece, shape: Shape, axes: tuple[int, ...]) -> StridedPiece:
    box, strides, first = [*piece.box], [*piece.strides], piece.first
    for a in axes:
        low, high = box[a]
        box[a] = shape[a] - high, shape[a] - low
        first += (high - low - 1) * strides[a]
        strides[a] = -strides[a]
    return StridedPiece(tuple(box), piece.base, first, tuple(strides))


def _expanded(piece: StridedPiece, old: Shape, new: Shape) -> StridedPiece:
    added = len(new) - len(old)
    sizes = zip(piece.box, old, new[added:], strict=True)
    tail = tuple(pair if n == wide else (0, wide) for pair, n, wide in sizes)
    strides = (0,) * added + piece.strides
    return StridedPiece(_box(new[:added]) + tail, piece.base, piece.first, strides)


def is_join(node: UOp) -> bool:
    """Whether an element's position says which of two values it is from, as in a `cat`."""
    if node.op is not Ops.WHERE or not node.shape:
        return False
    condition = node.src[0]
    while condition.op in LINEAR or condition.op is Ops.PAD:
        (condition,) = condition.src
    return condition.op is Ops.CONST


def _chosen(node: UOp, known: dict[UOp, Pieces]) -> Pieces | None:
    """Return the pieces of a join: those of one value where its condition is true, and those of the
    other elsewhere."""
    condition, yes, no = (
        pieces_of(s, known)
        if s.shape == node.shape
        else tuple(_expanded(p, s.shape, node.shape) for p in pieces_of(s, known))
        for s in node.src
    )
    if any(p.base.op is not Ops.CONST for p in condition):
        return None
    where = [p.box for p in condition if p.base.arg]
    if len(where) * (len(yes) + len(no)) > MOST_PIECES:
        return None
    chosen = [part for p in yes for b in where if (part := p.within(b)) is not None]
    for box in where:
        no = tuple(part for p in no for part in p.outside(box))
    return _merged([*chosen, *no])


class Line(NamedTuple):
    """A part of a piece along one axis, from `low` to `high`: elements `first`, `first + stride`,
    .. of the base, counted from the first element of the piece."""

    low: int
    high: int
    first: int
    stride: int


def _reshaped(pieces: Pieces, old: Shape, new: Shape) -> Pieces | None:
    """Return the pieces of a value of shape `old` after a reshape to `new`; None if too many."""
    groups = list(_groups(old, new))
    result: list[StridedPiece] = []
    for p in pieces:
        parts = []
        for before, after in groups:
            lines = _lines(p, old, before)
            if lines is None:
                return None
            parts.append([box for line in lines for box in _cut(line, new[after])])
        if len(result) + math.prod(map(len, parts)) > MOST_PIECES:
            return None
        for each in product(*parts):
            box = tuple(pair for part in each for pair in part.box)
            strides = tuple(s for part in each for s in part.strides)
            first = p.first + sum(part.first for part in each)
            result.append(StridedPiece(box, p.base, first, _strides(box, strides)))
    return _merged(result)


def _groups(old: Shape, new: Shape) -> Iterator[tuple[slice, slice]]:
    """Yield pairs of runs of axes, one of each shape, with equally many elements, as short as they
    can be."""
    i = j = 0
    while i < len(old) or j < len(new):
        before, after = i, j
        have = want = 1
        while True:
            if have <= want and i < len(old) and (have < want or i == before):
                have *= old[i]
                i += 1
            elif have >= want and j < len(new) and (have > want or j == after):
                want *= new[j]
                j += 1
            else:
                break
        yield slice(before, i), slice(after, j)


def _lines(piece: StridedPiece, shape: Shape, axes: slice) -> list[Line] | None:
    """Return the lines of a piece after neighbouring axes become one; None if they are too many."""
    lines, size = [Line(0, 1, 0, 0)], 1
    each = list(zip(piece.box, shape, piece.strides, strict=True))[axes]
    for (low, high), length, stride in reversed(each):
        line, *more = lines
        is_whole = not more and line.low == 0 and line.high == size
        if is_whole and size == 1:
            lines = [Line(low, high, 0, stride)]
        elif is_whole and (high - low == 1 or line.stride * size == stride):
            lines = [Line(low * size, high * size, 0, line.stride)]
        elif (high - low) * len(lines) > MOST_PIECES:
            return None
        else:
            lines = [
                Line(k * size + a, k * size + b, (k - low) * stride + first, line_stride)
                for k in range(low, high)
                for a, b, first, line_stride in lines
            ]
        size *= length
    return lines


class StridedBox(NamedTuple):
    """A part of a piece along some axes; `first` counts from the first element of the piece."""

    box: Box
    first: int
    strides: tuple[int, ...]


def _cut(line: Line, sizes: Shape) -> Iterator[StridedBox]:
    """Yield the boxes of a line after its axis becomes axes of `sizes`."""
    if not sizes:
        yield StridedBox((), line.first, ())
        return
    low, high, first, stride = line
    inner = math.prod(sizes[1:])
    row, skipped = divmod(low, inner)
    last, over = divmod(high, inner)
    if not skipped and not over:
        rows = [(row, last, 0, inner)]
    elif row == (high - 1) // inner:
        rows = [(row, row + 1, skipped, high - row * inner)]
    else:
        rows = [(row, row + 1, skipped, inner)] if skipped else []
        start = row + bool(skipped)
        rows += [(start, last, 0, inner)] if start < last else []
        rows += [(last, last + 1, 0, over)] if over else []
    for begin, end, left, right in rows:
        offset = first + (begin * inner + left - low) * stride
        for part in _cut(Line(left, right, offset, stride), sizes[1:]):
            yield StridedBox(((begin, end), *part.box), part.first, (stride * inner, *part.strides))


def same_in_pieces(node: UOp) -> UOp | None:
    """Return the lowest value under movement and joins that has the same elements in the same
    order; None if none has. Values that `same_elements` finds are left to it."""
    candidates = _values_below(node)
    if not candidates:
        return None
    known: dict[UOp, Pieces] = {}
    view = _as_one(pieces_of(node, known), node)
    if view is None or view[0].op is Ops.CONST:
        return None
    same = [c for c in candidates if _as_one(pieces_of(c, known), c) == view]
    if view[0] in same:
        return view[0]
    return same[-1] if same else None


def _as_one(pieces: Pieces, node: UOp) -> tuple[UOp, object] | None:
    """Return the base of a value that is a single piece, and the order of its elements there."""
    if len(pieces) != 1 or pieces[0].box != _box(node.shape):
        return None
    ((_, base, first, strides),) = pieces
    return base, Strided(node.shape, strides, first).merged


def _values_below(node: UOp) -> list[UOp]:
    """Return the values under movement and joins that have as many elements as `node`, with a value
    of another size between; [] where the search takes too long."""
    values, visited = [], {(node, False)}
    stack = [(node, False)]
    while stack:
        each, is_apart = stack.pop()
        if each.op in LINEAR or each.op is Ops.PAD:
            sources = each.src
        elif is_join(each):
            sources = each.src[1:]
        else:
            continue
        for source in sources:
            key = source, is_apart or source.size != node.size
            if key in visited:
                continue
            visited.add(key)
            stack.append(key)
            if key[1] and source.size == node.size and source not in values:
                values.append(source)
        if len(visited) > MOST_NODES:
            return []
    return values
