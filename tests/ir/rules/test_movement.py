"""Tensor rules: constants need no memory, and what moves nothing is gone."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.ir.rules.meaning import fired
from tests.ir.samples import buffer, tensor
from workbench.base.dtypes import dtypes
from workbench.ir.meaning.interpret import interpret_tensor
from workbench.ir.node.construct import constant_of, full
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import rewrite
from workbench.ir.rules.examples.movement import (
    EXAMPLES,
    empty,
    filled,
    half,
    joined,
    joined_rows,
    narrow,
    reduced,
    rows,
    transposed,
    x,
)
from workbench.ir.rules.movement import MOVEMENT_RULES, TENSOR_RULES
from workbench.ir.rules.values import VALUE_RULES
from workbench.ir.verify.verify import verify

F, INT = dtypes.float32, dtypes.int32


def meaning(node: UOp) -> Any:
    arrays = {
        x: np.random.default_rng(5).standard_normal((3, 4), np.float32),
        empty: np.zeros((3, 0), np.float32),
        half: np.random.default_rng(6).standard_normal((3, 4)).astype(np.float16),
        narrow: np.arange(-6, 6, dtype=np.int8).reshape(3, 4),
    }
    with np.errstate(all="ignore"):
        return np.broadcast_to(interpret_tensor(node, arrays), node.shape)


@pytest.mark.parametrize("name", [rule.name for rule in MOVEMENT_RULES.rules])
def test_one_rule(name: str) -> None:
    for before, expected in EXAMPLES[name]:
        verify(before, "tensor")
        simple = rewrite(before, TENSOR_RULES)
        assert simple is expected
        verify(simple, "tensor")
        np.testing.assert_array_equal(meaning(before), meaning(simple))
    assert name in fired(EXAMPLES[name][0][0], TENSOR_RULES)


STAYS = {
    "a piece with some padding": tensor(
        Ops.SHRINK, tensor(Ops.PAD, x, ((1, 0), (0, 0))), ((0, 2), (0, 4))
    ),
    "a piece of both that are joined": tensor(Ops.SHRINK, joined, ((2, 4), (0, 4))),
    "a pad of a constant is not constant": tensor(Ops.PAD, filled(2, 3), ((1, 0),)),
    "a permutation of equal sizes": tensor(Ops.PERMUTE, buffer(3, 4, 4), (1, 0)),
    "a flip": tensor(Ops.FLIP, x, (0,)),
    "a shrink that keeps the size of another axis": tensor(Ops.SHRINK, x, ((1, 3), (0, 4))),
    "half of a flip undone": tensor(Ops.FLIP, tensor(Ops.FLIP, x, (0, 1)), (0,)),
    "a transposed value as a row": tensor(Ops.RESHAPE, transposed, (1, 12)),
    "a row of a value, repeated": tensor(Ops.EXPAND, rows(1, 2), (3, 4)),
    "pieces in another order": joined_rows(rows(1, 3), rows(0, 1)),
    "pieces that overlap": joined_rows(rows(0, 2), rows(1, 3)),
    "pieces with a gap": joined_rows(rows(0, 1), rows(2, 3)),
    "pieces of two values": joined_rows(rows(0, 2), rows(2, 3, buffer(7, 3, 4))),
    "pieces of other columns": joined_rows(
        rows(0, 2, buffer(8, 3, 5)), tensor(Ops.SHRINK, buffer(8, 3, 5), ((2, 3), (1, 5)))
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
        simple = rewrite(node, TENSOR_RULES)
        assert simple.shape == (3, 4) and constant_of(simple) is not None
    assert rewrite(number * 0.0, TENSOR_RULES).shape == (3, 4)


def test_a_chain_of_constants_leaves_nothing_to_run() -> None:
    node = reduced(Ops.ADD, tensor(Ops.PERMUTE, filled(2, 3, 4) * 3.0 + 1.0, (1, 0)), 0, 1)
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
        assert re.fullmatch(rf"{rule.name}: .+ -> .+", str(rule)) and " at 0x" not in str(rule)
