"""Counts of touched elements, held against counting them one by one."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.base.dtypes import dtypes
from workbench.ir.nest import estimates as footprint
from workbench.ir.nest.estimates import Runs, Touched, count_sums, runs, strides, touched
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp, gated

STEPS = st.lists(st.tuples(st.integers(-12, 12), st.integers(1, 6)), max_size=4)


@given(STEPS)
def test_sums_are_counted_exactly_or_not_at_all(steps: list[tuple[int, int]]) -> None:
    count = count_sums(steps)
    reached = {
        sum(s * i for (s, _), i in zip(steps, at, strict=True))
        for at in product(*[range(n) for _, n in steps])
    }
    assert count in (None, len(reached))


@pytest.mark.parametrize(
    ("steps", "count"),
    [
        ([], 1),
        ([(48, 64), (1, 48)], 3072),  # a whole matrix
        ([(48, 64)], 64),  # one column of it
        ([(1, 28), (1, 5)], 32),  # a window that slides
        ([(32, 28), (32, 5), (1, 28), (1, 5)], 32 * 32),  # in two dimensions
        ([(0, 9), (3, 4)], 4),  # the same again; gaps
    ],
)
def test_the_usual_accesses_are_exact(steps: list[tuple[int, int]], count: int) -> None:
    assert count_sums(steps) == count


def range_(name: str, size: int) -> UOp:
    return UOp.range(size, name, AxisType.GLOBAL)


def test_what_stands_still_does_not_count() -> None:
    outer, inner = range_("g0", 5), range_("g1", 7)
    index = outer * 7 + inner
    assert touched([index], {inner}, 35) == Touched(7)
    assert touched([index], {outer, inner}, 35) == Touched(35)


def test_two_accesses_are_united() -> None:
    inner = range_("g0", 7)
    assert touched([inner, inner + 2], {inner}, 100) == Touched(9)


def test_a_gate_leaves_elements_out() -> None:
    inner = range_("g0", 8)
    assert touched([gated(inner, inner < 5)], {inner}, 8) == Touched(5)


@given(STEPS, st.lists(st.tuples(st.integers(-3, 9), st.integers(-3, 9)), max_size=3))
def test_gates_and_windows_against_counting(
    steps: list[tuple[int, int]], cuts: list[tuple[int, int]]
) -> None:
    """With few points each, and with more than are tried out one by one."""
    axes = [range_(f"g{i}", n) for i, (_, n) in enumerate(steps)]
    pairs = zip(axes, steps, strict=True)
    index = sum((axis * s for axis, (s, _) in pairs), UOp.index(0))
    valid = UOp.const(dtypes.bool, True)
    for axis, (low, high) in zip(axes, cuts, strict=False):
        valid = valid & (axis < high) & (UOp.index(low) < axis)
    reached = {
        sum(s * i for (s, _), i in zip(steps, at, strict=True)) + start
        for start in (0, 5)
        for at in product(*[range(n) for _, n in steps])
        if all(low < i < high for i, (low, high) in zip(at, cuts, strict=False))
    }
    both = [gated(index + start, valid) for start in (0, 5)]
    for most in (footprint.ENUMERATED, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(footprint, "ENUMERATED", most)
            estimate = touched(both, set(axes), 10**6)
        assert estimate.elements >= len(reached)
        assert estimate.elements == len(reached) or not estimate.exact


def test_a_gate_that_rows_share_with_a_window_leaves_whole_rows() -> None:
    """As in a convolution of a padded image, of any size."""
    row, column, tap = range_("g0", 640), range_("g1", 640), range_("r0", 3)
    valid = (UOp.index(0) < row + tap) & (row + tap < 641) & (column < 8)
    index = gated((row + tap) * 640 + column - 640, valid)
    assert touched([index], {row, column, tap}, 640 * 640) == Touched(640 * 8)


def test_what_depends_on_data_is_bounded() -> None:
    inner = range_("g0", 8)
    param = UOp(Ops.PARAM, dtypes.int32, (), (1, 8))
    loaded = UOp(Ops.LOAD, dtypes.int32, (UOp(Ops.INDEX, dtypes.int32, (param, inner)),))
    index = loaded.cast(dtypes.index)
    assert touched([index], {inner}, 1000) == Touched(8, exact=False)
    assert strides([index], inner) is None


def test_runs_say_what_a_cache_holds() -> None:
    row, column = range_("g0", 64), range_("g1", 48)
    matrix = row * 512 + column
    assert runs([matrix], {column}, 16) == (Runs(1, 48, 0),)
    assert runs([matrix], {row}, 16) == (Runs(64, 1, 512),)
    assert runs([matrix], {row, column}, 16) == (Runs(64, 48, 512),)
    assert runs([row * 48 + column], {row, column}, 16) == (Runs(1, 64 * 48, 0),)
    assert runs([column * 3], {column}, 16) == (Runs(1, 1 + 3 * 47, 0),), "gaps in lines"


def test_neighbours_are_one_run_and_strangers_are_two() -> None:
    inner = range_("g0", 7)
    assert len(runs([inner, inner + 1], {inner}, 16)) == 1
    assert len(runs([inner, inner + 640], {inner}, 16)) == 2
