"""Source edited by hand is a variant: compiled, checked, timed, and never trusted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.backends.oclgrind.support import need_simulator
from tests.viz.record.support import plain
from tests.viz.session.support import Page, ask, done, prefetch_all, session_of
from tests.viz.support import array, matmul
from workbench import Tensor, explore
from workbench.backends.device import Device
from workbench.viz.listing.instructions import Costs
from workbench.viz.schema.variant import InstructionCost
from workbench.viz.session.handlers import edits, measurement, variants
from workbench.viz.session.handlers import inspection as machine_code
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
    far = text.replace("float *p0 = args[0];", "float *p0 = args[0]; p0[1L << 40] = 1;")
    gone = done(session, "edit", variant=0, language="C", text=far)["variant"]
    line = far[: far.index("1L <<")].count("\n") + 1
    because = plain(session.row(gone))["error"]["because"]
    assert f"(line {line}: p0[{1 << 40}] is outside of its " in because
    assert session.jobs.worker.pid == pid, "each ran in a process of its own"
    assert plain(session.row(0))["timing"], "the one it was made from is timed beside it"


@NEEDS_C
@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ("p0[0] += p1[255] + 1;", 255),
        (f"p0[0] += p1[{1 << 17}] + 1;", 1 << 17),
        ("if (p1[5000] == 0.3141f) p0[0] = 7;", 5000),
    ],
)
def test_a_verdict_begins_with_the_line_that_reads_outside(
    session: Session, statement: str, index: int
) -> None:
    """Also where it reads beyond the memory around the buffers, of which no strip tells, and where
    the answer is right by chance."""
    text = "\n".join(plain(session.row(0))["code"][0]["lines"])
    end = text.rindex("}")
    reads = f"{text[:end]}  {statement}\n}}"
    bad = done(session, "edit", variant=0, language="C", text=reads)["variant"]
    line = text[:end].count("\n") + 1
    row, says = plain(session.row(bad)), f"line {line}: p1[{index}] is outside of its "
    if row["error"]:  # where no memory is mapped
        assert f"({says}" in row["error"]["because"]
    else:
        assert row["check"]["text"].startswith(f"WRONG: {says}")


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
def test_an_edit_is_timed_beside_its_unedited_text_by_the_same_compiler(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside LLVM code its ratio to that would compare the compilers. An edit of an edit, too, and
    when it is timed again."""
    runs: list[set[tuple[int, str]]] = []
    set_timings = measurement.set_timings

    def noted(live: Session, rows: list[tuple[int, Any]], *more: Any) -> None:
        runs.append({(variant, row["device"]) for variant, row in rows})
        set_timings(live, rows, *more)

    monkeypatch.setattr(measurement, "set_timings", noted)
    text = "\n".join(session.row(0).code[0].lines)
    first = done(session, "edit", variant=0, language="C", text=text + "// a")["variant"]
    second = done(session, "edit", variant=first, language="C", text=text + "// b")["variant"]
    done(session, "measure", variants=[second], cold=False)
    assert len(runs) == 3 and all({(0, "LLVM"), (0, "C")} <= run for run in runs)
    assert all((second, "C") in run for run in runs[1:])
    assert [row.device for row in session.row(0).elsewhere] == ["C"]


@NEEDS_C
def test_a_text_that_is_unchanged_is_no_variant(session: Session) -> None:
    """It runs as the one that has it: a source that was not edited on its device, an edit again."""
    text = "\n".join(session.row(0).code[0].lines)
    reply = done(session, "edit", variant=0, language="C", text=text + "\n")
    assert reply == {"variant": 0, "said": "the text is unchanged: this is plain, timed again"}
    assert len(session.record.variants) == 1 and session.row(0).timing is not None
    assert [row.device for row in session.row(0).elsewhere] == ["C"]
    changed = text.replace("float *p0", "float  *p0")
    edit = done(session, "edit", variant=0, language="C", text=changed)["variant"]
    first, count = session.row(edit).timing, len(session.record.variants)
    done(session, "delete", variants=[edit])
    for place in (0, edit):
        reply = done(session, "edit", variant=place, language="C", text=changed)
        said = "the text is unchanged: this is edited 1, run again"
        assert reply == {"variant": edit, "said": said}
    assert len(session.record.variants) == count and not session.row(edit).deleted
    assert session.row(edit).timing not in (first, None)


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
    number = done(session, "edit", variant=0, language="LLVM", text=f"; mine\n{text}")["variant"]
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
    number = done(session, "edit", variant=0, language="C", text=f"// mine\n{text}")["variant"]
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


