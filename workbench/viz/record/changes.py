"""Changes of a record since its pages were last updated: tables only grow, and values are set."""

from __future__ import annotations

from typing import Any

from workbench.viz.schema.messages import AppendedRows, RecordPatch
from workbench.viz.schema.record import NodeColumns, PageRecord

Path = tuple[str | int, ...]
"""The path of a value: names of fields, keys, and places of rows."""
GROWING = AppendedRows.__struct_fields__
"""The tables of a record that grow: lists, except "nodes", which has a list for each column."""
_COLUMNS = NodeColumns.__struct_fields__


class Changes:
    """The changes of a record since the last patch."""

    def __init__(self, record: PageRecord):
        self._record = record
        self._sizes: dict[str, int] = dict.fromkeys(GROWING, 0)
        self._set: dict[Path, Any] = {}

    def put(self, path: Path, value: Any) -> None:
        """Set one value of the record; the next patch has it."""
        at: Any = self._record
        for step in path[:-1]:
            at = _at(at, step)
        last = path[-1]
        if isinstance(last, int) or isinstance(at, dict):
            at[last] = value
        else:
            setattr(at, last, value)
        self._set[path] = value

    def patch(self) -> RecordPatch:
        """Return the rows added and the values set since the last call."""
        append, begins = AppendedRows(), dict(self._sizes)
        for name, start in begins.items():
            table = getattr(self._record, name)
            size = len(table.op if isinstance(table, NodeColumns) else table)
            if size > start:
                setattr(append, name, _rows_from(table, start))
                self._sizes[name] = size
        updates = [
            (list(path), value) for path, value in self._set.items() if not _is_new(path, begins)
        ]
        self._set.clear()
        return RecordPatch(append, updates)


def _at(value: Any, step: str | int) -> Any:
    """Return a field of a row, or the item of a list or a dict."""
    is_inside = isinstance(step, int) or isinstance(value, dict)
    return value[step] if is_inside else getattr(value, str(step))


def _rows_from(table: Any, start: int) -> Any:
    """Return the rows of a table from place `start` on."""
    if isinstance(table, NodeColumns):
        return NodeColumns(*(getattr(table, name)[start:] for name in _COLUMNS))
    return table[start:]


def _is_new(path: Path, begins: dict[str, int]) -> bool:
    """Whether a path leads into a row that the patch appends whole: new rows start at `begins`."""
    table, *steps = path
    if not steps:
        return False
    row = steps[-1] if table == "nodes" else steps[0]
    return table in begins and isinstance(row, int) and row >= begins[str(table)]
