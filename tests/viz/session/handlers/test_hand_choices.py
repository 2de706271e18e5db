"""The choices that a page offers by hand: each leads to the plan that it predicts, or says why it
cannot be made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import PATIENCE_S, ROOT
from tests.viz.session.support import Page, ask, done, prefetch_all, session_of
from workbench import Tensor
from workbench.ir.text.printer import to_text
from workbench.viz import explore
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.record.recipe import recipe
from workbench.viz.session import persistence
from workbench.viz.session.session import Session

A = np.random.default_rng(0).standard_normal((24, 36)).astype(np.float32)


def tensors() -> tuple[Tensor, Tensor]:
    x = Tensor(A).realize()
    e = x.exp()
    middle = (e.sum(1) * 2).contiguous()
    return ((middle + 1).contiguous() * 3).sum(), (e + 1).contiguous()


def place(session: Session, value: str) -> int:
    return next(d.node for d in session.record.plan.decisions if d.value.startswith(value))


def choices(session: Session, node: int) -> Any:
    reply = session.handle({"id": 1, "do": "choices", "node": node})
    assert reply.ok, reply.error
    return reply.result


def make(session: Session, **fields: Any) -> None:
    reply = session.handle({"id": 2, "do": "replan", **fields})
    assert reply.ok, reply.error


def explored(session: Session) -> Exploration:
    return session.recorder.exploration


def test_each_offer_leads_to_the_plan_that_it_predicts() -> None:
    """Or it is refused for a reason. Each is undone by one request."""
    session = Session(explore(*tensors()))
    plain, kinds, refused = explored(session), Counter[str](), 0
    for row in list(session.record.plan.decisions):
        node = plain.decisions[session.record.plan.decisions.index(row)].node
        offered = choices(session, session.recorder.place(node))
        assert offered.now.kernels == len(plain.kernels)
        for offer in offered.offers:
            if offer.forecast is None:
                assert offer.refused
                refused += 1
                continue
            kinds[offer.kind] += 1
            if kinds[offer.kind] > 1:
                continue
            other = Session(plain)
            nodes = [session.recorder.node(n) for n in offer.others]
            make(
                other, node=other.recorder.place(session.recorder.node(offer.node)),
                kind=offer.kind, store=offer.store, parts=offer.parts, undo=offer.undo,
                others=[other.recorder.place(n) for n in nodes],
            )  # fmt: skip
            ex, compared = explored(other), other.record.plan.compared
            assert len(ex.kernels) == offer.forecast.kernels and compared is not None
            assert ex.memory_plan.peak_bytes == offer.forecast.bytes == compared.bytes[1]
            for array, expected in zip(ex.run(), plain.run(), strict=True):
                np.testing.assert_allclose(array, expected, rtol=1e-4)
            (made,) = other.record.plan.by_hand
            make(other, node=made.node, kind=made.kind, undo=True)
            assert not other.record.plan.by_hand and not explored(other).choices
            assert [k.ast for k in explored(other).kernels] == [k.ast for k in plain.kernels]
    assert {*kinds} == {"changes", "recompute", "split", "before", "in_place"} and refused


def test_all_choices_are_undone_at_once_and_their_code_makes_them_again() -> None:
    y = tensors()
    session = Session(explore(*y))
    make(session, node=place(session, "sum 24x1"), kind="split", parts=5)
    make(session, node=place(session, "exp"), store=True)
    ex = explored(session)
    assert [row.kind for row in session.record.plan.by_hand] == ["changes", "split"]
    names: dict[str, Any] = {"y": y}
    exec(session.record.expr.python, names)
    assert names["ex"].choices == ex.choices
    assert session.record.recipes.replan in recipe(ex)
    assert session.record.recipes.replan in str(ex.plan)
    make(session, node=None)
    assert not explored(session).choices and not session.record.plan.by_hand
    assert session.record.recipes.replan == ""


def test_kernels_that_a_choice_does_not_touch_keep_their_variants() -> None:
    session = Session(explore(*tensors()))
    session.complete()
    kernels = session.record.plan.runs
    make(session, node=place(session, "sum 24x1"), kind="split", parts=4)
    compared = session.record.plan.compared
    assert compared is not None
    kept = [now for now in compared.kernels_now if now is not None]
    assert len(kept) == len(kernels) - 1


def test_a_typed_number_of_partial_results_is_predicted() -> None:
    session = Session(explore(*tensors()))
    node = place(session, "sum 24x1")
    for parts in (5, 99):
        reply = session.handle({"id": 3, "do": "choices", "node": node, "parts": parts})
        (offer,) = reply.result.offers
        assert offer.kind == "split" and offer.parts == parts
        if parts == 99:
            assert offer.forecast is None and "36 elements" in offer.refused
    make(session, node=node, kind="split", parts=5)
    reply = Session(explore(*tensors())).handle(
        {"id": 3, "do": "choices", "node": node, "parts": 5}
    )
    assert reply.result.offers[0].forecast.kernels == len(explored(session).kernels)


def test_an_impossible_choice_is_refused_with_its_reason() -> None:
    session = Session(explore(*tensors()))
    node = place(session, "sum 24x1")
    reply = session.handle({"id": 3, "do": "replan", "node": node, "kind": "split", "parts": 99})
    assert not reply.ok and reply.error is not None
    assert "36 elements" in reply.error.because and not session.record.plan.by_hand


# plans by hand of earlier sessions


def made(session: Session) -> list[str]:
    return [row.text for row in session.record.plan.by_hand]


def make_one_of_each_kind(session: Session) -> None:
    """A split and a value computed again, then choices about the values that these make."""
    for kind in ("split", "recompute", "before", "in_place", "changes"):
        rows = list(session.record.plan.decisions)
        offers = (each for row in rows for each in choices(session, row.node).offers)
        offer = next(each for each in offers if each.kind == kind and each.forecast is not None)
        make(
            session, node=offer.node, kind=offer.kind, store=offer.store, parts=offer.parts,
            undo=offer.undo, others=offer.others,
        )  # fmt: skip
    assert len(made(session)) == 5


def test_choices_by_hand_are_offered_when_the_cell_runs_again(nothing_saved: Path) -> None:
    """And made on request, never by themselves; later changes are of the same plan."""
    with session_of(explore(*tensors())) as session:
        make_one_of_each_kind(session)
        texts, kernels = made(session), [kernel.ast for kernel in explored(session).kernels]
        assert session.record.saved_plans == [], "it is made"
    with session_of(explore(*tensors())) as session:
        page = Page(session)
        prefetch_all(session, measures=False)
        assert made(session) == []
        (row,) = page.record["saved_plans"]
        assert row["choices"] == 5 and row["when"]
        done(session, "saved", plan=row["id"])
        assert made(session) == texts and page.record["saved_plans"] == []
        again = [kernel.ast for kernel in explored(session).kernels]
        assert [to_text(kernel) for kernel in again] == [to_text(kernel) for kernel in kernels]
        assert not ask(session, "saved", plan=row["id"])["ok"], "it is made"
        first = session.record.plan.by_hand[0]
        make(session, node=first.node, kind=first.kind, undo=True)
    with session_of(explore(*tensors())) as session:
        assert [row.choices for row in session.record.saved_plans] == [4]
        done(session, "saved", plan=session.record.saved_plans[0].id)
        make(session, node=None)
    with session_of(explore(*tensors())) as session:
        assert session.record.saved_plans == [], "all were undone"


RESTARTED = """
from tests.viz.session.handlers.test_hand_choices import *
with session_of(explore(*tensors())) as session:
    make_one_of_each_kind(session)
    print("made", made(session))
