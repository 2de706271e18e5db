"""Bytes that loops bring into a cache, held against a cache that is simulated line by line."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest

from tests.kernel.support import TARGET, applied, array, kernel_of, upcast
from workbench.cost.cache_traffic import Traffic
from workbench.ir.lower.statement_tree import build_tree
from workbench.ir.nest.accesses import accesses, lanes_of
from workbench.ir.node.exact_range import terms
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, split_gate
from workbench.ir.opt.opt import Opt, OptOps

LINE_BYTES = TARGET.line_bytes
KERNELS = {
    "matmul": (lambda: array(20, 28) @ array(28, 36), ()),
    "tiled": (lambda: array(20, 28) @ array(28, 36), (upcast("g1", 4), upcast("g0", 4))),
    "staged": (
        lambda: array(20, 28) @ array(28, 36),
        (upcast("g1", 4), Opt(OptOps.ORDER, "g1", "g0"), Opt(OptOps.STAGE, "g1", 2)),
    ),
    "column sums": (lambda: array(70, 36).sum(axis=0), ()),
    "row sums": (lambda: array(36, 70).sum(axis=1), ()),
    "add": (lambda: array(3000) + array(3000), ()),
    "transpose": (lambda: array(36, 44).transpose(0, 1).contiguous(), ()),
    "softmax": (lambda: array(12, 180).softmax(), ()),
    "conv": (lambda: array(1, 2, 11, 13).conv2d(array(3, 2, 3, 3)), ()),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("kib", [1, 4, 64])
def test_against_a_simulated_cache(name: str, kib: int) -> None:
    make, opts = KERNELS[name]
    block = build_tree(applied(kernel_of(make()), *opts), TARGET)
    traffic = Traffic(block, LINE_BYTES).into(kib << 10, shared=True)
    counted = simulated(block, kib << 10)
    if counted == 0:
        assert traffic == 0
    else:
        assert 0.5 <= traffic / counted <= 2.6, f"{traffic} and {counted} bytes"


def test_what_fits_stays_and_what_does_not_comes_again() -> None:
    traffic = Traffic(build_tree(kernel_of(array(4096) + array(4096)), TARGET), LINE_BYTES)
    assert traffic.into(64 << 10, shared=True) == 0, "the run before left it all there"
    assert traffic.into(16 << 10, shared=True) == 4 * 4096 * 4, "in, in, in and back"


def test_what_goes_past_the_caches_moves_once() -> None:
    kernel = kernel_of(array(4096) + array(4096))
    (output,) = (n for n in kernel.toposort() if n.op is Ops.PARAM and not n.arg[0])
    traffic = Traffic(build_tree(kernel, TARGET), LINE_BYTES, non_temporal=[output])
    assert traffic.into(16 << 10, shared=True) == 3 * 4096 * 4, "in, in, and out"


def test_lines_far_apart_crowd_each_other_out() -> None:
    """A column of a matrix of 512 lies in one line of 32, and a cache finds lines by low bits."""
    crowded = Traffic(build_tree(kernel_of(array(64, 512).sum(axis=0)), TARGET), LINE_BYTES)
    spread = Traffic(build_tree(kernel_of(array(64, 528).sum(axis=0)), TARGET), LINE_BYTES)
    ratio = crowded.into(32 << 10, True) / spread.into(32 << 10, True)
    assert ratio > 8


def test_longer_lines_move_more_where_a_step_uses_a_part_of_one() -> None:
    block = build_tree(kernel_of(array(64, 528).sum(axis=0)), TARGET)
    short, long = (Traffic(block, n).into(8 << 10, shared=True) for n in (64, 128))
    assert long > 1.5 * short


def test_each_thread_has_a_cache_of_its_own() -> None:
    kernel = applied(kernel_of(array(4096) * 2), Opt(OptOps.THREAD, "g0", 2))
    traffic = Traffic(build_tree(kernel, TARGET), LINE_BYTES)
    assert traffic.into(24 << 10, shared=True) > 0
    assert traffic.into(24 << 10, shared=False) == 0


# a cache of lines that forgets the one not used for longest


def simulated(block: UOp, cache_bytes: int) -> int:
    """Return the bytes that a second run brings in, and writes back."""
    cache_lines: OrderedDict[tuple[UOp, int], bool] = OrderedDict()
    moved = 0
    for _ in range(2):
        moved = 0
        for place, writes in _touches(block, {}):
            was_written = cache_lines.pop(place, None)
            moved += was_written is None
            cache_lines[place] = writes or bool(was_written)
            if len(cache_lines) > cache_bytes // LINE_BYTES:
                moved += cache_lines.popitem(last=False)[1]
    return moved * LINE_BYTES


def _touches(node: UOp, at: dict[UOp, int]) -> Iterator[tuple[tuple[UOp, int], bool]]:
    if node.op is Ops.BLOCK:
        for part in node.src:
            yield from _touches(part, at)
    elif node.op is Ops.LOOP:
        for step in range(node.src[0].extent):
            at[node.src[0]] = step
            for part in node.src[1:]:
                yield from _touches(part, at)
    else:
        yield from _of_statement(node, at)


def _of_statement(node: UOp, at: dict[UOp, int]) -> Iterator[tuple[tuple[UOp, int], bool]]:
    for buffer, parts, offsets, writes in _places(node):
        line = LINE_BYTES // buffer.dtype.itemsize
        base = sum(at[axis] * stride for axis, stride in parts)
        for offset in offsets:
            yield (buffer, (base + offset) // line), writes


@cache
def _places(node: UOp) -> list[tuple[UOp, list[tuple[UOp, int]], list[int], bool]]:
    """Return per access the buffer, the strides of loops, where the lanes are, and if it writes."""
    rows = []
    for access in accesses(node):
        parts, constant = terms(split_gate(access.flat)[0])
        lanes = [(r, k) for r, k in parts.items() if r in lanes_of(node)]
        loops = [(r, k) for r, k in parts.items() if r not in lanes_of(node)]
        assert all(r.op is Ops.RANGE for r in parts)
        steps = product(*[range(0, k * r.extent, k) for r, k in lanes])
        offsets = [constant + sum(step) for step in steps]
        rows.append((access.buffer, loops, offsets, access.writes))
    return rows


def test_lines_of_a_padded_loop_come_in_the_order_of_the_loop_without() -> None:
    """Its steps beyond the end read the last element again: they are few."""
    kernel = kernel_of(array(64, 64) @ array(64, 64))
    plain, padded = (
        Traffic(build_tree(applied(kernel, *opts), TARGET), LINE_BYTES).arrivals
        for opts in ((), (Opt(OptOps.PADTO, "r0", 6),))
    )
    by_slot = [
        {b.slot: a for b, a in each.items() if b.op is Ops.PARAM} for each in (plain, padded)
    ]
    assert [each[2].jump for each in by_slot] == [64, 64]
    assert by_slot[0][2].length == by_slot[1][2].length
