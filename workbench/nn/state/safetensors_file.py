"""Safetensors files: a header of JSON, then the bytes of all tensors.

The `safetensors` package checks each file, and writes it; it is imported when it is needed.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from workbench.backends.memory import Bytes
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import FileError, require
from workbench.base.files import part_file
from workbench.base.installation import library
from workbench.base.typed import Count, json_value, typed
from workbench.nn.state.byte_reader import Source, source_bytes
from workbench.nn.state.load_state import tensor_over
from workbench.tensor.operands.arguments import MOST_AXES, short, where
from workbench.tensor.tensor import Tensor

_LENGTH = struct.Struct("<Q")
"""The size of the header in bytes, which stands before it."""


def safe_load(fn: Source) -> dict[str, Tensor]:
    """Return the tensors of a .safetensors file by name, on the default device.

    If the device shares this process's memory, they use the file's pages in place, which are read
    when they are first needed. A write to a tensor does not change the file.
    Errors: FileError for a damaged file, or one with element types that are not supported;
    WorkbenchError without the `safetensors` package.
    """
    data, first, header = _verified(fn)
    return {
        name: _tensor(name, row, data[first:])
        for name, row in header.items()
        if name != "__metadata__"
    }


def safe_load_metadata(fn: Source) -> tuple[Tensor, int, dict[str, Any]]:
    """Return the bytes of a .safetensors file, the byte where the tensors begin, and its header.

    Errors: FileError for a damaged file; WorkbenchError without the `safetensors` package.
    """
    data, first, header = _verified(fn)
    return tensor_over(data, dtypes.uint8, data.shape), first, header


def safe_save(
    tensors: Mapping[str, Tensor],
    fn: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write tensors, and texts about them, to a .safetensors file.

    A file that is at `fn` is replaced when all is written; tensors that are mapped from it keep it.
    Errors: FileError for values that are not tensors; WorkbenchError where nothing can be written,
    or without the `safetensors` package.
    """
    require(tensors, Mapping, "safe_save: tensors", "nn.state.get_state_dict(model)")
    package = library("safetensors.numpy")
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for name, tensor in tensors.items():
        if not (isinstance(name, str) and isinstance(tensor, Tensor)):
            because = f"{short(name)} is {short(tensor)}, and must be a tensor"
            hint = "nn.state.get_state_dict(model)"
            raise FileError("cannot save a state dict", because, hint, where())
        arrays[name] = _array(tensor)
    with part_file(fn) as part:
        package.save_file(arrays, part, dict(metadata) if metadata else None)


