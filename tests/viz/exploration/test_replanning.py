"""Choices by hand: any that are legal give numpy's answer, others an error that says why."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.agreement.expressions import Case, case
from tests.support import by_rows, count
from workbench import Tensor, dtypes, explore, load
from workbench.base.errors import WorkbenchError
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.by_hand import readers_of
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.exploration.replanning import replan_calls

Array = np.ndarray[Any, Any]
NOT_COMPARED = "bfloat16"
"""numpy compares no arrays of this dtype."""


def program(seed: int) -> tuple[Case, list[Tensor], list[Array]]:
    """Return a random program, one to three of its tensors, and their values in numpy."""
    sample, pick = case(seed), random.Random(seed)
    env: dict[str, Any] = {"np": np, "Tensor": Tensor, "dtypes": dtypes}
    env["bfloat16"], env["rng"] = ml_dtypes.bfloat16, np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        for line in sample.lines:
            exec(line, env)
    numbers = [n for n in range(len(sample.arrays)) if env[f"n{n}"].dtype.name != NOT_COMPARED]
    chosen = [numbers[-1], *pick.sample(numbers, min(len(numbers), pick.randint(0, 2)))]
    chosen = list(dict.fromkeys(chosen))
    return sample, [env[f"t{n}"] for n in chosen], [env[f"n{n}"] for n in chosen]


KINDS = ("changes", "recompute", "split", "before", "in_place")


def random_choice(ex: Exploration, kind: str, pick: random.Random) -> dict[str, Any]:
    """Return the arguments of `replan` for a random choice, which may be impossible."""
    graph = UOp.sink(*ex.outputs).toposort()
    nodes = [d.node for d in ex.decisions if d.node.op is not Ops.COPY] or [ex.decisions[0].node]
    if kind == "changes":
        return {kind: {pick.choice(nodes): pick.choice([True, True, False])}}
    if kind == "recompute":
        read = [n for n in nodes if len(readers_of(n, graph)) > 1]
        value = pick.choice(read or nodes)
        readers = readers_of(value, graph) or nodes
        return {kind: {value: pick.sample(readers, pick.randint(1, max(1, len(readers) - 1)))}}
    if kind == "split":
        sums = [n for n in graph if n.op is Ops.REDUCE_AXIS and n.src[0].size > 1]
        return {kind: {pick.choice(sums or nodes): pick.choice([2, 2, 3, 4, 5])}}
    writers = {buffer: item for item in ex.items for buffer in item.outputs}
    stored = [node for item in ex.items for node in item.nodes]
    if kind == "before":
        return {kind: {pick.choice(stored): pick.choice(stored)}}
    pairs = [
        (node, pick.choice(writers[buffer].nodes))
        for item in ex.items
        for node in item.nodes
        for buffer in item.inputs
        if buffer in writers and item.kernel is not None
    ]
    value, other = pick.choice(pairs or [(stored[0], stored[-1])])
    return {kind: {value: pick.choice([other, other, other, False])}}


def script(sample: Case, ex: Exploration) -> str:
    """Return a program to paste that shows a wrong answer."""
    calls = "\n".join(replan_calls(ex))
    return f"{sample.script()}\nfrom workbench import explore\nex = explore(...)\n{calls}\nex.run()"


def chosen(ex: Exploration, pick: random.Random, counts: Counter[str]) -> Exploration:
    """Return an exploration with random choices: first some values are stored."""
    kinds = ["changes"] * pick.randint(0, 3) + [pick.choice(KINDS) for _ in range(4)]
    for kind in kinds:
        try:
            ex = ex.replan(**random_choice(ex, kind, pick))
            counts[kind] += 1
        except WorkbenchError as error:
            assert error.because, error
            counts["refused"] += 1
    counts["over"] += sum(p.over is not None for p in ex.memory_plan.pieces.values())
    return ex


def test_legal_choices_give_numpys_answer_and_come_back_from_text() -> None:
    """And undone they leave nothing. Sums may round in another order: twice the tolerance."""
    counts = Counter[str]()
    for seed in range(count(300, 20)):
        sample, tensors, values = program(seed)
        bare = explore(*tensors)
        if not bare.items:
            continue
        ex = chosen(bare, random.Random(seed), counts)
        text = script(sample, ex)
        for device in ("LLVM", "PYTHON"):
            for actual, expected in zip(ex.run(device), values, strict=True):
                np.testing.assert_allclose(
                    actual, expected, rtol=1e-4, atol=2 * sample.tolerance(), err_msg=text
                )
        names: dict[str, Any] = {"ex": bare}
        exec("\n".join(replan_calls(ex)), names)
        assert names["ex"].choices == ex.choices, text
        assert plan_of(names["ex"]) == plan_of(ex), text
        assert plan_of(undone(ex)) == plan_of(bare), text
    assert all(counts[kind] for kind in (*KINDS, "refused", "over")), counts


def plan_of(ex: Exploration) -> list[Any]:
    """Return what a plan consists of: the kernels in order, the decisions, the memory."""
    memory = ex.memory_plan
    pieces = sorted((p.offset, p.size_bytes, p.first, p.last) for p in memory.pieces.values())
    kernels = [(item.kernel, item.nodes) for item in ex.items]
    return [kernels, [(d.node, d.name) for d in ex.decisions], pieces]


def undone(ex: Exploration) -> Exploration:
    """Return an exploration without its choices by hand."""
    for name, rows in (
        ("in_place", ex.choices.in_place), ("before", ex.choices.before),
        ("changes", ex.choices.stored), ("recompute", ex.choices.recomputed),
        ("split", ex.choices.parts),
    ):  # fmt: skip
        ex = ex.replan(**{name: dict.fromkeys(rows)})
    assert not ex.choices
    return ex


A = np.random.default_rng(0).standard_normal((24, 37)).astype(np.float32)


def node_of(ex: Exploration, op: Ops) -> UOp:
    return next(d.node for d in ex.decisions if d.node.op is op)


@by_rows("device", ["LLVM", "PYTHON"])
def test_a_reduction_in_parts_is_two_kernels(device: str) -> None:
    """Padded where the parts do not divide it; the largest of negative numbers is none of the
    padding's zeros."""
    signs = np.sign(A) * 2
    for name, tensor, expected in (
        ("sum", Tensor(A).sum(1), A.sum(1)),
        ("sum of all", Tensor(A).sum(), A.sum()),
        ("max", (Tensor(A) - 100).max(1), (A - 100).max(1)),
        ("min", (Tensor(A) + 100).min(0), (A + 100).min(0)),
        ("prod", Tensor(signs).prod(1), signs.prod(1)),
        ("int max", Tensor(np.int32([[-5, -3, -9]])).max(), np.int32(-3)),
    ):
        ex = explore(tensor)
        reduction = node_of(ex, Ops.REDUCE_AXIS)
        for parts in (2, 3):
            two = ex.replan(split={reduction: parts})
            assert len(two.kernels) == len(ex.kernels) + 1, name
            names = [d.name for d in two.decisions]
            assert names.count("store-parts") == 1
            np.testing.assert_allclose(two.run(device)[0], expected, rtol=2e-5, err_msg=name)
            assert two.check(), name
            assert plan_of(two.replan(split={reduction: None})) == plan_of(ex)


