"""A large reduction in two steps is the reduction, along any axes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tests.ir.rules.meaning import fired
from tests.ir.samples import buffer, tensor
from workbench.ir.meaning.interpret import interpret_tensor
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import rewrite
from workbench.ir.schedule.cost import FEW_RESULTS, SPLIT_WORK
from workbench.ir.schedule.examples import EXAMPLES
from workbench.ir.schedule.schedule import FEWEST_PARTS, SPLIT_RULES
from workbench.ir.verify.verify import verify

# 7 has no divisor that is enough, so another axis has to be cut, or none can be
SHAPES = [(SPLIT_WORK,), (7, SPLIT_WORK // 4), (SPLIT_WORK // 4, 7), (2, SPLIT_WORK // 4, 3)]
KINDS = [Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN]


def reductions(shape: tuple[int, ...], kind: Ops) -> list[UOp]:
    axes = range(len(shape))
    chosen = [c for n in axes for c in combinations(axes, n + 1)]
    x = buffer(1, *shape)
    return [tensor(Ops.REDUCE_AXIS, x, (kind, c)) for c in chosen]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_both_sides_of_a_rule_agree(kind: Ops) -> None:
    """Exactly: the numbers are small and whole, the factors 1 and -1."""
    generator = np.random.default_rng(3)
    split = 0
    for shape in SHAPES:
        drawn = generator.integers(-9, 10, shape)
        values = np.sign(drawn) | 1 if kind is Ops.MUL else drawn
        inputs = {buffer(1, *shape): values.astype(np.float32)}
        for before in reductions(shape, kind):
            verify(before, "tensor")
            after = rewrite(before, SPLIT_RULES)
            verify(after, "tensor")
            actual, want = (interpret_tensor(node, inputs) for node in (after, before))
            np.testing.assert_array_equal(actual, want)
            split += fired(before, SPLIT_RULES) == {"split-reduction"}
    assert split == 9


def test_the_rule_fires_in_its_example() -> None:
    name = "split-reduction"
    assert fired(EXAMPLES[name], SPLIT_RULES) == {name}


STAYS = {
    "too little work": tensor(Ops.REDUCE_AXIS, buffer(1, SPLIT_WORK // 2), (Ops.ADD, (0,))),
    "results enough to share out": tensor(
        Ops.REDUCE_AXIS, buffer(1, FEW_RESULTS + 1, SPLIT_WORK), (Ops.ADD, (1,))
    ),
    "no part that fits": tensor(
        Ops.REDUCE_AXIS, buffer(1, SPLIT_WORK, FEWEST_PARTS - 1), (Ops.ADD, (1,))
    ),
    "a prime": tensor(Ops.REDUCE_AXIS, buffer(1, (1 << 31) - 1), (Ops.ADD, (0,))),
}


@pytest.mark.parametrize("why", STAYS)
def test_what_is_not_split(why: str) -> None:
    assert rewrite(STAYS[why], SPLIT_RULES) is STAYS[why]
