"""The growing text of a function in a C-like language: lines, indentation, unique names."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Container, Iterable

from workbench.backends.program.names import Names

_WIDTH = 96
"""Most characters of a line of a comment."""
_LONGEST = 110
"""Most characters of a line of code."""


class CodeWriter(Names):
    """Lines of code, the body of a function. `depth` is the number of open loops.

    `positions` has, for each line, the positions in the program of the nodes whose code it is; `at`
    has those of the nodes that are being written.
    """

    def __init__(self, reserved: Iterable[str]):
        self.words = frozenset(reserved)
        super().__init__({*self.words}, self.identifier, "_")
        self.lines: list[str] = []
        self.positions: list[tuple[int, ...]] = []
        self.at: tuple[int, ...] = ()
        self.depth = 0

    def put(self, text: str) -> None:
        """Add a statement; a long one takes several lines."""
        pad = "  " * (self.depth + 1)
        lines = [pad + text]
        if len(lines[0]) > _WIDTH:
            code, mark, note = text.partition("  // ")
            lines = textwrap.wrap(
                code,
                _WIDTH,
                initial_indent=pad,
                subsequent_indent=pad + "    ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            lines[-1] += mark + note
        self.lines += lines
        self.positions += [self.at] * len(lines)

    def comment(self, words: str, at: int) -> None:
        """Put a comment before line `at`: one line, cut where it would be too long."""
        line = "  " * (self.depth + 1) + "// " + words.replace("\n", " ")
        self.lines.insert(at, line if len(line) <= _LONGEST else line[:_LONGEST] + " ..")
        self.positions.insert(at, ())

    def identifier(self, name: str) -> str:
        """Return `name` as an identifier of the language."""
        return identifier(name, self.words)


def identifier(name: str, reserved: Container[str]) -> str:
    """Return `name` as an identifier of a language with these reserved words."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not name or name[0].isdigit():
        name = "k" + name
    return name + "_" if name in reserved else name
