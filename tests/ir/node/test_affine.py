"""Sums of indexes against numpy: what divides them divides every value they take."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from tests.ir.lower.graphs import evaluate, variable
from tests.support import count
from workbench.base.dtypes import dtypes
from workbench.ir.node.exact_range import divisor, row_major, terms
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp

AXES = [variable(dtypes.index, name, 0, 7) for name in "gru"]
POINTS = np.indices((8, 8, 8)).reshape(3, -1)


def drawn(dice: random.Random, depth: int) -> UOp:
    """Return index arithmetic such as kernels have, with any sign and what is not affine."""
    if depth == 0:
        return dice.choice([*AXES, UOp.index(dice.choice([-64, -6, 0, 4, 16, 96]))])
    left, right = drawn(dice, depth - 1), drawn(dice, dice.randrange(depth))
    way = dice.randrange(6)
    if way == 0:
        return left * dice.choice([-16, -1, 0, 4, 64])
    if way == 1:
        return left.alu(Ops.SHL, left.like(dice.randrange(7)))
    if way == 2:
        return dice.choice([left // 16, left % 16])
    if way == 3:
        return (left < right).where(left, right)
    return left * right if way == 4 else left + right


def test_a_divisor_divides_every_value() -> None:
    dice, large = random.Random(0), 0
    for _ in range(count(2000)):
        index = drawn(dice, dice.randrange(5))
        factor = divisor(index)
        values = evaluate(index, dict(zip(AXES, POINTS, strict=True)))
        assert math.gcd(factor, *map(int, np.unique(values))) == factor, index
        large += factor > 1
    assert large, "1 divides everything"


@pytest.mark.parametrize("value", [math.inf, math.nan, 64.0])
def test_what_is_computed_of_floats_has_no_divisor(value: float) -> None:
    """An index may be read from a tensor, whose elements may be anything."""
    index = UOp.const(dtypes.float32, value).cast(dtypes.index)
    assert divisor(index) == 1
    assert divisor(index * 16 + 4) == 4


def test_row_major() -> None:
    """The last axis is next to next: as numpy's strides, in elements."""
    i, j, k = (UOp.range(n, f"g{n}", AxisType.GLOBAL) for n in (2, 3, 5))
    assert terms(row_major([i, j, k], (2, 3, 5))) == ({i: 15, j: 5, k: 1}, 0)
    assert terms(row_major([], ())) == ({}, 0)


def test_terms_of_shared_sums() -> None:
    """Sums that several sums read have the terms that they have along each path."""
    dice = random.Random(1)
    for _ in range(count(200)):
        values: list[UOp] = [*AXES, UOp.index(3), UOp.index(-2)]
        for _ in range(dice.randrange(2, 8)):
            left, right = dice.choice(values), dice.choice(values)
            values.append(dice.choice([left + right, left + right, left * -2, left // 2 * 3]))
        total = values[-1]
        coefficients, constant = terms(total)
        sums = [atom * factor for atom, factor in coefficients.items()]
        again = sum(sums, UOp.index(constant))
        before, after = (evaluate(e, dict(zip(AXES, POINTS, strict=True))) for e in (total, again))
        assert np.array_equal(np.broadcast_to(before, 512), np.broadcast_to(after, 512)), total


def test_the_work_grows_with_the_graph_and_not_with_its_paths() -> None:
    doubled, squared = AXES[0], AXES[0] * 4
    for _ in range(200):
        doubled, squared = doubled + doubled, squared * squared
    assert terms(doubled) == ({AXES[0]: 2**200}, 0)
    assert divisor(squared) % 4 == 0 and divisor(squared) < 2**128
    assert divisor(AXES[0].alu(Ops.SHL, AXES[0].like(10**12))) > 1
