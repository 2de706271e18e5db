"""A run of a schedule without effect on its tensors: a kernel's producers run before it, on the
same device, in memory of the run.

Sections: A run of a schedule without effect on its tensors; The check of a kernel; Refusing to
time a user's function whose results are not computed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import count
from types import MappingProxyType

import numpy as np

from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import WorkbenchError
from workbench.check.answer import BEFORE_OPTS, CheckResult, Reference, compared, kernel_reference
from workbench.check.meanings import Meanings, ReferenceComparison, comparison_of, whole_reference
from workbench.execution.buffers import Array, allocated, is_absent, is_overwritten, memory_of
from workbench.execution.memory_plan import MemoryPlan, is_realized
from workbench.execution.realize import register_reader
from workbench.ir.meaning.sampled import interpret_needed
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import without
from workbench.ir.schedule.plan import ScheduleItem, base
from workbench.pipeline import Tuner, build

# --------------------------------------------------------------------------------------------------
# A run of a schedule without effect on its tensors.

NO_ARRAYS: Mapping[UOp, Array] = MappingProxyType({})
IN_MEMORY = "nothing is computed: all results are in memory, and what computed them is not known"


@dataclass(slots=True, eq=False, weakref_slot=True)
class ScheduleRun:
    """A run of a schedule with memory of its own on each device, where `counts` items have run so
    far. `meanings` has the meaning of its values; `device` is where its results are."""

    items: tuple[ScheduleItem, ...]
    meanings: Meanings
    tuner: Tuner
    """Returns the kernel of an item with its opts, before it runs."""
    device: str = ""
    """The device of the results."""
    rules_off: tuple[str, ...] = ()
    """Rules that are switched off while its kernels compile."""
    memory: dict[str, dict[UOp, Buffer]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        register_reader(self)

    def buffers_read(self) -> Iterator[UOp]:
        """Return the BUFFERs whose contents a run needs."""
        return (b for item in self.items for b in item.inputs)

    @property
    def has_data(self) -> bool:
        """Whether the data of all buffers are here."""
        return not any(is_absent(b) for item in self.items for b in item.buffers)

    def upto(self, count: int, device: str) -> dict[UOp, Buffer]:
        """Return the memory on `device` after the first `count` items have run there. Items for a
        machine that is not here run on the device that stands in for it (`Device.runner`)."""
        device = Device.runner(device)
        memory = self.memory.setdefault(device, {})
        for number in range(self.counts.get(device, 0), count):
            self._run(self.items[number], device, memory)
            self.counts[device] = number + 1
        return memory

    def _run(self, item: ScheduleItem, device: str, memory: dict[UOp, Buffer]) -> None:
        written = item.slots
        buffers = [
            self._buffer(b, device, memory, fill=slot not in written)
            for slot, b in enumerate(item.buffers)
        ]
        if item.kernel is None:
            buffers[0].copy_from(buffers[1])
        else:
            with without(self.rules_off):
                program = build(self.tuner(item.kernel, device), device).program
            program(buffers)

    def leaf(self, node: UOp, device: str) -> Array:
        """Return the content of a tensor's BUFFER, as the run reads it."""
        device = Device.runner(device)
        memory = self.memory.setdefault(device, {})
        return self._buffer(node, device, memory, fill=True).to_numpy()

    def comparison(self, number: int, device: str) -> ReferenceComparison:
        """Return the comparison by which the kernel of item `number` is checked."""

        def computed(node: UOp) -> Array:
            return self.upto(number, device)[node].to_numpy()

        return comparison_of(
            self.meanings, self.items, number, lambda b: self.leaf(b, device), computed
        )

    def results(
        self, device: str, number: int = 0, outputs: Mapping[UOp, Array] = NO_ARRAYS
    ) -> list[Array]:
        """Return all results, flat, after all items have run. If `outputs` are given, they stand in
        for what item `number` would write."""
        device = Device.runner(device)
        memory = dict(self.upto(number if outputs else len(self.items), device))
        for node, array in outputs.items():
            memory[node] = Buffer.of(device, node.dtype, array.reshape(-1))
        for item in self.items[number + 1 :] if outputs else ():
            self._run(item, device, memory)
        return self._results_in(memory, device)

    def placed(self, device: str, plan: MemoryPlan) -> list[Array]:
        """Return all results, flat, after a run in the memory of a plan: values are written over
        others where it says so, and freed after their last reader."""
        device = Device.runner(device)
        memory: dict[UOp, Buffer] = {}
        blocks: dict[str, Buffer] = {}
        for number, item in enumerate(self.items):
            for name, block in plan.blocks.items():
                if block.first == number:
                    blocks[name] = unwritten(device, dtypes.uint8, block.size_bytes)
            for buffer in item.outputs:
                piece = plan.pieces.get(buffer)
                if piece is not None:
                    own = piece.offset, buffer.dtype, buffer.size
                    memory[buffer] = blocks[piece.device].part(*own)
            self._run(item, device, memory)
            for buffer, (_, last) in plan.lives.items():
                if last == number:
                    memory.pop(buffer, None)
            for name, block in plan.blocks.items():
                if block.last == number:
                    del blocks[name]
        return self._results_in(memory, device)

    def _results_in(self, memory: dict[UOp, Buffer], device: str) -> list[Array]:
        stored = {n: b for i in self.items for n, b in zip(i.nodes, i.outputs, strict=True)}
        results = [node.substitute(stored) for node in self.meanings.outputs]
        leaves = [n for n in UOp.sink(*results).toposort() if n.op is Ops.BUFFER]
        arrays = {
            n: self._buffer(n, device, memory, fill=True).to_numpy().reshape(n.shape)
            for n in leaves
        }
        pairs = zip(interpret_needed(results, arrays), results, strict=True)
        return [np.broadcast_to(array, n.shape).reshape(-1) for array, n in pairs]

    def check(
        self, device: str, number: int = 0, outputs: Mapping[UOp, Array] = NO_ARRAYS
    ) -> CheckResult:
        """Compare all results (see `results`) with the meaning of the expression. If there are no
        items, the results were computed before: they are compared with the expression for them.

        Errors: WorkbenchError if that is not known any more.
        """
        meanings, roots = self.meanings, self.meanings.roots
        if self.is_in_memory:
            raise WorkbenchError("there is nothing to compare", IN_MEMORY, "a new exploration")
        if not self.items and self._has_whole():
            roots = meanings.whole
        reference = whole_reference(meanings, roots, lambda b: self.leaf(b, device))
        return compared(reference, self.results(device, number, outputs))

    @property
    def is_in_memory(self) -> bool:
        """Whether all results were in memory before, and the expression for them is not known."""
        if self.items or self._has_whole():
            return False
        return all(base(root).op is Ops.BUFFER for root in self.meanings.roots)

    def _has_whole(self) -> bool:
        """Whether the whole expression is known, and the data that it reads are still there."""
        whole = self.meanings.whole
        leaves = [n for n in UOp.sink(*whole).toposort() if n.op is Ops.BUFFER]
        if any(is_overwritten(n) or allocated(n) is None for n in leaves):
            return False
        return any(base(root).op is not Ops.BUFFER for root in whole)

    def _buffer(self, node: UOp, device: str, memory: dict[UOp, Buffer], fill: bool) -> Buffer:
        """Return this run's own memory for a BUFFER. If `fill`, it has a copy of the tensor's data,
        or random numbers where the data are absent; else wrong values (see `unwritten`)."""
        if node not in memory:
            if not fill:
                buffer = unwritten(device, node.dtype, node.size)
            elif is_absent(node):
                generator = np.random.default_rng(len(memory))
                values = random_values(generator, node.dtype, node.size)
                buffer = Buffer.of(device, node.dtype, values)
            else:
                buffer = Buffer(device, node.dtype, node.size)
                buffer.copy_from(memory_of(node))
            memory[node] = buffer
        return memory[node]

    def buffers(
        self, number: int, device: str, inputs: Mapping[UOp, Array] = NO_ARRAYS
    ) -> list[Buffer]:
        """Return the buffers of item `number` by slot, with new ones for its outputs. If no
        `inputs` are given, the producers run first; else `inputs` are copied, and other inputs are
        those of the run."""
        device, item = Device.runner(device), self.items[number]
        memory = self.memory.setdefault(device, {})
        if not inputs:
            self.upto(number, device)
        written = item.slots
        return [
            unwritten(device, b.dtype, b.size)
            if slot in written
            else Buffer.of(device, b.dtype, inputs[b].reshape(-1))
            if b in inputs
            else self._buffer(b, device, memory, fill=True)
            for slot, b in enumerate(item.buffers)
        ]

    def launches(self, device: str) -> list[Callable[[], None]]:
        """Return the launches of all kernels on `device` in their order, in the memory of this run,
        after one run."""
        device = Device.runner(device)
        memory = self.upto(len(self.items), device)
        bound = []
        for item in self.items:
            if item.kernel is not None:
                buffers = [self._buffer(b, device, memory, fill=True) for b in item.buffers]
                with without(self.rules_off):
                    program = build(self.tuner(item.kernel, device), device).program
                bound.append(program.bind(buffers))
        return bound


