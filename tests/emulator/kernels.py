"""Textbook kernels, written by hand. Each is right as it stands; its arguments make it wrong, or
slow, in one way."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tests.emulator.assembly import Assembly
from workbench.base.dtypes import dtypes
from workbench.base.target import Target
from workbench.emulator.steps import Trace
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

Array = np.ndarray[Any, Any]


class Handwritten(NamedTuple):
    """A program, what it should compute, and of what."""

    program: Assembly
    output: Array
    inputs: tuple[Array, ...]
    is_fresh: bool = True

    def run(self, **target: Target) -> Trace:
        p, output, inputs, is_fresh = self
        return p.run(output, *inputs, is_fresh=is_fresh, **target)


def numbers(*shape: int) -> Array:
    rng = np.random.default_rng(0)
    return rng.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32)


def transpose(
    rows: int = 64,
    columns: int = 96,
    tiled: bool = True,
    by_columns: bool = False,
    barrier: bool = True,
    pad: int = 1,
    size: int | None = None,
    read_stride: int | None = None,
    fill_rows: str = "y",
    fills: int = 4,
    drains: int = 4,
    swapped: bool = False,
    lost_group: bool = False,
    group_step: int = 32,
    in_place: bool = False,
) -> Handwritten:
    """A matrix by tiles of 32 x 32 that 32 x 8 work-items move through shared memory (M. Harris,
    An Efficient Matrix Transpose in CUDA C/C++)."""
    p = Assembly(grid=(columns // 32, rows // 32), group=(32, 8))
    (gx, gy), (lx, ly) = p.groups, p.items
    x = p.param(0 if in_place else 1, rows * columns)
    y = p.param(0, rows * columns)
    stride = 32 + pad
    gx_out, gy_out = (gy, gx) if swapped else (gx, gy)
    first_row = 0 if lost_group else gx_out * group_step
    tile = p.shared("tile", 32 * stride if size is None else size) if tiled else None
    with p.loop(fills) as r:
        row, column = gy * 32 + r * 8 + ly, gx * 32 + lx
        if by_columns:
            row, column = gy * 32 + lx, gx * 32 + r * 8 + ly
        value = p.load(x, row * columns + column)
        if tile is None:
            p.store(y, column * rows + row, value)
        else:
            in_tile = lx if fill_rows == "x" else r * 8 + ly
            p.store(tile, in_tile * stride + lx, value)
    if tile is not None:
        p.barrier(barrier)
        read = stride if read_stride is None else read_stride
        with p.loop(drains) as r:
            value = p.load(tile, lx * read + r * 8 + ly)
            place = (first_row + r * 8 + ly) * rows + gy_out * 32 + lx
            p.store(y, place, value)
    matrix = numbers(rows, columns)
    if in_place:
        return Handwritten(p, matrix.T.copy(), (), is_fresh=False)
    return Handwritten(p, matrix.T.copy(), (matrix,))


def tree_sum(
    n: int = 1000,
    width: int = 64,
    steps: tuple[int, ...] = (32, 16, 8, 4, 2, 1),
    barrier_before: bool = True,
    barrier_after: tuple[int, ...] | None = None,
    barrier_inside: bool = False,
    guard: bool = True,
    one_writes: bool = True,
    gate: int | None = None,
    output: str = "group",
    fillers: int | None = None,
    accumulates: bool = False,
) -> Handwritten:
    """Each group sums 128 neighbours to one number by a tree in shared memory (M. Harris,
    Optimizing Parallel Reduction in CUDA)."""
    groups = -(-n // (2 * width))
    p = Assembly(grid=(groups,), group=(width,))
    (g,), (lane,) = p.groups, p.items
    x, y, s = p.param(1, n), p.param(0, groups), p.shared("sums", width)
    end = n if gate is None else gate
    first = g * (2 * width) + lane
    parts = [p.load(x, place, place < end if end else None) for place in (first, first + width)]
    with p.when(lane < (fillers or 0), stands=fillers is not None):
        p.store(s, lane, parts[0] + parts[1])
    p.barrier(barrier_before)
    for number, step in enumerate(steps):
        with p.when(lane < step, stands=guard):
            p.store(s, lane, p.load(s, lane) + p.load(s, lane + step))
            p.barrier(barrier_inside)
        after = barrier_after is None or number in barrier_after
        p.barrier(after and not barrier_inside)
    with p.when(lane < 1, stands=one_writes):
        total = p.load(s, 0)
        if accumulates:
            total = p.load(y, g) + total
        p.store(y, {"group": g, "item": lane}[output], total)
    values = numbers(n)
    padded = np.concatenate([values, np.zeros(groups * 2 * width - n, np.float32)])
    return Handwritten(p, padded.reshape(groups, -1).sum(1), (values,))


def interleaved_sum(by: str) -> Handwritten:
    """The tree with neighbours first: every second work-item adds ("branches"), or the first half
    do, at a stride ("strides") (steps 1 and 2 of Harris)."""
    p = Assembly(grid=(2,), group=(64,))
    (g,), (lane,) = p.groups, p.items
    x, y, s = p.param(1, 128), p.param(0, 2), p.shared("sums", 64)
    p.store(s, lane, p.load(x, g * 64 + lane))
    p.barrier()
    step = 1
    while step < 64:
        place = lane if by == "branches" else lane * (2 * step)
        adds = lane.alu(Ops.CMOD, UOp.index(2 * step)).eq(0) if by == "branches" else place < 64
        with p.when(adds):
            p.store(s, place, p.load(s, place) + p.load(s, place + step))
        p.barrier()
        step *= 2
    with p.when(lane < 1):
        p.store(y, g, p.load(s, 0))
    values = numbers(128)
    return Handwritten(p, values.reshape(2, 64).sum(1), (values,))


def shared_scale(barrier: bool = True) -> Handwritten:
    """The first work-item of a group computes what all of them then use."""
    p = Assembly(grid=(4,), group=(64,))
    (g,), (lane,) = p.groups, p.items
    x, y, s = p.param(1, 256), p.param(0, 256), p.shared("scale", 1)
    with p.when(lane < 1):
        p.store(s, 0, p.load(x, g * 64) * 2.0)
    p.barrier(barrier)
    p.store(y, g * 64 + lane, p.load(x, g * 64 + lane) * p.load(s, 0))
    values = numbers(256)
    rows = values.reshape(4, 64)
    return Handwritten(p, (rows * rows[:, :1] * 2).ravel(), (values,))


def stencil(
    left_halo: bool = True,
    left_gate: bool = True,
    write_at: int = 1,
    read_at: int = 0,
    guard: bool = True,
    size: int = 66,
    early_exit: bool = False,
    in_place: bool = False,
) -> Handwritten:
    """Sums of three neighbours, by groups of 64 that read their elements and a halo on each side
    (CUDA by Example's and many a course's first use of shared memory)."""
    n = 1000
    p = Assembly(grid=(16,), group=(64,))
    (g,), (lane,) = p.groups, p.items
    x, y = p.param(0 if in_place else 1, n), p.param(0, n)
    tile = p.shared("tile", size)
    i = g * 64 + lane
    p.store(tile, lane + write_at, p.load(x, i, i < n))
    with p.when(lane < 1):
        if left_halo:
            p.store(tile, 0, p.load(x, i - 1, UOp.index(0) < i if left_gate else None))
        p.store(tile, 65, p.load(x, i + 64, i < n - 64))
    with p.when(i < n, stands=early_exit):
        p.barrier()
        with p.when(i < n, stands=guard and not early_exit):
            a, b, c = (p.load(tile, lane + read_at + k) for k in range(3))
            p.store(y, i, a + b + c)
    values = numbers(n)
    total = np.convolve(values, np.ones(3, np.float32), "same").astype(np.float32)
    return Handwritten(p, total, () if in_place else (values,), not in_place)


def product(
    barriers: tuple[bool, bool] = (True, True),
    hoisted: bool = False,
    swapped_fill: bool = False,
    starts: bool = True,
    rounds: int = 3,
    wrong_rows: bool = False,
) -> Handwritten:
    """Matrices by tiles of 16 x 16 (Kirk and Hwu, Programming Massively Parallel Processors)."""
    m, n, k = 32, 32, 48
    p = Assembly(grid=(n // 16, m // 16), group=(16, 16))
    (gx, gy), (lx, ly) = p.groups, p.items
    a, b, c = p.param(1, m * k), p.param(2, k * n), p.param(0, m * n)
    As, Bs, acc = p.shared("As", 256), p.shared("Bs", 256), p.register("acc")
    if starts:
        p.set(acc, 0.0)
    row = (gx if wrong_rows else gy) * 16 + ly
    with p.loop(rounds) as r:
        p.store(As, ly * 16 + lx, p.load(a, row * k + r * 16 + lx))
        place = lx * 16 + ly if swapped_fill else ly * 16 + lx
        p.store(Bs, place, p.load(b, (r * 16 + ly) * n + gx * 16 + lx))
        p.barrier(barriers[0] and not hoisted)
        with p.loop(16) as step:
            left, right = p.load(As, ly * 16 + step), p.load(Bs, step * 16 + lx)
            p.set(acc, acc + left * right)
        p.barrier(barriers[1] and not hoisted)
    p.barrier(hoisted)
    p.store(c, (gy * 16 + ly) * n + gx * 16 + lx, acc)
    left, right = numbers(m, k) / 64, numbers(k, n) / 64
    return Handwritten(p, left @ right, (left, right))


def prefix_sums(buffers: int = 2, first: int = 0, barriers: bool = True) -> Handwritten:
    """Running sums of 64, doubling the reach at each step (Hillis and Steele), from one buffer to
    the other and back."""
    p = Assembly(grid=(1,), group=(64,))
    (lane,) = p.items
    x, y = p.param(1, 64), p.param(0, 64)
    sums = [p.shared(f"sums{b}", 64) for b in range(buffers)]
    p.store(sums[0], lane, p.load(x, lane))
    p.barrier()
    for number, reach in enumerate((1, 2, 4, 8, 16, 32)):
        source, other = (sums[(number + first + b) % buffers] for b in range(2))
        before = p.load(source, lane - reach, lane >= reach)
        p.store(other, lane, p.load(source, lane) + before)
        p.barrier(barriers)
    p.store(y, lane, p.load(sums[0], lane))
    values = numbers(64)
    return Handwritten(p, np.cumsum(values, dtype=np.float32), (values,))


def histogram(private: bool = True) -> Handwritten:
    """How often each of 4 digits occurs in 256: each work-item counts one digit, or (wrong) each
    adds 1 to the count of its own."""
    p = Assembly(grid=(1,), group=(64,))
    (lane,) = p.items
    x, y = p.param(1, 256, dtypes.int32), p.param(0, 4, dtypes.int32)
    if private:
        with p.when(lane < 4):
            total = p.register("total", dtypes.int32)
            p.set(total, 0)
            with p.loop(256) as r:
                p.set(total, total + p.load(x, r).eq(lane.cast(dtypes.int32)).cast(dtypes.int32))
            p.store(y, lane, total)
    else:
        with p.loop(4) as r:
            digit = p.load(x, r * 64 + lane).cast(dtypes.index)
            p.store(y, digit, p.load(y, digit) + 1)
    digits = np.random.default_rng(0).integers(0, 4, 256, np.int32)
    counts = np.bincount(digits, minlength=4).astype(np.int32)
    return Handwritten(p, counts, (digits,), is_fresh=private)


def scaled_copy(
    shift: int = 0, stride: int = 1, guard: bool = True, one_item: bool = False
) -> Handwritten:
    """Twice the elements `stride` apart from `shift` on."""
    n = 1000
    p = Assembly(grid=(16,), group=(64,))
    (g,), (lane,) = p.groups, p.items
    x, y = p.param(1, n * stride + shift), p.param(0, n)
    i = g * 64 + lane
    if one_item:
        with p.when(lane < 1), p.loop(64) as r, p.when(i + r < n):
            p.store(y, i + r, p.load(x, i + r) * 2.0)
    else:
        with p.when(i < n, stands=guard):
            p.store(y, i, p.load(x, i * stride + shift) * 2.0)
    values = numbers(n * stride + shift)
    return Handwritten(p, values[shift::stride][:n] * 2, (values,))


def branches(
    inside: str = "", set_by: int = 64, index_from: int = 64, reader: str = "own"
) -> Handwritten:
    """Barriers and values in branches: a barrier on one of two ways ("some"), on each ("both"), or
    where whole groups go the same way ("groups"); a register that `set_by` work-items set; an index
    from a cell that `index_from` of them write; an element that another group writes ("group")."""
    p = Assembly(grid=(2,), group=(64,))
    (g,), (lane,) = p.groups, p.items
    x, y = p.param(1, 128), p.param(0, 128)
    cells = p.shared("places", 64, dtypes.int32)
    value = p.register("value")
    ways = g < 1 if inside == "groups" else lane < 32
    with p.when(ways, stands=inside != ""):
        p.barrier(inside != "")
    with p.when(lane >= 32, stands=inside == "both"):
        p.barrier(inside == "both")
    with p.when(lane < set_by, stands=set_by < 64):
        p.set(value, 1.0)
    with p.when(lane < index_from, stands=index_from < 64):
        p.store(cells, lane, lane.cast(dtypes.int32))
    p.barrier()
    place = p.load(cells, UOp.index(63) - lane).cast(dtypes.index)
    p.store(y, g * 64 + lane, p.load(x, g * 64 + 63 - place) + value)
    if reader == "group":
        p.barrier()
        with p.when(g < 1):
            p.store(y, lane, p.load(y, lane + 64))
    values = numbers(128)
    return Handwritten(p, values + 1, (values,))


def vectors(step: int = 4) -> Handwritten:
    """A copy by vectors of four, which work-items write `step` apart."""
    p = Assembly(grid=(4,), group=(64,))
    (g,), (lane,) = p.groups, p.items
    x, y, i = p.param(1, 1024), p.param(0, 1024), g * 64 + lane
    p.store(y, i * step, p.load(x, i * 4, lanes=4))
    values = numbers(1024)
    return Handwritten(p, values.copy(), (values,))


def many_groups(reads_first: bool = False) -> Handwritten:
    """A copy by 2,000 groups, of which the last may read what the first one writes."""
    n = 2000 * 64
    p = Assembly(grid=(2000,), group=(64,))
    (g,), (lane,) = p.groups, p.items
    x, y, i = p.param(1, n), p.param(0, n), g * 64 + lane
    p.store(y, i, p.load(x, i))
    with p.when(UOp.index(1998) < g, stands=reads_first):
        if reads_first:
            p.store(y, i, p.load(y, 0))
    values = numbers(n)
    return Handwritten(p, values.copy(), (values,))


def numbered(shape: str) -> Handwritten:
    """The number of the group, in groups of three dimensions, or of 40 work-items."""
    grid, group = ((2, 3, 2), (4, 2, 3)) if shape == "3d" else ((3, 1, 1), (40, 1, 1))
    p = Assembly(grid, group)
    (gx, gy, gz), (lx, ly, lz) = p.groups, p.items
    items, groups = int(np.prod(group)), int(np.prod(grid))
    number = (gz * grid[1] + gy) * grid[0] + gx
    place = number * items + (lz * group[1] + ly) * group[0] + lx
    p.store(p.param(0, groups * items), place, number.cast(dtypes.float32))
    return Handwritten(p, np.repeat(np.arange(groups), items).astype(np.float32), ())
