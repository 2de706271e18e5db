"""The machine code of processors that are not here, from LLVM IR."""

from __future__ import annotations

import re

import pytest

from workbench import Opt, OptOps, Tensor, explore
from workbench.backends.compilers.compilers import Isa, MachineCode
from workbench.backends.device import Device
from workbench.backends.llvm.llvm_device import processor_machine_code
from workbench.backends.llvm_ir.render import render
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.pipeline import stages

LINUX = "unknown-linux-gnu"
MACHINES: dict[str, tuple[Isa, int, str]] = {
    "NEON": (Isa(f"aarch64-{LINUX}", "cortex-a76"), 16, r"fmla\s+v\d+\.4s"),
    "SVE": (Isa(f"aarch64-{LINUX}", "neoverse-v1"), 32, r"fm(la|ad)\s+z\d+\.s"),
    "RVV": (Isa(f"riscv64-{LINUX}", "spacemit-x60"), 32, r"vfm(acc|add)\.v[fv]"),
    "AVX-512": (Isa(f"x86_64-{LINUX}", "sapphirerapids"), 64, r"vfmadd.*%zmm"),
    "SIMD128": (Isa("wasm32-unknown-unknown", "", "+simd128"), 16, r"f32x4\.mul"),
}
"""The machine, the bytes of its vectors, and its multiply-add."""


def compiled(name: str) -> tuple[str, MachineCode]:
    isa, vector_bytes, *_ = MACHINES[name]
    target = Target("LLVM", vector_bytes=vector_bytes, vector_registers=32)
    kernel = explore(Tensor.empty(64, 64) @ Tensor.empty(64, 64)).kernels[0]
    kernel = kernel.apply(Opt(OptOps.UPCAST, "g1", vector_bytes // 4))
    text = render(stages(kernel.ast, target, "linear").linear, target).text
    return text, processor_machine_code(text, isa, vector_bytes)


@pytest.mark.parametrize("name", MACHINES)
def test_vectors_are_the_machines_and_lines_those_of_the_source(name: str) -> None:
    *_, multiply = MACHINES[name]
    text, code = compiled(name)
    lines = text.split("\n")
    products = [x for x in code.lines if re.search(rf"^\s+{multiply}", x.text)]
    assert products, code.text
    assert all("fmuladd" in lines[(x.source_line or 0) - 1] for x in products)
    assert code.about.startswith(code.family)


def test_what_is_not_llvm_ir_is_an_error_with_its_line() -> None:
    isa, vector_bytes, *_ = MACHINES["NEON"]
    with pytest.raises(CompileError, match="expected instruction opcode") as error:
        processor_machine_code("define void @k() {\n  nothing\n}\n", isa, vector_bytes)
    assert error.value.line == 2


def test_what_llvm_aborts_at_costs_an_error() -> None:
    text = "define void @k() {\n  call void @llvm.amdgcn.s.barrier()\n  ret void\n}\n"
    with pytest.raises(CompileError, match="ended its process"):
        processor_machine_code(text, MACHINES["NEON"][0], 16)
    assert compiled("NEON")[1].lines


@pytest.mark.parametrize("machine", [*Device["LLVM"].machines, *Device["HIP"].machines])
def test_each_machine_of_the_table_has_machine_code(machine: str) -> None:
    device = "LLVM" if machine in Device["LLVM"].machines else "HIP"
    a, b = Tensor.empty(64, 64), Tensor.empty(64, 64)
    kernel = explore(a @ b, device=device, target=machine).kernels[0].optimized()
    code = kernel.compile(f"{device}:{machine}").machine_code
    assert code is not None and len(code.lines) > 20
    hardware = Device[f"{device}:{machine}"].target.hardware
    assert hardware is not None and hardware.arch in code.about
    linked = [line for line in code.lines if line.source_line]
    assert len(linked) > len(code.lines) / 2


def test_default_opts_of_a_machine_use_its_vectors_of_any_length() -> None:
    product = Tensor.empty(64, 64) @ Tensor.empty(64, 64)
    kernel = explore(product, device="LLVM", target="Graviton3").kernels[0].optimized()
    *_, multiply = MACHINES["SVE"]
    assert len(re.findall(multiply, kernel.compile().assembly or "")) > 8


def test_a_function_that_is_called_is_no_kernel() -> None:
    device = Device["LLVM:Graviton4"]
    kernel = explore(Tensor.empty(8) + 1, device=device.name).kernels[0]
    source = stages(kernel.ast, device.name, upto="source").source
    plus = "define float @plus(float %x) {\n  %y = fadd float %x, 1.0\n  ret float %y\n}\n"
    text = re.sub(r"fadd .*float (%\w+), 1\.0", r"call float @plus(float \1)", source.text)
    assert text != source.text
    program = device.load(source.edited(plus + text))
    assert program.machine_code.kernels == (source.name,)  # type: ignore[attr-defined]
