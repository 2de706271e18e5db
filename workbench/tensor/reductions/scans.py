"""Scans: each element of an axis combined with all before it.

A short axis is one kernel, in which each result is a reduction of its own. A longer axis is cut
into blocks, these into smaller ones, and so on: a result combines, at each level, the total of the
blocks before its own one. All that is one kernel: with k blocks at a level, the totals there read
each element k times, and k is small. For a value of many elements the totals of the smallest blocks
are stored first. On a very long axis the totals of its blocks are stored and scanned, and each
block begins with the result for the block before it.

Each scan has a formula for its gradient, which is a scan again, from the end.
Source of the idea: the block scans of GPUs (Blelloch 1990).

Sections: Scans; Running reductions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Never, Self

from workbench.base.dtypes import Const, DType
from workbench.ir.gradient.occurrences import Formula, with_formula
from workbench.ir.node.construct import contiguous
from workbench.ir.node.ops import REDUCTIONS, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.tensor.base import Base
from workbench.tensor.elementwise.functions import added_exponentials
from workbench.tensor.movement.movement import padded, reshaped, slab
from workbench.tensor.operands.arguments import refuse_keywords
from workbench.tensor.operands.axes import iota, one_axis
from workbench.tensor.operands.broadcast import cast_to, expanded, wide_dtype
from workbench.tensor.operands.literal import as_dtype
from workbench.tensor.reductions.reduce import combined, exponential_total, sum_dtype, total_dtype

# --------------------------------------------------------------------------------------------------
# Scans.

_DIRECT = 32
"""The maximal size of an axis without blocks: its results can be fused with their readers."""
_NESTED = 4096
"""The maximal size of an axis whose results are computed from the elements in one kernel."""
_STORED_TOTALS = 1 << 14
"""The minimal number of elements of a value for which the totals of the smallest blocks are
stored."""
_WIDTHS = (32, 40, 48, 24, 64, 56, 16, 50, 36, 25, 20, 30, 28, 18)
"""Elements of a block of a longer axis: the first width that divides it, or else the first one."""
_LANES = 8
"""Best number of elements of the smallest blocks: lanes that any processor has."""
_MOST_BLOCKS = 16
"""The maximal number of blocks at a level, if factors allow it."""
_PRODUCTS = 16
"""The maximal size of a block in the gradient of products: steps that run one after the other."""
_PRODUCT_WIDTHS = range(_PRODUCTS, 5, -1)


class Scan(NamedTuple):
    """An associative combination: `pair`, of two values; `total`, of all along an axis (which keeps
    size 1), or of those `inside`; and `neutral`, the value that changes nothing."""

    pair: Callable[[UOp, UOp], UOp]
    total: Callable[[UOp, int, UOp | None], UOp]
    neutral: Const
    is_backward: bool = False
    """Whether an element is combined with all after it, not before."""


def scan_of(op: Ops, dtype: DType, is_backward: bool = False) -> Scan:
    """Return the combination by a reduction's op."""
    neutral = REDUCTIONS[op].identity(dtype)

    def total(value: UOp, axis: int, inside: UOp | None = None) -> UOp:
        if inside is not None:
            value = inside.where(value, value.like(neutral))
        return combined(op, value, (axis,))

    return Scan(lambda a, b: a.alu(op, b), total, neutral, is_backward)


_EXPONENTIALS = Scan(
    added_exponentials,
    lambda value, axis, inside: exponential_total(value, (axis,), inside),
    -math.inf,
)


def running_combination(scan: Scan, value: UOp, axis: int) -> UOp:
    """Return `value` combined along `axis` up to each element."""
    if _is_trivial(value, axis):
        return value
    wide = cast_to(value, wide_dtype(value.dtype))
    return cast_to(_running(scan, wide, axis), value.dtype)


def running_sum(value: UOp, axis: int, is_backward: bool = False) -> UOp:
    """Return the sums of `value` up to each element along `axis`, or from each on."""
    result = running_combination(scan_of(Ops.ADD, value.dtype, is_backward), value, axis)
    gradient = _of_backward_sum if is_backward else _of_sum
    return _with_gradient(result, value, axis, "running-sum", gradient)


