"""The page's scripts without a page: their unit tests, and how long a function is."""

from __future__ import annotations

import re

from check_page import OFFLINE, deno

from tests.support import ROOT
from workbench.viz.page import document as page

MOST_LINES = 50
"""Of a function."""
FUNCTION = re.compile(
    r"^( *)(?:export )?"
    r"(?:(?:async )?function\*? (\w+)|const (\w+) = (?:async )?\("
    r"|(?!(?:if|for|while|switch|catch)\b)(?:async )?\*?(#?\w+)\(.*\) \{$)"
)
"""A function of a name, a constant that is one, a method."""


def test_units_of_the_page() -> None:
    assert deno("test", "--quiet", "--no-check", *OFFLINE, "tests/viz/page") == 0


def test_no_function_is_long() -> None:
    long = [
        (path.relative_to(ROOT).as_posix(), name, count)
        for path in page.FOLDER.rglob("*.js")
        for name, count in _lengths(path.read_text(encoding="utf-8").split("\n"))
        if count > MOST_LINES
    ]
    assert long == []


def _lengths(lines: list[str]) -> list[tuple[str, int]]:
    """Return the functions of a formatted script, and how many lines each has."""
    lengths = []
    for start, line in enumerate(lines):
        if row := FUNCTION.match(line):
            ends = {row[1] + end for end in ("}", "},", "};", ");", "});")}
            last = next((i for i in range(start, len(lines)) if lines[i] in ends), start)
            if line.endswith(("{", "(", "[")):
                lengths.append((row[2] or row[3] or row[4], last - start + 1))
    return lengths
