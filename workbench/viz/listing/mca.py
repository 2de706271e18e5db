"""The cost of each instruction on this machine's processor, if LLVM's llvm-mca is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from os.path import commonprefix
from typing import Any, NamedTuple

from workbench.viz.listing.instructions import mnemonic_of
from workbench.viz.schema.variant import InstructionCost

PROGRAM = "llvm-mca"
LIMIT_S = 30.0
_NUMBER = re.compile(r"\.([\x00-\x1f])")
"""The number of a port among several of one name, which llvm-mca writes as a byte."""


class Costs(NamedTuple):
    """The cost of each line of some assembly, None for a label; `source` says whose figures they
    are."""

    lines: list[InstructionCost | None]
    source: str


def instruction_costs(lines: Sequence[str]) -> Costs | None:
    """Return the costs of the lines of some assembly; None where llvm-mca is not installed, or does
    not know an instruction."""
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
    the processor's; nothing where llvm-mca does not say it."""
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