def test_a_value_is_stored_for_some_readers_and_computed_again_by_others() -> None:
    e = Tensor(A).exp()
    total, more = e.sum(1), e * 2 + 1
    ex = explore(total, more)
    value, reader = node_of(ex, Ops.EXP), node_of(ex, Ops.REDUCE_AXIS)
    one = ex.replan(recompute={value: [reader]})
    copy = next(d for d in one.decisions if d.name == "store-copy")
    assert copy.stored and "1 reader of the value computes it again" in copy.reason
    reads = {item.nodes[0].op: item.inputs for item in one.items}
    stored = next(item.outputs[0] for item in one.items if item.nodes[0] is copy.node)
    assert stored in reads[Ops.ADD] and stored not in reads[Ops.REDUCE_AXIS]
    for array, expected in zip(one.run(), (np.exp(A).sum(1), np.exp(A) * 2 + 1), strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-5)
    assert one.check()
    assert plan_of(one.replan({value: None})) == plan_of(ex)


def test_a_result_that_is_read_may_be_computed_again() -> None:
    e = Tensor(A).exp()
    ex = explore(e, e.sum(1))
    value, reader = node_of(ex, Ops.EXP), node_of(ex, Ops.REDUCE_AXIS)
    again = ex.replan(recompute={value: [reader]})
    assert all(len(item.inputs) == 1 for item in again.items if item.kernel is not None)
    np.testing.assert_allclose(again.run()[0], np.exp(A), rtol=1e-5)


