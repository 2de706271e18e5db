"""The remedy for a refused edit of a program: the edit undone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import SequenceMatcher

from workbench.base.errors import ParseError, VerifyError
from workbench.base.words import plural
from workbench.ir.node.uop import UOp
from workbench.ir.text.printer import to_text

_MOST_CHARACTERS = 200


@contextmanager
def hints_of_edit(code: str | Sequence[UOp], own: Sequence[UOp] = ()) -> Iterator[None]:
    """Have errors of a program say what to try where they do not themselves. `own` is the program
    before it was edited, empty where there is none."""
    try:
        yield
    except (ParseError, VerifyError) as error:
        if not error.hint:
            error.hint = _hint(code, own, error.line)
        raise


def _hint(code: str | Sequence[UOp], own: Sequence[UOp], line: int | None) -> str:
    if not isinstance(code, str):
        return "the steps of emulate(kernel).linear, with other edits"
    before, lines = _lines(to_text(own)) if own else [], _lines(code)
    return _undone(before, lines, line) or "the text of emulate(kernel).code, edited"


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.rstrip().split("\n")]


def _undone(before: Sequence[str], lines: Sequence[str], line: int | None) -> str:
    """Return what the edit of a line, or the last one before it, replaced; without a line, what the
    first edit did; "" for a text of which nothing is as before."""
    codes = SequenceMatcher(None, before, lines, autojunk=False).get_opcodes()
    edits = [code for code in codes if code[0] != "equal"]
    if not edits or len(edits) == len(codes):
        return ""
    earlier = [edit for edit in edits if line is not None and edit[3] < line]
    _, first, end, start, stop = earlier[-1] if earlier else edits[0]
    if line is not None and start < line <= stop and end - first == stop - start:
        first, end, start = first + line - 1 - start, first + line - start, line - 1
    if first == end:
        count = stop - start
        which = f"line {start + 1}" if count == 1 else f"lines {start + 1} to {stop}"
        hint = f"the text without {which}"
    else:
        more = end - first - 1
        rest = f", and the {plural(more, 'line')} after it" if more else ""
        old = before[first][:_MOST_CHARACTERS]
        hint = f"at line {start + 1}, as it was: {old}{rest}"
    is_one_of_many = line is None and len(edits) > 1
    return f"{hint} (the first of {len(edits)} edits)" if is_one_of_many else hint
