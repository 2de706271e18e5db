"""Opts and devices chosen on the page: each choice is a variant, also where it does not compile."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.tools.compiler import needs_c
from tests.viz.record.support import plain
from tests.viz.session.support import ask, done, unpacked
from workbench.backends.device import Device
from workbench.viz.page.document import export_html
from workbench.viz.session.session import Session


def test_apply_makes_a_variant(session: Session) -> None:
    number = done(session, "apply", variant=0, opt='UPCAST("g1", 4)')["variant"]
    row = plain(session.row(number))
    assert (row["name"], row["parent"], row["opts"]) == ("UPCAST g1 4", 0, ['UPCAST("g1", 4)'])
    assert row["code"][0]["language"] == "C" and row["loops"]
    patch = ask(session, "apply", variant=number, opt='UPCAST("g0", 2)')["patch"]
    assert [v["parent"] for v in patch["append"]["variants"]] == [number]
    again = ask(session, "apply", variant=0, opt='UPCAST("g1", 4)')
    assert again["result"] == {"variant": number} and again["patch"] is None


def test_a_list_that_is_not_legal_is_not_applied(session: Session) -> None:
    """Nothing is left behind, so that its legal part is a variant like any other."""
    legal, count = 'UPCAST("g1", 2)', len(session.record.variants)
    reply = ask(session, "paste", variant=0, text=f'{legal}\nUPCAST("r7", 2)')
    assert reply["error"]["what"] == 'cannot apply UPCAST("r7", 2)'
    assert len(session.record.variants) == count
    row = plain(session.row(done(session, "paste", variant=0, text=legal)["variant"]))
    assert row["opts"] == [legal] and row["error"] is None


def test_default_opts_that_were_pasted_say_why_once_they_are_asked_for(session: Session) -> None:
    chosen = session.kernels[0].optimized()
    text = "\n".join(map(str, chosen.applied_opts))
    number = done(session, "paste", variant=0, text=text)["variant"]
    assert plain(session.row(number))["steps"] == []
    assert done(session, "auto", kernel=0)["variant"] == number
    assert [s["why"] for s in plain(session.row(number))["steps"]] == [s.why for s in chosen.steps]


def test_a_variant_that_does_not_compile_is_kept(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench.kernel.kernel import Kernel

    def fails(kernel: Kernel, device: str | None = None) -> None:
        raise ZeroDivisionError("no such luck")

    number = done(session, "apply", variant=0, opt='UPCAST("g1", 4)')["variant"]
    monkeypatch.setattr(Kernel, "compile", fails)
    assert ask(session, "code", variant=number, language="asm")["error"] == {
        "what": "ZeroDivisionError", "because": "no such luck", "try": "",
    }  # fmt: skip
    row = plain(session.row(number))
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


def listed(record: Any, variant: int) -> tuple[list[str], list[str]]:
    """The names of the passes of scheduling, and of those of a variant, as a page lists them."""
    rows = record["passes"]
    shared = [row["name"] for row in rows if row["variant"] is None]
    return shared, [rows[p]["name"] for p in record["variants"][variant]["passes"]]


@needs_c
def test_passes_belong_to_one_variant_on_one_device(session: Session) -> None:
    """Each variant lists its own, once, whatever was opened; those of a device that was left come
    back with it, and the exported page has them all."""
    session.complete()
    scheduling = listed(plain(session.record), 0)[0]
    number = 0
    for opt in ('UPCAST("g1", 4)', 'UPCAST("g0", 2)', 'UNROLL("r0", 4)'):
        number = done(session, "apply", variant=number, opt=opt)["variant"]
        done(session, "code", variant=number, language="asm")
    sizes = []
    for _ in range(2):
        for device in ("C", "PYTHON", "LLVM"):
            done(session, "device", name=device)
            record = plain(session.record)
            own = {p for row in record["variants"] for p in row["passes"]}
            assert {record["passes"][p]["device"] for p in own} <= {device}
            session.complete()
            done(session, "code", variant=number, language="IR")
        sizes.append(len(plain(session.record)["passes"]))
    assert sizes[0] == sizes[1], "a device that is known is listed once"
    exported = re.search(r'id="record">([^<]*)', export_html(session.record))
    assert exported
    for record in (plain(session.record), unpacked(exported[1])):
        for variant, kernel in enumerate(session.kernels):
            shared, own = listed(record, variant)
            assert shared == scheduling
            assert own == [step.name for step in kernel.compile().passes]
        row = record["variants"][0]
        assert [c["language"] for c in row["code"]] == ["C", "LLVM", "asm", "IR"]
        assert row["offers"] and row["counts"] and row["bound"]


def test_the_passes_of_a_variant_come_without_its_code(session: Session) -> None:
    """Where nobody looks at its code, as in Rewrites."""
    number = done(session, "apply", variant=0, opt='UPCAST("g1", 4)')["variant"]
    assert session.row(number).passes == []
    for _ in range(2):
        done(session, "passes", variant=number)
        own = listed(plain(session.record), number)[1]
        assert own == [step.name for step in session.kernels[number].compile().passes]


def test_a_variant_that_never_compiles_lists_its_passes_once(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench.kernel.kernel import Kernel

    def fails(kernel: Kernel, device: str | None = None) -> None:
        raise ZeroDivisionError("no such luck")

    monkeypatch.setattr(Kernel, "compile", fails)
    sizes = []
    for _ in range(3):
        ask(session, "code", variant=0, language="asm")
        sizes.append(len(plain(session.record)["passes"]))
    assert sizes[0] == sizes[1] == sizes[2]
    assert listed(plain(session.record), 0)[1]


@needs_c
def test_what_another_device_makes_stands_beside(session: Session) -> None:
    """Its lines have the same statements; a device that makes no machine code says so."""
    done(session, "code", variant=0, language="asm")
    done(session, "code", variant=0, language="asm", device="C")
    row = plain(session.row(0))
    here = next(c for c in row["code"] if c["language"] == "asm")
    other, tree = row["code_elsewhere"]
    assert (other["device"], other["language"], tree["language"]) == ("C", "asm", "IR")
    assert here["device"] == "LLVM" and here["lines"] != other["lines"]
    statements = [
        {link["statement"] for link in code["links"] if link and link["statement"]}
        for code in (here, other)
    ]
    assert statements[0] & statements[1]
    done(session, "costs", variant=0, device="C")
    done(session, "device", name="C")
    moved = plain(session.row(0))["code_elsewhere"]
    assert {c["device"] for c in moved} == {"LLVM"}, "the other ones now"
    refusal = ask(session, "code", variant=0, language="asm", device="PYTHON")
    assert refusal["error"]["because"] == "PYTHON makes none of this variant"
    devices = {c["device"] for c in plain(session.row(0))["code_elsewhere"]}
    assert devices == {"LLVM", "PYTHON"}
    refusal = ask(session, "code", variant=0, language="asm", device="NONE")
    assert refusal["error"]["what"]
