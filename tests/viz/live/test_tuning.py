"""Opts and devices chosen on the page: each choice is a variant, also where it does not compile."""

from __future__ import annotations

import pytest

from tests.viz.live.support import ask, done
from workbench.backends.device import Device
from workbench.viz.live.session import Session


def test_apply_makes_a_variant(session: Session) -> None:
    made = done(session, "apply", variant=0, opt='UPCAST("g1", 4)')["variant"]
    row = session.row(made)
    assert (row["name"], row["parent"], row["opts"]) == (
        "mine 1",
        0,
        ['UPCAST("g1", 4)'],
    )
    assert row["code"][0]["language"] == "C" and row["loops"]
    patch = ask(session, "apply", variant=made, opt='UPCAST("g0", 2)')["patch"]
    assert [v["parent"] for v in patch["append"]["variants"]] == [made]
    again = ask(session, "apply", variant=0, opt='UPCAST("g1", 4)')
    assert again["result"] == {"variant": made} and again["patch"] is None


def test_a_paste_keeps_what_was_possible(session: Session) -> None:
    text = 'UPCAST("g1", 2)\nUPCAST("r7", 2)\nUNROLL("r0", 2)'
    made = done(session, "paste", variant=0, text=text)["variant"]
    assert session.row(made)["opts"] == ['UPCAST("g1", 2)']
    assert session.row(made)["error"]["what"] == 'cannot apply UPCAST("r7", 2)'


def test_default_opts_that_were_pasted_say_why_once_they_are_asked_for(
    session: Session,
) -> None:
    chosen = session.kernels[0].optimized()
    text = "\n".join(map(str, chosen.applied_opts))
    made = done(session, "paste", variant=0, text=text)["variant"]
    assert session.row(made)["steps"] == []
    assert done(session, "auto", kernel=0)["variant"] == made
    assert [s["why"] for s in session.row(made)["steps"]] == [
        s.why for s in chosen.steps
    ]


def test_a_variant_that_does_not_compile_is_kept(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench.kernel.kernel import Kernel

    def fails(kernel: Kernel, device: str | None = None) -> None:
        raise ZeroDivisionError("no such luck")

    made = done(session, "apply", variant=0, opt='UPCAST("g1", 4)')["variant"]
    monkeypatch.setattr(Kernel, "compile", fails)
    assert ask(session, "code", variant=made, language="asm")["error"] == {
        "what": "ZeroDivisionError", "because": "no such luck", "try": "",
    }  # fmt: skip
    row = session.row(made)
    assert row["error"]["because"] == "no such luck"
    assert row["loops"] and row["code"][0]["language"] == "C", "the last good state"


def test_a_missing_device_says_how_to_get_it(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(Device["C"]), "is_available", False)
    error = ask(session, "device", name="C")["error"]
    assert error["try"] == Device["C"].how_to_get
    error = ask(session, "edit", variant=0, language="C", text="x")["error"]
    assert error["try"] == Device["C"].how_to_get
