"""The emulator gives right answers, finds nothing wrong with right programs, and names what is
wrong with others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.agreement.hunt import attempts, report
from tests.emulator.device import NAME, Emulated
from tests.support import count
from workbench import Kernel, Opt, OptOps, Tensor, emulate, explore
from workbench.backends.device import Device
from workbench.backends.gpu.work_group_device import common_gpu
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import DeviceError
from workbench.emulator.program import emulated
from workbench.emulator.steps import Trace
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.pipeline import stages

Array = np.ndarray[Any, Any]
Program = tuple[UOp, ...]
GPU = common_gpu("GPU")
SEEDS = 710_000
TILED = [
    Opt(OptOps.LOCAL, "g0", 16),
    Opt(OptOps.LOCAL, "g1", 16),
    Opt(OptOps.SPLIT, "r0", 16),
    Opt(OptOps.ORDER, "r0", "l0"),
    Opt(OptOps.STAGE, "r0", 1),
    Opt(OptOps.STAGE, "r0", 2),
]


@pytest.fixture
def device() -> Iterator[Emulated]:
    emulator = Device.register(Emulated())
    assert isinstance(emulator, Emulated)
    yield emulator
    Device.unregister(NAME)


def test_random_programs_with_random_opts(device: Emulated) -> None:
    seeds = range(SEEDS, SEEDS + count(500))
    for attempt in attempts(seeds, NAME, "mixed"):
        assert not attempt.verdict and not attempt.refusal, report(attempt)
        findings = [str(f) for trace in device.traces for f in trace.findings]
        assert not findings, (attempt.program.seed, findings)
        device.traces.clear()


def test_a_tiled_product() -> None:
    kernel, expected = product(64)
    trace = emulate(kernel)
    np.testing.assert_allclose(output(trace), expected.ravel(), rtol=1e-4, atol=1e-4)
    assert (trace.launch.grid, trace.launch.group) == ((4, 4), (16, 16))
    main, shared = trace.total("global"), trace.total("shared")
    # each of 16 groups reads 4 tiles of A and of B; every element is stored once
    assert main.bytes_wanted == main.bytes_moved == (16 * 4 * 2 * 256 + 64 * 64) * 4
    assert main.transactions == main.bytes_moved // 32
    assert shared.conflicts == 0
    assert sum(trace.barriers.values()) == 16 * 4 * 2
    assert not trace.findings
    assert str(trace).startswith("16 groups of 256 work-items\nglobal memory: 4,608")


def test_a_column_costs_a_sector_for_each_element() -> None:
    x = Tensor(np.arange(64 * 64, dtype=np.float32).reshape(64, 64)).realize()
    kernel = plain(x.T.contiguous())
    by_rows = emulate(kernel.apply(Opt(OptOps.LOCAL, "g1", 32)))
    loads = [c for c in by_rows.accesses.values() if not c.is_store]
    stores = [c for c in by_rows.accesses.values() if c.is_store]
    assert [c.transactions for c in loads] == [64 * 64], "neighbours read far apart"
    assert [c.transactions for c in stores] == [64 * 64 // 8]
    assert by_rows.total("global").bytes_wanted == 2 * 64 * 64 * 4


def test_a_device_without_work_groups() -> None:
    kernel, _ = product(32)
    with pytest.raises(DeviceError, match="it has no work-groups"):
        emulate(kernel, "PYTHON")


# defects


def test_a_missing_barrier_is_a_race() -> None:
    kernel, _ = product(32)
    linear, run = program(kernel)
    assert not run(linear).findings
    barriers = [i for i, n in enumerate(linear) if n.op is Ops.BARRIER]
    assert len(barriers) == 2
    for place, verbs in zip(barriers, ("writes", "read"), strict=True):
        found = run(without(linear, place)).findings
        assert {(f.kind, f.memory) for f in found} == {("race", "As"), ("race", "Bs")}
        assert all(verbs in f.words and len(set(f.items)) == len(f.items) for f in found)


def test_a_sum_whose_parts_are_read_too_early() -> None:
    x = Tensor(np.ones((4, 64), np.float32)).realize()
    linear, run = program(plain(x.sum(1)).apply(Opt(OptOps.GROUP, "r0", 4)))
    assert not run(linear).findings
    (barrier,) = (i for i, n in enumerate(linear) if n.op is Ops.BARRIER)
    (race, *rest) = run(without(linear, barrier)).findings
    assert race.kind == "race" and race.memory == "group0" and not rest
    assert linear[race.positions[0]].op is Ops.STORE


def test_all_work_items_write_one_element() -> None:
    x = Tensor(np.ones((4, 64), np.float32)).realize()
    linear, run = program(plain(x.sum(1)).apply(Opt(OptOps.GROUP, "r0", 4)))
    ifs = [i for i, n in enumerate(linear) if n.op in (Ops.IF, Ops.ENDIF)]
    assert len(ifs) == 2
    (race, *rest) = run(without(linear, *ifs)).findings
    assert (race.kind, race.memory) == ("race", "p0") and not rest
    assert "writes p0[0]" in race.words


def test_a_barrier_in_an_if_is_divergent() -> None:
    x = Tensor(np.ones((4, 64), np.float32)).realize()
    linear, run = program(plain(x.sum(1)).apply(Opt(OptOps.GROUP, "r0", 4)))
    inside = next(i for i, n in enumerate(linear) if n.op is Ops.IF) + 1
    barrier = next(n for n in linear if n.op is Ops.BARRIER)
    found = run((*linear[:inside], barrier, *linear[inside:])).findings
    assert [f.kind for f in found] == ["divergent barrier"]
    assert found[0].items[0].item == (1, 0, 0)


def test_a_cell_that_nobody_fills() -> None:
    kernel, _ = product(32)
    linear, run = program(kernel)
    store = next(n for n in linear if n.op is Ops.STORE and n.place.param.op is Ops.DEFINE)
    place = linear.index(store)
    condition = UOp(Ops.CMPLT, dtypes.bool, (item(linear, 0), UOp.index(15)))
    guard = (UOp(Ops.IF, store.dtype, (condition,)), UOp(Ops.ENDIF, store.dtype, (condition,)))
    changed = (*linear[:place], condition, guard[0], store, guard[1], *linear[place + 1 :])
    found = run(changed).findings
    assert [(f.kind, f.memory) for f in found] == [("unwritten", "As")]
    assert found[0].element % 16 == 15


def test_an_index_beyond_the_tile() -> None:
    kernel, _ = product(32)
    linear, run = program(kernel)
    store = next(n for n in linear if n.op is Ops.STORE and n.place.param.op is Ops.DEFINE)
    at = linear.index(store)
    further = store.place.src[1] + 1
    index = construct.index(store.place.src[0], further)
    steps = (further, index, store.replace(src=(index, *store.src[1:])))
    found = run((*linear[:at], *steps, *linear[at + 1 :])).findings
    assert {f.kind for f in found} == {"out of bounds", "unwritten"}
    outside = next(f for f in found if f.kind == "out of bounds")
    assert (outside.memory, outside.element) == ("As", 256)
    assert "writes As[256], and there are 256 elements" in outside.words


# helpers


def product(size: int) -> tuple[Kernel, Array]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size), dtype=np.float32) for _ in range(2))
    kernel = plain(Tensor(a).realize() @ Tensor(b).realize())
    for opt in TILED:
        kernel = kernel.apply(opt)
    return kernel, a @ b


def plain(tensor: Tensor) -> Kernel:
    return explore(tensor).kernels[-1]


def program(kernel: Kernel) -> tuple[Program, Callable[[Program], Trace]]:
    """Return the linear program of a kernel for a GPU, and a function that runs a changed one."""
    linear = stages(kernel.ast, GPU, "linear").linear

    def run(changed: Program) -> Trace:
        buffers = kernel.data.buffers(kernel.original, "PYTHON")
        return emulated(changed, [b.array for b in buffers], GPU)

    return linear, run


def output(trace: Trace) -> Array:
    (array,) = trace.outputs.values()
    return array


def without(linear: Program, *places: int) -> Program:
    return tuple(n for i, n in enumerate(linear) if i not in places)


def item(linear: Program, dimension: int) -> UOp:
    return next(n.axis for n in linear if n.op is Ops.SPECIAL and n.arg == ("item", dimension))


@pytest.mark.parametrize("device", ["WEBGPU:BROWSER", "OPENCL:Iris Xe", "CUDA:H100"])
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
def test_outputs_have_the_dtype_of_the_tensor(device: str, dtype: DType) -> None:
    """Also where a kernel has halves as bits."""
    x = np.arange(8).astype(dtype.numpy)
    kernel = explore(Tensor(x, device=device) * 3).kernels[-1]
    (output,) = emulate(kernel).outputs.values()
    np.testing.assert_array_equal(output, x * 3)
    assert output.dtype == dtype.numpy
