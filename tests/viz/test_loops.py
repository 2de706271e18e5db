"""What the rows of a loop nest say is touched, held against counting it one by one."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from tests.support import count
from tests.viz.support import TARGET, array, kernel_of
from workbench.base.dtypes import dtypes
from workbench.ir.lower.statement_tree import build_tree
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, split_gate
from workbench.ir.opt.apply import apply_opt, legal_opts
from workbench.ir.opt.opt import Opt, OptOps
from workbench.tensor.tensor import Tensor
from workbench.viz.model import loops
from workbench.viz.model.loops import tree_nest
from workbench.viz.model.words import brief_bytes
from workbench.viz.schema.variant import NestRow, UseRow

KERNELS = {
    "matmul": lambda: array(6, 8) @ array(8, 4),
    "transposed": lambda: array(6, 4).transpose(0, 1) + array(4, 6),
    "sum": lambda: array(3, 4, 5).sum(axis=1),
    "flip": lambda: array(12).flip(0) * 2,
    "pad": lambda: array(5, 3).pad(((1, 2), (0, 1))) + 1,
    "shrink": lambda: array(6, 6)[1:5, 2:4] + array(4, 2),
    "reshape": lambda: array(6, 4).transpose(0, 1).reshape(3, 8) + 1,
    "window": lambda: array(9)[0:7] + array(9)[2:9],
}


@pytest.mark.parametrize("name", KERNELS)
def test_loops_of_kernels_against_counting(name: str) -> None:
    kernel = kernel_of(KERNELS[name]())
    hold_against_counting(kernel)
    for opt in legal_opts(kernel, TARGET)[::5]:
        hold_against_counting(apply_opt(kernel, opt, TARGET)[0])


@pytest.mark.parametrize("seed", range(count(120, 10)))
def test_loops_of_random_kernels_and_opts_against_counting(seed: int) -> None:
    dice = random.Random(seed)
    kernel = kernel_of(_random_tensor(dice))
    hold_against_counting(kernel)
    for _ in range(dice.randint(1, 4)):
        kernel = apply_opt(kernel, dice.choice(legal_opts(kernel, TARGET) or [None]), TARGET)[0]
        hold_against_counting(kernel)


def _random_tensor(dice: random.Random) -> Tensor:
    """Return a value of small arrays that are read in some order, or in overlapping windows."""
    a, b, c = (dice.randint(2, 7) for _ in range(3))
    match dice.randrange(5):
        case 0:
            return array(a, b) @ array(b, c)
        case 1:
            step, wide = dice.randint(1, 2), dice.randint(1, 3)
            x = array(1, dice.randint(1, 3), a + 2, b + 2)
            return x.conv2d(array(2, x.shape[1], wide, wide), stride=step, padding=wide // 2)
        case 2:
            return array(a, b, c).permute(dice.sample(range(3), 3)).sum(axis=dice.randrange(3))
        case 3:
            x = array(4 * a, b)[:: dice.randint(1, 3)].pad(((1, 0), (0, 2)))
            return x.flip(dice.randrange(2)) * 2 + 1
        case _:
            x = array(a, 3 * b).transpose(0, 1).reshape(3, a * b)
            return x * array(3, 1) + x.max(axis=dice.randrange(2), keepdim=True)


def test_an_outer_loop_touches_no_fewer_bytes_than_one_in_it() -> None:
    kernel = kernel_of(array(1, 2, 6, 6).conv2d(array(2, 2, 3, 3)))
    for opt in (Opt(OptOps.UPCAST, "g2", 4), *(Opt(OptOps.UNROLL, r, 3) for r in ("r2", "r1"))):
        kernel = apply_opt(kernel, opt, TARGET)[0]
    hold_against_counting(kernel)


def hold_against_counting(kernel: UOp) -> None:
    """Compare every loop's strides with where its steps lead, and its bytes with what running
    its statements touches."""
    block = build_tree(kernel, TARGET)
    rows = [r for r in tree_nest(block).rows if r.kind == "loop"]
    loops = [n for n in _preorder(block) if n.op is Ops.LOOP]
    assert [r.axis for r in rows] == [n.src[0].axis_name for n in loops]
    _hold_inner_below_outer(tree_nest(block).rows)
    for row, loop in zip(rows, loops, strict=True):
        for name, use in row.uses.items():
            _compare(use, _most_touched(loop, name))
            steps = _steps(loop, name)
            if all(len(values) == 1 for values in steps):
                assert use.stride == ",".join(map(str, sorted(set().union(*steps))))
            else:
                assert use.stride == "varies"


def _hold_inner_below_outer(rows: Sequence[NestRow]) -> None:
    around: list[NestRow] = []
    for row in rows:
        del around[row.depth :]
        for name, use in row.uses.items() if around else ():
            assert use.n <= around[-1].uses[name].n
        around += [row] if row.uses else []


def _compare(use: UseRow, counted: int) -> None:
    assert brief_bytes(use.bytes) == use.cell[0], "text and table have one unit"
    if _is_exact(use):
        assert use.n == counted * 4
    else:
        assert use.n >= counted * 4


def _is_exact(use: UseRow) -> bool:
    return not use.bytes.startswith("<= ")


def _preorder(node: UOp) -> list[UOp]:
    nodes = [node]
    for below in node.src:
        if below.op in (Ops.LOOP, Ops.STORE, Ops.ACCUMULATE):
            nodes += _preorder(below)
    return nodes


def _most_touched(loop: UOp, name: str) -> int:
    """Return the most elements of buffer `name` that one run of `loop` touches, by the addresses
    of every access at every step."""
    inner = {n.src[0] for n in _preorder(loop) if n.op is Ops.LOOP}
    accesses = _accesses(loop, name)
    ranges = {r for n in accesses for i in n.src[1:] for r in i.ranges}
    outer = sorted((r for r in ranges if r not in inner and not r.axis_kind.is_lane), key=str)
    order = outer + sorted(ranges - set(outer), key=str)
    grid = np.meshgrid(*[np.arange(r.extent) for r in order], indexing="ij")
    at = dict(zip(order, grid, strict=True))
    shape = [r.extent for r in order]
    elements = [np.broadcast_to(_element(n.src[0], n.src[1:], at), shape) for n in accesses]
    rounds = math.prod(r.extent for r in outer)
    by_round = np.concatenate([each.reshape(rounds, -1) for each in elements], axis=1)
    return max(np.unique(row[row >= 0]).size for row in by_round)


def _element(memory: UOp, places: Sequence[UOp], at: dict[UOp, Any]) -> Any:
    """Return the element of a buffer at some indexes, at each step; -1 where a gate is closed."""
    shape = (1,) if memory.op is Ops.PARAM else memory.arg.shape
    values = [_values(place, at) for place in places]
    total: Any = 0
    for (index, _), extent in zip(values, shape, strict=True):
        total = total * extent + index
    return np.where(np.logical_and.reduce(np.broadcast_arrays(*[g for _, g in values])), total, -1)


def _values(place: UOp, at: dict[UOp, Any]) -> tuple[Any, Any]:
    """Return the values of an index, and where its gate is open."""
    plain, gate = split_gate(place)
    values = dict(at)
    for node in UOp.sink(plain, *([gate] if gate is not None else [])).toposort():
        if node.op is Ops.CONST:
            values[node] = node.arg
        elif node not in values and node.op is not Ops.SINK:
            values[node] = _ARITHMETIC[node.op](*[values[s] for s in node.src])
    return values[plain], True if gate is None else values[gate]


def _accesses(loop: UOp, name: str) -> set[UOp]:
    """Return the INDEX nodes of buffer `name` in a loop."""
    return {
        n
        for s in _preorder(loop)
        for n in s.toposort()
        if n.op is Ops.INDEX and _memory_name(n.src[0]) == name
    }


def _steps(loop: UOp, name: str) -> list[set[int]]:
    """Return, for each access of a buffer in a loop, all that its steps move on by, in elements:
    wherever the other ranges stand."""
    axis, step_sets = loop.src[0], []
    for access in _accesses(loop, name):
        places = [split_gate(place)[0] for place in access.src[1:]]
        others = sorted({r for p in places for r in p.ranges if r is not axis}, key=str)
        steps = set()
        for fixed in product(*[range(r.extent) for r in others]):
            at = dict(zip(others, fixed, strict=True))
            flat = [
                int(_element(access.src[0], places, {**at, axis: i})) for i in range(axis.extent)
            ]
            steps |= {after - before for before, after in pairwise(flat)}
        step_sets.append(steps or {0})
    return step_sets


def _memory_name(memory: UOp) -> str:
    return f"p{memory.arg[0]}" if memory.op is Ops.PARAM else str(memory.arg.name)


_ARITHMETIC = {
    Ops.ADD: lambda a, b: a + b,
    Ops.MUL: lambda a, b: a * b,
    Ops.IDIV: lambda a, b: a // b,
    Ops.MOD: lambda a, b: a % b,
    Ops.CMPLT: lambda a, b: a < b,
    Ops.CMPLE: lambda a, b: a <= b,
    Ops.AND: np.logical_and,
    Ops.NOT: np.logical_not,
    Ops.MAX: np.maximum,
    Ops.MIN: np.minimum,
    Ops.NEG: lambda a: -a,
}


def test_a_large_nest_is_quick_and_exact() -> None:
    big = kernel_of(array(512, 300) @ array(300, 400))
    row = tree_nest(build_tree(big, TARGET)).rows[0]
    sizes = {n: u.n for n, u in row.uses.items()}
    assert sizes == {"p0": 4 * 512 * 400, "p1": 4 * 512 * 300, "p2": 4 * 300 * 400}
    assert all(_is_exact(u) for u in row.uses.values())


def test_a_condition_on_loops_has_a_row_and_what_it_guards_stands_further_in() -> None:
    block = build_tree(kernel_of(array(8) + 1), TARGET)
    (loop,) = (n for n in block.toposort() if n.op is Ops.LOOP)
    branch = UOp(Ops.IF, dtypes.void, (loop.axis < 4, *loop.body))
    conditional = UOp(Ops.LOOP, loop.dtype, (loop.axis, branch), loop.arg)
    rows = tree_nest(UOp(Ops.BLOCK, dtypes.void, (conditional,))).rows
    assert [row.kind for row in rows] == ["loop", "statement", "statement"]
    head, guarded = (row.text for row in rows[1:])
    assert head.startswith("if ") and head.endswith(":") and guarded.startswith("  p0[")
    assert rows[0].uses, "what is guarded counts"


def test_a_column_is_held_by_the_cache_of_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each element is in a line of its own, and the lines of a column compete for a few sets."""
    levels = (("L1", 48 << 10), ("L2", 2 << 20))
    monkeypatch.setattr(loops, "caches", lambda: levels)
    monkeypatch.setattr(loops, "line_bytes", lambda: 64)
    monkeypatch.setattr(loops, "cache_ways", lambda: (("L1", 12), ("L2", 16)))
    rows = tree_nest(build_tree(kernel_of(array(256, 256) @ array(256, 256)), TARGET)).rows
    (row,) = (row for row in rows if row.axis == "r0")
    (a, b) = row.uses["p1"], row.uses["p2"]
    assert (a.bytes, a.lines, a.level, a.cell) == ("1 KiB", "", "L1", ["1K", "L1"])
    assert (b.bytes, b.lines, b.level, b.cell) == ("1 KiB", "16 KiB", "L2", ["1K", "L2"])
    assert b.held == 256 << 10, "as much as all that lies between them"
