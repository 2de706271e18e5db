"""Arrays of the tensors in an ONNX file: on the memory of its bytes, or of files beside it.

Files may be anybody's: sizes are compared before memory is taken, and other files are read only
below the folder of the model.
"""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path, PurePath
from typing import IO, Any, NamedTuple

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.base.errors import DTypeError, ModelError, cut
from workbench.models.onnx.values import Array, dtype_of

EXTERNAL = 1
"""ONNX's mark of a tensor whose data is in another file."""
MOST_AXES = 64
"""The maximal number of axes of numpy's arrays."""
MOST_BYTES = 1 << 48
"""The maximal size of a tensor: a processor addresses no more."""
MOST_READ_BYTES = 1 << 30
"""The maximal size of another file that is read: larger ones are mapped, which takes no memory, and
is gone when the file is cut, as by the next export to the same path."""
MOST_LETTERS = 1000
"""The maximal length of a reason: names in a file may have millions."""
FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")
"""The fields of numbers of a TensorProto; the data of each tensor is in one of them, or raw."""
NARROW = {21: dtypes.uint8, 22: dtypes.int8}
"""Dtypes that hold integers of 4 bits, by ONNX's numbers of those: uint4 and int4."""
_LINKS_NOT = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _LINKS_NOT
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | _LINKS_NOT


class MappedFile(NamedTuple):
    """A file whose pages are the memory of tensors, and its state when it was mapped."""

    path: Path
    status: os.stat_result

    def check(self, name: str) -> None:
        """Errors: ModelError if the file of the model `name` was written since: what reads a page
        beyond its new end stops the process."""
        try:
            status = self.path.stat()
        except OSError:  # its pages live on
            return
        is_same = os.path.samestat(status, self.status)
        states = [(each.st_size, each.st_mtime_ns) for each in (status, self.status)]
        if is_same and states[0] != states[1]:
            because = f"its file {self.path.name!r} was written after load_model had read it"
            raise ModelError(f"cannot compute {name}", because, "load_model(..) of it again")


