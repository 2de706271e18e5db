"""Machine code of a linear program for a GPU, by LLVM: its lines, and the options that AMD's GPUs
need.

Sections: Line numbers in SPIR-V, since LLVM writes no useful debug locations into it; Machine
code of a linear program for a GPU, by LLVM.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from workbench.backends.compilers import compilers
from workbench.backends.compilers.child import end_child, in_child
from workbench.backends.compilers.compilers import MachineCode, ResourceUse, code_of
from workbench.backends.llvm_ir.gpu_render import render_gpu
from workbench.backends.llvm_ir.gpu_targets import AMDGCN, PTX, SPIRV, GpuTarget
from workbench.backends.llvm_ir.loops import free_metadata, with_locations
from workbench.backends.native.program import AsmLine, readable
from workbench.backends.program.text import Source
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# Line numbers in SPIR-V, since LLVM writes no useful debug locations into it.
#
# So the result of an instruction of LLVM IR gets the decoration UserSemantic (SPIR-V 1.6,
# "Decoration"), whose text is a line; LLVM keeps it, and it changes no code. Instructions that
# store, jump or wait have no result. Their block keeps its name in SPIR-V, and its instructions of
# one kind are as many as in LLVM IR, in the same order. A result without a line gets the line of
# the next instruction, which it prepares.

_USER_SEMANTIC = 5635
_MARK = re.compile(r'^\s*OpDecorate (%\d+) UserSemantic "line (\d+)"$')
_NAME = re.compile(r'^\s*OpName (%\d+) "(.*)"$')
_ROW = re.compile(r"^\s*(?:(%\d+) = )?(Op\w+)")
_BOUNDARIES = frozenset({"OpFunction", "OpFunctionParameter", "OpLabel"})
_RESULT = re.compile(r"%\S+ = ")
_STATEMENTS = {
    "OpStore": re.compile(r"store "),
    "OpBranch": re.compile(r"br label "),
    "OpBranchConditional": re.compile(r"br i1 "),
    "OpControlBarrier": re.compile(r".*call .*@_Z7barrierj\("),
    "OpReturn": re.compile(r"ret void"),
}
"""Instructions without a result, and their beginnings in LLVM IR."""


class BlockStatements(NamedTuple):
    """The key of the instructions of one kind in a block."""

    block: str
    kind: str


class MarkedIr(NamedTuple):
    """LLVM IR with decorations, and the lines of its instructions without a result."""

    text: str
    statements: Mapping[BlockStatements, Sequence[int]]


def with_marks(text: str, line_of: Callable[[int], int] | None = None) -> MarkedIr:
    """Return LLVM IR with decorations for SPIR-V: the line of each instruction in `text`, from 1,
    or what `line_of` returns for that line (0: none)."""
    free = free_metadata(text)
    statements: dict[BlockStatements, list[int]] = {}
    lines: list[str] = []
    numbers: set[int] = set()
    for place, (line, block, words) in enumerate(_spirv_instructions(text), 1):
        number = line_of(place) if line_of else place
        if _RESULT.match(words) and number:
            numbers.add(number)
            code = line.partition(";")[0].rstrip()
            line = f"{code}, !spirv.Decorations !{free + 2 * number}"
        for kind, pattern in _STATEMENTS.items():
            if pattern.match(words):
                statements.setdefault(BlockStatements(block, kind), []).append(number)
        lines.append(line)
    for number in sorted(numbers):
        mark, words = free + 2 * number, f'i32 {_USER_SEMANTIC}, !"line {number}"'
        lines += [f"!{mark} = !{{!{mark + 1}}}", f"!{mark + 1} = !{{{words}}}"]
    return MarkedIr("\n".join([*lines, ""]), statements)


def _spirv_instructions(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield each line, its block, and its words; the words are "" unless it is an instruction."""
    block = ""
    is_inside = False
    for line in text.split("\n"):
        words = line.partition(";")[0].strip()
        if is_inside and words.endswith(":"):
            block, words = words[:-1].strip('"'), ""
        is_inside = is_inside and words != "}"
        yield line, block, words if is_inside else ""
        is_inside = is_inside or line.startswith("define ")


def repeats_ids(text: str) -> bool:
    """Whether two results in SPIR-V have one id, which is an error."""
    rows = map(_ROW.match, text.split("\n"))
    results = [row[1] for row in rows if row and row[1]]
    return len(set(results)) < len(results)


def without_marks(text: str) -> str:
    """Return SPIR-V without the decorations of lines."""
    return "\n".join(line for line in text.split("\n") if not _MARK.match(line))


def lines_of(text: str, statements: Mapping[BlockStatements, Sequence[int]]) -> list[AsmLine]:
    """Return the lines of SPIR-V, without the decorations, each with its line of the source.
    `statements` has the lines of instructions without a result in the LLVM IR."""
    marks: dict[str, int] = {}
    for match in filter(None, map(_MARK.match, text.split("\n"))):
        marks.setdefault(match[1], int(match[2]))  # a copied instruction has a second mark
    code = [x for x in without_marks(text).split("\n") if x.partition(";")[0].strip()]
    rows = list(_rows(code))
    counts = Counter(row.statements for row in rows if not row.result)
    rest = {
        key: iter(numbers) for key, numbers in statements.items() if counts[key] == len(numbers)
    }
    numbers = [
        marks.get(row.result, 0) if row.result else next(rest.get(row.statements, iter(())), 0)
        for row in rows
    ]
    following = 0
    for place, row in reversed([*enumerate(rows)]):
        if row.statements.kind in _BOUNDARIES:
            following = 0
        elif row.result:
            numbers[place] = numbers[place] or following
        following = numbers[place]
    return [
        AsmLine(line.replace("\t", "  "), number or None)
        for line, number in zip(code, numbers, strict=True)
    ]


