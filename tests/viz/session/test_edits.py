"""Source edited by hand is a variant: compiled, checked, timed, and never trusted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.backends.oclgrind.support import need_simulator
from tests.viz.record.support import plain
from tests.viz.session.support import Page, ask, done, session_of
from workbench import Tensor, explore
from workbench.backends.device import Device
from workbench.viz.listing.instructions import Costs
from workbench.viz.schema.variant import InstructionCost
from workbench.viz.session.handlers import inspection as machine_code
from workbench.viz.session.handlers import measurement, variants
from workbench.viz.session.live_record import Edited
from workbench.viz.session.session import Session

NEEDS_C = pytest.mark.skipif(not Device.available("C"), reason="no C compiler")


@NEEDS_C
def test_edited_source_is_a_variant(session: Session) -> None:
    text = "\n".join(plain(session.row(0))["code"][0]["lines"])
    pid = session.jobs.worker.pid
    good = done(session, "edit", variant=0, language="C", text=text + "// same")["variant"]
    row = plain(session.row(good))
    assert row["edited"] and row["parent"] == 0 and row["error"] is None
    assert row["check"]["ok"] and row["timing"]["device"] == "C"
    assert row["code"][0]["lines"][-1].endswith("// same")
    wrong = text.replace("float *p0 = args[0];", "float *p0 = args[0]; return;")
    bad = done(session, "edit", variant=0, language="C", text=wrong)["variant"]
    assert plain(session.row(bad))["check"]["ok"] is False and plain(session.row(bad))["timing"]
    crash = text.replace("float *p0 = args[0];", "float *p0 = 0; p0[1] = 1;")
    gone = done(session, "edit", variant=0, language="C", text=crash)["variant"]
    assert plain(session.row(gone))["error"]["what"] == "the program crashed"
    assert plain(session.row(gone))["timing"] is None and plain(session.row(gone))["check"] is None
    assert session.jobs.worker.pid == pid, "each ran in a process of its own"
    assert plain(session.row(0))["timing"], "the one it was made from is timed beside it"


def test_only_what_can_abort_gets_a_process_of_its_own(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [d.name for d in Device if not d.can_abort] == ["PYTHON", "OCLGRIND"]
    edited = Edited(session.device, "")
    monkeypatch.setitem(session.edited, 0, edited)
    with measurement.use_worker(session, [0]) as worker:
        assert worker is not session.jobs.worker
    monkeypatch.setattr(Device[session.device], "can_abort", False)
    with measurement.use_worker(session, [0]) as worker:
        assert worker is session.jobs.worker


@NEEDS_C
def test_edited_source_that_hangs(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "EDITED_S", 0.7)
    text = "\n".join(plain(session.row(0))["code"][0]["lines"])
    endless = text.replace("float *p0 = args[0];", "float *p0 = args[0]; for (;;) {}")
    number = done(session, "edit", variant=0, language="C", text=endless)["variant"]
    assert plain(session.row(number))["error"]["what"] == "the program did not end"


def test_edited_llvm(session: Session) -> None:
    done(session, "code", variant=0, language="LLVM")
    code = next(c for c in plain(session.row(0))["code"] if c["language"] == "LLVM")
    text = "\n".join(code["lines"])
    number = done(session, "edit", variant=0, language="LLVM", text=text)["variant"]
    assert plain(session.row(number))["check"]["ok"]
    assert _languages(session, number) == ["LLVM", "asm"]
    count = len(session.record.variants)
    reply = ask(
        session, "edit", variant=0, language="LLVM", text=text.replace("define", "undefine")
    )
    line = 1 + text.split("\n").index(_head(text))
    assert reply["error"]["what"].startswith("cannot compile")
    assert reply["error"]["line"] == line
    assert len(session.record.variants) == count, "it is not a variant"


def _head(text: str) -> str:
    return next(line for line in text.split("\n") if line.startswith("define"))


def _languages(session: Session, variant: int) -> list[str]:
    return [row["language"] for row in plain(session.row(variant))["code"]]


@NEEDS_C
def test_what_is_typed_is_compiled_and_does_not_run(session: Session) -> None:
    before = plain(session.record)
    lines = plain(session.row(0))["code"][0]["lines"]
    product = next(i for i, line in enumerate(lines) if "acc0 = fma" in line)
    crash = [*lines[:product], "      p0[-1 << 28] = 1.0f;", *lines[product:]]
    fields = {"variant": 0, "language": "C"}
    compilation = done(session, "compile", text="\n".join(crash), **fields)
    source, assembly = compilation["code"]
    assert compilation["error"] is None and source["lines"] == crash
    assert source["links"][product + 1]["statement"] == product + 2, "its own line"
    statements = {link["statement"] for link in assembly["links"] if link}
    assert {product + 1, product + 2} <= statements
    assert [link["source"] for link in assembly["links"] if link and link["statement"] == 1] in (
        [],
        [[1]],
    )
    wrong = [*lines[:product], "int x = ;", *lines[product:]]
    refusal = done(session, "compile", text="\n".join(wrong), **fields)
    assert refusal["code"] == [] and refusal["error"]["line"] == product + 1
    assert plain(session.record) == before, "the record has none of it"


@NEEDS_C
def test_lines_that_were_not_edited_lead_where_they_led(session: Session) -> None:
    session.recorder.add_compiled(0)
    original = plain(session.row(0))["code"][0]
    text = "\n".join(["int unused;", *original["lines"]])
    number = done(session, "edit", variant=0, language="C", text=text)["variant"]
    source, assembly = plain(session.row(number))["code"]
    same = [link and link["nodes"] for link in original["links"]]
    assert [link and link["nodes"] for link in source["links"][1:]][: len(same)] == [
        nodes if nodes is not None or link is None else []
        for nodes, link in zip(same, source["links"][1:], strict=True)
    ]
    assert any(link and link["nodes"] for link in assembly["links"])


@NEEDS_C
def test_machine_code_of_source_from_an_earlier_session(session: Session) -> None:
    text = "\n".join(plain(session.row(0))["code"][0]["lines"])
    child = variants.edited_variant(session, Edited("C", text), 0)
    assert _languages(session, child) == ["C"]
    done(session, "compile", variant=child, language="asm", text=None)
    assert _languages(session, child) == ["C", "asm"]
    refusal = ask(session, "compile", variant=0, language="asm", text=None)
    assert refusal["error"]["because"] == "the variant was not edited"


def test_costs_of_instructions_come_when_they_are_asked_for(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def costs(lines: list[str]) -> Costs:
        return Costs([InstructionCost(4.0, 0.5)] * len(lines), "a tool")

    done(session, "costs", variant=0)
    assert _languages(session, 0) == ["C"], "there is no machine code yet"
    done(session, "code", variant=0, language="asm")
    monkeypatch.setattr(machine_code, "instruction_costs", costs)
    done(session, "costs", variant=0)
    row = next(c for c in plain(session.row(0))["code"] if c["language"] == "asm")
    assert row["costs"] == [[4.0, 0.5, {}]] * len(row["lines"])
    assert row["costs_by"] == "a tool" and row["help"]
    monkeypatch.setattr(machine_code, "instruction_costs", lambda lines: None)
    done(session, "costs", variant=0)
    assert session.row(0).code[-2].costs_by == "a tool"


def test_the_passes_of_the_compiler_come_when_they_are_asked_for(session: Session) -> None:
    done(session, "compiler_passes", variant=0)
    done(session, "code", variant=0, language="asm")
    done(session, "compiler_passes", variant=0)
    row = next(c for c in plain(session.row(0))["code"] if c["language"] == "asm")
    lines, passes = row["made_by"]["lines"], row["made_by"]["passes"]
    assert len(set(lines)) == len(lines) and len(passes) > 5
    assert all(0 <= place < len(lines) for p in passes for place in p["lines"])


@NEEDS_C
def test_a_compiler_that_does_not_say_its_passes(session: Session) -> None:
    text = "\n".join(plain(session.row(0))["code"][0]["lines"])
    number = done(session, "edit", variant=0, language="C", text=text)["variant"]
    refusal = ask(session, "compiler_passes", variant=number)["error"]
    assert refusal["because"] == "the compiler of C does not say them"


def test_what_a_simulator_finds_in_edited_source(nothing_saved: Path) -> None:
    """It is an error of the variant, at its line."""
    need_simulator()
    values = np.ones((16, 16), np.float32)
    with session_of(explore(Tensor(values, device="OCLGRIND").sum(1))) as simulated:
        Page(simulated)
        done(simulated, "code", variant=0, language="OpenCL C")
        rows = plain(simulated.row(0))["code"]
        lines = next(c["lines"] for c in rows if c["language"] == "OpenCL C")
        text = "\n".join(lines)
        (store,) = (number for number, x in enumerate(lines, 1) if "p0[g0] =" in x)
        edit = {"variant": 0, "language": "OpenCL C"}
        good = done(simulated, "edit", **edit, text=text + "\n// same")["variant"]
        assert plain(simulated.row(good))["check"]["ok"]
        wrong = text.replace("p0[g0] =", "p0[g0 + 1] =")
        bad = done(simulated, "edit", **edit, text=wrong)["variant"]
        error = plain(simulated.row(bad))["error"]
        assert error["what"].endswith("has a defect: out of bounds")
        assert "work-item (0, 0, 0) of group (15, 0, 0)" in error["because"]
        assert error["line"] == store
