"""Variants are called by their opts, can be named, and deleted for good."""

from __future__ import annotations

import time

import pytest

from tests.viz.record.support import plain
from tests.viz.session.support import ask, done, session_of
from tests.viz.support import matmul
from workbench.viz.session import persistence
from workbench.viz.session.handlers.variant_transfer import restored
from workbench.viz.session.session import Session

pytestmark = pytest.mark.usefixtures("nothing_saved")


def name_of(session: Session, variant: int) -> str:
    name: str = plain(session.row(variant))["name"]
    return name


def test_a_variant_is_called_by_its_opts(session: Session) -> None:
    auto = done(session, "auto", kernel=0)["variant"]
    first = done(session, "apply", variant=0, opt='UPCAST("g1", 4)')["variant"]
    second = done(session, "apply", variant=first, opt='UNROLL("r0", 0)')["variant"]
    assert [name_of(session, v) for v in (auto, first, second)] == [
        "auto", "UPCAST g1 4", "UPCAST g1 4 + UNROLL r0 whole",
    ]  # fmt: skip
    before = time.time()
    assert before - 600 < plain(session.row(second))["when"] <= before


def test_names_are_the_readers(session: Session) -> None:
    first = done(session, "apply", variant=0, opt='UPCAST("g1", 4)')["variant"]
    done(session, "name", variant=first, text=" the  <b>best\n")
    assert name_of(session, first) == "the <b>best"
    child = done(session, "apply", variant=first, opt='UNROLL("r0", 2)')["variant"]
    assert name_of(session, child) == "the <b>best + UNROLL r0 2"
    error = ask(session, "name", variant=child, text="the <b>best")["error"]
    assert error["because"] == "another variant of this kernel has that name"
    assert not ask(session, "name", variant=child, text="auto")["ok"]
    assert not ask(session, "name", variant=0, text="first")["ok"], "plain means plain"
    done(session, "name", variant=first, text="")
    assert name_of(session, first) == "UPCAST g1 4"


def test_what_is_deleted_stays_so(session: Session) -> None:
    """In the page, on disk, and when the saved variants come back; the same opts bring it back."""
    first = done(session, "apply", variant=0, opt='UPCAST("g1", 4)')["variant"]
    child = done(session, "apply", variant=first, opt='UNROLL("r0", 2)')["variant"]
    done(session, "pin", variant=first)
    done(session, "delete", variants=[first])
    record = plain(session.record)
    assert [v["deleted"] for v in record["variants"]] == [False, True, False]
    assert record["pinned"] is None and record["variants"][child]["parent"] == first
    saved = persistence.load(session.record.key)
    assert {len(key.opts) for key in saved} == {0, 2}
    for _ in restored(session):
        pass
    assert plain(session.row(first))["deleted"]
    with session_of(matmul()) as later:
        for _ in restored(later):
            pass
        names = [row["name"] for row in plain(later.record)["variants"]]
        assert names == ["plain", "UPCAST g1 4 + UNROLL r0 2"]
    assert not ask(session, "delete", variants=[0])["ok"]
    again = done(session, "apply", variant=0, opt='UPCAST("g1", 4)')
    assert again == {"variant": first} and not plain(session.row(first))["deleted"]
    done(session, "delete", variants=[first, child])
    done(session, "delete", variants=[child], back=True)
    assert [v["deleted"] for v in plain(session.record)["variants"]] == [
        False, True, False,
    ]  # fmt: skip


def test_names_and_dates_come_back(session: Session) -> None:
    first = done(session, "apply", variant=0, opt='UPCAST("g1", 4)')["variant"]
    done(session, "name", variant=first, text="my best")
    session.set(first, "when", 1_700_000_000)
    session.save()
    with session_of(matmul()) as later:
        for _ in restored(later):
            pass
        row = plain(later.record)["variants"][1]
        assert (row["name"], row["when"]) == ("my best", 1_700_000_000)