class _SpirvLine(NamedTuple):
    """A line of SPIR-V: the id of its result ("" for none), its block and its instruction."""

    result: str
    statements: BlockStatements


def _rows(code: Sequence[str]) -> Iterator[_SpirvLine]:
    names = {m[1]: m[2] for line in code if (m := _NAME.match(line))}
    block = ""
    for line in code:
        match = _ROW.match(line)
        result, kind = (match[1] or "", match[2]) if match else ("", "")
        if kind == "OpLabel":
            block = names.get(result, "")
        yield _SpirvLine(result, BlockStatements(block, kind))


# --------------------------------------------------------------------------------------------------
# Machine code of a linear program for a GPU, by LLVM.

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
"""The directive that declares a kernel, in assembly for AMD's GPUs and in PTX."""
_ENTRY_POINT = re.compile(r'^\s*OpEntryPoint Kernel %\w+ "([^"]+)"', re.MULTILINE)


def gpu_source(gpu: GpuTarget, arch: str, linear: tuple[UOp, ...], target: Target) -> Source:
    """Return LLVM's code for a GPU as a Source, for readers.

    Errors: CompileError for an operation that LLVM lacks there.
    """
    ir = render_gpu(gpu, linear, target)
    code = compile_ir(gpu, arch, ir)
    positions = [ir.lines[x.source_line - 1] if x.source_line else () for x in code.lines]
    text = "\n".join([line.text for line in code.lines])
    return replace(ir, language=gpu.language.name, text=text, lines=tuple(positions), linear=linear)


def gpu_machine_code(gpu: GpuTarget, arch: str, source: Source, target: Target) -> MachineCode:
    """Return LLVM's machine code of a source's linear program; its lines are those of the source.

    Errors: CompileError for an operation that LLVM lacks there, and for an edited text, which has
    no linear program.
    """
    if not source.linear:
        because = "the text was edited, and only a program is compiled by LLVM"
        raise CompileError("llvm", because)
    ir = render_gpu(gpu, source.linear, target)
    numbers = _same_lines(ir, source)
    return compile_ir(gpu, arch, ir, lambda number: numbers.get(number, 0))


def _same_lines(ir: Source, source: Source) -> dict[int, int]:
    """Return, for each line of `ir`, the line of `source` that computes the same."""
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
    """Return LLVM's machine code of LLVM IR for a GPU. Its lines are those of the LLVM IR, or what
    `line_of` returns for them (0: none).

    Errors: CompileError.
    """
    isa = compilers.Isa(gpu.triple, arch if gpu.has_processors else "", gpu.features)

    marked = with_marks(ir.text, line_of) if gpu is SPIRV else None
    text = marked.text if marked else _with_lines(gpu, ir.text, line_of)

    def compile_text() -> MachineCode:
        try:
            written = in_child(compilers.assembly_of, text, isa, optimise=gpu is not SPIRV)
            if gpu is SPIRV and repeats_ids(written):
                # LLVM 22 repeats ids of what its process compiled before: use a new process
                end_child()
                written = in_child(compilers.assembly_of, text, isa)
        except CompileError as error:
            error.last_good = ir.text
            raise
        return read_spirv(written, marked) if marked else read_gpu(gpu, arch, written)

    return code_of(compile_text, text, *isa, compilers.package_version())


def _with_lines(gpu: GpuTarget, text: str, line_of: Callable[[int], int] | None) -> str:
    """Return LLVM IR with debug locations; in PTX only as directives, which change nothing else."""
    kind = "DebugDirectivesOnly" if gpu is PTX else "LineTablesOnly"
    return with_locations(text, line_of).replace("LineTablesOnly", kind)


def read_gpu(gpu: GpuTarget, arch: str, text: str) -> MachineCode:
    """Return LLVM's assembly for a GPU as MachineCode; for AMD's GPUs with the resources."""
    lines = tuple(_instructions(readable(_without_ends(text))))
    use = amd_resources(text) if gpu is AMDGCN else ResourceUse()
    name, compiler = f"{gpu.name} for {arch}", f"LLVM {compilers.package_version()}"
    kernels = tuple(_KERNEL.findall(text))
    return MachineCode(gpu.family, name, compiler, text, lines, kernels, use)


def read_spirv(text: str, marked: MarkedIr) -> MachineCode:
    """Return the SPIR-V of LLVM IR with marks as MachineCode."""
    lines = tuple(lines_of(text, marked.statements))
    compiler = f"LLVM {compilers.package_version()}"
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
    """Return the resources of a kernel for an AMD GPU, from LLVM's metadata after its code."""
    fields = {name: int(value) for name, value in _AMD_FIELD.findall(text)}
    use = {ours: fields.get(theirs, 0) for theirs, ours in _AMD_KEYS.items()}
    occupancy = _OCCUPANCY.search(text)
    return ResourceUse(
        **use,
        spill_bytes=_REGISTER_BYTES * fields.get("vgpr_spill_count", 0),
        occupancy=int(occupancy[1]) if occupancy else None,
    )
