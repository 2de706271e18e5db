"""The steps of a work-group: what they say is what the machine had at that time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.emulator.assembly import Assembly
from tests.emulator.test_machine import GPU, plain, product, program, without
from workbench import Kernel, Opt, OptOps, Tensor, dtypes, emulate, explore
from workbench.backends.device import Device
from workbench.base.dtypes import DType
from workbench.base.errors import WorkbenchError
from workbench.base.target import SHUFFLE_ALL, Target
from workbench.emulator.history import GroupHistory, history_of
from workbench.emulator.machine import Machine
from workbench.emulator.memory import Lanes
from workbench.emulator.program import emulated
from workbench.emulator.steps import HistoryStep
from workbench.ir.meaning.tiles import lane_map
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.pipeline import stages

Array = Any
State = tuple[dict[UOp, Array], dict[UOp, Array], dict[UOp, Array], Array]


class Copies:
    """Copies what a machine has at each step of a history."""

    def __init__(self, history: GroupHistory):
        self.history = history
        self.states: list[State] = []

    def open(self, axis: UOp, step: int) -> None: ...

    def close(self, axis: UOp) -> None: ...

    def access(self, lanes: Lanes, values: Array) -> None: ...

    def step(self, position: int, machine: Machine) -> None:
        if position in self.history.line_of:
            arrays = {n: a.copy() for n, a in machine.memory.arrays.items()}
            written = {n: c.is_written.copy() for n, c in machine.memory.cells.items()}
            registers = {r: np.array(v) for r, v in machine.registers.items()}
            self.states.append((arrays, written, registers, machine.mask[0].copy()))


def grouped_sum() -> Kernel:
    x = np.arange(4 * 64, dtype=np.float32).reshape(4, 64)
    return plain(Tensor(x).realize().sum(1)).apply(Opt(OptOps.GROUP, "r0", 32))


def wide_sum() -> Kernel:
    x = np.arange(64 * 8, dtype=np.float32).reshape(8, 64)
    kernel = plain(Tensor(x).realize().sum(0))
    return kernel.apply(Opt(OptOps.UPCAST, "g0", 4)).apply(Opt(OptOps.LOCAL, "g0", 8))


def rows() -> Kernel:
    x = np.arange(21 * 8, dtype=np.float32).reshape(21, 8) / 50
    return plain(Tensor(x).realize().softmax(1)).apply(Opt(OptOps.LOCAL, "g0", 7))


def transpose() -> Kernel:
    """A kernel without loops."""
    x = np.arange(32 * 32, dtype=np.float32).reshape(32, 32)
    kernel = plain(Tensor(x).realize().T.contiguous())
    for axis in ("g0", "g1"):
        kernel = kernel.apply(Opt(OptOps.LOCAL, axis, 16))
    return kernel.apply(Opt(OptOps.STAGE, "g1", 1))


KERNELS = {
    "transpose": transpose,
    "product": lambda: product(32)[0],
    "grouped sum": grouped_sum,
    "vectors": wide_sum,
    "rows": rows,
}


@pytest.fixture(params=[*KERNELS])
def states(request: pytest.FixtureRequest) -> tuple[GroupHistory, list[State]]:
    """The history of a group, and copies of what a machine had at each of its steps."""
    kernel = KERNELS[request.param]()
    linear = stages(kernel.ast, GPU, "linear").linear
    history = history_of(linear, arrays_of(kernel), GPU, 1, frozenset())
    copies = Copies(history)
    machine = Machine(linear, arrays_of(kernel), GPU, frozenset(), watcher=copies)
    machine.run([1])
    assert len(copies.states) == len(history) > 5 and not history.cut
    return history, copies.states


def arrays_of(kernel: Kernel) -> list[Array]:
    buffers = kernel.data.buffers(kernel.original, "PYTHON")
    return [b.array.copy() for b in buffers]


def test_every_step_has_what_the_machine_had(states: tuple[GroupHistory, list[State]]) -> None:
    history, copies = states
    for number, (arrays, written, registers, mask) in enumerate(copies):
        step = HistoryStep(history, number)
        np.testing.assert_array_equal(step.active, mask)
        for memory in history.memories:
            items = range(0, history.items, 5) if memory.space != "shared" else [0]
            for item in items:
                cells = step.cells(memory.name, item)
                size = cells.values.size
                here = slice(item * size, (item + 1) * size)
                there = written[memory][here]
                np.testing.assert_array_equal(cells.writers >= 0, there)
                np.testing.assert_array_equal(cells.values[there], arrays[memory][here][there])
        for item in range(0, history.items, 5):
            values_by_name = step.registers(item)
            for register, values in registers.items():
                name = history.names[register]
                np.testing.assert_array_equal(values_by_name[name], values[0, item])


def test_the_first_and_the_last_step(states: tuple[GroupHistory, list[State]]) -> None:
    history, _ = states
    first, last = HistoryStep(history, 0), HistoryStep(history, len(history) - 1)
    assert first.node.op in (Ops.SPECIAL, Ops.SET) and not first.rounds
    access = last.access
    assert last.node.op is Ops.STORE and access is not None and access.is_store
    assert access.space == "global" and access.transactions > 0
    assert str(first).startswith(f"step 0 of {len(history)}, group (1, 0, 0)\n>")


def test_counts_of_steps_are_those_of_the_run() -> None:
    kernel, _ = product(64)
    trace = emulate(kernel, history=(0, 3))
    assert trace.history is not None
    accesses = trace.history.accesses.values()
    for space in ("global", "shared"):
        here = [a for a in accesses if a.space == space]
        total = trace.total(space)
        assert sum(a.transactions for a in here) * 16 == total.transactions
        assert sum(a.bytes_moved for a in here) * 16 == total.bytes_moved


def test_the_group_that_is_asked_for() -> None:
    kernel, expected = product(64)
    trace = emulate(kernel, history=(1, 2))
    last = trace.step(-1)
    assert last.access is not None
    tile = last.access.values.reshape(16, 16)
    np.testing.assert_allclose(tile, expected[32:48, 16:32], rtol=1e-4, atol=1e-4)
    values_by_name = last.registers(17)
    assert [values_by_name[n] for n in ("g0", "g1", "l0", "l1")] == [2, 1, 1, 1]
    assert repr(trace.history) == "<290 steps of group (1, 2, 0)>"
    with pytest.raises(WorkbenchError, match=r"no group \(4, 0\).*\n?.*4 x 4"):
        emulate(kernel, history=(4, 0))
    with pytest.raises(WorkbenchError, match="this run noted none"):
        emulate(kernel).step(0)
    with pytest.raises(IndexError, match="there is no step 290"):
        trace.step(290)


def test_steps_and_groups_that_there_are_not_say_which_there_are() -> None:
    kernel, _ = product(64)
    trace = emulate(kernel, history=(1, 2))
    hints = {"a": "trace.step(0)", 1.5: "trace.step(0)", 10**9: "0 to 289"}
    for number, hint in hints.items():
        with pytest.raises(WorkbenchError) as raised:
            trace.step(number)  # type: ignore[arg-type]
        assert raised.value.hint.startswith(hint)
    for group in ([99, 99, 99], [-1, 0, 0]):
        with pytest.raises(WorkbenchError) as raised:
            emulate(kernel, history=group)
        assert raised.value.hint.startswith("history=(0, 0) to (3, 3), along x, y")


def test_who_used_a_cell() -> None:
    kernel, _ = product(32)
    trace = emulate(kernel, history=True)
    last = trace.step(-1)
    uses = last.uses("As", 16 * 3 + 5)
    writes = [use for use in uses if use.is_store]
    assert [use.item for use in writes] == [16 * 3 + 5] * 2, "once for each tile"
    reads = [use for use in uses if not use.is_store]
    assert {use.item for use in reads} == set(range(48, 64)), "a row of work-items"
    assert all(read.step > writes[0].step for read in reads)


@pytest.mark.parametrize("barrier, first", [(0, "STORE"), (1, "LOAD")])
def test_a_race_has_its_two_steps(barrier: int, first: str) -> None:
    kernel, _ = product(32)
    linear, _ = program(kernel)
    places = [i for i, n in enumerate(linear) if n.op is Ops.BARRIER]
    trace = emulated(without(linear, places[barrier]), arrays_of(kernel), GPU, history=True)
    assert trace.findings and trace.history is not None
    for finding in trace.findings:
        one, other = map(trace.step, trace.history.steps_of(finding))
        assert one.number < other.number
        assert (one.position, other.position) == finding.positions
        assert one.node.op.name == first
        assert one.access is not None and finding.element in one.access.elements
        assert other.access is not None and other.access.name == finding.memory


def test_a_divergent_barrier_has_its_step() -> None:
    linear, _ = program(grouped_sum())
    inside = next(i for i, n in enumerate(linear) if n.op is Ops.IF) + 1
    barrier = next(n for n in linear if n.op is Ops.BARRIER)
    changed = (*linear[:inside], barrier, *linear[inside:])
    trace = emulated(changed, arrays_of(grouped_sum()), GPU, history=True)
    assert trace.history is not None
    (step,) = trace.history.steps_of(trace.findings[0])
    assert trace.step(step).node.op is Ops.BARRIER
    assert trace.step(step).active.tolist() == [True] * 16 + [False] * 16


def test_a_history_that_is_too_long_is_cut() -> None:
    kernel, _ = product(32)
    linear, _ = program(kernel)
    whole = history_of(linear, arrays_of(kernel), GPU, 0, frozenset())
    part = history_of(linear, arrays_of(kernel), GPU, 0, frozenset(), most_bytes=50_000)
    assert 10 < len(part) < len(whole)
    assert part.cut == f"it ends after {len(part)} steps: the program goes on"
    last = len(part) - 1
    texts = [str(HistoryStep(history, last)) for history in (part, whole)]
    assert texts[0] == texts[1].replace(f"of {len(whole)}", f"of {len(part)}", 1)


def test_findings_say_op_and_line() -> None:
    kernel, _ = product(32)
    linear, run = program(kernel)
    barrier = next(i for i, n in enumerate(linear) if n.op is Ops.BARRIER)
    trace = run(without(linear, barrier))
    finding = trace.findings[0]
    text = str(trace).splitlines()
    at = text.index(str(finding))
    tile = finding.memory
    assert text[at + 1].startswith(f"  STORE in  {tile}[l0*16 + l1] = p")
    assert text[at + 2].startswith("  LOAD in  acc2 = fma(As[")


def test_a_run_as_text() -> None:
    kernel = plain(Tensor(np.ones((32, 32), np.float32)).realize().T.contiguous())
    trace = emulate(kernel.apply(Opt(OptOps.LOCAL, "g1", 32)))
    text = trace.text().splitlines()
    assert text[4].split() == ["sectors", "used", "conflicts"]
    (copy,) = (line for line in text if "p0[" in line and "%" in line)
    sectors, used, *_ = copy.split()
    assert int(sectors.replace(",", "")) == trace.total("global").transactions == 1152
    assert used == "22%", "of a column a sector for each element, of a row all"
    slow = trace.inefficiencies[0]
    at = text.index(str(slow))
    assert text[at + 1].startswith("  LOAD in  p0[")


def halves(dtype: DType, *shape: int) -> tuple[Tensor, Array]:
    """Return random numbers of a dtype, and the same as numpy's float32."""
    draws = np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)
    tensor = Tensor(draws).cast(dtype).realize()
    return tensor, tensor.float().numpy()


