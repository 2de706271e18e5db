"""The work of a work-item without its memory accesses: operations by kind, and instructions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workbench.base.dtypes import DType
from workbench.base.tensor_cores.tensor_core import TensorCore
from workbench.cost.gpu.instructions import (
    INTEGER,
    MOST_BYTES,
    SPECIAL_FUNCTION,
    computes,
    instructions_of,
    merged_loads,
)
from workbench.ir.nest.estimates import executed
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

LOOP_INSTRUCTIONS = 3
"""Instructions of a step of a loop: count, compare, jump."""
WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class ItemWork:
    """The work of one work-item in one run: `operations` on values by the name of their dtype, or
    SPECIAL_FUNCTION; of its warp the multiply-adds of tensor cores (`products`), by the format in
    which they take their operands, the words that it hands on in `shuffles`, and the
    `instructions`."""

    operations: Mapping[str, float]
    products: Mapping[str, float]
    shuffles: float
    instructions: float


class NodeWork(NamedTuple):
    """The work of a node each time that a work-item comes to it; `times` is how often it does."""

    node: UOp
    times: int
    work: ItemWork


def item_work(linear: Sequence[UOp]) -> ItemWork:
    """Return the work of a work-item of a linear program."""
    operations, products = dict[str, float](), dict[str, float]()
    shuffles = instructions = 0.0
    for _, times, work in node_work(linear):
        _add(operations, work.operations, times)
        _add(products, work.products, times)
        shuffles += times * work.shuffles
        instructions += times * work.instructions
    return ItemWork(operations, products, shuffles, instructions)


def _add(totals: dict[str, float], counts: Mapping[str, float], times: int) -> None:
    for name, number in counts.items():
        totals[name] = totals.get(name, 0) + times * number


def node_work(linear: Sequence[UOp]) -> Iterator[NodeWork]:
    """Yield the work of each node of a linear program, in order; a LOOP's is that of its steps."""
    rest = executed(tuple(linear))
    loops = list[UOp]()
    for node in linear:
        if node.op is Ops.LOOP:
            loops.append(node.axis)
            steps = math.prod(axis.extent for axis in loops)
            yield NodeWork(node, steps, ItemWork({}, {}, 0, LOOP_INSTRUCTIONS))
        elif node.op is Ops.ENDLOOP:
            loops.pop()
        elif node.op not in (Ops.IF, Ops.ENDIF):
            _, trips, share = next(rest)
            yield NodeWork(node, math.ceil(trips * share), _work(node, loops))


NO_WORK = ItemWork({}, {}, 0, 0)


def _work(node: UOp, loops: Sequence[UOp]) -> ItemWork:
    if node.op in (Ops.LOAD, Ops.STORE):
        value = node.src[1] if node.op is Ops.STORE else node
        parts = max(1, -(-value.dtype.itemsize // MOST_BYTES))
        return ItemWork({}, {}, 0, parts / merged_loads(node, loops))
    if node.op is Ops.BARRIER:
        return ItemWork({}, {}, 0, 1)
    if node.op is Ops.WARP_SHUFFLE:
        words = _words(node.dtype)
        return ItemWork({}, {}, words, words)
    if node.op is Ops.WMMA:
        core: TensorCore = node.arg
        return ItemWork({}, {core.operand_format: core.m * core.n * core.k}, 0, 1)
    if not computes(node, bool(loops)):
        return NO_WORK
    each, count = instructions_of(node), node.dtype.count
    by_kind = {
        _float_kind(node): each.floats * count,
        INTEGER: each.integers * count,
        SPECIAL_FUNCTION: each.special * count,
    }
    operations = {kind: number for kind, number in by_kind.items() if number}
    return ItemWork(operations, {}, 0, each.total * count)


def _float_kind(node: UOp) -> str:
    dtype = (node.src[0] if node.dtype.is_bool else node).dtype
    return dtype.scalar.name if dtype.is_float else INTEGER


def _words(dtype: DType) -> int:
    """Return how many words of 32 bits a lane hands on of a value."""
    return max(1, dtype.scalar.itemsize // WORD_BYTES) * dtype.count
