"""Refusals of a compiler as errors: the line of the text, the code that it belongs to, and a
remedy.

Sections: Messages of compilers about a text; Refusals of a compiler as errors.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher
from typing import NamedTuple

from workbench.backends.program.text import Source
from workbench.base.errors import CompileError, plural
from workbench.ir.node.ops import Ops

# --------------------------------------------------------------------------------------------------
# Messages of compilers about a text: errors, warnings and notes, with their places.
#
#     <stdin>:19:43: error: expected ';' after expression     Clang, GCC, LLVM
#     error: /tmp/kernel.cl:19:43: expected ';'               PoCL
#     kernel.cu(19): error: expected a ";"                    NVRTC
#     At end of source: error: expected a "}"
#     error: expected ';'                                     naga: the place is in the next line
#       ┌─ wgsl:19:43
#     ptxas error   : too much shared data                    a message without a place
#
# Under a message Clang and GCC quote the line, mark a place in it, and write below the mark a text
# that would fix it.

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
_POSITION = re.compile(r"\s*┌─ .*?:(?P<line>\d+):(?P<column>\d+)")
_MARK = re.compile(r"[\s|]*[\s~]*\^[\s~^]*")
_FIX = re.compile(r"\s*\|?\s+(?P<fix>[^\s|].*)")
"""A fix in the line below a mark. A line that begins with a bar has none: GCC names types there."""
_QUOTED = re.compile(r"\s*\d+ \|")
_MARK_WITHIN = 3
"""The mark stands in the first lines after a message: at most this many."""


class Message(NamedTuple):
    """A message: its `kind` ("error", "fatal", "warning" or "note"), its words, and its line and
    column in the text, counted from 1 (None: not named). `fix` is the text that the compiler
    suggests there ("": none); `is_at_end` says that the message is about the end of the text."""

    kind: str
    words: str
    line: int | None = None
    column: int | None = None
    fix: str = ""
    is_at_end: bool = False

    @property
    def is_error(self) -> bool:
        """Whether it makes the compiler refuse the text."""
        return self.kind in ("error", "fatal")


def messages(log: str) -> list[Message]:
    """Return the messages of a compiler's log, in its order."""
    # NVRTC separates the parts of its log by NULs
    return list(_messages(log.replace("\0", "\n").splitlines()))


def first_error(log: str) -> tuple[Message, list[Message]] | None:
    """Return the first error of a log, with the notes that follow it; None if it has no error."""
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
        if place.get("line") is None and below and (named := _POSITION.match(below[0])):
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


# --------------------------------------------------------------------------------------------------
# Refusals of a compiler as errors.

LAST_WORDS = 400
"""Most characters of a compiler's output or of a line that an error quotes."""
_MOST_NOTES = 2


def refusal(stage: str, log: str, text: str = "") -> CompileError:
    """Return the first error of a compiler's log as a CompileError, with its line and its notes; if
    the log has no error, its last words."""
    first = first_error(log)
    if first is None:
        because = " ".join(log.split())[-LAST_WORDS:] or "it says nothing"
        return CompileError(stage, because, text or None)
    error, notes = first
    words = [error.words, *(_note(note) for note in notes[:_MOST_NOTES])]
    hint = ""
    if error.fix:
        hint = f"{error.fix} at column {error.column} of line {error.line}"
    line = len(text.rstrip().split("\n")) if error.is_at_end and text else error.line
    return CompileError(stage, "; ".join(words), text or None, hint, line)


def _note(note: Message) -> str:
    return note.words if note.line is None else f"{note.words} (line {note.line})"


def require_kernel(stage: str, names: Collection[str], source: Source) -> None:
    """Errors: CompileError unless `names`, the kernels of a text, has only the source's kernel."""
    if set(names) == {source.name}:
        return
    others = [name for name in names if name != source.name]
    listed = ", ".join(sorted(names, key=lambda name: name != source.name))
    has = f"has the kernels {listed}" if names else "has no kernel"
    if source.name not in names:
        raise missing_kernel(stage, source, f"the text {has}")
    hint = f"{source.name} alone, or {others[0]} as a function that it calls"
    raise CompileError(stage, f"the text {has}, and one is run", source.text, hint)


def missing_kernel(stage: str, source: Source, because: str = "") -> CompileError:
    """Return the error for a text without the kernel of its source."""
    original = source.original
    texts = () if original is None else original.text.split("\n")
    heads = (line.strip() for line in texts if f"{source.name}(" in line)
    head = next(heads, source.name)
    because = f"{because or 'the text has no kernel'}, and {source.name} is run"
    line = _first_edit(texts, source.text.split("\n")) if texts else None
    hint = f"as before: {head}" if texts else f"a kernel with the name {source.name}"
    return CompileError(stage, because, source.text, hint, line)


def require_arguments(stage: str, count: int, source: Source, more: int = 0) -> None:
    """Errors: CompileError unless a kernel takes as many arguments as it is launched with: one per
    slot that it uses, and `more`."""
    launched = len(source.slots) + more
    if count != launched:
        because = f"{source.name} takes {plural(count, 'argument')}"
        because += f", and is launched with {launched}"
        names = ", ".join(f"p{slot}" for slot in source.slots)
        raise CompileError(stage, because, source.text, f"its arguments: {names}")