def running_product(value: UOp, axis: int) -> UOp:
    """Return the products of `value` up to each element along `axis`."""
    result = running_combination(scan_of(Ops.MUL, value.dtype), value, axis)
    return _with_gradient(result, value, axis, "running-product", _of_product)


def running_exponentials(value: UOp, axis: int) -> UOp:
    """Return log(sum(e ** value)) up to each element along `axis`."""
    result = running_combination(_EXPONENTIALS, value, axis)
    return _with_gradient(result, value, axis, "running-logsumexp", _of_exponentials)


def split_shape(value: UOp, axis: int) -> tuple[Shape, int, Shape]:
    """Return the axes before `axis`, its size, and those after it."""
    return value.shape[:axis], value.shape[axis], value.shape[axis + 1 :]


def _is_trivial(value: UOp, axis: int) -> bool:
    return not value.size or not value.shape or value.shape[axis] == 1


def _with_gradient(
    result: UOp, value: UOp, axis: int, name: str, gradient: Callable[[UOp, int, UOp], list[UOp]]
) -> UOp:
    if _is_trivial(value, axis) or not value.dtype.is_float:
        return result
    return with_formula(result, (value,), Formula(name, axis, gradient))


# Values


def _running(scan: Scan, value: UOp, axis: int, is_inner: bool = False) -> UOp:
    """Return the running combination in the dtype of `value`. With `is_inner` the next
    kernel reads it, which can cut off padding: blocks are then rounded up for lanes."""
    size = value.shape[axis]
    sizes = _block_sizes(size, is_inner)
    value = _padded(value, axis, (0, math.prod(sizes) - size), scan.neutral)
    totals = None
    if size <= _NESTED and value.size >= _STORED_TOTALS and len(sizes) > 1:
        totals = _totals(scan, value, axis, sizes[-1])
    whole = _in_blocks(scan, value, totals, axis, sizes)
    if len(sizes) > 1:  # fused with a reader without loops over blocks, it would repeat totals
        whole = contiguous(whole)
    return slab(reshaped(whole, value.shape), axis, 0, size)


