"""Sources on disk: a kernel is lowered and written once for this processor, not once a session.

A source follows from the kernel, the Target and the code of this package, so its key is made of
these. The files are those of the object cache, with its protection.
"""

from __future__ import annotations

from typing import TypedDict

from workbench.backends.native.code_stamp import code_stamp
from workbench.backends.native.object_cache import get, store_object
from workbench.backends.native.processor import Processor
from workbench.backends.program.launch import LaunchAxis, LaunchShape
from workbench.backends.program.text import Source
from workbench.base.cache import key_of
from workbench.base.dtypes import dtypes
from workbench.base.errors import WorkbenchError
from workbench.base.typed import to_json, typed_json
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import LoopRole
from workbench.ir.text.printer import to_text


class KeptSource(TypedDict):
    """A Source as plain data, but for what is only shown: see its fields."""

    name: str
    language: str
    text: str
    scratch_bytes: int
    shared_bytes: int
    params: list[tuple[str, int]]
    launch: list[tuple[LoopRole, str, int]]
    aligned: list[int]


def source_row(source: Source) -> KeptSource:
    """Return a source as plain data."""
    return {
        "name": source.name,
        "language": source.language,
        "text": source.text,
        "scratch_bytes": source.scratch_bytes,
        "shared_bytes": source.shared_bytes,
        "params": [(str(dtype), size) for dtype, size in source.params],
        "launch": [(axis.role, axis.name, axis.extent) for axis in source.launch.axes],
        "aligned": list(source.aligned),
    }


def source_of_row(row: KeptSource, block: UOp | None = None) -> Source:
    """Return the source of a row. Errors: DTypeError for a dtype that does not exist."""
    return Source(
        row["name"],
        row["language"],
        row["text"],
        tuple([(dtypes.named(name), size) for name, size in row["params"]]),
        row["scratch_bytes"],
        LaunchShape(tuple([LaunchAxis(*axis) for axis in row["launch"]])),
        tuple(row["aligned"]),
        block,
        shared_bytes=row["shared_bytes"],
    )


def source_key(kernel: UOp, info: Processor) -> str | None:
    """Return the key of the source of a kernel; None for a device whose code may change in this
    process: one that is not of this package."""
    kind = type(info)
    stamp = code_stamp()
    if not stamp or not kind.__module__.startswith("workbench."):
        return None
    return key_of("source", stamp, kind.__qualname__, repr(info.target), to_text(kernel))


def kept_source(key: str) -> Source | None:
    """Return the source stored under a key, or None."""
    content = get(key)
    if content is None:
        return None
    try:
        return source_of_row(typed_json(content.decode(), KeptSource))
    except (ValueError, WorkbenchError):
        return None


def keep_source(key: str, source: Source) -> None:
    """Store a source, unless it has a statement tree."""
    if source.block is None:
        store_object(key, to_json(source_row(source)).encode())