"""


def test_choices_by_hand_outlive_python(
    nothing_saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For their notebook; another one is not offered them."""
    monkeypatch.setenv(persistence.NOTEBOOK, "/there/first.ipynb")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    run = [sys.executable, "-W", "error", "-c", RESTARTED]
    printed = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert printed.returncode == 0, printed.stderr
    with session_of(explore(*tensors())) as session:
        (row,) = session.record.saved_plans
        done(session, "saved", plan=row.id)
        assert f"made {made(session)}" in printed.stdout
    monkeypatch.setenv(persistence.NOTEBOOK, "/there/second.ipynb")
    with session_of(explore(*tensors())) as session:
        assert session.record.saved_plans == []
    monkeypatch.setenv(persistence.NOTEBOOK, "/there/first.ipynb")
    with session_of(explore(*tensors())) as session:
        done(session, "forget", plan=row.id)
        assert session.record.saved_plans == []
    with session_of(explore(*tensors())) as session:
        assert session.record.saved_plans == []


def test_plans_by_hand_of_other_rules_and_other_choices_stand_beside_each_other(
    nothing_saved: Path,
) -> None:
    for store in (True, True, False):  # the same choice twice is one plan
        with session_of(explore(*tensors())) as session:
            make(session, node=place(session, "exp"), store=store)
    with session_of(explore(*tensors())) as session:
        assert [row.choices for row in session.record.saved_plans] == [1, 1]
        assert len({row.id for row in session.record.saved_plans}) == 2
    with session_of(explore(*tensors(), without=["div-power-of-two"])) as session:
        assert session.record.saved_plans == []


@pytest.mark.parametrize(
    "wrong",
    [{"graph": "another"}, {"nodes": [10**6]}, {"by_hand": {"values": 1, "split": [[5, 2]]}}],
)
def test_a_plan_by_hand_that_does_not_fit_is_refused(
    nothing_saved: Path, wrong: dict[str, object]
) -> None:
    """The file may be of a version that simplifies the graph otherwise."""
    with session_of(explore(*tensors())) as session:
        make(session, node=place(session, "exp"), store=True)
    folder = Path(os.environ["XDG_CACHE_HOME"]) / "workbench" / persistence.PLANS_FOLDER
    (path,) = folder.glob("*.json")
    data = json.loads(path.read_text())
    data["plans"][0]["steps"][0] |= wrong
    path.write_text(json.dumps(data))
    with session_of(explore(*tensors())) as session:
        reply = ask(session, "saved", plan=session.record.saved_plans[0].id)
        assert reply["error"]["what"] == "cannot make this plan again" and not made(session)
