"""Movement that is undone: what `same_elements` finds has the same elements, in the same order."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np

from tests.ir.samples import buffer, tensor
from tests.support import count
from workbench.ir.meaning.interpret import interpret_tensor
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import rewrite
from workbench.ir.rules.movement import TENSOR_RULES
from workbench.ir.rules.strides import same_elements

SHAPES = [(2, 3, 4), (4, 6), (1, 8, 3), (24,), (2, 2, 6), (2, 12, 1)]


def order_of(node: UOp, leaf: UOp) -> list[float]:
    """Return the number, in the leaf, of each element of a movement of it."""
    numbers = np.arange(leaf.size, dtype=np.float32).reshape(leaf.shape)
    moved: Any = interpret_tensor(node, {leaf: numbers})
    return np.broadcast_to(moved, node.shape).ravel().tolist()  # type: ignore[no-any-return]


def moved_somehow(node: UOp, pick: random.Random) -> UOp:
    """Return a node under one more movement op, without padding."""
    axes = range(len(node.shape))
    match pick.choice("rrppfse"):
        case "r":
            shapes = [s for s in SHAPES if math.prod(s) == node.size]
            return tensor(Ops.RESHAPE, node, pick.choice([*shapes, (node.size,)]))
        case "p":
            return tensor(Ops.PERMUTE, node, tuple(pick.sample(axes, len(axes))))
        case "f":
            return tensor(Ops.FLIP, node, tuple(a for a in axes if pick.random() < 0.6))
        case "s":
            lows = [pick.randrange(n) if pick.random() < 0.2 else 0 for n in node.shape]
            bounds = zip(lows, node.shape, strict=True)
            return tensor(Ops.SHRINK, node, tuple(bounds))
        case _:
            if node.size > 100:
                return node
            wide = tuple(pick.choice([1, 2]) if n == 1 else n for n in node.shape)
            return tensor(Ops.EXPAND, node, (*pick.choice([(), (2,)]), *wide))


def back(node: UOp, leaf: UOp) -> UOp:
    """Return a bijective movement of `leaf`, with its steps undone, the last first."""
    result, step = node, node
    while step is not leaf:
        below = step.src[0]
        if step.op is Ops.PERMUTE:
            order = tuple(np.argsort(step.arg).tolist())
            result = tensor(Ops.PERMUTE, result, order)
        else:
            arg = step.arg if step.op is Ops.FLIP else below.shape
            result = tensor(step.op, result, arg)
        step = below
    return result


def test_what_is_found_has_the_same_elements_in_order() -> None:
    pick, found = random.Random(16), 0
    for _ in range(count(5000)):
        leaf = buffer(1, *pick.choice(SHAPES))
        node = leaf
        for _ in range(pick.randint(1, 7)):
            node = moved_somehow(node, pick)
        if node is leaf:
            continue
        same = same_elements(node)
        if same is not None:
            found += 1
            assert order_of(same, leaf) == order_of(node, leaf)
        simple = rewrite(node, TENSOR_RULES)
        assert simple.shape == node.shape
        assert order_of(simple, leaf) == order_of(node, leaf)
    assert found > count(500)


def test_steps_that_are_undone_one_by_one_leave_the_value() -> None:
    pick = random.Random(17)
    for _ in range(count(3000)):
        leaf = buffer(1, *pick.choice(SHAPES))
        node = leaf
        for _ in range(pick.randint(1, 6)):
            moved = moved_somehow(node, pick)
            if moved.op not in (Ops.SHRINK, Ops.EXPAND):
                node = moved
        assert rewrite(back(node, leaf), TENSOR_RULES) is leaf
