"""State dicts of models, and the files in zip and tar archives as tensors.

Sections: State dicts; Loading of a state dict into a model; Tensors over bytes that are already
in memory, such as the pages of a file; Zip archives of uncompressed members; Archives.
"""

from __future__ import annotations

import struct
import tarfile
import time
import zipfile
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from workbench.backends.device import Device
from workbench.backends.memory import Buffer, Bytes
from workbench.backends.native.host_memory import HOST
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import FileError, StateError
from workbench.execution.buffers import buffer_on
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.nn.state.byte_reader import ByteReader, Source, source_bytes
from workbench.tensor.jit import TinyJit
from workbench.tensor.operands.arguments import dtype_error, flag, short, where
from workbench.tensor.tensor import Tensor

# --------------------------------------------------------------------------------------------------
# State dicts: the tensors of a model by name, `layers.0.weight`.
#
# A model is any object: its attributes, lists, tuples and dicts are searched, as in tinygrad. For
# the layers of workbench.nn, the keys are those of PyTorch.

_OPAQUE = (
    type, ModuleType, FunctionType, MethodType, BuiltinFunctionType, np.ndarray, TinyJit,
)  # fmt: skip
"""Values that are not searched: what they refer to is not a part of the model."""


def get_state_dict(obj: Any, prefix: str = "", tensor_type: type = Tensor) -> dict[str, Any]:
    """Return the tensors in `obj` by name; each name begins with `prefix`.

    A name is the path to the tensor: attributes, keys, and places in lists, with dots between them.
    An object that is inside of itself is not searched again. Errors: DTypeError unless
    `tensor_type` is a class.

    >>> from workbench.nn import Linear
    >>> list(get_state_dict({"first": Linear(2, 3)}))
    ['first.weight', 'first.bias']
    """
    if not isinstance(tensor_type, type):
        raise dtype_error(
            f"get_state_dict: tensor_type: {short(tensor_type)} does not fit",
            f"it must be a class, and this is {type(tensor_type).__name__}",
            "tensor_type=Tensor",
        )
    return dict(_walk(obj, prefix, tensor_type, ()))


def get_parameters(obj: Any) -> list[Tensor]:
    """Return the tensors in `obj`, in the order of `get_state_dict`."""
    return list(get_state_dict(obj).values())


def _walk(
    obj: Any, prefix: str, tensor_type: type, above: tuple[int, ...]
) -> Iterator[tuple[str, Any]]:
    if isinstance(obj, tensor_type):
        yield prefix.strip("."), obj
        return
    if id(obj) in above:
        return
    for name, value in _parts(obj):
        yield from _walk(value, f"{prefix}{name}.", tensor_type, (*above, id(obj)))


def _parts(obj: Any) -> Iterator[tuple[Any, Any]]:
    """Yield what is directly in an object, by name."""
    if isinstance(obj, _OPAQUE):
        return
    if isinstance(obj, dict):
        yield from list(obj.items())
    elif hasattr(obj, "_asdict"):  # a named tuple
        yield from obj._asdict().items()
    elif isinstance(obj, list | tuple):
        yield from enumerate(obj)
    elif hasattr(obj, "__dict__"):
        yield from list(vars(obj).items())


# --------------------------------------------------------------------------------------------------
# Loading of a state dict into a model.

_MOST_NAMES = 10
"""The maximal number of keys of each kind that an error names."""