H100 = Device["CUDA:H100"].target
WITH_BITS = replace(H100, conversions=())


@pytest.mark.parametrize("target", [H100, WITH_BITS], ids=["floats", "bits"])
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16])
def test_what_a_tensor_core_takes_is_shown_as_numbers(dtype: DType, target: Target) -> None:
    """Registers have floats, or bits of both dtypes, of which only the core says what they are."""
    (a, left), (b, _) = halves(dtype, 32, 32), halves(dtype, 32, 32)
    kernel = explore(a.float() @ b.float(), device="CUDA:H100").kernels[-1]
    kernel = kernel.apply(Opt(OptOps.TC, "g0 g1 r0", "16x8x16"))
    trace = emulate(kernel, target, history=[1, 1])
    assert trace.history is not None
    tile = next(n for n in trace.linear if n.op is Ops.WMMA).src[0]
    core = next(n.arg for n in trace.linear if n.op is Ops.WMMA)
    where, name = lane_map(core, "a"), trace.history.names[tile]
    held = dtype if target.conversions else dtypes.uint16
    assert tile.dtype.scalar is held and core.operand is dtype
    steps = [n for n in range(len(trace.history)) if trace.step(n).node.op is Ops.WMMA]
    for step, columns in zip(steps, (0, 16), strict=True):
        part = left[16:, columns : columns + 16]
        for lane in range(core.lanes):
            values = trace.step(step).registers(lane)[name]
            right = part[where.rows[lane], where.columns[lane]]
            np.testing.assert_array_equal(values, right)


