"""The base of all tensors: a node of the graph, and its device.

The methods are in files by topic, each a mix-in over Base; `Tensor` inherits from all of them.
`Methods` declares, for the type checker, the methods that one mix-in calls of another. Nothing is
computed before `realize`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container
from pathlib import Path
from typing import Self
from weakref import ref

import numpy as np

from workbench.backends.device import Device
from workbench.backends.mapped_file import DISK
from workbench.backends.memory import Buffer
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import type_name
from workbench.base.interrupts import Uninterrupted, free_rlock
from workbench.base.source import Derivation, derived
from workbench.execution.buffers import buffer_on, without_memory
from workbench.ir.gradient.occurrences import former_of, is_duplicate, without_alias
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.tensor.autograd.leaves import GradientState, claim, number_of, occurrence, own_node
from workbench.tensor.autograd.origins import Origin, note_results
from workbench.tensor.files import file_device, is_file, opened, read_to, saved
from workbench.tensor.methods import Methods
from workbench.tensor.methods import Operand as Operand
from workbench.tensor.operands.arguments import (
    MOST_AXES,
    device_error,
    dtype_error,
    flag,
    python_scalar,
    shape_error,
    short,
)
from workbench.tensor.operands.broadcast import (
    BoundVariable,
    Variable,
    cast_to,
    constant,
    matched,
    promoted_operands,
    scalar_dtype,
    weak_dtype,
)
from workbench.tensor.operands.literal import as_dtype, literal
from workbench.tensor.versions import VersionedMemory, rebased

_alive: dict[TensorReference, None] = {}
"""References to all living tensors."""
_forget = _alive.pop
_rebasing = free_rlock()
"""The lock for making a tensor a view of memory, or of a newer version of its memory."""


def tensors_alive() -> list[Base]:
    """Return all living tensors."""
    # The copy comes first: another thread may add a tensor meanwhile.
    tensors = [reference() for reference in _alive.copy()]
    return [tensor for tensor in tensors if tensor is not None]


def tensors_in_graphs() -> list[Base]:
    """Return all living tensors that have a node."""
    return [
        t
        for t in tensors_alive()
        if t._replayed is None and (t._memory is None or t._memory.has_node)
    ]


def nodes_alive(excluded: Container[VersionedMemory | None] = ()) -> list[UOp]:
    """Return the nodes of all living tensors, and of memory with a write that is not computed: its
    views may be known constants. Tensors of memory in `excluded` are left out."""
    tensors = [t for t in tensors_in_graphs() if t._memory not in excluded]
    nodes = [tensor.uop for tensor in tensors]
    memories = dict.fromkeys(t._memory for t in tensors)
    return nodes + [m.value for m in memories if m is not None and m.old is not None]


def forget_versions(versions: Collection[UOp]) -> None:
    """Let no tensor keep old `versions` of its memory, of which there is a newer one: it becomes a
    view of a BUFFER without memory until its node is asked for."""
    for tensor in tensors_alive():
        before = tensor._version
        if before is not None and before in versions:
            with Uninterrupted(), _rebasing:
                if tensor._version is before:
                    name = without_memory(before)
                    tensor._uop = rebased(tensor._uop, before, name)
                    tensor._version = name


class TensorReference(ref["Base"]):
    """A weak reference to a tensor, compared by identity: `==` of tensors is another thing."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


ReplayedValue = tuple[Buffer, Shape, tuple[Origin, ...]]
"""The value of a result of a replay: its memory, which no other tensor sees, the shape, and what it
was computed from. A plain tuple: there is one for each call."""


