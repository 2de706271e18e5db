"""Validation of plain data from outside (JSON) against a type."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

Amount = Annotated[float, Meta(ge=0, le=sys.float_info.max)]
"""A number that is neither negative, infinite nor NaN."""
Positive = Annotated[float, Meta(gt=0, le=sys.float_info.max)]
Count = Annotated[int, Meta(ge=0)]
T = TypeVar("T")


def typed(data: Any, kind: type[T]) -> T:
    """Return plain data as a value of `kind`, a type that msgspec supports.

    Errors: ValueError, with the reason, for other data.
    """
    try:
        return msgspec.convert(data, kind)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("a name in it has half of a character") from None


def typed_json(text: str, kind: type[T]) -> T:
    """Return JSON text as a value of a type.

    Errors: ValueError, with the reason, for other text.
    """
    return typed(json_value(text), kind)


def json_value(text: str) -> Any:
    """Return JSON text as plain data.

    Errors: ValueError, with the reason, for other text, and for a key that an object has twice:
    readers differ in which value they take.
    """
    try:
        return json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"it has {twice!r:.40} twice")
    return data


def to_json(value: Any) -> str:
    """Return a value, of types that msgspec supports, as JSON in ASCII."""
    return json.dumps(plain(value))


def plain(value: Any) -> Any:
    """Return a value, of types that msgspec supports, as plain data: numbers, text, lists and
    dicts."""
    return msgspec.to_builtins(value)
