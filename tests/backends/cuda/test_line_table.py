"""Lines of instructions as the table in a cubin has them, against what NVIDIA's tool prints."""

from __future__ import annotations

import re
import struct
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from workbench import Tensor, explore
from workbench.backends.cuda import nvrtc
from workbench.backends.cuda.sass import LineStart, line_at, line_table
from workbench.pipeline import stages

TOOLS = nvrtc.toolkit()
needs_nvrtc = pytest.mark.skipif(
    TOOLS is None or not TOOLS.nvdisasm,
    reason=f"NVRTC and nvdisasm are not here: {nvrtc.how_to_get()}",
)
CALLS = """__device__ __noinline__ float called(float x) { return x / 3.0f + sinf(x); }
__device__ inline float inner(float x) {
  return x * called(x); }
__device__ inline float outer(float x) {
  return inner(x) + 1.0f; }
extern "C" __global__ void a(float *p) {
  p[0] = outer(p[1]); }
extern "C" __global__ void b(float *p) {
  p[2] = outer(p[1]) / p[4]; }
"""
# line 5, then a call at line 7 of what is inlined from line 2, then line 300, then the end
PROGRAM = (
    b"\x00\x09\x02" + bytes(8) + b"\x03\x04\x01"  # address 0, line 5
    b"\x02\x20\x03\x02\x01"  # + 32, line 7
    b"\x00\x03\x90\x02\x00\x03\x7b\x01"  # called by row 2, line 2
    b"\x00\x03\x90\x00\x00\x02\x10\x03\xaa\x02\x01"  # + 16, line 300
    b"\xf4"  # a special opcode: + 16, line + 1
    b"\x08\x01\x09\x05\x00\x01"  # + 17, and + 5
    b"\x00\x01\x01"
)


def elf(line_program: bytes, *more: int) -> bytes:
    """An object file with a section of code, and its table of lines."""
    lengths = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
    header = struct.pack("<BBbBB", 1, 1, -5, 14, 13) + lengths + b"\0\0"
    unit = struct.pack("<HI", 3, len(header)) + header
    place = len(unit) + 4 + 3
    lines = struct.pack("<I", len(unit) + len(line_program)) + unit + line_program
    symbols = bytes(24) + struct.pack("<IBBHQQ", 0, 3, 0, 4, 0, 0)
    relocation = struct.pack(f"<QQ{len(more)}q", place, 1 << 32, *more)
    relocations = b".rela.debug_line" if more else b".rel.debug_line"
    sections = [
        (b"", b""), (b".symtab", symbols), (b".debug_line", lines),
        (relocations, relocation), (b".text.k", b""),
    ]  # fmt: skip
    names = b"".join(name + b"\0" for name, _ in sections) + b".shstrtab\0"
    sections.append((b".shstrtab", names))
    data, headers = bytes(64), b""
    for name, content in sections:
        at = names.index(name + b"\0")
        headers += struct.pack("<IIQQQQIIQQ", at, 0, 0, 0, len(data), len(content), 0, 0, 0, 0)
        data += content
    start = struct.pack("<Q", len(data))
    counts = struct.pack("<HHH", 64, len(sections), len(sections) - 1)
    return data[:0x28] + start + data[0x30:0x3A] + counts + data[0x40:] + headers


@pytest.mark.parametrize("more", [(), (0,)])
def test_a_table_by_hand(more: tuple[int, ...]) -> None:
    """The address of a section may have a number to add, or none."""
    table = line_table(elf(PROGRAM, *more))
    assert table == {
        ".text.k": [
            LineStart(0, 5), LineStart(32, 7), LineStart(32, 7), LineStart(48, 300),
            LineStart(64, 302), LineStart(81, 302), LineStart(86, 302),
        ]
    }  # fmt: skip
    rows = table[".text.k"]
    lines = [line_at(rows, offset) for offset in (0, 16, 32, 47, 48, 1000)]
    assert lines == [5, 5, 7, 7, 300, 302]
    assert line_at(rows[1:], 16) is None and line_at([], 0) is None


def test_without_a_table_there_are_no_lines() -> None:
    assert line_table(elf(PROGRAM).replace(b".debug_line\0", b".debug_none\0")) == {}


def printed(cubin: bytes, folder: Path) -> dict[tuple[str, int], int | None]:
    """The line of each instruction as nvdisasm prints it: of several, the outermost is the last."""
    path = folder / "kernel.cubin"
    path.write_bytes(cubin)
    assert TOOLS is not None
    command = [TOOLS.nvdisasm, "-c", "-gi", str(path)]
    text = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    section, number, lines = "", None, {}
    for line in text.split("\n"):
        if head := re.match(r"\t\.section\t(\.text\.[^,]+),", line):
            section, number = head[1], None
        elif place := re.match(r'\s*//## File ".*?", line (\d+)', line):
            number = int(place[1])
        elif instruction := re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+\S", line):
            lines[section, int(instruction[1], 16)] = number
    return lines


def texts() -> list[str]:
    x = Tensor.empty(64, 48)
    results = [(x @ Tensor.empty(48, 80)).relu(), (x.exp() / x.sqrt()).sum(1)]
    found = [CALLS]
    for result in results:
        kernel = explore(result, device="CUDA:H100").kernels[-1]
        for each in (kernel, kernel.optimized()):
            source = stages(each.ast, "CUDA:H100", upto="source").source
            assert source is not None
            found.append(source.text)
    return found


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_lines_are_those_that_nvdisasm_prints(arch: str, tmp_path: Path) -> None:
    for text in texts():
        cubin = nvrtc.compile_text(text, arch).data
        table, expected = line_table(cubin), printed(cubin, tmp_path)
        assert len(expected) > 50
        rows = Counter((name, row.offset) for name, own in table.items() for row in own)
        for (section, offset), line in expected.items():
            actual = line_at(table.get(section, []), offset)
            if rows[section, offset] > 1 and actual != line:
                # where a row is that of a call and of the function as well, it may print neither
                actual = line_at(table[section], offset - 1)
            assert actual == line, (section, offset)