def _block_sizes(size: int, is_inner: bool = False) -> tuple[int, ...]:
    """Return the numbers of blocks at each level, whose product is `size`, or a little more."""
    if is_inner:
        size += -size % _LANES**2
    if size <= _DIRECT:
        return (size,)
    if size > _NESTED:
        width = next((w for w in _WIDTHS if size % w == 0), _WIDTHS[0])
        return (-(-size // width), *_factors(width))
    while max(sizes := _factors(size)) > _MOST_BLOCKS:
        size += 1
    return sizes


def _factors(size: int) -> tuple[int, ...]:
    """Return factors of `size`, of at most _MOST_BLOCKS if possible, the best for lanes last."""
    factors: list[int] = []
    while size > _MOST_BLOCKS:
        small = next((d for d in range(_LANES, 1, -1) if size % d == 0), None)
        if small is None:
            break
        factors.append(small)
        size //= small
    return tuple(reversed([*factors, size] if size > 1 else factors))


def _in_blocks(
    scan: Scan, value: UOp, totals: UOp | None, axis: int, sizes: tuple[int, ...]
) -> UOp:
    """Return the running combination along `axis`, with axes of `sizes` in its place. `totals` are
    those of the smallest blocks; None: they are computed from the elements."""
    lead, _, rest = split_shape(value, axis)
    if len(sizes) == 1:
        return _block_totals(scan, value, axis, sizes[0], is_with_own=True)
    count = sizes[0]
    before = _block_totals(scan, value if totals is None else totals, axis, count)
    if totals is not None:
        totals = _cut_up(totals, axis, count) if len(sizes) > 2 else None
    blocks = _cut_up(value, axis, count)
    scanned = _in_blocks(scan, blocks, totals, axis + 1, sizes[1:])
    ones = (1,) * (len(sizes) - 1)
    before = expanded(reshaped(before, (*lead, count, *ones, *rest)), scanned.shape)
    return scan.pair(before, scanned)


def _block_totals(scan: Scan, source: UOp, axis: int, count: int, is_with_own: bool = False) -> UOp:
    """Return for each of `count` blocks along `axis` the total of those before it (backward: after
    it), with its own total or without."""
    lead, size, rest = split_shape(source, axis)
    width = size // count
    if size > _NESTED:
        # A block begins with the total up to the block before, the first with the neutral value.
        up_to = _running(scan, _totals(scan, source, axis, width), axis, True)
        return _shifted(up_to, axis, -1 if scan.is_backward else 1, scan.neutral)
    inside = _columns(count, size, axis, source, is_with_own, scan.is_backward)
    total = scan.total(_as_rows(source, axis, count), axis + 1, inside)
    return reshaped(total, (*lead, count, *rest))


def _totals(scan: Scan, value: UOp, axis: int, width: int) -> UOp:
    """Return the stored totals of blocks of `width` elements along `axis`."""
    lead, size, rest = split_shape(value, axis)
    total = scan.total(_cut_up(value, axis, size // width), axis + 1, None)
    return contiguous(reshaped(total, (*lead, size // width, *rest)))


# Gradients


def _of_sum(g: UOp, axis: int, x: UOp) -> list[UOp]:
    """Return the sums of `g` from each element on."""
    return [running_sum(g, axis, is_backward=True)]


def _of_backward_sum(g: UOp, axis: int, x: UOp) -> list[UOp]:
    """Return the sums of `g` up to each element."""
    return [running_sum(g, axis)]


def _of_exponentials(g: UOp, axis: int, x: UOp) -> list[UOp]:
    """Return the sums of g[i] * e ** (x - y[i]) from each element on, where y are the results."""
    return [_shares(_Shares(running_exponentials(x, axis), g, _power), x, axis)]


def extremes_gradient(g: UOp, axis: int, x: UOp, positions: UOp) -> list[UOp | None]:
    """Return the gradient of running extrema: of equal values, the one at the position gets it."""
    lead, size, rest = split_shape(x, axis)
    numbers = cast_to(iota(size), positions.dtype)
    numbers = expanded(reshaped(numbers, (size, *(1,) * len(rest))), x.shape)
    return [_shares(_Shares(positions, g, _where_equal), numbers, axis), None]


class _Shares(NamedTuple):
    """The gradients `g` of results `y`. An element x before a result y gets `share(x, y, g)` of its
    gradient. Along the axis y does not decrease, and shares compose: for x, y and z in this order,
    share(x, y, share(y, z, g)) is share(x, z, g)."""

    y: UOp
    g: UOp
    share: Callable[[UOp, UOp, UOp], UOp]

    def total(self, x: UOp, axis: int, inside: UOp | None = None) -> UOp:
        """Return the sum of the shares that `x` gets along `axis`, which keeps size 1."""
        values = self.share(x, self.y, self.g)
        if inside is not None:
            values = inside.where(values, values.like(0))
        return combined(Ops.ADD, values, (axis,))

    def against(self, axis: int, count: int) -> _Shares:
        y, g = (_as_rows(v, axis, count) for v in (self.y, self.g))
        return self._replace(y=y, g=g)

    def blocks(self, axis: int, count: int) -> _Shares:
        """Return the shares with `count` blocks as an axis before `axis`."""
        y, g = (_cut_up(v, axis, count) for v in (self.y, self.g))
        return self._replace(y=y, g=g)

    def totals(self, axis: int, width: int) -> _Shares:
        """Return the stored totals of blocks of `width`: the sums that the first elements get."""
        lead, size, rest = split_shape(self.y, axis)
        blocks, shape = self.blocks(axis, size // width), (*lead, size // width, *rest)
        first = _at(blocks.y, axis + 1, 0)
        total = blocks.total(expanded(first, blocks.y.shape), axis + 1)
        return self._replace(y=reshaped(first, shape), g=contiguous(reshaped(total, shape)))


def _power(x: UOp, y: UOp, g: UOp) -> UOp:
    """Return g * e ** (x - y), or g where x and y are the same infinity. If x is at most y, the
    power is at most 1."""
    return g * x.eq(y).where(x.like(0), x - y).alu(Ops.EXP)


def _where_equal(x: UOp, y: UOp, g: UOp) -> UOp:
    return x.eq(y).where(g, g.like(0))


def _shares(shares: _Shares, x: UOp, axis: int, is_inner: bool = False) -> UOp:
    """Return for each element of `x` the sum of its shares of the gradients from it on."""
    size = x.shape[axis]
    sizes = _block_sizes(size, is_inner)
    missing = 0, math.prod(sizes) - size
    x = _padded(x, axis, missing, 0)
    y = _padded(shares.y, axis, missing, math.inf if x.dtype.is_float else size)
    shares = shares._replace(y=y, g=_padded(shares.g, axis, missing, 0))
    totals = None
    if size <= _NESTED and x.size >= _STORED_TOTALS and len(sizes) > 1:
        totals = shares.totals(axis, sizes[-1])
    whole = _shares_in_blocks(shares, totals, x, axis, sizes)
    if len(sizes) > 1:
        whole = contiguous(whole)
    return slab(reshaped(whole, x.shape), axis, 0, size)


def _shares_in_blocks(
    shares: _Shares, totals: _Shares | None, x: UOp, axis: int, sizes: tuple[int, ...]
) -> UOp:
    """Return the sums with axes of `sizes` in the place of `axis`. Of the gradients after its
    block, an element gets its share of what the last y of the block gets: that y is between."""
    lead, size, rest = split_shape(x, axis)
    if len(sizes) == 1:
        inside = _columns(size, size, axis, x, is_with_own=True, is_after=True)
        square = (*lead, size, size, *rest)
        column = expanded(reshaped(x, (*lead, size, 1, *rest)), square)
        total = shares.against(axis, size).total(column, axis + 1, inside)
        return reshaped(total, x.shape)
    count = sizes[0]
    blocks = shares.blocks(axis, count)
    last = _at(blocks.y, axis + 1, -1)
    after = _shares_after(shares if totals is None else totals, last, axis, count)
    if totals is not None:
        totals = totals.blocks(axis, count) if len(sizes) > 2 else None
    x = _cut_up(x, axis, count)
    shared = _shares_in_blocks(blocks, totals, x, axis + 1, sizes[1:])
    ones = (1,) * (len(sizes) - 1)
    last, after = (
        expanded(reshaped(v, (*lead, count, *ones, *rest)), shared.shape) for v in (last, after)
    )
    return shared + shares.share(reshaped(x, shared.shape), last, after)


def _shares_after(shares: _Shares, last: UOp, axis: int, count: int) -> UOp:
    """Return for each of `count` blocks along `axis` what its `last` y gets of all after it."""
    lead, size, rest = split_shape(shares.y, axis)
    if size > _NESTED:
        # A block is followed by the sums from the next one on, the last block by 0.
        last = reshaped(last, (*lead, count, *rest))
        before = _shifted(last, axis, 1, -math.inf if last.dtype.is_float else -1)
        from_each = _shares(shares.totals(axis, size // count), before, axis, True)
        return _shifted(from_each, axis, -1, 0)
    inside = _columns(count, size, axis, shares.y, is_after=True)
    against = shares.against(axis, count)
    return against.total(expanded(last, against.y.shape), axis + 1, inside)


def _of_product(g: UOp, axis: int, x: UOp) -> list[UOp]:
    """Return for each element the product of all before it, times the sum over i, from it on, of
    g[i] times the product of the elements after it up to x[i]. There is no quotient, so elements
    may be 0."""
    before = _shifted(running_product(x, axis), axis, 1, 1)
    return [before * _horner(x, g, axis)]


def _horner(a: UOp, g: UOp, axis: int) -> UOp:
    """Return s where s[j] = g[j] + a[j + 1] * s[j + 1], and the last s is the last g.

    In blocks: what follows a block is a * s of the next block's first element. It obeys the same
    formula over blocks: in the place of g is its value for each block alone, in the place of a the
    product of each block.
    """
    lead, size, rest = split_shape(a, axis)
    if size <= _PRODUCTS:
        return _horner_in_block(a, g, g.like(0), axis)
    width = next((w for w in _PRODUCT_WIDTHS if size % w == 0), _PRODUCTS)
    count = -(-size // width)
    missing = 0, count * width - size
    shape = (*lead, count, *rest)
    a = _cut_up(_padded(a, axis, missing, 1), axis, count)
    g = _cut_up(_padded(g, axis, missing, 0), axis, count)
    first, products = _at(g, axis + 1, -1), _at(a, axis + 1, -1)
    for place in range(width - 2, -1, -1):
        factor = _at(a, axis + 1, place)
        first = _at(g, axis + 1, place) + _at(a, axis + 1, place + 1) * first
        products = factor * products
    products = reshaped(products, shape)
    begins = reshaped(_at(a, axis + 1, 0) * first, shape)
    follows = contiguous(_horner(_shifted(products, axis, 1, 1), begins, axis))
    follows = _shifted(follows, axis, -1, 0)
    follows = expanded(reshaped(follows, (*lead, count, 1, *rest)), a.shape)
    whole = _horner_in_block(a, g, follows, axis + 1)
    return slab(reshaped(whole, (*lead, count * width, *rest)), axis, 0, size)


def _horner_in_block(a: UOp, g: UOp, follows: UOp, axis: int) -> UOp:
    """Return s of a short axis, step by step from its end: each step sets its element and all
    before it."""
    _, size, rest = split_shape(a, axis)
    numbers = expanded(reshaped(iota(size), (size, *(1,) * len(rest))), g.shape)
    s = follows + expanded(_at(g, axis, -1), g.shape)
    for place in range(size - 2, -1, -1):
        own = expanded(_at(g, axis, place), g.shape)
        factor = expanded(_at(a, axis, place + 1), g.shape)
        s = numbers.alu(Ops.CMPLT, numbers.like(place + 1)).where(own + factor * s, s)
    return s


# Movement


def _columns(
    count: int, size: int, axis: int, value: UOp, is_with_own: bool = False, is_after: bool = False
) -> UOp:
    """Return a mask of `count` rows and `size` columns, in the place of `axis` of `value`: whether
    a column is before the block of columns that belongs to the row (`is_after`: after it), or with
    `is_with_own` in it."""
    lead, _, rest = split_shape(value, axis)
    ones, width = (1,) * len(rest), size // count
    first = expanded(reshaped(iota(count) * width, (count, 1, *ones)), (count, size, *ones))
    column = expanded(reshaped(iota(size), (1, size, *ones)), (count, size, *ones))
    if is_after:
        is_inside = first.alu(Ops.CMPLT, column + 1 if is_with_own else column - (width - 1))
    else:
        is_inside = column.alu(Ops.CMPLT, first + width if is_with_own else first)
    return expanded(is_inside, (*lead, count, size, *rest))


def _as_rows(value: UOp, axis: int, count: int) -> UOp:
    """Return `value` repeated in `count` rows, a new axis at `axis`."""
    lead, size, rest = split_shape(value, axis)
    row = reshaped(value, (*lead, 1, size, *rest))
    return expanded(row, (*lead, count, size, *rest))


def _cut_up(value: UOp, axis: int, count: int) -> UOp:
    """Return `value` with `axis` as `count` blocks."""
    lead, size, rest = split_shape(value, axis)
    return reshaped(value, (*lead, count, size // count, *rest))


def _at(value: UOp, axis: int, place: int) -> UOp:
    """Return the element at `place` of `axis` (negative: from the end), which keeps size 1."""
    place %= value.shape[axis]
    return slab(value, axis, place, place + 1)


def _padded(value: UOp, axis: int, sides: tuple[int, int], fill: Const) -> UOp:
    lead, _, rest = split_shape(value, axis)
    none = (0, 0)
    return padded(value, (*(none,) * len(lead), sides, *(none,) * len(rest)), fill)


def _shifted(value: UOp, axis: int, by: int, fill: Const) -> UOp:
    """Return `value` moved by one element along `axis`, to the end (1) or to the beginning (-1)."""
    size = value.shape[axis]
    if by > 0:
        return _padded(slab(value, axis, 0, size - 1), axis, (1, 0), fill)
    return _padded(slab(value, axis, 1, size), axis, (0, 1), fill)


# --------------------------------------------------------------------------------------------------
# Running reductions: each element combined with all before it.


class Cumulative(Base):
    """cumsum, cumprod, cummax, cummin, logcumsumexp."""

    __slots__ = ()

    def cumsum(self, axis: int = 0, dtype: DType | str | None = None, **others: Never) -> Self:
        """Return at each place along `axis` the sum up to it. Dtypes: as `sum`."""
        if others:
            refuse_keywords(Cumulative.cumsum, others)
        return self._accumulated(Ops.ADD, axis, "cumsum", dtype)

    def cumprod(self, axis: int, dtype: DType | str | None = None, **others: Never) -> Self:
        """Return at each place along `axis` the product up to it. Dtypes: as `prod`."""
        if others:
            refuse_keywords(Cumulative.cumprod, others)
        return self._accumulated(Ops.MUL, axis, "cumprod", dtype)

    def cummax(self, axis: int = 0) -> tuple[Self, Self]:
        """Return at each place along `axis` the greatest value up to it, and its position.

        NaN is the greatest. Dtypes: positions are int32; of equal values, the last one's.
        """
        return self._extremes(Ops.MAX, axis, "cummax")

    def cummin(self, axis: int = 0) -> tuple[Self, Self]:
        """Return at each place along `axis` the least value up to it, and its position.

        NaN is the least. Dtypes: positions are int32; of equal values, the last one's.
        """
        return self._extremes(Ops.MIN, axis, "cummin")

    def logcumsumexp(self, axis: int = 0) -> Self:
        """Return at each place along `axis` the logarithm of the sum of e ** self up to it, which
        overflows nowhere.

        Dtypes: integers and bools are taken as float32.
        """
        place, value = one_axis(axis, self.ndim, "logcumsumexp"), self._wide()
        return self._with(running_exponentials(value.uop, place)).cast(self._fraction())

    def _extremes(self, op: Ops, axis: int, what: str) -> tuple[Self, Self]:
        place = one_axis(axis, self.ndim, what)
        if self.dtype.is_bool:
            op = Ops.ADD if op is Ops.MAX else Ops.MUL
        values = self._with(running_combination(scan_of(op, self.dtype), self.uop, place))
        size = self.shape[place] if self.ndim else 1
        column = (size,) + (1,) * (self.ndim - 1 - place) if self.ndim else ()
        numbers = self._with(reshaped(iota(size), column))
        is_last = self.eq(values)
        if self.dtype.is_float:
            is_last = is_last | self.isnan()
        positions = is_last.where(numbers, -1)
        last = scan_of(Ops.MAX, positions.dtype)
        positions = self._with(running_combination(last, positions.uop, place))
        if self.dtype.is_float and size > 1:
            formula = Formula("running-extreme", place, extremes_gradient)
            sources = self.uop, positions.uop
            values = self._with(with_formula(values.uop, sources, formula))
        return values, positions

    def _accumulated(self, op: Ops, axis: int, what: str, dtype: DType | str | None) -> Self:
        place = one_axis(axis, self.ndim, what)
        kind = sum_dtype(self.dtype) if dtype is None else as_dtype(dtype)
        inside = wide_dtype(kind)
        if dtype is None:
            size = self.shape[place] if self.ndim else 1
            inside = total_dtype(op, self.uop, size)
        combine = running_sum if op is Ops.ADD else running_product
        return self._with(cast_to(combine(cast_to(self.uop, inside), place), kind))
