"""Movement in pieces: `pieces_of` names, for each element of a value, the element that it is."""

from __future__ import annotations

import random
from itertools import product

import numpy as np

from tests.ir.rules.test_strides import SHAPES, moved_somehow, order_of
from tests.ir.samples import buffer, tensor
from tests.support import count
from workbench.base.dtypes import dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import rewrite
from workbench.ir.rules.examples.movement import filled
from workbench.ir.rules.movement import TENSOR_RULES
from workbench.ir.rules.pieces import MOST_PIECES, pieces_of, same_in_pieces


def padded(node: UOp, pick: random.Random) -> UOp:
    box = tuple((pick.randint(0, 2), pick.randint(0, 2)) for _ in node.shape)
    return tensor(Ops.PAD, node, box)


def chosen(node: UOp, other: UOp, pick: random.Random) -> UOp:
    """Return `node` in a box or around it, and `other` elsewhere."""
    lows = [pick.randrange(n) for n in node.shape]
    sides = [(lo, pick.randrange(n - lo)) for lo, n in zip(lows, node.shape, strict=True)]
    sizes = [n - lo - hi for (lo, hi), n in zip(sides, node.shape, strict=True)]
    inside = filled(pick.random() < 0.8, *sizes, dtype=dtypes.bool)
    condition = tensor(Ops.PAD, inside, tuple(sides))
    pair = (node, other) if pick.random() < 0.5 else (other, node)
    return condition.where(*pair)


def in_pieces(leaf: UOp, pick: random.Random) -> UOp:
    node = leaf
    for _ in range(pick.randint(1, 7)):
        kind = pick.random()
        if kind < 0.15 and node.size < 200:
            node = padded(node, pick)
        elif kind < 0.3 and node.shape:
            other = tensor(Ops.FLIP, node, (0,)) if pick.random() < 0.7 else None
            node = chosen(node, node.like(5) if other is None else other, pick)
        else:
            node = moved_somehow(node, pick)
    return node


def test_pieces_are_the_elements_that_movement_brings() -> None:
    pick, several = random.Random(18), 0
    for _ in range(count(5000)):
        leaf = buffer(1, *pick.choice(SHAPES))
        node = in_pieces(leaf, pick)
        known = {leaf: pieces_of(leaf, {})}
        pieces = pieces_of(node, known)
        several += len(pieces) > 1
        assert len(pieces) <= MOST_PIECES
        result = np.zeros(node.shape, np.float32)
        seen = np.zeros(node.shape, bool)
        for box, base, first, strides in pieces:
            values = [base.arg] if base.op is Ops.CONST else order_of(base, leaf)
            part = tuple(slice(low, high) for low, high in box)
            assert not seen[part].any()
            seen[part] = True
            for place in product(*(range(low, high) for low, high in box)):
                steps = zip(place, box, strides, strict=True)
                at = first + sum((i - low) * s for i, (low, _), s in steps)
                assert 0 <= at < len(values)
                result[place] = values[at]
        assert result.ravel().tolist() == order_of(node, leaf)
        same = same_in_pieces(node)
        assert same is None or order_of(same, leaf) == order_of(node, leaf)
        simple = rewrite(node, TENSOR_RULES)
        assert simple.shape == node.shape
        assert order_of(simple, leaf) == order_of(node, leaf)
    assert several > count(800)


def test_many_pieces_are_not_followed() -> None:
    leaf = buffer(1, MOST_PIECES + 1, 2)
    rows = tensor(Ops.SHRINK, leaf, ((0, MOST_PIECES + 1), (0, 1)))
    wide = tensor(Ops.EXPAND, rows, (MOST_PIECES + 1, 3))
    flat = tensor(Ops.RESHAPE, wide, (3 * (MOST_PIECES + 1),))
    (piece,) = pieces_of(flat, {})
    assert piece.base is flat
