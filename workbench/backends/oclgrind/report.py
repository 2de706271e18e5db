"""The report of Oclgrind as findings, one a paragraph.

Read-write data race at local memory address 0x1000000000004
    Kernel: k
    First entity:  Global(1,0,0) Local(1,0,0) Group(0,0,0)
      store float %0, float addrspace(3)* %1, align 4
    At line 5 (column 7) of input.cl:
      t[l] = a[l];
"""

from __future__ import annotations

import re
from typing import NamedTuple

_ENTITY = re.compile(r"Local\((\d+),(\d+),(\d+)\) Group\((\d+),(\d+),(\d+)\)")
_LINE = re.compile(r"At line (\d+) ")
_GROUP = re.compile(r"Work-group:\s*(\(.*\))")


class SimulatorFinding(NamedTuple):
    """A defect: `items` are the work-items in words, `lines` those of the source, from 1, in the
    order of the words."""

    kind: str
    items: tuple[str, ...]
    lines: tuple[int, ...]
    words: str
    hint: str


class _Kind(NamedTuple):
    """What a paragraph begins with, what it is called here, and what to try."""

    begins: str
    kind: str
    hint: str


_KINDS = (
    _Kind(r"(Read-write|Write-write) data race", "race", "a barrier between the lines"),
    _Kind(r"Invalid (read|write)", "out of bounds", "a guard, or another index"),
    _Kind(r"Index .* exceeds static array", "out of bounds", "another index or size"),
    _Kind(r"Uninitialized|Controlflow depends", "unwritten", "write it before it is read"),
    _Kind(r"Work-group divergence", "divergent barrier", "the barrier for all work-items"),
    _Kind(r"Unaligned", "misaligned", "vload and vstore, or another index"),
)  # fmt: skip


def findings(report: str) -> list[SimulatorFinding]:
    """Return the findings of a report, one for each kind at the same lines."""
    listed: dict[tuple[str, tuple[int, ...]], SimulatorFinding] = {}
    for paragraph in re.split(r"\n(?=\S)", report):
        one = _finding(paragraph.strip())
        if one is not None:
            listed.setdefault((one.kind, one.lines), one)
    return [*listed.values()]


def _finding(paragraph: str) -> SimulatorFinding | None:
    row = next((k for k in _KINDS if re.match(k.begins, paragraph)), None)
    if row is None:
        return None
    items = tuple(
        f"work-item ({x}, {y}, {z}) of group ({a}, {b}, {c})"
        for x, y, z, a, b, c in _ENTITY.findall(paragraph)
    )
    lines = tuple(int(number) for number in _LINE.findall(paragraph))
    title, *rest = paragraph.splitlines()
    title = re.sub(r" address 0x[0-9a-f]+", "", title)
    who = " and ".join(items)
    group = _GROUP.search(paragraph)
    if group is not None:
        only = next((x.strip() for x in rest if x.strip().startswith("Only")), "")
        who = f"group {group[1].replace(',', ', ')}: {only}"
    at = " and ".join(f"line {n}" for n in dict.fromkeys(lines))
    words = f"{title[0].lower()}{title[1:]}: {who} at {at}"
    return SimulatorFinding(row.kind, items, lines, words, row.hint)
