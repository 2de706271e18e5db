"""The lines that bind `ex`, run: they give the same kernels, whatever the user's line says."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.viz.record.support import plain
from tests.viz.support import array
from workbench import nn
from workbench.tensor.tensor import Tensor
from workbench.viz import Exploration, explore
from workbench.viz.exploration.replanning import replan_calls
from workbench.viz.record.recipe import baseline_recipe, page_recipes, recipe
from workbench.viz.record.record import Recorder

X = array(96, 96)

LINES = re.compile(r"  \S+:\d+$", re.MULTILINE)


def rerun(ex: Exploration, **known: Any) -> Exploration:
    """Return the `ex` that the recipe binds where the names `known` are."""
    names = dict(known)
    exec(recipe(ex), names)
    exploration: Exploration = names["ex"]
    return exploration


def assert_same(one: Exploration, other: Exploration) -> None:
    assert [k.ast for k in one.kernels] == [k.ast for k in other.kernels]
    assert one.forced == other.forced and one.rules_off == other.rules_off
    assert [d.node for d in one.decisions] == [d.node for d in other.decisions]


def named() -> tuple[Exploration, dict[str, Any]]:
    z = (X @ X).relu()
    return explore(z), {"z": z}


def called() -> tuple[Exploration, dict[str, Any]]:
    a = X + 1
    ex = explore((a @ a).exp(), show="plan")
    return ex, {"a": a}


def several() -> tuple[Exploration, dict[str, Any]]:
    a = X + 1
    ex = explore(a.sum(), a.max())
    return ex, {"a": a}


def told_nowhere() -> tuple[Exploration, dict[str, Any]]:
    def value() -> Tensor:
        return (X * 3).exp()

    values = [value()]
    return explore(*values), {"y": values[0]}


@pytest.mark.parametrize("make", [named, called, several, told_nowhere])
def test_it_binds_the_same_exploration(make: Callable[[], Any]) -> None:
    ex, variables = make()
    assert_same(rerun(ex, **variables), ex)


def test_what_was_forced_and_switched_off_is_said() -> None:
    y = ((X * 0.25 + 1) @ X).softmax(1)
    ex = explore(y, without=("form-fma",))
    product = next(d.node for d in ex.decisions if d.name == "store-for-tile")
    fused = next(d.node for d in ex.decisions if not d.stored)
    forced = ex.replan({fused: True, product: False})
    assert_same(rerun(forced, y=y), forced)
    assert forced.forced and forced.rules_off
    s = X.sum(1) + 1
    named_call = replan_calls(explore(s * 2 + s.exp()).replan({s: True}))[0]
    assert named_call.endswith(".node: True})  # s"), named_call
    moved = next(n for n in ex.outputs[0].toposort() if n.op.name == "EXPAND")
    planned = ex.replan({moved: False})
    assert_same(rerun(planned, y=y), planned)


@pytest.fixture(scope="module")
def recorder() -> Recorder:
    y = (X @ X).softmax(1)
    page_recorder = Recorder(explore(y))
    page_recorder.first()
    for _ in page_recorder.rest():
        pass
    return page_recorder


def run(code: str, ex: Exploration) -> tuple[dict[str, Any], str]:
    """Return the names that code binds where the tensors are, and what it prints."""
    names: dict[str, Any] = {"y": ex.tensors[0]}
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(code, names)
    return names, output.getvalue()


def copied(recorder: Recorder, place: int, match: int | None = None) -> str:
    """Return what the page copies of a pass, or of a match (tests/viz/page/copy.test.js)."""
    record = plain(recorder.record)
    row = plain(record["passes"][place])
    variants = plain(record["variants"])
    binding = "" if row["variant"] is None else variants[row["variant"]]["recipe"]
    recipes = row["python"]
    code = recipes["outcome"] if match is None else str(match).join(recipes["match"])
    return str(record["expr"]["python"] + binding + code)


@pytest.mark.parametrize(
    ("unit", "name"), [("rewrite", None), ("decision", None), ("rewrite", "plain"), ("opt", "auto")]
)
def test_a_step_is_got_at(recorder: Recorder, unit: str, name: str | None) -> None:
    """Run where the tensors are, it finds the very nodes: of a variant's passes, and of those of
    scheduling, which have none."""
    passes, variants, rules = (
        plain(getattr(recorder.record, table)) for table in ("passes", "variants", "rules")
    )
    names_of = {i: v["name"] for i, v in enumerate(variants)} | {None: None}
    place = next(
        place
        for place, row in enumerate(passes)
        if row["unit"] == unit and row["rewrites"] and names_of[row["variant"]] == name
    )
    names, text = run(copied(recorder, place), recorder.exploration)
    assert names["found"].name == passes[place]["name"]
    assert text.strip() == str(names["found"].after).strip()
    rewrites = passes[place]["rewrites"]
    names, text = run(copied(recorder, place, len(rewrites) - 1), recorder.exploration)
    match, (rule, before, after, *_) = names["match"], rewrites[-1]
    assert match.before is recorder.node(before)
    assert unit == "decision" or match.after is recorder.node(after)
    assert rule == -1 or str(match.rule).startswith(rules[rule]["name"])
    assert text.startswith(str(match.rule))
    assert ("why_not" in copied(recorder, place, 0)) == (unit == "rewrite")


def test_each_pass_that_is_one_function_is_got_at(recorder: Recorder) -> None:
    passes = plain(recorder.record.passes)
    steps = [
        place for place, row in enumerate(passes) if row["unit"] == "step" and not row["rewrites"]
    ]
    assert steps
    for place in steps[:4]:
        names, text = run(copied(recorder, place), recorder.exploration)
        assert names["found"].name == passes[place]["name"]
        assert not names["found"].matches and text


def test_the_passes_of_a_failed_compilation_are_got_at() -> None:
    y = X.exp2()
    recorder = Recorder(explore(y))
    recorder.first()
    name = "exp2-polynomial"
    kernel = recorder.kernels[0].without(name)
    variant = recorder.add_variant(0, kernel, "without", 0)
    recorder.add_compiled(variant)
    row = plain(recorder.record.variants[variant])
    assert row["error"] and row["passes"]
    names, text = run(copied(recorder, row["passes"][-1]), recorder.exploration)
    assert names["kernel"].rules_off == (name,)
    assert "observed(" in copied(recorder, row["passes"][-1])
    assert names["found"].error is not None and str(names["found"].error) in text


def test_the_plan_and_a_decision_are_got_at() -> None:
    y = ((X * 0.25 + 1) @ X).softmax(1)
    own = explore(y)
    tile = next(d for d in own.decisions if d.name == "store-for-tile")
    ex = own.replan({tile.node: False})
    recorder = Recorder(ex)
    recorder.first()
    record, decisions = plain(recorder.record), ex.decisions
    python = record["expr"]["python"]
    names, text = run(python + page_recipes(ex).plan, ex)
    assert [k.ast for k in names["ex"].kernels] == [k.ast for k in ex.kernels]
    # the line is that of the code that explores
    assert LINES.sub("", text.strip()) == LINES.sub("", str(ex.plan).strip())
    rows = record["plan"]["decisions"]
    place = next(i for i, d in enumerate(decisions) if d.forced)
    code = python + rows[place]["python"]
    names, _ = run(code, ex)
    assert names["decision"].node is tile.node and names["decision"].forced
    names, _ = run(code.replace("# the other way: ", ""), ex)
    assert [k.ast for k in names["ex"].kernels] == [k.ast for k in own.kernels]
    for row, decision in zip(rows, decisions, strict=True):
        other = None if decision.forced else not decision.stored
        assert ("the other way" in row["python"]) == (not row["is_requested"])
        assert row["is_requested"] or f"node: {other}}}" in row["python"]


@pytest.mark.parametrize("off", [(), ("form-fma",), ("form-fma", "mul-one")])
def test_doing_without_one_more_rule_is_a_call(off: tuple[str, ...]) -> None:
    y = X * 2
    code = "not-not".join(page_recipes(explore(y, without=off)).without)
    ex = eval(code, {"explore": explore, "y": y})
    assert ex.rules_off == (*off, "not-not")


def test_a_baseline_names_the_users_arrays() -> None:
    a, b = (Tensor(np.ones((4, 4), np.float32)) for _ in range(2))
    y = (a @ b) / 2
    arrays = "lambda a=a.numpy(), b=b.numpy()"
    assert baseline_recipe(explore(y)) == f'ex.baseline("numpy", {arrays}: a @ b / 2)'
    z = (a @ b).softmax(1)
    assert baseline_recipe(explore(z)) == f'ex.baseline("numpy", {arrays}: f(a, b))'
    y = a @ b
    a, b = b, a
    arrays = "lambda b=b.numpy(), a=a.numpy()"
    code = baseline_recipe(explore(y))
    assert code == f'ex.baseline("numpy", {arrays}: f(b, a))', "the line has other names now"


def halved(x: Any) -> Any:
    return np.exp(x) / 2


def test_a_function_is_its_own_baseline() -> None:
    array = np.ones(3, np.float32)
    ex = explore(halved, array)
    code = baseline_recipe(ex)
    assert code == 'ex.baseline("as it is", halved, array)'
    exec(code, {"ex": ex, "halved": halved, "array": array})


class Block:
    """A layer inside a list, as in a model of several blocks."""

    def __init__(self) -> None:
        self.fc = nn.Linear(6, 6)
        self.weight = array(6, 6)

    def __call__(self, x: Tensor) -> Tensor:
        """Return two products, one with a weight that is no layer's."""
        return self.fc(x).relu() @ self.weight


