"""Line numbers in SPIR-V, since LLVM writes no useful debug locations into it.

So an instruction of LLVM IR that has a result gets a decoration of it, UserSemantic (SPIR-V 1.6,
"Decoration"), which LLVM hands on and which changes no code; its words are a line. Instructions
that store, jump or wait have no result: those of a block, which keeps its name, are as many as in
LLVM IR, and in the same order. What has no line of its own prepares what follows it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from workbench.backends.native.assembly import AsmLine

_USER_SEMANTIC = 5635
_MARK = re.compile(r'^\s*OpDecorate (%\d+) UserSemantic "line (\d+)"$')
_NAME = re.compile(r'^\s*OpName (%\d+) "(.*)"$')
_ROW = re.compile(r"^\s*(?:(%\d+) = )?(Op\w+)")
_BOUNDARIES = frozenset({"OpFunction", "OpFunctionParameter", "OpLabel"})
_NUMBERED = re.compile(r"^!(\d+) =", re.MULTILINE)
_RESULT = re.compile(r"%\S+ = ")
_STATEMENTS = {
    "OpStore": re.compile(r"store "),
    "OpBranch": re.compile(r"br label "),
    "OpBranchConditional": re.compile(r"br i1 "),
    "OpControlBarrier": re.compile(r".*call .*@_Z7barrierj\("),
    "OpReturn": re.compile(r"ret void"),
}
"""Instructions without a result, and how they begin in LLVM IR."""


class BlockStatements(NamedTuple):
    """The instructions of a kind in a block."""

    block: str
    kind: str


class MarkedIr(NamedTuple):
    """LLVM IR with decorations, and the lines of its instructions without a result."""

    text: str
    statements: Mapping[BlockStatements, Sequence[int]]


def with_marks(text: str, line_of: Callable[[int], int] | None = None) -> MarkedIr:
    """Return LLVM IR whose SPIR-V says the line of each instruction: its own in `text`, from 1, or
    what `line_of` makes of that (0: none)."""
    free = 1 + max((int(n) for n in _NUMBERED.findall(text)), default=-1)
    statements: dict[BlockStatements, list[int]] = {}
    lines: list[str] = []
    numbers: set[int] = set()
    for place, (line, block, words) in enumerate(_instructions(text), 1):
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


def _instructions(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield each line, its block, and its words, which are "" unless it is an instruction."""
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
    """Whether SPIR-V has two results of one id, which is an error."""
    rows = map(_ROW.match, text.split("\n"))
    results = [row[1] for row in rows if row and row[1]]
    return len(set(results)) < len(results)


def without_marks(text: str) -> str:
    """Return SPIR-V as it is without decorations of lines."""
    return "\n".join(line for line in text.split("\n") if not _MARK.match(line))


def lines_of(text: str, statements: Mapping[BlockStatements, Sequence[int]]) -> list[AsmLine]:
    """Return the lines of SPIR-V, without the decorations, each with its line of the source.
    `statements` are those of the LLVM IR."""
    marks: dict[str, int] = {}
    for match in filter(None, map(_MARK.match, text.split("\n"))):
        marks.setdefault(match[1], int(match[2]))  # what is a copy has a second one
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
