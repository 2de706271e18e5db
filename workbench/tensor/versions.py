"""Memory that several tensors share, and its versions.

An expression never changes its value; memory does. Tensors that are views of the same memory share
a `VersionedMemory`. A write makes a new present version: an expression of the whole memory with
the new elements in it. All tensors of the memory become views of that. Expressions that were built
on an older version keep it. Nothing is computed here, and nothing is overwritten: whether the new
version is written over the old one is decided when it is computed
(`workbench/execution/capture.py`).
Source of the idea: static single assignment, of arrays (Knobe and Sarkar 1998).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, ref

from workbench.backends.memory import Buffer
from workbench.base.dtypes import dtypes
from workbench.base.interrupts import Uninterrupted, free_rlock, scope
from workbench.execution.buffers import buffer_on, name_of_shared
from workbench.execution.capture import note_to_others
from workbench.ir.gradient.occurrences import duplicate, flows_on, former_of, renamed
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.pickles import pickled
from workbench.portable import Portable, portable
from workbench.tensor.autograd.leaves import leads_to_leaf, leaf_node, own_node, plain_value
from workbench.tensor.autograd.origins import Origin, note_results, rename_origins
from workbench.tensor.operands.arguments import shape_error
from workbench.tensor.operands.broadcast import expanded
from workbench.tensor.operands.literal import bits_as, source_of_bits

Step = tuple[Ops, Any]
"""A movement op and its arg, or BITCAST and a dtype, which may have another width."""
_writes: ContextVar[list[VersionedMemory] | None] = ContextVar("writes", default=None)


@scope
def noting_writes() -> Generator[list[VersionedMemory], None, None]:
    """Return a `with` block that lists the memory written in it, in order."""
    writes: list[VersionedMemory] = []
    token = _writes.set(writes)
    try:
        yield writes
    finally:
        _writes.reset(token)


_shared_memories: WeakSet[VersionedMemory] = WeakSet()
"""Memory that another library may write."""


class _Replacements:
    """The count of Tensor.replace() calls: when it changes, captures check whether one of their
    tensors has other memory."""

    count = 0


replacements = _Replacements()


class ReplayedVersion:
    """A version that a replay has computed, compared by identity: its memory, which no other tensor
    sees, the shape, and what it was computed from."""

    __slots__ = ("memory", "origins", "shape")

    def __init__(self, memory: Buffer, shape: Shape, origins: tuple[Origin, ...]):
        self.memory, self.shape, self.origins = memory, shape, origins


_making = free_rlock()
"""The lock for making the node of a version, and for taking a version without one."""


@pickled
class VersionedMemory:
    """The memory of one tensor and its views.

    `value` is the node of the present version of the whole memory, on `device`; `leaf` is the
    number of the leaf that has this memory (0: no leaf). While a newer version is not computed yet,
    `old` is the BUFFER of the one computed last. `former` are the nodes of the present version
    before it was computed or renamed. `shared` is the memory that another library sees, or None.
    `replayed` is a present version that has no node yet.
    """

    __slots__ = (
        "__weakref__", "device", "former", "is_written", "leaf", "old", "replayed", "shared",
        "value",
    )  # fmt: skip

    value: UOp  # absent as long as there is `replayed`: `__getattr__` makes it

    def __init__(self, value: UOp, device: str, leaf: int):
        self.value, self.device, self.leaf = value, device, leaf
        self.replayed: ReplayedVersion | None = None
        self.old: UOp | None = None
        self.former: list[ref[UOp]] = []
        self.shared: Buffer | None = None
        self.is_written = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the value, once for all its views. In another process it is in other memory."""
        return restored_memory, (portable(self.value), self.device)

    if not TYPE_CHECKING:  # with it, mypy would accept every attribute

        def __getattr__(self, name: str) -> Any:
            if name == "value":
                return self._node_of_replay()
            raise AttributeError(name)

    @property
    def version(self) -> UOp | ReplayedVersion:
        """The present version: its node, or what it is without one."""
        return self.replayed or self.value

    @property
    def has_node(self) -> bool:
        """Whether a graph may have a node of it."""
        return self.replayed is None or any(node() is not None for node in self.former)

    def take_replayed(self, memory: Buffer, origins: tuple[Origin, ...]) -> UOp | None:
        """Make what a replay has computed the present version, whose node is made when it is asked
        for; return the node of the version before, if it has one."""
        with _making:
            before = None if self.replayed is not None else self.value
            shape = self.value.shape if self.replayed is None else self.replayed.shape
            if before is not None and not self.leaf:
                self.former = [*[node for node in self.former if node() is not None], ref(before)]
            self.old, self.replayed = None, ReplayedVersion(memory, shape, origins)
            if before is not None:
                del self.value
        return before

    def _node_of_replay(self) -> UOp:
        """Return the node of what a replay has computed, made now."""
        with Uninterrupted(), _making:
            version = self.replayed
            if version is not None:  # no other thread has made it
                node = buffer_on(version.memory, version.shape)
                if version.origins:
                    note_results([node], version.origins)
                value = leaf_node(self.leaf, node) if self.leaf else own_node(node)
                if self.replayed is version:
                    self.value = value
                    self.replayed = None
        present: UOp = object.__getattribute__(self, "value")  # not by `__getattr__`
        return present

    def write(self, value: UOp) -> None:
        """Make `value`, of the same shape and dtype, the present version."""
        under = self._under()
        if self.old is None and under.op is Ops.BUFFER:
            self.old = under
        elif self.old is None and self.shared is not None:
            self.old = name_of_shared(self.shared, value.shape)
        self.value = leaf_node(self.leaf, value) if self.leaf else value
        self.is_written, self.former = True, []
        note_to_others([value])
        writes = _writes.get()
        if writes is not None:
            writes.append(self)

    def share(self, memory: Buffer) -> None:
        """Note that another library sees `memory`, which holds the present version."""
        memory.owner.is_shared = True
        self.shared = memory
        _shared_memories.add(self)
        self.rename()

    def rename(self) -> None:
        """Give the present version, if it is in memory that another library may write, a new
        BUFFER: values that were computed from the old BUFFER may not hold for it."""
        is_there = self.old is None and self._under().op is Ops.BUFFER
        if self.shared is not None and is_there:
            name = name_of_shared(self.shared, self.value.shape)
            former = self.value
            self.rename_to(name)
            rename_origins({former: name})

    def rename_to(self, name: UOp) -> None:
        """Make `name`, a new BUFFER on this memory, its node. A value that leads to a leaf keeps
        its expression: its gradient flows to what it was before."""
        if self.leaf or not leads_to_leaf(self.value):
            self.renew(name)
            return
        note_to_others([name])
        self.value = own_node(renamed(name, former_of(self.value) or self.value))

    @property
    def has_former(self) -> bool:
        """Whether the present version had another node before."""
        return bool(self.former) or former_of(self.value) is not None

    def _under(self) -> UOp:
        """Return its value without RESHAPEs and DETACHes."""
        under = self.value
        while under.op in (Ops.RESHAPE, Ops.DETACH):
            under = under.src[0]
        return under

    def renew(self, value: UOp) -> None:
        """Make `value`, to which the present version was computed, its node."""
        note_to_others([value])
        if self.leaf:
            self.value = leaf_node(self.leaf, value)
            self.replayed = None
        elif plain_value(self.value) is not value:
            former = [node for node in self.former if node() is not None]
            self.former, self.value = [*former, ref(self.value)], own_node(value)


