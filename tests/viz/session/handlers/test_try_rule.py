"""A rule that a reader types in the page: tested first, then a variant of its own."""

from __future__ import annotations

from pathlib import Path

from tests.tools.compiler import needs_c
from tests.viz.record.support import broken, plain
from tests.viz.session.support import Page, ask, done, session_of
from tests.viz.support import array
from workbench.viz import explore

RULE = "x * 2 -> x + x"


@needs_c
def test_a_typed_rule_becomes_a_variant(nothing_saved: Path) -> None:
    with session_of(explore(array(8, 8) * 2 + 1, device="C")) as session:
        page = Page(session)
        wrong = done(session, "try_rule", variant=0, text="x * 0 -> 0", language="C")
        assert wrong["variant"] is None and "it is wrong for" in wrong["words"][0]
        silent = done(session, "try_rule", variant=0, text="x << 1 -> x * 2", language="C")
        assert silent["variant"] is None and "so nothing was compared" in silent["words"][0]
        before = len(session.record.variants)
        reply = done(session, "try_rule", variant=0, text=f" {RULE} ", language="C")
        row = plain(session.row(reply["variant"]))
        assert len(session.record.variants) == before + 1
        assert row["rules_off"] == [RULE] and row["name"] == f"with {RULE}"
        assert row["check"]["ok"] and "fired 1 time" in reply["words"][1]
        done(session, "passes", variant=reply["variant"])
        names = {r["name"] for r in plain(session.record)["rules"]}
        assert RULE in names
        again = done(session, "try_rule", variant=0, text=RULE, language="C")
        assert again["variant"] == reply["variant"]
        back = done(session, "rule_off", kernel=0, rule=RULE, on=True, of=reply["variant"])
        assert plain(session.row(back["variant"]))["rules_off"] == []
        refusal = ask(session, "try_rule", variant=0, text="x - 1 -> x", language="C")
        assert "no op of a graph subtracts" in refusal["error"]["because"]
        with session.lock:
            session.send_changes()
            assert page.is_record_of(session)
        assert broken(page.record) == []
