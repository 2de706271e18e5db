"""float16 and bfloat16 in the types of each language, and as numbers that numpy computes too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.backends.gpu.test_dialects import text_of
from tests.support import by_rows
from workbench import Opt, OptOps, Tensor, dtypes, emulate, explore
from workbench.backends.c_like.dialect import Dialect
from workbench.backends.c_like.render import render
from workbench.backends.cuda.dialect import CudaCpp
from workbench.backends.device import Device
from workbench.backends.gpu.cpp import OpenCLC
from workbench.backends.hip.hip_machines import HipCpp
from workbench.backends.metal.dialect import Metal
from workbench.base.dtypes import DType
from workbench.ir.opt.heuristic.default_opts import heuristic
from workbench.kernel.runnable import RunnableKernel
from workbench.pipeline import stages

Array = np.ndarray[Any, Any]
BOTH = (dtypes.float16, dtypes.bfloat16)
MACHINES = ("CUDA:H100", "HIP:MI300X", "METAL:M3", "OPENCL:Iris Xe")
LANGUAGES: dict[str, Callable[[], Dialect]] = {
    "CUDA": CudaCpp, "HIP": HipCpp, "Metal": Metal, "OpenCL C": OpenCLC,
}  # fmt: skip
EXPECTED = {
    ("CUDA", "float16", 1): [
        "#include <cuda_fp16.h>",
        "e_64(__half *p0, const __half *p1) {",
        "  p0[g0] = __float2half(__half2float(p1[g0]) * 2.0f);",
    ],
    ("CUDA", "float16", 2): [
        "  const __half2 p1_v0 = *(const __half2 *)&p1[g0*2];",
        "      __float2half(__half2float(p1_v0.y) * 2.0f)};",
    ],
    ("CUDA", "float16", 4): [
        "struct __align__(8) float16_x4 { __half x, y, z, w; };",
        "  const float16_x4 p1_v0 = *(const float16_x4 *)&p1[g0*4];",
    ],
    ("CUDA", "bfloat16", 1): [
        "#include <cuda_bf16.h>",
        "e_64(__nv_bfloat16 *p0, const __nv_bfloat16 *p1) {",
        "  p0[g0] = __float2bfloat16(__bfloat162float(p1[g0]) * 2.0f);",
    ],
    ("HIP", "float16", 1): ["  p0[g0] = (_Float16)((float)p1[g0] * 2.0f);"],
    ("HIP", "bfloat16", 4): [
        "typedef __bf16 bfloat16_x4 __attribute__((ext_vector_type(4)));",
        "  const bfloat16_x4 p1_v0 = *(const bfloat16_x4 *)&p1[g0*4];",
    ],
    ("Metal", "float16", 1): ["  p0[g0] = (half)((float)p1[g0] * 2.0f);"],
    ("Metal", "bfloat16", 4): [
        "  const bfloat4 p1_v0 = *(device const bfloat4 *)&p1[g0*4];",
        "  *(device bfloat4 *)&p0[g0*4] = bfloat4(float4(p1_v0) * 2.0f);",
    ],
    ("OpenCL C", "float16", 1): [
        "void e_64(__global half *p0, __global const half *p1) {",
        "  vstore_half_rte(vload_half(g0, p1) * 2.0f, g0, p0);",
    ],
    ("OpenCL C", "float16", 4): [
        "  const float4 p1_v0 = vloada_half4(0, &p1[g0*4]);",
        "  vstorea_half4_rte(p1_v0 * 2.0f, 0, &p0[g0*4]);",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "lanes"), EXPECTED, ids=str)
def test_each_language_has_its_types(name: str, kind: str, lanes: int) -> None:
    x = Tensor.empty(64, dtype=getattr(dtypes, kind))
    kernel: RunnableKernel = explore(x * 2).kernels[-1]
    if lanes > 1:
        kernel = kernel.apply(Opt(OptOps.UPCAST, "g0", lanes))
    text = text_of(kernel.ast, LANGUAGES[name](), conversions=BOTH)
    for line in EXPECTED[name, kind, lanes]:
        assert line in text.splitlines(), text


@pytest.mark.parametrize("name", LANGUAGES)
def test_what_is_rounded_on_the_way_is_rounded(name: str) -> None:
    """x * 2 is a float16 before x is added."""
    x = Tensor.empty(64, dtype=dtypes.float16)
    text = text_of(explore(x * 2 + x).kernels[-1].ast, LANGUAGES[name](), conversions=BOTH)
    rounded = {
        "CUDA": "__half2float(__float2half(v0 * 2.0f)) + v0",
        "HIP": "(float)(_Float16)(v0 * 2.0f) + v0",
        "Metal": "(float)(half)(v0 * 2.0f) + v0",
        "OpenCL C": "round_half(v0 * 2.0f) + v0",
    }
    assert rounded[name] in text, text


@pytest.mark.parametrize("name", LANGUAGES)
def test_constants_and_bits(name: str) -> None:
    x, words = (Tensor.empty(8, dtype=dtypes.float16), Tensor.empty(8, dtype=dtypes.int16))
    for value in (x.bitcast(dtypes.int16), words.bitcast(dtypes.float16)):
        assert text_of(explore(value).kernels[-1].ast, LANGUAGES[name](), conversions=BOTH)
    filled = Tensor.full((8,), float("-inf"), dtype=dtypes.float16).contiguous()
    text = text_of(explore(filled).kernels[-1].ast, LANGUAGES[name](), conversions=BOTH)
    assert ("(0xff800000)" if name in ("CUDA", "HIP") else "-INFINITY") in text, text


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def layer_norm(x: Array) -> Array:
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)


CASES: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Array], Array]]] = {
    "elementwise": (lambda x: (x * 3).relu(), lambda x: np.maximum(x * 3, 0)),
    "sum": (lambda x: x.sum(1), lambda x: x.sum(1)),
    "softmax": (lambda x: x.softmax(1), softmax),
    "layer norm": (lambda x: x.layernorm(), layer_norm),
    "matmul": (lambda x: x @ x.T, lambda x: x @ x.T),
    "transposed": (lambda x: x.T.contiguous(), lambda x: x.T),
    "padded": (lambda x: x.pad(((1, 2), (0, 3))), lambda x: np.pad(x, ((1, 2), (0, 3)))),
}  # fmt: skip


@by_rows("machine", MACHINES)
@by_rows("dtype", BOTH, ids=str)
@by_rows("name", CASES)
def test_each_machine_computes_what_numpy_does(name: str, dtype: DType, machine: str) -> None:
    """In the emulator, at sizes that no vector and no tile divides."""
    ours, theirs = CASES[name]
    draws = np.random.default_rng(3).normal(size=(13, 37)).astype(dtype.numpy)
    want = theirs(draws.astype(np.float32))
    value = ours(Tensor(draws).realize())
    kernel: RunnableKernel = explore(value, device=machine).kernels[-1]
    for opts in ((), heuristic(kernel.ast, Device[machine].target)[1]):
        trace = emulate(kernel.apply(*opts))
        assert not trace.findings
        numbers = trace.outputs[0].view(dtype.numpy).astype(np.float32)
        near = float(np.abs(want).max()) * 2.0**-dtype.fraction_bits
        np.testing.assert_allclose(numbers.reshape(want.shape), want, atol=near)


@pytest.mark.parametrize("machine", MACHINES)
def test_machines_say_which_dtypes_they_convert(machine: str) -> None:
    conversions = Device[machine].target.conversions
    assert set(conversions) == set(BOTH[:1] if "OPENCL" in machine else BOTH)
    assert ml_dtypes.bfloat16 == dtypes.bfloat16.numpy


def test_opencl_keeps_the_bits_of_what_it_copies() -> None:
    """Its drivers may make another NaN of a NaN where they convert it."""
    x = Tensor.empty(64, 32, dtype=dtypes.float16)
    target = Device["OPENCL:Iris Xe"].target
    as_read = {"computed": x * 2, "copied": x.T.contiguous(), "bits": x.bitcast(dtypes.int16)}
    for name, value in as_read.items():
        built = stages(explore(value).kernels[-1].ast, target, "linear")
        text = render(OpenCLC(), built.lowered, built.linear, target, built.tree).text
        assert ("half *p1" in text) is (name == "computed"), text
