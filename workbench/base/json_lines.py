"""Files of JSON with a row a line: each line that is no row is refused by itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from workbench.base.errors import FileError, WorkbenchError, cut, file_error

T = TypeVar("T")
RefusedLine = tuple[int, str]
"""The number of a line, from 1, and why it is no row."""
MOST_REASONS = 3
"""Most reasons that a complaint names."""


def read_text(path: str | os.PathLike[str], most_bytes: int, hint: str) -> str:
    """Return the text of a file. Errors: FileError for one that cannot be read or has more than
    `most_bytes`; `hint` says what file fits."""
    try:
        with open(path, "rb") as file:
            data = file.read(most_bytes + 1)
    except (OSError, ValueError, TypeError) as error:
        raise file_error(path, error, hint) from None
    if len(data) > most_bytes:
        because = f"it has more than {most_bytes:,} bytes"
        raise FileError(f"cannot read {os.fspath(path)!r:.200}", because, hint)
    return data.decode("utf-8-sig", errors="replace")


def parse_lines(text: str, row: Callable[[str], T]) -> tuple[list[T], list[RefusedLine]]:
    """Return the rows of a text, and the lines that are none. `row` returns the row of a line, or
    raises a ValueError or a WorkbenchError that says why it is none."""
    rows: list[T] = []
    refused: list[RefusedLine] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            rows.append(row(line))
        except (ValueError, WorkbenchError) as error:
            because = error.because if isinstance(error, WorkbenchError) else str(error)
            refused.append((number, cut(because, 120)))
    return rows, refused


def refusals(refused: Sequence[RefusedLine]) -> list[str]:
    """Return the first reasons with the numbers of their lines, then how many more there are."""
    reasons = [f"line {number}: {reason}" for number, reason in refused[:MOST_REASONS]]
    if len(refused) > MOST_REASONS:
        reasons.append(f"{len(refused) - MOST_REASONS} more are no rows")
    return reasons
