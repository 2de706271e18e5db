"""Products of tiles in each language of work-items: by the words of its instruction, or refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.tools.tensor_cores import ARCHES, BY_ARCH, core_named, gpu_with
from workbench import Opt, OptOps, Tensor, emulate, explore
from workbench.backends.c_like.dialect import Dialect
from workbench.backends.c_like.render import render
from workbench.backends.cuda import cuda_machines as cuda
from workbench.backends.cuda.dialect import CudaCpp
from workbench.backends.gpu.cpp import OpenCLC
from workbench.backends.hip import hip_machines as hip
from workbench.backends.hip.hip_machines import HipCpp
from workbench.backends.metal import metal_machines as metal
from workbench.backends.metal.dialect import Metal
from workbench.backends.opencl import opencl_machines as opencl
from workbench.backends.webgpu.wgsl import Wgsl
from workbench.base.errors import LanguageError
from workbench.base.tensor_cores import TensorCore
from workbench.ir.opt.apply import apply_opt
from workbench.pipeline import stages

LANGUAGES = {cuda: CudaCpp, hip: HipCpp, metal: Metal, opencl: OpenCLC}
CASES = [
    (core, LANGUAGES[module])
    for module, arches in ARCHES.items()
    for core in dict.fromkeys(c for arch in arches for c in BY_ARCH[arch])
]


def text_of(
    core: TensorCore,
    dialect: Callable[[], Dialect],
    opts: Sequence[Opt] = (),
    shape: tuple[int, int, int] | None = None,
) -> str:
    target = gpu_with(core)
    m, n, k = shape or (2 * core.m, 2 * core.n, 4 * core.k)
    a = Tensor.empty(m, k, dtype=core.operand)
    b = Tensor.empty(k, n, dtype=core.operand)
    product = a.cast(core.accumulator) @ b.cast(core.accumulator)
    graph = explore(product).kernels[-1].ast
    for opt in (Opt(OptOps.TC, 0, core.shape), *opts):
        graph, _ = apply_opt(graph, opt, target)
    built = stages(graph, target, "linear")
    return render(dialect(), built.lowered, built.linear, target, built.tree).text


@pytest.mark.parametrize(("core", "dialect"), CASES, ids=str)
def test_each_tile_is_an_instruction(core: TensorCore, dialect: Callable[[], Dialect]) -> None:
    text = text_of(core, dialect)
    assert text.count(core.instruction) == 1, "in one function before the kernel"
    name = f"wmma_{core.shape}_{core.operand.name}("
    assert text.count(name) == 2, "its definition and a call"
    upcast = text_of(core, dialect, [Opt(OptOps.UPCAST, "g0", 2)])
    assert upcast.count(name) == 3, "two calls, with one fragment of B"


def test_mma() -> None:
    text = text_of(core_named("sm_80", "16x8x16 float16 -> float32"), CudaCpp)
    for words in (
        '{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"',
        '"r"(a0), "r"(a1)',
        "const ushort2 p1_v0 = *(const ushort2 *)&p1[at0];",
        "float4 acc0 = make_float4(0.0f, 0.0f, 0.0f, 0.0f);",
        "const int lane = threadIdx.x;",
    ):
        assert words in text, text


def test_bytes_share_a_register() -> None:
    text = text_of(core_named("sm_80", "16x8x32 int8 -> int32"), CudaCpp)
    call = " ".join(text[text.rindex("wmma_16x8x32_int8(") :].split())
    four = r" \| ".join(
        [r"\(unsigned char\)[\w.]+"]
        + [rf"\(unsigned\)\(unsigned char\)[\w.]+ << {8 * i}" for i in (1, 2, 3)]
    )
    assert len(re.findall(four, call)) == 4, "registers of the first operand"
    assert '"r"(b1)' in text and '"+r"(c.w)' in text


def test_wmma_and_mfma() -> None:
    text = text_of(core_named("gfx1100", "16x16x16 float16 -> float32"), HipCpp)
    assert "typedef float float32_x8 __attribute__((ext_vector_type(8)));" in text
    assert "typedef _Float16 operand __attribute__((ext_vector_type(16)));" in text
    assert "*(const uint16_x16 *)&p1[" in text and "p0[at0 + 64] = acc0[1];" in text
    text = text_of(core_named("gfx942", "32x32x8 bfloat16 -> float32"), HipCpp)
    assert "__builtin_amdgcn_mfma_f32_32x32x8bf16_1k(" in text
    assert "__builtin_bit_cast(sum, c), 0, 0, 0));" in text
    assert "typedef short operand" in text


def test_simdgroup_matrix() -> None:
    text = text_of(core_named("apple7", "8x8x8 float16 -> float32"), Metal)
    assert "simdgroup_half8x8 left, right;" in text
    assert "left.thread_elements()[1] = as_type<half>(a.y);" in text
    assert "*(device float2 *)&p0[" in text, "neighbours are stored together"


def test_sub_groups() -> None:
    eight = text_of(core_named("xe-hpg", "8x8x16 float16 -> float32"), OpenCLC)
    assert "__attribute__((intel_reqd_sub_group_size(8)))" in eight
    assert "(as_int8(a), as_int8(b), c);" in eight
    sixteen = text_of(core_named("xe-hpc", "8x16x16 bfloat16 -> float32"), OpenCLC)
    assert "(as_short8(a), as_int8(b), c);" in sixteen and ".s7;" in sixteen


def test_what_a_language_lacks_is_refused() -> None:
    """WGSL has no matrices of a sub-group; OpenCL C has Intel's alone, HIP AMD's."""
    single = core_named("gfx942", "16x16x4 float32 -> float32")
    for dialect in (Wgsl, OpenCLC):
        with pytest.raises(LanguageError, match="has no instruction for 16x16x4"):
            text_of(single, dialect)
    with pytest.raises(LanguageError, match="has no instruction"):
        text_of(core_named("apple7", "8x8x8 float32 -> float32"), HipCpp)


@pytest.mark.parametrize("machine", ["CUDA:H100", "HIP:MI300X", "METAL:M3"])
def test_a_tile_beyond_the_end_of_a_padded_sum_is_zeros(machine: str) -> None:
    """Where the steps of the sum are written one by one, the last tiles are constant."""
    rows, columns = (np.arange(2304).reshape(48, 48) % n - 3 for n in (7, 5))
    a, b = (Tensor(n.astype(np.float16)) for n in (rows, columns))
    (kernel,) = explore(a.float() @ b.float(), device=machine).kernels
    tile = next(o for o in kernel.legal_opts() if o.op is OptOps.TC)
    kernel = kernel.apply(tile)
    padded = kernel.apply(Opt(OptOps.PADTO, "r0", 4), Opt(OptOps.UNROLL, "r0", 0))
    outputs = emulate(padded).outputs
    assert np.array_equal(outputs[0].reshape(48, 48), rows @ columns)
    padded.compile()
