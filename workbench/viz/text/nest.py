"""A loop nest as text: a line for each loop, with its access to each buffer, and the statements."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.viz.model.kinds import KIND_LOOKS
from workbench.viz.schema.variant import Nest, NestRow, UseRow


def nest_text(nest: Nest) -> str:
    """Return the rows as aligned text: per buffer `stride | bytes`."""
    names = [b.name for b in nest.buffers]
    heads = [" ".join(filter(None, (b.user, b.name, b.role))) for b in nest.buffers]
    cells = [(_axis_text(r), [_use_text(r.uses.get(n)) for n in names]) for r in nest.rows]
    axes = [(a, c) for (a, c), r in zip(cells, nest.rows, strict=True) if r.axis]
    first = max([len("loop"), *[len(a) for a, _ in axes]])
    widths = [max([len(h), *[len(c[i]) for _, c in axes]]) for i, h in enumerate(heads)]
    lines = [_aligned("loop", heads, first, widths)]
    for (axis, uses), row in zip(cells, nest.rows, strict=True):
        if row.axis:
            lines.append(_aligned(axis, uses, first, widths))
        else:
            lines += ["  " * row.depth + line for line in row.text.split("\n")]
    return "\n".join(lines)


def _aligned(first: str, cells: Sequence[str], width: int, widths: Sequence[int]) -> str:
    parts = [f"{c:{w}}" for c, w in zip(cells, widths, strict=True)]
    return "   ".join([f"{first:{width}}", *parts]).rstrip()


def _axis_text(row: NestRow) -> str:
    if not row.axis:
        return ""
    note = " (vector)" if row.vector else ""
    letter = KIND_LOOKS[row.axis_kind].letter
    return f"{'  ' * row.depth}{letter} {row.axis} x{row.size}{note}"


def _use_text(use: UseRow | None) -> str:
    return "" if use is None else f"{use.stride} | {use.bytes}"
