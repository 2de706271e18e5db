"""A small FileCheck: expected lines beside the text they must be found in, in order.

    filecheck(to_expr(tree), '''
        CHECK:      for g0 in 8
        CHECK-NEXT: acc0 = 0.0
        CHECK-NOT:  scratch
        CHECK:      }
    ''')

CHECK finds a later line that contains its words, CHECK-NEXT the very next line, CHECK-NOT
none between its neighbours. Space counts as one blank; {{..}} holds a regular expression.
Anything else is a mistake in the test and fails. Source of the idea: LLVM's FileCheck.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_DIRECTIVES = ("CHECK", "CHECK-NEXT", "CHECK-NOT")


class Directive(NamedTuple):
    kind: str
    words: str
    pattern: re.Pattern[str]


def filecheck(text: str, expected: str) -> None:
    """Fail unless `text` has the lines that `expected` describes, in their order."""
    lines = [" ".join(line.split()) for line in text.split("\n")]
    at = -1
    forbidden: list[Directive] = []
    for directive in directives(expected):
        if directive.kind == "CHECK-NOT":
            forbidden.append(directive)
            continue
        position = _find(lines, at, directive, text)
        _absent(lines[at + 1 : position], forbidden, text)
        at, forbidden = position, []
    _absent(lines[at + 1 :], forbidden, text)


def directives(expected: str) -> list[Directive]:
    """Return the directives of a test; an unknown or empty one fails."""
    checks = []
    for raw in expected.strip().split("\n"):
        head, colon, words = raw.strip().partition(":")
        if not raw.strip():
            continue
        assert colon and head in _DIRECTIVES, f"not a directive: {raw.strip()!r}"
        words = " ".join(words.split())
        assert words, f"nothing to look for: {raw.strip()!r}"
        checks.append(Directive(head, words, _pattern(words)))
    assert checks, "no directive: the test would pass on any text"
    assert checks[0].kind != "CHECK-NEXT", "CHECK-NEXT has no line before it"
    for before, after in zip(checks, checks[1:], strict=False):
        lost = before.kind == "CHECK-NOT" and after.kind == "CHECK-NEXT"
        assert not lost, f"no line can stand between: {before.words!r}"
    return checks


def _pattern(words: str) -> re.Pattern[str]:
    parts = re.split(r"\{\{(.*?)\}\}", words)
    return re.compile("".join(p if i % 2 else re.escape(p) for i, p in enumerate(parts)))


def _find(lines: list[str], at: int, directive: Directive, text: str) -> int:
    last = at + 2 if directive.kind == "CHECK-NEXT" else len(lines)
    for number in range(at + 1, min(last, len(lines))):
        if directive.pattern.search(lines[number]):
            return number
    raise AssertionError(
        f"{directive.kind}: {directive.words}\n  is not after line {at + 1} of\n{text}"
    )


def _absent(between: list[str], forbidden: list[Directive], text: str) -> None:
    for directive in forbidden:
        for line in between:
            assert not directive.pattern.search(line), (
                f"CHECK-NOT: {directive.words}\n  found {line!r} in\n{text}"
            )
