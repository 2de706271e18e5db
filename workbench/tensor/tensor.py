"""Tensor: the public class. Operations build a graph; `realize` and the read-backs compute it.

The names, arguments and semantics are tinygrad 0.14's, and through it PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from difflib import get_close_matches
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np

from workbench.backends.device import Device
from workbench.base.context import DEV, Context
from workbench.base.dtypes import Const
from workbench.base.errors import CopyError, KernelOptError, type_name
from workbench.base.source import Derivation
from workbench.execution.buffers import allocated, copied
from workbench.execution.capture import is_capturing
from workbench.execution.memory_plan import is_realized, mark_computed, to_numpy, with_computed
from workbench.execution.realize import realize, running, schedule, written_through
from workbench.ir.gradient.occurrences import alias, as_source, without_alias
from workbench.ir.node.construct import constant_of, contiguous
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.ir.opt.apply import opt_rows
from workbench.ir.opt.opt import Opt
from workbench.ir.schedule.plan import ScheduleItem
from workbench.ir.schedule.schedule import base
from workbench.search.realization import tuned
from workbench.tensor.assignment import Assignment
from workbench.tensor.autograd.autograd import Autograd
from workbench.tensor.autograd.leaves import TensorClass, leads_to_leaf, plain_value
from workbench.tensor.autograd.origins import note_origins
from workbench.tensor.base import canonical, moved, nodes_alive, tensors_alive, tensors_in_graphs
from workbench.tensor.copies import Copies
from workbench.tensor.creation.creation import Likes
from workbench.tensor.creation.sampling import Sampling
from workbench.tensor.custom.custom_kernel import CustomKernels
from workbench.tensor.elementwise.activations import Activations, Rectifiers
from workbench.tensor.elementwise.arithmetic import Arithmetic
from workbench.tensor.elementwise.comparison import Casts, Closeness, ComparisonMixin, Several
from workbench.tensor.elementwise.functions import Functions, Pairs
from workbench.tensor.files import check_readable, computing_device, is_file
from workbench.tensor.interop import Interop
from workbench.tensor.lazily import refuse_to_compute, skips_realize
from workbench.tensor.linalg import SVD, NewtonSchulz
from workbench.tensor.losses import BinaryLosses, ClassLosses
from workbench.tensor.movement.joining import Joining, Repetition
from workbench.tensor.movement.movement import Movement, reshaped
from workbench.tensor.movement.padding import Interpolation, Padding
from workbench.tensor.movement.rearrange import Rearrange, Scatter
from workbench.tensor.movement.windows import Diagonals
from workbench.tensor.numpy import array_api
from workbench.tensor.numpy.dispatch import apply_function, apply_ufunc
from workbench.tensor.numpy.tensor_class import set_tensor_class
from workbench.tensor.operands.arguments import dtype_error, flag, shape_error, short, where
from workbench.tensor.operands.axes import checked_opts, one_axis
from workbench.tensor.reductions.convolution import TransposedConvolution
from workbench.tensor.reductions.einsum import Einsum, Matmul
from workbench.tensor.reductions.keccak import Keccak
from workbench.tensor.reductions.normalization import Attention, Normalization, Statistics
from workbench.tensor.reductions.pooling import Pooling, Unpooling
from workbench.tensor.reductions.reduce import Reduce
from workbench.tensor.reductions.scans import Cumulative
from workbench.tensor.sorting import Selection, Sorting
from workbench.tensor.versions import VersionedMemory, rename_shared


class Tensor(
    Sampling, Likes,
    Sorting, Selection, Keccak,
    NewtonSchulz, SVD, ClassLosses, BinaryLosses, Attention,
    TransposedConvolution, Pooling, Unpooling, Matmul, Einsum, Cumulative, Normalization,
    Statistics, Reduce,
    Activations, Rectifiers, Pairs, Functions, Casts, Closeness, ComparisonMixin, Several,
    Arithmetic,
    Assignment, Interpolation, Scatter, Padding, Diagonals, Rearrange, Repetition,
    Joining, Movement, CustomKernels, Autograd, Interop, Copies,
    metaclass=TensorClass,
):  # fmt: skip
    """An n-dimensional array that is computed when it is needed.

    `Tensor(data, device=None, dtype=None, requires_grad=None)`: `data` is a number, a (nested)
    list of numbers, a numpy array of any layout, which is copied, bytes, a bound `Variable`, or a
    `pathlib.Path`: the bytes of a file, which stay where they are (`workbench/tensor/files.py`).

    Dtypes: lists of bools give bool, of ints int32 (int64 where one needs it), else float32; arrays
    keep their own. Bytes are uint8, or with a dtype its elements as they lie in memory.
    Errors: ShapeError for a ragged list, DTypeError for other element types, DeviceError for a
    device that does not exist, FileError for a path that cannot be opened.

    >>> (Tensor([1, 2, 3]) * 2 + 1).tolist()
    [3, 5, 7]
    """

    __slots__ = ()

    # computing

    def realize(self, *others: Tensor) -> Self:
        """Compute this tensor, and `others` with it, and return this one.

        They are then in memory: later graphs on them do not compute them again.
        """
        if not skips_realize():
            self._results(*others)
        return self

    def _result(self) -> UOp:
        """Compute this tensor, and return its value in memory."""
        return self._results()[0]

    def _results(self, *others: Tensor) -> list[UOp]:
        """Compute this tensor and `others`, and return their values in memory."""
        refuse_to_compute("a Tensor is computed")
        with running:
            return self._computed(*others)

    def _values(self) -> np.ndarray[Any, Any]:
        """Compute this tensor, and return a copy of its values."""
        with running:
            return to_numpy(self._result())

    def _computed(self, *others: Tensor) -> list[UOp]:
        values: dict[int, UOp] = {}
        for device, tensors in _by_device((self, *others)).items():
            written = list(dict.fromkeys(m for t in tensors if (m := t._pending_memory())))
            nodes = [t.uop for t in tensors]
            versions = [m.value for m in written]
            old_versions = {m.value: m.old for m in written if m.old and _is_writable(m, m.old)}
            outputs = nodes + versions
            publish = partial(_publish, device, tensors, written, outputs, values)
            # In a context of its own, so that DEV is as before, however this ends.
            copy_context().run(_realize_on, device, outputs, old_versions, publish)
        return [values[id(tensor)] for tensor in (self, *others)]

    def _pending_memory(self) -> VersionedMemory | None:
        """Return this tensor's memory if a write to it is not computed yet, else None."""
        memory = self._memory
        return None if memory is None or memory.old is None else memory

    def _replace_expression(self, result: UOp) -> None:
        """Replace this tensor's expression by `result`, its value in memory."""
        if self.derivation is not None:  # without its sources, which are then free
            self.derivation = Derivation(result, self.derivation.calls)
        memory, node = self._memory, self.uop
        if memory is None:
            self._take_result(result)
            return
        if memory.shared is not None:
            return
        if node is memory.value:
            memory.renew(result)
            return
        if not _needs_expression(memory):
            memory.renew(with_computed(memory.value))
        others = (t for t in tensors_alive() if t is not self)
        if any(t._memory is memory for t in others):
            mark_computed([self.uop], [result])
            return
        self._memory = self._version = None
        self._take_result(result)

    def schedule(self, *others: Tensor) -> tuple[ScheduleItem, ...]:
        """Return the items that `realize` would run, in order, without running them."""
        items: list[ScheduleItem] = []
        for device, tensors in _by_device((self, *others)).items():
            with Context(DEV=computing_device(device)):
                items.extend(schedule([t.uop for t in tensors]))
        return tuple(items)

    # reading back

    def numpy(self) -> np.ndarray[Any, Any]:
        """Compute the tensor if necessary, and return its values as a numpy array of its shape.

        Dtypes: bfloat16 and floats of 8 bits, which numpy lacks, become float32.
        """
        values = self._values()
        return values if self.dtype.in_numpy else values.astype(np.float32)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        kind = None if dtype is None else _numpy_dtype(dtype)
        if copy is not None and not flag(copy, "__array__: copy"):
            raise CopyError(
                "numpy cannot have a tensor's values without a copy",
                "an array over the same memory would change, and free, what kernels still read",
                "np.asarray(tensor), or copy=None",
                where(),
            )
        values = self.numpy()
        return values if kind is None else values.astype(kind, copy=False)

    if not TYPE_CHECKING:  # with it, mypy would accept every attribute

        def __getattr__(self, name: str) -> Any:
            if name == "_uop":
                return self._node_of_replay()
            near = [] if name.startswith("_") else _near_names(name)
            question = f": did you mean {' or '.join(near)}?" if near else ""
            raise AttributeError(f"a Tensor has no attribute {name!r}{question}")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Return the Tensor of `np.exp(tensor)`, and of `array + tensor`."""
        return apply_ufunc(ufunc, method, inputs, keywords)

    def __array_function__(
        self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return the Tensor of `np.mean(tensor)`, or what numpy makes of the values."""
        return apply_function(self, func, args, kwargs)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Return the module with the functions of the array API standard.

        Errors: DTypeError for a version of the standard that it does not have.
        """
        if api_version not in (None, *array_api.VERSIONS):
            raise dtype_error(
                f"there is no version {short(api_version)} of the array API",
                f"the namespace has {', '.join(array_api.VERSIONS)}",
                f"api_version={array_api.VERSIONS[-1]!r}",
            )
        return array_api

    def tolist(self) -> Any:
        """Return the values as nested lists; a scalar as a Python number."""
        return self.numpy().tolist()

    def item(self) -> Const:
        """Return the value of a tensor of one element as a Python number.

        Errors: ShapeError if it has another number of elements.
        """
        if self.numel() != 1:
            raise shape_error(
                f"shape {self.shape} has no single value",
                f"it has {self.numel()} elements",
                ".tolist(), or an index first",
            )
        value: Const = self.numpy().item()
        return value

    # devices and memory

    def to(self, device: str | None) -> Self:
        """Return the tensor on `device` (None: the default one), with its `grad` there; this tensor
        if it is there already.

        Errors: DeviceError for a device that does not exist.
        """
        from_device = self._device
        name = canonical(Device.DEFAULT if device is None else device)
        if name == from_device:
            return self
        uop, own = moved(self.uop, from_device, name)
        tensor = self._with(uop)
        tensor._device = own
        if self._grad_state is not None:
            if self._grad_state.requires_grad is False:
                tensor.requires_grad_(False)
            tensor.grad = None if self.grad is None else self.grad.to(name)
        return tensor

    def to_device(self, device: str, /, *, stream: object = None) -> Self:
        """Return `to(device)`. Also known as: the array API standard's to_device."""
        if stream is not None:
            raise dtype_error(
                f"to_device: stream={short(stream)}", "devices have one queue here", "stream=None"
            )
        return self.to(device)

    def clone(self, device: str | None = None) -> Self:
        """Return a tensor of the same value with memory of its own, on `device` (None: this
        one's)."""
        copy = self._with(alias(self.uop))
        return copy if device is None else copy.to(device)

    def to_(self, device: str | None) -> Self:
        """Move this tensor, and its `grad`, to `device` (None: the default one), and return it; a
        leaf stays one. Views that shared its memory keep that memory, where it was.

        Errors: DeviceError for a device that does not exist.
        """
        moved_tensor = self.to(device)
        if moved_tensor is not self:
            grad = moved_tensor.grad
            self.replace(moved_tensor)
            if self._grad_state is not None:
                self._grad_state.grad = grad
        return self

    def contiguous(self, arg: Sequence[Opt] | None = None) -> Self:
        """Return the tensor, marked to be stored: later kernels read it instead of computing it
        again. `arg` is the whole list of opts of the kernel that stores it, instead of the default
        ones or those of a search; () for no opts.

            (a @ b).contiguous(arg=[Opt(OptOps.UPCAST, "g1", 4)]).realize()

        Errors: DTypeError for an `arg` that is no list of opts, KernelOptError for a value that no
        kernel stores and, when it is computed, for an opt that its kernel does not allow.
        """
        value = plain_value(self.uop)
        opts = None if arg is None else opt_rows(checked_opts(arg, "contiguous: arg"))
        if value.op not in (Ops.BUFFER, Ops.COPY, Ops.CONTIGUOUS, Ops.CUSTOM):
            return self._with(contiguous(self.uop, opts))
        if opts is None or (value.op is Ops.CONTIGUOUS and value.arg == opts):
            return self
        if value.op is Ops.CONTIGUOUS and value.arg is None:
            return self._with(as_source(value.replace(arg=opts), self.uop))
        raise KernelOptError(
            "no kernel with these opts stores this value",
            "other opts are asked for already"
            if value.op is Ops.CONTIGUOUS
            else "it is in memory, or made without a kernel that is optimised",
            "contiguous(arg=..) on what computes it",
            where(),
        )

    # as a Python value

    @overload
    def size(self, dim: None = None) -> Shape: ...
    @overload
    def size(self, dim: int) -> int: ...
    def size(self, dim: int | None = None) -> Shape | int:
        """Return the shape, or the size of axis `dim`."""
        if dim is None:
            return self.shape
        axis = one_axis(dim, self.ndim, "size")
        return self.shape[axis] if self.ndim else 1

    def __repr__(self) -> str:
        node, memory = without_alias(self.uop), self._memory
        state = "" if is_realized(node) else f", {node.op.name} not computed"
        if state and memory is not None and memory.shared and is_realized(memory.value):
            state = ", a view of shared memory"  # which is read anew each time
        return f"<Tensor {self.dtype} {self.shape} on {self.device}{state}>"

    def __bool__(self) -> bool:
        refuse_to_compute("the truth of a Tensor decides what runs")
        raise dtype_error(
            "a tensor has no truth value",
            "it may have many elements, and none is computed yet",
            ".item() for the value of one element, .any() or .all() for many",
        )

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __format__(self, spec: str) -> str:
        """Format the one element as a number: f"{loss:.3f}"; without a format, `repr`."""
        return format(self.item(), spec) if spec else repr(self)


