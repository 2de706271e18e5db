"""Tensor rules: constants need no memory, and what moves nothing is gone."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.ir.rules.meaning import fired
from tests.ir.samples import buffer, tensor
from workbench.base.dtypes import DType, dtypes
from workbench.ir.meaning.interpret import interpret_tensor
from workbench.ir.node.constants import constant_of, full
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import rewrite
from workbench.ir.rules.movement import MOVEMENT_RULES, TENSOR_RULES
from workbench.ir.rules.values import VALUE_RULES
from workbench.ir.verify.verify import verify

F, INT, B = dtypes.float32, dtypes.int32, dtypes.bool
x = buffer(1, 3, 4)
empty = buffer(2, 3, 0)


def filled(value: float, *shape: int, dtype: DType = F) -> UOp:
    return tensor(Ops.EXPAND, UOp.const(dtype, value), shape)


def reduced(op: Ops, source: UOp, *axes: int) -> UOp:
    return tensor(Ops.REDUCE_AXIS, source, (op, axes))


mask = tensor(Ops.PAD, filled(True, 3, 1, dtype=B), ((0, 3), (0, 0)))
joined = tensor(Ops.EXPAND, mask, (6, 4)).where(
    tensor(Ops.PAD, x, ((0, 3), (0, 0))), UOp.const(F, 7)
)


CASES: dict[str, list[tuple[UOp, UOp]]] = {
    "empty-is-constant": [
        (empty * 2.0, filled(0, 3, 0)),
        (tensor(Ops.RESHAPE, empty, (0, 5)), filled(0, 0, 5)),
        (tensor(Ops.SHRINK, x, ((1, 1), (0, 4))), filled(0, 0, 4)),
        (reduced(Ops.ADD, empty, 1), filled(0, 3, 1)),
        (reduced(Ops.MAX, empty, 1), filled(float("-inf"), 3, 1)),
        (reduced(Ops.MUL, empty, 1), filled(1, 3, 1)),
    ],
    "moves-nothing": [
        (tensor(Ops.RESHAPE, x, (3, 4)), x),
        (tensor(Ops.PERMUTE, x, (0, 1)), x),
        (tensor(Ops.EXPAND, x, (3, 4)), x),
        (tensor(Ops.SHRINK, x, ((0, 3), (0, 4))), x),
        (tensor(Ops.PAD, x, ((0, 0), (0, 0))), x),
        (
            tensor(Ops.FLIP, tensor(Ops.RESHAPE, x, (1, 12)), (0,)),
            tensor(Ops.RESHAPE, x, (1, 12)),
        ),
    ],
    "reshape-reshape": [
        (
            tensor(Ops.RESHAPE, tensor(Ops.RESHAPE, x, (12,)), (2, 6)),
            tensor(Ops.RESHAPE, x, (2, 6)),
        ),
        (tensor(Ops.RESHAPE, tensor(Ops.RESHAPE, x, (12,)), (3, 4)), x),
    ],
    "move-constant": [
        (tensor(Ops.PERMUTE, filled(2, 3, 4), (1, 0)), filled(2, 4, 3)),
        (tensor(Ops.RESHAPE, filled(2, 3, 4), (12,)), filled(2, 12)),
        (tensor(Ops.SHRINK, filled(2, 3, 4), ((0, 2), (1, 3))), filled(2, 2, 2)),
        (tensor(Ops.FLIP, filled(2, 3, 4), (0,)), filled(2, 3, 4)),
        (tensor(Ops.EXPAND, filled(2, 3, 1), (3, 5)), filled(2, 3, 5)),
        (tensor(Ops.RESHAPE, filled(2, 1, 1), ()), UOp.const(F, 2)),
    ],
    "bare-constants": [
        (x * filled(2, 3, 4), x * 2.0),
        (filled(2, 3, 4) + filled(3, 3, 4), filled(5, 3, 4)),
        (filled(1, 3, 4).alu(Ops.EXP2), filled(2, 3, 4)),
        (x * filled(1, 3, 4), x),
    ],
    "reduce-constant": [
        (reduced(Ops.ADD, filled(2, 3, 4), 0, 1), filled(24, 1, 1)),
        (reduced(Ops.ADD, filled(2, 3, 4), 1), filled(8, 3, 1)),
        (reduced(Ops.MUL, filled(2, 3, 4), 1), filled(16, 3, 1)),
        (reduced(Ops.MAX, filled(-2, 3, 4), 0), filled(-2, 1, 4)),
        (reduced(Ops.MIN, filled(-2, 3, 4), 0), filled(-2, 1, 4)),
        (
            reduced(Ops.ADD, filled(2**30, 3, 4, dtype=INT), 1),
            filled(0, 3, 1, dtype=INT),
        ),
        (reduced(Ops.MUL, filled(3, 50, dtype=INT), 0), filled(3**50, 1, dtype=INT)),
        (reduced(Ops.ADD, filled(True, 5, dtype=B), 0), filled(True, 1, dtype=B)),
        (reduced(Ops.MUL, filled(False, 5, dtype=B), 0), filled(False, 1, dtype=B)),
        (reduced(Ops.MUL, filled(10, 40), 0), filled(float("inf"), 1)),
    ],
    "contiguous-buffer": [
        (tensor(Ops.CONTIGUOUS, x, None), x),
        (
            tensor(Ops.CONTIGUOUS, tensor(Ops.CONTIGUOUS, x + 1.0, None), None),
            tensor(Ops.CONTIGUOUS, x + 1.0, None),
        ),
    ],
    "piece-of-pad": [
        (
            tensor(Ops.SHRINK, tensor(Ops.PAD, x, ((1, 2), (0, 3))), ((2, 4), (1, 4))),
            tensor(Ops.SHRINK, x, ((1, 3), (1, 4))),
        ),
        (tensor(Ops.SHRINK, tensor(Ops.PAD, x, ((1, 2), (0, 0))), ((1, 4), (0, 4))), x),
        (
            tensor(Ops.SHRINK, tensor(Ops.PAD, x, ((1, 2), (0, 3))), ((0, 5), (4, 6))),
            filled(0, 5, 2),
        ),
    ],
    "piece-of-choice": [
        (
            tensor(Ops.SHRINK, joined, ((0, 3), (1, 4))),
            tensor(Ops.SHRINK, x, ((0, 3), (1, 4))),
        ),
        (tensor(Ops.SHRINK, joined, ((3, 6), (0, 4))), filled(7, 3, 4)),
    ],
    "reduce-nothing": [
        (
            reduced(Ops.ADD, tensor(Ops.RESHAPE, x, (1, 12)), 0),
            tensor(Ops.RESHAPE, x, (1, 12)),
        )
    ],
}


def meaning(node: UOp) -> Any:
    arrays = {
        x: np.random.default_rng(5).standard_normal((3, 4), np.float32),
        empty: np.zeros((3, 0), np.float32),
    }
    with np.errstate(all="ignore"):
        return np.broadcast_to(interpret_tensor(node, arrays), node.shape)


@pytest.mark.parametrize("name", [rule.name for rule in MOVEMENT_RULES.rules])
def test_one_rule(name: str) -> None:
    for before, expected in CASES[name]:
        verify(before, "tensor")
        after = rewrite(before, TENSOR_RULES)
        assert after is expected
        verify(after, "tensor")
        np.testing.assert_array_equal(meaning(before), meaning(after))
    assert name in fired(CASES[name][0][0], TENSOR_RULES)


STAYS = {
    "a piece with some padding": tensor(
        Ops.SHRINK, tensor(Ops.PAD, x, ((1, 0), (0, 0))), ((0, 2), (0, 4))
    ),
    "a piece of both that are joined": tensor(Ops.SHRINK, joined, ((2, 4), (0, 4))),
    "a pad of a constant is not constant": tensor(Ops.PAD, filled(2, 3), ((1, 0),)),
    "a permutation of equal sizes": tensor(Ops.PERMUTE, buffer(3, 4, 4), (1, 0)),
    "a flip": tensor(Ops.FLIP, x, (0,)),
    "a shrink that keeps the size of another axis": tensor(
        Ops.SHRINK, x, ((1, 3), (0, 4))
    ),
    "a computed value made contiguous": tensor(Ops.CONTIGUOUS, x + 1.0, None),
    "a reduction": reduced(Ops.ADD, x, 0),
}


@pytest.mark.parametrize("why", STAYS)
def test_what_does_something_stays(why: str) -> None:
    assert rewrite(STAYS[why], TENSOR_RULES) is STAYS[why]


def test_shapes_are_kept_where_a_constant_takes_the_place_of_a_tensor() -> None:
    """A value rule knows nothing of shapes; the rule set mends that."""
    number = buffer(4, 3, 4)
    whole = UOp(Ops.BUFFER, INT, (), (9, "NPY", (3, 4)))
    for node in (whole * 0, whole % 1, (whole % 4).alu(Ops.CMPLT, whole.like(4))):
        after = rewrite(node, TENSOR_RULES)
        assert after.shape == (3, 4) and constant_of(after) is not None
    assert rewrite(number * 0.0, TENSOR_RULES).shape == (3, 4)


def test_a_chain_of_constants_leaves_nothing_to_run() -> None:
    node = reduced(
        Ops.ADD, tensor(Ops.PERMUTE, filled(2, 3, 4) * 3.0 + 1.0, (1, 0)), 0, 1
    )
    assert rewrite(node, TENSOR_RULES) is filled(84, 1, 1)


def test_full_of_no_axes_is_the_constant() -> None:
    two = UOp.const(F, 2)
    assert full((), two) is two and constant_of(two) is two
    assert constant_of(full((2, 3), two)) is two and constant_of(x) is None


def test_the_tensor_rules_are_the_value_rules_and_these() -> None:
    names = {rule.name for rule in TENSOR_RULES.rules}
    assert names == {r.name for r in (*MOVEMENT_RULES.rules, *VALUE_RULES.rules)}


def test_every_rule_prints() -> None:
    for rule in MOVEMENT_RULES.rules:
        assert re.fullmatch(
            rf"{rule.name}: .+ -> .+", str(rule)
        ) and " at 0x" not in str(rule)
