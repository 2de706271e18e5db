"""Rangeify: reads are replaced by rules, which can be switched off, explained and replayed."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ir.rules.meaning import fired
from workbench.base.errors import WorkbenchError
from workbench.base.trace import observe
from workbench.execution.realize import planned
from workbench.ir.node.construct import is_read
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.explain import explain
from workbench.ir.rewriting.rewrite import Rule, replay, without
from workbench.ir.schedule.examples import EXAMPLES
from workbench.ir.schedule.rangeify import RANGEIFY_RULES
from workbench.tensor.tensor import Tensor

RULES = {rule.name: rule for rule in RANGEIFY_RULES.rules}
NEEDED = [name for name in RULES if name not in ("open-row", "read-constant")]
VALUES = np.random.default_rng(0).standard_normal((6, 9)).astype(np.float32)


def uses(name: str) -> Tensor:
    """Return an expression that `name` is needed for."""
    x = Tensor(VALUES).realize()
    if name == "push-through-pad":
        return x.pad(((1, 0), (0, 2))) + 1
    if name == "open-reduction":
        return x.sum(1)
    if name == "read-position":
        return Tensor.arange(9) * x
    if name == "push-through-movement":
        return x.T.contiguous()
    return x + 1


@pytest.mark.parametrize("name", RULES)
def test_each_rule_fires_in_its_example(name: str) -> None:
    rule, node = RULES[name], EXAMPLES[name]
    assert name in fired(node, RANGEIFY_RULES)
    assert explain(rule, node, RANGEIFY_RULES).fires


@pytest.mark.parametrize("name", NEEDED)
def test_without_a_rule_there_is_no_kernel(name: str) -> None:
    """The rules are what runs: no other account of the pass makes the kernel."""
    planned([uses(name).uop])
    with without([name]), pytest.raises(WorkbenchError, match=f"switch {name} on"):
        planned([uses(name).uop])


def test_without_its_rule_a_row_is_computed_where_it_is_read() -> None:
    def softmax() -> Tensor:
        return Tensor(VALUES).realize().softmax(-1)

    def reduced(tensor: Tensor) -> int:
        schedule, _ = planned([tensor.uop])
        kernels = [item.kernel for item in schedule.items if item.kernel is not None]
        return sum(n.op.name == "STAGE" for k in kernels for n in k.toposort())

    exp = np.exp(VALUES - VALUES.max(1, keepdims=True))
    expected = exp / exp.sum(1, keepdims=True)
    assert reduced(softmax()) == 1
    with without(["open-row"]):
        assert reduced(softmax()) == 0
        np.testing.assert_allclose(softmax().numpy(), expected, rtol=1e-5)


def test_its_matches_are_its_work() -> None:
    """Replayed, they end in the kernels; a state between them reads what is left of the graph."""
    x = Tensor(VALUES).realize()
    with observe() as watching:
        planned([(x.pad(((1, 1), (0, 0))) @ x.T).softmax(-1).uop])
    (record,) = [r for r in watching.records if r.name == "rangeify"]
    names = [m.rule.name for m in record.matches]
    assert names[0] == "open-loops" and names[-1] == "name-axes"
    assert all(
        isinstance(m.rule, Rule) for m in record.matches[1 : names.index("name-axes")]
    )
    kernels = [item.kernel for item in record.after if item.kernel is not None]
    assert replay(record.before, record.matches) is UOp.sink(*kernels)
    counts = [
        sum(map(is_read, replay(record.before, record.matches, n).toposort()))
        for n in range(1, len(names) + 1)
    ]
    assert counts[0] == len(kernels) and counts[-1] == 0 and min(counts[:-10]) > 0
