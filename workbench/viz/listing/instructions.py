"""The meaning of an instruction of this machine in plain words, by its mnemonic."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from workbench.viz.listing import aarch64, x86_64

Row = tuple[str, str]
"""A pattern that a whole mnemonic matches, and words; {name} in them stands for the part of the
mnemonic that the group of that name matches, in words (see `PARTS` of each table)."""
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
    """Return what the instructions of some assembly do, by mnemonic; those that the table of the
    machine lacks are left out."""
    name = (machine or platform.machine()).lower()
    words = {m: words_of(m, name) for m in sorted({mnemonic_of(line) for line in lines})}
    return {mnemonic: text for mnemonic, text in words.items() if text}


@lru_cache(maxsize=4096)
def words_of(mnemonic: str, machine: str) -> str:
    """Return what one instruction does; "" where the table of the machine lacks it."""
    rows, parts = _TABLES.get(machine, ((), {}))
    for pattern, text in rows:
        if row := re.fullmatch(pattern, mnemonic):
            named = {name: part or "" for name, part in row.groupdict().items()}
            return text.format(
                **{name: parts.get(name, {}).get(part, part) for name, part in named.items()}
            )
    return ""
