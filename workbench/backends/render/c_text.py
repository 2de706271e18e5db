"""The growing text of a C function: lines, indentation, names that are used once."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

_WIDTH, _LONGEST = 96, 110
_TAKEN = frozenset(
    "args lo hi scratch main auto break case char const continue default do double else enum"
    " extern float for goto if inline int long register restrict return short signed sizeof"
    " static struct switch typedef union unsigned void volatile while asm typeof linux unix"
    " i386 arm".split()
)


class Text:
    """Lines of C, the body of a function. `depth` is how many loops are open."""

    def __init__(self, taken: Iterable[str]):
        self.lines: list[str] = []
        self.depth = 0
        self._taken = {*_TAKEN, *taken}
        self._counts: dict[str, int] = {}

    def put(self, text: str) -> None:
        """Add a statement; a long one takes several lines."""
        pad = "  " * (self.depth + 1)
        if len(pad) + len(text) <= _WIDTH:
            self.lines.append(pad + text)
            return
        self.lines += textwrap.wrap(
            text,
            _WIDTH,
            initial_indent=pad,
            subsequent_indent=pad + "    ",
            break_long_words=False,
            break_on_hyphens=False,
        )

    def comment(self, words: str, at: int) -> None:
        """Put a comment before line `at`: one line, cut where it would be too long."""
        line = "  " * (self.depth + 1) + "// " + words.replace("\n", " ")
        self.lines.insert(
            at, line if len(line) <= _LONGEST else line[:_LONGEST] + " .."
        )

    def unique(self, name: str) -> str:
        """Return `name` as C can have it, with a number behind it from its second use on."""
        name = identifier(name)
        found, number = name, 1
        while found in self._taken:
            number += 1
            found = f"{name}_{number}"
        self._taken.add(found)
        return found

    def numbered(self, name: str) -> str:
        """Return `name0`, `name1`, ... in turn."""
        number = self._counts.get(name, 0)
        self._counts[name] = number + 1
        return self.unique(f"{name}{number}")


def identifier(name: str) -> str:
    """Return `name` as C can have it."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII)
    if not name or name[0].isdigit():
        name = "k" + name
    return name + "_" if name in _TAKEN else name