class Base(Methods):
    """A tensor's node, dtype, shape and device, and the conversion of operands to nodes."""

    __slots__ = (
        "__weakref__", "_device", "_expression", "_grad_state", "_is_weak", "_memory", "_replayed",
        "_uop", "_version", "derivation",
    )  # fmt: skip

    _uop: UOp  # absent as long as there is `_replayed`: `Tensor.__getattr__` makes it
    _replayed: ReplayedValue | None  # its value, until its node is asked for
    _memory: VersionedMemory | None  # None: no other tensor sees writes to this one
    _version: UOp | None  # the version of `_memory` that `_uop` is a view of
    _grad_state: GradientState | None  # None: nothing about a gradient was set
    _expression: ref[UOp] | None  # its node before it was computed
    _is_weak: bool  # made of Python scalars alone, without a dtype
    _device: str | None  # None: a constant, which is on every device
    derivation: Derivation | None  # the user's lines that made it, or None

    def __init__(
        self,
        data: object,
        device: str | None = None,
        dtype: DType | str | None = None,
        requires_grad: bool | None = None,
    ):
        kind = None if dtype is None else as_dtype(dtype)
        name = None if device is None else canonical(device)
        self._grad_state = self._replayed = None
        self._memory = self._version = self._expression = None
        if isinstance(data, Base | UOp):
            uop, self._device = _adopted(data, name, kind)
            is_own = isinstance(data, UOp) and claim(uop)
            self._uop = uop if is_own else occurrence(uop)
            if isinstance(data, Base) and uop is data.uop:
                self._share(data)
            self._is_weak = kind is None and isinstance(data, Base) and data._is_weak
        elif isinstance(data, Path):
            self._uop = opened(data, kind or dtypes.uint8)
            self._device, self._is_weak = f"{DISK}{data.resolve()}", False
            if name is not None:
                self._uop, self._device = moved(self._uop, self._device, name)
        else:
            value = literal(data, name or Device.DEFAULT, kind)
            own = _device_of(value)
            self._uop = own_node(value)
            self._device = name or own
            self._is_weak = kind is None and type(data) in (bool, int, float)
        _refuse_axes(self.uop)
        _alive[TensorReference(self, _forget)] = None
        before = data.derivation if isinstance(data, Base) else None
        self.derivation = _derivation(self.uop, [before])
        self._leaf_if(requires_grad)

    # properties

    @property
    def uop(self) -> UOp:
        """The node of its value; with shared memory, a view of that memory's present version."""
        memory = self._memory
        if memory is None:
            return self._uop
        uop = self._uop  # before the version: `forget_versions` changes both
        if memory.value is self._version:
            return uop
        with Uninterrupted(), _rebasing:  # Ctrl-C must not change one field of the two
            version, before = memory.value, self._version
            assert before is not None
            if version is not before:
                self._uop = rebased(self._uop, before, version)
                self._version = version
            return self._uop

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.uop.dtype

    @property
    def shape(self) -> Shape:
        """The size of each axis; () for a scalar."""
        return self.uop.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.uop.shape)

    @property
    def device(self) -> str:
        """The device; of a constant, the default one."""
        return self._device or Device.DEFAULT

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self.uop.shape)

    @property
    def max_shape(self) -> Shape:
        """The shape: sizes are never variables."""
        return self.shape

    def max_numel(self) -> int:
        """Return the number of elements: sizes are never variables."""
        return self.numel()

    def element_size(self) -> int:
        """Return the bytes of one element."""
        return self.dtype.itemsize

    def nbytes(self) -> int:
        """Return the bytes of all elements."""
        return self.numel() * self.element_size()

    def is_floating_point(self) -> bool:
        """Return whether the elements are floats."""
        return self.dtype.is_float

    # tensors from nodes, for the mix-ins

    @classmethod
    def _on(cls, uop: UOp, device: str | None, requires_grad: bool | None = None) -> Self:
        """Return a tensor of `uop`, a node on `device`, without lines of the user's code."""
        tensor = object.__new__(cls)
        tensor._uop, tensor._device, tensor._is_weak = uop, device, False
        tensor._memory = tensor._version = tensor._expression = None
        tensor._grad_state = tensor.derivation = tensor._replayed = None
        _alive[TensorReference(tensor, _forget)] = None
        return tensor._leaf_if(requires_grad)

    @classmethod
    def _of_replay(cls, value: ReplayedValue) -> Self:
        """Return a tensor of the result of a replay. It gets a node when that is asked for: most
        results are read, or handed to the next replay, which need none. It must be quick."""
        tensor = object.__new__(cls)
        tensor._replayed, tensor._device, tensor._is_weak = value, value[0].device, False
        tensor._memory = tensor._version = tensor._expression = None
        tensor._grad_state = tensor.derivation = None
        _alive[TensorReference(tensor, _forget)] = None
        return tensor

    def _node_of_replay(self) -> UOp:
        """Return the node of the result of a replay, made now: a BUFFER on its memory."""
        with Uninterrupted(), _rebasing:
            value = self._replayed
            if value is not None:  # no other thread has made it
                memory, shape, origins = value
                node = buffer_on(memory, shape)
                claim(node)
                if origins:
                    note_results([node], origins)
                self._uop = node
                self._replayed = None
        present: UOp = object.__getattribute__(self, "_uop")  # not by `__getattr__`
        return present

    def _leaf_if(self, requires_grad: bool | None) -> Self:
        """Set `requires_grad` unless it is None, and return this tensor."""
        return self if requires_grad is None else self.requires_grad_(requires_grad)

    @classmethod
    def _of_value(cls, value: UOp) -> Self:
        """Return a tensor of a value that is made of no other tensor.

        Errors: ShapeError for too many axes or elements.
        """
        _refuse_axes(value)
        tensor = cls._on(own_node(value), _device_of(value))
        tensor.derivation = _derivation(tensor.uop, [])
        return tensor

    def _with(self, uop: UOp, *others: Base) -> Self:
        """Return a tensor of `uop`, which was derived from this tensor and `others`.

        Errors: ShapeError for too many axes or elements, DeviceError for tensors of two devices.
        """
        _refuse_axes(uop)
        tensor = self._on(occurrence(uop), self._device)
        tensor._is_weak = self._is_weak
        for other in others:
            tensor._is_weak = tensor._is_weak and other._is_weak
            if other._device != tensor._device:
                tensor._device = _common_device(tensor._device, other._device)
        if not uop.is_const:
            sources = [other.derivation for other in others]
            sources.insert(0, self.derivation)
            tensor.derivation = derived(without_alias(uop), sources)
        return tensor

    def _view(self, uop: UOp) -> Self:
        """Return a tensor of `uop`, this tensor's node after movement. The two share memory: each
        sees what is written to the other."""
        tensor = self._with(uop)
        tensor._share(self)
        return tensor

    def _restate(self, node: UOp) -> None:
        """Replace this tensor's node by `node`, of the same value: it became a leaf, or
        ceased to be one."""
        memory = self._memory
        if memory is not None and self.uop is memory.value:
            memory.value, memory.leaf = node, number_of(self)
        else:
            self._uop = node

    def _own_nodes(self) -> set[UOp]:
        """Return the nodes that stand for this tensor: its present one, and those alive that it had
        before it was computed, or its memory renamed. Where a gradient of the present one flows to
        a former one, only that is returned."""
        node, memory = self.uop, self._memory
        if memory is None:
            former = None if self._expression is None else self._expression()
            return {node} if former is None else {node, former}
        source = former_of(memory.value)
        if source is not None:
            return {rebased(node, memory.value, source)}
        formers = [former() for former in memory.former]
        return {node, *[rebased(node, memory.value, n) for n in formers if n is not None]}

    def _share(self, other: Base) -> None:
        """Make this tensor a view of the memory of `other`, whose node is below this one's."""
        with _rebasing:
            if other._memory is None:
                memory = VersionedMemory(other._uop, other.device, number_of(other))
                # The version first: it is read only with a memory, so Ctrl-C may come in between.
                other._version, other._memory = other._uop, memory
            self._version, self._memory = other._version, other._memory

    def _lift(self, operand: Operand, what: str) -> Self:
        """Return `operand` as a tensor; a Python scalar has this tensor's dtype where that fits.
        `what` names the operation in errors.

        Errors: DTypeError for an operand that is no tensor, scalar, array or Variable, and for an
        int out of range of the dtype.
        """
        if isinstance(operand, Base):
            return operand  # type: ignore[return-value]  # of this class, or of one beside it
        operand = python_scalar(operand)
        if isinstance(operand, bool | int | float):
            dtype = weak_dtype(self.dtype, scalar_dtype(operand))
            return self._with(constant(dtype, operand, what))
        if isinstance(operand, np.ndarray | Variable | BoundVariable):
            return type(self)(operand, device=self._device)
        raise dtype_error(
            f"cannot {what} a tensor and {type_name(type(operand))} {short(operand)}",
            "operands are tensors, numpy arrays and Python numbers",
            _tensor_hint(operand),
        )

    def _matched(self, operand: Operand, what: str, reverse: bool = False) -> tuple[UOp, UOp, Self]:
        """Return the nodes of both operands in one dtype and shape, this tensor's first (`reverse`:
        last), and `operand` as a tensor."""
        other = self._lift(operand, what)
        mine, others = matched(what, *promoted_tensors(what, self, other))
        if flag(reverse, "reverse"):
            return others, mine, other
        return mine, others, other