def unwritten(device: str, dtype: DType, size: int) -> Buffer:
    """Return a Buffer for a kernel to write, full of wrong values: in used memory, an element that
    the kernel fails to write could be right by chance."""
    buffer = Buffer(device, dtype, size)  # before its values: it says how much memory is free
    if dtype.is_bool:  # some of them are wrong
        buffer.copy_in(np.arange(size) % 3 == 0)
    else:
        byte = 0xFF if dtype.is_float else 0xA5  # NaN
        buffer.copy_in(np.full(size * dtype.itemsize, byte, np.uint8).view(dtype.numpy))
    return buffer


def random_values(generator: np.random.Generator, dtype: DType, size: int) -> Array:
    """Return `size` values that suit a dtype: floats around 0, small integers, coin flips."""
    if dtype.is_float:
        return generator.standard_normal(size).astype(dtype.numpy)
    if dtype.is_bool:
        return generator.integers(0, 2, size).astype(bool)
    low = 0 if dtype.kind == "uint" else -8
    return generator.integers(low, 9, size).astype(dtype.numpy)


# --------------------------------------------------------------------------------------------------
# The check of a kernel: the run that it needs, and the verdict on the outputs.


@dataclass(frozen=True, slots=True)
class CheckRun:
    """What a check of a kernel needs: its `buffers` by slot, the `reference` for its outputs, and
    `verdict`, which compares outputs with it."""

    buffers: Sequence[Buffer]
    reference: Reference
    verdict: Callable[[Sequence[Array]], CheckResult]

    @staticmethod
    def of_kernel(kernel: UOp, buffers: Sequence[Buffer], against: str = BEFORE_OPTS) -> CheckRun:
        """Return the check of a kernel against the interpretation of `kernel`: it, before opts."""
        slots = kernel.outputs
        inputs = arrays(buffers, slots)
        reference = kernel_reference(kernel, slots, inputs, against)
        return CheckRun(buffers, reference, lambda outputs: compared(reference, outputs))


