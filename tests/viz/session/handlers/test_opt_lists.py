"""Lists of opts as a person edits them: each opt with its verdict, and what a list makes."""

from __future__ import annotations

from typing import Any

from tests.viz.record.support import plain
from tests.viz.session.support import ask, done
from workbench.viz.session.session import Session

LIST = ['UPCAST("g1", 4)', 'UNROLL("r0", 4)', 'UPCAST("g0", 2)']


def verdicts(session: Session, opts: list[str], **more: Any) -> Any:
    return done(session, "opts", variant=0, opts=opts, **more)


def test_each_opt_is_judged_after_the_legal_ones_before_it(session: Session) -> None:
    kernel = session.kernels[0]
    reply = verdicts(session, [*LIST, 'UPCAST("g1", 4)', 'UNROLL("r0", 2)'])
    refused = [opt["text"] for opt in reply["opts"] if opt["because"]]
    assert refused == ['UPCAST("g1", 4)'], "g1 is used up; the one after it is judged"
    assert reply["opts"][3]["try"] and reply["text"].startswith(", ".join(LIST))
    assert [opt["row"]["words"] for opt in reply["opts"]][:2] == ["UPCAST g1 4", "UNROLL r0 4"]
    assert len(session.kernels) == 1 and session.kernels[0] is kernel
    assert plain(session.record)["variants"][0]["opts"] == [], "asking changes nothing"


def test_an_amount_is_changed_and_the_legal_ones_are_told(session: Session) -> None:
    reply = verdicts(session, LIST, place=1)
    assert reply["amounts"] == [0, 2, 4, 8] and reply["opts"][1]["row"]["amount"] == 4
    changed = verdicts(session, LIST, place=1, amount=8)
    assert changed["text"] == 'UPCAST("g1", 4), UNROLL("r0", 8), UPCAST("g0", 2)'
    assert verdicts(session, LIST, place=1, amount=0)["opts"][1]["row"]["words"] == (
        "UNROLL r0 whole"
    )
    wrong = verdicts(session, LIST, place=1, amount=3)["opts"][1]
    assert wrong["because"] == "axis r0 has 8 elements, and 3 does not divide 8"
    order = verdicts(session, ['ORDER("r0", "g1")'], place=0)
    assert order["amounts"] == [] and order["opts"][0]["row"]["amount"] is None
    reply = ask(session, "opts", variant=0, opts=['ORDER("r0", "g1")'], place=0, amount=1)
    assert reply["error"]["because"] == "ORDER takes none"


def test_a_list_may_be_one_text(session: Session) -> None:
    reply = verdicts(session, ["[" + ", ".join(LIST) + "]"])
    assert [opt["text"] for opt in reply["opts"]] == LIST
    reply = ask(session, "opts", variant=0, opts=["UPCAST("])
    assert reply["error"]["what"] == "cannot read the opts"


def test_a_list_that_was_edited_comes_from_the_variant_it_was_of(session: Session) -> None:
    """And not after its opts: they are in the list. Undo leads back."""
    first = done(session, "paste", variant=0, text=LIST[0])["variant"]
    edited = done(session, "paste", variant=first, text='UPCAST("g1", 2)')["variant"]
    row = plain(session.row(edited))
    assert (row["parent"], row["opts"], row["name"]) == (
        first, ['UPCAST("g1", 2)'], "UPCAST g1 2",
    )  # fmt: skip


def test_a_rule_that_is_off_stays_off_when_opts_are_edited(session: Session) -> None:
    reply = ask(session, "rule_off", kernel=0, rule="form-fma", on=False)
    off = reply["result"]["variant"]
    assert plain(session.row(off))["name"] == "without form-fma"
    child = done(session, "paste", variant=off, text=LIST[0])["variant"]
    row = plain(session.row(child))
    assert (row["rules_off"], row["name"]) == (
        ["form-fma"], "without form-fma + UPCAST g1 4",
    )  # fmt: skip
    again = done(session, "paste", variant=child, text=LIST[1])["variant"]
    assert plain(session.row(again))["name"] == "UNROLL r0 4 without form-fma"