@contextmanager
def errors_in(source: Source) -> Iterator[None]:
    """Raise a CompileError of the block as an error about a line of `source`: see `about_line`."""
    try:
        yield
    except CompileError as error:
        raise about_line(error, source) from error


def about_line(error: CompileError, source: Source) -> CompileError:
    """Return a compiler's error with the source, the text of its line, and the operation that the
    line computes. For an edited line it also has the text before the edit, and the operation of
    that text. An error at the unedited end of an edited text gets the first edited line.
    """
    line, because, hint = error.line, error.because, error.hint
    lines, before = source.text.split("\n"), _lines_before(source)
    edit = _first_edit(before, lines) if before else None
    if line is not None:  # the text that was compiled may have more lines
        line = min(line, _last_line(lines))
    if edit is not None and _is_past_edits(line, before, lines):
        because += f" (at the end, line {line}; what was edited first is line {edit})"
        line = edit
    if line is not None and 0 < line <= len(lines):
        more, other_hint = line_words(source, line)
        because, hint = because + more, hint or other_hint
    return CompileError(
        error.stage, because, source.text, hint or _default_hint(source, line, edit), line
    )


def line_words(source: Source, line: int) -> tuple[str, str]:
    """Return what an error says of its line (its text, the text before the edit, the operation of
    that text), and a hint, "" if there is none."""
    lines, before = source.text.split("\n"), _lines_before(source)
    words, hint = f"; line {line} is {_excerpt(lines[line - 1])}", ""
    old = line_before(before or lines, lines, line)
    was = before[old - 1] if before and old else ""
    if was and was != lines[line - 1]:
        words += f", before the edit {_excerpt(was)}"
        hint = f"line {line} as it was: {_excerpt(was)}"
    elif before and not old:
        hint = f"the text without line {line}"
    return words + _operation(source, old), hint


def _lines_before(source: Source) -> list[str]:
    """Return the lines of the text before it was edited; none where it was not edited."""
    return [] if source.original is None else source.original.text.split("\n")


def _last_line(lines: Sequence[str]) -> int:
    """Return the number of the last line that is not empty."""
    numbers = (n for n in range(len(lines), 0, -1) if lines[n - 1].strip())
    return next(numbers, 1)


def _is_past_edits(line: int | None, before: Sequence[str], lines: Sequence[str]) -> bool:
    """Whether an error is at the end of a text whose last line is not edited: its cause may be
    anywhere."""
    if line is None or line < _last_line(lines):
        return False
    old = line_before(before, lines, line)
    return old > 0 and before[old - 1] == lines[line - 1]


def _first_edit(before: Sequence[str], lines: Sequence[str]) -> int | None:
    """Return the first line of a text that was changed, or that follows a deleted one."""
    change = _first_change(before, lines)
    return None if change is None else min(change[3] + 1, len(lines))


def _first_deletion(before: Sequence[str], lines: Sequence[str]) -> str:
    """Return the first line that the first edit deleted, "" if that edit is not a deletion."""
    change = _first_change(before, lines)
    return before[change[1]] if change is not None and change[0] == "delete" else ""


def _first_change(
    before: Sequence[str], lines: Sequence[str]
) -> tuple[str, int, int, int, int] | None:
    matcher = SequenceMatcher(None, before, lines, autojunk=False)
    return next((code for code in matcher.get_opcodes() if code[0] != "equal"), None)


def _operation(source: Source, line: int) -> str:
    """Return ", the code of ADD" for a line of the unedited text, "" if that is not known."""
    original = source.original or source
    places = original.lines[line - 1] if 0 < line <= len(original.lines) else ()
    if not places or not original.linear:
        return ""
    node = original.linear[places[0]]
    value = node.src[1] if node.op is Ops.SET else node  # the value of a register
    return f", the code of {value.op.name}"


def _default_hint(source: Source, line: int | None, edit: int | None) -> str:
    """Return a hint for an error without one; `edit` is the first edited line."""
    deleted = _first_deletion(_lines_before(source), source.text.split("\n"))
    if deleted and edit == line:
        return f"{_excerpt(deleted)} before line {edit}, as before the edit"
    if edit is not None:
        return f"the text as it was before the edit, which begins at line {edit}"
    if not source.is_handwritten:
        return "other opts, or another device: nobody edited this text"
    return "another text" if line is None else f"line {line} written otherwise"


def _excerpt(line: str) -> str:
    words = "".join(c if c.isprintable() else " " for c in line.strip()) or "empty"
    return words if len(words) <= LAST_WORDS else f"{words[:LAST_WORDS]}.."


def line_before(before: Sequence[str], lines: Sequence[str], number: int) -> int:
    """Return the number that a line of an edited text had before the edit; 0 for an inserted line.
    Lines that replace equally many lines have their numbers; other replaced lines count as
    inserted."""
    matcher = SequenceMatcher(None, before, lines, autojunk=False)
    for tag, first, end, start, stop in matcher.get_opcodes():
        if start < number <= stop:
            is_same = tag == "equal" or end - first == stop - start
            return first + number - start if is_same else 0
    return 0
