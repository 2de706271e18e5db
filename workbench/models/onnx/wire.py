"""The fields in the bytes of a protocol buffer, counted before a parser takes memory for them: an
empty message is two bytes of a file, and a hundred in memory.

Source: https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

from typing import Any

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""How the value of a field is written; others are the begin and the end of a group."""
_INTEGER_TYPES = frozenset({3, 4, 5, 8, 13, 14, 17, 18})
"""protobuf's numbers of the types that are written at variable length."""
_INTEGERS = "integers"
"""The kind of a field of these types: as bytes, it has many, packed."""


def excess_of(data: bytes, descriptor: Any, most: int, most_packed: int) -> str:
    """Return what a message has too much of, with the messages in it: more than `most` fields, or
    than `most_packed` bytes of packed integers; "" if neither. What is not well-formed is left to
    the parser, which refuses it."""
    messages: dict[str, dict[int, Any]] = {}

    def inner_of(kind: Any) -> dict[int, Any]:
        """Return the kinds of the messages in a message, and _INTEGERS, by the numbers of their
        fields."""
        if kind.full_name not in messages:
            messages[kind.full_name] = {
                number: field.message_type or _INTEGERS
                for number, field in kind.fields_by_number.items()
                if field.message_type or field.type in _INTEGER_TYPES
            }
        return messages[kind.full_name]

    count, packed, at, end, inner = 0, 0, 0, len(data), inner_of(descriptor)
    outer: list[tuple[int, dict[int, Any]]] = []  # the ends and kinds of the messages around
    try:
        while True:
            while at >= end and outer:
                end, inner = outer.pop()
            if at >= end:
                return ""
            count += 1
            if count > most:
                return f"more than {most:,} fields"
            tag, at = _varint(data, at)
            if tag & 7 == _VARINT:
                _, at = _varint(data, at)
            elif tag & 7 == _BYTES:
                length, at = _varint(data, at)
                kind = inner.get(tag >> 3)
                if length and kind not in (None, _INTEGERS):
                    outer.append((end, inner))
                    end, inner = min(at + length, end), inner_of(kind)
                    continue
                at += length
                packed += length if kind is _INTEGERS else 0
                if packed > most_packed:
                    return f"more than {most_packed:,} bytes of packed integers"
            else:
                at += {_FIXED64: 8, _FIXED32: 4}.get(tag & 7, 0)
    except IndexError:  # it ends within a number
        return ""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of 7 bits a byte, the lowest first, and the place after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
