"""A compiled kernel has every level, its text and the passes that made it."""

from __future__ import annotations

import pytest

from tests.kernel.samples import TILE, matmul
from workbench import Opt, OptOps
from workbench.base.errors import DeviceError
from workbench.ir.node.ops import Ops


def test_compiled_has_the_levels_the_text_and_the_passes() -> None:
    program = matmul().apply(*TILE).compile("LLVM")
    assert program["lowered"].op is Ops.BLOCK and program["linear"][0].op is Ops.BLOCK
    assert "define" in program.source and str(program) == program.source
    assert "fmadd" in program.assembly or "fmla" in program.assembly or "mul" in program.assembly
    assert [p.name for p in program.passes if p.name.startswith("opt-")] == [
        "opt-upcast", "opt-upcast", "opt-local",
    ]  # fmt: skip
    with pytest.raises(KeyError, match="lowered"):
        program["tensor"]
    assert program.counts.fmas == 48 * 64 * 80 // 8


@pytest.mark.parametrize("width", [2, 4])
def test_work_items_count_each_element_of_a_vector(width: int) -> None:
    """Vectors are loaded at once, and their elements multiplied one by one."""
    kernel = matmul().on("CUDA:H100").kernel.apply(Opt(OptOps.UPCAST, "g1", width))
    assert kernel.counts.fmas == kernel.compile().counts.fmas == 48 * 64 * 80


def test_the_emulator_has_no_machine_code() -> None:
    program = matmul().compile("PYTHON")
    assert "for g0 in 48" in program.source
    with pytest.raises(DeviceError, match="emulator"):
        _ = program.assembly
