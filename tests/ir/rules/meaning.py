"""What expressions mean, by the op table: the same on both sides of every rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.ir.samples import at, axis, param
from workbench.base.dtypes import DType, dtypes
from workbench.base.trace import Match, observe
from workbench.ir.meaning.evaluate import constant, elementwise
from workbench.ir.meaning.interpret import interpret_kernel
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp
from workbench.ir.rewriting.rewrite import Rule, RuleSet, rewrite

Array = np.ndarray[Any, Any]
POINTS = 64
HERE = axis("g0", POINTS)


def evaluate(root: UOp, leaves: Mapping[UOp, Array], axes: tuple[UOp, ...] = ()) -> Array:
    """Return the values of `root`, with a dimension per axis; `leaves` has those of loads."""
    values = dict(leaves)
    for node in root.toposort(lambda n: n not in leaves):
        if node in values:
            continue
        if node.op is Ops.RANGE:
            shape = [node.extent if axis is node else 1 for axis in axes]
            values[node] = np.arange(node.extent).reshape(shape)
        elif node.op is Ops.CONST:
            values[node] = constant(node, widen=False)
        else:
            values[node] = elementwise(node, [values[s] for s in node.src], widen=False)
    return np.broadcast_to(values[root], [axis.extent for axis in axes] or [POINTS])


def interpreted(before: UOp, after: UOp) -> list[Array]:
    """Return both values at every point of the ranges that `before` leaves open.

    Memory holds small whole numbers, so that sums and products are exact.
    """
    open_ranges = sorted(before.ranges, key=lambda r: r.axis_name)
    flat, size = UOp.index(0), 1
    for range_ in open_ranges:
        flat, size = flat * range_.extent + range_, size * range_.extent
    params = {n.arg[0]: n for n in before.toposort() if n.op is Ops.PARAM}
    generator = np.random.default_rng(size)
    arrays: list[Array] = [np.zeros(size, before.dtype.numpy)]
    for slot in range(1, max(params, default=0) + 1):
        node = params.get(slot, before)
        drawn = generator.integers(-2, 3, node.arg[1] if slot in params else 0)
        arrays.append(drawn.astype(node.dtype.numpy))
    return [_at_every_point(v, flat, open_ranges, arrays) for v in (before, after)]


def _at_every_point(value: UOp, flat: UOp, open_ranges: list[UOp], arrays: list[Array]) -> Array:
    target = at(param(0, arrays[0].size, value.dtype), flat)
    end = UOp(Ops.END, dtypes.void, (UOp(Ops.STORE, dtypes.void, (target, value)), *open_ranges))
    order = [n.axis_name for n in end.toposort() if n.op is Ops.RANGE]
    sink = UOp.sink(end, arg=KernelInfo("k", tuple(order)))
    return interpret_kernel(sink, arrays)[0]


def same(a: Array, b: Array) -> bool:
    """Whether two arrays agree: NaN is NaN, and zeros of either sign are equal."""
    if a.dtype != b.dtype:
        return False
    return bool(np.all((a == b) | ((a != a) & (b != b))))


def matches(root: UOp, rules: RuleSet) -> tuple[UOp, tuple[Match, ...]]:
    """Return `root` rewritten, and every match on the way."""
    with observe() as watching:
        after = rewrite(root, rules)
    return after, watching.records[0].matches


def fired(root: UOp, rules: RuleSet) -> set[str]:
    return {str(m.rule.name) for m in matches(root, rules)[1]}


def value(dtype: DType, number: int = 0) -> UOp:
    """Return a load of POINTS different values of a dtype."""
    slot = 10 * list(VALUES).index(dtype) + number
    return UOp(Ops.LOAD, dtype, (at(param(slot, POINTS, dtype), HERE),))


def integers(dtype: DType, generator: np.random.Generator) -> Array:
    edges = [dtype.min, dtype.max, 0, 1, 2, 3, int(dtype.max) - 1]
    edges += [] if dtype.kind == "uint" else [-1, -2, int(dtype.min) + 1]
    low, high = max(int(dtype.min), -20), min(int(dtype.max), 20)
    small = generator.integers(low, high, POINTS - len(edges), endpoint=True)
    return np.concatenate([np.array(edges, dtype.numpy), small.astype(dtype.numpy)])


def floats(dtype: DType, generator: np.random.Generator) -> Array:
    info = np.finfo(dtype.numpy)
    edges = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, info.max, -info.max]
    edges += [info.tiny, info.smallest_subnormal, -info.smallest_subnormal, 1e9, -1e9, 2.0**31]
    rest = generator.standard_normal(POINTS - len(edges)) * 10
    with np.errstate(over="ignore"):  # what a small type has no place for is infinite
        return np.concatenate([edges, rest]).astype(dtype.numpy)


def inputs(seed: int) -> dict[UOp, Array]:
    """Return values for three loads of every dtype, edge cases among them."""
    generator = np.random.default_rng(seed)
    arrays: dict[UOp, Array] = {}
    for dtype, make in VALUES.items():
        for number in range(3):
            values = make(dtype, generator)
            arrays[value(dtype, number)] = generator.permutation(values)
    return arrays


VALUES = {
    dtypes.float32: floats,
    dtypes.float64: floats,
    dtypes.int32: integers,
    dtypes.int64: integers,
    dtypes.int8: integers,
    dtypes.uint8: integers,
    dtypes.float16: floats,
    dtypes.bool: lambda dtype, generator: generator.integers(0, 2, POINTS).astype(bool),
}

__all__ = [
    "HERE", "POINTS", "Array", "Rule", "evaluate", "fired", "inputs", "interpreted", "matches",
    "same", "value",
]  # fmt: skip
