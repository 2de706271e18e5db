"""A device whose memory numpy cannot see (`tests/backends/shelf.py`) computes, copies no more than
it must, times itself, and is in the page.
"""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.agreement.expressions import case
from tests.agreement.hunt import attempts, report
from tests.backends.shelf import NAME, STEP_S, Copies, Shelf
from tests.viz.record.support import plain
from tests.viz.session.support import done, session_of
from workbench import Context, GlobalCounters, Tensor, TinyJit, explore
from workbench.backends.device import Device
from workbench.backends.memory import Buffer, memories
from workbench.base.dtypes import dtypes
from workbench.base.errors import DeviceError, WorkbenchError
from workbench.search.moves import Candidate
from workbench.search.search import run

Array = np.ndarray[Any, Any]


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    device = Shelf()
    assert Device.register(device) is device
    yield device
    Device.unregister(NAME)


def held(*shape: int, seed: int = 0) -> tuple[Tensor, Array]:
    """Return a tensor in the device's memory, and the same for numpy."""
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return Tensor(values, device=NAME).realize(), values


# answers

SIZES = [0, 1, 7, 64, 1001]


@pytest.mark.parametrize("size", SIZES)
def test_elementwise_and_reduce(shelf: Shelf, size: int) -> None:
    """One copy of the input, one of each result."""
    values = np.linspace(-2, 3, size, dtype=np.float32)
    with Copies(shelf.memory) as copies:
        x = Tensor(values, device=NAME)
        doubled = (x * 2 + 1).numpy()
        total = x.sum().numpy()
    assert copies.made == (min(size, 1), min(size, 1) + 1, 0) or size == 0
    np.testing.assert_allclose(doubled, values * 2 + 1, rtol=1e-6)
    np.testing.assert_allclose(total, values.sum(), rtol=1e-5, atol=1e-5)


def _softmax(x: Array) -> Array:
    exps = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(exps / exps.sum(-1, keepdims=True))


OPERATIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Array], Array]]] = {
    "matmul": (lambda x: x @ x.T, lambda x: x @ x.T),
    "softmax": (lambda x: x.softmax(-1), _softmax),
    "gather": (lambda x: x[Tensor([4, 0, 2], device=NAME)], lambda x: x[np.array([4, 0, 2])]),
    "cat": (
        lambda x: x.cat(x[:2] * 3, x[3:], dim=0),
        lambda x: np.concatenate([x, x[:2] * 3, x[3:]]),
    ),
    "odd rows": (lambda x: x[1:4, 3:].contiguous(), lambda x: x[1:4, 3:]),
    "none of it": (lambda x: x[:0] + 1, lambda x: x[:0]),
    "several kernels": (
        lambda x: ((x - x.mean(0)).contiguous() @ x.T).relu().sum(0),
        lambda x: np.maximum((x - x.mean(0)) @ x.T, 0).sum(0),
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(shelf: Shelf, name: str) -> None:
    """One copy out of each, and none on the way."""
    ours, theirs = OPERATIONS[name]
    x, values = held(5, 13)
    with Copies(shelf.memory) as copies:
        y = ours(x)
        actual = y.numpy()
    np.testing.assert_allclose(actual, theirs(values), rtol=1e-4, atol=1e-5)
    indexes = 1 if name == "gather" else 0
    assert copies.made == (indexes, int(actual.size > 0), 0)


def test_convolution(shelf: Shelf) -> None:
    x, _ = held(1, 3, 9, 7)
    w, _ = held(4, 3, 3, 3, seed=1)
    with Copies(shelf.memory) as copies:
        actual = x.conv2d(w, padding=1).numpy()
    assert copies.made == (0, 1, 0)
    with Context(DEV="PYTHON"):
        here = Tensor(x.numpy()).conv2d(Tensor(w.numpy()), padding=1).numpy()
    np.testing.assert_allclose(actual, here, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "bool", "int8", "float64"])
def test_dtypes(shelf: Shelf, dtype: str) -> None:
    kind = dtypes.named(dtype)
    values = np.arange(5).astype(kind.numpy)
    x = Tensor(np.arange(5), device=NAME).cast(kind).realize()
    assert np.array_equal(x.numpy(), values)
    assert np.array_equal((x + x).numpy(), values + values)


def test_random_expressions(shelf: Shelf) -> None:
    for seed in range(700_000, 700_040):
        example = case(seed)
        tensor, expected = example.run(NAME)
        np.testing.assert_allclose(
            tensor.numpy(), expected, rtol=1e-4, atol=example.tolerance(), err_msg=str(seed)
        )


def test_random_programs_with_random_opts(shelf: Shelf) -> None:
    for attempt in attempts(range(710_000, 710_040), NAME, "mixed"):
        assert not attempt.verdict and not attempt.refusal, report(attempt)


# copies, pieces and lifetime


@pytest.mark.parametrize("other", ["PYTHON", "LLVM"])
def test_copies_to_and_from_other_devices(shelf: Shelf, other: str) -> None:
    if not Device.available(other):
        pytest.skip(f"needs {other}")
    x, values = held(33)
    with Copies(shelf.memory) as copies:
        there = (x + 1).to(other).realize()
    assert copies.made == (0, 1, 0)
    np.testing.assert_array_equal(there.numpy(), values + 1)
    with Copies(shelf.memory) as copies:
        back = (there * 2).to(NAME).realize()
    assert copies.made == (1, 0, 0)
    np.testing.assert_array_equal(back.numpy(), (values + 1) * 2)


def test_between_two_such_devices(shelf: Shelf) -> None:
    class Other(Shelf):
        name = "OTHER"

    other = Device.register(Other())
    try:
        a, b = Buffer(NAME, dtypes.int32, 5), Buffer("OTHER", dtypes.int32, 5)
        a.copy_in(np.arange(5, dtype=np.int32))
        b.copy_from(a)
        assert b.to_numpy().tolist() == [0, 1, 2, 3, 4]
        assert shelf.memory.counts == {"in": 1, "out": 1}
        assert isinstance(other, Shelf) and other.memory.counts == {"in": 1, "out": 1}
        a.copy_from(a)
        assert shelf.memory.counts["copy"] == 1
    finally:
        Device.unregister("OTHER")


def test_a_piece_is_looked_at_where_the_device_can(shelf: Shelf) -> None:
    """From a multiple of 16 bytes on it is the same memory; elsewhere a kernel copies it."""
    x, values = held(40)
    blocks = shelf.memory.block_count
    with Copies(shelf.memory) as copies:
        aligned = x[8:20].realize()
    assert copies.made == (0, 0, 0) and shelf.memory.block_count == blocks
    GlobalCounters.reset()
    apart = x[3:20].realize()
    assert GlobalCounters.kernel_count == 1
    np.testing.assert_array_equal(aligned.numpy(), values[8:20])
    np.testing.assert_array_equal(apart.numpy(), values[3:20])
    del x
    np.testing.assert_array_equal((aligned + 1).numpy(), values[8:20] + 1)


def test_a_buffer_has_no_view_and_says_so(shelf: Shelf) -> None:
    buffer = Buffer(NAME, dtypes.float32, 8)
    assert buffer.address == 0 and isinstance(buffer.handle, int)
    with pytest.raises(DeviceError, match="no view"):
        buffer.array  # noqa: B018
    with pytest.raises(DeviceError, match="multiple of 16 bytes"):
        buffer.window(1, 2)
    with pytest.raises(DeviceError, match="it has 12 bytes, and the buffer has 32"):
        buffer.copy_in(np.zeros(3, np.float32))
    part = buffer.window(4, 3)
    assert (part.handle, part.offset, part.size) == (buffer.handle, 16, 3)


def test_memory_is_freed_once_and_used_again(shelf: Shelf) -> None:
    pool = shelf.memory.pool
    x, _ = held(1000)
    y = (x + 1).realize()
    used = pool.used_bytes
    assert used == 2 * 4096 and GlobalCounters.mem_used >= used
    del x, y
    gc.collect()
    assert pool.used_bytes == 0 and pool.spare_bytes == used
    z, _ = held(1000)
    assert pool.spare_bytes == 4096
    pool.clear()
    assert shelf.memory.block_count == 1
    del z
    gc.collect()
    pool.clear()
    assert shelf.memory.block_count == 0
    with pytest.raises(KeyError):
        shelf.memory.read(128, 0, 1)


def test_only_its_own_memory_is_launched_on(shelf: Shelf) -> None:
    x, _ = held(8)
    kernel = explore(x + 1).kernels[0]
    theirs = kernel.data.buffers(kernel.original, "PYTHON")
    with pytest.raises(DeviceError, match="other memory"):
        kernel.built(NAME).program(theirs)
    ours = kernel.data.buffers(kernel.original, NAME)
    for name in filter(Device.available, ("LLVM", "PYTHON")):
        with pytest.raises(DeviceError):
            kernel.built(name).program(ours)


# TinyJit, kernels, pickling


def test_tiny_jit(shelf: Shelf) -> None:
    """A replay copies nothing and launches everything; only who reads the result waits."""

    @TinyJit
    def work(x: Tensor) -> Tensor:
        return ((x + 1).contiguous() * 2).contiguous() - 3

    for seed in range(2):
        work(held(30, seed=seed)[0])
    for seed in range(2, 5):
        x, values = held(30, seed=seed)
        shelf.waits = shelf.longest_queue = 0
        with Copies(shelf.memory) as copies:
            y = work(x)
        assert copies.made == (0, 0, 0)
        assert (shelf.waits, len(shelf.queue)) == (0, 3)
        np.testing.assert_allclose(y.numpy(), (values + 1) * 2 - 3, rtol=1e-5, atol=1e-5)
        assert (shelf.waits, shelf.longest_queue) == (1, 3)


def test_run_check_time_and_search(shelf: Shelf) -> None:
    x, values = held(6, 11)
    kernel = explore((x @ x.T).relu()).kernels[0]
    expected = np.maximum(values @ values.T, 0)
    with Copies(shelf.memory) as copies:
        (actual,) = kernel.run()
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    inputs = len(kernel.data.buffers(kernel.original, NAME)) - 1
    # what a tensor holds is copied once, on the device, so that nothing writes it; the memory of
    # the result is filled with wrong answers before
    assert copies.made == (1, 1, inputs)
    with Copies(shelf.memory) as copies:
        assert kernel.check().ok
    assert copies.made == (1, inputs + 1, 0)
    with Copies(shelf.memory) as copies:
        timing = kernel.time(budget_s=0.01)
    assert copies.made == (1, 0, 0)
    assert timing.median_s == pytest.approx(STEP_S) and timing.fraction_of_peak is None
    tried: list[Candidate] = []
    search = run(
        kernel, width=1, budget_s=20.0, cached=False, shows_progress=False,
        report=tried.append, stop=lambda: len(tried) > 4,
    )  # fmt: skip
    assert search.ranked() and search.kernel.check().ok
    assert kernel.check("PYTHON").ok
    assert kernel.bisect() is None
    assert kernel.compare(kernel.optimized()).equal


def test_pickling(shelf: Shelf) -> None:
    x, values = held(7)
    y = pickle.loads(pickle.dumps(x + 1))
    assert y.device == NAME
    np.testing.assert_array_equal(y.numpy(), values + 1)
    kernel = pickle.loads(pickle.dumps(explore(x + 1).kernels[0]))
    np.testing.assert_array_equal(kernel.run()[0], values + 1)


# the page


def test_it_is_in_the_page(shelf: Shelf) -> None:
    x, _ = held(5, 6)
    with session_of(explore((x @ x.T).relu())) as session:
        record = plain(session.record)
        (row,) = [d for d in record["devices"] if d["name"] == NAME]
        assert row["available"] and not row["emulator"]
        spoken = {row["name"]: row["device"] for row in record["languages"]}
        assert spoken["shelf IR"] == NAME and spoken["C"] == "C"
        assert record["device"] == NAME
        done(session, "code", variant=0, language="shelf IR")
        languages = {code["language"] for code in plain(session.row(0))["code"]}
        assert languages == {"C", "shelf IR", "IR"}
        auto = done(session, "auto", kernel=0)["variant"]
        done(session, "check", variant=auto)
        assert plain(session.row(auto))["check"]["ok"]
        done(session, "measure", variants=[0, auto])
        for variant in (0, auto):
            timing = plain(session.row(variant))["timing"]
            assert timing["median_s"] > 0 and timing["device"] == NAME
            # the machine's peak is the processor's
            assert timing["kind"] is None and plain(session.row(variant))["cost"] is None
        done(session, "device", name="PYTHON")
        done(session, "code", variant=0, language="IR")
        done(session, "device", name=NAME.lower())
        assert plain(session.row(auto))["timing"]["device"] == NAME


@pytest.mark.skipif(not Device.available("C"), reason="needs a C compiler")
def test_source_of_another_device_runs_beside_it(shelf: Shelf) -> None:
    """Edited C runs in a process of its own, which has no such device: nothing else is timed
    there, and nothing is said to be wrong with it."""
    x, _ = held(5, 6)
    with session_of(explore((x @ x.T).relu())) as session:
        done(session, "measure", variants=[0])
        before = plain(session.row(0))["timing"]
        done(session, "code", variant=0, language="C")
        (code,) = [c for c in plain(session.row(0))["code"] if c["language"] == "C"]
        text = "// mine\n" + "\n".join(code["lines"])
        made = done(session, "edit", variant=0, language="C", text=text)["variant"]
        assert plain(session.row(made))["check"]["ok"], plain(session.row(made))
        assert plain(session.row(made))["timing"]["device"] == "C"
        assert plain(session.row(0))["error"] is None and plain(session.row(0))["timing"] == before
        own = done(session, "edit", variant=0, language="shelf IR", text="anything")["variant"]
        assert plain(session.row(own))["timing"]["device"] == NAME


# registering


def test_what_cannot_be_registered_is_told(shelf: Shelf) -> None:
    class Small(Shelf):
        name = "small"

    class Taken(Shelf):
        name = "TAKEN"
        aliases = ("CPU",)

    class Own(Shelf):
        name = "PYTHON"

    for wrong, because in (
        (Small(), "word in capitals"),
        (Taken(), "there is a device CPU"),
        (Own(), "there is a device PYTHON"),
        (Shelf, "is not a DeviceInfo"),
    ):
        with pytest.raises(DeviceError, match=because):
            Device.register(wrong)  # type: ignore[arg-type]
    with pytest.raises(DeviceError, match="package's own"):
        Device.unregister("PYTHON")


def test_a_device_that_is_registered_again_is_another(shelf: Shelf) -> None:
    """As when a cell runs twice: what was compiled for the first is not run on the second."""
    x, _ = held(5)
    assert (x + 1).numpy().size == 5
    second = Shelf()
    Device.register(second)
    y, values = held(5)
    np.testing.assert_array_equal((y + 1).numpy(), values + 1)
    assert second.memory.counts["out"] == 1 and Device[NAME] is second
    with pytest.raises(WorkbenchError, match="other memory"):
        (x + 1).numpy()


def test_it_goes_when_it_is_unregistered() -> None:
    assert NAME not in Device.names() and NAME not in memories
    with pytest.raises(DeviceError):
        Tensor([1.0], device=NAME)
    with pytest.raises(DeviceError, match="no device 'SHELF' has memory"):
        Buffer(NAME, dtypes.float32, 1)