def _array(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Return the values as a contiguous array; a dtype that numpy lacks is kept."""
    if tensor.dtype.in_numpy:
        return np.asarray(tensor.numpy(), order="C")
    word = dtypes.uint8 if tensor.dtype.itemsize == 1 else dtypes.uint16
    bits = tensor.realize().bitcast(word).numpy()
    return np.asarray(bits, order="C").view(tensor.dtype.numpy)


def _verified(fn: Source) -> tuple[Bytes, int, dict[str, Any]]:
    """Return a file's bytes, the byte where its tensors begin, and its header, all checked."""
    package = library("safetensors")
    data = source_bytes(fn)
    try:
        if isinstance(fn, Tensor):
            package.deserialize(data.tobytes())
        else:
            package.safe_open(fn, "np")
        (length,) = _LENGTH.unpack(bytes(data[: _LENGTH.size]))
        first = _LENGTH.size + length
        header = json_value(bytes(data[_LENGTH.size : first]).decode())
    except (package.SafetensorError, struct.error, ValueError, OSError) as error:
        raise FileError(
            f"cannot load {short(fn) if isinstance(fn, Tensor) else fn}",
            _fault(data) or f"it is not a whole .safetensors file: {error}"[:300],
            "the file from where it came, or who wrote it",
            where(),
        ) from error
    return data, first, header


class _Row(Struct, forbid_unknown_fields=True):
    """A tensor's row of a header. `data_offsets` are in bytes from the end of the header."""

    dtype: str
    shape: list[Count]
    data_offsets: tuple[Count, Count]


def _fault(data: Bytes) -> str:
    """Return what is wrong in a file, in words; "" for other faults."""
    if data.size < _LENGTH.size:
        return f"it has {data.size} bytes, and begins with {_LENGTH.size} for a length"
    (length,) = _LENGTH.unpack(bytes(data[: _LENGTH.size]))
    size = data.size - _LENGTH.size - length
    if size < 0:
        have = data.size - _LENGTH.size
        return f"its header has {length:,} bytes, and the file has {have:,} for it"
    try:
        text = bytes(data[_LENGTH.size : _LENGTH.size + length]).decode()
        header = typed(json_value(text), dict[str, Any])
        typed(header.pop("__metadata__", {}), dict[str, str])
        rows = typed(header, dict[str, _Row])
    except UnicodeDecodeError:
        return "its header is not text"
    except json.JSONDecodeError as error:
        return f"its header is not JSON: {error}"
    except ValueError as error:
        return f"its header is damaged: {error}"
    return next(_faults(rows, size), "")


def _faults(rows: Mapping[str, _Row], size: int) -> Iterator[str]:
    """Yield the faults of the rows of a header, which `size` bytes of elements follow."""
    needed = max((row.data_offsets[1] for row in rows.values()), default=0)
    if needed > size:
        yield f"its tensors have {needed:,} bytes, and the file has {size:,} for them"
    end = 0
    for name, row in sorted(rows.items(), key=lambda item: item[1].data_offsets):
        start, stop = row.data_offsets
        dtype, shape = _DTYPES.get(row.dtype), short(tuple(row.shape))
        if start < end:
            yield f"tensor {short(name)} begins inside of another one"
        if start > stop:
            yield f"tensor {short(name)} ends before it begins"
        if dtype is None:
            yield f"tensor {short(name)} has the element type {short(row.dtype)}"
        elif math.prod(row.shape) * dtype.itemsize != stop - start:
            yield (
                f"tensor {short(name)} has {stop - start:,} bytes, which are not those of"
                f" {dtype} of shape {shape}"
            )
        if start > end:
            yield f"the {start - end:,} bytes before tensor {short(name)} are of none"
        end = stop
    if end < size:
        yield f"the last {size - end:,} bytes are of no tensor"


def _tensor(name: str, row: Any, data: Bytes) -> Tensor:
    """Return a tensor by its row of the header.

    The package has compared shape, dtype and offsets with each other. The file may have been
    replaced since, so they are compared with its bytes once more.
    """
    dtype, shape = _DTYPES.get(row["dtype"]), tuple(row["shape"])
    start, stop = row["data_offsets"]
    if dtype is None:
        raise FileError(
            f"cannot load {short(name)}: no tensor has the element type {row['dtype']}",
            "the types are " + ", ".join(_DTYPES),
        )
    nbytes = math.prod(shape) * dtype.itemsize
    extent = math.prod(max(1, n) for n in shape) * dtype.itemsize  # also of an empty one
    in_range = extent < 1 << 63 and len(shape) <= MOST_AXES
    if not (0 <= start <= stop <= data.size and stop - start == nbytes and in_range):
        raise FileError(
            f"cannot load {short(name)}",
            f"it is of shape {short(shape)} at bytes {start} to {stop} of {data.size}",
        )
    return tensor_over(data[start:stop], dtype, shape)


_DTYPES: dict[str, DType] = {
    "BOOL": dtypes.bool,
    "I8": dtypes.int8,
    "I16": dtypes.int16,
    "I32": dtypes.int32,
    "I64": dtypes.int64,
    "U8": dtypes.uint8,
    "U16": dtypes.uint16,
    "U32": dtypes.uint32,
    "U64": dtypes.uint64,
    "F8_E4M3": dtypes.fp8e4m3,
    "F8_E5M2": dtypes.fp8e5m2,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "F32": dtypes.float32,
    "F64": dtypes.float64,
}
"""Element types by their names in a header."""
