"""Bounds hold every value that an expression takes, evaluated with Python's own integers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ir.samples import F, axis, load, param
from tests.support import by_rows
from workbench.base.dtypes import DType, dtypes
from workbench.ir.meaning.values import cast_array
from workbench.ir.node.exact_range import exact_range
from workbench.ir.node.ops import COMPARE, OPS, Ops
from workbench.ir.node.uop import UOp, gated

INTEGER = [Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.MIN, Ops.AND, Ops.OR, Ops.XOR]
INTEGER += [Ops.SHL, Ops.SHR]
LOGIC = [Ops.AND, Ops.OR, Ops.XOR]


def evaluate(root: UOp, steps: Mapping[UOp, int]) -> int | bool:
    """Return the value at one step of the ranges, in Python."""
    values: dict[UOp, int | bool] = dict(steps)
    for node in root.toposort():
        if node not in values:
            values[node] = wrap(python(node, [values[s] for s in node.src]), node.dtype)
    return values[root]


def python(node: UOp, src: list[int | bool]) -> int | bool:
    if node.op in (Ops.CONST, Ops.CAST, Ops.NEG, Ops.NOT, Ops.WHERE):
        match node.op:
            case Ops.CONST:
                return node.arg  # type: ignore[no-any-return]
            case Ops.CAST:
                return src[0] != 0 if node.dtype.is_bool else int(src[0])
            case Ops.NEG:
                return -src[0]
            case Ops.NOT:
                return not src[0] if node.dtype.is_bool else ~src[0]
        return src[1] if src[0] else src[2]
    a, b = src
    match node.op:
        case Ops.ADD:
            return a + b
        case Ops.MUL:
            return a * b
        case Ops.IDIV:
            return a // b if b else 0
        case Ops.MOD:
            return a % b if b else 0
        case Ops.SHL | Ops.SHR:
            fits = 0 <= b < node.dtype.bits
            return (a << b if node.op is Ops.SHL else a >> b) if fits else 0
    return {
        Ops.MAX: max(a, b), Ops.MIN: min(a, b), Ops.AND: a & b, Ops.OR: a | b, Ops.XOR: a ^ b,
        Ops.CMPLT: a < b, Ops.CMPLE: a <= b, Ops.CMPEQ: a == b, Ops.CMPNE: a != b,
    }[node.op]  # fmt: skip


def wrap(value: int | bool, dtype: DType) -> int | bool:
    if dtype.is_bool:
        return bool(value)
    value = int(value) & ((1 << dtype.bits) - 1)
    return value - (1 << dtype.bits) if value > int(dtype.max) else value


RANGES = (axis("g0", 5), axis("g1", 3))
DTYPES = [dtypes.index, dtypes.int8, dtypes.uint8, dtypes.int64]


@st.composite
def expressions(draw: st.DrawFn, dtype: DType | None = None, depth: int = 4) -> UOp:
    dtype = draw(st.sampled_from(DTYPES)) if dtype is None else dtype
    if dtype.is_bool:
        if depth > 1 and draw(st.booleans()):
            parts = [draw(expressions(dtype, depth - 1)) for _ in range(2)]
            return parts[0].alu(draw(st.sampled_from(LOGIC)), parts[1])
        sides = draw(st.sampled_from(DTYPES))
        parts = [draw(expressions(sides, depth - 1)) for _ in range(2)]
        return parts[0].alu(draw(st.sampled_from(sorted(COMPARE, key=str))), parts[1])
    kind = draw(st.sampled_from(["leaf", "binary", "binary", "binary", "unary", "where", "cast"]))
    if depth <= 0 or kind == "leaf":
        if draw(st.booleans()):
            return draw(st.sampled_from(RANGES)).cast(dtype)
        small, any_ = st.integers(-9, 9), st.integers(int(dtype.min), int(dtype.max))
        return UOp.const(dtype, draw(st.one_of(small, small, any_)))
    if kind == "unary":
        return draw(expressions(dtype, depth - 1)).alu(draw(st.sampled_from([Ops.NEG, Ops.NOT])))
    if kind == "cast":
        source = draw(st.sampled_from([*DTYPES, dtypes.bool]))
        return draw(expressions(source, depth - 1)).cast(dtype)
    left, right = (draw(expressions(dtype, depth - 1)), draw(expressions(dtype, depth - 1)))
    if kind == "where":
        return draw(expressions(dtypes.bool, depth - 1)).where(left, right)
    return left.alu(draw(st.sampled_from(INTEGER)), right)


@given(st.one_of(expressions(), expressions(dtypes.bool)))
def test_bounds_hold_every_value(node: UOp) -> None:
    least, greatest = node.bounds
    for steps in product(*[range(r.extent) for r in RANGES]):
        value = evaluate(node, dict(zip(RANGES, steps, strict=True)))
        assert least <= value <= greatest


@given(expressions(dtypes.index, 3))
def test_reach_is_within_bounds_and_holds_every_value(node: UOp) -> None:
    steps = [dict(zip(RANGES, s, strict=True)) for s in product(*[range(r.extent) for r in RANGES])]
    values = [evaluate(node, s) for s in steps]
    least, greatest = exact_range(node)
    if max(map(abs, values)) < 1 << 40 and max(map(abs, (least, greatest))) < 1 << 40:
        assert least <= min(values) and max(values) <= greatest


i, j, n = axis("g0", 10), axis("g1", 4), axis("r0", 0)
EXACT = {
    i * 4 + j: (0, 39),
    i * -3 + 5: (-22, 5),
    (i + 3) // 4: (0, 3),
    (i - 3) // 4: (-1, 1),
    (i + 10) % 16: (0, 15),
    (i + 20) % 16: (4, 13),
    (j + 20) % 16: (4, 7),
    (i - 3) % 4: (0, 3),
    (i - 3).alu(Ops.CMOD, i.like(4)): (-3, 3),
    (i - 2).alu(Ops.CMOD, i.like(9)): (-2, 7),
    (i - 9).alu(Ops.CDIV, i.like(4)): (-2, 0),
    (i - 3).alu(Ops.CDIV, i.like(-4)): (-1, 0),
    i % j: (dtypes.index.min, dtypes.index.max),
    i // (j - 2): (dtypes.index.min, dtypes.index.max),
    i.alu(Ops.MAX, i.like(4)): (4, 9),
    (i < 5).where(i, j + 100): (0, 103),
    gated(i, i < 5): (0, 9),
    i < 10: (True, True),
    i < 0: (False, False),
    i < 9: (False, True),
    i <= 8: (False, True),
    i.alu(Ops.CMPEQ, i.like(12)): (False, False),
    i.alu(Ops.CMPNE, i.like(12)): (True, True),
    (i < 10) & (j < 2): (False, True),
    (i < 10) | (j < 2): (True, True),
    i.cast(dtypes.int8): (0, 9),
    (i * 100).cast(dtypes.int8): (-128, 127),
    (i * 30).cast(dtypes.uint8) + 1: (0, 255),
    n: (0, 0),
    load(param(1, 10), i): (-math.inf, math.inf),
    load(param(1, 10, dtypes.uint8), i): (0, 255),
    UOp.const(F, math.nan): (-math.inf, math.inf),
    UOp.const(F, math.nan) < UOp.const(F, 1.0): (False, True),
    UOp(Ops.VAR, dtypes.index, (), ("n", 3, 7)) * 2: (6, 14),
    UOp(Ops.LANES, dtypes.index.vec(3), (), (4, -1, 2)): (-1, 4),
}


@by_rows("node", EXACT, ids=map(str, range(len(EXACT))))
def test_bounds_are_this_good(node: UOp) -> None:
    assert node.bounds == EXACT[node] and (node.vmin, node.vmax) == node.bounds


BINARY = sorted((op for op, row in OPS.items() if row.python and row.arity == 2), key=str)
NEAR = (0, 1, 7, 8)


@by_rows("dtype", [dtypes.int8, dtypes.uint8], ids=str)
@by_rows("op", [o for o in BINARY if OPS[o].dtype != "float"], ids=str)
def test_bounds_of_an_op_hold_all_of_its_values(op: Ops, dtype: DType) -> None:
    """On every pair of intervals that begin and end where an answer changes, of the smallest
    types: what the op table says of all numbers in them."""
    low, high = int(dtype.min), int(dtype.max)
    every = np.arange(low, high + 1).astype(dtype.numpy)
    meaning = OPS[op].python
    assert meaning is not None
    answers = meaning(*np.meshgrid(every, every, indexing="ij")).astype(int)
    ends = {sign * n for n in NEAR for sign in (1, -1)} | {low, low + 1, high - 1, high}
    inputs = sorted(n for n in ends if low <= n <= high)
    between = [(a, b) for a in inputs for b in inputs if a <= b]
    left, right = [
        {(a, b): UOp(Ops.VAR, dtype, (), (name, a, b)) for a, b in between} for name in "xy"
    ]
    result = dtypes.bool if op in COMPARE else dtype
    for x, y in product(left.items(), right.items()):
        (al, ah), (bl, bh) = x[0], y[0]
        results = answers[al - low : ah - low + 1, bl - low : bh - low + 1]
        if op in (Ops.CDIV, Ops.CMOD):  # there is no machine's division by 0
            results = results[:, np.arange(bl, bh + 1) != 0]
        least, greatest = UOp(op, result, (x[1], y[1])).bounds
        if results.size:
            assert least <= results.min() and results.max() <= greatest, (x, y)


UNARY = [Ops.NEG, Ops.NOT, Ops.CAST]


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8], ids=str)
@pytest.mark.parametrize("op", UNARY, ids=str)
def test_bounds_of_an_op_on_one_number_hold_all_of_its_values(op: Ops, dtype: DType) -> None:
    low, high = int(dtype.min), int(dtype.max)
    results = [dtypes.bool, *DTYPES, dtypes.float32] if op is Ops.CAST else [dtype]
    for first, result in product(range(low, high + 1), results):
        for last in range(first, high + 1, 17):
            x = UOp(Ops.VAR, dtype, (), ("x", first, last))
            numbers = np.arange(first, last + 1).astype(dtype.numpy)
            node = UOp(op, result, (x,))
            meaning = OPS[op].python
            outputs = meaning(numbers) if meaning else cast_array(numbers, dtype, result)
            assert node.vmin <= outputs.min() and outputs.max() <= node.vmax