def _derivation(uop: UOp, sources: list[Derivation | None]) -> Derivation | None:
    """Return the derivation of a node; None for a constant, which many tensors share."""
    value = without_alias(uop)
    value = value.src[0] if is_duplicate(value) else value
    return None if value.is_const else derived(without_alias(uop), sources)


def promoted_tensors(what: str, *tensors: Base) -> tuple[UOp, ...]:
    """Return the nodes of tensors, all cast to the dtype that they promote to."""
    return promoted_operands(what, [(t.uop, t._is_weak) for t in tensors])


def _tensor_hint(operand: object) -> str:
    """Return a hint to make a tensor of an operand."""
    if hasattr(type(operand), "__array__"):
        return f"Tensor(..) of the {type_name(type(operand))}"
    if not isinstance(operand, list | tuple):
        return "Tensor([1.0, 2.0]), or a number"
    text = repr(operand)
    return f"Tensor({text})" if len(text) <= 40 else f"Tensor(..) of the {type_name(type(operand))}"


def _refuse_axes(uop: UOp) -> None:
    """Raise ShapeError for more axes than numpy has; `uop.shape` does so for too many elements."""
    count = len(uop.shape)
    if count > MOST_AXES:
        raise shape_error(
            f"cannot make a tensor of {count} axes",
            f"it could not be read back: numpy has at most {MOST_AXES}",
            "reshape, to make several axes one",
        )


