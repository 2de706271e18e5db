"""SASS, the machine code of NVIDIA's GPUs: CUDA C++ compiled by NVRTC, and read by nvdisasm
(NVIDIA, CUDA Binary Utilities), which also names the registers in use at each instruction.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from workbench.backends.compilers.child import run_compiler
from workbench.backends.compilers.machine_code import LiveRegisters, MachineCode, ResourceUse
from workbench.backends.compilers.refusal import refusal
from workbench.backends.cuda import nvrtc
from workbench.backends.cuda.line_table import LineStart, line_at, line_table
from workbench.backends.native.assembly import AsmLine
from workbench.base.errors import DeviceError

LIMIT_S = 40.0
_INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_SECTION = re.compile(r"^\t\.section\t([^,\s]+)")
_KERNEL = re.compile(r"^\t\.section\t\.text\.([^,\s]+)", re.MULTILINE)
_COLUMNS = re.compile(r"\s*// [|+ ].*$")
_LABEL = re.compile(r"^(\.L_x_\d+):")
_TARGET = re.compile(r"`\((\.L_x_\d+)\)")
_LIVE = re.compile(r"// \|\s*(\d+) ([^|]*)\|")
_NUMBERS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


class _Listing(NamedTuple):
    """Instructions with their offsets; a label has that of the next instruction."""

    offset: int
    line: AsmLine


def compile_to_sass(text: str, arch: str) -> MachineCode:
    """Return the SASS of CUDA C++ for an `arch` such as "sm_90".

    Errors: CompileError with the line of the text; DeviceError without NVRTC or nvdisasm.
    """
    image = nvrtc.compile_text(text, arch)
    return read_cubin(image.data, arch, f"NVRTC {nvrtc.version()}", image.log)


def read_cubin(cubin: bytes, arch: str, compiler: str, log: str) -> MachineCode:
    """Return the instructions of a cubin, and what the assembler's log says that it uses."""
    tools = nvrtc.toolkit()
    if tools is None or not tools.nvdisasm:
        because = "nvdisasm, which reads machine code, is not here"
        raise DeviceError("SASS cannot be shown", because, nvrtc.how_to_get())
    with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        text = _disassembled(tools.nvdisasm, path)
    listing = list(_listing(text, line_table(cubin)))
    live = dict(live_registers(text))
    lines = tuple(line for _, line in listing)
    in_use = tuple(None if line.is_label else live.get(at) for at, line in listing)
    isa = f"SASS for {arch}"
    plain = _without_registers(text)
    kernels = tuple(_KERNEL.findall(text))
    return MachineCode("sass", isa, compiler, plain, lines, kernels, resources(log), in_use)


def _disassembled(program: str, path: Path) -> str:
    command = [program, "-c", "-lrm", "narrow", str(path)]
    process = run_compiler("nvdisasm", command, LIMIT_S)
    if process.returncode:
        raise refusal("nvdisasm", process.stderr)
    return process.stdout


def _without_registers(text: str) -> str:
    """Return a listing without the columns of registers in use, and without their legend."""
    rows = [(line, _COLUMNS.sub("", line)) for line in text.splitlines()]
    return "\n".join([plain for line, plain in rows if plain or not line])


def _listing(text: str, table: Mapping[str, Sequence[LineStart]]) -> Iterator[_Listing]:
    """Yield labels that something jumps to, and instructions, each with the line of the source that
    it is for, by the table of its section. What pads the end is left out."""
    rows: list[_Listing] = []
    places: Sequence[LineStart] = ()
    labels: list[str] = []
    for line in text.splitlines():
        if section := _SECTION.match(line):
            places = table.get(section[1], ())
        elif label := _LABEL.match(line):
            labels.append(label[1])
        elif row := _INSTRUCTION.match(line):
            offset, words = int(row[1], 16), _TARGET.sub(r"\1", row[2])
            rows += [_Listing(offset, AsmLine(f"{name}:", None)) for name in labels]
            rows.append(_Listing(offset, AsmLine("  " + words, line_at(places, offset))))
            labels = []
    while rows and rows[-1].line.text.split()[0] == "NOP":
        del rows[-1]
    if len(rows) > 1 and _jumps_to_itself(rows[-2], rows[-1]):
        del rows[-2:]
    used = {row.line.text.split()[-1] for row in rows if not row.line.is_label}
    yield from (r for r in rows if not r.line.is_label or r.line.text[:-1] in used)


def _jumps_to_itself(label: _Listing, jump: _Listing) -> bool:
    """Whether the end is the empty loop that follows each kernel."""
    words = jump.line.text.split()
    return label.line.text == f"{words[-1]}:" and words[0] == "BRA"


def live_registers(text: str) -> Iterator[tuple[int, LiveRegisters]]:
    """Yield the offset of each instruction in nvdisasm's listing of life ranges, and the registers
    in use there."""
    for line in text.splitlines():
        row, columns = _INSTRUCTION.match(line), _LIVE.search(line)
        if row and columns:
            marks = columns[2].rstrip()
            yield int(row[1], 16), LiveRegisters(int(columns[1]), marks)


def resources(log: str) -> ResourceUse:
    """Return what the assembler's log says that a kernel uses."""
    registers, shared = _REGISTERS.search(log), _SHARED.search(log)
    numbers = _NUMBERS.search(log)
    stack, stores, loads = map(int, numbers.groups()) if numbers else (0, 0, 0)
    return ResourceUse(
        registers=int(registers[1]) if registers else None,
        shared_bytes=int(shared[1]) if shared else 0,
        stack_bytes=stack,
        spill_bytes=max(stores, loads),
    )
