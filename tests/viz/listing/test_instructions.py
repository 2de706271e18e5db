"""What instructions do, in words, and what they cost."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.viz.support import matmul, softmax
from workbench.viz import Exploration
from workbench.viz.listing import aarch64, x86_64
from workbench.viz.listing import instructions as mca
from workbench.viz.listing.instructions import help_of, mnemonic_of, words_of
from workbench.viz.schema.variant import InstructionCost

TABLES = {"x86_64": x86_64, "aarch64": aarch64}
CODE = ["f:", "  incq %r14", "  vfmadd231ss (%rbx), %xmm2, %xmm1", "  jl .LBB0_4"]


@pytest.mark.parametrize("example", [matmul, softmax])
def test_every_instruction_of_this_machine_has_words(example: Callable[[], Exploration]) -> None:
    for kernel in example().kernels:
        for opted in (kernel, kernel.optimized()):
            lines = [line.text for line in opted.compile("LLVM").assembly_lines]
            mnemonics = {mnemonic_of(line) for line in lines} - {""}
            assert mnemonics == set(help_of(lines))


def test_words_say_what_the_letters_of_a_mnemonic_mean() -> None:
    fma = words_of("vfmadd231ps", "x86_64")
    assert "the 2nd operand times the 3rd" in fma and "every lane" in fma
    assert "lowest lane" in words_of("vaddss", "x86_64")
    assert "64 bits" in words_of("movq", "x86_64") or "vector" in words_of("movq", "x86_64")
    assert words_of("jne", "x86_64") != words_of("jl", "x86_64")
    assert "less" in words_of("b.lt", "aarch64")
    assert words_of("frobnicate", "x86_64") == words_of("addq", "vax") == ""


@pytest.mark.parametrize("machine", TABLES)
def test_words_have_no_slot_that_stays_empty(machine: str) -> None:
    table = TABLES[machine]
    for pattern, text in table.ROWS:
        named = set(re.compile(pattern).groupindex)
        assert set(re.findall(r"{(\w+)}", text)) <= named, pattern


def test_costs_are_those_that_a_tool_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"Latency": n, "RThroughput": n / 4} for n in (1, 4, 2)]
    report: Any = {
        "CodeRegions": [{"InstructionInfoView": {"InstructionList": rows}}],
        "TargetInfo": {"CPUName": "some"},
    }
    tool = tmp_path / mca.PROGRAM
    tool.write_text(f"#!{sys.executable}\nprint({json.dumps(json.dumps(report))})")
    tool.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    costs = mca.instruction_costs(CODE)
    assert costs is not None and costs.source == "llvm-mca, some"
    expected = [None, *(InstructionCost(n, n / 4) for n in (1, 4, 2))]
    assert costs.lines == expected
    pressure = [(0, 0, 0.5), (0, 1, 1 / 3), (2, 0, 1), (3, 0, 9)]
    names = "InstructionIndex", "ResourceIndex", "ResourceUsage"
    listed = [dict(zip(names, row, strict=True)) for row in pressure]
    report["CodeRegions"][0]["ResourcePressureView"] = {"ResourcePressureInfo": listed}
    report["TargetInfo"]["Resources"] = ["CpuALU0", "CpuLoad.\x01"]
    tool.write_text(f"#!{sys.executable}\nprint({json.dumps(json.dumps(report))})")
    costs = mca.instruction_costs(CODE)
    ports = [line.ports for line in costs.lines if line] if costs else []
    assert ports == [{"ALU0": 0.5, "Load.1": 0.333}, {}, {"ALU0": 1}]
    assert mca.instruction_costs(CODE[:2]) is None, "it has counted others"
    tool.write_text("#!/bin/sh\nexit 1")
    assert mca.instruction_costs(CODE) is None
    monkeypatch.setenv("PATH", "")
    assert mca.instruction_costs(CODE) is None
