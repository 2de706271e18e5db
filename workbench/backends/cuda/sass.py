"""SASS, the machine code of NVIDIA's GPUs: CUDA C++ compiled by NVRTC, and read by nvdisasm
(NVIDIA, CUDA Binary Utilities), which also lists the live registers of each instruction.

Sections: The line table of a cubin (DWARF 3, section 6.2), in which NVIDIA marks inlined calls;
SASS, the machine code of NVIDIA's GPUs.
"""

from __future__ import annotations

import re
import struct
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from workbench.backends.compilers.child import run_compiler
from workbench.backends.compilers.compilers import LiveRegisters, MachineCode, ResourceUse
from workbench.backends.compilers.refusal import refusal
from workbench.backends.cuda import nvrtc
from workbench.backends.native.program import AsmLine
from workbench.base.errors import DeviceError

# --------------------------------------------------------------------------------------------------
# The line table of a cubin (DWARF 3, section 6.2), in which NVIDIA marks inlined calls: the source
# line of each instruction.
#
# nvdisasm lists either lines or live registers, and takes half a second to start: so it is run for
# the registers, and lines are read here.

_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQ")
_RELOCATION_AND_MORE = struct.Struct("<QQq")
_CONST_ADD_PC = 8
_FIXED_ADVANCE_PC = 9
_END_SEQUENCE = 1
_SET_ADDRESS = 2
_INLINED_CALL = 0x90
"""NVIDIA's opcode. Its operands: the row that calls the code after it (0: none), and a name."""


class LineStart(NamedTuple):
    """A row: in a section of code, instructions from `offset` on are for `line`."""

    offset: int
    line: int


class _Section(NamedTuple):
    name: str
    data: bytes


def line_table(cubin: bytes) -> dict[str, list[LineStart]]:
    """Return the rows of each section of code, sorted by offset; inlined code has the line of its
    call. Empty where the cubin has no line table."""
    sections = _sections(cubin)
    by_name = {section.name: section.data for section in sections}
    lines = by_name.get(".debug_line", b"")
    if not lines:
        return {}
    section_names = dict(_relocated(by_name, sections))
    table: dict[str, list[LineStart]] = {}
    for place, rows in _sequences(_ByteReader(lines)):
        table.setdefault(section_names.get(place, ""), []).extend(rows)
    return {name: sorted(rows, key=lambda r: r.offset) for name, rows in table.items()}


def line_at(rows: Sequence[LineStart], offset: int) -> int | None:
    """Return the line of the instruction at an offset; None before the first row."""
    after = bisect_right(rows, offset, key=lambda row: row.offset)
    return rows[after - 1].line if after else None


def _sections(elf: bytes) -> list[_Section]:
    (start,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [_SECTION_HEADER.unpack_from(elf, start + i * size) for i in range(count)]
    at = headers[names][4]
    return [
        _Section(_text(elf, at + name), elf[offset : offset + length])
        for name, _, _, _, offset, length, *_ in headers
    ]


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(0, start)].decode()


def _relocated(by_name: dict[str, bytes], sections: list[_Section]) -> Iterator[tuple[int, str]]:
    """Yield the position of each address in the line table, with the section of the address."""
    symbols = list(_SYMBOL.iter_unpack(by_name[".symtab"]))
    layouts = {".rel.debug_line": _RELOCATION, ".rela.debug_line": _RELOCATION_AND_MORE}
    for name, layout in layouts.items():
        for place, info, *_ in layout.iter_unpack(by_name.get(name, b"")):
            yield place, sections[symbols[info >> 32][3]].name


