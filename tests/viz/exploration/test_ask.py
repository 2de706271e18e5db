"""Questions before answers: nothing that is printed or shown tells what is asked, until there is a
guess; then both are told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from IPython.lib.pretty import pretty

from tests.viz.record.support import plain
from tests.viz.support import softmax
from workbench import Tensor, explore
from workbench.base.errors import WorkbenchError
from workbench.viz.exploration.questions import QUESTIONS, answer_in, question_row, verdict
from workbench.viz.formatters import exploration_bundle
from workbench.viz.page.panel import panes
from workbench.viz.record.record import build


@pytest.fixture(scope="module")
def record() -> Any:
    return build(softmax())


@pytest.mark.parametrize("ask", QUESTIONS)
def test_what_is_printed_is_the_question_until_there_is_a_guess(ask: str) -> None:
    ex = softmax(ask)
    texts = [str(ex), repr(ex), *(str(ex.pane(name)) for name in panes())]
    texts += [part.rpartition("</style>")[2] for part in exploration_bundle(ex).values()]
    for text in texts:
        assert QUESTIONS[ask].text in text and len(text) < 2_000, text
        assert "softmax" not in text and "kernels," not in text
    ex.display.guess = "2"
    assert len(str(ex.plan)) > 100 and "kernel" in ex.headline
    assert len(str(ex)) > 1_000


TABLES = ("kernels", "decisions", "passes", "variants")


@pytest.mark.parametrize("ask", QUESTIONS)
def test_a_table_that_would_answer_prints_the_question(ask: str) -> None:
    ex, free = softmax(ask), softmax()
    for name in TABLES:
        table, same = getattr(ex, name), getattr(free, name)
        hides = name in QUESTIONS[ask].tables
        printed = {str(table), repr(table), pretty(table), format(table)}
        assert (printed == {ex.waits}) is hides, name
        assert len(table) == len(same) > 1, "it is the same value for a program"
    ex.guess(QUESTIONS[ask].choices(build(free))[0] if ask in ("opts", "bound") else 2)
    for name in TABLES:
        table = getattr(ex, name)
        assert "Guess in" not in str(table) + pretty(table) and str(table), name
    assert pretty(free.kernels) == pretty(tuple(free.kernels))


def test_a_question_may_be_about_another_kernel() -> None:
    for ask, kernel in ("bound", 0), ("bound 2", 1), ("time 2", 1), ("opts 1", 0):
        ex = softmax(ask)
        assert ("kernel 2" if kernel else "the first kernel") in str(ex)
        record = build(ex)
        assert record.ask is not None
        of = [s for p in record.ask.answers for s in p if isinstance(s, dict)]
        assert of and {step["kernel"] for step in of} == {kernel}
        assert answer_in(plain(record), record.ask) is not None
    with pytest.raises(WorkbenchError, match="cannot ask about kernel 3") as error:
        softmax("bound 3")
    assert "there are 2 kernels" in str(error.value)


def test_headline_and_graph_do_not_tell_of_kernels() -> None:
    ex, free = softmax("kernels"), softmax()
    assert ex.headline == ex.waits and "2 kernels" in free.headline
    graph = ex.to_networkx()
    assert not any(data["kernels"] or data["title"] for _, data in graph.nodes(data=True))
    assert len(graph) == len(free.to_networkx()) and "cluster" not in ex.to_graphviz().source
    assert "2 kernels" in softmax("bound").headline
    ex.guess(2)
    assert ex.headline == free.headline and "cluster" in ex.to_graphviz().source


def test_a_question_waits_in_another_plan_and_ends_with_its_answer() -> None:
    ex = softmax("bound")
    node = next(d.node for d in ex.decisions if not d.stored)
    again = ex.replan({node: True})
    assert again.waits == ex.waits and str(again.variants) == ex.waits
    ex.guess("memory")
    assert again.waits, "another plan has another answer"
    answered = ex.replan({node: True})
    assert not answered.waits and "You said" not in str(answered)


def test_a_guess_is_told_beside_the_answer_and_then_all_is_printed() -> None:
    ex = softmax("kernels")
    said = ex.guess(3)
    assert (
        str(said)
        == repr(said)
        == ("How many kernels will it be? Wrong: you said 3, it is 2, 1 too many.")
    )
    printed = str(ex)
    assert printed.startswith(said) and "2 kernels" in printed
    assert "Right: you said 2, it is 2." in softmax("kernels").guess(2)


LEFT_OUT: list[list[str]] = [["runs"]]
"""Paths of hidden parts that this record leaves out, as they are empty."""


@pytest.mark.parametrize("ask", QUESTIONS)
def test_the_record_has_the_answer_and_paths_that_are_there(record: Any, ask: str) -> None:
    row = question_row(ask, record)
    data = plain(record)
    assert answer_in(data, row) is not None
    for part in row.hides:
        if part.path in LEFT_OUT:
            assert part.path[0] not in data
            continue
        values = [data]
        for step in part.path:
            values = [v for x in values for v in (x if step == "*" else [x[step]])]
        assert values, part
        if part.only:
            assert all(part.only.keys() <= r.keys() for r in values[0])
    assert bool(row.choices) == (row.judgement in ("choice", "set"))
    json.dumps(plain(row))  # it can be sent


def test_each_answer_is_a_choice_and_each_kind_of_guess_is_judged(record: Any) -> None:
    data = plain(record)
    rows = {name: question_row(name, record) for name in QUESTIONS}
    opts = answer_in(data, rows["opts"])
    assert opts and set(opts) <= set(rows["opts"].choices)
    assert answer_in(data, rows["bound"]) in rows["bound"].choices
    time = rows["time"]
    assert verdict(time, "10", 15e-6).endswith(
        "Right: you said 10 µs, it is 15 µs. The answer is 1.5 times your guess."
    )
    assert verdict(time, "10", 2.5e-6).endswith(
        "Wrong: you said 10 µs, it is 2.5 µs. Your guess is 4 times the answer."
    )
    assert "Right" in verdict(time, "10", 20.2e-6), "judged as it is said: 2 times"
    assert verdict(time, "10", 10.1e-6).endswith("it is 10.1 µs.")
    wrong = verdict(rows["opts"], "SPLIT, UPCAST", ["UPCAST", "UPCAST", "THREAD"])
    assert "not SPLIT; you left out THREAD" in wrong
    assert "Right: none" not in verdict(rows["opts"], "none", ["UPCAST"])
    assert "Right" in verdict(rows["opts"], "none", [])
    assert "not known yet" in verdict(time, "10", None)


@pytest.mark.parametrize(
    "ask", ["kernel", 3, None, ("time",), "kernels 2", "bound 0", "bound x", "time 1 2"]
)
def test_another_question_is_an_error_that_names_them(ask: Any) -> None:
    with pytest.raises(WorkbenchError, match="there is no question") as error:
        explore(Tensor.ones(3), ask=ask)
    assert "there are kernels, opts, bound, time" in str(error.value)


@pytest.mark.parametrize(
    "ask, guess",
    [("kernels", "many"), ("kernels", -1), ("kernels", None), ("bound", "gpu"), ("opts", "FAST")],
)
def test_what_cannot_be_a_guess_is_an_error_and_hides_all_the_same(ask: str, guess: Any) -> None:
    ex = softmax(ask)
    with pytest.raises(WorkbenchError, match="cannot guess"):
        ex.guess(guess)
    assert str(ex) == ex.waits != ""


def test_nothing_is_guessed_where_nothing_is_asked() -> None:
    with pytest.raises(WorkbenchError, match="asks nothing"):
        softmax().guess(2)
