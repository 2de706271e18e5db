"""The op table: complete, and its integer semantics those of Python's ints, by table."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.support import by_rows
from workbench.backends.c.c_dialect import C
from workbench.backends.c_like.values import INFIX, PREFIX
from workbench.backends.llvm_ir import instructions
from workbench.base.dtypes import DType, dtypes
from workbench.ir.functions.expand import FUNCTIONS
from workbench.ir.lower.decompose import DECOMPOSE_RULES
from workbench.ir.node import ops
from workbench.ir.node.ops import CASTS, COMPARE, ELEMENTWISE, MOVEMENT, OPS, REDUCTIONS, Ops

INTEGERS = [
    dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.index,
    dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64,
]  # fmt: skip

BY_DTYPE = {Ops.CAST, Ops.BITCAST, Ops.WHERE, Ops.MAX, Ops.MIN}
"""Ops that are in no table of C's, since their text depends on their dtypes."""


def wrap(value: int, dtype: DType) -> int:
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if value > int(dtype.max) else value


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def shifted(a: int, b: int, dtype: DType, left: bool) -> int:
    if not 0 <= b < dtype.bits:
        return 0
    return wrap(a << b, dtype) if left else a >> b


# What each op means on Python's unbounded integers, before wrapping.
MEANING: dict[Ops, Callable[[int, int, DType], int | bool]] = {
    Ops.ADD: lambda a, b, d: a + b,
    Ops.MUL: lambda a, b, d: a * b,
    Ops.IDIV: lambda a, b, d: a // b if b else 0,
    Ops.MOD: lambda a, b, d: a % b if b else 0,
    Ops.CDIV: lambda a, b, d: truncated(a, b),
    Ops.CMOD: lambda a, b, d: a - truncated(a, b) * b,
    Ops.MAX: lambda a, b, d: max(a, b),
    Ops.MIN: lambda a, b, d: min(a, b),
    Ops.CMPLT: lambda a, b, d: a < b,
    Ops.CMPLE: lambda a, b, d: a <= b,
    Ops.CMPEQ: lambda a, b, d: a == b,
    Ops.CMPNE: lambda a, b, d: a != b,
    Ops.AND: lambda a, b, d: a & b,
    Ops.OR: lambda a, b, d: a | b,
    Ops.XOR: lambda a, b, d: a ^ b,
    Ops.SHL: lambda a, b, d: shifted(a, b, d, left=True),
    Ops.SHR: lambda a, b, d: shifted(a, b, d, left=False),
}
UNARY: dict[Ops, Callable[[int], int]] = {Ops.NEG: lambda a: -a, Ops.NOT: lambda a: ~a}