set_tensor_class(Tensor)


def _realize_on(
    device: str,
    outputs: list[UOp],
    old_versions: dict[UOp, UOp],
    publish: Callable[[list[UOp]], None],
) -> None:
    """Compute `outputs`; those whose graphs read no memory are computed on `device`."""
    DEV.set(computing_device(device))
    realize(outputs, tuned, nodes_alive, old_versions, publish)


def _publish(
    device: str,
    tensors: list[Tensor],
    written: list[VersionedMemory],
    outputs: list[UOp],
    values: dict[int, UOp],
    results: list[UOp],
) -> None:
    """Replace the expressions of `tensors` and of `written` memory by `results`, and add the result
    of each tensor to `values`, by its id."""
    memories = [*dict.fromkeys([*written, *[m for t in tensors if (m := t._memory)]])]
    before = [*[t.uop for t in tensors], *[m.value for m in memories]]
    for memory, result in zip(written, results[len(tensors) :], strict=True):
        old, memory.old = memory.old, None
        if memory.shared is not None:
            assert old is not None
            result = written_through(result, old, memory.shared)
        if not _needs_expression(memory):
            memory.renew(_unshared(result, memory))
    for tensor, result in zip(tensors, results, strict=False):
        own = tensor._memory
        if own is not None and own in written and tensor.uop is own.value:
            result = with_computed(own.value)
        values[id(tensor)] = result = _unshared(result, own)
        if not tensor._keeps_expression(result):
            tensor._replace_expression(result)
        if constant_of(result) is None:
            tensor._device = device
    after = [*[t.uop for t in tensors], *[m.value for m in memories]]
    note_origins(zip(before, after, strict=True), tensors_in_graphs)
    rename_shared(outputs)


