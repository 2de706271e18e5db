"""Machine code for machines that are not here, in a record."""

from __future__ import annotations

from typing import Any

import pytest

from tests.viz.record.support import plain
from tests.viz.session.support import ask, session_of
from workbench import Tensor, explore
from workbench.backends.cuda import nvrtc
from workbench.backends.cuda.cuda_device import DEVICE
from workbench.base.errors import CompileError
from workbench.base.installation import install_command
from workbench.viz.session.handlers import inspection as machine_code

NVRTC = nvrtc.toolkit()


def code_of(device: str, target: str) -> dict[str, Any]:
    """Return the programs of a kernel for a machine, by language, when somebody looks."""
    kernels = explore(Tensor.empty(64, 64) @ Tensor.empty(64, 64), device=device, target=target)
    with session_of(kernels) as session:
        assert ask(session, "code", variant=0, language="asm")["ok"]
        session_rows = plain(session.row(0))["code"]
        machine_code.costs(session, 0, None)
        assert plain(session.row(0))["code"] == session_rows, "no tool knows its costs"
    return {row["language"]: row for row in session_rows}


def lines_of_links(row: dict[str, Any]) -> set[int]:
    return {n for link in row["links"] if link for n in link["source"]}


@pytest.mark.parametrize(
    ("device", "target", "isa", "source"),
    [
        ("HIP", "MI300X", "AMDGCN for gfx942", "HIP"),
        ("LLVM", "Graviton4", "aarch64 for neoverse-v2", "LLVM"),
        ("LLVM", "Banana Pi F3", "riscv64 for spacemit-x60", "LLVM"),
    ],
)
def test_machine_code_leads_to_its_source(device: str, target: str, isa: str, source: str) -> None:
    code = code_of(device, target)
    row = code["asm"]
    assert row["note"].startswith(isa) and row["device"] == f"{device}:{target}"
    count = len(code[source]["lines"])
    assert lines_of_links(row) and all(1 <= n <= count for n in lines_of_links(row))
    linked = [link for link in row["links"] if link and link["axes"]]
    assert {axis for link in linked for axis in link["axes"]} >= {"r0"}


def test_without_nvrtc_it_is_ptx_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "toolkit", lambda: None)
    code = code_of("CUDA", "H100")
    assert code["asm"]["note"].startswith("PTX for sm_90 by LLVM")
    assert install_command("cuda") in code["asm"]["note"]
    assert code["PTX"]["lines"] and lines_of_links(code["asm"])


@pytest.mark.skipif(
    NVRTC is None or not NVRTC.nvdisasm, reason=f"NVRTC is not here: {install_command('cuda')}"
)
def test_sass_has_the_registers_in_use() -> None:
    row = code_of("CUDA", "H100")["asm"]
    assert row["note"].startswith("SASS for sm_90 by NVRTC")
    assert len(row["live"]) == len(row["lines"]) and max(filter(None, row["live"])) <= 255
    assert lines_of_links(row)


def test_what_a_compiler_refuses_stands_where_its_code_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise CompileError("nvrtc", "too much shared data (0xd000 bytes)", line=2)

    monkeypatch.setattr(type(DEVICE), "compile_for", refuse)
    kernels = explore(Tensor.empty(64) + 1, device="CUDA", target="A100")
    with session_of(kernels) as session:
        reply = ask(session, "code", variant=0, language="asm")
        rows = plain(session.row(0))["code"]
    assert not reply["ok"] and "shared data" in reply["error"]["because"]
    code = {row["language"]: row for row in rows}
    assert code["asm"]["lines"] == [] and code["CUDA"]["lines"]
    assert code["asm"]["error"]["line"] == 2
    assert "line 2 is //   p0" in code["asm"]["error"]["because"]
