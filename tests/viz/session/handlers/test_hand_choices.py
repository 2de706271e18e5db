"""The choices that a page offers by hand: each leads to the plan that it predicts, or says why it
cannot be made."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from workbench import Tensor
from workbench.viz import explore
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.record.recipe import recipe
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
