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
