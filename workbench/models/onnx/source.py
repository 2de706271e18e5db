"""ONNX models as sources: files, on their own memory, with inputs by position or by name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.base.dtypes import DType
from workbench.base.errors import ModelError, kind_of
from workbench.models.memory import on_memory
from workbench.models.model import BoundInputs, Port
from workbench.models.onnx.file import Declared, read
from workbench.models.onnx.folding import MOST_ELEMENTS, Needs
from workbench.models.onnx.graph import OnnxGraph
from workbench.models.onnx.table import load_rows
from workbench.models.onnx.values import Array, dtype_of
from workbench.search.tuning import note_model_file
from workbench.tensor.tensor import Tensor


class OnnxSource:
    """A path of an ONNX file, its bytes, or an onnx.ModelProto."""

    def __init__(self, source: Any):
        self._file = read(source)
        self.path = ""
        if isinstance(source, (str, os.PathLike)):
            self.path = os.path.abspath(source)
            note_model_file(self.path)
        load_rows()
        self._needed = Needs(self._file.functions).names(self._file.body)
        self.name = self._file.name
        # A number is a constant of kernels; other initializers are memory that is read.
        self.state: Mapping[str, Tensor] = {
            name: on_memory(array)
            for name, array in self._file.body.constants.items()
            if array.ndim
        }
        self.parameter_names: Sequence[str] = [
            name for name, tensor in self.state.items() if _is_trained(tensor.dtype)
        ]

    def bound(self, arguments: tuple[object, ...], options: Mapping[str, object]) -> BoundInputs:
        """Return arguments as the file declares its inputs, in that order.

        Errors: ModelError for inputs that are missing, left over, or of another dtype or shape, and
        for weights whose file has changed.
        """
        for file in self._file.mapped:
            file.check(self.name)
        declared = self._file.inputs
        if len(arguments) > len(declared):
            raise self._unfit(f"there are {len(arguments)} inputs")
        given = dict(zip((each.name for each in declared), arguments, strict=False))
        for name, value in options.items():
            if name in given:
                raise self._unfit(f"the input {name!r} is given twice", "by position, or by name")
            if all(name != each.name for each in declared):
                raise self._unfit(f"it has no input {name!r}", "the names above")
            given[name] = value
        missing = [each.name for each in declared if each.name not in given]
        if missing:
            raise self._unfit(f"the input {missing[0]!r} is missing")
        tensors = tuple(self._tensor(each, given[each.name]) for each in declared)
        self._check_shapes(tensors)
        known = {
            each.name: self._array(each.name, tensor)
            for each, tensor in zip(declared, tensors, strict=True)
            if each.name in self._needed
        }
        shapes = tuple((t.shape, t.dtype) for t in tensors)
        values = tuple((name, array.tobytes()) for name, array in known.items())
        return BoundInputs(tensors, (shapes, values), known, frozenset(known))

    def random_inputs(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
        """Return inputs by name: random numbers for floats, zeros for others. `shapes` are those of
        inputs that the file leaves open. Errors: ModelError for an open shape that is not among
        them."""
        draw = np.random.default_rng(0)
        inputs: dict[str, Array] = {}
        for each in self._file.inputs:
            declared = shapes.get(each.name, each.shape)
            shape = tuple(size for size in declared or () if isinstance(size, int))
            if declared is None or shape != declared:
                raise self._unfit(f"the shape of {each.name!r} is open", f"{each.name}=1,3,64,64")
            dtype = dtype_of(each.number)
            values = draw.standard_normal(shape) if dtype.is_float else np.zeros(shape)
            inputs[each.name] = values.astype(dtype.numpy)
        return inputs

    def graph(self, call: BoundInputs) -> OnnxGraph:
        pairs = zip(self._file.inputs, call.tensors, strict=True)
        ports = tuple(Port(each.name, t.shape, t.dtype) for each, t in pairs)
        return OnnxGraph(self._file, self.state, ports, call.arguments)

    def _tensor(self, declared: Declared, value: Any) -> Tensor:
        dtype = dtype_of(declared.number)
        tensor = _as_tensor(value, dtype)
        if tensor is None:
            raise self._unfit(f"the input {declared.name!r} is {kind_of(value)}")
        if tensor.dtype is not dtype:
            because = f"the input {declared.name!r} has dtype {tensor.dtype}"
            raise self._unfit(because, f"x.cast({str(dtype)!r}), or x.astype(np.{dtype})")
        return tensor

    def _check_shapes(self, tensors: Sequence[Tensor]) -> None:
        """Errors: ModelError for a shape that is not the declared one."""
        for declared, tensor in zip(self._file.inputs, tensors, strict=True):
            if declared.shape is None:
                continue
            is_fit = len(declared.shape) == tensor.ndim
            for axis, size in zip(declared.shape, tensor.shape, strict=False):
                is_fit &= not isinstance(axis, int) or axis == size
            if not is_fit:
                raise self._unfit(f"the input {declared.name!r} has shape {tensor.shape}")

    def _array(self, name: str, tensor: Tensor) -> Array:
        if tensor.numel() > MOST_ELEMENTS:
            because = f"shapes depend on the values of {name!r}, and it has {tensor.numel():,}"
            raise ModelError(f"cannot read {self.name} for these inputs", because)
        return np.asarray(tensor.numpy()).astype(tensor.dtype.numpy)  # numpy lacks some

    def _unfit(self, because: str, hint: str = "") -> ModelError:
        takes = ", ".join(map(_described, self._file.inputs)) or "no inputs"
        return ModelError(f"{self.name} takes {takes}", because, hint)


def _is_trained(dtype: DType) -> bool:
    """Whether tensors of a dtype are weights, also quantized ones: wider integers are shapes and
    indices."""
    return dtype.is_float or (dtype.is_int and dtype.itemsize == 1)


def _as_tensor(value: Any, dtype: DType) -> Tensor | None:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return Tensor(np.asarray(value))
    if isinstance(value, (bool, int, float, list, tuple)):
        return Tensor(np.array(value).astype(dtype.numpy))
    if hasattr(value, "__dlpack__"):
        return Tensor.from_dlpack(value.detach() if hasattr(value, "detach") else value)
    return None


def _described(declared: Declared) -> str:
    dtype = dtype_of(declared.number)
    if declared.shape is None:
        return f"{declared.name}: {dtype}"
    return f"{declared.name}: {dtype}[{', '.join(str(n or '?') for n in declared.shape)}]"
