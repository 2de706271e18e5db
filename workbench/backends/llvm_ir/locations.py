"""LLVM IR with a debug location on each instruction: the line of its own text.

Debug locations change no instruction: LLVM's code generator writes them into the assembly as `.loc`
lines, which map machine code to the lines of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

_NUMBERED = re.compile(r"^!(\d+) =", re.MULTILINE)
_LOCATION = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+)", re.MULTILINE)
_PLACE = re.compile(r",? !dbg !(\d+)")


def with_locations(text: str, line_of: Callable[[int], int] | None = None) -> str:
    """Return `text` with a debug location on every instruction: the number of its line, from 1, or
    what `line_of` makes of that (0: none). Where LLVM makes one instruction of two, it has a
    location only if both have the same: those of a line of C stay together by the number of that
    line."""
    free = 1 + max((int(n) for n in _NUMBERED.findall(text)), default=-1)
    unit, file, flag, function, kind, none = (f"!{free + i}" for i in range(6))
    lines = list(_located(text, function, free + 6))
    options = "isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly"
    lines += [
        f"!llvm.dbg.cu = !{{{unit}}}",
        f"!llvm.module.flags = !{{{flag}}}",
        f"{unit} = distinct !DICompileUnit(language: DW_LANG_C99, file: {file}, {options})",
        f'{file} = !DIFile(filename: "kernel.ll", directory: "")',
        f'{flag} = !{{i32 2, !"Debug Info Version", i32 3}}',
        f"{function} = distinct !DISubprogram(scope: {file}, file: {file}, line: 1,"
        f" type: {kind}, unit: {unit}, spFlags: DISPFlagDefinition)",
        f"{kind} = !DISubroutineType(types: {none})",
        f"{none} = !{{}}",
    ]
    for number in range(1, text.count("\n") + 2):
        line = line_of(number) if line_of else number
        place = f"!DILocation(line: {line}, column: 1, scope: {function})"
        lines.append(f"!{free + 6 + number} = {place}")
    return "\n".join([*lines, ""])


class LocatedIr(NamedTuple):
    """LLVM IR without debug locations, and for each of its lines the number of the line of the
    source that it is for, from 1; 0 where there is none."""

    text: str
    numbers: Sequence[int]


def without_locations(text: str) -> LocatedIr:
    """Return LLVM IR without its debug locations, and what they say."""
    numbers = {m[1]: int(m[2]) for m in _LOCATION.finditer(text)}
    lines = [x for x in text.split("\n") if not x.startswith("!llvm.dbg.")]
    places = [_PLACE.search(line) for line in lines]
    return LocatedIr(
        "\n".join([_PLACE.sub("", line) for line in lines]),
        [numbers.get(place[1], 0) if place else 0 for place in places],
    )


def _located(text: str, function: str, first: int) -> Iterator[str]:
    """Yield the lines of a module with locations; the one of line n has the number first + n."""
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition(";")[0].strip()
        if line.startswith("define "):
            inside = True
            yield f"{line.rstrip().removesuffix('{')}!dbg {function} {{"
        elif inside and words and not words.endswith(":") and words != "}":
            yield f"{line.partition(';')[0].rstrip()}, !dbg !{first + number}"
        else:
            inside = inside and words != "}"
            yield line
