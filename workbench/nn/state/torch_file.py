"""PyTorch's files of `torch.save`: a zip archive, or a series of pickles before PyTorch 1.6.

A pickle describes the tensors, and names storages, whose bytes stand elsewhere in the file.

Sections: The storages of a PyTorch file, and the tensors that are views of them; The reader of
`torch.save` files.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.backends.memory import Bytes
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import FileError
from workbench.ir.node.views import Shape
from workbench.nn.state.byte_reader import ByteReader, Source, source_bytes
from workbench.nn.state.load_state import tensor_over, zip_members
from workbench.nn.state.pickle_reader import PickleReader, plain_set
from workbench.tensor.operands.arguments import MOST_AXES
from workbench.tensor.tensor import Tensor

# --------------------------------------------------------------------------------------------------
# The storages of a PyTorch file, and the tensors that are views of them.


@dataclass(eq=False, slots=True)
class TorchStorage:
    """The bytes that tensors share; `dtype` is None where each tensor has its own."""

    data: Bytes
    dtype: DType | None
    tensors: dict[DType, Tensor] = field(default_factory=dict)

    def flat_tensor(self, dtype: DType) -> Tensor:
        """Return the storage as one flat tensor: views of it are views of the same memory."""
        if dtype not in self.tensors:
            size = self.data.size // dtype.itemsize
            whole = self.data[: size * dtype.itemsize]
            self.tensors[dtype] = tensor_over(whole, dtype, (size,))
        return self.tensors[dtype]


def storage_view(storage: Any, offset: Any, size: Any, stride: Any, dtype: Any = None) -> Tensor:
    """Return the tensor whose element (i, ..) is element `offset` + i * stride[0] + .. of a
    storage. A contiguous tensor is a view of the storage, any other one is copied.

    Errors: FileError for a tensor that would leave the storage, TypeError for other arguments.
    """
    if not isinstance(storage, TorchStorage):
        raise TypeError(f"a tensor of a {type(storage).__name__}")
    element_dtype = storage.dtype if dtype is None else dtype
    if not isinstance(element_dtype, DType):
        raise TypeError("a tensor without an element type")
    shape, strides = _shape_and_strides(
        storage.data.size // element_dtype.itemsize, offset, size, stride
    )
    count = math.prod(shape)
    if strides == _contiguous_strides(shape) or not count:
        flat = storage.flat_tensor(element_dtype)
        return flat[offset : offset + count].reshape(shape)
    tail = storage.data[offset * element_dtype.itemsize :]
    tail = tail[: tail.size // element_dtype.itemsize * element_dtype.itemsize]
    # `expand` repeats an axis of stride 0: one element of it is copied.
    stored_shape = tuple(n if stride else 1 for n, stride in zip(shape, strides, strict=True))
    view = np.lib.stride_tricks.as_strided(
        np.frombuffer(tail, element_dtype.numpy),
        stored_shape,
        [s * element_dtype.itemsize for s in strides],
    )
    return _tensor_of_view(view, element_dtype).expand(*shape)


def _tensor_of_view(view: np.ndarray[Any, Any], dtype: DType) -> Tensor:
    copy = np.ascontiguousarray(view).reshape(-1).view(np.uint8)
    return tensor_over(copy, dtype, view.shape)


def _shape_and_strides(
    count: int, offset: Any, size: Any, stride: Any
) -> tuple[Shape, tuple[int, ...]]:
    """Return shape and strides, 0 for one element. Errors: FileError beyond `count` elements."""
    if not (isinstance(size, tuple) and isinstance(stride, tuple)):
        raise TypeError("a size or a stride that is not a tuple")
    numbers = (offset, *size, *stride)
    if not all(type(n) is int for n in numbers) or len(size) != len(stride):
        raise TypeError(f"a size of {size} with a stride of {stride}"[:200])
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    is_empty = 0 in size
    fits = offset <= count if is_empty else last < count
    in_range = math.prod(max(1, n) for n in size) < 1 << 63 and len(size) <= MOST_AXES
    if min(numbers) < 0 or not fits or not in_range:
        raise FileError(
            "refused to load a tensor that is not in its storage",
            f"shape {size}, stride {stride} and offset {offset} need"
            f" {'' if is_empty else f'element {last} of '}a storage of {count} elements"[:300],
        )
    return size, tuple(step if n > 1 else 0 for n, step in zip(size, stride, strict=True))


def _contiguous_strides(shape: Shape) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor; 0 for axes of one element."""
    strides = (math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return tuple(s if n > 1 else 0 for s, n in zip(strides, shape, strict=True))


_STORAGE_DTYPES: dict[str, DType | None] = {
    "torch.DoubleStorage": dtypes.float64,
    "torch.FloatStorage": dtypes.float32,
    "torch.HalfStorage": dtypes.float16,
    "torch.BFloat16Storage": dtypes.bfloat16,
    "torch.LongStorage": dtypes.int64,
    "torch.IntStorage": dtypes.int32,
    "torch.ShortStorage": dtypes.int16,
    "torch.CharStorage": dtypes.int8,
    "torch.ByteStorage": dtypes.uint8,
    "torch.BoolStorage": dtypes.bool,
    "torch.storage.UntypedStorage": None,
}
"""Element types by the classes of PyTorch's storages."""


# --------------------------------------------------------------------------------------------------
# The reader of `torch.save` files.

_MAGIC = 0x1950A86A20F9469CFC6C
"""The first pickle of a file without an archive."""
_PROTOCOL = 1001
"""The second pickle."""


def torch_load(fn: Source) -> Any:
    """Return what `torch.save` wrote: tensors, numbers and text, in dicts, lists and tuples.

    No code of the file is executed. The tensors are on the default device; where it shares this
    process's memory, they use the file's pages in place.
    Errors: FileError for another file, a damaged one, or one that needs code.
    """
    data = source_bytes(fn)
    if bytes(data[:4]) == b"PK\x03\x04":
        return _from_archive(data)
    return _from_pickles(data)


def _from_archive(data: Bytes) -> Any:
    members = zip_members(data)
    name = next((n for n in members if n.endswith("/data.pkl")), None)
    if name is None:
        raise FileError(
            "cannot find a pickle in the archive",
            "an archive of torch.save has one that is called data.pkl",
        )
    folder = name.removesuffix("data.pkl")
    byte_order = bytes(members.get(f"{folder}byteorder", np.empty(0, np.uint8))[:16])
    if byte_order not in (b"", b"little"):
        raise FileError(f"cannot read the byte order {byte_order!r}", "it must be little")

    def bytes_of(key: str, _: DType | None, __: int) -> Bytes:
        member = members.get(f"{folder}data/{key}")
        if member is None:
            raise FileError(f"storage {key:.40} is missing", "its tensors need it")
        return member

    return PickleReader(_makers(), _storage_finder(bytes_of)).read(ByteReader(members[name]))


def _from_pickles(data: Bytes) -> Any:
    """Read the tensors' pickle twice: the places of the storages are known at its end."""
    file = ByteReader(data)
    sizes: dict[str, tuple[int, int]] = {}

    def note_size(key: str, dtype: DType | None, count: int) -> Bytes:
        sizes[key] = count, count * _itemsize(dtype)
        return np.broadcast_to(np.zeros(1, np.uint8), count * _itemsize(dtype))

    magic, protocol = _plain_value(file), _plain_value(file)
    if magic != _MAGIC or protocol != _PROTOCOL:
        raise FileError(
            "this is not a file of torch.save",
            "it begins neither as an archive nor with PyTorch's number",
            "safe_load for .safetensors",
        )
    system_info = _plain_value(file)
    if not isinstance(system_info, dict) or system_info.get("little_endian") is not True:
        raise FileError("cannot read the byte order", "it must be little")
    tensors_start = file.tell()
    # the first reading makes no tensors: it finds the sizes of the storages
    makers = {n: _no_value if "_rebuild" in n else m for n, m in _makers().items()}
    PickleReader(makers, _storage_finder(note_size)).read(file)
    bytes_by_key = _bytes_by_key(data, file, sizes)
    file.seek(tensors_start)

    def bytes_of(key: str, _: DType | None, __: int) -> Bytes:
        return bytes_by_key[key]

    return PickleReader(_makers(), _storage_finder(bytes_of)).read(file)


def _bytes_by_key(
    data: Bytes, file: ByteReader, sizes: dict[str, tuple[int, int]]
) -> dict[str, Bytes]:
    """Return the bytes of each storage by its key: they follow the pickle of the keys, in its
    order. `sizes` has the elements and the bytes that tensors need, by key."""
    keys, bytes_by_key = _plain_value(file), {}
    if not isinstance(keys, list) or set(map(str, keys)) != set(sizes):
        raise FileError("the storages are not those that the tensors need")
    for key in map(str, keys):
        count, nbytes = sizes[key]
        count_bytes = file.read(8)
        start = file.tell()
        if len(count_bytes) < 8 or start + nbytes > data.size:
            raise FileError(
                f"storage {key:.40} is cut off",
                f"it has {nbytes:,} bytes, and {data.size - start:,} are left",
            )
        (stored_count,) = struct.unpack("<q", count_bytes)
        if stored_count != count:
            raise FileError(
                f"storage {key:.40} has {stored_count} elements", f"its tensors need {count}"
            )
        bytes_by_key[key] = data[start : start + nbytes]
        file.seek(start + nbytes)
    return bytes_by_key


def _storage_finder(
    bytes_of: Callable[[str, DType | None, int], Bytes],
) -> Callable[[Any], TorchStorage]:
    """Return the function that finds a storage by its identity in a pickle."""
    storages: dict[str, TorchStorage] = {}

    def find_storage(identity: Any) -> TorchStorage:
        tag, storage_type, key, _, count, *view = identity
        if tag != "storage" or type(key) is not str or type(count) is not int:
            raise TypeError("a storage without a name or a size")
        if not isinstance(storage_type, _StorageType) or count < 0 or view not in ([], [None]):
            raise TypeError("a storage of an unknown kind")
        nbytes = count * _itemsize(storage_type.dtype)
        if key not in storages:
            storages[key] = TorchStorage(
                bytes_of(key, storage_type.dtype, count), storage_type.dtype
            )
        storage = storages[key]
        if storage.data.size < nbytes or storage.dtype is not storage_type.dtype:
            raise FileError(
                f"storage {key:.40} is cut off",
                f"it must have {nbytes:,} bytes, and there are {storage.data.size:,}",
            )
        return storage

    return find_storage


class _StorageType:
    """A class of PyTorch's storages, by its dtype; None: bytes of any type."""

    def __init__(self, dtype: DType | None):
        self.dtype = dtype


def _itemsize(dtype: DType | None) -> int:
    return 1 if dtype is None else dtype.itemsize


def _plain_value(file: ByteReader) -> Any:
    """Return the value of a pickle without tensors."""
    return PickleReader({}, _no_value).read(file)


def _no_value(*_: Any) -> None:
    return None


def _rebuilt_tensor(
    storage: Any,
    offset: Any,
    size: Any,
    stride: Any,
    requires_grad: Any = None,
    backward_hooks: Any = None,
    dtype: Any = None,
    *_: Any,
) -> Tensor:
    """Return a tensor from the arguments of PyTorch's `_rebuild_tensor`."""
    element_dtype = dtype if isinstance(dtype, DType) else None  # metadata, a dict, in version 2
    return storage_view(storage, offset, size, stride, element_dtype)


def _makers() -> dict[str, Any]:
    """Return what names in a pickle of tensors stand for."""
    return {
        "collections.OrderedDict": lambda pairs=(): dict(pairs),
        "__builtin__.set": plain_set,
        "builtins.set": plain_set,
        "_codecs.encode": _latin1_bytes,
        "torch.Size": lambda sizes=(): tuple(sizes),
        "torch.device": lambda *words: ":".join(map(str, words)),
        "torch._utils._rebuild_tensor": _rebuilt_tensor,
        "torch._utils._rebuild_tensor_v2": _rebuilt_tensor,
        "torch._utils._rebuild_tensor_v3": _rebuilt_tensor,
        "torch._utils._rebuild_parameter": lambda tensor, *_: tensor,
        **{name: _StorageType(dtype) for name, dtype in _STORAGE_DTYPES.items()},
        **{f"torch.{name}": dtype for name, dtype in _TORCH_DTYPES.items()},
    }


def _latin1_bytes(text: str, encoding: str) -> bytes:
    """Return the bytes that an old pickle has as text."""
    if encoding != "latin1":
        raise ValueError(f"the encoding {encoding:.20}")
    return text.encode("latin1")


_TORCH_DTYPES = {
    name: dtype
    for name, dtype in vars(dtypes).items()
    if isinstance(dtype, DType) and dtype.kind not in ("index", "void")
} | {"float8_e4m3fn": dtypes.fp8e4m3, "float8_e5m2": dtypes.fp8e5m2}
"""Dtypes by their names in PyTorch, which are ours but for 8-bit floats."""