@pytest.mark.parametrize("target", [H100, WITH_BITS], ids=["floats", "bits"])
def test_halves_are_numbers_in_memory_too(target: Target) -> None:
    """A result that is rounded, by integer arithmetic too, and a tile of the argument."""
    x, values = halves(dtypes.bfloat16, 32, 32)
    kernel = explore((x.T * 3).contiguous(), device="CUDA:H100").kernels[-1]
    for axis in ("g0", "g1"):
        kernel = kernel.apply(Opt(OptOps.LOCAL, axis, 16))
    kernel = kernel.apply(Opt(OptOps.STAGE, "g1", 1))
    trace = emulate(kernel, target, history=True)
    assert trace.history is not None
    held = dtypes.bfloat16 if target.conversions else dtypes.uint16
    assert {n.dtype.scalar for n in trace.history.floats} == {held}
    assert set(trace.history.floats.values()) == {dtypes.bfloat16}
    last = trace.step(len(trace.history) - 1)
    (tile,) = (m for m in trace.history.memories if m.space == "shared")
    cells = last.cells(tile.name)
    assert np.isin(cells.values[cells.writers >= 0], values).all()
    stores = [a for a in trace.history.accesses.values() if a.memory.op is Ops.PARAM]
    written = next(a for a in stores if a.is_store)
    right = (x * 3).float().numpy()
    assert np.isin(written.values, right).all()
    assert written.values.dtype == dtypes.bfloat16.numpy, "without digits of a float32"


