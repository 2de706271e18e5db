"""The fields in the bytes of a protocol buffer, counted before a parser takes memory for them: an
empty message is two bytes of a file, and a hundred in memory.

Source: https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

from typing import Any

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""How the value of a field is written; others are the begin and the end of a group."""


def has_more_fields(data: bytes, descriptor: Any, most: int) -> bool:
    """Whether a message has more than `most` fields, with those of the messages in it. What is not
    well-formed is left to the parser, which refuses it."""
    messages: dict[str, dict[int, Any]] = {}

    def inner_of(kind: Any) -> dict[int, Any]:
        """Return the kinds of the messages in a message, by the numbers of their fields."""
        if kind.full_name not in messages:
            fields = kind.fields_by_number.items()
            messages[kind.full_name] = {n: f.message_type for n, f in fields if f.message_type}
        return messages[kind.full_name]

    count, at, end, inner = 0, 0, len(data), inner_of(descriptor)
    outer: list[tuple[int, dict[int, Any]]] = []  # the ends and kinds of the messages around
    try:
        while True:
            while at >= end and outer:
                end, inner = outer.pop()
            if at >= end:
                return False
            count += 1
            if count > most:
                return True
            tag, at = _varint(data, at)
            if tag & 7 == _VARINT:
                _, at = _varint(data, at)
            elif tag & 7 == _BYTES:
                length, at = _varint(data, at)
                if length and tag >> 3 in inner:
                    outer.append((end, inner))
                    end, inner = min(at + length, end), inner_of(inner[tag >> 3])
                else:
                    at += length
            else:
                at += {_FIXED64: 8, _FIXED32: 4}.get(tag & 7, 0)
    except IndexError:  # it ends within a number
        return False


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
