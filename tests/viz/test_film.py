"""Scheduling as a film: each of its pictures is what `ex.decisions` say up to there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from check_page import OFFLINE, deno

from tests.viz.record.support import plain
from tests.viz.support import array, matmul, softmax
from workbench.ir.node.ops import MOVEMENT
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import Decision
from workbench.tensor.tensor import Tensor
from workbench.viz import Exploration, explore
from workbench.viz.record.record import Recorder, build

SCRIPT = "tests/viz/page/film_agreement.js"


def attention() -> Exploration:
    q, k, v = array(24, 32), array(32, 24), array(24, 32)
    return explore((q @ k / 8).softmax(-1) @ v)


def shared() -> Exploration:
    """Two results: the rows that both read are stored, and two kernels compute the sum."""
    x: Tensor = array(40, 64)
    y = (x + 1).permute(1, 0)
    return explore(y.reshape(8, 320).layernorm(), y.sum(0).exp() + (x + 1).sum())


def padded() -> Exploration:
    image, kernels = array(1, 3, 9, 9), array(4, 3, 3, 3)
    return explore(image.conv2d(kernels, padding=1).relu())


EXPRESSIONS: Mapping[str, Callable[[], Exploration]] = {
    "matmul": matmul, "softmax": softmax, "attention": attention, "shared": shared,
    "padded": padded, "layernorm": lambda: explore(array(16, 48).layernorm()),
    "cut": lambda: _cut(attention()),
}  # fmt: skip


def _cut(ex: Exploration) -> Exploration:
    fused = next(d.node for d in ex.decisions if d.name == "fuse-row")
    return ex.replan({fused: True})


def inside_so_far(ex: Exploration, decisions: Sequence[Decision]) -> dict[UOp, set[int]]:
    """Return the kernels of each value that `decisions` settle: a stored value begins one, any
    other is in those of its readers. What only moves a value is where its readers are."""
    computed = [item.nodes for item in ex.items if item.kernel is not None]
    numbers = {node: k for k, nodes in enumerate(computed) for node in nodes}
    decided = {d.node: d for d in decisions}
    nodes = UOp.sink(*ex.outputs).toposort()
    nodes.popitem()
    readers: dict[UOp, list[UOp]] = {node: [] for node in nodes}
    for node in nodes:
        for source in node.src:
            readers[source].append(node)
    undecided = {d.node for d in ex.decisions} - decided.keys()
    inside: dict[UOp, set[int]] = {}
    for node in reversed(nodes):
        decision = decided.get(node)
        if decision is not None and decision.stored:
            inside[node] = {numbers[node]} if node in numbers else set()
        elif node not in undecided and all(r in inside for r in readers[node]):
            inside[node] = set().union(*[inside[r] for r in readers[node]])
    return inside


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_each_picture_is_what_is_decided_so_far(name: str, tmp_path: Path) -> None:
    ex = EXPRESSIONS[name]()
    recorder = Recorder(ex)
    recorder.first()
    record = plain(recorder.record)
    film = [
        (place, row["value"])
        for place, row in enumerate(record["plan"]["decisions"])
        if row["kernel"] is not None
    ]
    assert film, "there is something to decide"
    drawn = [recorder.node(row["n"]) for row in record["plan"]["nodes"]]
    data = tmp_path / "film.json"
    steps = [
        (value, kernels_shown(drawn, inside_so_far(ex, ex.decisions[: place + 1])))
        for place, value in film
    ]
    parts = {name: record[name] for name in ("plan", "passes")}
    rows = {"record": parts, "film": steps, "readers": readers_of(record)}
    data.write_text(json.dumps(rows), encoding="utf-8")
    allowed = (*OFFLINE, "--no-check", f"--allow-read={data}")
    assert deno("run", "--quiet", *allowed, SCRIPT, data) == 0


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_after_the_last_decision_the_grounds_are_the_kernels(name: str) -> None:
    """Each drawn value is on the ground of the kernel that computes it, and each ground, with its
    colour and its end, is one of a kernel: no more, no fewer."""
    ex = EXPRESSIONS[name]()
    recorder = Recorder(ex)
    recorder.first()
    plan = plain(recorder.record)["plan"]
    computed = [item for item in ex.items if item.kernel is not None]
    assert [r["kernel"] for r in plan["regions"]] == list(range(len(computed)))
    assert len({r["colour"] for r in plan["regions"]}) == len(computed)
    ends = {node for item in ex.items for node in item.nodes}
    insides = [{n for n in item.computed(ends) if n.op not in MOVEMENT} for item in computed]
    last = max((row["step"] for row in plan["nodes"]), default=0)
    assert last <= len(ex.decisions), "after the last decision all is decided"
    drawn = {recorder.node(row["n"]): row for row in plan["nodes"]}
    for number, (item, inside) in enumerate(zip(computed, insides, strict=True)):
        on_ground = {
            node
            for node, row in drawn.items()
            if number in row["kernels"] and node.op not in MOVEMENT
        }
        assert on_ground == inside & drawn.keys()
        stored = [n for n, row in drawn.items() if row["stored_by"] == number]
        assert set(stored) == set(item.nodes) & drawn.keys() and stored
    forced = [row for row in plan["decisions"] if row["forced"]]
    assert bool(forced) == (name == "cut")


def kernels_shown(drawn: Sequence[UOp], inside: Mapping[UOp, set[int]]) -> list[list[int] | None]:
    """Return per drawn value its kernels so far; an input is in none."""
    return [
        None
        if node not in inside
        else []
        if node.op.name in ("BUFFER", "COPY")
        else sorted(inside[node])
        for node in drawn
    ]


def readers_of(record: dict[str, Any]) -> list[list[int]]:
    """Return per drawn value those that read it, moved or not."""
    nodes, edges = record["plan"]["nodes"], record["plan"]["edges"]
    after: list[set[int]] = [set() for _ in nodes]
    for place in reversed(range(len(nodes))):
        for reader in [edge["b"] for edge in edges if edge["a"] == place]:
            moved = nodes[reader]["role"] == "movement"
            after[place] |= after[reader] if moved else {reader}
    return [sorted(readers) for readers in after]


def test_the_text_names_the_steps_of_the_film() -> None:
    ex = attention()
    record = plain(build(ex))
    lines = str(ex.decisions).split("\n")
    film = [d for d in record["plan"]["decisions"] if d["kernel"] is not None]
    named = [line for line in lines if not line.startswith("copy ")]
    assert [line.startswith(row["value"]) for line, row in zip(named, film, strict=True)]
    assert str(ex.decisions) in str(ex.plan)


def test_readers_are_decided_before_what_they_read() -> None:
    for make in EXPRESSIONS.values():
        ex = make()
        order = {d.node: place for place, d in enumerate(ex.decisions)}
        for node in UOp.sink(*ex.outputs).toposort():
            for source in node.src:
                if node in order and source in order:
                    assert order[node] < order[source]
                assert source in order or source.op in MOVEMENT or not source.src


ROW = "a row of it, kept in the kernel, is cheaper than computing it again"
AGAIN = "computing it again is cheaper than storing"
ONCE = "fused, each element is computed once"
EXPLANATIONS: Mapping[str, tuple[Callable[[], Exploration], list[tuple[str, str]]]] = {
    "softmax": (lambda: explore(array(64, 256).softmax(-1)), [("exp 64x256", ROW)]),
    "layernorm": (lambda: explore(array(64, 256).layernorm()), [("add 64x256", ROW)]),
    "attention": (
        attention,
        [("sum of products 24x24x1", ROW), ("exp 24x24", ROW), ("mul 24x24", AGAIN)],
    ),
    "matmul": (
        lambda: explore((array(32, 48) @ array(48, 16) + array(16)).relu()),
        [("sum of products 32x16x1", ONCE)],
    ),
    "var": (lambda: explore(array(64, 256).var()), [("sum 1x1", ONCE)]),
    "elementwise": (lambda: explore((array(8, 8) + 1).relu()), [("add 8x8", ONCE)]),
    "one operation": (lambda: explore(array(8, 8) + 1), []),
}  # fmt: skip
"""The decisions that explain why there are not more kernels, the most interesting first."""


@pytest.mark.parametrize("name", EXPLANATIONS)
def test_why_there_are_not_more_kernels(name: str) -> None:
    """What could have been otherwise: what is fused at a cost, else a reduction before any value,
    and of several the one that the others wait for."""
    make, explanation = EXPLANATIONS[name]
    ex = make()
    rows = plain(build(ex))["plan"]["decisions"]
    explaining = sorted((r["rank"], r) for r in rows if r["rank"] is not None)
    assert [(r["value"], r["reason"]) for _, r in explaining] == explanation
    assert [rank for rank, _ in explaining] == list(range(len(explanation)))
    text = str(ex.plan)
    for _, row in explaining:
        costs = {c["cost"]: c["wins"] for c in row["choices"]}
        assert costs[min(costs)], "the cheapest was chosen"
        assert f"  {row['value']}: {row['reason']}. {row['costs']}" in text
    assert len(ex.kernels) == (2 if name == "attention" else 1)
    costly = any(reason in (ROW, AGAIN) for _, reason in explanation)
    assert any(row["tradeoff"] for row in rows) == costly
    assert ("fused, although that costs something" in text) == costly
    ends_sooner = bool(explanation) and not costly
    assert ("a kernel could have ended here" in text) == ends_sooner
