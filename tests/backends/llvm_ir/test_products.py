"""Products of tiles by LLVM: the instruction of the machine stands in what it writes."""

from __future__ import annotations

import re

import pytest

from tests.tools.tensor_cores import BY_ARCH, core_named, gpu_with
from workbench import Opt, OptOps, Tensor, explore
from workbench.backends.llvm_ir.gpu_code import gpu_source
from workbench.backends.llvm_ir.gpu_targets import AMDGCN, PTX, SPIRV, GpuTarget
from workbench.base.errors import CompileError
from workbench.base.tensor_cores import TensorCore
from workbench.ir.opt.apply import apply_opt
from workbench.pipeline import stages


def text_of(core: TensorCore, gpu: GpuTarget, arch: str) -> str:
    target = gpu_with(core)
    a = Tensor.empty(2 * core.m, 4 * core.k, dtype=core.operand)
    b = Tensor.empty(4 * core.k, 2 * core.n, dtype=core.operand)
    product = a.cast(core.accumulator) @ b.cast(core.accumulator)
    graph = explore(product).kernels[-1].ast
    for opt in (Opt(OptOps.TC, 0, core.shape), Opt(OptOps.UPCAST, "g0", 2)):
        graph, _ = apply_opt(graph, opt, target)
    return gpu_source(gpu, arch, stages(graph, target, "linear").linear, target).text


CASES = [(a, c) for a in ("sm_75", "sm_80", "sm_89") for c in BY_ARCH[a]]
AMD_CASES = [(a, c) for a in ("gfx1100", "gfx90a", "gfx942") for c in BY_ARCH[a]]


@pytest.mark.parametrize(("arch", "core"), CASES, ids=str)
def test_ptx(arch: str, core: TensorCore) -> None:
    text = text_of(core, PTX, arch)
    calls = re.findall(rf"{re.escape(core.instruction)} {{(.*?)}}, {{(.*?)}}", text)
    assert len(calls) in (2, 8), "for two tiles, and for each step of an unrolled loop"
    assert [len(part.split(",")) for part in calls[0]] == [
        core.c.per_lane,
        max(1, core.a.per_lane * core.operand.bits // 32) if core.operand.bits < 64 else 1,
    ]


@pytest.mark.parametrize(("arch", "core"), AMD_CASES, ids=str)
def test_amdgcn(arch: str, core: TensorCore) -> None:
    text = text_of(core, AMDGCN, arch)
    kind = "wmma" if arch == "gfx1100" else "mfma"
    assert set(re.findall(r"v_(mfma|wmma)_f32_(\w+x\w+x\d+)", text)) == {(kind, core.shape)}


def test_what_a_machine_lacks_is_refused() -> None:
    core = core_named("sm_80", "16x8x16 float16 -> float32")
    for gpu, arch in ((SPIRV, ""), (AMDGCN, "gfx1100")):
        with pytest.raises(CompileError, match="has no instruction for 16x8x16"):
            text_of(core, gpu, arch)
    with pytest.raises(CompileError, match="has no instruction for 16x16x16"):
        text_of(core_named("gfx942", "16x16x16 float16 -> float32"), PTX, "sm_80")
