"""Which values are stored, which are computed again, and the reason and estimates of each."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ir.schedule.support import COUNTS, A, B, kernels, numbers, planned
from tests.support import by_rows
from workbench import Tensor
from workbench.execution import realize
from workbench.execution.memory_plan import without_detach
from workbench.ir.node.ops import MOVEMENT, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.choose import MAX_READS
from workbench.ir.schedule.decide import decide


def test_what_was_realized_is_not_computed_again() -> None:
    x = (Tensor(A) @ Tensor(B)).realize()
    assert planned(x).items == ()
    (item,) = planned(x + 1).items
    assert _base(x.uop) in item.buffers
    same = Tensor(A) + 1
    twin = same * 1
    same.realize()
    assert planned(twin).items == ()


@by_rows("name", COUNTS)
def test_every_value_is_stored_or_fused_for_a_reason(name: str) -> None:
    plan, simple = realize.planned([t.uop for t in COUNTS[name][1]()])
    decided = {d.node: d for d in plan.decisions}
    assert len(decided) == len(plan.decisions)
    assert set(plan.stored) == {n for n, d in decided.items() if d.stored}
    leaves = {Ops.BUFFER, Ops.CONST, Ops.IOTA, Ops.SINK}
    reached = UOp.sink(*simple).toposort(lambda n: n.op is not Ops.EXPAND or not n.src[0].is_const)
    for node in reached:
        if not node.is_elementwise and node.op is not Ops.REDUCE_AXIS or node in leaves:
            continue
        assert node in decided, node
    for decision in plan.decisions:
        assert decision.reason and decision.name.startswith(("store-", "fuse-", "stage-"))
        assert decision.name.startswith("store-") == decision.stored
        if decision.name not in ("store-asked", "fuse-free"):
            assert {"reads", "evaluations", "elements"} <= set(decision.estimates)
    for item in plan.items:
        for decision, node in zip(item.decisions, item.nodes, strict=True):
            assert decision is decided[node] and decision.stored


def decision_of(tensor: Tensor, value: Tensor) -> Any:
    plan, _ = realize.planned([tensor.uop])
    (node,) = without_detach([value.uop])
    return next(d for d in plan.decisions if d.node is node or d.node is _base(node))


def _base(node: UOp) -> UOp:
    """Return what movement, and occurrences of a value, are of."""
    while node.op in MOVEMENT or node.op is Ops.DETACH:
        node = node.src[0]
    return node


def test_a_result_is_stored_because_it_was_asked_for() -> None:
    x = Tensor(A) + 1
    assert decision_of(x, x).reason == "it is a result that was asked for"


def test_an_elementwise_value_is_fused_because_it_is_computed_once() -> None:
    x = Tensor(A) + 1
    decision = decision_of(x * 3, x)
    assert decision.name == "fuse-once"
    assert decision.estimates["evaluations"] == decision.estimates["elements"] == A.size


def test_a_matmul_inside_another_keeps_its_register_tile() -> None:
    x = Tensor(A) @ Tensor(B)
    assert decision_of(x @ Tensor(A), x).name == "store-for-tile"
    assert decision_of(x.argmin(1), x).name == "store-for-tile"


def test_a_row_that_is_chosen_by_index_has_no_tile_to_lose() -> None:
    """A sum over all positions of which one is equal is no product of matrices but a load."""
    table = Tensor(np.arange(2000 * 256, dtype=np.float32).reshape(2000, 256))
    index = np.random.default_rng(0).integers(-2000, 2000, (512, 16)).astype(np.int32)
    bags = table[Tensor(index)].sum(1)
    tables = [d for d in planned(bags).decisions if d.node.size == 512 * 16 * 256]
    assert [d.name for d in tables] == ["fuse-once"]
    np.testing.assert_allclose(bags.numpy(), table.numpy()[index].sum(1), rtol=1e-6)


def test_what_compares_positions_is_computed_where_it_is_read() -> None:
    """Reading the mask of a scan from memory would take as long, and is a kernel more."""
    scan = planned(Tensor.ones(64, 4, 32, 1).exp().contiguous().reshape(256, 32).cumsum(1))
    masks = [d for d in scan.decisions if d.node.op is Ops.CMPLT]
    assert [d.name for d in masks] == ["fuse-positions"]
    table = planned(Tensor(A).exp().tril() @ Tensor(B))
    assert not any(d.stored for d in table.decisions if d.node.dtype.is_bool)


def test_an_operand_is_stored_because_recomputing_costs_more() -> None:
    x = Tensor(A).exp2()
    decision = decision_of(x @ Tensor(B), x)
    assert decision.name == "store-cheaper"
    assert decision.estimates["cost_to_recompute"] > decision.estimates["cost_to_store"]
    assert decision.estimates["evaluations"] == 64 * 64 * 48


def test_a_large_reduction_to_one_value_is_stored_so_that_its_readers_run_in_parallel() -> None:
    x = Tensor(numbers(512, 512))
    total = x.sum()
    assert decision_of(x - total, total).name == "store-for-parallel"
    assert len(kernels(x - total)) == 2


def test_a_value_read_in_many_ways_is_stored() -> None:
    x = Tensor(numbers(40, 40)) + 1
    y = sum((x.pad(((i, 0), (0, i)))[:40, :40] for i in range(1, MAX_READS + 2)), start=x)
    assert decision_of(y, x).name == "store-many-reads"
    few = sum((x.pad(((i, 0), (0, i)))[:40, :40] for i in range(1, 5)), start=x)
    assert not decision_of(few, x).stored


def test_a_kernel_is_full_by_what_its_values_expand_into() -> None:
    """Compilers take more than linear time, and a sine is as long as a hundred sums."""
    chains = {"sums": 0, "sines": 0}
    for name in chains:
        y, expected = Tensor(numbers(2, 3)), numbers(2, 3)
        for _ in range(200):
            y = y + 1.0 if name == "sums" else y.sin()
            expected = expected + np.float32(1) if name == "sums" else np.sin(expected)
        decisions = realize.planned([y.uop])[0].decisions
        chains[name] = sum(d.name == "store-large-kernel" for d in decisions)
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5)
    assert chains["sums"] == 0 and 10 <= chains["sines"] <= 20


def test_long_chains_of_movement_are_cut() -> None:
    """Index expressions that grow with every reshape must not grow without end."""
    a = numbers(6, 4)
    x, expected = Tensor(a), a
    for _ in range(60):
        x, expected = x.permute(1, 0).reshape(6, 4), expected.T.reshape(6, 4)
    names = {d.name for d in realize.planned([x.uop])[0].decisions}
    assert "store-long-index" in names
    assert np.array_equal(x.numpy(), expected)


def test_computing_a_product_again_is_said_to_cost_its_sums() -> None:
    """Also that of three which reads another: it is computed again, and not the one below it."""
    n = 64
    a, b, c, d = (Tensor(numbers(n, n, seed=s)) for s in range(4))
    decisions = planned(a @ b @ c @ d).decisions
    costs = [e.estimates for e in decisions if e.name == "store-for-tile"]
    assert len(costs) == 2
    for estimates in costs:
        again = estimates["evaluations"] - estimates["elements"]
        assert again == n**3 - n**2
        per_element = estimates["cost_to_recompute"] / again
        assert 2 * n <= per_element + 1 <= 2 * n + 4


def test_fusing_an_epilogue_is_charged_with_the_epilogue_alone() -> None:
    """The product below it is then stored. It was charged with computing that 64 times; and before
    the choice only another plan says what becomes of the product."""
    n = 64
    a, b, c = (Tensor(numbers(n, n, seed=s)) for s in range(3))
    relu = (a @ b).relu()
    (y,), (node,) = without_detach([(relu @ c).uop]), without_detach([relu.uop])
    before = {d.node: d for d in decide([y]).decisions}[node]
    assert before.name == "store-for-tile" and "cost_to_recompute" not in before.estimates
    plan = decide([y], {node: False})
    now = {d.node: d for d in plan.decisions}[node]
    assert now.name == "fuse-forced"
    assert {d.name for d in plan.stored.values()} == {"store-asked", "store-for-tile"}
    again = now.estimates["evaluations"] - now.estimates["elements"]
    assert again == n**3 - n**2
    assert 0 < now.estimates["cost_to_recompute"] <= again


def test_a_product_is_one_however_deep_its_operand() -> None:
    """The stream that layers add to is computed from all of them, and is one operand. Its
    products stayed inside the loop over rows from the sixteenth layer on."""
    x, w = Tensor(numbers(64, 64)), Tensor(numbers(64, 64))
    for _ in range(24):
        x = (x @ w).softmax(1) + x
    products = [k for k in kernels(x) if k.arg.name == "r_64_64_64"]
    assert len(products) == 24


def test_a_row_that_loops_would_fill_again_is_no_row() -> None:
    """Both reads of e in e @ e.T share all three loops, and a column of it depends on the
    innermost: filled there, it would be computed 256 times for each element of the result."""
    n = numbers(256, 256)
    e = Tensor(n).sin().exp()
    decision = decision_of(e @ e.T, e)
    assert decision.stored and decision.name == "store-cheaper"
    assert not any(k.op is Ops.STAGE for k in kernels(e @ e.T)[-1].toposort())
    expected = np.exp(np.sin(n))
    np.testing.assert_allclose((e @ e.T).numpy(), expected @ expected.T, rtol=1e-4)


def test_a_row_that_each_element_would_fill_anew_is_not_kept() -> None:
    """Read as it is and transposed, a matrix depends on both loops in both of its axes."""
    x = Tensor(numbers(48, 48)).exp()
    assert decision_of(x + x.T, x).name == "fuse-cheaper"
    product = Tensor(numbers(64, 64)) @ Tensor(numbers(64, 64, seed=1))
    assert decision_of(product + product.T, product).name == "store-cheaper"