def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    try:
        numpy_dtype: np.dtype[Any] = np.dtype(dtype)
        return numpy_dtype
    except (TypeError, ValueError):
        raise dtype_error(
            f"{short(dtype)} names no numpy type",
            "np.asarray(tensor, dtype) takes what numpy.dtype() does",
            "np.float32",
        ) from None


def _needs_expression(memory: VersionedMemory) -> bool:
    """Whether a memory keeps its expression after it is computed: it is no leaf, and a gradient may
    flow through it to one."""
    return not memory.leaf and leads_to_leaf(memory.value)


def _is_writable(memory: VersionedMemory, old: UOp) -> bool:
    """Whether the present version of a memory may be written over the `old` one. Memory that
    another library sees must hold no other value: the library may change it."""
    if _needs_expression(memory):
        return False
    if memory.shared is None:
        own = allocated(old)
        return own is None or not own.owner.is_shared
    return memory.value not in UOp.sink(*nodes_alive([memory])).toposort()


def _unshared(result: UOp, memory: VersionedMemory | None) -> UOp:
    """Return `result`, or a copy if it is in memory that another library sees and not `memory`'s.
    A capture copies nothing."""
    under = base(result)
    if under.op is not Ops.BUFFER or is_capturing():
        return result
    own = allocated(under)
    if own is None or not own.owner.is_shared or (memory and memory.shared):
        return result
    return reshaped(copied(under), result.shape)


_NAMES_OF_NUMPY = {
    "astype": "cast",
    "copy": "clone",
    "expand_dims": "unsqueeze",
    "fill": "full_like",
    "ravel": "flatten",
    "swapaxes": "transpose",
    "take": "gather",
    "tobytes": "data",
}
"""What methods of arrays are called here, where the names are not alike."""


@cache  # code that asks `getattr(x, "name", None)` asks often, and a comparison takes long
def _near_names(name: str) -> list[str]:
    if name in _NAMES_OF_NUMPY:
        return [_NAMES_OF_NUMPY[name]]
    return get_close_matches(name, [known for known in dir(Tensor) if not known.startswith("_")])


def _by_device(tensors: tuple[Tensor, ...]) -> dict[str, list[Tensor]]:
    groups: dict[str, list[Tensor]] = {}
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise dtype_error(
                f"{short(tensor)} is not a tensor",
                f"tensors are computed, and this is {type_name(type(tensor))}",
                "a.realize(b, c), with tensors b and c",
            )
        if is_file(tensor._device):
            check_readable([tensor.uop])
        groups.setdefault(tensor.device, []).append(tensor)
    return groups