def load_state_dict(
    model: Any,
    state_dict: dict[str, Tensor],
    strict: bool = True,
    verbose: bool = True,
    consume: bool = False,
    realize: bool = True,
) -> list[Tensor]:
    """Replace the tensors of `model` by the entries of the same names, and return them.

    An entry may also be an array of numpy or of PyTorch. A tensor of the model takes the dtype of
    its entry, and stays on its device. Data that are there already are not copied, also in the
    pages of a file; later writes to the model change neither the state dict nor the file.
    `strict=False` leaves out keys that only one of them has; `consume` removes the entries from
    `state_dict`; `verbose` prints how much was loaded; `realize=False` leaves the work for later.

    Shapes: those of the model; () and (1,) fit each other.
    Errors: StateError, before anything is changed, that names all missing, unexpected and
    misshaped keys.
    """
    start = time.perf_counter()
    switches = {"strict": strict, "verbose": verbose, "consume": consume, "realize": realize}
    for name, value in switches.items():
        flag(value, f"load_state_dict: {name}")
    targets = get_state_dict(model)
    entries = _entries(state_dict)
    _check(targets, entries, strict)
    loaded = [targets[key] for key in targets if key in entries]
    for key, target in targets.items():
        if key in entries:
            source = entries.pop(key)
            target.replace(source.reshape(target.shape).to(target.device))
            if consume:
                del state_dict[key]
    if realize and loaded:
        loaded[0].realize(*loaded[1:])
    if verbose:
        megabytes = sum(t.nbytes() for t in loaded) / 1e6
        ms = (time.perf_counter() - start) * 1e3
        print(f"loaded {len(loaded)} tensors, {megabytes:.1f} MB, in {ms:.0f} ms")
    return loaded


def _entries(state_dict: object) -> dict[str, Tensor]:
    """Return the entries of a state dict; arrays, of numpy or PyTorch, become tensors."""
    if not isinstance(state_dict, dict):
        because = f"it is a dict of tensors by name, and this is {short(state_dict)}"
        hint = "nn.state.get_state_dict(model)"
        raise StateError("cannot load a state dict", because, hint, where())
    return {
        key: Tensor(value)
        if hasattr(value, "__array__") and not isinstance(value, Tensor)
        else value
        for key, value in state_dict.items()
    }


def _check(targets: dict[str, Tensor], state_dict: dict[str, Tensor], strict: bool) -> None:
    """Raise StateError unless the entries of a state dict fit a model."""
    others = [key for key, value in state_dict.items() if not isinstance(value, Tensor)]
    problems = [f"neither tensors nor arrays: {_listed(map(str, others))}"] if others else []
    if strict:
        missing = [key for key in targets if key not in state_dict]
        unexpected = [str(key) for key in state_dict if key not in targets]
        problems += [f"missing: {_listed(missing)}"] if missing else []
        problems += [f"unexpected: {_listed(unexpected)}"] if unexpected else []
    misshaped = [
        f"{key} (the model has {target.shape}, the state dict {state_dict[key].shape})"
        for key, target in targets.items()
        if isinstance(state_dict.get(key), Tensor)
        and target.shape != (shape := state_dict[key].shape)
        and {target.shape, shape} != {(), (1,)}
    ]
    problems += [f"of another shape: {_listed(misshaped)}"] if misshaped else []
    if problems:
        hint = (
            "tensors or arrays as values"
            if others
            else "strict=False, to load what fits"
            if strict and not misshaped
            else "a model of the same layers"
        )
        raise StateError(
            "the state dict does not fit the model", "; ".join(problems), hint, where()
        )


def _listed(keys: Iterable[str]) -> str:
    names = list(keys)
    more = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"{len(names)} {'key' if len(names) == 1 else 'keys'}, " + (
        ", ".join(names[:_MOST_NAMES]) + more
    )


# --------------------------------------------------------------------------------------------------
# Tensors over bytes that are already in memory, such as the pages of a file.


