"""Variants are called by their opts, can be named, and deleted for good."""

from __future__ import annotations

import time

import pytest

from tests.viz.record.support import plain
from tests.viz.session.support import ask, done, prefetch_all, session_of
from tests.viz.support import matmul
from workbench.viz.schema.saved import SavedVariant
from workbench.viz.session import persistence
from workbench.viz.session.handlers.variant_transfer import restored
from workbench.viz.session.handlers.variants import edited_variant
from workbench.viz.session.live_record import Edited
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


def test_what_variants_were_made_from_comes_back(session: Session) -> None:
    """Also where that is listed later: the default opts come after what was made by hand. A name
    below its parent is short only then."""
    first = done(session, "apply", variant=0, opt='UPCAST("g1", 4)')["variant"]
    deleted = done(session, "apply", variant=first, opt='UPCAST("g0", 2)')["variant"]
    child = done(session, "apply", variant=deleted, opt='UNROLL("r0", 2)')["variant"]
    auto = done(session, "auto", kernel=0)["variant"]
    after = edited_variant(session, Edited("LLVM", "; of auto"), auto)
    by_hand = edited_variant(session, Edited("LLVM", "; one"), child)
    again = edited_variant(session, Edited("LLVM", "; two"), by_hand)
    done(session, "delete", variants=[deleted])

    def parents(of: Session, *listed: int) -> dict[str, str]:
        rows = [of.row(v) for v in listed or range(len(of.kernels))]
        names = {row.name: row.parent for row in rows if row.parent is not None}
        return {name: of.row(parent).name for name, parent in names.items()}

    before = parents(session, first, auto, after, by_hand, again)
    before[name_of(session, child)] = name_of(session, first)
    session.save()
    with session_of(matmul()) as later:
        prefetch_all(later, measures=False)
        assert parents(later) == before
        later.save()  # a session that lists them otherwise changes nothing
    with session_of(matmul()) as third:
        assert third.record.restoring is not None
        assert third.record.restoring.done == 0
        total = third.record.restoring.total
        prefetch_all(third, measures=False)
        assert parents(third) == before and total == len(before) - 1, "but for auto"
        assert third.record.restoring is None


def test_variants_in_a_circle_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file is trusted."""
    keys = [persistence.Key(0, (f'UPCAST("g1", {n})',)) for n in (2, 4)]
    saved = {
        key: SavedVariant(
            0, list(key.opts), origins=[persistence.origin()], parent=persistence.digest_of(other)
        )
        for key, other in zip(keys, reversed(keys), strict=True)
    }
    monkeypatch.setattr(persistence, "load", lambda key: saved)
    with session_of(matmul()) as session:
        prefetch_all(session, measures=False)
        parents = {row.parent for row in session.record.variants if row.name.startswith("UPCAST")}
        assert 0 in parents and len(parents) == 2


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