def corners(dtype: DType) -> list[int]:
    low, high, half = int(dtype.min), int(dtype.max), dtype.bits // 2
    near = {low, low + 1, low // 2, high, high - 1, high // 2, 0, 1, 2, 3, 7, dtype.bits - 1}
    near |= {-1, -2, -3, -7, -dtype.bits, dtype.bits, dtype.bits + 1, 1 << half, (1 << half) - 1}
    return sorted(v for v in near if low <= v <= high)


@by_rows("dtype", INTEGERS, ids=str)
@by_rows("op", MEANING, ids=lambda op: op.name)
def test_integers_mean_what_pythons_do(op: Ops, dtype: DType) -> None:
    meaning, want = OPS[op].python, MEANING[op]
    assert meaning is not None
    divides = op in (Ops.CDIV, Ops.CMOD)  # their divisor is known not to be 0
    pairs = [(a, b) for a, b in product(corners(dtype), repeat=2) if b or not divides]
    a, b = np.array(pairs, dtype.numpy).T
    actual = meaning(a, b)
    assert actual.dtype == (np.bool_ if op in COMPARE else dtype.numpy)
    expected = [want(*pair, dtype) for pair in pairs]
    if op not in COMPARE:
        expected = [wrap(int(v), dtype) for v in expected]
    assert dict(zip(pairs, actual.tolist(), strict=True)) == dict(zip(pairs, expected, strict=True))
    singles = [meaning(np.asarray(x), np.asarray(y)) for x, y in zip(a, b, strict=True)]
    assert [np.asarray(s).tolist() for s in singles] == expected  # also without axes


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("op", UNARY, ids=lambda op: op.name)
def test_one_integer(op: Ops, dtype: DType) -> None:
    meaning, values = OPS[op].python, corners(dtype)
    assert meaning is not None
    actual = meaning(np.array(values, dtype.numpy))
    assert actual.dtype == dtype.numpy
    assert actual.tolist() == [wrap(UNARY[op](v), dtype) for v in values]


def test_bools() -> None:
    a, b = np.array([[False, False, True, True], [False, True, False, True]])
    table = {Ops.ADD: a | b, Ops.MUL: a & b, Ops.MAX: a | b, Ops.MIN: a & b, Ops.XOR: a ^ b,
             Ops.CMPLT: ~a & b, Ops.AND: a & b, Ops.OR: a | b}  # fmt: skip
    for op, want in table.items():
        actual = OPS[op].python(a, b)  # type: ignore[misc]
        assert actual.dtype == np.bool_ and (actual == want).all(), op


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_floats(kind: type) -> None:
    x = np.array([0.0, -0.0, 1.0, -2.5, 1e30, math.inf, -math.inf, math.nan], kind)
    for op in (Ops.NEG, Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.COS, Ops.SQRT, Ops.RECIP, Ops.TRUNC):
        meaning = OPS[op].python
        assert meaning is not None and meaning(x).dtype == kind
    assert OPS[Ops.RECIP].python(x)[:2].tolist() == [math.inf, -math.inf]  # type: ignore[misc]
    assert math.copysign(1, OPS[Ops.NEG].python(x)[0]) == -1  # type: ignore[misc]
    for op in (Ops.MAX, Ops.MIN):
        assert np.isnan(OPS[op].python(x, x[::-1])[[0, -1]]).all()  # type: ignore[misc]
    assert np.isnan(OPS[Ops.FDIV].python(x[:1], x[:1])).all()  # type: ignore[misc]
    rest = OPS[Ops.FMOD].python(x[2:7], np.array(1.5, kind))  # type: ignore[misc]
    assert rest[:2].tolist() == [1.0, -1.0]
    assert rest[2] == math.fmod(float(x[4]), 1.5) and np.isnan(rest[3:]).all()


def test_the_table_is_complete() -> None:
    assert set(OPS) == set(Ops)
    for op, row in OPS.items():
        assert set(row.levels) <= set("tkln") and row.doc, op
        assert row.levels or op is Ops.GRADIENT
    assert ELEMENTWISE >= COMPARE | CASTS | REDUCTIONS.keys() and not ELEMENTWISE & MOVEMENT
    assert {op for op in ELEMENTWISE if OPS[op].arity not in (1, 2, 3)} == {Ops.THREEFRY}


# what each table whose keys are ops says of them, apart from the op table
OTHER_TABLES = {
    "backends/c/helpers.py": "C functions that combine lanes, and C's signs in them",
    "backends/c/c_dialect.py": "C's functions of floats",
    "backends/c/vectors.py": "C's signs between masks",
    "backends/c_like/dialect.py": "functions of floats in languages like C",
    "backends/c_like/values.py": "signs of languages like C, and how tightly they bind",
    "backends/llvm_ir/instructions.py": "LLVM's instructions, by kind of type",
    "backends/llvm_ir/gpu_targets.py": "LLVM's functions of GPUs",
    "backends/python/statement.py": "what the emulator does at a node of a kernel",
    "backends/webgpu/wgsl.py": "functions of floats that WGSL leaves open",
    "backends/webgpu/wgsl_integers.py": "WGSL functions of integers of 64 bits",
    "cost/gpu/item_work.py": "what machine code of a GPU has for a function",
    "edited.py": "why an op does not run in a kernel's text",
    "emulator/machine.py": "numpy functions that update memory at once, for atomics",
    "ir/gradient/rules.py": "the gradient, written in nodes",
    "ir/meaning/interpret.py": "what movement does to an array",
    "ir/lower/linearize.py": "which op ends a loop, and which an IF",
    "ir/meaning/sampled.py": "what movement does to positions",
    "ir/node/bounds.py": "meaning on intervals",
    "ir/opt/heuristic/register_tile.py": "where a comparison with a position becomes false",
    "ir/schedule/access.py": "how movement changes indexes",
    "ir/text/printer.py": "first letters of names",
    "ir/text/phrases.py": "what is written neither infix nor as a call",
    "tensor/movement/rearrange.py": "what combines bools, and the op of each reduction by name",
    "viz/record/offers.py": "what a node is in the graph of the page: an axis, a place, a loop",
}


def has_table(path: Path) -> bool:
    """Whether a module has a dict whose keys, two or more, are all ops."""
    return any(
        isinstance(node, ast.Dict)
        and len(node.keys) > 1
        and all(k is not None and ast.unparse(k).startswith("Ops.") for k in node.keys)
        for node in ast.walk(ast.parse(path.read_text()))
    )


def test_no_other_table_repeats_a_column() -> None:
    """A fact that several places need is a column; a new table says here what else it is."""
    package = Path(ops.__file__).parents[2]
    tables = {str(p.relative_to(package)) for p in package.rglob("*.py") if has_table(p)}
    assert tables - {"ir/node/ops.py"} == set(OTHER_TABLES)


@by_rows("op", sorted(ELEMENTWISE, key=str), ids=str)
def test_an_elementwise_op_is_known_everywhere(op: Ops) -> None:
    """Its row fills the columns; each renderer writes it, or lowering takes it apart."""
    row = OPS[op]
    assert row.word and row.cost >= 0 and row.slots >= 0
    assert (row.arity == 2) >= bool(row.symbol) and bool(row.symbol) == bool(row.precedence)
    assert (op in REDUCTIONS) <= row.is_commutative
    decomposed = FUNCTIONS | {o for rule in DECOMPOSE_RULES.rules for o in rule.match.ops or ()}
    assert op in instructions.SUPPORTED | decomposed
    assert op in {*INFIX, *PREFIX, *BY_DTYPE, *C.functions} | decomposed


def test_precedence_is_that_of_python() -> None:
    """Of two infix ops, the one that binds tighter does so in Python, but for comparisons, which
    chain there."""
    infix = [row for op, row in OPS.items() if row.symbol and op not in COMPARE]
    for outer, inner in product(infix, infix):
        tree = ast.parse(f"a {outer.symbol} b {inner.symbol} c", mode="eval").body
        assert isinstance(tree, ast.BinOp)
        is_tighter = isinstance(tree.right, ast.BinOp)
        assert is_tighter == (inner.precedence > outer.precedence), (outer, inner)
