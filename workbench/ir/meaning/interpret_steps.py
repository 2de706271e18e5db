"""The steps in which the interpreter computes a kernel, in windows that bound its memory.

A step computes the value of one node. A value that is too large is computed in windows of the
outermost ranges of the result; a product that is summed is never in memory as a whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from typing import NamedTuple

from workbench.ir.node.ops import Ops
from workbench.ir.node.ranges import closed
from workbench.ir.node.uop import UOp

ELEMENTS_AT_ONCE = 1 << 21
"""Elements of one value; with all values that are live beside it, about 2**24."""
Windows = Mapping[UOp, tuple[int, int]]
"""The part of each range that is computed now: (first, end)."""


class InterpreterStep(NamedTuple):
    """A node and the nodes whose values it reads. A product that is summed over ranges of both
    factors is a contraction, and never in memory as a whole: `product` is that MUL."""

    node: UOp
    inputs: tuple[UOp, ...]
    product: UOp | None


def steps_of(store: UOp) -> list[InterpreterStep]:
    """Return the steps of a STORE, each after those whose values it reads."""
    nodes = store.toposort(lambda n: n.op is not Ops.AFTER)
    uses = Counter(s for n in nodes for s in n.src)
    contracted = {n.src[0]: n for n in nodes if _contracts(n, uses)}
    steps = []
    for node in nodes:
        if node in contracted or node.op in (Ops.PARAM, Ops.AFTER):
            continue
        if contracted.get(node.src[0] if node.src else node) is node:
            steps.append(InterpreterStep(node, (*node.src[0].src, *node.src[1:]), node.src[0]))
        else:
            steps.append(InterpreterStep(node, node.src, None))
    return steps


def _contracts(node: UOp, uses: Counter[UOp]) -> bool:
    if node.op is not Ops.REDUCE or node.arg is not Ops.ADD or not node.dtype.is_float:
        return False
    factors = node.src[0]
    if factors.op is not Ops.MUL or uses[factors] > 1 or len(node.src) == 1:
        return False
    return all(f.ranges.issuperset(node.src[1:]) for f in factors.src)


def windows_of(
    end: UOp, steps: list[InterpreterStep], rank: Mapping[UOp, int]
) -> Iterator[Windows]:
    """Yield windows of the ranges of `end` in which no value has more than ELEMENTS_AT_ONCE
    elements."""
    inner = {r for s in steps if s.node.op in (Ops.REDUCE, Ops.STAGE) for r in closed(s.node)}
    free = sorted(set(end.src[1:]) - inner, key=lambda r: rank[r])
    widths: dict[UOp, int] = {}
    while True:
        elements, node = max(
            ((_elements(s.node, widths), s.node) for s in steps), key=lambda pair: pair[0]
        )
        axis = next((r for r in free if r in node.ranges and r not in widths), None)
        if elements <= ELEMENTS_AT_ONCE or axis is None:
            break
        widths[axis] = max(1, axis.extent * ELEMENTS_AT_ONCE // elements)
    parts = [
        [(r, (lo, min(lo + width, r.extent))) for lo in range(0, r.extent, width)]
        for r, width in widths.items()
    ]
    return (dict(part) for part in product(*parts))


def _elements(node: UOp, widths: Mapping[UOp, int]) -> int:
    own = math.prod(node.memory_shape) if node.op is Ops.STAGE else 1
    return own * math.prod([widths.get(r, r.extent) for r in node.ranges])
