"""Comparison of variants in columns, for the page; in Python it is `workbench.compare`."""

from __future__ import annotations

from workbench.base.errors import WorkbenchError
from workbench.viz.model.differences import kernel_sections
from workbench.viz.schema.messages import ComparedRow, ComparedSection, CompareReply
from workbench.viz.session.live_record import LiveRecord


def compare(session: LiveRecord, variants: list[int]) -> CompareReply:
    """Return the differences of variants: all that is known without running them. Their times and
    checks are in the record.

    Errors: WorkbenchError for edited source.
    """
    rows = [session.row(variant) for variant in variants]
    for row in rows:
        if row.edited:
            what, because = f"{row.name} cannot be compared", "its code was edited by hand"
            raise WorkbenchError(what, because, "the pane Side by side, for two texts")
    kernels = [session.kernels[variant] for variant in variants]
    sections = [
        ComparedSection(
            section.title,
            [ComparedRow(row.label, list(row.cells), row.differs) for row in section.rows],
            section.text,
        )
        for section in kernel_sections(kernels)
    ]
    return CompareReply([row.name for row in rows], sections)