def _ir(session: Session, level: str) -> str:
    done(session, "code", variant=0, language=f"IR {level}")
    rows = plain(session.row(0))["code"]
    return "\n".join(next(c["lines"] for c in rows if c["language"] == f"IR {level}"))


def test_edited_ir_is_lowered_on_and_runs(session: Session) -> None:
    """Of a tree and of a linear program: right, out of bounds, and refused with its place."""
    for level in ("tree", "linear"):
        text, fields = _ir(session, level), {"variant": 0, "language": f"IR {level}"}
        typed = done(session, "compile", text=text, **fields)
        assert typed["error"] is None
        assert [c["language"] for c in typed["code"]] == [f"IR {level}", "LLVM", "asm"]
        good = done(session, "edit", text=f"# mine\n{text}", **fields)["variant"]
        row = plain(session.row(good))
        assert row["edited"] and row["check"]["ok"] and row["timing"]["device"] == "LLVM"
        assert _languages(session, good) == [f"IR {level}", "LLVM", "asm"]
        wrong = done(session, "edit", text=text.replace("ADD.index", "MAX.index"), **fields)
        check = plain(session.row(wrong["variant"]))["check"]
        assert not check["ok"] and "WRONG on the emulator" in check["text"]
        broken_line = done(session, "compile", text=text.replace("FMA", "FMAA"), **fields)
        line = 1 + next(i for i, words in enumerate(text.split("\n")) if "FMA" in words)
        error = broken_line["error"]
        column = 1 + text.split("\n")[line - 1].index("FMA")
        assert (error["line"], error["column"]) == (line, column)
        assert "FMAA is neither an op" in error["what"] and f"at line {line}" in error["try"]


