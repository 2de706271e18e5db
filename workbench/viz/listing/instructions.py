"""Explanations of machine code: the meaning, the statement and the cost of instructions.

Sections: The meaning of an instruction in plain words, by its mnemonic; The statement of a line of
code; The cost of each instruction on this machine's processor, if LLVM's llvm-mca is installed.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from os.path import commonprefix
from typing import Any, NamedTuple

from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.kernel.kernel import Compiled
from workbench.viz.listing import aarch64, x86_64
from workbench.viz.model.provenance import Links
from workbench.viz.schema.variant import InstructionCost

# --------------------------------------------------------------------------------------------------
# The meaning of an instruction in plain words, by its mnemonic.

Row = tuple[str, str]
"""A pattern of a whole mnemonic, and its meaning. {name} in the meaning stands for the text that
the group of that name matches, in the words of `PARTS` of the table."""
Parts = Mapping[str, Mapping[str, str]]
_TABLES: Mapping[str, tuple[Sequence[Row], Parts]] = {
    "x86_64": (x86_64.ROWS, x86_64.PARTS),
    "amd64": (x86_64.ROWS, x86_64.PARTS),
    "aarch64": (aarch64.ROWS, aarch64.PARTS),
    "arm64": (aarch64.ROWS, aarch64.PARTS),
}


def mnemonic_of(line: str) -> str:
    """Return the mnemonic of a line of assembly; "" for a label."""
    words = line.split()
    return "" if not words or line.endswith(":") else words[0]


def help_of(lines: Iterable[str], machine: str = "") -> dict[str, str]:
    """Return the meanings of the instructions of some assembly, by mnemonic; `machine` is "" for
    this one. Instructions that its table lacks are left out."""
    name = (machine or platform.machine()).lower()
    words = {m: words_of(m, name) for m in sorted({mnemonic_of(line) for line in lines})}
    return {mnemonic: text for mnemonic, text in words.items() if text}


@lru_cache(maxsize=4096)
def words_of(mnemonic: str, machine: str) -> str:
    """Return the meaning of an instruction; "" where the table of the machine lacks it."""
    rows, parts = _TABLES.get(machine, ((), {}))
    for pattern, text in rows:
        if row := re.fullmatch(pattern, mnemonic):
            named = {name: part or "" for name, part in row.groupdict().items()}
            return text.format(
                **{name: parts.get(name, {}).get(part, part) for name, part in named.items()}
            )
    return ""


# --------------------------------------------------------------------------------------------------
# The statement of a line of code: the number of the line that computes the same in the language
# that all kernels are read in. It links the lines of programs in two languages.


@dataclass(frozen=True, eq=False)
class Statements:
    """The statement of each node of a program."""

    by_node: Mapping[UOp, int]

    def of(self, nodes: Sequence[UOp]) -> int | None:
        """Return the statement of a line of code by its nodes in program order: the statement of
        the last node that has one, since the line computes the others for this node; None if no
        node has one."""
        return next((s for n in reversed(nodes) if (s := self.by_node.get(n))), None)

    def of_tree(self, links: Links, tree: Set[UOp]) -> dict[UOp, int]:
        """Return the line of code of each loop and statement of a statement tree, by the origins in
        `links`; of several lines, the first of those in the most loops."""
        loops = {n.src[0].axis_name: n for n in tree if n.op is Ops.LOOP}
        depths: dict[UOp, int] = {}
        numbers: dict[UOp, int] = {}
        for node, around in zip(links.linear, links.loops, strict=True):
            number = self.by_node.get(node)
            if number is None:
                continue
            origins = links.ancestry.of(node).keys() & tree
            if node.op is Ops.LOOP and node.src[0].axis_name in loops:
                origins = {loops[node.src[0].axis_name]}
            for origin in origins:
                if len(around) > depths.get(origin, -1):
                    depths[origin], numbers[origin] = len(around), number
        return numbers


def statements_of(readable: Compiled) -> Statements:
    """Return the statements of a kernel in the language that all kernels are read in. A node of
    several lines belongs to the line whose last node it is, or else to the first; the end of a loop
    belongs to the line that begins it."""
    linear, source = readable.built.linear, readable.built.source
    lines = [(n, places) for n, places in enumerate(source.lines, 1) if places]
    by_node: dict[UOp, int] = {}
    for number, places in lines:
        by_node.setdefault(linear[max(places)], number)
    for number, places in lines:
        for place in places:
            by_node.setdefault(linear[place], number)
    begun: list[UOp] = []
    for node in linear:
        if node.op is Ops.LOOP:
            begun.append(node)
        elif node.op is Ops.ENDLOOP:
            begin = begun.pop()
            if begin in by_node:
                by_node[node] = by_node[begin]
    return Statements(by_node)


# --------------------------------------------------------------------------------------------------
# The cost of each instruction on this machine's processor, if LLVM's llvm-mca is installed.

PROGRAM = "llvm-mca"
LIMIT_S = 30.0
_NUMBER = re.compile(r"\.([\x00-\x1f])")
"""The number of a port among ports of one name; llvm-mca writes it as a byte."""


class Costs(NamedTuple):
    """The cost of each line of some assembly, None for a label; `source` is the tool and the
    processor."""

    lines: list[InstructionCost | None]
    source: str


def instruction_costs(lines: Sequence[str]) -> Costs | None:
    """Return the costs of the lines of some assembly; None where llvm-mca is not installed, fails,
    or does not know an instruction."""
    program = shutil.which(PROGRAM)
    if program is None:
        return None
    try:
        process = subprocess.run(
            [program, "-json", "-instruction-tables", "-"],
            input="\n".join([*lines, ""]),
            capture_output=True,
            encoding="utf-8",
            timeout=LIMIT_S,
            check=True,
        )
        report = json.loads(process.stdout)
        [region] = report["CodeRegions"]
        rows = region["InstructionInfoView"]["InstructionList"]
        ports = _ports(report["TargetInfo"].get("Resources", []), region, len(rows))
        costs = [
            InstructionCost(row["Latency"], row["RThroughput"], own)
            for row, own in zip(rows, ports, strict=True)
        ]
        processor = report["TargetInfo"]["CPUName"]
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError):
        return None  # a version with other options, or an older one than the processor
    count = sum(bool(mnemonic_of(line)) for line in lines)
    if count != len(costs):
        return None
    following = iter(costs)
    by_line = [next(following) if mnemonic_of(line) else None for line in lines]
    return Costs(by_line, f"{PROGRAM}, {processor}")


def _ports(resources: list[str], region: dict[str, Any], count: int) -> list[dict[str, float]]:
    """Return for each instruction the cycles that it occupies each port, by the port's name without
    the processor's; {} where llvm-mca does not report them."""
    prefix = commonprefix(resources)
    names = [_NUMBER.sub(_number, name[len(prefix) :]) for name in resources]
    ports: list[dict[str, float]] = [{} for _ in range(count)]
    for row in region.get("ResourcePressureView", {}).get("ResourcePressureInfo", ()):
        place = row["InstructionIndex"]
        if place < count:  # the last is the sum of all
            ports[place][names[row["ResourceIndex"]]] = round(row["ResourceUsage"], 3)
    return ports


def _number(match: re.Match[str]) -> str:
    return f".{ord(match[1])}"