def test_integers_are_no_floats() -> None:
    """16 bits that nothing says to be a float."""
    x = Tensor(np.arange(64, dtype=np.uint16)).realize()
    kernel = plain((x + 1).contiguous()).apply(Opt(OptOps.LOCAL, "g0", 32))
    history = emulate(kernel, history=True).history
    assert history is not None and not history.floats


def test_a_shuffle_says_whose_value_is_taken() -> None:
    warps = replace(GPU, shuffle_dtypes=SHUFFLE_ALL)
    trace = emulate(grouped_sum(), warps, history=True)
    history = trace.history
    assert history is not None and not trace.findings
    steps = [HistoryStep(history, n) for n in range(len(history))]
    shuffles = [s for s in steps if s.partner(0) is not None]
    assert [s.partner(0) for s in shuffles] == [16, 8, 4, 2, 1]
    for step in shuffles:
        before = HistoryStep(history, step.number - 1)
        for item in (0, 5, 31):
            partner = step.partner(item)
            assert partner is not None
            own, other = (before.registers(i)["group0w"] for i in (item, partner))
            assert step.registers(item)["group0w"] == own + other
    words = "work-item (5, 0, 0) takes the value of work-item (21, 0, 0)"
    assert words in shuffles[0].text(5).splitlines()
    assert "warp shuffles: 20" in str(trace), "four groups of a warp, five steps"
    fewer = replace(history, masks=history.masks[:, :20])
    assert [HistoryStep(fewer, shuffles[0].number).partner(i) for i in (3, 5)] == [19, None]


def test_a_value_that_nobody_wrote_is_unknown_in_the_history_too() -> None:
    """The history was recorded by another machine, for which outputs had contents."""
    p = Assembly(grid=(1,), group=(4,))
    (item,) = p.items
    y = p.param(0, 4)
    value = p.load(y, item)
    p.store(y, item, value + value)
    memory = [np.full(4, 7, np.float32)]
    for fresh in (frozenset({0}), frozenset[int]()):
        trace = emulated(p.steps, [memory[0].copy()], GPU, history=True, fresh=fresh)
        known = trace.step(len(trace.history) - 1).registers(0)["v4"]
        assert (known is None) == (trace.findings != ()) == bool(fresh)