class _ByteReader:
    """A reader of bytes, one number after the other."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def number(self, layout: str) -> int:
        """Return the next number of a fixed size."""
        (value,) = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return int(value)

    def leb(self, signed: bool = False) -> int:
        """Return the next LEB128 number: seven bits per byte (DWARF 3, section 7.6)."""
        value = shift = 0
        while True:
            byte = self.number("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value - (1 << shift) if signed and byte & 0x40 else value


def _sequences(data: _ByteReader) -> Iterator[tuple[int, list[LineStart]]]:
    """Yield for each sequence the position of its address in the table, and its rows."""
    while data.at < len(data.data):
        end = data.number("I") + data.at
        yield from _unit(data, end)
        data.at = end


class _LineProgram:
    """The state of a line program, and its rows so far."""

    def __init__(self) -> None:
        self.offset, self.line, self.caller = 0, 1, 0
        self.rows: list[LineStart] = []

    def add_row(self) -> None:
        """Add a row; inlined code gets the line of its call, whose row came before."""
        line = self.rows[self.caller - 1].line if self.caller else self.line
        self.rows.append(LineStart(self.offset, line))


def _unit(data: _ByteReader, end: int) -> Iterator[tuple[int, list[LineStart]]]:
    """Yield the sequences of a unit, after its header."""
    data.number("H")
    program = data.number("I") + data.at
    scale, _, base = data.number("B"), data.number("B"), data.number("b")
    span, first_special = data.number("B"), data.number("B")
    operands = [data.number("B") for _ in range(first_special - 1)]
    data.at = program
    state, place = _LineProgram(), -1
    while data.at < end:
        op = data.number("B")
        if op >= first_special:
            state.offset += (op - first_special) // span * scale
            state.line += base + (op - first_special) % span
            state.add_row()
        elif op:
            step = (255 - first_special) // span * scale
            _standard(op, data, state, scale, step, operands[op - 1])
        else:
            after = data.leb() + data.at
            kind = data.number("B")
            if kind == _SET_ADDRESS:
                place, state.offset = data.at, data.number("Q")
            elif kind == _INLINED_CALL:
                state.caller = data.leb()
            elif kind == _END_SEQUENCE:
                yield place, state.rows
                state = _LineProgram()
            data.at = after


def _standard(
    op: int, data: _ByteReader, state: _LineProgram, scale: int, step: int, operands: int
) -> None:
    """Execute a standard opcode; one without an effect on lines has `operands` to skip."""
    if op == 1:
        state.add_row()
    elif op == 2:
        state.offset += data.leb() * scale
    elif op == 3:
        state.line += data.leb(signed=True)
    elif op == _CONST_ADD_PC:
        state.offset += step
    elif op == _FIXED_ADVANCE_PC:
        state.offset += data.number("H")
    else:
        for _ in range(operands):
            data.leb()


# --------------------------------------------------------------------------------------------------
# SASS, the machine code of NVIDIA's GPUs.

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
    """A line of a listing with its offset; a label has the offset of the next instruction."""

    offset: int
    line: AsmLine


def compile_to_sass(text: str, arch: str) -> MachineCode:
    """Return the SASS of CUDA C++ for an `arch` such as "sm_90".

    Errors: CompileError with the line of the text; DeviceError without NVRTC or nvdisasm.
    """
    image = nvrtc.compile_text(text, arch)
    return read_cubin(image.data, arch, f"NVRTC {nvrtc.version()}", image.log)


def read_cubin(cubin: bytes, arch: str, compiler: str, log: str) -> MachineCode:
    """Return the machine code of a cubin, with the resources that the assembler's log lists.

    Errors: DeviceError without nvdisasm, CompileError where nvdisasm fails.
    """
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
    listed = _without_registers(text)
    kernels = tuple(_KERNEL.findall(text))
    return MachineCode("sass", isa, compiler, listed, lines, kernels, resources(log), in_use)


def _disassembled(program: str, path: Path) -> str:
    command = [program, "-c", "-lrm", "narrow", str(path)]
    process = run_compiler("nvdisasm", command, LIMIT_S)
    if process.returncode:
        raise refusal("nvdisasm", process.stderr)
    return process.stdout


def _without_registers(text: str) -> str:
    """Return a listing without the columns of live registers, and without their legend."""
    rows = [(line, _COLUMNS.sub("", line)) for line in text.splitlines()]
    return "\n".join([plain for line, plain in rows if plain or not line])


def _listing(text: str, table: Mapping[str, Sequence[LineStart]]) -> Iterator[_Listing]:
    """Yield the instructions, each with its line of the source by the table of its section, and the
    labels that are jumped to. Padding at the end is left out."""
    rows: list[_Listing] = []
    starts: Sequence[LineStart] = ()
    labels: list[str] = []
    for line in text.splitlines():
        if section := _SECTION.match(line):
            starts = table.get(section[1], ())
        elif label := _LABEL.match(line):
            labels.append(label[1])
        elif row := _INSTRUCTION.match(line):
            offset, words = int(row[1], 16), _TARGET.sub(r"\1", row[2])
            rows += [_Listing(offset, AsmLine(f"{name}:", None)) for name in labels]
            rows.append(_Listing(offset, AsmLine("  " + words, line_at(starts, offset))))
            labels = []
    while rows and rows[-1].line.text.split()[0] == "NOP":
        del rows[-1]
    if len(rows) > 1 and _jumps_to_itself(rows[-2], rows[-1]):
        del rows[-2:]
    used = {row.line.text.split()[-1] for row in rows if not row.line.is_label}
    yield from (r for r in rows if not r.line.is_label or r.line.text[:-1] in used)


def _jumps_to_itself(label: _Listing, jump: _Listing) -> bool:
    """Whether these last lines are the empty loop that follows each kernel."""
    words = jump.line.text.split()
    return label.line.text == f"{words[-1]}:" and words[0] == "BRA"


def live_registers(text: str) -> Iterator[tuple[int, LiveRegisters]]:
    """Yield the offset of each instruction in nvdisasm's listing of life ranges, with its live
    registers."""
    for line in text.splitlines():
        row, columns = _INSTRUCTION.match(line), _LIVE.search(line)
        if row and columns:
            marks = columns[2].rstrip()
            yield int(row[1], 16), LiveRegisters(int(columns[1]), marks)


def resources(log: str) -> ResourceUse:
    """Return the resources of a kernel that the assembler's log lists."""
    registers, shared = _REGISTERS.search(log), _SHARED.search(log)
    numbers = _NUMBERS.search(log)
    stack, stores, loads = map(int, numbers.groups()) if numbers else (0, 0, 0)
    return ResourceUse(
        registers=int(registers[1]) if registers else None,
        shared_bytes=int(shared[1]) if shared else 0,
        stack_bytes=stack,
        spill_bytes=max(stores, loads),
    )