def test_the_search_for_a_defect_shows_its_progress_and_ends(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of an edit of an edit. No steps are recorded, and one that takes too long is given up,
    as a cell would wait for it: a check on request takes longer."""
    shown: list[str] = []
    monkeypatch.setattr(session, "status", lambda task, *rest: shown.append(f"{task} {rest}"))
    text, fields = _ir(session, "tree"), {"language": "IR tree"}
    first = done(session, "edit", variant=0, text=f"# mine\n{text}", **fields)["variant"]
    assert not any("looking for the defect" in words for words in shown)
    monkeypatch.setattr(edits, "UNASKED_S", 0.0)
    wrong = text.replace("ADD.index", "MAX.index")
    second = done(session, "edit", variant=first, text=wrong, **fields)["variant"]
    assert any("looking for the defect" in words for words in shown)
    check = plain(session.row(second))["check"]
    assert not check["ok"] and check["text"].endswith("; Check looks for the line, at most 10 s")
    assert "emulator" not in check["text"]
    done(session, "check", variant=second)
    check = plain(session.row(second))["check"]
    assert not check["ok"] and "; WRONG on the emulator: " in check["text"]
    assert "Check looks" not in check["text"]
    monkeypatch.setattr(edits, "MOST_PAGE_S", 0.0)
    done(session, "check", variant=second)
    assert "Check looks" not in plain(session.row(second))["check"]["text"]


def test_an_index_of_edited_ir_that_leaves_its_memory(session: Session) -> None:
    """In a tree before it runs; in a linear program by its run, with the line."""
    tree, linear = _ir(session, "tree"), _ir(session, "linear")
    far = [re.sub(r"(MUL\.index r0, )(\d+)", r"\g<1>99", text) for text in (tree, linear)]
    refusal = done(session, "compile", variant=0, language="IR tree", text=far[0])["error"]
    line = 1 + next(i for i, x in enumerate(far[0].split("\n")) if "LOAD" in x and "p2" not in x)
    assert "in-bounds" in refusal["what"] and refusal["line"] and line
    bad = done(session, "edit", variant=0, language="IR linear", text=far[1])["variant"]
    text = plain(session.row(bad))["check"]["text"]
    assert re.search(r"out of bounds: .* reads p2\[\d+\], and there are \d+ .*\(line \d+\)", text)


def test_edited_ir_of_a_gpu_that_is_not_here_is_emulated(nothing_saved: Path) -> None:
    """Without its barrier a tile is a race, at the lines of the text."""
    opts = 'LOCAL("g0", 4), LOCAL("g1", 4), SPLIT("r0", 4), ORDER("r0", "l0"), STAGE("r0", 1)'
    ex = explore(array(8, 8) @ array(8, 8), device="CUDA:H100")
    with session_of(ex) as session:
        tiled = done(session, "paste", variant=0, text=opts)["variant"]
        done(session, "code", variant=tiled, language="IR linear")
        rows = plain(session.row(tiled))["code"]
        lines = next(c["lines"] for c in rows if c["language"] == "IR linear")
        for text, is_right in (
            (" \n".join(lines), True),
            ("\n".join(_without_barrier(lines)), False),
        ):
            fields = {"variant": tiled, "language": "IR linear", "text": text}
            number = done(session, "edit", **fields)["variant"]
            row = plain(session.row(number))
            assert row["check"]["ok"] is is_right and row["error"] is None
        assert re.search(
            r"WRONG on the emulator: race: .*\(lines \d+ and \d+\)", row["check"]["text"]
        )
        assert row["gpu"]["findings"]


def test_of_an_edit_that_is_too_large_for_the_emulator_a_part_is_checked(
    nothing_saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The corners of the launch are among it. What they wrote before the edit and leave unwritten
    is wrong, but not where they write other elements instead. No part makes an edit right."""
    monkeypatch.setattr("workbench.emulator.program.emulation_s", lambda *_, **__: 10.5)
    monkeypatch.setattr("workbench.emulator.checks.emulation_s", lambda *_, **__: 1.0)
    a, b = (array(10, 16) @ array(16, 9), Tensor(np.float32(0.5)).realize())
    with session_of(explore((a * b).relu(), device="CUDA:H100")) as session:
        opts = 'PADTO("g0", 4), PADTO("g1", 4), LOCAL("g0", 4), LOCAL("g1", 4)'
        tuned = done(session, "paste", variant=0, text=opts)["variant"]
        done(session, "code", variant=tuned, language="CUDA")
        rows = plain(session.row(tuned))["code"]
        text = "\n".join(next(c["lines"] for c in rows if c["language"] == "CUDA"))
        fields = {"variant": tuned, "language": "CUDA"}

        def verdict(edited: str) -> dict[str, object]:
            assert edited != text
            number = done(session, "edit", **fields, text=edited)["variant"]
            first = plain(session.row(number))["check"]
            done(session, "check", variant=number)
            assert plain(session.row(number))["check"] == first
            return first

        good = verdict(text + "\n// mine")
        assert good["ok"] is None
        assert re.search(
            r"^PARTLY CHECKED: 9 of 9 work-groups .* no wrong element is among the 90 that they "
            r"write\. The others did not run, because all take about 10\.5 seconds, and 10 are "
            r"allowed\. Try smaller tensors: of 144 work-items about \d+ can run",
            good["text"],
        )
        lost = verdict(text.replace("< 10", "< 9"))
        assert lost["ok"] is False and "no work-item writes p0[81]" in lost["text"]
        moved = verdict(text.replace("g0 = blockIdx.y", "g0 = (blockIdx.y + 1) % 3"))
        assert moved["ok"] is None


def _without_barrier(lines: list[str]) -> list[str]:
    first = next(i for i, line in enumerate(lines) if line.startswith("BARRIER"))
    return [*lines[:first], *lines[first + 1 :]]


def test_nothing_that_is_typed_as_ir_ends_python(session: Session) -> None:
    tree = _ir(session, "tree")
    typed = {
        "": "the text holds no node",
        "x = VAR.int8 {" + "(" * 100_000: "the brace is not closed",
        "v = ADD.float32 " + " " * 250_000 + "{": "the brace is not closed",
        tree.replace("PARAM.float32 {1", "PARAM.float64 {1"): "the dtype follows",
        re.sub(r"RANGE.index \d+ {\"r0\"", 'RANGE.index 4611686018427387904 {"r0"', tree): "bounds",
        tree.replace("\nBLOCK", "\nLOOP"): "a tree ends with its BLOCK",
        re.sub(r"(LOOP r0), v\d+", r"\1", tree): "this ACCUMULATE is not in the tree",
        "LINEAR\n" + tree: "a program begins with its BLOCK",
    }
    assert done(session, "compile", variant=0, language="IR tree", text=tree)["error"] is None
    pid = session.jobs.worker.pid
    for text, words in typed.items():
        error = done(session, "compile", variant=0, language="IR tree", text=text)["error"]
        assert error is not None and words in f"{error['what']} {error['because']}", text[:80]
    assert session.jobs.worker.pid == pid


def test_edited_ir_comes_back(nothing_saved: Path) -> None:
    with session_of(matmul()) as session:
        text = _ir(session, "linear") + "\n# mine"
        done(session, "edit", variant=0, language="IR linear", text=text)
    with session_of(matmul()) as session:
        prefetch_all(session)
        (place,) = session.edited
        assert session.edited[place] == Edited("LLVM", text, level="linear")
        done(session, "check", variant=place)
        assert plain(session.row(place))["check"]["ok"]
