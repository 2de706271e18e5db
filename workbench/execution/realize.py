"""Running schedules: outputs are planned, and their items run in order.

Sections: Later readers of memory; Running schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol
from weakref import WeakSet

from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.backends.native.host_memory import HOST
from workbench.base import recording
from workbench.base.context import NO_MEMORY_PLANNER
from workbench.base.errors import JitError
from workbench.base.interrupts import Uninterrupted, free_rlock
from workbench.base.recording import clock_ns, error_words, span
from workbench.counters import CountedKernel, count_launch, count_run, run_recorded
from workbench.debug import say_planned, say_scheduled
from workbench.execution.buffers import (
    allocated,
    free,
    in_place,
    is_absent,
    is_overwritten,
    mark_lost,
    mark_overwritten,
    memory_of,
    memory_under,
    name_of_shared,
    separate_memory,
    set_memory,
    sharing,
)
from workbench.execution.capture import Placement, is_capturing, note_roots, place, present_capture
from workbench.execution.compile_ahead import compile_ahead
from workbench.execution.memory_plan import (
    NO_PLAN,
    MemoryBlocks,
    computed_and_graph,
    mark_computed,
    mark_stored,
    note_unset,
    noted_results,
    plan_memory,
    to_numpy,
    without_detach,
)
from workbench.execution.schedule_cache import scheduled
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.by_hand import NOTHING_BY_HAND, HandChoices
from workbench.ir.schedule.plan import Schedule, ScheduleItem
from workbench.ir.schedule.schedule import base
from workbench.ir.schedule.schedule import schedule as make_schedule
from workbench.pipeline import Tuner, build, built_count

# --------------------------------------------------------------------------------------------------
# Later readers of memory: graphs, and objects that are registered as a Reader.


class Reader(Protocol):
    """An object that may read BUFFERs at any later time."""

    def buffers_read(self) -> Iterable[UOp]:
        """Return the BUFFERs whose contents it may still read."""


_readers: WeakSet[Reader] = WeakSet()


def register_reader(reader: Reader) -> None:
    """Register a reader: as long as it lives, the BUFFERs that it reads are not overwritten."""
    _readers.add(reader)


def read_later(nodes: Iterable[UOp], computed: Container[UOp]) -> set[UOp]:
    """Return the nodes of these graphs, without DETACH, down to `computed` ones; the BUFFERs that
    have their values; and the BUFFERs that Readers read."""
    root = UOp.sink(*without_detach([*nodes]))
    read = set(root.toposort(lambda node: node not in computed))
    read.update(map(base, noted_results(read)))
    read.update(b for reader in [*_readers] for b in reader.buffers_read())
    return read


# --------------------------------------------------------------------------------------------------
# Running schedules.

running = free_rlock()
"""The lock of the one thread that computes tensors or copies their memory. The thread holds it from
looking up which values are in memory until its results are noted, so that no other thread
overwrites a value that it reads."""


def realize(
    outputs: Sequence[UOp],
    tuner: Tuner,
    others: Callable[[], Iterable[UOp]] = tuple,
    old_versions: Mapping[UOp, UOp] = MappingProxyType({}),
    publish: Callable[[list[UOp]], None] | None = None,
) -> list[UOp]:
    """Compute `outputs`, by kernels with the opts that `tuner` gives them; return their nodes
    (BUFFERs, reshaped where necessary) when the work is done.

    An intermediate value is freed after its last reader, unless it is a part of one of `others`:
    then it lives as long as its node. `old_versions` has the BUFFER of the old version for outputs
    that are new versions of memory; they are written over it if possible.

    Ctrl-C ends it before the first old version is overwritten. From then on Ctrl-C is deferred
    until all is computed and noted, and `publish(results)` has run, so that no version is left half
    written. If an item fails, the values computed before it are noted: each output then has its
    new value, or its old one, or raises an error that names the failure.
    """
    with span("realize"):
        return _realized(outputs, tuner, others, old_versions, publish)


def _realized(
    outputs: Sequence[UOp],
    tuner: Tuner,
    others: Callable[[], Iterable[UOp]],
    old_versions: Mapping[UOp, UOp],
    publish: Callable[[list[UOp]], None] | None,
) -> list[UOp]:
    note_roots(outputs)
    start_ns = clock_ns()
    with span("schedule"):
        plan, values = scheduled(*_roots_on(outputs))
    for name in {item.device for item in plan.items}:  # before memory is allocated there
        Device[name].require_available()
    say_scheduled(plan.items, (clock_ns() - start_ns) / 1e9)
    note_unset(plan.items, plan.stored)
    results = [*values]
    placed = _placed(plan, dict(zip(outputs, results, strict=True)), others, old_versions)
    items, over = placed.items, placed.over
    spare = _spare(plan, results, outputs, others)
    run = _ItemRun(items, over, spare, tuner)
    run.before_overwriting()
    with Uninterrupted():
        try:
            run.rest()
        except BaseException:
            intact = run.intact()
            mark_stored({n: b for n, b in plan.stored.items() if b in intact})
            pairs = zip(outputs, results, strict=True)
            computed = {o: r for o, r in pairs if base(r) in intact}
            mark_computed([*computed], [*computed.values()])
            raise
        mark_stored({node: b for node, b in plan.stored.items() if b not in spare})
        mark_computed(outputs, results)
        if publish is not None:
            publish(results)
    return results


def schedule(outputs: Sequence[UOp]) -> tuple[ScheduleItem, ...]:
    """Return the items that would compute `outputs`, in order; nothing runs."""
    return planned(outputs)[0].items


def planned(
    outputs: Sequence[UOp],
    choices: HandChoices = NOTHING_BY_HAND,
    computed: Mapping[UOp, UOp] | None = None,
    keys: Collection[UOp] = (),
) -> tuple[Schedule, tuple[UOp, ...]]:
    """Return the schedule of `outputs`, and the simplified outputs. Computed values are reused
    (`computed` has those of an earlier time, None: the present ones), and a contiguous piece of one
    is read in place. `choices` are a user's, about simplified values. Random numbers of `keys` are
    drawn before all else."""
    return make_schedule(*_roots_on(outputs, computed), choices, keys)


def _roots_on(
    outputs: Sequence[UOp], computed: Mapping[UOp, UOp] | None = None
) -> tuple[list[UOp], str]:
    """Return the graphs to schedule for `outputs`, which read computed values from memory, and the
    device. `computed` is as in `planned`."""
    plain = UOp.sink(*without_detach(outputs))
    if computed is None:
        present, graph = computed_and_graph(plain)
        device = device_of(outputs) if present else _device_in(graph)
        computed = _readable_on(device, present)
    else:
        device = device_of(outputs)
    return [in_place(o) for o in plain.substitute(computed).src], device


def _readable_on(device: str, computed: Mapping[UOp, UOp]) -> dict[UOp, UOp]:
    """Return computed values without those of constants alone, which have no device, that are in
    the memory of another device than `device`."""
    return {
        node: result
        for node, result in computed.items()
        if base(result).op is not Ops.BUFFER
        or base(result).device in (device, HOST)
        or any(n.op in (Ops.BUFFER, Ops.COPY) for n in node.toposort())
    }


def run_item(item: ScheduleItem, tuner: Tuner) -> None:
    """Run one item: a kernel with the opts that `tuner` gives it, or a copy."""
    capture = present_capture()
    if capture is not None:
        capture.items.append(item)
    buffers = [memory_of(b) for b in item.buffers]
    if item.kernel is None:
        with span("copy", buffers[0].nbytes):
            buffers[0].copy_from(buffers[1])
        return
    device = item.device
    kernel = tuner(item.kernel, device)
    program = build(kernel, device).program
    counted = item.kernel, kernel, device
    written = [buffers[slot] for slot in item.slots]
    start_ns = clock_ns()
    try:
        if recording.active and _run_recorded(program, buffers, counted, written):
            return
        program(buffers)
    except BaseException as error:
        count_launch(counted, start_ns, clock_ns(), written, error_words(error))
        raise
    count_launch(counted, start_ns, clock_ns(), written)


def _run_recorded(
    program: Any, buffers: Sequence[Buffer], counted: CountedKernel, written: Sequence[Buffer]
) -> bool:
    """Run a kernel with the times of its parts, for recordings, if its device can; return whether
    it has run."""
    info = Device[counted[2]]
    graph = None if info.queues else info.graph([program.bind(buffers)])
    if not hasattr(graph, "recorded"):
        return False
    start_ns = clock_ns()
    run_recorded(graph, [counted], [written])
    count_run(*counted, (clock_ns() - start_ns) / 1e9)
    return True


def device_of(outputs: Sequence[UOp]) -> str:
    """Return the device of `outputs`: that of the nearest COPY or BUFFER below, or the default."""
    return _device_in([*UOp.sink(*outputs).toposort()])


def _device_in(graph: Sequence[UOp]) -> str:
    for node in reversed(graph):
        if node.op is Ops.COPY:
            return str(node.arg)
        if node.op is Ops.BUFFER and node.device != HOST:
            return node.device
    return Device.DEFAULT


def written_through(result: UOp, old: UOp, memory: Buffer) -> UOp:
    """Return `result`, the new version of `old`, in `memory`, which another library shares; it is
    copied there if necessary. Errors: JitError for a copy while a function is captured."""
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
    if not is_overwritten(old):
        separate_memory(old)
    memory.copy_in(values)
    return name_of_shared(memory, result.shape)


class _ItemRun:
    """The run of items. New versions are written `over` old ones. Values in `spare` share memory,
    and are freed after their last reader."""

    def __init__(
        self,
        items: Sequence[ScheduleItem],
        over: Mapping[UOp, UOp],
        spare: Collection[UOp],
        tuner: Tuner,
    ):
        self._over, self._spare, self._tuner = over, spare, tuner
        shared = () if NO_MEMORY_PLANNER.value else {*spare}.difference(over.values())
        plan = None
        if shared:
            plan = plan_memory(items, shared, owner=lambda b: over.get(b, b))
        say_planned(plan)
        self._blocks = MemoryBlocks(plan or NO_PLAN)
        self._last_use = {b: n for n, item in enumerate(items) for b in item.buffers}
        self._items = [*enumerate(items)]
        self._complete: dict[UOp, None] = {}
        """The BUFFERs of completed items, in order."""
        self._failed: ScheduleItem | None = None

    def before_overwriting(self) -> None:
        """Run the items before the first that overwrites an old version, and compile the others.
        After a kernel that was not known, those behind it are compiled together."""
        known = built_count()
        while self._items and not self._versions(self._items[0][1]):
            self._run(*self._items.pop(0))
            known = self._compiled_behind(known)
        for _, item in self._items:
            if item.kernel is not None:
                build(self._tuner(item.kernel, item.device), item.device)
            known = self._compiled_behind(known)

    def _compiled_behind(self, known: int) -> int:
        """Compile the remaining items, if the count of builds is no longer the `known` one; return
        it."""
        if built_count() != known:
            compile_ahead((item for _, item in self._items), self._tuner)
        return built_count()

    def rest(self) -> None:
        """Run the remaining items."""
        for number, item in self._items:
            self._run(number, item)

    def intact(self) -> set[UOp]:
        """Return the BUFFERs of completed items, without those that the failed item may have
        overwritten."""
        failed = () if self._failed is None else self._failed.outputs
        torn = [memory for b in failed if (memory := allocated(b)) is not None]
        return {
            b for b in self._complete if (own := allocated(b)) and not any(map(own.overlaps, torn))
        }

    def _versions(self, item: ScheduleItem) -> list[tuple[UOp, UOp]]:
        return [(b, self._over[b]) for b in item.outputs if b in self._over]

    def _run(self, number: int, item: ScheduleItem) -> None:
        for buffer in item.outputs:
            part = self._blocks.part(buffer)
            if part is not None:
                set_memory(buffer, part)
        versions, is_begun = self._versions(item), False
        try:
            _give_memory(versions)
            for node in item.buffers:
                memory_of(node)  # allocates, so that a lack of memory shows before any write
            is_begun = True
            run_item(item, self._tuner)
        except BaseException as error:
            self._failed = item if is_begun else None
            written = {*self._complete, *(item.outputs if is_begun else ())}
            for new, old in self._over.items():
                if new in written:
                    mark_lost(old, error)
            raise
        for _, old in versions:
            mark_overwritten(old)
        self._complete.update(dict.fromkeys(item.outputs))
        for node in item.buffers:
            if node in self._spare and self._last_use[node] == number:
                free(node)
        self._blocks.end(number)


def _placed(
    plan: Schedule,
    results: Mapping[UOp, UOp],
    others: Callable[[], Iterable[UOp]],
    old_versions: Mapping[UOp, UOp],
) -> Placement:
    """Return the items in the order in which they run, and the new versions that are written over
    old ones."""
    targets = {base(results[node]): old for node, old in old_versions.items()}
    if not targets:
        return Placement(plan.items)
    computed = {*without_detach([*results]), *plan.stored}
    read = read_later(others(), computed)
    read.update(map(base, results.values()))  # a new value may be the old one of another

    inputs = {b for item in plan.items for b in item.inputs}

    def is_needed(old: UOp) -> bool:
        # A tensor and its clone may have the same version: the clone may have overwritten it.
        if is_overwritten(old) or is_absent(old):
            return True
        memory = memory_of(old)
        is_ours = memory.owner.is_shared or not memory.is_adopted
        names = sharing(old)
        # `place` orders items that read `old`, but not those that read another BUFFER on its memory
        is_read = not inputs.isdisjoint(names - {old})
        return not is_ours or is_read or not read.isdisjoint(names)

    return place(plan.items, targets, is_needed, sharing)


def _give_memory(versions: Sequence[tuple[UOp, UOp]]) -> None:
    capture = present_capture()
    for new, old in versions:
        set_memory(new, memory_of(old))
        if capture is not None:
            capture.pieces[new] = old, 0


def _spare(
    plan: Schedule,
    results: Sequence[UOp],
    outputs: Sequence[UOp],
    others: Callable[[], Iterable[UOp]],
) -> set[UOp]:
    """Return the BUFFERs of intermediate values that are not needed after their last reader."""
    if is_capturing():  # a replay has its own memory for them
        return set()
    inner = set(plan.stored.values()).difference(map(base, results))
    if inner:
        inner.difference_update(UOp.sink(*results).toposort())
    if not inner:
        return inner
    roots = set(outputs)
    needed = UOp.sink(*without_detach([n for n in others() if n not in roots])).toposort()
    return inner.difference(b for node, b in plan.stored.items() if node in needed)
