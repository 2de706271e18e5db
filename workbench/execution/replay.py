"""Replays: a captured run repeated on other memory, without scheduling.

Only items that depend on the inputs run again. The pointers of a launch are packed in advance;
before a run those of inputs and results are changed. Results have new memory each time, so that
results of earlier runs are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from workbench.backends.contract import Launch
from workbench.backends.device import Device
from workbench.backends.memory import NO_COUNT, Buffer
from workbench.base import recording
from workbench.base.context import JIT, NO_MEMORY_PLANNER
from workbench.base.interrupts import Uninterrupted
from workbench.base.recording import clock_ns, error_words, span
from workbench.counters import CountedKernel, CountedTogether, count_launch, run_recorded
from workbench.execution.buffers import memory_under
from workbench.execution.capture import Capture
from workbench.execution.item_order import ordered_for_memory
from workbench.execution.memory_plan import EXCESS, MemoryBlocks, MemoryPlan, plan_memory
from workbench.execution.realize import register_reader
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.ir.schedule.plan import ScheduleItem
from workbench.pipeline import Tuner, build


class _Copy:
    """A copy between devices, with the interface of a Launch: slot 0 is written."""

    def __init__(self, buffers: list[Buffer]):
        self._buffers = buffers

    def __call__(self, wait: bool = True) -> None:
        self._buffers[0].copy_from(self._buffers[1])

    def move(self, slot: int, buffer: Buffer) -> None:
        self._buffers[slot] = buffer


@dataclass(frozen=True, slots=True)
class _Use:
    """A use of memory by a launch: its slot, and the piece (first element, size) of the memory, or
    None for all of it."""

    step: Launch
    slot: int
    piece: tuple[int, int] | None


class _Step(NamedTuple):
    """A Launch, and the (kernel, kernel with opts, device) that it counts for; None for a copy.
    `written` are the Buffers that it writes, without those that move; `nbytes` is what a
    copy copies."""

    step: Launch
    kernel: CountedKernel | None
    written: tuple[Buffer, ...] = ()
    nbytes: int = 0


class _Launches:
    """Launches in their order: a call runs and counts them, `run` only runs them. They run together
    where the device can (`is_graph`); else `begun` is the number of those that have begun."""

    def __init__(self, steps: Sequence[_Step]):
        self._steps, self.count = steps, len(steps)
        self.begun = 0
        self._counted = CountedTogether([s.kernel for s in steps if s.kernel is not None])
        self._graph = self._together()

    @property
    def is_graph(self) -> bool:
        return self._graph is not None

    def __call__(self) -> None:
        if self._graph is None or (recording.active and not hasattr(self._graph, "recorded")):
            return self._each()
        if recording.active:
            return self._recorded(self._graph)
        start_ns = clock_ns()
        self._graph()
        self._counted.add((clock_ns() - start_ns) / 1e9)

    def run(self) -> None:
        if self._graph is not None:
            return self._graph()
        for each in self._steps:
            each.step(False)

    def _recorded(self, graph: Any) -> None:
        """Run the launches together, with the times of each for recordings."""
        kernels = [step.kernel for step in self._steps if step.kernel is not None]
        written = [step.written for step in self._steps]
        start_ns = clock_ns()
        run_recorded(graph, kernels, written)
        self._counted.add((clock_ns() - start_ns) / 1e9)

    def _each(self) -> None:
        for number, (step, kernel, written, nbytes) in enumerate(self._steps, 1):
            self.begun = number
            if kernel is None:
                with span("copy", nbytes):
                    step()
                continue
            start_ns = clock_ns()
            try:
                step(bool(recording.active))
            except BaseException as error:
                count_launch(kernel, start_ns, clock_ns(), written, error_words(error))
                raise
            count_launch(kernel, start_ns, clock_ns(), written)

    def _together(self) -> Callable[[], None] | None:
        """Return a function that runs all launches together; None with JIT=2, and where some are
        copies, or on another device, or there is one for a queue."""
        devices = {None if each.kernel is None else each.kernel[2] for each in self._steps}
        device = devices.pop() if len(devices) == 1 else None
        if device is None or JIT.value > 1 or (len(self._steps) < 2 and Device[device].queues):
            return None
        return Device[device].graph([each.step for each in self._steps])


_SMALL_BYTES = 1 << 20
"""Bytes of intermediate values whose order stays as it was scheduled: there is little to save."""
_MOST_SPARE_BYTES = 1 << 20
"""Most bytes of the last result but one, whose memory a replay keeps, too: an allocation takes no
time beside the kernels of larger ones."""


class _ResultMemory:
    """The memory of a result, new in each run: memory of an earlier result that nobody refers to
    any more is used again, which takes a tenth of the time of an allocation. The references are
    counted when the memory is known to be unused, and compared later."""

    __slots__ = ("_bound", "_bound_count", "_kind", "_other", "_spare_count", "_uses")

    def __init__(self, node: UOp, uses: Sequence[_Use]):
        self._kind = node.device, node.dtype, node.size
        self._uses = uses
        self._bound: Buffer | None = None
        self._other: Buffer | None = None
        self._bound_count = self._spare_count = NO_COUNT

    def bound(self) -> Buffer:
        """Return memory that nobody else refers to, which the launches write from now on."""
        buffer = self._bound
        if buffer is not None and buffer.reference_counts() == self._bound_count:
            return buffer
        other, self._other, self._bound = self._other, None, None
        if buffer is not None and buffer.nbytes <= _MOST_SPARE_BYTES:
            self._other = buffer
        if other is None or other.reference_counts() != self._spare_count:
            other = Buffer(*self._kind)
            self._spare_count = other.reference_counts()
        _move(self._uses, other)
        if self._spare_count is not NO_COUNT:
            self._bound = other
            self._bound_count = other.reference_counts()
        return other


@dataclass(frozen=True, slots=True)
class OutputSource:
    """The memory of an output of `shape`: that of input number `place`; new memory (`NEW`); or that
    of the BUFFER `constant`, the same in each run (`CONSTANT`). `piece` is (first element, size) in
    it, None for all. No other memory of the capture is named, so that it can be freed."""

    place: int
    piece: tuple[int, int] | None
    shape: Shape
    constant: UOp | None = None


R = TypeVar("R")
NEW = -1
CONSTANT = -2


class Replay:
    """A captured run. `replay(memory, ..)` runs it again; `count` is the number of its kernels and
    copies; `sources` has the memory of each output.

    `inputs` are the BUFFERs of the inputs, `outputs` those of the results. Items run again if they
    depend on inputs, or write one of `rewritten`, or memory that an item overwrites. Each run reads
    what the other items wrote, so nothing may overwrite it. Items that depend only on `steady`
    inputs run again only if one of these has another version, unless their values have more bytes
    than these inputs.
    """

    def __init__(
        self,
        captured: Capture,
        inputs: Sequence[UOp],
        outputs: Sequence[UOp],
        tuner: Tuner,
        rewritten: Collection[UOp] = (),
        steady: Collection[UOp] = (),
    ):
        self._pieces, self._tuner = captured.pieces, tuner
        repeated = {*rewritten, *captured.overwritten()}
        items, targets = self._dependent(captured.items, inputs, repeated)
        roots = [self._root(o)[0] for o in outputs]
        fresh = dict.fromkeys(r for r in roots if r in targets)
        self._uses: dict[UOp, list[_Use]] = {node: [] for node in (*inputs, *fresh)}
        inner = {t for t in targets if self._root(t)[0] is t}
        moving = {*inputs, *fresh, *repeated}.difference(steady)
        prelude = self._prelude_of(items, moving, steady)
        lasting = {b for item in prelude for b in item.outputs}
        items, self._memory = self._shared(items, inner.difference(fresh, lasting))
        self._memory |= {b: Buffer(b.device, b.dtype, b.size) for b in lasting}
        self._constants: dict[UOp, None] = {}
        first_launches = [self._launch(item) for item in prelude]
        self._prelude = _Launches(first_launches)
        self._versions: list[object] | None = None
        first = set(map(id, prelude))
        others = [item for item in items if id(item) not in first]
        launches = [self._launch(item) for item in others]
        written = [self._inputs_written(item, inputs) for item in others]
        safe = next((n for n, places in enumerate(written) if places), len(others))
        self._safe, self._rest = _Launches(launches[:safe]), _Launches(launches[safe:])
        self._written = written[safe:]
        """The numbers of the inputs that each launch of `_rest` overwrites."""
        used = {each.kernel[2]: None for each in (*first_launches, *launches) if each.kernel}
        self._queues = [d for d in map(Device.__getitem__, used) if d.queues]
        self._inputs = [self._uses[node] for node in inputs]
        self._last: list[Buffer | None] = [None] * len(inputs)
        self._fresh = [_ResultMemory(node, self._uses[node]) for node in fresh]
        places = {node: place for place, node in enumerate((*inputs, *fresh))}
        self._results = [self._result(o, places) for o in outputs]
        self._order = [place - len(inputs) for place, *_ in self._results]
        self.sources = [
            self._source(o, p, len(inputs))
            for o, (p, *_) in zip(outputs, self._results, strict=True)
        ]
        del self._uses, self._pieces, self._memory
        register_reader(self)

    @property
    def count(self) -> int:
        """The number of kernels and copies of a run in which all inputs have other versions."""
        return self._prelude.count + self._safe.count + self._rest.count

    def __call__(
        self,
        memory: Sequence[Buffer],
        versions: Sequence[object] | None,
        publish: Callable[[list[Buffer]], R],
        abandon: Callable[[BaseException, set[int], set[int]], None],
    ) -> R:
        """Run on the memory of each input; return what `publish` returns for the memory of each
        output. `versions` are those of the steady inputs (None: they may have changed).

        Ctrl-C ends it before the first input is overwritten; from then on it is deferred until
        `publish` has run. If a launch fails after that, `abandon` gets the error, the numbers of
        the inputs that have new versions, and of those that may be partly overwritten."""
        self._bind_inputs(memory)
        buffers = [*memory]
        buffers += [each.bound() for each in self._fresh]
        if self._prelude.count and (versions is None or versions != self._versions):
            self._versions = None  # in case of Ctrl-C before all have run
            self._prelude()
            self._versions = None if versions is None else [*versions]
        self._safe()
        with Uninterrupted():
            try:
                self._rest()
                for device in self._queues:
                    device.flush()
            except BaseException as error:
                abandon(error, *self._written_until_now())
                raise
            return publish(
                [
                    _window(buffers[place], piece) if constant is None else constant
                    for place, piece, constant in self._results
                ]
            )

    def unread(self, count: int) -> list[int]:
        """Return which of the first `count` inputs no launch reads."""
        return [n for n in range(count) if not self._inputs[n]]

    @property
    def only_computes(self) -> bool:
        """Whether a run writes no memory but its own and that of its results, each of which has all
        of its memory, and is complete when it returns."""
        places = [place for place, piece, _ in self._results if piece is None]
        first = len(self._inputs)
        return (
            not self._rest.count
            and not self._queues
            and sorted(places) == [*range(first, first + len(self._fresh))]
            and len(places) == len(self._results)
        )

    @property
    def is_prelude_current(self) -> bool:
        """Whether items of steady inputs need not run again while their versions are the same."""
        return not self._prelude.count or self._versions is not None

    def compute(self, memory: Sequence[Buffer]) -> list[Buffer]:
        """Run again, a replay that `only_computes`; return the memory of its results. `memory` is
        that of the first inputs; the others, and versions, are as in the last run. It must be
        quick."""
        self._bind_inputs(memory)
        buffers = [each.bound() for each in self._fresh]
        self._safe()
        return buffers if len(buffers) == 1 else [buffers[place] for place in self._order]

    def _bind_inputs(self, memory: Sequence[Buffer]) -> None:
        last = self._last
        for place, buffer in enumerate(memory):
            before = last[place]
            if before is None or not (buffer is before or buffer.is_same_memory(before)):
                last[place] = None  # in case of Ctrl-C before all launches are changed
                _move(self._inputs[place], buffer)
                last[place] = buffer

    def _written_until_now(self) -> tuple[set[int], set[int]]:
        """Return the numbers of inputs that are overwritten completely, and of inputs that may be
        overwritten in part."""
        begun = self._written[: self._rest.begun]
        if self._queues or self._rest.is_graph:
            return set(), set[int]().union(*self._written)
        torn = begun[-1].union(*self._written[self._rest.begun :]) if begun else set[int]()
        complete = set[int]().union(*begun)
        return complete - torn, complete & torn

    def buffers_read(self) -> list[UOp]:
        """Return the BUFFERs whose contents each run reads or returns."""
        return [*self._constants]

    def launch(self) -> None:
        """Run the launches that every run repeats on the memory of the last run, uncounted, and
        wait for them."""
        self._safe.run()
        self._rest.run()
        for device in self._queues:
            device.synchronize()

    def _dependent(
        self, items: Sequence[ScheduleItem], inputs: Sequence[UOp], rewritten: Collection[UOp]
    ) -> tuple[list[ScheduleItem], set[UOp]]:
        """Return the items that run again, and the BUFFERs that they write."""
        dependents, replay_items = set(inputs), []
        targets: set[UOp] = set()
        for item in items:
            if any(self._root(b)[0] in dependents for b in item.buffers) or any(
                self._root(b)[0] in rewritten for b in item.outputs
            ):
                replay_items.append(item)
                dependents.update(item.outputs)
                targets.update(item.outputs)
        return replay_items, targets

    def _inputs_written(self, item: ScheduleItem, inputs: Sequence[UOp]) -> set[int]:
        """Return the numbers of the inputs that an item overwrites."""
        roots = {self._root(b)[0] for b in item.outputs}
        return {n for n, node in enumerate(inputs) if node in roots}

    def _prelude_of(
        self, items: Sequence[ScheduleItem], moving: Collection[UOp], steady: Collection[UOp]
    ) -> list[ScheduleItem]:
        """Return the items that neither read nor write memory that depends on `moving` BUFFERs.
        Return none if their values have more bytes than the `steady` BUFFERs that they read."""
        other, prelude = set(moving), []
        for item in items:
            roots = {self._root(b)[0] for b in item.buffers}
            if other.isdisjoint(roots):
                prelude.append(item)
            else:
                other.update(self._root(b)[0] for b in item.outputs)
        read = {self._root(b)[0] for item in prelude for b in item.inputs}
        left = {b for item in prelude for b in item.outputs}
        is_small = _bytes(left) <= _bytes(read.intersection(steady))
        return prelude if is_small else []

    def _shared(
        self, items: list[ScheduleItem], inner: set[UOp]
    ) -> tuple[list[ScheduleItem], dict[UOp, Buffer]]:
        """Return the items in their order, and the memory of intermediate values, shared between
        values that are not live at the same time: in the order for memory if they then take less.
        It is not the memory of the capture, which a tensor that outlives the function may still
        use."""
        if NO_MEMORY_PLANNER.value:
            return items, {node: Buffer(node.device, node.dtype, node.size) for node in inner}

        def owner(node: UOp) -> UOp:
            return self._root(node)[0]

        def planned(items: Sequence[ScheduleItem]) -> MemoryPlan:
            return plan_memory(items, inner, owner=owner, is_kept=True)

        plan = planned(items)
        if plan.shared_bytes > _SMALL_BYTES:
            other_order = [*ordered_for_memory(items, inner, owner)]
            other = planned(other_order)
            if other.shared_bytes * (1 + EXCESS) < plan.shared_bytes:
                items, plan = other_order, other
        blocks = MemoryBlocks(plan)
        parts = {node: blocks.part(node) for node in plan.pieces}
        return items, {node: part for node, part in parts.items() if part is not None}

    def _buffer_of(self, node: UOp) -> Buffer:
        root, start = self._root(node)
        memory = self._memory.get(root)
        if memory is None:
            return memory_under(node)
        if node is root:
            return memory
        return memory.window(start, node.size)

    def _root(self, node: UOp) -> tuple[UOp, int]:
        """Return the BUFFER that owns the memory of a BUFFER, and the offset there."""
        start = 0
        while node in self._pieces:
            node, first = self._pieces[node]
            start += first
        return node, start

    def _launch(self, item: ScheduleItem) -> _Step:
        buffers = [self._buffer_of(b) for b in item.buffers]
        step: Launch
        kernel = None
        if item.kernel is None:
            step = _Copy(buffers)
        else:
            device = item.device
            opted = self._tuner(item.kernel, device)
            step = build(opted, device).program.bind(buffers)
            kernel = item.kernel, opted, device
        for slot, node in enumerate(item.buffers):
            root, _ = self._root(node)
            if root in self._uses:
                self._uses[root].append(_Use(step, slot, self._piece(node)))
            elif root not in self._memory:
                self._constants[root] = None
        fixed = [slot for slot in item.slots if self._root(item.buffers[slot])[0] not in self._uses]
        return _Step(step, kernel, tuple([buffers[slot] for slot in fixed]), buffers[0].nbytes)

    def _piece(self, node: UOp) -> tuple[int, int] | None:
        root, start = self._root(node)
        return None if start == 0 and root.size == node.size else (start, node.size)

    def _result(
        self, node: UOp, places: dict[UOp, int]
    ) -> tuple[int, tuple[int, int] | None, Buffer | None]:
        """Return the position of a result's memory among inputs and new memory, and its piece. If
        the memory is always the same, return -1, None and that memory."""
        place = places.get(self._root(node)[0], -1)
        if place < 0:
            return place, None, memory_under(node)
        return place, self._piece(node), None

    def _source(self, node: UOp, place: int, inputs: int) -> OutputSource:
        root, _ = self._root(node)
        if place < 0:
            self._constants[root] = None
            return OutputSource(CONSTANT, self._piece(node), node.shape, root)
        place = place if place < inputs else NEW
        return OutputSource(place, self._piece(node), node.shape)


def _bytes(buffers: Collection[UOp]) -> int:
    return sum(b.size * b.dtype.itemsize for b in buffers)


def _move(uses: Sequence[_Use], memory: Buffer) -> None:
    for use in uses:
        use.step.move(use.slot, _window(memory, use.piece))


def _window(memory: Buffer, piece: tuple[int, int] | None) -> Buffer:
    return memory if piece is None else memory.window(*piece)
