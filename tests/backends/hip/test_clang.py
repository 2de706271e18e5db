"""HIP for GPUs that are not here: machine code by clang, its lines, what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.backends.gpu.checks import default_source
from workbench import Tensor, dtypes
from workbench.backends.compilers.compilers import Clang, clang_for, how_to_get_clang
from workbench.backends.device import Device
from workbench.backends.hip import hiprtc as hip_compile
from workbench.backends.hip.hiprtc import compile_source
from workbench.backends.hip.hiprtc import compile_with_clang as compile_text
from workbench.backends.program.text import Source
from workbench.base.dtypes import DType
from workbench.base.errors import CompileError, DeviceError

NAME = "HIP:MI300X"
CASES: dict[str, Callable[[Tensor], Tensor]] = {
    "elementwise": lambda x: (x * 2 + x).relu(),
    "softmax": lambda x: x.softmax(1),
    "matmul": lambda x: x @ x.T,
    "transposed": lambda x: x.T.contiguous(),
    "bits": lambda x: x.bitcast(dtypes.int16),
}


def source_of(tensor: Tensor) -> Source:
    return default_source(tensor, NAME)


@pytest.fixture
def clang() -> Clang:
    compiler = clang_for("amdgcn", "gfx942")
    if compiler is None:
        pytest.skip(f"a clang that knows AMD's GPUs is not here: {how_to_get_clang()}")
    return compiler


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_halves_compile(name: str, dtype: DType, clang: Clang) -> None:
    source = source_of(CASES[name](Tensor.empty(64, 256, dtype=dtype)))
    code = compile_text(clang, source.text, "gfx942")
    if dtype is dtypes.float16 and name in ("softmax", "matmul"):
        assert any("v_cvt_f16_f32" in line.text for line in code.lines)
    if name == "elementwise":
        assert len(code.lines) < 40, code.text


def test_machine_code_has_the_lines_of_the_text(clang: Clang) -> None:
    """And none of the functions that stand before it."""
    source = source_of(Tensor.empty(64, 48) @ Tensor.empty(48, 80))
    lines = source.text.split("\n")
    code = compile_source(source, Device[NAME].target)
    assert code.isa == "AMDGCN for gfx942" and code.compiler.startswith("clang ")
    assert code.use.registers and code.use.shared_bytes and not code.use.spill_bytes
    of = {
        word: [lines[(x.source_line or 0) - 1] for x in code.lines if x.text.split()[0] == word]
        for word in ("s_barrier", "ds_write_b128", "v_mfma_f32_16x16x4_f32", "s_endpgm")
    }
    assert of["s_barrier"] and {x.strip() for x in of["s_barrier"]} == {"__syncthreads();"}
    assert of["ds_write_b128"] and all("float4 *)&" in x for x in of["ds_write_b128"])
    assert of["v_mfma_f32_16x16x4_f32"] and all(
        "= wmma_16x16x4" in x for x in of["v_mfma_f32_16x16x4_f32"]
    )
    numbers = [x.source_line for x in code.lines if not x.is_label]
    assert all(number <= len(lines) for number in numbers if number)
    assert sum(number is None for number in numbers) <= 0.15 * len(numbers), (
        "those that several lines share"
    )


TEXT = """extern "C" __global__ void k(float *a, const float *b, double *c) {
  __shared__ float tile[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = %s;
  __syncthreads();
  a[i] = tile[63 - threadIdx.x];
}
"""


@pytest.mark.parametrize(
    ("value", "instruction"),
    [
        ("exp2f(b[i])", "v_exp_f32"), ("__logf(b[i])", ""), ("sqrtf(b[i])", "v_sqrt_f32"),
        ("sinf(b[i])", "v_sin_f32"), ("fmaxf(b[i], 0.0f)", "v_max_f32"),
        ("fmaf(b[i], b[i], 1.0f)", "v_fma"), ("min(b[i], 2.0f)", "v_min_f32"),
        ("(float)fmod(c[i], 3.0)", "v_cvt_f32_f64"), ("__int_as_float(i)", "ds_write"),
        ("(float)exp2(c[i])", "s_swappc_b64"), ("__shfl_xor(b[i], 16)", "ds_bpermute_b32"),
        ("(float)__shfl_xor(c[i], 1)", "ds_bpermute_b32"),
        ("make_float4(1, 2, 3, 4).z", "ds_write"),
    ],
)  # fmt: skip
def test_words_of_the_language_are_known(value: str, instruction: str, clang: Clang) -> None:
    """As the header of ROCm has them; what it lacks as well is an error at its line."""
    text = TEXT % value
    if not instruction:
        with pytest.raises(CompileError, match="__logf") as error:
            compile_text(clang, text, "gfx1100")
        assert error.value.line == 4
        return
    for arch in ("gfx942", "gfx1100"):
        code = compile_text(clang, text, arch)
        found = [x for x in code.lines if instruction in x.text.replace("ds_store", "ds_write")]
        assert found, code.text
        assert 4 in {x.source_line for x in found}


def test_a_text_without_a_kernel_has_none(clang: Clang) -> None:
    for text in ("", "__device__ float half_of(float x) { return x / 2; }"):
        assert compile_text(clang, text, "gfx942").kernels == ()


def test_without_clang_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hip_compile, "clang_for", lambda machine, processor="": None)
    source = source_of(Tensor.empty(64) * 2)
    code = compile_source(source, Device[NAME].target)
    assert code.lines and how_to_get_clang() in code.compiler
    with pytest.raises(DeviceError) as missing:
        compile_source(replace(source, text="edited", linear=()), Device[NAME].target)
    assert missing.value.hint == how_to_get_clang()
