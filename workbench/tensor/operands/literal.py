"""Host data as nodes: Python scalars, nested lists and numpy arrays; bits as another dtype.

A scalar is a constant without memory. Lists and arrays are copied once to private host memory
and reach their device by a COPY, so that later changes of the user's array change nothing.

Sections: Host data as nodes; Bits read as another dtype, wider or narrower.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import reduce
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from workbench.backends.native.host_memory import data_memory
from workbench.base.dtypes import Const, DType, dtypes, int_dtype
from workbench.base.errors import DTypeError, WorkbenchError, type_name
from workbench.execution.buffers import host_buffer
from workbench.ir.meaning.values import cast_array
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.tensor.operands.arguments import MOST_AXES, dtype_error, shape_error, short
from workbench.tensor.operands.axes import iota
from workbench.tensor.operands.broadcast import (
    BoundVariable,
    Variable,
    cast_to,
    constant,
    expanded,
    scalar_dtype,
)

# --------------------------------------------------------------------------------------------------
# Host data as nodes.

_LISTS = (list, tuple, range)
_KINDS = (
    "Python and numpy bools, ints and floats, (nested) lists of them, numpy arrays, bytes,"
    " bound variables"
)


def as_dtype(dtype: DType | str) -> DType:
    """Return the element type that `dtype` is or names.

    Errors: DTypeError for another value, or a type that tensors cannot have.
    """
    element_type = dtype if isinstance(dtype, DType) else _named(str(dtype))
    if element_type is None or element_type.kind in ("index", "void") or element_type.count > 1:
        raise dtype_error(
            f"no tensor has the element type {str(dtype):.40}",
            "the element types are " + ", ".join(_TENSOR_DTYPES),
            "dtypes.float32, or another of these",
        )
    return element_type


def literal(data: object, device: str, dtype: DType | None) -> UOp:
    """Return `data` as a node on `device`, of `dtype` (None: the data's own). None has no elements.

    Dtypes: all bools give bool, ints int32 (int64 where one needs it), else float32; an array
    keeps its own. Bytes are uint8, or the elements of `dtype` as they lie in memory.
    Errors: DTypeError for other data, ShapeError for a ragged list, or bytes that do not
    fill whole elements.
    """
    if data is None:
        data = []
    if isinstance(data, bool | int | float) and not isinstance(data, np.generic):
        kind = scalar_dtype(data) if dtype is None else dtype
        # As in a list or an array, a float is converted as `cast` does.
        return (
            UOp.const(kind, data)
            if isinstance(data, float)
            else constant(kind, data, "make a tensor")
        )
    if isinstance(data, _LISTS):
        return _on_device(_list_array(data, dtype), device)
    if isinstance(data, Variable | BoundVariable):
        return _of_variable(data, device, dtype)
    if isinstance(data, bytes | bytearray):
        return _on_device(_bytes_array(data, dtype or dtypes.uint8), device)
    if _is_masked(data):
        _refuse_mask(data)
    if isinstance(data, np.ndarray | np.generic) or hasattr(data, "__array__"):
        return _from_array(_as_array(data), device, dtype)
    raise dtype_error(
        f"cannot make a tensor from {type(data).__name__} {short(data)}",
        f"tensors are made from {_KINDS}",
        "Tensor([1.0, 2.0]), a list of numbers",
    )


def _from_array(array: np.ndarray[Any, Any], device: str, dtype: DType | None) -> UOp:
    own = _array_dtype(array)
    dtype = dtype or own
    # The graph converts a float out of range of integers, where it saturates.
    on_host = not (own.is_float and dtype.is_int)
    if on_host and own is not dtype:
        with np.errstate(over="ignore"):
            array = np.asarray(cast_array(array, own, dtype))
    if array.shape == ():
        return UOp.const(dtype, array.item())
    return cast_to(_on_device(array, device), dtype)


def _array_dtype(array: np.ndarray[Any, Any]) -> DType:
    try:
        return dtypes.from_numpy(array.dtype)
    except KeyError:
        raise dtype_error(
            f"cannot make a tensor from a numpy array of {array.dtype}",
            "the element types are " + ", ".join(_TENSOR_DTYPES),
            _nearest(array.dtype.name),
        ) from None


def _on_device(array: np.ndarray[Any, Any], device: str) -> UOp:
    dtype = dtypes.from_numpy(array.dtype)
    if array.size == 0:
        return UOp(Ops.EXPAND, dtype, (UOp.const(dtype, 0),), array.shape)
    return UOp(Ops.COPY, dtype, (host_buffer(array),), device)


def _of_variable(data: Variable | BoundVariable, device: str, dtype: DType | None) -> UOp:
    """Return the value of a bound variable, read from memory: its graph is the same for each."""
    if isinstance(data, Variable):
        raise dtype_error(
            f"cannot make a tensor: variable {data.name:.40} has no value",
            "it is a number that is known when kernels run",
            f"{data.name:.40}.bind({short(data.min_val)}), or up to {short(data.max_val)}",
        )
    ends = data.variable.min_val, data.variable.max_val
    own = max(map(scalar_dtype, ends), key=lambda d: (d.bits, d.kind == "uint"))
    column = _on_device(np.array([data.val], own.numpy), device)
    return cast_to(UOp(Ops.RESHAPE, own, (column,), ()), dtype or own)


def _bytes_array(data: bytes | bytearray, dtype: DType) -> np.ndarray[Any, Any]:
    if len(data) % dtype.itemsize:
        raise shape_error(
            f"cannot make a tensor of {dtype} from {len(data)} bytes",
            f"an element takes {dtype.itemsize} bytes",
            "Tensor(data) for the bytes, as uint8",
        )
    return np.frombuffer(bytes(data), dtype.numpy)


def _list_array(data: Sequence[Any], dtype: DType | None) -> np.ndarray[Any, Any]:
    shape, values = _flatten(data)
    dtype = dtype or _list_dtype(values)
    integers = [v for v in values if isinstance(v, int)]
    if integers:
        for end in (min(integers), max(integers)):
            constant(dtype, end, "make a tensor")
    exact = [dtype.const(value) for value in values]
    return np.array(exact, dtype=dtype.numpy).reshape(shape)


def _list_dtype(values: list[Const]) -> DType:
    if not values or any(isinstance(v, float) for v in values):
        return dtypes.default_float
    if all(isinstance(v, bool) for v in values):
        return dtypes.bool
    try:
        return int_dtype(int(min(values)), int(max(values)))
    except DTypeError as error:
        raise dtype_error(error.what, error.because, error.hint) from None


_NUMBER_BYTES = 40
"""Estimate of the bytes of a Python number in a list."""


def _flatten(data: Sequence[Any]) -> tuple[Shape, list[Const]]:
    """Return the shape of nested lists, and their scalars in row-major order."""
    shape: list[int] = []
    level: list[Any] = [data]
    while level and isinstance(level[0], _LISTS):
        length = _length(level[0])
        data_memory.pool.check_room(len(level) * length * _NUMBER_BYTES)
        for number, item in enumerate(level):
            if not isinstance(item, _LISTS):
                raise _ragged(len(shape), number, f"is not a list but {short(item)}", length)
            if _length(item) != length:
                raise _ragged(len(shape), number, f"has {_length(item)} items", length)
        shape.append(length)
        if len(shape) > MOST_AXES:
            raise shape_error(
                f"a list is nested more than {MOST_AXES} deep", "numpy has no more axes", "fewer"
            )
        level = [_plain(item) for items in level for item in items]
    for number, item in enumerate(level):
        if isinstance(item, _LISTS):
            raise _ragged(len(shape), number, f"is a list of {_length(item)} items", None)
        if not isinstance(item, bool | int | float):
            raise dtype_error(
                f"cannot make a tensor from a list that holds {type(item).__name__} {short(item)}",
                f"tensors are made from {_KINDS}",
                "Tensor([1.0, 2.0])",
            )
    return tuple(shape), level


def _length(items: Sequence[Any]) -> int:
    try:
        return len(items)
    except OverflowError:  # a range may be longer than Python counts
        return sys.maxsize


def _is_masked(data: Any) -> bool:
    """Whether `data` is a masked array. A test that names np.ma would import it, which takes longer
    than a small kernel."""
    return "numpy.ma" in sys.modules and isinstance(data, np.ma.MaskedArray)


def _refuse_mask(array: Any) -> None:
    count = int(np.ma.getmaskarray(array).sum())
    if count:
        raise dtype_error(
            f"cannot make a tensor from a masked array with {count} elements masked",
            "a tensor has no mask, and without it they would be numbers like the others",
            "array.filled(value)",
        )


def _plain(item: Any) -> Any:
    """Return numpy values inside a list as Python ones: the list decides the dtype."""
    return item.tolist() if isinstance(item, np.generic | np.ndarray) else item


def _ragged(depth: int, number: int, difference: str, length: int | None) -> Exception:
    first = "a scalar" if length is None else f"a list of {length} items"
    return shape_error(
        "cannot make a tensor from a ragged list",
        f"at depth {depth} the first item is {first}, and item {number} {difference}",
        "pad the inner lists to one length",
    )


def _named(name: str) -> DType | None:
    try:
        return dtypes.named(name)
    except KeyError:
        alias = vars(dtypes).get(name)
        return alias if isinstance(alias, DType) else None


def _nearest(name: str) -> str:
    """Return the hint for a numpy type without a dtype here."""
    if "complex" in name:
        return "the parts as two tensors: array.real, array.imag"
    if "float" in name:
        return "array.astype('float32')"
    if "datetime" in name or "timedelta" in name:
        return "array.astype('int64')"
    return "array.astype('float32') if its values are numbers"


_TENSOR_DTYPES = tuple(
    dict.fromkeys(
        d.name
        for d in vars(dtypes).values()
        if isinstance(d, DType) and d.kind not in ("index", "void")
    )
)


def _as_array(data: Any) -> np.ndarray[Any, Any]:
    """Return the array of a value with `__array__`. Errors: DTypeError if that fails."""
    try:
        return np.asarray(data)
    except WorkbenchError:
        raise
    except Exception as error:  # another library's own, of any kind
        raise dtype_error(
            f"cannot make a tensor from {type_name(type(data))} {short(data)}",
            f"it becomes no numpy array: {error}",
            "the numpy array of its values; of PyTorch's, .detach().cpu().float().numpy()",
        ) from error


# --------------------------------------------------------------------------------------------------
# Bits read as another dtype, wider or narrower: parts of a word, the lowest first.

_WORDS = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}
"""The unsigned type of a number of bytes."""
_sources: WeakKeyDictionary[UOp, UOp] = WeakKeyDictionary()
"""The value whose bits a result of `bits_as` has, by the result: several operations lie between."""


def bits_as(value: UOp, dtype: DType) -> UOp:
    """Return the bits of `value` as `dtype`; the last axis has as many bytes as before."""
    own, size = value.dtype.itemsize, dtype.itemsize
    if own == size:
        return value.bitcast(dtype)
    words = value.bitcast(_WORDS[own])
    words = _joined(words, size) if own < size else _cut(words, size)
    bits = words.bitcast(dtype)
    _sources[bits] = value
    return bits


def source_of_bits(node: UOp) -> UOp | None:
    """Return the value that `node` has the bits of; None if it is not what `bits_as` returns."""
    source = _sources.get(node)
    return node.src[0] if source is None and node.op is Ops.BITCAST else source


def _cut(words: UOp, size: int) -> UOp:
    """Return each element cut into words of `size` bytes, the lowest first."""
    *lead, count = words.shape
    parts = words.dtype.itemsize // size
    shape = (*lead, count, parts)
    place = iota(parts, words.dtype) * (8 * size)
    shifts = expanded(_reshaped(place, (1,) * len(words.shape) + (parts,)), shape)
    wide = expanded(_reshaped(words, (*words.shape, 1)), shape)
    return _reshaped((wide >> shifts).cast(_WORDS[size]), (*lead, count * parts))


def _joined(words: UOp, size: int) -> UOp:
    """Return elements joined to words of `size` bytes, the first one lowest."""
    *lead, count = words.shape
    own, wide = words.dtype.itemsize, _WORDS[size]
    parts = size // own
    shape = (*lead, count // parts)
    rows = _reshaped(words, (*shape, parts)).cast(wide)
    box = tuple((0, n) for n in shape)
    lanes = [
        _reshaped(UOp(Ops.SHRINK, wide, (rows,), (*box, (i, i + 1))), shape) << 8 * own * i
        for i in range(parts)
    ]
    return reduce(lambda a, b: a | b, lanes)


def _reshaped(value: UOp, shape: Shape) -> UOp:
    return UOp(Ops.RESHAPE, value.dtype, (value,), shape)
