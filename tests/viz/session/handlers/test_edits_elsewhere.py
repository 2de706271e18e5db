"""Source edited for a machine that is not here: compiled and shown; the emulator runs text for
GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.tools.compiler import needs_c
from tests.viz.record.support import broken, plain
from tests.viz.session.support import Page, ask, done, session_of
from tests.viz.support import array, matmul
from workbench.backends.compilers.compilers import clang_for
from workbench.backends.cuda import nvrtc
from workbench.backends.device import Device
from workbench.backends.elsewhere import Elsewhere
from workbench.base.errors import DeviceError
from workbench.base.installation import install_command
from workbench.pipeline import stages
from workbench.viz import explore
from workbench.viz.session.handlers.variant_transfer import restored
from workbench.viz.session.session import Session

PROCESSOR, GPU = "LLVM:Graviton4", "CUDA:H100"
TOOLS = nvrtc.toolkit()
HAS_NVRTC = TOOLS is not None and bool(TOOLS.nvdisasm)
NEEDS_NVRTC = pytest.mark.skipif(
    not HAS_NVRTC, reason=f"NVRTC is not here: {install_command('cuda')}"
)
NEEDS_CLANG = pytest.mark.skipif(
    not (clang_for("amdgcn", "gfx942") and clang_for("spirv64")),
    reason=f"a clang for GPUs is not here: {install_command('c')}",
)


def exploration(device: str) -> Any:
    return explore((array(16, 8) @ array(8, 12)).relu(), device=device)


@pytest.fixture
def there(nothing_saved: Path) -> Iterator[Session]:
    with session_of(exploration(PROCESSOR)) as session:
        page = Page(session)
        yield session
        with session.lock:
            session.send_changes()
            assert page.is_record_of(session)
        assert broken(page.record) == []


def code_in(session: Session, language: str, variant: int = 0) -> dict[str, Any]:
    rows = plain(session.row(variant))["code"]
    row: dict[str, Any] = next(c for c in rows if c["language"] == language)
    return row


def lines_of(row: dict[str, Any]) -> set[int]:
    return {n for link in row["links"] if link for n in link["source"]}


def text_in(session: Session, language: str) -> str:
    done(session, "code", variant=0, language=language)
    return "\n".join(code_in(session, language)["lines"])


def test_edited_text_is_compiled_for_its_machine(there: Session) -> None:
    text = text_in(there, "LLVM")
    done(there, "code", variant=0, language="asm")
    unedited = code_in(there, "asm")
    changed = text.replace("fcmp ogt", "fcmp olt")
    assert changed != text
    fields = {"variant": 0, "language": "LLVM", "text": changed}
    compilation = done(there, "compile", **fields)
    assert compilation["error"] is None and len(there.record.variants) == 1
    child = done(there, "edit", **fields)["variant"]
    row = plain(there.row(child))
    assert row["edited"] and row["parent"] == 0 and row["error"] is None
    assert row["check"] is None and row["timing"] is None and row["cost"] is None
    source, machine = row["code"]
    assert source["lines"] == changed.split("\n") and source["device"] == PROCESSOR
    assert machine["note"].startswith("aarch64 for neoverse-v2 by LLVM")
    assert machine["lines"] != unedited["lines"]
    lines = lines_of(machine)
    assert lines and all(changed.split("\n")[n - 1].strip() for n in lines)
    assert compilation["code"] == row["code"]


def test_it_is_neither_checked_nor_timed(there: Session) -> None:
    edit = {"variant": 0, "language": "LLVM", "text": "; mine\n" + text_in(there, "LLVM")}
    child = done(there, "edit", **edit)["variant"]
    checked = ask(there, "check", variant=child)
    assert "is not run" in checked["error"]["what"]
    here = next(d.name for d in Device if d.is_available)
    done(there, "device", name=here)
    timed = ask(there, "measure", variants=[child], cold=False)
    assert "is not run" in timed["error"]["what"]
    assert plain(there.row(child))["check"] is None
    ex = there.recorder.exploration
    ex.display.session = there
    assert "compiled for LLVM:Graviton4, not run" in str(ex.results)


def test_an_error_is_at_its_line_and_says_the_operation(there: Session) -> None:
    lines = text_in(there, "LLVM").split("\n")
    place = next(i for i, line in enumerate(lines) if "fcmp ogt" in line)
    wrong = [*lines[:place], lines[place].replace("fcmp", "fcompare")]
    edit = {"variant": 0, "language": "LLVM"}
    text = "\n".join(["; a comment", *wrong, *lines[place + 1 :]])
    refusal = done(there, "compile", text=text, **edit)
    assert refusal["code"] == [] and refusal["error"]["line"] == place + 2
    assert "fcompare" in refusal["error"]["because"]
    assert refusal["error"]["because"].endswith("the code of MAX")
    reply = ask(there, "edit", text=text, **edit)
    assert reply["error"]["line"] == place + 2
    assert len(there.record.variants) == 1, "it is not a variant"


def test_it_comes_back_with_its_machine(there: Session) -> None:
    text = text_in(there, "LLVM") + "\n; by hand"
    child = done(there, "edit", variant=0, language="LLVM", text=text)["variant"]
    with session_of(exploration(PROCESSOR)) as session:
        for _ in restored(session):
            pass
        (again,) = [v for v, row in enumerate(session.record.variants) if row.edited]
        assert code_in(session, "LLVM", again)["lines"] == text.split("\n")
        done(session, "compile", variant=again, language="asm", text=None)
        here, before = code_in(session, "asm", again), code_in(there, "asm", child)
        assert here["lines"] == before["lines"] and here["note"] == before["note"]


@needs_c
def test_a_language_of_a_device_that_is_not_here(nothing_saved: Path) -> None:
    """It runs on the emulator for the first machine of the device, whose compiler need not be
    here."""
    with session_of(matmul()) as session:
        edit = {"variant": 0, "language": "CUDA", "text": "// mine\n" + text_in(session, "CUDA")}
        if Device.available("CUDA"):
            pytest.skip("CUDA runs here")
        child = plain(session.row(done(session, "edit", **edit)["variant"]))
        first = next(iter(Device["CUDA"].machines))
        assert {row["device"] for row in child["code"]} == {f"CUDA:{first}"}
        assert ("asm" in {row["language"] for row in child["code"]}) == HAS_NVRTC
        assert child["check"]["ok"] and child["gpu"]["lines"][0]["number"] > 1
        for language in ("Metal", "WGSL", "HIP"):
            text = text_in(session, language)
            compilation = done(session, "compile", variant=0, language=language, text=text)
            assert compilation["error"] is None and compilation["code"][0]["language"] == language


@pytest.mark.parametrize(
    ("device", "language", "note"),
    [
        pytest.param(GPU, "CUDA", "SASS for sm_90 by NVRTC", marks=NEEDS_NVRTC),
        pytest.param("HIP:MI300X", "HIP", "AMDGCN for gfx942 by clang", marks=NEEDS_CLANG),
        pytest.param("OPENCL:Iris Xe", "OpenCL C", "SPIR-V by clang", marks=NEEDS_CLANG),
    ],
)
def test_text_for_a_gpu_becomes_its_machine_code(
    device: str, language: str, note: str, nothing_saved: Path
) -> None:
    with session_of(exploration(device)) as session:
        text = text_in(session, language)
        done(session, "code", variant=0, language="asm")
        head = next(line for line in text.split("\n") if "acc0 = fma" in line)
        edit = {"variant": 0, "language": language}
        child = done(session, "edit", **edit, text=f"// by hand\n{text}")["variant"]
        own, other = code_in(session, "asm"), code_in(session, "asm", child)
        assert other["note"] == own["note"] and other["note"].startswith(note)
        assert other["lines"] == own["lines"] and other.get("live") == own.get("live")
        sources, moved = lines_of(own), lines_of(other)
        assert sources and {n + 1 for n in sources} <= moved
        wrong = text.replace(head, head.replace("=", "= nothing +", 1))
        refusal = done(session, "compile", **edit, text=wrong)["error"]
        assert refusal["line"] == 1 + text.split("\n").index(head)
        assert refusal["because"].startswith("there is no nothing here; line ")
        assert "before the edit" in refusal["because"] and "the code of" in refusal["because"]


@pytest.mark.parametrize(
    ("device", "language", "module", "hint"),
    [
        ("HIP:MI300X", "HIP", "hip.hiprtc", install_command("c")),
        ("OPENCL:Iris Xe", "OpenCL C", "opencl.opencl_code", install_command("c")),
        ("METAL:M3", "Metal", "", Device["METAL"].how_to_get),
    ],
)
def test_where_nothing_compiles_a_text_it_says_what_would(
    device: str,
    language: str,
    module: str,
    hint: str,
    nothing_saved: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sessions' worker is another process: it is asked what it would call."""
    if module:
        there = import_module(f"workbench.backends.{module}")
        monkeypatch.setattr(there, "clang_for", lambda machine, processor="": None)
        info = Device[device]
        assert isinstance(info, Elsewhere)
        kernel = exploration(device).kernels[0]
        source = stages(kernel.ast, device, "source").source
        with pytest.raises(DeviceError) as missing:
            info.load(source.edited(source.text)).assembly_lines  # type: ignore[attr-defined]  # noqa: B018
        assert missing.value.hint.startswith(hint)
        return
    with session_of(exploration(device)) as session:
        text = "// mine\n" + text_in(session, language)
        child = done(session, "edit", variant=0, language=language, text=text)["variant"]
        assert plain(session.row(child))["check"]["ok"]


