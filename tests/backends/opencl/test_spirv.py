"""OpenCL C for GPUs that are not here: SPIR-V by clang, its lines, what is wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.backends.gpu.checks import default_source
from workbench import Tensor
from workbench.backends.compilers.compilers import Clang, clang_for, how_to_get_clang
from workbench.backends.device import Device
from workbench.backends.opencl import opencl_code as spirv
from workbench.backends.opencl.opencl_code import compile_source, compile_text
from workbench.backends.program.text import Source
from workbench.base.errors import CompileError, DeviceError

NAME = "OPENCL:Iris Xe"
TEXT = """\
static float twice(float a) {
  return a * 2.0f;
}
__kernel void k(__global float *a, __global const float *b, int n) {
  __local float tile[64];
  int i = get_global_id(0);
  tile[get_local_id(0)] = twice(b[i]);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i < n)
    a[i] = VALUE + tile[63 - get_local_id(0)];
}
"""


def source_of(tensor: Tensor) -> Source:
    return default_source(tensor, NAME)


@pytest.fixture
def clang() -> Clang:
    compiler = clang_for("spirv64")
    if compiler is None:
        pytest.skip(f"a clang that writes SPIR-V is not here: {how_to_get_clang()}")
    return compiler


@pytest.mark.parametrize(
    ("value", "instruction"),
    [
        ("exp2(b[i])", "exp2"), ("fmod(b[i], 3.0f)", "fmod"), ("INFINITY", "OpFAdd"),
        ("vload4(0, b).y", "vloadn"), ("vload_half(i, (__global const half *)b)", "vload_half"),
        ("as_float(i)", "OpBitcast"), ("select(0.0f, b[i], i)", "select"),
        ("intel_sub_group_shuffle_xor(b[i], 4u)", "OpSubgroupShuffleXorINTEL"),
        ("mad(b[i], 2.0f, 1.0f)", "mad"),
        ("(float4)(1.0f, 2.0f, 3.0f, b[i]).w", "OpLoad"),
    ],
)  # fmt: skip
def test_words_of_the_language_are_known(value: str, instruction: str, clang: Clang) -> None:
    code = compile_text(clang, TEXT.replace("VALUE", value))
    found = {x.source_line for x in code.lines if instruction in x.text}
    assert 10 in found, code.text
    assert code.isa == "SPIR-V" and code.compiler.startswith("clang ")
    assert code.text.count("OpFunctionEnd") == 1 and "UserSemantic" not in code.text


def test_lines_are_those_of_the_text(clang: Clang) -> None:
    """Of instructions without a result too, and in functions that the kernel calls."""
    code = compile_text(clang, TEXT.replace("VALUE", "b[i]"))
    lines = {
        word: [x.source_line for x in code.lines if f"Op{word} " in f"{x.text} "]
        for word in ("FMul", "ControlBarrier", "Store", "FAdd", "SGreaterThan", "Return")
    }
    assert lines["FMul"] == [2] and lines["ControlBarrier"] == [8]
    assert lines["Store"] == [7, 10] and lines["FAdd"] == [10]
    assert lines["SGreaterThan"] == [9] and lines["Return"] == [11]
    heads = [x for x in code.lines if x.text.split()[0] in ("OpCapability", "OpName")]
    assert heads and all(x.source_line is None for x in heads)


def test_a_rendered_text_has_its_lines(clang: Clang) -> None:
    source = source_of((Tensor.empty(64, 48) @ Tensor.empty(48, 80)).relu())
    code, lines = compile_source(source, Device[NAME].target), source.text.split("\n")
    texts = {
        word: {lines[(x.source_line or 0) - 1].strip() for x in code.lines if word in x.text}
        for word in ("OpControlBarrier", "fma", "OpStore")
    }
    assert texts["OpControlBarrier"] == {"barrier(CLK_LOCAL_MEM_FENCE);"}
    assert texts["fma"] and all(" = fma(" in text for text in texts["fma"])
    assert texts["OpStore"] and all(" = " in text for text in texts["OpStore"])


@pytest.mark.parametrize(
    ("value", "because", "line"),
    [("nothing", "undeclared identifier 'nothing'", 10), ("tile", "invalid operands", 10)],
)
def test_an_error_has_its_line(value: str, because: str, line: int, clang: Clang) -> None:
    with pytest.raises(CompileError, match=because) as error:
        compile_text(clang, TEXT.replace("VALUE", value))
    assert error.value.line == line


def test_a_text_without_a_kernel_has_none(clang: Clang) -> None:
    for text in ("", "float half_of(float x) { return x / 2; }"):
        assert compile_text(clang, text).kernels == ()


def test_without_clang_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spirv, "clang_for", lambda machine: None)
    source = source_of(Tensor.empty(64) * 2)
    code = compile_source(source, Device[NAME].target)
    assert code.isa == "SPIR-V" and how_to_get_clang() in code.compiler
    assert {x.source_line for x in code.lines} > {None}
    with pytest.raises(DeviceError) as missing:
        compile_source(replace(source, text="edited", linear=()), Device[NAME].target)
    assert missing.value.hint == how_to_get_clang()
