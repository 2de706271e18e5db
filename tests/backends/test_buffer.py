"""Buffers and their pool: alignment, reuse, lifetime, and the end of memory."""

from __future__ import annotations

import gc
import signal
import threading
from pathlib import Path

import pytest

from workbench.backends.memory import Buffer, BufferPool, size_class
from workbench.backends.native import host_memory as module
from workbench.backends.native.host_memory import host_memory
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import DeviceError


@pytest.fixture(autouse=True)
def pool(monkeypatch: pytest.MonkeyPatch) -> BufferPool:
    """A pool of its own for each test."""
    fresh = BufferPool(host_memory, limit_bytes=1 << 20)
    monkeypatch.setattr(host_memory, "pool", fresh)
    return fresh


@pytest.mark.parametrize("size", [0, 1, 7, 1000, 100_003])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.int8, dtypes.bool, dtypes.index])
def test_a_buffer_is_aligned_memory(dtype: DType, size: int) -> None:
    buffer = Buffer("LLVM", dtype, size)
    assert buffer.address % 64 == 0 and buffer.address == buffer.array.ctypes.data
    assert buffer.array.shape == (size,) and buffer.array.dtype == dtype.numpy
    assert buffer.nbytes == buffer.array.nbytes == size * dtype.itemsize
    buffer.array[:] = 1
    assert buffer.array.flags.writeable and (buffer.array == 1).all()


def test_memory_is_used_again(pool: BufferPool) -> None:
    first = Buffer("LLVM", dtypes.float32, 1000)
    address = first.address
    del first
    assert pool.spare_bytes == size_class(4000)
    assert Buffer("LLVM", dtypes.int32, 999).address == address


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no alarms here")
def test_an_interrupt_leaves_no_lock_taken(pool: BufferPool) -> None:
    def ring(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    block, heard = pool.acquire(64), 0
    before = signal.signal(signal.SIGALRM, ring)
    try:
        for _ in range(3000):
            try:
                signal.setitimer(signal.ITIMER_REAL, 2e-5)
                for _ in range(1000):
                    pool.release(block)
                    if pool._lock.locked():  # acquire would wait for ever
                        break
                    block = pool.acquire(64)
            except KeyboardInterrupt:
                heard += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert heard > 100 and not pool._lock.locked()


def test_memory_stays_while_an_array_looks_into_it() -> None:
    buffer = Buffer("LLVM", dtypes.float32, 1000)
    view, address = buffer.array[10:20].reshape(2, 5), buffer.address
    view[:] = 3
    del buffer
    others = [Buffer("LLVM", dtypes.float32, 1000) for _ in range(5)]
    for other in others:
        other.array[:] = 0
    assert (view == 3).all()
    assert address not in [other.address for other in others]
    del view
    assert Buffer("LLVM", dtypes.float32, 1000).address == address


def test_a_window_is_the_same_memory(pool: BufferPool) -> None:
    whole = Buffer("LLVM", dtypes.int32, 1000)
    whole.array[:] = range(1000)
    part = whole.window(10, 20).window(5, 3)
    assert part.address == whole.address + 15 * 4 and part.nbytes == 12
    assert part.array.tolist() == [15, 16, 17]
    whole.array[16] = -1
    assert part.array.tolist() == [15, -1, 17]
    used = pool.used_bytes
    del whole
    assert pool.used_bytes == used == size_class(4000)
    del part
    assert pool.used_bytes == 0 and pool.spare_bytes == used


@pytest.mark.parametrize("place", [(-1, 2), (0, 11), (11, 0), (3, -1)])
def test_a_window_lies_inside(place: tuple[int, int]) -> None:
    with pytest.raises(DeviceError, match="cannot use elements"):
        Buffer("LLVM", dtypes.int8, 10).window(*place)


def test_used_memory_is_counted(pool: BufferPool) -> None:
    buffers = [Buffer("LLVM", dtypes.int8, 1000) for _ in range(3)]
    assert pool.used_bytes == 3 * size_class(1000)
    with pytest.raises(DeviceError):
        Buffer("LLVM", dtypes.int8, 1 << 45)  # takes nothing
    buffers.pop()
    assert pool.used_bytes == 2 * size_class(1000)


def test_kept_memory_is_bounded(pool: BufferPool) -> None:
    buffers = [Buffer("LLVM", dtypes.int8, 300_000) for _ in range(10)]
    buffers.clear()
    assert 0 < pool.spare_bytes <= pool.limit_bytes
    pool.clear()
    assert pool.spare_bytes == 0


def test_the_pool_survives_garbage_in_cycles_and_threads(pool: BufferPool) -> None:
    def work() -> None:
        for n in range(300):
            buffer = Buffer("LLVM", dtypes.int8, 64 * (n % 20))
            cycle = [buffer]
            cycle.append(cycle)  # type: ignore[arg-type]
            if n % 50 == 0:
                gc.collect()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    pool.acquire(64)
    sizes = sum(block.size for blocks in pool._free.values() for block in blocks)
    assert pool.spare_bytes == sizes


@pytest.mark.parametrize("nbytes", [0, 1, 64, 65, 512, 513, 5000, 1 << 20, (1 << 20) + 1])
def test_size_classes_waste_little(nbytes: int) -> None:
    size = size_class(nbytes)
    assert size >= max(1, nbytes) and size % 64 == 0
    assert size == size_class(size)
    assert size - nbytes <= max(64, nbytes / 8 + 64)


def test_more_than_there_is_is_an_error_in_words() -> None:
    with pytest.raises(DeviceError) as caught:
        Buffer("LLVM", dtypes.float32, 1 << 45)
    assert "cannot allocate 134,217,728 MiB" in str(caught.value)
    assert "try" in str(caught.value)


def test_more_than_is_free_is_an_error_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "available_bytes", lambda: 20 << 20)
    Buffer("LLVM", dtypes.int8, 17 << 20)
    with pytest.raises(DeviceError, match="because  20 MiB are free"):
        Buffer("LLVM", dtypes.int8, 21 << 20)


def test_kept_memory_counts_as_free(pool: BufferPool, monkeypatch: pytest.MonkeyPatch) -> None:
    Buffer("LLVM", dtypes.int8, 1 << 19)
    answers = [10 << 20, 30 << 20]
    monkeypatch.setattr(module, "available_bytes", lambda: answers.pop(0))
    Buffer("LLVM", dtypes.int8, 25 << 20)
    assert not answers


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(DeviceError, match="-1 elements"):
        Buffer("LLVM", dtypes.int8, -1)


def test_what_the_system_says_is_free() -> None:
    available = module.available_bytes()
    assert (available is None) == (not Path("/proc/meminfo").exists())
    assert available is None or available > 1 << 20


def test_a_container_limits_what_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"/sys/fs/cgroup/memory.max": 1000, "/sys/fs/cgroup/memory.current": 900}
    monkeypatch.setattr(module, "_number", values.get)
    monkeypatch.setattr(module, "_pairs", lambda path: iter([("inactive_file", 50)]))
    assert module._container_available() == 150
