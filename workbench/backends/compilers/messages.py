"""Messages of compilers about a text: errors, warnings and notes, with their places.

    <stdin>:19:43: error: expected ';' after expression     Clang, GCC, LLVM
    error: /tmp/kernel.cl:19:43: expected ';'               PoCL
    kernel.cu(19): error: expected a ";"                    NVRTC
    At end of source: error: expected a "}"
    error: expected ';'                                     naga: the place is in the next line
      ┌─ wgsl:19:43
    ptxas error   : too much shared data                    what has no place

Under a message Clang and GCC quote the line, mark a place in it, and write below the mark what
would mend it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_KIND = r"(?:fatal |catastrophic )?(?P<kind>error|fatal|warning|note)"
_SHAPES = tuple(
    re.compile(shape)
    for shape in (
        rf"\S.*?:(?P<line>\d+):(?P<column>\d+): {_KIND}: (?P<words>.*)",
        rf"{_KIND}: \S*?:(?P<line>\d+):(?P<column>\d+)(?: <Spelling=.*>)?: (?P<words>.*)",
        rf"\S+\((?P<line>\d+)\): {_KIND}(?: #\S+?)?: *(?P<words>.*)",
        rf"(?P<end>At end of source): {_KIND}: *(?P<words>.*)",
        rf"(?:\S.*?: |\w+ )?{_KIND} *: *(?P<words>.*)",
    )
)
_PLACE = re.compile(r"\s*┌─ .*?:(?P<line>\d+):(?P<column>\d+)")
_MARK = re.compile(r"[\s|]*[\s~]*\^[\s~^]*")
_FIX = re.compile(r"\s*\|?\s+(?P<fix>[^\s|].*)")
"""Below a mark GCC may also write, after a line more of bars, which type stands there."""
_QUOTED = re.compile(r"\s*\d+ \|")
_MARK_WITHIN = 3
"""Lines after a message in which the mark is."""


class Message(NamedTuple):
    """A message: its `kind` ("error", "warning" or "note"), its words, and its line and column in
    the text, from 1, None where it names none. `fix` is what the compiler would put there, "" where
    it does not say; `is_at_end` says that it is about the end of the text."""

    kind: str
    words: str
    line: int | None = None
    column: int | None = None
    fix: str = ""
    is_at_end: bool = False

    @property
    def is_error(self) -> bool:
        """Whether a text with it is refused."""
        return self.kind in ("error", "fatal")


def messages(log: str) -> list[Message]:
    """Return the messages of a compiler's log, in its order."""
    # the parts of NVRTC's log are apart by NULs
    return list(_messages(log.replace("\0", "\n").splitlines()))


def first_error(log: str) -> tuple[Message, list[Message]] | None:
    """Return the first error of a log, with the notes on it; None where it has no error."""
    listed = messages(log)
    at = next((i for i, message in enumerate(listed) if message.is_error), None)
    if at is None:
        return None
    notes = []
    for message in listed[at + 1 :]:
        if message.kind != "note":
            break
        notes.append(message)
    return listed[at], notes


def _messages(lines: Sequence[str]) -> Iterator[Message]:
    for number, text in enumerate(lines):
        match = next((m for shape in _SHAPES if (m := shape.fullmatch(text))), None)
        if match is None:
            continue
        below = lines[number + 1 :]
        place = match.groupdict()
        if place.get("line") is None and below and (named := _PLACE.match(below[0])):
            place |= named.groupdict()
        yield Message(
            place["kind"], place["words"].strip(), _number(place.get("line")),
            _number(place.get("column")), _fix(below), bool(place.get("end")),
        )  # fmt: skip


def _number(digits: str | None) -> int | None:
    return None if digits is None else int(digits)


def _fix(below: Sequence[str]) -> str:
    """Return what stands under the mark of a message, "" where there is none."""
    for place, text in enumerate(below[:_MARK_WITHIN]):
        if any(shape.fullmatch(text) for shape in _SHAPES):
            break
        if _MARK.fullmatch(text):
            after = below[place + 1] if place + 1 < len(below) else ""
            match = None if _QUOTED.match(after) else _FIX.fullmatch(after)
            return match["fix"].strip() if match else ""
    return ""
