"""Assembly text: instructions and the labels that they jump to, each with its line of source.

Compilers write `.loc` directives with the line of the source that the next instructions are for.
These directives, and all others, are removed from the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_LABEL = re.compile(r'[\w.$@"]+:')
_NAME = re.compile(r"[\w.$@]+")
_LOC = re.compile(r"\.loc\s+\d+\s+(\d+)")
_COMMENT = re.compile(r"(?:^|\s+)(?:#(?:\s.*)?|#[A-Z_]+|//.*|;.*)$")


class AsmLine(NamedTuple):
    """An instruction or a label. `source_line` is the number, from 1, of the line of the source
    text that it is for; None for a label, and where the compiler gives none."""

    text: str
    source_line: int | None

    @property
    def is_label(self) -> bool:
        return self.text.endswith(":")


def readable(assembly: str) -> tuple[AsmLine, ...]:
    """Return a compiler's assembly without directives, comments and needless labels."""
    lines = list(_instructions(assembly))
    used = {w for line in lines if not line.is_label for w in _NAME.findall(line.text)}
    return tuple(line for line in lines if not line.is_label or _is_shown(line.text[:-1], used))


def code_loops(lines: Sequence[AsmLine]) -> list[range]:
    """Return the loops of some code, each from its label to a jump back to it, outer ones before
    inner ones."""
    labels = {line.text[:-1]: place for place, line in enumerate(lines) if line.is_label}
    loops: list[range] = []
    for place, line in enumerate(lines):
        start = labels.get(line.text.split()[-1], place)
        if start < place:
            loops.append(range(start, place + 1))
    return sorted(loops, key=len, reverse=True)


def _instructions(assembly: str) -> Iterator[AsmLine]:
    """Yield the labels and instructions of the sections that hold code."""
    number: int | None = None
    is_code = True
    for line in assembly.splitlines():
        words = _COMMENT.sub("", line).strip()
        if label := _LABEL.match(words):
            if is_code:
                yield AsmLine(label[0], None)
        elif location := _LOC.match(words):
            number = int(location[1]) or None
        elif words.startswith((".section", ".text", ".data", ".bss")):
            is_code = ".text" in words or "__text" in words
        elif words and is_code and not words.startswith("."):
            yield AsmLine("  " + " ".join(words.split()), number)


def _is_shown(label: str, used: set[str]) -> bool:
    """Whether a jump goes to a label, or it is the function's name."""
    return label in used or not label.startswith((".", "L", '"'))
