"""The changes of a record that its pages do not have yet: tables only grow, and values are set."""

from __future__ import annotations

from typing import Any

from workbench.viz.schema.record import NodeColumns

APPENDED = ("nodes", "readings", "texts", "rules", "passes", "lines", "variants")
"""The tables of a record that grow: lists, but for "nodes", which has a list for each column."""
Patch = dict[str, Any]
Path = tuple[str | int, ...]


class Changes:
    """The changes of a record since the last patch."""

    def __init__(self, record: dict[str, Any]):
        self._record = record
        self._sizes: dict[str, int] = dict.fromkeys(APPENDED, 0)
        self._set: dict[Path, Any] = {}

    def put(self, path: Path, value: Any) -> None:
        """Set one value of the record, so that the next patch says so."""
        at: Any = self._record
        for step in path[:-1]:
            at = _at(at, step)
        last = path[-1]
        if isinstance(last, int) or isinstance(at, dict):
            at[last] = value
        else:
            setattr(at, last, value)
        self._set[path] = value

    def patch(self) -> Patch:
        """Return the rows added and the values set since the last call."""
        append: dict[str, Any] = {}
        begins = dict(self._sizes)
        for name, start in self._sizes.items():
            table = self._record[name]
            if name == "nodes":
                fields = (
                    getattr(table, name) for name in NodeColumns.__struct_fields__
                )
                new: Any = NodeColumns(*(column[start:] for column in fields))
                size = len(table.op)
            else:
                new, size = table[start:], len(table)
            if size > start:
                append[name], self._sizes[name] = new, size
        updates = [
            [list(path), value]
            for path, value in self._set.items()
            if not _is_new(path, begins)
        ]
        self._set.clear()
        return {"append": append, "set": updates}


def _at(value: Any, step: str | int) -> Any:
    """Return a field of a row, or what a list or a dict has at a place."""
    is_inside = isinstance(step, int) or isinstance(value, dict)
    return value[step] if is_inside else getattr(value, str(step))


def _is_new(path: Path, begins: dict[str, int]) -> bool:
    """Whether a path leads into a row that the patch appends whole: new rows start at `begins`."""
    table, *steps = path
    if not steps:
        return False
    row = steps[-1] if table == "nodes" else steps[0]
    return table in begins and isinstance(row, int) and row >= begins[str(table)]
