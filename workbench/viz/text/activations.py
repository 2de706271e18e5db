"""Values that the forward stores for the backward, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.viz.model.training.activations import Activation
from workbench.viz.model.words import bytes_text, kernel_number, plural

MOST_LISTED = 40
"""Most values that are printed."""


def activations_text(rows: Sequence[Activation]) -> str:
    """Return a line for each value, below their number and total; "" without any."""
    return "\n".join(_lines(rows)) if rows else ""


def _lines(rows: Sequence[Activation]) -> Iterator[str]:
    total = bytes_text(sum(row.bytes for row in rows))
    yield f"Stored for the backward: {plural(len(rows), 'value')}, {total}"
    for row in rows[:MOST_LISTED]:
        readers = ", ".join(str(kernel_number(reader)) for reader in row.readers)
        way = f"kernel {kernel_number(row.kernel)}, read by {readers}"
        line = "" if row.line is None else str(row.line)
        cells = [bytes_text(row.bytes), row.name, row.module, line, way]
        yield "  " + "  ".join(filter(None, cells))
    if len(rows) > MOST_LISTED:
        yield f"  and {len(rows) - MOST_LISTED} more"
