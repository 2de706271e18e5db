"""Machine code of a linear program for a GPU, by LLVM: its lines, and the options that AMD's GPUs
need.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from workbench.backends.compilers import llvm
from workbench.backends.compilers.child import end_child, in_child
from workbench.backends.compilers.code_cache import code_of
from workbench.backends.compilers.machine_code import MachineCode, ResourceUse
from workbench.backends.llvm_ir.gpu.render import render_gpu
from workbench.backends.llvm_ir.gpu.spirv_lines import (
    MarkedIr,
    lines_of,
    repeats_ids,
    with_marks,
    without_marks,
)
from workbench.backends.llvm_ir.gpu.targets import AMDGCN, PTX, SPIRV, GpuTarget
from workbench.backends.llvm_ir.locations import with_locations
from workbench.backends.native.assembly import AsmLine, readable
from workbench.backends.program.source import Source
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.ir.node.uop import UOp

_AMD_KEYS = {
    "vgpr_count": "registers",
    "sgpr_count": "scalar_registers",
    "group_segment_fixed_size": "shared_bytes",
    "private_segment_fixed_size": "stack_bytes",
}
_AMD_FIELD = re.compile(r"^\s+\.(\w+):\s+(\d+)$", re.MULTILINE)
_OCCUPANCY = re.compile(r"^; Occupancy: (\d+)", re.MULTILINE)
_REGISTER_BYTES = 4
_KERNEL = re.compile(r"^\s*\.(?:amdhsa_kernel|visible \.entry) (\w+)", re.MULTILINE)
"""How assembly says that a function is a kernel: AMDGCN's, and PTX."""
_ENTRY_POINT = re.compile(r'^\s*OpEntryPoint Kernel %\w+ "([^"]+)"', re.MULTILINE)


def gpu_source(gpu: GpuTarget, arch: str, linear: tuple[UOp, ...], target: Target) -> Source:
    """Return what LLVM writes for a GPU, as a source to read.

    Errors: CompileError for an operation that LLVM lacks there.
    """
    ir = render_gpu(gpu, linear, target)
    code = compile_ir(gpu, arch, ir)
    positions = [ir.lines[x.source_line - 1] if x.source_line else () for x in code.lines]
    text = "\n".join([line.text for line in code.lines])
    return replace(ir, language=gpu.language.name, text=text, lines=tuple(positions), linear=linear)


def gpu_machine_code(gpu: GpuTarget, arch: str, source: Source, target: Target) -> MachineCode:
    """Return the machine code of the program that a source is of, by LLVM; its lines are those of
    the source.

    Errors: CompileError for an operation that LLVM lacks there, and for a text that a user wrote.
    """
    if not source.linear:
        because = "the text was edited, and only a program is compiled by LLVM"
        raise CompileError("llvm", because)
    ir = render_gpu(gpu, source.linear, target)
    numbers = _same_lines(ir, source)
    return compile_ir(gpu, arch, ir, lambda number: numbers.get(number, 0))


def _same_lines(ir: Source, source: Source) -> dict[int, int]:
    """Return the line of a source that computes the same as each line of another one."""
    first: dict[int, int] = {}
    for number, places in enumerate(source.lines, 1):
        for place in places:
            first.setdefault(place, number)
    numbers: dict[int, int] = {}
    for number, places in enumerate(ir.lines, 1):
        lines = [first[place] for place in places if place in first]
        if lines:
            numbers[number] = lines[0]
    return numbers


def compile_ir(
    gpu: GpuTarget, arch: str, ir: Source, line_of: Callable[[int], int] | None = None
) -> MachineCode:
    """Return what LLVM makes of LLVM IR for a GPU; its lines are those of the LLVM IR, or what
    `line_of` makes of them (0: none).

    Errors: CompileError.
    """
    isa = llvm.Isa(gpu.triple, arch if gpu.has_processors else "", gpu.features)

    marked = with_marks(ir.text, line_of) if gpu is SPIRV else None
    text = marked.text if marked else _with_lines(gpu, ir.text, line_of)

    def compile_text() -> MachineCode:
        try:
            written = in_child(llvm.assembly_of, text, isa, optimise=gpu is not SPIRV)
            if gpu is SPIRV and repeats_ids(written):
                # LLVM 22 has ids of blocks from what this process compiled before
                end_child()
                written = in_child(llvm.assembly_of, text, isa)
        except CompileError as error:
            error.last_good = ir.text
            raise
        return read_spirv(written, marked) if marked else read_gpu(gpu, arch, written)

    return code_of(compile_text, text, *isa, llvm.package_version())


def _with_lines(gpu: GpuTarget, text: str, line_of: Callable[[int], int] | None) -> str:
    """Return LLVM IR with the lines of its instructions: in PTX only as directives, which change no
    more."""
    kind = "DebugDirectivesOnly" if gpu is PTX else "LineTablesOnly"
    return with_locations(text, line_of).replace("LineTablesOnly", kind)


def read_gpu(gpu: GpuTarget, arch: str, text: str) -> MachineCode:
    """Return what LLVM wrote for a GPU: instructions, with what the kernel takes."""
    lines = tuple(_instructions(readable(_without_ends(text))))
    use = amd_resources(text) if gpu is AMDGCN else ResourceUse()
    name, compiler = f"{gpu.name} for {arch}", f"LLVM {llvm.package_version()}"
    kernels = tuple(_KERNEL.findall(text))
    return MachineCode(gpu.family, name, compiler, text, lines, kernels, use)


def read_spirv(text: str, marked: MarkedIr) -> MachineCode:
    """Return the SPIR-V that LLVM wrote of LLVM IR with marks."""
    lines = tuple(lines_of(text, marked.statements))
    compiler = f"LLVM {llvm.package_version()}"
    plain = without_marks(text)
    kernels = tuple(_ENTRY_POINT.findall(text))
    return MachineCode(SPIRV.family, SPIRV.name, compiler, plain, lines, kernels)


def _without_ends(text: str) -> str:
    """Return PTX without the semicolons, and without labels that only debuggers use."""
    lines = (line.rstrip().removesuffix(";") for line in text.splitlines())
    lines_of_code = (line for line in lines if not line.startswith(("$L__tmp", "$L__func_")))
    return "\n".join(lines_of_code)


def _instructions(lines: Sequence[AsmLine]) -> Iterator[AsmLine]:
    for line in lines:
        if line.text.strip() not in ("(", ")", "{", "}"):
            yield line


def amd_resources(text: str) -> ResourceUse:
    """Return what LLVM says that a kernel for an AMD GPU takes: the metadata after its code."""
    fields = {name: int(value) for name, value in _AMD_FIELD.findall(text)}
    use = {ours: fields.get(theirs, 0) for theirs, ours in _AMD_KEYS.items()}
    occupancy = _OCCUPANCY.search(text)
    return ResourceUse(
        **use,
        spill_bytes=_REGISTER_BYTES * fields.get("vgpr_spill_count", 0),
        occupancy=int(occupancy[1]) if occupancy else None,
    )
