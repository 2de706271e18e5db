"""Reductions under a mask that collapse: the same result at every point, and no loop left."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.ir.rules.meaning import fired
from tests.ir.samples import at, kernel, load, param, reduced
from tests.support import count
from workbench.base.dtypes import DType, dtypes
from workbench.ir.meaning.interpret import interpret_kernel
from workbench.ir.nest.loops import kinds
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, gated
from workbench.ir.rewriting.rewrite import rewrite
from workbench.ir.rules.collapse import COLLAPSE_RULES, KERNEL_RULES
from workbench.ir.rules.examples.collapse import (
    CHOICE,
    COLUMN,
    EXAMPLES,
    I32,
    LENGTH,
    OTHER_LOAD,
    ROWS,
    equals,
    g0,
    picked,
    r0,
)  # fmt: skip
from workbench.ir.text.program import to_expr
from workbench.ir.verify.verify import verify


@pytest.mark.parametrize("name", [rule.name for rule in COLLAPSE_RULES.rules])
def test_one_rule(name: str) -> None:
    for before, expected in EXAMPLES[name]:
        assert name in fired(before, KERNEL_RULES)
        after = rewrite(before, KERNEL_RULES)
        assert r0 not in after.toposort()
        assert to_expr(after).replace(" * ", "*") == expected


STAYS = {
    "not every step is one position": picked(equals(CHOICE, (r0 * 2).cast(I32)), COLUMN),
    "a position that may wrap": picked(equals(load(param(2, ROWS, dtypes.uint64), g0),
                                              (r0 - 1).cast(dtypes.uint64)), COLUMN),
    "a mask from memory": picked(load(param(2, LENGTH, dtypes.bool), r0), OTHER_LOAD),
    "a value of each step": picked(r0 < g0, COLUMN),
    "two sums of one range": picked(equals(CHOICE + r0.cast(I32), r0.cast(I32)), COLUMN),
    "elsewhere it is not 0": reduced(Ops.ADD, (r0 < g0).where(OTHER_LOAD, OTHER_LOAD.like(1)), r0),
    "a product": reduced(Ops.MUL, equals(g0, r0).where(COLUMN, COLUMN.like(0)), r0),
}  # fmt: skip


@pytest.mark.parametrize("why", STAYS)
def test_what_does_not_collapse(why: str) -> None:
    assert r0 in rewrite(STAYS[why], KERNEL_RULES).toposort()


def _term(pick: random.Random) -> UOp:
    """A side of a comparison: of the range, of the row, or from memory."""
    term = pick.choice((r0, r0, r0 * -1, g0, r0 + g0, r0 + g0 * 2, r0 - g0))
    term = term + pick.randint(-4, 9)
    return term.cast(pick.choice((I32, dtypes.int64))) if pick.random() < 0.4 else term


def _condition(pick: random.Random) -> UOp:
    left = _term(pick)
    if left.dtype is I32 and pick.random() < 0.6:
        right = CHOICE
    else:
        right = UOp.const(left.dtype, pick.randint(-3, 12))
        if left.dtype is dtypes.index and pick.random() < 0.5:
            right = g0 + pick.randint(-3, 6)
    sides = (left, right) if pick.random() < 0.5 else (right, left)
    op = pick.choice((Ops.CMPEQ, Ops.CMPEQ, Ops.CMPLT, Ops.CMPLE))
    condition = sides[0].alu(op, sides[1])
    return condition.alu(Ops.NOT) if op is not Ops.CMPEQ and pick.random() < 0.3 else condition


def _case(seed: int) -> UOp:
    pick = random.Random(seed)
    mask = _condition(pick)
    for _ in range(pick.choice((0, 0, 1, 2))):
        mask = mask & _condition(pick)
    value: UOp = pick.choice((COLUMN, OTHER_LOAD, COLUMN * OTHER_LOAD, COLUMN + OTHER_LOAD))
    if pick.random() < 0.2:
        total = reduced(Ops.ADD, mask.cast(I32), r0).cast(dtypes.float32)
    else:
        total = picked(mask, value)
    return kernel("g0 r0", (at(param(0, ROWS), g0), total, "g0"))


def _inputs(seed: int) -> list[Any]:
    generator = np.random.default_rng(seed)
    arrays = [np.zeros(ROWS, np.float32), generator.integers(-9, 9, LENGTH)]
    arrays += [generator.integers(-3, 12, ROWS), generator.integers(-9, 9, ROWS)]
    types = (np.float32, np.float32, np.int32, np.float32)
    return [a.astype(t) for a, t in zip(arrays, types, strict=True)]


def test_random_masks_sum_to_the_same() -> None:
    """Small integers in float32: every order of adding them up is exact."""
    collapsed = 0
    for seed in range(count(6_000)):
        before = _case(seed)
        after = kinds(rewrite(before, KERNEL_RULES))
        verify(after, "kernel")
        collapsed += "r0" not in after.arg.order
        arrays = _inputs(seed)
        want = interpret_kernel(before, arrays)[0]
        actual = interpret_kernel(after, arrays)[0]
        assert np.array_equal(actual, want), f"seed {seed}: {to_expr(before)}"
    assert collapsed > count(6_000) // 3


@pytest.mark.parametrize("op", [Ops.CMPEQ, Ops.CMPLT, Ops.CMPLE])
@pytest.mark.parametrize("dtype", [dtypes.int64, dtypes.uint64, dtypes.uint32], ids=str)
def test_a_choice_that_needs_more_bits_than_an_index(dtype: DType, op: Ops) -> None:
    """It is clamped to just beyond the positions: no index has more than 32 bits."""
    choice = load(param(2, ROWS, dtype), g0)
    ends = [int(dtype.min), int(dtype.max), 2**31, 2**32 - 1, *range(LENGTH + 9)]
    ends += [n for n in (2**32, 2**32 + 2, -1, -(2**32)) if dtype.min <= n <= dtype.max]
    for step in (0, 3):
        place = (r0 + step).cast(dtype)
        for sides in ((choice, place), (place, choice)):
            each = COLUMN if op is Ops.CMPEQ else OTHER_LOAD  # an element, or a count
            value = picked(sides[0].alu(op, sides[1]), each)
            before = kernel("g0 r0", (at(param(0, ROWS), g0), value, "g0"))
            after = kinds(rewrite(before, KERNEL_RULES))
            assert after.arg.order == ("g0",)
            casts = [n for n in after.toposort() if n.op is Ops.CAST]
            indexes = [n for n in casts if n.dtype is dtypes.index]
            assert indexes
            assert all(-(2**31) <= n.vmin and n.vmax < 2**31 for n in indexes)
            for first in range(0, len(ends), ROWS):
                arrays = _inputs(first)
                arrays[2] = np.resize(np.array(ends[first:], dtype.numpy), ROWS)
                want, actual = (interpret_kernel(k, arrays)[0] for k in (before, after))
                np.testing.assert_array_equal(actual, want)


def test_an_index_that_is_loaded_at_the_position_has_the_gate_as_well() -> None:
    """Two lookups in a row: each load is made only where its own index is there."""
    second = load(param(4, LENGTH, I32), r0).cast(dtypes.index)
    inside = (UOp.index(-1) < second) & (second < LENGTH)
    column = load(param(1, LENGTH), gated(second, inside))
    value = picked(equals(CHOICE, r0.cast(I32)), column)
    after = kinds(rewrite(kernel("g0 r0", (at(param(0, ROWS), g0), value, "g0")), KERNEL_RULES))
    assert after.arg.order == ("g0",)
    verify(after, "kernel")