def tensor_over(data: Bytes, dtype: DType, shape: Shape) -> Tensor:
    """Return a tensor on the default device whose values are `data`.

    Where the device shares this process's memory, and the elements are aligned, the tensor uses
    the bytes in place; elsewhere they are copied when it is computed.
    """
    if not data.size:
        return Tensor(np.empty(shape, dtype.numpy))
    device = Device.DEFAULT
    memory = Buffer.over(device, dtype, data)
    if memory is not None:
        return Tensor(buffer_on(memory, shape))
    host = Buffer.over(HOST, dtype, data)
    if host is None:
        host = Buffer(HOST, dtype, data.size // dtype.itemsize)
        host.array.view(np.uint8)[:] = data
    return Tensor(UOp(Ops.COPY, dtype, (buffer_on(host, shape),), device))


# --------------------------------------------------------------------------------------------------
# Zip archives of uncompressed members: each member is a part of the archive's bytes.

_HEADER = struct.Struct("<4s22x2H")
"""The header of a member: its signature, .., the lengths of its name and of its extra field."""


def zip_members(data: Bytes) -> dict[str, Bytes]:
    """Return the bytes of each member by its name; nothing is copied.

    Errors: FileError for a damaged archive, and for members that are compressed or encrypted.
    """
    try:
        with zipfile.ZipFile(ByteReader(data)) as archive:
            entries = archive.infolist()
    # zipfile raises any of these for a damaged archive
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        ValueError,
        OSError,
        struct.error,
        EOFError,
    ) as error:
        raise FileError(
            "cannot read the archive",
            f"it is damaged, or its end is missing: {error}"[:200],
            "the file from where it came",
        ) from error
    return {entry.filename: _member(data, entry) for entry in entries}


def _member(data: Bytes, entry: zipfile.ZipInfo) -> Bytes:
    name = f"member {entry.filename:.60}"
    if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
        raise FileError(
            f"cannot read {name}",
            "it is compressed or encrypted, and its bytes are used in place",
            "torch.save, which stores tensors as they are",
        )
    start = entry.header_offset
    header = bytes(data[start : start + _HEADER.size]) if start >= 0 else b""
    if len(header) < _HEADER.size or header[:4] != b"PK\x03\x04":
        raise FileError(f"cannot find {name}", f"at byte {start} is something else")
    _, name_bytes, extra_bytes = _HEADER.unpack(header)
    start += _HEADER.size + name_bytes + extra_bytes
    if start + entry.file_size > data.size:
        raise FileError(
            f"{name} is cut off",
            f"it has {entry.file_size:,} bytes, and {data.size - start:,} are left",
        )
    return data[start : start + entry.file_size]


# --------------------------------------------------------------------------------------------------
# Archives: each file in a zip or a tar as a tensor of its bytes, without a copy where possible.


def zip_extract(fn: Source) -> dict[str, Tensor]:
    """Return the files in a zip archive by name, as uint8; nothing is written to the disk.

    Errors: FileError for a damaged archive, and for files that are compressed or encrypted.
    """
    members = zip_members(source_bytes(fn))
    return {name: _tensor(data) for name, data in members.items() if name[-1:] != "/"}


def tar_extract(fn: Source) -> dict[str, Tensor]:
    """Return the files in a tar archive by name, as uint8; nothing is written to the disk.

    Links and folders are left out. The archive itself must not be compressed.
    Errors: FileError for a damaged archive.
    """
    data = source_bytes(fn)
    files: dict[str, Tensor] = {}
    try:
        with tarfile.open(fileobj=ByteReader(data), mode="r:") as archive:  # type: ignore[call-overload] # it reads only
            for member in archive:
                _check_member(member, data.size)
                if member.isreg():
                    start = member.offset_data
                    files[member.name] = _tensor(data[start : start + member.size])
    except (tarfile.TarError, OSError, EOFError) as error:
        hint = "an uncompressed archive, as tar -cf makes"
        raise FileError("cannot read the archive", str(error)[:200], hint) from error
    return files


def _check_member(member: tarfile.TarInfo, nbytes: int) -> None:
    """Raise FileError for a member that is sparse, or reaches beyond its archive: tarfile searches
    for the next one at its end."""
    left = nbytes - member.offset_data
    if not 0 <= member.size <= left or member.issparse():
        raise FileError(
            f"file {member.name:.60} is cut off",
            f"it has {member.size:,} bytes, and {left:,} are left",
        )


def _tensor(data: Bytes) -> Tensor:
    return tensor_over(data, dtypes.uint8, data.shape)
