"""LLVM IR for GPUs: what it computes, as threads of this processor; what LLVM writes of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

from tests.agreement.hunt import attempts, report
from tests.backends.llvm_ir.threads import ThreadsDevice
from tests.support import count
from workbench import Opt, OptOps, Tensor, explore
from workbench.backends.compilers.compilers import MachineCode
from workbench.backends.device import Device
from workbench.backends.gpu.work_group_device import common_gpu
from workbench.backends.llvm_ir.gpu_code import compile_ir, gpu_machine_code, gpu_source
from workbench.backends.llvm_ir.gpu_render import render_gpu
from workbench.backends.llvm_ir.gpu_targets import AMDGCN, PTX, SPIRV, GpuTarget
from workbench.base.errors import CompileError
from workbench.kernel.kernel import Kernel
from workbench.pipeline import stages
from workbench.registration import register, unregister

TARGETS: dict[str, tuple[GpuTarget, str]] = {
    "PTX": (PTX, "sm_90"),
    "AMDGCN": (AMDGCN, "gfx1100"),
    "AMDGCN-CDNA": (AMDGCN, "gfx942"),
    "SPIR-V": (SPIRV, ""),
}
MACHINE = "CUDA:H100"


def tiled(a: Tensor, b: Tensor, items: int) -> Kernel:
    """A product whose tiles are in shared memory."""
    kernel = explore(a @ b).kernels[-1]
    for opt in (
        Opt(OptOps.LOCAL, "g0", items),
        Opt(OptOps.LOCAL, "g1", items),
        Opt(OptOps.SPLIT, "r0", 8),
        Opt(OptOps.ORDER, "r0", "l0"),
        Opt(OptOps.STAGE, "r0", 1),
        Opt(OptOps.STAGE, "r0", 2),
    ):
        kernel = kernel.apply(opt)
    return kernel


def compiled(kernel: Kernel, target: str) -> MachineCode:
    gpu, arch = TARGETS[target]
    built = stages(kernel.ast, MACHINE, "source")
    return gpu_machine_code(gpu, arch, built.source, Device[MACHINE].target)


@pytest.fixture(scope="module")
def threads() -> Iterator[str]:
    device = register(ThreadsDevice())
    yield device.name
    unregister(device.name)


def test_a_tiled_product_with_barriers(threads: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((16, 16), dtype=np.float32) for _ in range(2))
    kernel = tiled(Tensor(a, device=threads), Tensor(b, device=threads), 4)
    text = stages(kernel.ast, threads, "source").source.text
    assert text.count("call void %wait()") == 2 and text.count("addrspace(3) global") == 2
    (actual,) = kernel.run()
    np.testing.assert_allclose(actual, a @ b, rtol=1e-5, atol=1e-5)


def test_random_programs_with_random_opts(threads: str) -> None:
    """The writer of LLVM IR for GPUs, against numpy: IFs, barriers, shared memory, numbers."""
    for attempt in attempts(range(910_000, 910_000 + count(120, 30)), threads, "mixed"):
        assert not attempt.verdict and not attempt.refusal, report(attempt)


@pytest.mark.parametrize("dtype", [np.float32, np.int16, bool])
def test_lanes_one_by_one_where_there_are_no_masks(dtype: type) -> None:
    """Vectors at an edge, read and written in branches."""
    device = register(ThreadsDevice(has_masks=False))
    try:
        a = np.random.default_rng(0).integers(0, 2, (6, 10)).astype(dtype)
        x = Tensor(a, device=device.name)
        kernel = explore((x != 0).where(x, 1).T.contiguous()).kernels[-1]
        kernel = kernel.apply(
            Opt(OptOps.PADTO, "g1", 4), Opt(OptOps.UPCAST, "g1", 4),
        )  # fmt: skip
        text = stages(kernel.ast, device.name, "source").source.text
        assert "masked" not in text and "after_lane" in text
        (actual,) = kernel.run()
        np.testing.assert_array_equal(actual, np.where(a != 0, a, 1).T)
        for attempt in attempts(range(912_000, 912_040), device.name, "mixed"):
            assert not attempt.verdict and not attempt.refusal, report(attempt)
    finally:
        unregister(device.name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8, np.int16, bool])
def test_lanes_exchange_values(threads: str, dtype: type) -> None:
    """Of each width, in vectors too: words of 32 bits go from thread to thread."""
    values = np.random.default_rng(0).integers(0, 2, (3, 16, 8)).astype(dtype)
    kernel = explore(Tensor(values, device=threads).max(1)).kernels[-1]
    opts = Opt(OptOps.GROUP, "r0", 4), Opt(OptOps.UPCAST, "g1", 4)
    kernel = kernel.apply(*opts)
    text = stages(kernel.ast, threads, "source").source.text
    words = 2 if np.dtype(dtype).itemsize == 8 else 1
    assert text.count("call i32 %exchange(") == 4 * 2 * words
    (actual,) = kernel.run()
    np.testing.assert_array_equal(actual, values.max(1))


@pytest.mark.parametrize("target", TARGETS)
def test_a_shuffle_is_the_machines(target: str) -> None:
    words = {
        "PTX": r"shfl\.sync\.bfly\.b32.* 16, 31, -1",
        "AMDGCN": "ds_bpermute_b32",
        "SPIR-V": "OpGroupNonUniformShuffleXor",
    }
    x = Tensor.empty(8, 1024)
    kernel = explore(x.sum(1)).kernels[-1].apply(Opt(OptOps.GROUP, "r0", 32))
    code = compiled(kernel, target)
    pattern = words[target.partition("-C")[0]]
    found = [line for line in code.lines if re.search(pattern, line.text)]
    assert len(found) == (1 if target == "PTX" else 5)
    if target == "SPIR-V":
        assert any("SubgroupSize 32" in line.text for line in code.lines)


@pytest.mark.parametrize("target", TARGETS)
def test_a_barrier_is_the_machines(target: str) -> None:
    words = {"PTX": "bar", "AMDGCN": "s_barrier", "SPIR-V": "OpControlBarrier"}
    code = compiled(tiled(Tensor.empty(64, 64), Tensor.empty(64, 64), 16), target)
    pattern = words[target.partition("-C")[0]]
    assert sum(pattern in line.text for line in code.lines) >= 2
    if target.startswith("AMDGCN"):
        assert code.use.shared_bytes == 2 * 16 * 8 * 4
        assert code.use.registers and code.use.scalar_registers and code.use.occupancy
        assert any("ds_" in line.text for line in code.lines)


@pytest.mark.parametrize("target", ["PTX", "AMDGCN", "SPIR-V"])
def test_lines_are_those_of_the_source(target: str) -> None:
    a, b = Tensor.empty(64, 48), Tensor.empty(48, 80)
    kernel = explore((a @ b).relu()).kernels[0]
    built = stages(kernel.ast, MACHINE, "source")
    lines = built.source.text.split("\n")
    code = compiled(kernel, target)
    words = {"PTX": r"fma\.rn\.f32", "AMDGCN": r"v_(dual_)?fmac?_?", "SPIR-V": ".* fma "}[target]
    multiply = [x for x in code.lines if re.match(rf"\s+{words}", x.text)]
    assert multiply and all("acc0 = fma" in lines[(x.source_line or 0) - 1] for x in multiply)


def test_as_a_language_each_line_has_its_nodes() -> None:
    kernel = explore(Tensor.empty(64, 64) * 2 + 1).kernels[0]
    linear = stages(kernel.ast, MACHINE, "linear").linear
    source = gpu_source(PTX, "sm_90", linear, Device[MACHINE].target)
    lines = source.text.split("\n")
    assert len(source.lines) == len(lines) and source.language == "PTX"
    ops = {
        linear[place].op.name
        for line, places in zip(lines, source.lines, strict=True)
        for place in places
        if line.strip().startswith("st.global")
    }
    assert ops == {"STORE"}


def test_what_a_machine_lacks_is_refused_by_name() -> None:
    x = Tensor.empty(64, dtype="float64")
    kernel = explore(x.exp2()).kernels[0]
    linear = stages(kernel.ast, MACHINE, "linear").linear
    if not any(node.op.name == "EXP2" for node in linear):
        pytest.skip("exp2 of doubles is arithmetic by now")
    with pytest.raises(CompileError, match="PTX has no exp2 of float64"):
        gpu_source(PTX, "sm_90", linear, common_gpu(""))


def test_what_is_joined_of_one_line_keeps_it() -> None:
    """A product whose tiles are read as vectors: LLVM makes one load of two of a line of CUDA."""
    a, b = (Tensor(np.ones((64, 64), np.float32)) for _ in range(2))
    kernel = explore(a @ b, device=MACHINE).kernels[-1].optimized()
    source = stages(kernel.ast, MACHINE, "source").source
    gpu, arch = TARGETS["PTX"]
    code = gpu_machine_code(gpu, arch, source, Device[MACHINE].target)
    apart = compile_ir(gpu, arch, render_gpu(gpu, source.linear, Device[MACHINE].target))
    with_line = [sum(bool(line.source_line) for line in one.lines) for one in (code, apart)]
    assert [line.text for line in code.lines] == [line.text for line in apart.lines]
    assert with_line[0] > with_line[1]
    texts = source.text.split("\n")
    for line in code.lines:
        if line.source_line and line.text.lstrip().startswith("ld.shared"):
            assert re.search(r"\b[AB]s\b|acc", texts[line.source_line - 1])