def rename_shared(nodes: Sequence[UOp]) -> None:
    """Give new BUFFERs to memory of other libraries that the computed `nodes` read."""
    memories = {m._under(): m for m in _shared_memories}
    if memories:
        read = UOp.sink(*nodes).toposort()
        for under, memory in memories.items():
            if under in read:
                memory.rename()


def restored_memory(graph: Portable, device: str) -> VersionedMemory:
    (value,) = graph.restored()
    return VersionedMemory(duplicate(value), device, 0)


def rebased(view: UOp, whole: UOp, version: UOp) -> UOp:
    """Return the view of `version` that `view` is of `whole`."""
    for step in reversed(list(steps_to(view, whole))):
        version = moved_by(op_and_arg(step), version)
    return version


def op_and_arg(step: UOp) -> Step:
    """Return the op and the argument of a step of a view."""
    if source_of_bits(step) is not None:
        return Ops.BITCAST, step.dtype
    return step.op, step.arg


def moved_by(step: Step, source: UOp) -> UOp:
    """Return `source` after a step of a view."""
    op, arg = step
    if op is Ops.BITCAST:
        return bits_as(source, arg)
    return UOp(op, source.dtype, (source,), arg)


def is_detached(view: UOp, whole: UOp) -> bool:
    """Whether no gradient flows from `view` to `whole`."""
    return any(
        (step.op is Ops.DETACH and not flows_on(step)) or source_of_bits(step) is not None
        for step in steps_to(view, whole)
    )


def with_view_written(whole: UOp, view: UOp, value: UOp) -> UOp:
    """Return `whole` with the elements of `view` replaced by those of `value`, of its shape.

    Errors: ShapeError where several elements of the view are one of the whole.
    """
    inside = _true_mask(view)
    is_part = False
    for step in steps_to(view, whole):
        source = source_of_bits(step)
        if source is None:
            value, inside = _undone(step, value), _undone(step, inside)
            is_part |= step.op in (Ops.SHRINK, Ops.PAD)
        else:  # the write may change a part of an element of `source`
            value = inside.where(value, step) if is_part else value
            value, inside = bits_as(value, source.dtype), _true_mask(source)
            is_part = False
    return inside.where(value, whole) if is_part else value


def steps_to(view: UOp, whole: UOp) -> Iterator[UOp]:
    """Yield the steps from `view` down to `whole`: movement, and changes of the dtype of the same
    bits."""
    while view is not whole:
        yield view
        source = source_of_bits(view)
        view = view.src[0] if source is None else source


def _true_mask(value: UOp) -> UOp:
    return expanded(UOp.const(dtypes.bool, True), value.shape)


def _undone(step: UOp, value: UOp) -> UOp:
    """Return `value`, of the shape of `step`, at its place in the shape of the step's source; the
    rest is zeros."""
    source = step.src[0].shape
    if step.op is Ops.DETACH:
        return value
    if step.op is Ops.EXPAND and step.size != step.src[0].size:
        raise shape_error(
            f"cannot write to a view of shape {step.shape}",
            f"it repeats elements of shape {source}: several of its elements are one in memory",
            "write to the tensor before .expand(), or to a .clone()",
        )
    arg: object
    match step.op:
        case Ops.PERMUTE:
            op, arg = Ops.PERMUTE, tuple(step.arg.index(a) for a in range(len(source)))
        case Ops.SHRINK:
            ends = zip(step.arg, source, strict=True)
            op, arg = Ops.PAD, tuple((lo, size - hi) for (lo, hi), size in ends)
        case Ops.PAD:
            ends = zip(step.arg, source, strict=True)
            op, arg = Ops.SHRINK, tuple((lo, lo + size) for (lo, _), size in ends)
        case Ops.FLIP:
            op, arg = Ops.FLIP, step.arg
        case _:
            op, arg = Ops.RESHAPE, source
    return UOp(op, value.dtype, (value,), arg)
