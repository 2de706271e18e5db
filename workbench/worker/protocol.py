"""Messages between two processes on pipes: a JSON head, and raw bytes after it.

    8 bytes: length of the head | head | the bytes of each blob, whose sizes the head gives

Nothing is pickled: a message can contain only data.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import IO, Any

_LENGTH = struct.Struct("<Q")
MOST_HEAD = 1 << 30
"""Most bytes of a head; a longer one is not a valid message."""
Head = dict[str, Any]
Blob = bytes | bytearray | memoryview


def send(stream: IO[bytes], head: Head, blobs: Sequence[Blob] = ()) -> None:
    """Write one message and flush."""
    sizes = [memoryview(blob).nbytes for blob in blobs]
    text = json.dumps(head | {"sizes": sizes}).encode()
    stream.write(_LENGTH.pack(len(text)) + text)
    for blob in blobs:
        stream.write(blob)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[Head, list[bytearray]]:
    """Return the next message, waiting for it.

    Errors: EOFError where the stream ends, also in the middle of a message; ValueError for bytes
    that are not a message.
    """
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    if length > MOST_HEAD:
        raise ValueError(f"a head of {length} bytes")
    head = json.loads(bytes(_exactly(stream, length)))
    return head, [_exactly(stream, size) for size in head.pop("sizes")]


def _exactly(stream: IO[bytes], size: int) -> bytearray:
    data = bytearray(size)
    view, offset = memoryview(data), 0
    while offset < size:
        piece = stream.read(min(size - offset, 1 << 20))
        if not piece:
            raise EOFError
        view[offset : offset + len(piece)] = piece
        offset += len(piece)
    return data
