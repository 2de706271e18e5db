"""Validation of a page's requests: the types of the schema, and positions that the record has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from msgspec import inspect as types
from msgspec.structs import FieldInfo, fields

from workbench.base.errors import WorkbenchError
from workbench.base.typed import typed
from workbench.base.words import cut
from workbench.viz.schema.record import PageRecord
from workbench.viz.schema.requests import AnyRequest, Request

KINDS: Mapping[str, type[Request]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(AnyRequest)
}
"""The type of each request, by its "do"."""
_NAMES: Mapping[type, str] = {
    types.IntType: "number",
    types.BoolType: "flag",
    types.NoneType: "null",
}


def checked(request: object, record: PageRecord) -> Request:
    """Return a request about `record`, as its type.

    Errors: WorkbenchError for a message that is not a request, and for one that names a missing
    place.
    """
    try:
        message: Request = typed(request, AnyRequest)  # type: ignore[arg-type]  # a union
    except ValueError as error:
        raise _refusal(request, str(error)) from None
    for name, table in _TABLES[type(message)].items():
        value = getattr(message, name)
        places = value if isinstance(value, list) else [value]
        if any(isinstance(p, int) and p >= _size(record, table) for p in places):
            raise _misfit(type(message), _field(type(message), name), value)
    return message


def arguments(message: Request) -> Mapping[str, Any]:
    """Return the arguments of a request, by name."""
    return {f: getattr(message, f) for f in message.__struct_fields__ if f != "id"}


def _table(info: types.Type) -> tuple[str, ...] | None:
    """Return the path of the table of the record in which a type is a place; None for other
    types."""
    match info:
        case types.Metadata(extra={"table": way}):
            return tuple(way)
        case types.Metadata(type=inner) | types.ListType(item_type=inner):
            return _table(inner)
        case types.UnionType(types=parts):
            return next(filter(None, map(_table, parts)), None)
    return None


_TABLES = {
    kind: {f.name: way for f in fields(kind) if (way := _table(types.type_info(f.type)))}
    for kind in KINDS.values()
}


def _size(record: PageRecord, table: tuple[str, ...]) -> int:
    rows: Any = record
    for name in table:
        rows = getattr(rows, name)
    return len(rows)


# the words of refusals


def _refusal(request: object, because: str) -> WorkbenchError:
    do = request.get("do") if isinstance(request, dict) else None
    if not isinstance(request, dict) or not isinstance(do, str):
        return WorkbenchError("this is not a request", 'it has no "do"', '{"do": "ping"}')
    if do not in KINDS:
        return WorkbenchError(f"cannot do {do[:40]!r}", f"the requests are {', '.join(KINDS)}")
    kind = KINDS[do]
    fields_by_name = {field.encode_name: field for field in fields(kind)}
    unknown = sorted(str(name) for name in request if name not in {"do", *fields_by_name})
    if unknown:
        what = f"{do} does not take {', '.join(unknown)[:80]}"
        names = ", ".join(name for name in fields_by_name if name != "id")
        return WorkbenchError(what, f"it takes {names or 'nothing'}", _example(kind))
    for name, field in fields_by_name.items():
        if name not in request and field.required:
            what = f"{do} needs {name}"
            return WorkbenchError(what, "the request has none", _example(kind))
        try:
            typed(request.get(name), field.type)
        except ValueError:
            return _misfit(kind, field, request.get(name))
    return WorkbenchError(f"{do} cannot be read", because, _example(kind))


def _misfit(kind: type[Request], field: FieldInfo, value: Any) -> WorkbenchError:
    what = f"{kind.__struct_config__.tag} cannot take this {field.encode_name}"
    because = f"{_short(value)} is not a {_title(types.type_info(field.type))} here"
    return WorkbenchError(what, because, _example(kind))


def _example(kind: type[Request]) -> str:
    words = {f.encode_name: _title(types.type_info(f.type)) for f in fields(kind)}
    parts = [f'"{name}": <{title}>' for name, title in words.items() if name != "id"]
    return "{" + ", ".join([f'"do": "{kind.__struct_config__.tag}"', *parts]) + "}"


def _field(kind: type[Request], name: str) -> FieldInfo:
    return next(field for field in fields(kind) if field.name == name)


def _title(info: types.Type) -> str:
    if isinstance(info, types.UnionType):
        return " or ".join(map(_title, info.types))
    if isinstance(info, types.Metadata):
        return str((info.extra_json_schema or {})["title"])
    return _NAMES[type(info)]


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except RecursionError:
        text = f"a {type(value).__name__} of very many levels"
    return cut(text, 60)