def chain() -> Exploration:
    """Return a plan of three kernels, each of which reads the one before, and one beside them."""
    x = Tensor(A).realize()
    one = (x * 2).contiguous()
    two = (one + 1).contiguous()
    return explore((two * 3).sum(), (x.T + 5).contiguous())


def kernels_of(ex: Exploration) -> list[UOp]:
    return [item.nodes[0] for item in ex.items if item.kernel is not None]


def test_a_kernel_moves_within_its_dependencies() -> None:
    ex = chain()
    first, second, total, beside = kernels_of(ex)
    moved = ex.replan(before={beside: first})
    assert kernels_of(moved) == [beside, first, second, total]
    assert kernels_of(moved.replan(before={beside: total})) == [first, second, beside, total]
    assert plan_of(moved.replan(before={beside: None})) == plan_of(ex)
    assert moved.memory_plan.peak_bytes >= ex.memory_plan.peak_bytes
    with pytest.raises(WorkbenchError, match="reads CONTIGUOUS .*, stored by the other"):
        ex.replan(before={total: first})
    with pytest.raises(WorkbenchError, match="you chose that the kernel"):
        moved.replan(before={first: beside})
    with pytest.raises(WorkbenchError, match="one kernel stores both"):
        ex.replan(before={first: first})
    for array, other in zip(moved.run(), ex.run(), strict=True):
        np.testing.assert_array_equal(array, other)


def test_a_value_is_written_over_one_that_dies_there() -> None:
    ex = chain()
    first, second, total, beside = kernels_of(ex)
    assert over(ex) == {second: first}, "so the planner chooses"
    apart = ex.replan(in_place={second: False})
    assert over(apart) == {} and over(apart.replan(in_place={second: first})) == {second: first}
    assert plan_of(apart.replan(in_place={second: None})) == plan_of(ex)
    for array, other in zip(apart.run(), ex.run(), strict=True):
        np.testing.assert_array_equal(array, other)
    (x,) = ex.items[0].inputs
    for value, other, because in (
        (total, second, "it has 4 bytes, and the other has 3,552"),
        (first, x, "memory of a tensor of yours"),
        (second, beside, "a result that was asked for, which keeps its values"),
        (first, second, "its kernel does not read the other"),
    ):
        with pytest.raises(WorkbenchError, match=because):
            ex.replan(in_place={value: other})


def test_a_result_is_written_over_a_value_that_dies_there() -> None:
    one = (Tensor(A) * 2).contiguous()
    ex = explore((one + 1).exp())
    first, result = kernels_of(ex)
    assert result not in over(ex), "the planner gives results memory of their own"
    placed = ex.replan(in_place={result: first})
    assert over(placed) == {**over(ex), result: first}
    assert placed.memory_plan.peak_bytes < ex.memory_plan.peak_bytes
    for array, other in zip(placed.run(), ex.run(), strict=True):
        np.testing.assert_array_equal(array, other)
    assert plan_of(placed.replan(in_place={result: None})) == plan_of(ex)
    twice = explore((one + 1).exp(), (one + 2).contiguous())
    first, result, _ = kernels_of(twice)
    with pytest.raises(WorkbenchError, match="still needed: the kernel of CONTIGUOUS"):
        twice.replan(in_place={result: first})
    read = explore(one, one + 1)
    with pytest.raises(WorkbenchError, match="the other is a result that was asked for"):
        read.replan(in_place={kernels_of(read)[1]: kernels_of(read)[0]})


