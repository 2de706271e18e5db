"""Passes as text: a line each, with their effect and their time."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.measure.kernel_time import seconds_text
from workbench.viz.model.words import plural
from workbench.viz.schema.record import PassOutcome


def passes_text(rows: Sequence[PassOutcome], times: bool = True) -> str:
    """Return the rows as text; without `times` it is the same on every machine."""
    width = max((2 * r.depth + len(r.name) for r in rows), default=0)
    lines = []
    for row in rows:
        name = "  " * row.depth + row.name
        time = f"  {seconds_text(row.seconds):>8}" if times else ""
        lines.append(f"{name:{width}}{time}  {outcome(row)}")
    return "\n".join(lines)


def outcome(row: PassOutcome) -> str:
    """Return what came of a pass: "12 rewrites", "changed nothing", or its error."""
    if row.error:
        return f"failed: {row.error}"
    if row.matches:
        lost = f" ({row.dropped:,} not kept)" if row.dropped else ""
        return plural(row.matches, row.unit) + lost
    return "done" if row.changed else "changed nothing"
