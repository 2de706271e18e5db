"""Running schedules: the memory of each BUFFER, and the values that are computed already.

BUFFER nodes are pure IR; this file has the memory of each, as long as the node lives.
"""

from __future__ import annotations

import time
from collections.abc import (
    Callable,
    Collection,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from types import MappingProxyType
from typing import Any, Protocol
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from workbench.backends.buffer import Buffer
from workbench.backends.device import Device
from workbench.backends.memory import Lease
from workbench.backends.native.host_memory import HOST, data_memory
from workbench.base.context import NO_MEMORY_PLANNER
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import JitError, WorkbenchError
from workbench.base.trace import observer, replaced
from workbench.counters import ran
from workbench.debug import say_scheduled
from workbench.ir.meaning.interpret import interpret_tensor
from workbench.ir.node import construct
from workbench.ir.node.constants import constant_of, is_known
from workbench.ir.node.ops import Ops
from workbench.ir.node.shapes import Shape
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.decide import NOTHING_FORCED
from workbench.ir.schedule.item import Schedule, ScheduleItem
from workbench.ir.schedule.schedule import base
from workbench.ir.schedule.schedule import schedule as make_schedule
from workbench.memory_plan import NO_PLAN, MemoryBlocks, plan_memory
from workbench.pipeline import build, tuned
from workbench.placement import Placement, place

Array = np.ndarray[Any, Any]


class Reader(Protocol):
    """A value that reads BUFFERs at any later time."""

    def buffers_read(self) -> Iterable[UOp]:
        """Return the BUFFERs whose contents it may still need."""


_memory: WeakKeyDictionary[UOp, Buffer] = WeakKeyDictionary()
_computed: WeakKeyDictionary[UOp, UOp] = WeakKeyDictionary()
_plain: WeakKeyDictionary[UOp, UOp] = WeakKeyDictionary()
"""Graphs without DETACH, by those with it."""
_shared: WeakKeyDictionary[Lease, WeakSet[UOp]] = WeakKeyDictionary()
"""The BUFFERs on one memory, or on parts of it, where there are several."""
_overwritten: WeakSet[UOp] = WeakSet()
"""BUFFERs of old versions, whose memory has a newer one."""
_readers: WeakSet[Reader] = WeakSet()
_absent: WeakSet[UOp] = WeakSet()
"""BUFFERs whose data are not here: their expression was loaded without them."""
_uids = count()


@dataclass(slots=True)
class Capture:
    """The items that have run in a `capturing` block, in order, and BUFFERs that are a piece of
    another one's memory, with their offsets."""

    items: list[ScheduleItem] = field(default_factory=list)
    pieces: dict[UOp, tuple[UOp, int]] = field(default_factory=dict)

    def root(self, node: UOp) -> UOp:
        """Return the BUFFER whose memory a BUFFER uses."""
        while node in self.pieces:
            node = self.pieces[node][0]
        return node

    def reads(self, node: UOp) -> bool:
        """Whether an item reads a BUFFER, or has written over it."""
        return any(self.root(b) is node for item in self.items for b in item.buffers)

    def overwrites(self, node: UOp) -> bool:
        """Whether an item writes over the memory of a BUFFER."""
        return any(self.root(b) is node for item in self.items for b in item.outputs)


_capture: ContextVar[Capture | None] = ContextVar("capture", default=None)


@contextmanager
def capturing() -> Iterator[Capture]:
    """Record the items that run in the block."""
    capture = Capture()
    token = _capture.set(capture)
    try:
        yield capture
    finally:
        _capture.reset(token)


_roots: ContextVar[list[UOp] | None] = ContextVar("roots", default=None)


@contextmanager
def noting_roots() -> Iterator[list[UOp]]:
    """Record the outputs that are computed in the block."""
    roots: list[UOp] = []
    token = _roots.set(roots)
    try:
        yield roots
    finally:
        _roots.reset(token)


def is_capturing() -> bool:
    """Whether items that run now are recorded."""
    return _capture.get() is not None


def host_buffer(array: Array) -> UOp:
    """Return a BUFFER on the host with a private, contiguous copy of `array`."""
    dtype = dtypes.from_numpy(array.dtype.newbyteorder("="))
    memory = Buffer(HOST, dtype, array.size)
    np.copyto(memory.array.reshape(array.shape), array)
    return buffer_on(memory, array.shape)


def buffer_on(memory: Buffer, shape: Shape) -> UOp:
    """Return a new BUFFER of `shape` on existing memory."""
    uid = f"memory{next(_uids)}"
    node = construct.buffer(memory.dtype, uid, memory.device, shape)
    _memory[node] = memory
    return node


def absent_buffer(dtype: DType, device: str, shape: Shape) -> UOp:
    """Return a new BUFFER whose data are not here, and cannot be read."""
    node = construct.buffer(dtype, f"memory{next(_uids)}", device, shape)
    _absent.add(node)
    return node


def is_absent(node: UOp) -> bool:
    """Whether the data of a BUFFER are not here."""
    return node in _absent


def no_data(what: str) -> WorkbenchError:
    """Return the error of `what` needs data that are not here."""
    return WorkbenchError(
        what,
        "the data of its tensors are not here: it was loaded from a file without them",
        "explore the same expression of your own tensors; .time() needs no data",
    )


def overwritten() -> WorkbenchError:
    """Return the error of reading an old version whose memory has a newer one."""
    return WorkbenchError(
        "cannot read an old value of a tensor",
        "a newer one was written over it, by assign or an operator like +=",
        ".clone() of the tensor before, or explore it again",
    )


def device_of(outputs: Sequence[UOp]) -> str:
    """Return the device that `outputs` are on: of the nearest COPY or BUFFER below."""
    for node in reversed(UOp.sink(*outputs).toposort()):
        if node.op is Ops.COPY:
            return str(node.arg)
        if node.op is Ops.BUFFER and node.device != HOST:
            return node.device
    return Device.DEFAULT


def planned(
    outputs: Sequence[UOp], forced: Mapping[UOp, bool] = NOTHING_FORCED
) -> tuple[Schedule, tuple[UOp, ...]]:
    """Return the schedule of `outputs` and the simplified outputs. Values that were computed before
    are reused, and a contiguous piece of one is read in place. `forced` stores (True) or fuses
    (False) simplified values."""
    roots = [_in_place(o) for o in with_computed(UOp.sink(*outputs)).src]
    return make_schedule(roots, device_of(outputs), forced)


def schedule(outputs: Sequence[UOp]) -> tuple[ScheduleItem, ...]:
    """Return the items that would compute `outputs`, in order, without running them."""
    return planned(outputs)[0].items


def realize(
    outputs: Sequence[UOp],
    others: Callable[[], Iterable[UOp]] = tuple,
    old_versions: Mapping[UOp, UOp] = MappingProxyType({}),
) -> list[UOp]:
    """Compute `outputs`; return their nodes (BUFFERs, reshaped where necessary) when the work is
    done.

    An intermediate value is freed after its last reader, unless it is a part of one of `others`:
    then it lives as long as its node. `old_versions` has, of outputs that are new versions of
    memory, the BUFFER of the old one, over which they are written where that is possible.
    """
    roots = _roots.get()
    if roots is not None:
        roots.extend(outputs)
    start = time.perf_counter()
    plan, simple = planned(outputs)
    say_scheduled(plan.items, time.perf_counter() - start)
    results = [node.substitute(plan.stored) for node in simple]
    placed = _placed(
        plan, dict(zip(outputs, results, strict=True)), others, old_versions
    )
    items, over = placed.items, placed.over
    spare = _spare(plan, results, outputs, others)
    _run(items, over, spare)
    for node, buffer in plan.stored.items():
        if buffer not in spare:
            _computed[node] = buffer
    for output, result in zip(without_detach(outputs), results, strict=True):
        if output is not result:
            _computed[output] = result
    return results


def _run(
    items: Sequence[ScheduleItem], over: Mapping[UOp, UOp], spare: Collection[UOp]
) -> None:
    """Run items; new versions are written `over` old ones. Values in `spare` are freed after their
    last reader; until then they are in memory that they share."""
    shared = () if NO_MEMORY_PLANNER.value else {*spare}.difference(over.values())
    plan = (
        plan_memory(items, shared, owner=lambda b: over.get(b, b)) if shared else None
    )
    blocks = MemoryBlocks(plan or NO_PLAN)
    last_use = {b: n for n, item in enumerate(items) for b in item.buffers}
    for number, item in enumerate(items):
        for buffer in item.outputs:
            part = blocks.part(buffer)
            if part is not None:
                _memory[buffer] = part
        versions = [(b, over[b]) for b in item.outputs if b in over]
        if versions and item.kernel is not None:
            # Compiled before its memory counts as overwritten: an interrupt loses nothing.
            build(tuned(item.kernel, item.device), item.device)
        with _overwriting(versions):
            run_item(item)
        for node in item.buffers:
            if node in spare and last_use[node] == number:
                del _memory[node]
        blocks.end(number)


def _placed(
    plan: Schedule,
    results: Mapping[UOp, UOp],
    others: Callable[[], Iterable[UOp]],
    old_versions: Mapping[UOp, UOp],
) -> Placement:
    """Return the items in the order in which they run, and which new versions are written over old
    ones."""
    targets = {base(results[node]): old for node, old in old_versions.items()}
    if not targets:
        return Placement(plan.items)
    read = read_later(others(), {*results, *plan.stored})
    read.update(
        map(base, results.values())
    )  # a new value may be the old one of another

    def is_needed(old: UOp) -> bool:
        memory = _memory.get(old)
        is_ours = memory is not None and (
            memory.owner.is_shared or not memory.is_adopted
        )
        return not is_ours or not read.isdisjoint(sharing(old))

    return place(plan.items, targets, is_needed)


def read_later(nodes: Iterable[UOp], computed: Container[UOp]) -> set[UOp]:
    """Return the nodes of these graphs, down to those that are `computed`, and the BUFFERs that
    they have in memory, or that a Reader needs."""
    read = set(UOp.sink(*nodes).toposort(lambda node: node not in computed))
    read.update(base(_computed[n]) for n in [*read] if n in _computed)
    read.update(b for reader in [*_readers] for b in reader.buffers_read())
    return read


@contextmanager
def _overwriting(versions: Sequence[tuple[UOp, UOp]]) -> Iterator[None]:
    """Let new BUFFERs have the memory of old ones, which is written in the block."""
    capture = _capture.get()
    for new, old in versions:
        memory_of(old)
        _memory[new] = _memory[old]
        if capture is not None:
            capture.pieces[new] = old, 0
    try:
        yield
    finally:  # an interrupted kernel may have written a part
        for _, old in versions:
            mark_overwritten(old)


def share(node: UOp, other: UOp) -> None:
    """Note that `other` is a BUFFER on memory of `node`, or on a part of it."""
    _shared.setdefault(_memory[node].owner, WeakSet((node,))).add(other)


def sharing(node: UOp) -> set[UOp]:
    """Return the BUFFERs on the memory of `node`, itself among them."""
    return {node, *_shared.get(_memory[node].owner, ())}


def mark_overwritten(node: UOp) -> None:
    """Note that a newer version is in the memory of `node`: it can no longer be read."""
    _overwritten.update(sharing(node))
    _shared.pop(_memory[node].owner, None)


def another(node: UOp, shape: Shape) -> UOp:
    """Return a new BUFFER on the memory of `node`: no value that was computed depends on it."""
    other = buffer_on(memory_of(node), shape)
    share(node, other)
    return other


def keep_apart(node: UOp) -> None:
    """Give BUFFERs on the memory of `node` memory of their own, with the present contents."""
    nodes = sharing(node)
    _shared.pop(_memory[node].owner, None)
    for other in nodes:
        memory = _memory[other]
        own = _memory[other] = Buffer(memory.device, memory.dtype, memory.size)
        own.copy_from(memory)


def written_through(result: UOp, old: UOp) -> UOp:
    """Return `result`, the new version of what is in `old`, in the memory that another library
    shares, if `old` is there: it is copied to it."""
    memory = _memory.get(old)
    if memory is None or not memory.owner.is_shared:
        return result
    node = base(result)
    if node.op is Ops.BUFFER and memory_under(node).owner is memory.owner:
        return result
    if is_capturing():
        raise JitError(
            "cannot capture what is written to memory of another library",
            "here it is written by a copy, which a replay would leave out",
            ".clone() of the tensor",
        )
    values = to_numpy(result)
    if old not in _overwritten:
        keep_apart(old)
    memory.copy_in(values)
    return buffer_on(memory, result.shape)


def read_by(reader: Reader) -> None:
    """Do not overwrite what `reader` needs, as long as it lives."""
    _readers.add(reader)


def _spare(
    plan: Schedule,
    results: Sequence[UOp],
    outputs: Sequence[UOp],
    others: Callable[[], Iterable[UOp]],
) -> set[UOp]:
    """Return the BUFFERs of intermediate values that are not needed after their last reader."""
    if is_capturing():  # a replay has its own memory for them
        return set()
    inner = set(plan.stored.values()).difference(UOp.sink(*results).toposort())
    if not inner:
        return inner
    roots = set(outputs)
    needed = UOp.sink(
        *without_detach([n for n in others() if n not in roots])
    ).toposort()
    return inner.difference(b for node, b in plan.stored.items() if node in needed)


def mark_computed(node: UOp, result: UOp) -> None:
    """Note that `result` is the value of `node` in memory."""
    (plain,) = without_detach([node])
    if plain is not result:
        _computed[plain] = result


def with_computed(node: UOp) -> UOp:
    """Return the graph with every value that was computed before replaced by its BUFFER, and
    without DETACH."""
    (node,) = without_detach([node])
    graph = node.toposort(lambda n: not _is_computed(n))
    changes = {n: _computed[n] for n in graph if _is_computed(n)}
    return node.substitute(changes) if changes else node


def _is_computed(node: UOp) -> bool:
    result = _computed.get(node)
    return result is not None and base(result) not in _overwritten


def results_of(nodes: Sequence[UOp]) -> list[UOp | None]:
    """Return the memory of each value that was computed before, or None."""
    return [_computed.get(n) for n in without_detach(nodes)]


def without_detach(roots: Sequence[UOp]) -> list[UOp]:
    """Return graphs without DETACH: it says where no gradient flows, and computes nothing."""
    is_watched = observer() is not None
    simple: dict[UOp, UOp] = {}
    top = UOp.sink(*roots)  # may be among the graphs, too
    graph = top.toposort(lambda n: is_watched or n is top or n not in _plain)
    for node in graph:
        if not is_watched and node in _plain:
            simple[node] = _plain[node]
        elif node.op is Ops.DETACH:
            simple[node] = simple[node.src[0]]
        else:
            simple[node] = node.rebuild(tuple([simple[s] for s in node.src]))
    replaced(simple)
    for root in roots:
        if simple[root] is not root:
            _plain[root] = simple[root]
    return [simple[root] for root in roots]


def _in_place(node: UOp) -> UOp:
    """Return a piece of a BUFFER as a BUFFER on the same memory, without a kernel or a copy."""
    stretch = _stretch(node)
    if stretch is None:
        return node
    buffer, start = stretch
    memory = _memory.get(buffer)
    if memory is None or memory.device == HOST or not memory.has_window(start):
        return node
    uid = f"window{next(_uids)}"
    window = construct.buffer(node.dtype, uid, buffer.device, node.shape)
    _memory[window] = memory.window(start, node.size)
    share(buffer, window)
    watching = _capture.get()
    if watching is not None:
        watching.pieces[window] = buffer, start
    return window


def neighbours(node: UOp) -> tuple[UOp, int] | None:
    """Return the BUFFER and the offset of a `node` whose elements lie there in order; None if they
    are not neighbours in one."""
    whole = node
    while whole.op is Ops.RESHAPE:
        (whole,) = whole.src
    return (whole, 0) if whole.op is Ops.BUFFER else _stretch(node)


def _stretch(node: UOp) -> tuple[UOp, int] | None:
    """Return the BUFFER and the offset of a shrunken `node` whose elements lie there in order; None
    if they are not neighbours, or there are none."""
    start, is_piece = 0, False
    while node.op in (Ops.RESHAPE, Ops.SHRINK) and node.size:
        source = node.src[0]
        if node.op is Ops.SHRINK:
            is_piece = True
            first = next(
                (i for i, n in enumerate(node.shape) if n != 1), len(node.shape)
            )
            if node.shape[first + 1 :] != source.shape[first + 1 :]:
                return None
            offset = 0
            for (low, _), size in zip(node.arg, source.shape, strict=True):
                offset = offset * size + low
            start += offset
        node = source
    return (node, start) if is_piece and node.op is Ops.BUFFER else None


def run_item(item: ScheduleItem) -> None:
    """Run one item: a kernel with the default opts, or a copy."""
    watching = _capture.get()
    if watching is not None:
        watching.items.append(item)
    buffers = [memory_of(b) for b in item.buffers]
    if item.kernel is None:
        buffers[0].copy_from(buffers[1])
        return
    device = item.device
    kernel = tuned(item.kernel, device)
    program = build(kernel, device).program
    start = time.perf_counter()
    program(buffers)
    ran(item.kernel, kernel, device, time.perf_counter() - start)


def memory_of(node: UOp) -> Buffer:
    """Return the memory of a BUFFER, allocated on first use. Errors: WorkbenchError where its data
    are not here."""
    buffer = _memory.get(node)
    if buffer is None or node in _overwritten:
        if node in _overwritten:
            raise overwritten()
        if node in _absent:
            raise no_data("cannot compute this")
        buffer = _memory[node] = Buffer(node.device, node.dtype, node.size)
    return buffer


def memory_under(node: UOp) -> Buffer:
    """Return the memory of a BUFFER, whatever version is in it now."""
    return _memory[node] if node in _overwritten else memory_of(node)


def is_realized(node: UOp) -> bool:
    """Whether a value needs no work: it is in memory, or a known constant."""
    under = base(with_computed(node))
    return under.op is Ops.BUFFER or is_known(under)


def to_numpy(node: UOp) -> Array:
    """Return a copy of a realised value, in its shape. Errors: DeviceError if it is too large."""
    data_memory.pool.check_room(node.size * node.dtype.itemsize)
    under = base(node)
    constant = constant_of(under)
    if constant is not None:
        return np.full(node.shape, constant.arg, node.dtype.numpy)
    if is_known(under):
        return np.array(interpret_tensor(under, {}), node.dtype.numpy).reshape(
            node.shape
        )
    return read(under).reshape(node.shape)


def read(buffer: UOp) -> Array:
    """Return a flat copy of the contents of a BUFFER. Errors: JitError while a function is
    captured."""
    if is_capturing():
        raise JitError(
            "cannot read values while a function is captured",
            "what is done with them would be done with the same values each time",
            "return the tensor, and read it outside of the function",
        )
    return memory_of(buffer).to_numpy()
