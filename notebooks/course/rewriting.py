"""Chapter 2: values to rewrite, what they are worth, and checks of a reader's own rules."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from course.ask import Verdict, failure, right, wrong
from workbench import dtypes
from workbench.base.dtypes import DType
from workbench.ir.meaning.evaluate import constant, elementwise
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import Rule, RuleSet, rewrite

Array = np.ndarray[Any, Any]
INTEGERS = (0, 1, -1, 2, 3, -7, 100, 2**31 - 1, -(2**31))
MOST_MATCHES = 9
FLOATS = (0.0, 1.0, -1.0, 0.1, 3.0, -7.5, 1e30, -1e38, np.inf, -np.inf, np.nan)


def element(slot: int, dtype: DType = dtypes.float32) -> UOp:
    """Return element i of input `slot`: something to compute with, printed as p1[i]."""
    memory = UOp(Ops.PARAM, dtype, (), (slot, 8))
    index = UOp(Ops.INDEX, dtype, (memory, UOp.range(8, "i", AxisType.LOOP)))
    return UOp(Ops.LOAD, dtype, (index,))


def divided(node: UOp, by: float) -> UOp:
    """Return node / by."""
    return node.alu(Ops.FDIV, node.like(by))


def value(node: UOp, inputs: dict[int, Array]) -> Array:
    """Return what a node over `element`s is worth, as numpy computes it."""
    memo: dict[UOp, Array] = {}
    for n in node.toposort():
        if n.op is Ops.LOAD:
            memo[n] = inputs[n.src[0].src[0].arg[0]]
        elif n.op is Ops.CONST:
            memo[n] = constant(n, widen=False)
        elif n.is_elementwise:
            memo[n] = elementwise(n, [memo[s] for s in n.src], widen=False)
    return memo[node]


def counterexample(before: UOp, after: UOp, inputs: int) -> str | None:
    """Return inputs for which two nodes differ, as words; None where none was found. Zeros of
    either sign count as equal, as everywhere in workbench, and so do all NaNs."""
    numbers = FLOATS if before.dtype.is_float else INTEGERS
    grid = itertools.product(numbers, repeat=inputs)
    columns = np.array(list(grid), dtype=before.dtype.numpy).T
    arrays = dict(enumerate(columns))
    with np.errstate(all="ignore"):
        old, new = value(before, arrays), value(after, arrays)
        new = np.broadcast_to(new, old.shape)
        differ = ~((old == new) | ((old != old) & (new != new)))
    if not differ.any():
        return None
    at = int(np.argmax(differ))
    where = ", ".join(f"p{slot}[i] = {column[at]}" for slot, column in arrays.items())
    return f"with {where} it was {old[at]} and becomes {new[at]}"


def _judged(check: Callable[[Rule], Verdict]) -> Callable[[Rule], Verdict]:
    """Return `check`, which also says what a reader's rule fails with."""

    @wraps(check)
    def judged(rule: Rule) -> Verdict:
        try:
            return check(rule)
        except Exception as error:  # a reader's function may raise anything
            return wrong(f"the rule fails: {failure(error)}")

    return judged


@_judged
def check_double(rule: Rule) -> Verdict:
    """The rule must turn x + x into x * 2, and leave x + y alone."""
    for dtype in (dtypes.float32, dtypes.int32):
        x, y = element(0, dtype), element(1, dtype)
        left_alone = _applied(rule, x + y)
        if left_alone is not x + y:
            why = counterexample(x + y, left_alone, 2)
            return wrong(f"it fires on p0[i] + p1[i], two different values: {why}")
        after = _applied(rule, x + x)
        if after is x + x:
            kind = "floats" if dtype.is_float else "integers"
            return wrong(f"it does not fire on p0[i] + p0[i], of {kind}")
        if after is not x * 2:
            return wrong("p0[i] + p0[i] should become p0[i] * 2")
    return right("one name is one node, and doubling is exact, infinities and NaN included")


@_judged
def check_factor(rule: Rule) -> Verdict:
    """The rule must turn a*b + a*c into a*(b + c), where that is exact and only there."""
    a, b, c = (element(slot, dtypes.int32) for slot in range(3))
    before = a * b + a * c
    after = _applied(rule, before)
    if after is before:
        return wrong(
            "it does not fire on p0[i]*p1[i] + p0[i]*p2[i], of integers, where it is right"
        )
    why = counterexample(before, after, 3)
    if why is not None:
        return wrong(f"it changes integers: {why}")
    if len(after.toposort()) >= len(before.toposort()):
        return wrong("the right side should need one product less")
    a, b, c = (element(slot) for slot in range(3))
    before = a * b + a * c
    after = _applied(rule, before)
    if after is not before:
        why = counterexample(before, after, 3)
        return wrong(f"it fires on floats, where it is not exact: {why}")
    return right("exact on integers, which wrap alike on both sides, and silent on floats")


def _applied(rule: Rule, node: UOp) -> UOp:
    """Return `node` after the rule has fired wherever it does, a few times at most: one that
    fires on what it made would never end."""
    return rewrite(node, RuleSet("yours", [rule]), limit=MOST_MATCHES)
