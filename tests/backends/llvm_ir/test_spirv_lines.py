"""SPIR-V and LLVM IR line by line: what an instruction became says the same."""

from __future__ import annotations

import os
import re
from dataclasses import replace

import pytest

from bench.languages.kernels import EXPRESSIONS, kernels_of
from workbench import Tensor, explore
from workbench.backends.compilers import compilers as llvm
from workbench.backends.compilers.child import in_child
from workbench.backends.device import Device
from workbench.backends.llvm_ir.gpu_code import (
    compile_ir,
    gpu_source,
    read_spirv,
    repeats_ids,
    with_marks,
    without_marks,
)
from workbench.backends.llvm_ir.gpu_render import render_gpu
from workbench.backends.llvm_ir.gpu_targets import SPIRV
from workbench.pipeline import stages

MACHINE = "OPENCL:Iris Xe"
ISA = llvm.Isa(SPIRV.triple)
SAME = {
    "OpStore": "store ", "OpBranch": "br label", "OpBranchConditional": "br i1",
    "OpControlBarrier": "@_Z7barrierj", "OpReturn": "ret void", "OpFAdd": " fadd ",
    "OpFMul": " fmul ", "OpIMul": " mul ", "OpSelect": " select ",
    "OpVectorShuffle": " shufflevector ",
}  # fmt: skip
"""Instructions of the one, and of the other."""
_ROW = re.compile(r"^\s*(?:(%\d+) = )?(Op\w+)(.*)$")


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_instruction_is_what_its_line_says(name: str) -> None:
    """And all that must have a line have one; a store stores what its line stores."""
    for _, kernel in kernels_of(name, "OPENCL", "Iris Xe"):
        linear = stages(kernel.ast, MACHINE, "linear").linear
        ir = render_gpu(SPIRV, linear, Device[MACHINE].target)
        code = compile_ir(SPIRV, "", ir)
        lines = ir.text.split("\n")
        defined = {
            line.split()[0]: number
            for number, line in enumerate(lines, 1)
            if re.match(r"\s*%\S+ = ", line)
        }
        of_result: dict[str, int | None] = {}
        for line in code.lines:
            match = _ROW.match(line.text)
            assert match is not None, line.text
            result, kind, rest = match.groups()
            of_result[result] = line.source_line
            if kind not in SAME:
                continue
            assert line.source_line, (line.text, name)
            words = lines[line.source_line - 1]
            if kind in ("OpIMul", "OpFAdd", "OpFMul", "OpSelect"):
                assert SAME[kind] in words or "phi" in words, (line.text, words)
            else:
                assert SAME[kind] in words, (line.text, words)
            if kind == "OpStore":
                value = re.search(r"store .*? (%[\w.]+), ptr", words)
                made = of_result.get(rest.split()[1])
                if value and made and value[1] in defined:
                    assert made == defined[value[1]], (line.text, words)


def test_ids_are_each_of_one_result() -> None:
    """Whatever its process has compiled before."""
    texts = []
    for name in ("matmul", "gather", "cumsum"):
        for _, kernel in kernels_of(name, "OPENCL", "Iris Xe"):
            linear = stages(kernel.ast, MACHINE, "linear").linear
            texts.append(render_gpu(SPIRV, linear, Device[MACHINE].target))
    for number, source in enumerate(texts * 3):
        words = f"; {os.getpid()} {number}\n{source.text}"  # no code is on disk
        code = compile_ir(SPIRV, "", replace(source, text=words))
        assert not repeats_ids(code.text)
    assert repeats_ids("%1 = OpLabel\n %2 = OpLabel\n %1 = OpLabel")


def test_marks_change_no_code() -> None:
    kernel = explore((Tensor.empty(64, 48) @ Tensor.empty(48, 80)).softmax(1)).kernels[0]
    linear = stages(kernel.ast, MACHINE, "linear").linear
    ir = render_gpu(SPIRV, linear, Device[MACHINE].target).text
    plain, marked = (in_child(llvm.assembly_of, text, ISA) for text in (ir, with_marks(ir).text))
    assert "UserSemantic" in marked
    kinds = [
        [m[2] for line in text.split("\n") if (m := _ROW.match(line))]
        for text in (plain, without_marks(marked))
    ]
    assert kinds[0] == kinds[1]


def test_blocks_that_have_other_instructions_say_no_line() -> None:
    """A store that became two has no line, and what stands before it neither."""
    spirv = "\n".join(
        [
            'OpName %1 "entry"', 'OpDecorate %3 UserSemantic "line 4"', "%1 = OpLabel",
            "%2 = OpBitcast %9 %8", "%3 = OpLoad %9 %2", "%4 = OpBitcast %9 %8",
            "OpStore %4 %3", "OpStore %4 %3", "OpReturn",
        ]
    )  # fmt: skip
    ir = """define void @k() {
entry:
  ; a comment
  %a = load i32, ptr null
  store i32 %a, ptr null
  ret void
}
"""
    code = read_spirv(spirv, with_marks(ir))
    numbers = [line.source_line for line in code.lines]
    assert numbers == [None, None, 4, 4, None, None, None, 6]


def test_as_a_language_each_line_has_its_nodes() -> None:
    kernel = explore(Tensor.empty(64, 64) * 2 + 1, device=MACHINE).kernels[0]
    linear = stages(kernel.ast, MACHINE, "linear").linear
    source = gpu_source(SPIRV, "", linear, Device[MACHINE].target)
    lines = source.text.split("\n")
    ops = {
        word: {
            linear[place].op.name
            for line, places in zip(lines, source.lines, strict=True)
            for place in places
            if f"Op{word} " in line
        }
        for word in ("Store", "ExtInst", "Capability")
    }
    assert ops == {"Store": {"STORE"}, "ExtInst": set(), "Capability": set()}
