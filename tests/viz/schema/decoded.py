"""What Python says, decoded as the types that the schema gives it: messages, replies, patches."""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from msgspec.structs import fields

from workbench.base.typed import typed
from workbench.viz.schema.messages import (
    NoticeMessage,
    PatchMessage,
    RecordPatch,
    RenewedMessage,
    ReplyMessage,
    StatusMessage,
)
from workbench.viz.schema.record import PageRecord
from workbench.viz.session.requests import KINDS


def message(plain: Any) -> Any:
    """Return a message. Errors: ValueError for what is not one."""
    value = typed(plain, _kind(plain))
    patch(getattr(value, "patch", None))
    return value


def patch(value: RecordPatch | None) -> None:
    """Errors: ValueError for a patch that sets what is not of the type of its place."""
    for path, content in value.set if value is not None else ():
        kind: Any = PageRecord
        for step in path:
            kind = _part(kind, step)
        typed(content, kind)


def result(do: str, plain: Any) -> Any:
    """Return what is replied to a request. Errors: ValueError for another form."""
    return typed(plain, KINDS[do].reply)


def _kind(plain: Any) -> type:
    if not isinstance(plain, dict):
        raise ValueError("a message has fields")
    if "ok" in plain:
        return ReplyMessage
    if "status" in plain:
        return StatusMessage
    if "notice" in plain:
        return NoticeMessage
    return RenewedMessage if "result" in plain else PatchMessage


def _part(kind: Any, step: str | int) -> Any:
    """Return the type of a field, or of a row."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _part(parts[0], step)
    if origin in (Union, UnionType):
        (one,) = (part for part in parts if part is not NoneType)
        return _part(one, step)
    if origin in (list, dict):
        if isinstance(step, int) is (origin is list):
            return parts[-1]
        raise ValueError(f"{kind} has no {step}")
    if hasattr(kind, "__struct_fields__") and step in (types := _types(kind)):
        return types[step]
    raise ValueError(f"{kind} has no {step}")


@cache
def _types(kind: Any) -> dict[Any, Any]:
    """Return the types of a struct's fields: to ask msgspec evaluates all of its annotations."""
    return {field.encode_name: field.type for field in fields(kind)}