TILES = 'LOCAL("g0", 4), LOCAL("g1", 4), SPLIT("r0", 4), ORDER("r0", "l0"), STAGE("r0", 1)'


def test_a_barrier_deleted_from_text_for_a_gpu(nothing_saved: Path) -> None:
    """The race is named with its lines, and stepped; the way back is right."""
    with session_of(exploration(GPU)) as session:
        page = Page(session)
        tiled = done(session, "paste", variant=0, text=TILES)["variant"]
        done(session, "code", variant=tiled, language="CUDA")
        text = "\n".join(code_in(session, "CUDA", tiled)["lines"])
        lines = text.split("\n")
        place = next(i for i, line in enumerate(lines) if "__syncthreads" in line)
        edit = {"variant": tiled, "language": "CUDA"}
        changed = "\n".join([*lines[:place], *lines[place + 1 :]])
        child = done(session, "edit", **edit, text=changed)["variant"]
        row = plain(session.row(child))
        assert not row["check"]["ok"] and "race" in row["check"]["text"], row["check"]
        race = next(f for f in row["gpu"]["findings"] if f["is_defect"])
        numbers = [row["gpu"]["lines"][line]["number"] for line in race["lines"]]
        assert race["kind"] == "race" and race["steps"] and len(numbers) == 2
        for number, line in zip(numbers, race["lines"], strict=True):
            assert changed.split("\n")[number - 1].strip() == row["gpu"]["lines"][line]["text"]
        done(session, "emulate", variant=child, group=[1, 0])
        assert plain(session.row(child))["gpu"]["group"] == [1, 0]
        again = done(session, "edit", **edit, text=f"// mine\n{text}")["variant"]
        row = plain(session.row(again))
        assert row["check"]["ok"] and not any(f["is_defect"] for f in row["gpu"]["findings"])
        barrier = next(x["barrier"] for x in row["gpu"]["lines"] if x["barrier"] is not None)
        done(session, "emulate", variant=again, without=barrier)
        row = plain(session.row(again))
        assert row["gpu"]["without"] == barrier and row["check"]["ok"]
        assert any(f["kind"] == "race" for f in row["gpu"]["findings"])
        refusal = done(session, "compile", **edit, text=text.replace("float acc", "flot acc", 1))
        assert refusal["error"]["line"] and "line" in refusal["error"]["what"]
        timed = ask(session, "measure", variants=[again], cold=False)
        assert "is not run" in timed["error"]["what"] or "not timed" in timed["error"]["what"]
        done(session, "check", variant=child)
        assert not plain(session.row(child))["check"]["ok"]
        with session.lock:
            session.send_changes()
            assert page.is_record_of(session)
        assert broken(page.record) == []


@pytest.mark.parametrize("machine", ["HIP:MI300X", "METAL:M3"])
def test_an_edited_product_of_tensor_cores_has_its_steps(machine: str, nothing_saved: Path) -> None:
    language = {"HIP": "HIP", "METAL": "Metal"}[machine.split(":")[0]]
    graph = (array(48, 32) @ array(32, 48)).relu()
    with session_of(explore(graph, device=machine)) as session:
        auto = done(session, "auto", kernel=0)["variant"]
        done(session, "code", variant=auto, language=language)
        text = "\n".join(code_in(session, language, auto)["lines"]).replace("acc2", "total")
        assert "wmma_" in text
        child = done(session, "edit", variant=auto, language=language, text=text)["variant"]
        row = plain(session.row(child))
        assert row["error"] is None and row["check"]["ok"] and row["gpu"]["registers"]
