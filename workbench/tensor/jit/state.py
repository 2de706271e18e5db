"""The state of a captured function: memory of tensors that are not its arguments.

A replay reads the values that the memory has at the call, and writes what the function wrote. For a
capture all memory gets new BUFFERs, so that no value that was computed before depends on it.

Sections: The state of a captured function; The inputs of a captured function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import ref

from workbench.backends.memory import Buffer
from workbench.backends.native.host_memory import HOST
from workbench.base.dtypes import DType
from workbench.execution.buffers import (
    another,
    buffer_on,
    is_absent,
    is_overwritten,
    mark_overwritten,
    memory_of,
    separate_memory,
    sharing,
)
from workbench.execution.capture import Capture
from workbench.execution.memory_plan import to_numpy, value_in_memory, with_computed
from workbench.execution.realize import read_later, running
from workbench.ir.node.construct import is_known
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.ir.schedule.schedule import base
from workbench.tensor.autograd.origins import Origin, rename_origins
from workbench.tensor.base import Base, forget_versions, nodes_alive, tensors_alive
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.tensor import Tensor
from workbench.tensor.versions import VersionedMemory, replacements

# --------------------------------------------------------------------------------------------------
# The state of a captured function.


def memory_by_buffer() -> dict[UOp, VersionedMemory]:
    """Give the memory of all computed tensors new BUFFERs, and return it by these.

    Writes that are not computed yet are computed first. One that fails is left as it is: if the
    function reaches its tensor at all, it fails as without a capture.
    """
    with running:  # another thread would write to the memory of the old BUFFER
        _compute_waiting()
        return _renamed()


def _compute_waiting() -> None:
    waiting = [m for m in _memory_alive() if m.old is not None]
    try:
        compute(waiting)
    except Exception:
        for memory in waiting:
            with suppress(Exception):
                compute([memory])
    for memory in _memory_alive():
        if memory.is_written:  # a constant, too, may be written again
            with suppress(Exception):
                buffer_of(memory)


def _renamed() -> dict[UOp, VersionedMemory]:
    by_buffer: dict[UOp, VersionedMemory] = {}
    names: dict[UOp, UOp] = {}
    for tensor in tensors_alive():
        if tensor._memory is None and _is_in_memory(tensor.uop):
            tensor._share(tensor)
    for memory in _memory_alive():
        node = _buffer(memory.value)
        if node is None or node.device == HOST:
            continue
        if is_absent(node) or is_overwritten(node):
            continue
        name = another(node, memory.value.shape)
        by_buffer[name], names[memory.value] = memory, name
        memory.rename_to(name)
    rename_origins(names)
    return by_buffer


def compute(memories: Iterable[VersionedMemory]) -> None:
    """Compute the present versions together."""
    tensors = [tensor_of(memory) for memory in dict.fromkeys(memories)]
    if tensors:
        tensors[0].realize(*tensors[1:])


def tensor_of(memory: VersionedMemory) -> Tensor:
    """Return a tensor of all of a memory."""
    # A value made of constants is on every device, but its memory is on one.
    tensor = Tensor._on(memory.value, memory.device)
    tensor._memory, tensor._version = memory, memory.value
    return tensor


def buffer_of(memory: VersionedMemory) -> UOp:
    """Return the BUFFER of a memory, computed if necessary; a constant gets one."""
    with running:
        return _buffer_of(memory)


def _buffer_of(memory: VersionedMemory) -> UOp:
    node = _buffer(memory.value)
    if node is None:
        compute([memory])
        node = _buffer(memory.value)
    if node is None:
        value, device = memory.value, memory.device
        constant = Buffer.of(device, value.dtype, to_numpy(value))
        node = buffer_on(constant, value.shape)
        memory.renew(node)
    return node


LARGE_BYTES = 1 << 18
"""Least bytes of an old version that no tensor keeps: to look for its tensors takes time."""


@dataclass(frozen=True, slots=True)
class MemoryWritten:
    """What a function writes: `memory` of tensors that are not its arguments, and whether it
    writes `inputs`."""

    memory: Collection[VersionedMemory] = ()
    inputs: bool = False

    def is_aliased(self, inputs: Sequence[Tensor]) -> bool:
        """Whether a memory that is written has two names in the function."""
        if not self.inputs and not self.memory:
            return False
        names = [id(t) if t._memory is None else id(t._memory) for t in inputs]
        if self.inputs and len(set(names)) < len(names):
            return True
        return any(t._memory in self.memory for t in inputs)


class PreparedState(NamedTuple):
    """The state of one run: the BUFFERs of the memory that it reads (None: a version without one),
    the memory, and the numbers of what it overwrites."""

    nodes: list[UOp | None]
    buffers: list[Buffer]
    over: list[int]


@dataclass(slots=True)
class CapturedState:
    """The state of a captured function. `read` is the memory that it reads; `written` the memory
    that it writes, each after the number of its new version among the outputs of a replay;
    `constant` the memory to which it writes a constant, with the constant. `overwritten` are the
    numbers in `read` of memory that is written in place. `constants_read` is memory of constants,
    which it may have read, with their values; `tensors_read` the tensors of `read`, each with its
    memory."""

    read: list[VersionedMemory]
    written: list[tuple[int, VersionedMemory]]
    constant: list[tuple[VersionedMemory, UOp]]
    overwritten: list[int]
    constants_read: list[tuple[ref[VersionedMemory], UOp]]
    tensors_read: list[tuple[ref[Base], ref[VersionedMemory]]]
    replacements: int
    """The count of Tensor.replace() calls when `tensors_read` were last checked."""
    gradients: list[tuple[ref[Base], Any]]
    """The leaves whose `.grad` the function set, each with that gradient."""

    def has_other_memory(self) -> bool:
        """Whether a tensor of the state has other memory now, by Tensor.replace(). That memory is
        computed, so that the next capture reads it."""
        if self.replacements == replacements.count:
            return False
        self.replacements = replacements.count
        pairs = [(tensor(), memory()) for tensor, memory in self.tensors_read]
        others = [t for t, memory in pairs if t is not None and t._memory is not memory]
        for tensor in others:
            if tensor._memory is None:
                tensor._share(tensor)
            if tensor._memory is not None:
                buffer_of(tensor._memory)
        return bool(others)

    def memory_written(self, writes_inputs: bool) -> set[VersionedMemory]:
        """Return the memory that no input may share: what is written and, if inputs are written,
        what is read."""
        written = {m for _, m in self.written} | {m for m, _ in self.constant}
        return written.union(self.read) if writes_inputs else written

    def changed_constants(self) -> list[VersionedMemory]:
        """Return the memory that was `constants_read` at the capture and has another value now."""
        memories = [(reference(), value) for reference, value in self.constants_read]
        return [m for m, value in memories if m is not None and m.value is not value]

    def prepare(self, inputs: Sequence[Buffer]) -> PreparedState:
        """Return the state as a run reads it. Memory that others read is not overwritten: one side
        gets a copy. What has no node yet is read by nobody."""
        nodes: list[UOp | None] = []
        buffers: list[Buffer] = []
        for memory in self.read:
            version = memory.replayed
            node = buffer_of(memory) if version is None else None
            nodes.append(node)
            buffers.append(memory_of(node) if version is None else version.memory)  # type: ignore[arg-type]
        prepared = PreparedState(nodes, buffers, [])
        if not self.overwritten:
            return prepared
        targets = [node for n in self.overwritten if (node := nodes[n]) is not None]
        needed = _needed(targets, set(self.read)) if targets else set[UOp]()
        owners = Counter([buffer.owner for buffer in (*inputs, *buffers)])
        for n in self.overwritten:
            own, node = buffers[n], nodes[n]
            if owners[own.owner] > 1:
                buffers[n] = Buffer(own.device, own.dtype, own.size)
                buffers[n].copy_from(own)
            elif node is not None and node in needed:
                separate_memory(node)
            else:
                prepared.over.append(n)
        return prepared

    def node_of(self, place: int) -> UOp:
        """Return the BUFFER of the memory number `place` in `read`."""
        return buffer_of(self.read[place])

    def renew(self, place: int, value: UOp) -> None:
        """Make `value` the present version of the memory number `place` in `read`."""
        _renew(self.read[place], value)

    def commit(
        self,
        results: Sequence[UOp | None],
        outputs: Sequence[Buffer],
        origins: Sequence[tuple[Origin, ...]],
    ) -> None:
        """Take the new versions from the outputs of a replay, and drop gradients that the captured
        run left: they are not those of the replay. Results without a node get it when it is asked
        for."""
        for reference, grad in self.gradients:
            leaf = reference()
            state = None if leaf is None else leaf._grad_state
            if state is not None and state.grad is grad:
                state.grad = None
        self.gradients = []
        large: set[UOp] = set()
        for place, memory in self.written:
            node = results[place]
            if node is not None:
                _renew(memory, node)
                continue
            before = memory.take_replayed(outputs[place], origins[place])
            under = None if before is None else _buffer(before)
            if before is not None and outputs[place].nbytes >= LARGE_BYTES:
                large.add(before)
            if under is not None and not is_overwritten(under):
                if memory_of(under).owner is outputs[place].owner:  # made by a thread meanwhile
                    mark_overwritten(under)
        for memory, value in self.constant:
            memory.old = None
            memory.renew(value)
        if large:
            forget_versions(large)


def _renew(memory: VersionedMemory, value: UOp) -> None:
    memory.old = None
    memory.renew(reshaped(value, memory.value.shape))


def captured_state(
    captured: Capture,
    memory: dict[UOp, VersionedMemory],
    written: Sequence[VersionedMemory],
    nodes: list[UOp],
    gradients: dict[int, Any],
) -> CapturedState:
    """Return the state of a capture; `memory` and `gradients` are those at its beginning. The new
    versions are added to the end of `nodes`, the outputs.

    The function may reach tensors that are no arguments (globals, closures, attributes), so all
    living tensors, memories and gradients of the process are compared with those at the beginning.
    Memory counts as read if a kernel of the capture reads the version of the beginning, and as
    written if it is in `written`. A gradient counts as set by the function if it is another object.
    """
    own = set(memory.values())
    constants_read = [
        m for m in _memory_alive() if m not in own and is_known(value_in_memory(m.value))
    ]
    values = {m: value_in_memory(m.value) for m in dict.fromkeys(written)}
    computed = [m for m, v in values.items() if m in own and v.op is Ops.BUFFER]
    place = len(nodes)
    nodes += [values[m] for m in computed]
    roots = {captured.root(node) for node in nodes}
    read = [(n, m) for n, m in memory.items() if n in roots or captured.reads(n)]
    reads = {m for _, m in read}
    return CapturedState(
        [m for _, m in read],
        list(enumerate(computed, place)),
        [(m, m.value) for m in values if m in own and m not in computed],
        [n for n, (node, _) in enumerate(read) if captured.overwrites(node)],
        [(ref(m), m.value) for m in constants_read],
        [(ref(t), ref(m)) for t in tensors_alive() if (m := t._memory) in reads],
        replacements.count,
        [(ref(t), g) for t, g in _gradients() if gradients.get(id(t)) is not g],
    )


def gradients_alive() -> dict[int, Any]:
    """Return the gradients of all living tensors, by the identity of the tensor."""
    return {id(leaf): grad for leaf, grad in _gradients()}


def _gradients() -> list[tuple[Base, Any]]:
    states = [(t, t._grad_state) for t in tensors_alive()]
    return [(t, s.grad) for t, s in states if s is not None and s.grad is not None]


def _buffer(value: UOp) -> UOp | None:
    """Return the BUFFER of a value, under RESHAPEs and DETACHes; None if it has none. It runs at
    each call for each tensor of the state, so the common case comes first: a BUFFER itself."""
    node = value
    while node.op in (Ops.RESHAPE, Ops.DETACH):
        node = node.src[0]
    if node.op is not Ops.BUFFER:
        node = value_in_memory(value)
    return node if node.op is Ops.BUFFER else None


def _is_in_memory(value: UOp) -> bool:
    """Whether a value is in a BUFFER, or a known constant."""
    return _buffer(value) is not None or is_known(value_in_memory(value))


def _memory_alive() -> list[VersionedMemory]:
    """Return the `_memory` of all living tensors that have one."""
    return list(dict.fromkeys(m for t in tensors_alive() if (m := t._memory)))


def _needed(targets: Sequence[UOp], own: set[VersionedMemory]) -> set[UOp]:
    """Return the `targets` that are read by tensors with memory outside of `own`."""
    read = read_later(nodes_alive(own), ())
    return {node for node in targets if not read.isdisjoint(sharing(node))}


# --------------------------------------------------------------------------------------------------
# The inputs of a captured function: the properties that must stay the same, and their memory.

Kind = tuple[Shape, DType, str]
"""The properties of an input that must stay the same: shape, dtype, device."""


def kind_of(tensor: Tensor) -> Kind:
    return tensor.shape, tensor.dtype, tensor.device


def input_node(tensor: Tensor) -> UOp:
    """Return the BUFFER of a tensor, computed if necessary; a constant gets a new one."""
    node = value_in_memory(tensor.uop)
    if node.op is not Ops.BUFFER:
        node = base(tensor._result())
    if node.op is Ops.BUFFER:
        return node
    constant = Buffer.of(tensor.device, tensor.dtype, to_numpy(with_computed(tensor.uop)))
    return buffer_on(constant, tensor.shape)
