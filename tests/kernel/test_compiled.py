"""A compiled kernel has every level, its text and the passes that made it."""

from __future__ import annotations

import pytest

from tests.kernel.samples import TILE, matmul
from workbench.base.errors import DeviceError
from workbench.ir.node.ops import Ops


def test_compiled_has_the_levels_the_text_and_the_passes() -> None:
    made = matmul().apply(*TILE).compile("LLVM")
    assert made["lowered"].op is Ops.BLOCK and made["linear"][0].op is Ops.BLOCK
    assert "define" in made.source and str(made) == made.source
    assert "fmadd" in made.assembly or "fmla" in made.assembly or "mul" in made.assembly
    assert [p.name for p in made.passes if p.name.startswith("opt-")] == [
        "opt-upcast", "opt-upcast", "opt-local",
    ]  # fmt: skip
    with pytest.raises(KeyError, match="lowered"):
        made["tensor"]
    assert made.counts.fmas == 48 * 64 * 80 // 8


def test_the_emulator_has_no_machine_code() -> None:
    made = matmul().compile("PYTHON")
    assert "for g0 in 48" in made.source
    with pytest.raises(DeviceError, match="emulator"):
        _ = made.assembly