def canonical(device: str) -> str:
    """Return the registered name of a device, or "DISK:" and the full path of a file.

    Errors: DeviceError.
    """
    if isinstance(device, str) and (name := file_device(device)) is not None:
        return name
    if not isinstance(device, str):
        raise device_error(
            f"there is no device {short(device)}",
            f"the name of a device is text, and this is {type_name(type(device))}",
            f'"{Device.DEFAULT}", or None for the default one',
        )
    return Device[device].name


def _adopted(data: Base | UOp, device: str | None, dtype: DType | None) -> tuple[UOp, str | None]:
    if isinstance(data, Base):
        uop, own = data.uop, data._device
    else:
        uop, own = data, _device_of(data)
    uop = uop if dtype is None else cast_to(uop, dtype)
    return moved(uop, own, device) if device else (uop, own)


def moved(uop: UOp, own: str | None, device: str) -> tuple[UOp, str]:
    """Return `uop`, a node on `own` (None: a constant), as one on `device`, and `device`."""
    if is_file(device) and own != device:
        return saved(uop, device), device
    if own is None or own == device:
        return uop, device
    if is_file(own):
        return read_to(uop, device), device
    return UOp(Ops.COPY, uop.dtype, (uop,), device), device


def _device_of(root: UOp) -> str | None:
    """Return the device that the graph under `root` computes on; None if it has no memory."""
    stack, visited = [root], set()
    while stack:
        node = stack.pop()
        if node in visited:
            continue
        visited.add(node)
        if node.op in (Ops.COPY, Ops.BUFFER):
            return node.device
        stack.extend(node.src)
    return None


def _common_device(a: str | None, b: str | None) -> str | None:
    if a is None or b is None:
        return a or b
    raise device_error(
        f"cannot combine tensors on {a} and on {b}",
        "a kernel reads memory of one device only",
        f'.to("{a}") on the one that is on {b}',
    )
