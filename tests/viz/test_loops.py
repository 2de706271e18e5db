"""What the rows of a loop nest say is touched, held against counting it one by one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import pytest

from tests.viz.support import TARGET, array, kernel_of
from workbench.base.dtypes import dtypes
from workbench.ir.lower.statement_tree import build_tree
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, split_gate
from workbench.ir.opt.apply import apply_opt, legal_opts
from workbench.viz.model import loops
from workbench.viz.model.loops import tree_nest
from workbench.viz.schema.variant import UseRow

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


def hold_against_counting(kernel: UOp) -> None:
    """Compare every loop's strides with where its steps lead, and its bytes with what running
    its statements touches."""
    block = build_tree(kernel, TARGET)
    rows = [r for r in tree_nest(block).rows if r.kind == "loop"]
    loops = [n for n in _preorder(block) if n.op is Ops.LOOP]
    assert [r.axis for r in rows] == [n.src[0].axis_name for n in loops]
    for row, loop in zip(rows, loops, strict=True):
        for name, use in row.uses.items():
            _compare(use, _most_touched(loop, name))
            steps = _steps(loop, name)
            if all(len(values) == 1 for values in steps):
                assert use.stride == ",".join(map(str, sorted(set().union(*steps))))
            else:
                assert use.stride == "varies"


def _compare(use: UseRow, counted: int) -> None:
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
    """Return the most elements of buffer `name` that one run of `loop` touches."""
    inner = {n.src[0] for n in _preorder(loop) if n.op is Ops.LOOP}
    places = {n.src[1:] for n in _accesses(loop, name)}
    ranges = {r for p in places for i in p for r in i.ranges}
    outer = sorted((r for r in ranges if r not in inner and not r.axis_kind.is_lane), key=str)
    inside = sorted(ranges - set(outer), key=str)
    most = 0
    for fixed in product(*[range(r.extent) for r in outer]):
        at = dict(zip(outer, fixed, strict=True))
        reached = set()
        for steps in product(*[range(r.extent) for r in inside]):
            values = at | dict(zip(inside, steps, strict=True))
            reached |= {tuple(_value(i, values) for i in p) for p in places}
        most = max(most, sum(None not in place for place in reached))
    return most


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
                _flat(access.src[0], [_value(p, {**at, axis: i}) for p in places])
                for i in range(axis.extent)
            ]
            steps |= {after - before for before, after in pairwise(flat)}
        step_sets.append(steps or {0})
    return step_sets


def _flat(memory: UOp, place: Sequence[int | None]) -> int:
    """Return how many elements of a buffer lie before one of them."""
    shape = (1,) if memory.op is Ops.PARAM else memory.arg.shape
    total = 0
    for index, extent in zip(place, shape, strict=True):
        assert index is not None
        total = total * extent + index
    return total


def _memory_name(memory: UOp) -> str:
    return f"p{memory.arg[0]}" if memory.op is Ops.PARAM else str(memory.arg.name)


def _value(place: UOp, at: dict[UOp, int]) -> int | None:
    plain, gate = split_gate(place)
    values: dict[UOp, int | bool] = dict(at)
    for node in UOp.sink(plain, *([gate] if gate is not None else [])).toposort():
        if node.op is Ops.CONST:
            values[node] = node.arg
        elif node not in values and node.op is not Ops.SINK:
            values[node] = _ARITHMETIC[node.op](*[values[s] for s in node.src])
    return int(values[plain]) if gate is None or values[gate] else None


_ARITHMETIC = {
    Ops.ADD: lambda a, b: a + b,
    Ops.MUL: lambda a, b: a * b,
    Ops.IDIV: lambda a, b: a // b,
    Ops.MOD: lambda a, b: a % b,
    Ops.CMPLT: lambda a, b: a < b,
    Ops.CMPLE: lambda a, b: a <= b,
    Ops.AND: lambda a, b: a and b,
    Ops.NOT: lambda a: not a,
    Ops.MAX: max,
    Ops.MIN: min,
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
    assert (b.bytes, b.lines, b.level, b.cell) == ("1 KiB", "16 KiB", "L2", ["16K", "L2"])
    assert b.held == 256 << 10, "as much as all that lies between them"
