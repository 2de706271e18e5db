"""Every language of work-items writes the same kernels: by the words of the language, and for the
language that somebody asks for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from workbench import Opt, OptOps, Tensor, dtypes, explore
from workbench.backends.c_like.dialect import Dialect
from workbench.backends.c_like.render import render
from workbench.backends.cuda.dialect import CudaCpp
from workbench.backends.gpu.cpp import OpenCLC
from workbench.backends.gpu.work_group_device import common_gpu
from workbench.backends.hip.hip_machines import HipCpp
from workbench.backends.metal.dialect import Metal
from workbench.backends.webgpu.wgsl import Wgsl
from workbench.base.errors import LanguageError
from workbench.ir.node.uop import UOp
from workbench.pipeline import stages

DIALECTS: dict[str, Callable[[], Dialect]] = {
    "OpenCL C": OpenCLC, "CUDA": CudaCpp, "HIP": HipCpp, "Metal": Metal, "WGSL": Wgsl,
}  # fmt: skip
GPU = common_gpu("GPU")
TILED = (
    Opt(OptOps.LOCAL, "g0", 16),
    Opt(OptOps.LOCAL, "g1", 4),
    Opt(OptOps.UPCAST, "g1", 4),
    Opt(OptOps.SPLIT, "r0", 16),
    Opt(OptOps.ORDER, "r0", "l0"),
    Opt(OptOps.STAGE, "r0", 1),
    Opt(OptOps.STAGE, "r0", 2),
)


def ones(*shape: int, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.ones(shape, dtype)).realize()


def tiled() -> UOp:
    kernel = explore((ones(64, 48) @ ones(48, 64)).relu()).kernels[-1]
    for opt in TILED:
        kernel = kernel.apply(opt)
    return kernel.ast


def text_of(kernel: UOp, dialect: Dialect, **changes: Any) -> str:
    target = replace(GPU, **changes)
    built = stages(kernel, target, "linear")
    return render(dialect, built.lowered, built.linear, target, built.tree).text


EXPECTED = {
    "OpenCL C": [
        "__kernel __attribute__((reqd_work_group_size(4, 16, 1)))",
        "void r_64_64_48(__global float *p0, __global const float *p1, __global const float *p2) {",
        "  __local float As[272] __attribute__((aligned(16)));",
        "  const int l0 = get_local_id(1);",
        "    barrier(CLK_LOCAL_MEM_FENCE);",
    ],
    "CUDA": [
        'extern "C" __global__ void __launch_bounds__(64)',
        "r_64_64_48(float *p0, const float *p1, const float *p2) {",
        "  __shared__ __align__(16) float As[272];",
        "  const int l0 = threadIdx.y;",
        "    __syncthreads();",
    ],
    "HIP": [
        'extern "C" __global__ void __launch_bounds__(64)',
        "  __shared__ __align__(16) float As[272];",
        "    __syncthreads();",
    ],
    "Metal": [
        "[[max_total_threads_per_threadgroup(64)]]",
        "kernel void r_64_64_48(",
        "    device const float *p1 [[buffer(1)]],",
        "  threadgroup alignas(16) float As[272];",
        "  const int l0 = item.y;",
        "    threadgroup_barrier(mem_flags::mem_threadgroup);",
    ],
    "WGSL": [
        "@group(0) @binding(1) var<storage, read> p1: array<f32>;",
        "var<workgroup> As: array<f32, 272>;",
        "@compute @workgroup_size(4, 16, 1)",
        "  let l0: i32 = i32(item.y);",
        "    workgroupBarrier();",
    ],
}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_tiled_product(name: str) -> None:
    lines = text_of(tiled(), DIALECTS[name]()).splitlines()
    for line in EXPECTED[name]:
        assert line in lines, "\n".join(lines)
    assert sum("arrier" in x or "sync" in x for x in lines) == 2
    # the same loops, in the same order, with the same names
    loops = [m[1] for x in lines if (m := re.search(r"for \(\w+ (\w+) = 0", x))]
    assert loops[-1] == "r1" and loops[0] == "r0" and len(loops) == 4


@pytest.mark.parametrize("name", DIALECTS)
def test_vectors_are_loaded_and_stored_whole(name: str) -> None:
    kernel = explore(ones(64) * 2 + ones(64)).kernels[-1].apply(Opt(OptOps.UPCAST, "g0", 4))
    text = text_of(kernel.ast, DIALECTS[name]())
    if name == "WGSL":
        assert "p1[g0*4 + 3] * 2.0f" in text, "it has no pointers"
    else:
        assert text.count("float4 *)&p") == 3, text


@pytest.mark.parametrize("name", DIALECTS)
def test_a_vector_that_is_written_or_not_is_stored_whole(name: str) -> None:
    kernel = explore(ones(1000) + 1).kernels[-1]
    opts = (OptOps.UPCAST, 4), (OptOps.PADTO, 32), (OptOps.LOCAL, 32)
    for op, amount in opts:
        kernel = kernel.apply(Opt(op, "g0", amount))
    text = text_of(kernel.ast, DIALECTS[name]())
    assert len(re.findall(r"\bif\b", text)) == 1


SHUFFLES = {
    "OpenCL C": "group0w += intel_sub_group_shuffle_xor(group0w, 16u);",
    "CUDA": "group0w += __shfl_xor_sync(0xffffffff, group0w, 16);",
    "HIP": "group0w += __shfl_xor(group0w, 16);",
    "Metal": "group0w += simd_shuffle_xor(group0w, ushort(16));",
}


@pytest.mark.parametrize("name", SHUFFLES)
def test_lanes_exchange_values(name: str) -> None:
    """Sixteen steps for each work-item, a cell for each warp, a barrier."""
    kernel = explore(ones(8, 1024).sum(1)).kernels[-1]
    kernel = kernel.apply(Opt(OptOps.GROUP, "r0", 256))
    text = text_of(kernel.ast, DIALECTS[name](), shuffle_dtypes=("float32",))
    lines = [line.strip() for line in text.splitlines()]
    at = lines.index("float group0w = acc0;")
    first = SHUFFLES[name]
    distances = [first.replace("16", str(1 << n)) for n in (4, 3, 2, 1, 0)]
    assert lines[at + 1 : at + 6] == distances
    assert lines[at + 6] == "if ((x0 & 31) < 1) { group0[x0 >> 5] = group0w; }"
    assert "arrier" in lines[at + 7] or "sync" in lines[at + 7]
    read = "float group0r = (x0 & 7) < 8 ? group0[x0 & 7] : 0.0f;"
    assert lines[at + 8] in (read, "float group0r = group0[x0 & 7];")
    again = [first.replace("group0w", "group0r").replace("16", n) for n in "421"]
    assert lines[at + 9 : at + 12] == again
    needs = "__attribute__((intel_reqd_sub_group_size(32)))"
    assert (needs in lines) == (name == "OpenCL C")


@pytest.mark.parametrize("name", SHUFFLES)
def test_a_shuffle_of_bools_is_executed_by_all_lanes(name: str) -> None:
    """`a || shuffle(b)` would leave it out in the lanes in which a is true."""
    kernel = explore((ones(8, 1024) > 0).any(1)).kernels[-1]
    kernel = kernel.apply(Opt(OptOps.GROUP, "r0", 256))
    text = text_of(kernel.ast, DIALECTS[name](), shuffle_dtypes=("bool",))
    lines = [line for line in text.splitlines() if re.search(r"shfl|shuffle", line)]
    assert lines and not [line for line in lines if re.search(r"\|\||&&|\?", line)], lines


def test_a_language_without_shuffles_refuses_them() -> None:
    """No promise of WGSL says which invocations are neighbours in a subgroup."""
    kernel = explore(ones(8, 64).sum(1)).kernels[-1]
    kernel = kernel.apply(Opt(OptOps.GROUP, "r0", 32))
    assert "shuffle" not in text_of(kernel.ast, Wgsl())
    with pytest.raises(LanguageError, match="WGSL has no warp shuffle"):
        text_of(kernel.ast, Wgsl(), shuffle_dtypes=("float32",))


def test_what_a_language_lacks_is_refused() -> None:
    double = explore(ones(8, dtype=np.float64) + 1).kernels[-1].ast
    with pytest.raises(LanguageError, match="Metal has no float64"):
        text_of(double, Metal())
    far = explore(Tensor.empty(1 << 31, dtype=dtypes.uint8) + 1).kernels[-1].ast
    with pytest.raises(LanguageError, match="WGSL has no indexes of 64 bits"):
        text_of(far, Wgsl())


@pytest.mark.parametrize("name", DIALECTS)
def test_quotients_and_remainders_of_float32_need_no_float64(name: str) -> None:
    a, b = ones(8), ones(8)
    words = {"OpenCL C": "fmod(", "CUDA": "fmodf(", "HIP": "fmodf(", "Metal": "fmod("}
    for result in (a // b, a % b):
        text = text_of(explore(result).kernels[-1].ast, DIALECTS[name]())
        assert words.get(name, "fmod_float32(") in text and "double" not in text, text


@pytest.mark.parametrize("name", DIALECTS)
def test_special_numbers(name: str) -> None:
    x = ones(8)
    result = (x > 0).where(float("nan"), float("-inf"))
    text = text_of(explore(result).kernels[-1].ast, DIALECTS[name]())
    words = {
        "OpenCL C": ("NAN", "-INFINITY"),
        "CUDA": ("__int_as_float(0x7fc00000)", "__int_as_float(0xff800000)"),
        "HIP": ("__int_as_float(0x7fc00000)", "__int_as_float(0xff800000)"),
        "Metal": ("NAN", "-INFINITY"),
        "WGSL": ("bitcast<f32>(nan_bits)", "-bitcast<f32>(infinity_bits)"),
    }
    assert all(word in text for word in words[name]), text


def test_indexes_are_wide_where_they_must_be() -> None:
    rows = Tensor(np.array([1, 0, 3], np.int32)).realize()
    gathered = text_of(explore(ones(8, 8)[rows]).kernels[-1].ast, Wgsl())
    assert "i32" in gathered, "the bounds of an index from memory are checked beside it"
    huge = Tensor.empty(1 << 17, 1 << 17, dtype=dtypes.uint8)
    kernel = explore(huge.sum(1)).kernels[0].ast
    assert "const long " in text_of(kernel, OpenCLC())
    with pytest.raises(LanguageError, match="no indexes of 64 bits"):
        text_of(kernel, Wgsl())


@pytest.mark.parametrize("name", DIALECTS)
def test_what_a_signed_type_does_not_define_is_unsigned(name: str) -> None:
    """C and C++ do: a compiler may take the sign of x + x for that of x, and PoCL does."""
    x, y = Tensor.empty(8, dtype="int32"), Tensor.empty(8, dtype="uint16")
    narrow = x.clip(-9, 9)
    values = {
        "x + x": x + x * 2, "-x": -x, "y * y": y * y, "sum": (x ^ 3).sum(dtype="int32"),
    }  # fmt: skip

    def text(value: Tensor) -> str:
        (kernel,) = explore(value, device="PYTHON").kernels
        return text_of(kernel.ast, DIALECTS[name]())

    if name == "WGSL":  # its integers wrap
        assert "acc0 += " in text(values["sum"]) and "u32(" not in text(values["x + x"])
        return
    cast = re.compile(r"\((?:uint|unsigned int)\)")
    assert [key for key, value in values.items() if cast.search(text(value))] == [*values]
    assert not cast.search(text(narrow * 3 + narrow)), "it is known to fit"