class TensorReader:
    """Reads the tensors of a model of a name, with files below its folder, if it has one. `mapped`
    are the large ones of these, by their locations."""

    def __init__(self, name: str, folder: Path | None):
        self.name, self.folder = name, folder
        self.mapped: dict[str, MappedFile] = {}
        self._contents: dict[str, Array] = {}

    def error(self, because: str, more: str = "", hint: str = "") -> ModelError:
        """Return the error for a model that breaks a rule."""
        reason = f"{because}: {more}" if more else because
        return ModelError(f"cannot read {self.name}", cut(reason, MOST_LETTERS), hint)

    def check_text(self, *texts: str | bytes) -> None:
        """Errors: ModelError for a text that is not UTF-8, which the parser leaves as bytes."""
        for text in texts:
            if isinstance(text, bytes):
                raise self.error(f"a name in it is not UTF-8: {text!r:.100}")

    def array(self, tensor: Any, where: str, takes_narrow: bool = False) -> Array:
        """Return the array of a TensorProto; with `takes_narrow` also of integers of 4 bits, each
        in a byte of its own.

        Errors: ModelError for sizes that its data does not have, and for data that is in several
        places, or out of the model's folder.
        """
        shape = tuple(tensor.dims)
        if len(shape) > MOST_AXES:
            because = f"{where} has {len(shape):,} axes"
            raise self.error(because, f"an array has at most {MOST_AXES}")
        if any(n < 0 for n in shape):
            raise self.error(f"{where} has a negative size", f"its shape is {shape}")
        is_narrow = takes_narrow and tensor.data_type in NARROW
        try:
            dtype = NARROW[tensor.data_type] if is_narrow else dtype_of(tensor.data_type)
        except DTypeError as error:
            raise self.error(f"{where} has another dtype", error.what) from None
        if math.prod(n or 1 for n in shape) * dtype.itemsize > MOST_BYTES:
            raise self.error(f"the size of {where} is wrong", f"no array has the shape {shape}")
        count = math.prod(shape)
        is_external = tensor.data_location == EXTERNAL
        if tensor.HasField("segment"):
            raise self.error(f"cannot read {where}", "it is a segment of a tensor")
        fields = [name for name in FIELDS if len(getattr(tensor, name))]
        fields += ["raw_data"] * tensor.HasField("raw_data") + ["another file"] * is_external
        if len(fields) > 1:
            raise self.error(f"the data of {where} is in several places", ", ".join(fields))
        if is_external or tensor.HasField("raw_data"):
            nbytes = -(-count // 2) if is_narrow else count * dtype.itemsize
            if is_external:
                data = self.external(tensor, where, nbytes)
            elif len(tensor.raw_data) != nbytes:
                because = f"its shape {shape} takes {nbytes:,} bytes of {dtype}, and it has"
                more = f"{because} {len(tensor.raw_data):,}"
                raise self.error(f"the size of {where} is wrong", more)
            else:
                data = np.frombuffer(tensor.raw_data, np.uint8)
            data = _halves(data, dtype is dtypes.int8)[:count] if is_narrow else data
            array = data.view(dtype.numpy).reshape(shape)
            # A byte above 1 is no bool to a processor.
            return array.view(np.uint8) != 0 if dtype is dtypes.bool else array
        return self.numbers(tensor, where, fields, shape).astype(dtype.numpy, copy=False)

    def numbers(self, tensor: Any, where: str, fields: list[str], shape: tuple[int, ...]) -> Array:
        """Return the array of a tensor whose numbers are in a field."""
        from onnx import helper, numpy_helper

        field = helper.tensor_dtype_to_field(tensor.data_type)
        longest, wanted = len(getattr(tensor, field)), math.prod(shape)
        if tensor.data_type in NARROW:
            wanted = -(-wanted // 2)
        if fields not in ([], [field]) or longest != wanted:
            if fields and fields != [field]:
                because = f"its numbers must be in {field}, and are in {fields[0]}"
            else:
                because = f"its shape is {shape}, and it has {longest:,} elements"
            raise self.error(f"the size of {where} is wrong", because)
        try:
            return np.asarray(numpy_helper.to_array(tensor))
        except (OverflowError, TypeError, ValueError) as error:
            raise self.error(f"cannot read {where}", str(error)) from None

    def external(self, tensor: Any, where: str, nbytes: int) -> Array:
        """Return bytes of a file below the model's folder; of a large file they are mapped."""
        entries = {each.key: each.value for each in tensor.external_data}
        location = entries.get("location", "")
        self.check_text(*entries.values())
        if len(entries) < len(tensor.external_data):
            raise self.error(f"cannot read {where}", "an entry of its file is given twice")
        if self.folder is None:
            because = f"its data is in the file {location!r}, and the model has no folder"
            raise self.error(f"cannot read {where}", because, "the path of the model")
        try:
            offset = int(entries.get("offset") or 0)
            length = int(entries.get("length") or nbytes)
        except ValueError:
            raise self.error(f"cannot read {where}", "its offset is not a number") from None
        with self.opened(location, where) as file:
            status = os.fstat(file.fileno())
            size = status.st_size
            if length != nbytes or offset < 0 or offset + nbytes > size:
                because = (
                    f"it takes {nbytes:,} bytes: {length:,} from {offset:,} on of {size:,} bytes"
                )
                raise self.error(f"the size of {where} is wrong", because)
            if size <= MOST_READ_BYTES:
                if location not in self._contents:
                    self._contents[location] = np.fromfile(file, np.uint8)
                data = self._contents[location][offset : offset + nbytes]
                if len(data) == nbytes:
                    return data
                raise self.error(f"cannot read {where}", f"{location!r} was cut meanwhile")
            self.mapped.setdefault(location, MappedFile(self.folder / location, status))
            if not nbytes:
                return np.empty(0, np.uint8)
            return np.memmap(file, np.uint8, "r", offset, (nbytes,))

    def opened(self, location: str, where: str) -> IO[bytes]:
        """Return a file below the folder, open. Errors: ModelError if a path leads out."""
        assert self.folder is not None
        given = PurePath(location)
        is_inside = bool(given.parts) and not given.is_absolute() and ".." not in given.parts
        if is_inside and "\\" not in location and "\0" not in location:
            folder = self.folder.resolve()
            try:
                path = (folder / location).resolve()
                if path.is_relative_to(folder):
                    return opened_below(folder, path.relative_to(folder).parts)
            except (OSError, RuntimeError):  # a RuntimeError for links in a circle
                because = f"there is no file {location!r} that can be read"
                raise self.error(f"cannot read {where}", because) from None
        because = f"the path {location!r} leads out of the folder of the model"
        raise self.error(f"cannot read {where}", because)


def _halves(data: Array, is_signed: bool) -> Array:
    """Return the halves of bytes, the low one first, as bytes."""
    halves = np.stack([data & 15, data >> 4], -1).reshape(-1)
    return (halves ^ 8) - np.uint8(8) if is_signed else halves


def opened_below(folder: Path, parts: tuple[str, ...]) -> IO[bytes]:
    """Return a regular file, opened from folder to folder: what has become a link since the path
    was looked up is not followed.

    Errors: OSError where there is none.
    """
    if os.open not in os.supports_dir_fd:
        return open(folder.joinpath(*parts), "rb")
    descriptor = os.open(folder, _FOLDER)
    for place, part in enumerate(parts, 1):
        outer = descriptor
        try:
            descriptor = os.open(part, _FILE if place == len(parts) else _FOLDER, dir_fd=outer)
        finally:
            os.close(outer)
    file = open(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise OSError("it is not a regular file")
    return file
