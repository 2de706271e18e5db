"""The test of a rule on values: both of its sides, on random values and extremes of every dtype.

The left side is a graph over parameters, in which constants are constants; the rule rewrites it,
and both graphs are computed by the meaning of their ops.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.ir.meaning.evaluate import constant, elementwise
from workbench.ir.node import construct
from workbench.ir.node.ops import COMPARE, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.patterns import Pat, fits_kind
from workbench.ir.rewriting.rewrite import Rule
from workbench.ir.verify.rows import by_op, common

Array = np.ndarray[Any, Any]
VALUES = 4096
"""Most values of each name that one graph is computed on, besides the extremes."""
CONSTANTS = 40
"""Most choices of the constants of a rule, for each choice of dtypes."""
MOST_CHOICES = 13
"""Most choices of the dtypes that a rule compares, for each dtype of its result."""
TESTED = (
    dtypes.bool, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8,
    dtypes.uint16, dtypes.uint32, dtypes.uint64, dtypes.float16, dtypes.bfloat16, dtypes.float32,
    dtypes.float64,
)  # fmt: skip
"""The dtypes of values in kernels. Indexes are left out: typed rules do not reach them."""
_TYPES = by_op(row for row in common("n") if row.name != "op-of-level")
"""The rules of types, which hold at every level."""


@dataclass(frozen=True)
class Counterexample:
    """Values for which both sides of a rule differ: those of its names, and of the sides."""

    dtype: DType
    names: Mapping[str, Any]
    before: Any
    after: Any

    def __str__(self) -> str:
        given = ", ".join(f"{name} = {value}" for name, value in self.names.items()) or "any value"
        return f"{self.dtype}: with {given} the left side is {self.before}, the right {self.after}"


@dataclass(frozen=True)
class RuleTest:
    """The outcome of a test on values: the dtypes of the results that the rule may have, how many
    values were compared, and the first counterexample (None: both sides always agreed)."""

    dtypes: tuple[DType, ...]
    compared: int
    counterexample: Counterexample | None

    @property
    def agrees(self) -> bool:
        """Whether there were values to test, and both sides agree on all of them."""
        return self.counterexample is None and bool(self.dtypes)


def compare_sides(rule: Rule) -> RuleTest:
    """Return the outcome of a test of a rule whose sides are patterns."""
    dice = random.Random(str(rule))
    reached: dict[DType, None] = {}
    compared = 0
    for filling in _fillings(rule.match, dice):
        after = rule.matcher(filling.node)
        if after is None or after is filling.node:
            continue
        reached[filling.node.dtype] = None
        problem = _type_problem(filling.node, after)
        if problem:
            example = Counterexample(filling.node.dtype, {}, "well typed", problem)
            return RuleTest(tuple(reached), compared, example)
        count, found = _compare(filling, after, dice)
        compared += count
        if found is not None:
            return RuleTest(tuple(reached), compared, found)
    return RuleTest(tuple(reached), compared, None)


# --------------------------------------------------------------------------------------------------
# A pattern as graphs.


@dataclass(frozen=True)
class Filling:
    """A graph that a pattern fits: its `leaves` are the parameters that stand for names,
    `constants` the values of the names that are constants."""

    node: UOp
    leaves: Mapping[str, UOp]
    constants: Mapping[str, Any]


class _Unfit(Exception):
    """A choice of dtypes that an op or the pattern has no place for."""


def _fillings(pat: Pat, dice: random.Random) -> Iterator[Filling]:
    """Yield graphs of every dtype, each with several choices of constants and of the dtypes that
    are compared."""
    choices = [*itertools.product(TESTED, repeat=_free_dtypes(pat))]
    if len(choices) > MOST_CHOICES:
        choices = dice.sample(choices, MOST_CHOICES)
    count = CONSTANTS if _constants(pat) else 1
    for dtype in TESTED:
        for choice in choices:
            for number in range(count):
                try:
                    yield _filled(pat, dtype, choice, number, dice)
                except _Unfit:
                    break


def _free_dtypes(pat: Pat) -> int:
    """Return how many comparisons of a pattern have operands of a dtype of their own."""
    own = pat.ops is not None and pat.src is not None and pat.ops[0] in COMPARE
    return min(2, own + sum(_free_dtypes(part) for part in pat.src or ()))


def _constants(pat: Pat) -> set[str]:
    names = {name for part in pat.src or () for name in _constants(part)}
    is_named = pat.ops == (Ops.CONST,) and pat.value is None and pat.name is not None
    return names | {pat.name} if is_named and pat.name is not None else names


def _filled(
    pat: Pat, dtype: DType, choice: Sequence[DType], number: int, dice: random.Random
) -> Filling:
    """Return the graph of a pattern for a dtype of its result. The first constant is extreme number
    `number`, or random if there are less; the others are extreme or random."""
    names: dict[str, UOp] = {}
    constants: dict[str, Any] = {}
    others = list(choice)

    def fill(part: Pat, kind: DType) -> UOp:
        if part.kind is not None and not fits_kind(part.kind, kind):
            raise _Unfit
        if part.name is not None and part.name in names:
            if names[part.name].dtype is not kind:
                raise _Unfit
            return names[part.name]
        node = _node(part, kind)
        if part.name is not None:
            names[part.name] = node
        return node

    def _node(part: Pat, kind: DType) -> UOp:
        if part.value is not None:
            return _literal(kind, part.value)
        if part.src is not None and part.ops is not None:
            wants = _operands(part.ops[0], kind, len(part.src), others)
            sources = tuple(fill(p, d) for p, d in zip(part.src, wants, strict=True))
            filled = UOp(part.ops[0], kind, sources)
            if _misfit(filled):
                raise _Unfit
            return filled
        if part.ops == (Ops.CONST,):
            extremes = _extremes(kind)
            pick = dice.randrange(2 * len(extremes)) if constants else number
            value = extremes[pick] if pick < len(extremes) else _random(kind, 1, dice)[0]
            constants[part.name or ""] = value
            return UOp.const(kind, np.asarray(value).item() if kind.in_numpy else float(value))
        return construct.param(kind, len(names), 1)

    node = fill(pat, dtype)
    leaves = {name: leaf for name, leaf in names.items() if leaf.op is Ops.PARAM}
    return Filling(node, leaves, constants)


def _literal(dtype: DType, value: Any) -> UOp:
    """Return a number of the pattern as a constant of a dtype that holds it."""
    if dtype.is_bool and value not in (0, 1):
        raise _Unfit
    if dtype.is_int and (value != int(value) or not dtype.min <= value <= dtype.max):
        raise _Unfit
    return UOp.const(dtype, bool(value) if dtype.is_bool else value)


def _operands(op: Ops, dtype: DType, count: int, others: list[DType]) -> list[DType]:
    """Return the dtypes that an op takes for a result of `dtype`; comparisons take one of
    `others`."""
    if op in COMPARE:
        if not dtype.is_bool:
            raise _Unfit
        return [others.pop() if others else dtypes.float32] * count
    return [dtypes.bool, dtype, dtype] if op is Ops.WHERE else [dtype] * count


def _type_problem(before: UOp, after: UOp) -> str:
    """Return why the right side has a type that no graph has; "" if there is no reason."""
    if after.dtype is not before.dtype:
        return f"of {after.dtype}"
    faults = (f"{node.op.name}: {why}" for node in after.toposort() if (why := _misfit(node)))
    return next(faults, "")


def _misfit(node: UOp) -> str:
    """Return why a node itself has a type that no graph has; "" if there is no reason."""
    return next(filter(None, (row.check(node) for row in _TYPES[node.op])), "")


# --------------------------------------------------------------------------------------------------
# Values, and both sides on them.


def _extremes(dtype: DType) -> Array:
    """Return the values of a dtype at which rules are wrong most often."""
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_int:
        low, high, bits = int(dtype.min), int(dtype.max), dtype.bits
        listed = [0, 1, 2, 3, 5, 7, -1, -2, -3, low, low + 1, high, high - 1]
        listed += [bits - 1, bits, bits + 1]
        return np.array([n for n in listed if low <= n <= high], dtype.numpy)
    tiny = 2.0 ** (-14 if dtype is dtypes.float16 else -126)
    floats = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, float(dtype.max), float(dtype.min), tiny]
    floats += [-tiny / 4, 1.5, 1 / 3, math.inf, -math.inf, math.nan]
    return np.array(floats, np.float64).astype(dtype.numpy)


def _random(dtype: DType, count: int, dice: random.Random) -> Array:
    generator = np.random.default_rng(dice.randrange(1 << 30))
    if dtype.is_bool:
        return generator.integers(0, 2, count).astype(bool)
    if dtype.is_int:
        whole = generator.integers(int(dtype.min), int(dtype.max), count, dtype.numpy, True)
        small = generator.integers(max(-9, int(dtype.min)), 10, count).astype(dtype.numpy)
        return np.where(generator.random(count) < 0.5, whole, small)
    scale = np.exp2(generator.uniform(-8, 8, count))
    return (generator.standard_normal(count) * scale).astype(dtype.numpy)


def _compare(
    filling: Filling, after: UOp, dice: random.Random
) -> tuple[int, Counterexample | None]:
    """Compare both sides; return how many values were compared, and a counterexample."""
    values = _values(filling.leaves, dice)
    with np.errstate(all="ignore"):
        left, right = (_computed(node, values) for node in (filling.node, after))
    left, right = np.broadcast_arrays(left, right)
    differs = left != right
    if filling.node.dtype.is_float:
        differs &= ~(_is_nan(left) & _is_nan(right))
    if not differs.any():
        return left.size, None
    place = int(np.argmax(differs.ravel()))
    names = {
        name: np.broadcast_to(values[leaf], left.shape).ravel()[place]
        for name, leaf in filling.leaves.items()
    }
    before, now = left.ravel()[place], right.ravel()[place]
    both = {**names, **filling.constants}
    return left.size, Counterexample(filling.node.dtype, both, before, now)


def _is_nan(values: Array) -> Array:
    nans: Array = np.isnan(values.astype(np.float64))
    return nans


def _values(leaves: Mapping[str, UOp], dice: random.Random) -> dict[UOp, Array]:
    """Return values of each leaf: all pairs and triples of extremes, then random ones."""
    extremes = [_extremes(leaf.dtype) for leaf in leaves.values()]
    if len(extremes) > 3:  # all combinations would be too many
        extremes = [
            np.array([dice.choice(list(e)) for _ in range(VALUES)], e.dtype) for e in extremes
        ]
        grids = extremes
    else:
        grids = [g.ravel() for g in np.meshgrid(*extremes, indexing="ij")] if extremes else []
    parts: dict[UOp, Array] = {}
    for leaf, grid in zip(leaves.values(), grids, strict=True):
        parts[leaf] = np.concatenate([grid, _random(leaf.dtype, VALUES, dice)])
    return parts


def _computed(root: UOp, values: Mapping[UOp, Array]) -> Array:
    results: dict[UOp, Array] = {}
    for node in root.toposort():
        if node in values:
            results[node] = values[node]
        elif node.op is Ops.CONST:
            results[node] = constant(node, False)
        else:
            results[node] = elementwise(node, [results[s] for s in node.src], False)
    return results[root]