def arrays(buffers: Sequence[Buffer], written: Sequence[int]) -> list[Array]:
    """Return copies of a kernel's inputs by slot, and zeros for its outputs."""
    return [
        np.zeros(b.size, b.dtype.numpy) if slot in written else b.to_numpy()
        for slot, b in enumerate(buffers)
    ]


# --------------------------------------------------------------------------------------------------
# Refusing to time a user's function whose results are not computed.

MOST_DEPTH = 8
"""Most levels of containers that are searched."""


def computing(name: str, run: Callable[[], object]) -> Callable[[], object]:
    """Return `run` for timing; its first call raises a WorkbenchError if the result is not
    computed."""
    calls = count()

    def checked() -> object:
        result = run()
        if not next(calls):
            require_computed(name, result)
        return result

    return checked


def require_computed(name: str, result: object) -> None:
    """Errors: WorkbenchError if a function's result, or a value in it, is not computed."""
    for value in _nested_values(result):
        hint = _how_to_compute(value)
        if hint:
            kind = type(value).__name__
            because = f"it returns a {kind} that is not computed: it only describes the work"
            raise WorkbenchError(f"the time of {name} would say nothing", because, hint)


def _how_to_compute(value: object) -> str:
    """Return how a value that is not computed can be computed; "" for any other value."""
    uop = getattr(value, "uop", None)
    if isinstance(uop, UOp):
        if is_realized(uop):
            return ""
        return "numpy arrays as arguments (x.numpy()), or a TinyJit of the function"
    if type(value).__module__.partition(".")[0] == "tinygrad":
        graph = uop or getattr(value, "lazydata", None)
        return "" if getattr(graph, "is_realized", False) else ".realize() of it"
    if callable(getattr(value, "__dask_graph__", None)):
        return ".compute() of it"
    if inspect.isgenerator(value) or inspect.iscoroutine(value):
        return "a function that returns when the work is done"
    return ""


def _nested_values(value: object, depth: int = 0) -> Iterator[object]:
    """Yield a value, and the values in it if it is a container."""
    yield value
    if depth >= MOST_DEPTH:
        return
    inner: Iterator[object] = iter(())
    if isinstance(value, Mapping):
        inner = iter(value.values())
    elif isinstance(value, (tuple, list, set, frozenset)):
        inner = iter(value)
    elif is_dataclass(value) and not isinstance(value, type):
        inner = (getattr(value, f.name, None) for f in fields(value))
    for each in inner:
        yield from _nested_values(each, depth + 1)