class Net:
    def __init__(self) -> None:
        self.blocks = [Block() for _ in range(2)]


def test_a_baseline_of_any_expression_is_python() -> None:
    """Its lambda was `lambda net.blocks[0].fc.weight=..` for a model. What it calls gets arrays
    equal to the tensors that the names name."""
    net, x, pair, plain_y = Net(), array(4, 6), [array(4, 6), array(4, 6)], array(4, 6)
    weights = {"a": array(4, 6), "b": array(4, 6)}
    makes: list[Callable[[], Tensor]] = [
        lambda: net.blocks[1](net.blocks[0](x)),
        lambda: net.blocks[0].fc(x).softmax(1),
        lambda: pair[0] + pair[1],
        lambda: weights["a"] * weights["b"],
        lambda: plain_y * 2,
        lambda: Tensor.arange(4) * 2,
        lambda: net.blocks[1].weight + net.blocks[0].weight,
    ]
    for make in makes:
        value = make()
        ex = explore(value)
        code = baseline_recipe(ex)
        lambda_code = ast.parse(code, mode="eval")
        (call,) = [n for n in ast.walk(lambda_code) if isinstance(n, ast.Lambda)]
        names = [a.arg for a in call.args.args]
        assert len({*names}) == len(names) == len(call.args.defaults)
        scope = {
            "net": net, "x": x, "pair": pair, "weights": weights, "plain_y": plain_y,
            "f": lambda *arrays: arrays,
        }  # fmt: skip
        result = eval(compile(ast.Expression(call), "", "eval"), scope)()
        if isinstance(call.body, ast.Call):
            assert all(isinstance(each, np.ndarray) for each in result)
        else:
            np.testing.assert_allclose(result, value.numpy(), rtol=1e-5)