def test_a_value_that_is_needed_elsewhere_is_not_overwritten() -> None:
    one = (Tensor(A[:, :24]) * 2).contiguous()
    turned, later = (one.T + 1).contiguous(), (one + 3).contiguous()
    ex = explore((turned * 2).sum(), (later * 3).sum())
    first, second, third = kernels_of(ex)[:3]
    with pytest.raises(WorkbenchError, match="still needed: the kernel of CONTIGUOUS"):
        ex.replan(in_place={second: first})
    last = ex.replan(before={third: second})
    with pytest.raises(WorkbenchError, match="reads an element at another index"):
        last.replan(in_place={second: first})


def over(ex: Exploration) -> dict[UOp, UOp]:
    """Return the values that are written over others."""
    node = {
        buffer: n for item in ex.items for n, buffer in zip(item.nodes, item.outputs, strict=True)
    }
    pieces = ex.memory_plan.pieces.items()
    return {node[b]: node[piece.over] for b, piece in pieces if piece.over is not None}


@by_rows(
    ("arguments", "because"),
    [
        ({"split": {"sum": 38}}, "the longest axis that it reduces has 37 elements"),
        ({"split": {"sum": 1}}, "the longest axis that it reduces has 37 elements"),
        ({"split": {"sum": 2.5}}, "not a number of partial results"),
        ({"split": {"exp": 2}}, "it is no reduction"),
        ({"recompute": {"exp": []}}, "the list of readers is empty"),
        ({"recompute": {"exp": ["exp"]}}, "does not read it"),
        ({"recompute": {"input": ["exp"]}}, "nothing computes it"),
        ({"before": {"exp": "sum"}}, "no kernel stores this value in the plan"),
        ({"in_place": {"exp": "sum"}}, "no kernel stores it in this plan"),
        ({"in_place": {"exp": True}}, "True does not say over which value"),
        ({"in_place": 3}, "not a dict from values"),
    ],
)
def test_impossible_choices_say_why(arguments: dict[str, Any], because: str) -> None:
    ex = explore(Tensor(A).exp().sum(1))
    values = {"exp": node_of(ex, Ops.EXP), "sum": node_of(ex, Ops.REDUCE_AXIS)}
    values["input"] = next(n for n in ex.outputs[0].toposort() if n.op is Ops.BUFFER)

    def named(each: Any) -> Any:
        if isinstance(each, list):
            return [values[name] for name in each]
        return values[each] if isinstance(each, str) else each

    ((name, rows),) = arguments.items()
    if isinstance(rows, dict):
        rows = {values[value]: named(choice) for value, choice in rows.items()}
    with pytest.raises(WorkbenchError, match=because) as error:
        ex.replan(**{name: rows})
    assert error.value.hint or "nothing computes it" in because


def test_a_sum_without_elements_is_not_split() -> None:
    ex = explore(Tensor(np.zeros((3, 0), np.float32)).sum(1) + 1)
    sums = [n for n in ex.outputs[0].toposort() if n.op is Ops.REDUCE_AXIS]
    for node in sums:
        with pytest.raises(WorkbenchError, match="it combines no two elements"):
            ex.replan(split={node: 2})


def test_other_kernels_stay_as_they_are() -> None:
    """The same nodes: their programs, times and variants are found again."""
    x = Tensor(A)
    ex = explore(x.exp().sum(1), (x @ x.T).relu(), x.T.contiguous())
    product = [k.ast for k in ex.kernels]
    split = ex.replan(split={node_of(explore(x.exp().sum(1)), Ops.REDUCE_AXIS): 4})
    kept = [ast for ast in product if ast in [k.ast for k in split.kernels]]
    assert len(kept) == len(product) - 1


def test_a_file_has_the_choices(tmp_path: Path) -> None:
    ex = chain()
    first, second, total, beside = kernels_of(ex)
    value = node_of(ex, Ops.REDUCE_AXIS)
    by_hand = ex.replan(split={value: 3}, before={beside: first}, in_place={second: False})
    loaded = load(by_hand.save(tmp_path / "choices.json"))
    assert [k.ast for k in loaded.kernels] == [k.ast for k in by_hand.kernels]
    assert len(loaded.choices.nodes) == len(by_hand.choices.nodes)
    assert not over(loaded) and len(loaded.choices.parts) == 1
