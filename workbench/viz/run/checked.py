"""The check of a run from a file: its columns are of one length, and all places exist."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import asdict

from workbench.viz.schema.run import RunGaps, RunMemory, RunRecord, RunSpans

_TABLES = frozenset({"memories", "before_bytes"})
"""Lists of a table that are no columns of its rows."""


def checked_run(record: RunRecord) -> RunRecord:
    """Return the record of a run. Errors: ValueError for one that names what it does not have."""
    spans, gaps, memory = record.spans, record.gaps, record.memory
    for table in (spans, gaps, memory):
        _check_columns(table)
    lanes, names, kernels = len(record.lanes), len(record.names), len(record.kernels)
    _check_places(spans.kind, len(record.kinds))
    _check_places(spans.lane, lanes)
    _check_places(gaps.lane, lanes)
    _check_places(gaps.cause, len(record.causes))
    _check_places(memory.memory, len(memory.memories))
    _check_places(memory.label, names, least=-1)
    _check_places([row.span for row in record.errors], len(spans.kind))
    _check_places([row.kernel for row in record.help], kernels)
    of_kernels = {n for n, kind in enumerate(record.kinds) if kind in ("kernel", "part")}
    subjects = list(zip(spans.kind, spans.subject, strict=True))
    _check_places([subject for kind, subject in subjects if kind in of_kernels], kernels)
    _check_places([s for kind, s in subjects if kind not in of_kernels], names, least=-1)
    if len(memory.before_bytes) != len(memory.memories):
        raise ValueError("its memories have no bytes")
    return record


def _check_columns(table: RunSpans | RunGaps | RunMemory) -> None:
    columns = asdict(table).items()
    lengths = {len(c) for name, c in columns if isinstance(c, list) and name not in _TABLES}
    if len(lengths) > 1:
        raise ValueError("its columns have several lengths")


def _check_places(places: Sequence[int], count: int, least: int = 0) -> None:
    if any(not least <= place < count for place in places):
        raise ValueError("it names a row that is not there")
