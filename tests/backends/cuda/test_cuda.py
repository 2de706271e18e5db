"""The CUDA device with a driver that the emulator plays: memory, launches, times and faults; a real
GPU is tested by `bench/cuda_device.py`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.backends.cuda.fake import fakes
from tests.backends.gpu.checks import (
    check_an_error_names_the_line_and_the_operation,
    check_memory,
    check_random_programs,
    check_tiled_product,
    check_time,
)
from tests.backends.gpu.fake_gpu import WRONG_WORD, FakeGpu, device_with, mend
from workbench import Opt, OptOps, Tensor, TinyJit, explore
from workbench.backends.cuda import nvrtc, runtime
from workbench.backends.cuda.driver import CudaDriver
from workbench.backends.device import Device
from workbench.base.errors import CompileError, DeviceError

NAME = "CUDA"


@pytest.fixture(scope="module")
def played() -> Iterator[FakeGpu]:
    """A GPU whose compiler leaves the text as it is."""
    fake = FakeGpu()

    def compiled(function: Any, text: str, arch: str) -> nvrtc.Image:
        assert function is nvrtc.compile_text and arch == "sm_90"
        line = fake.wrong_line(text)
        if line is not None:
            raise CompileError("nvrtc", f"{WRONG_WORD} is undefined", line=line)
        return nvrtc.Image(text.encode(), "")

    with device_with(NAME, fake, fakes(fake)) as patch:
        patch.setattr(nvrtc, "toolkit", lambda: object())
        patch.setattr(runtime, "in_child", compiled)
        yield fake


@pytest.fixture
def gpu(played: FakeGpu) -> Iterator[FakeGpu]:
    yield played
    mend(played)


def test_it_is_there_with_a_gpu_and_missing_without(gpu: FakeGpu) -> None:
    info = Device[NAME]
    assert info.is_available
    target = info.target
    assert (target.group_items, target.warp_lanes, target.cores) == (1024, 32, 132)
    assert CudaDriver.here().arch == "sm_90"


def test_a_launch_gives_tiles_that_are_too_large_for_arrays_their_memory(
    gpu: FakeGpu,
) -> None:
    """Products of halves through 55 kB; the driver refuses more than a kernel allows."""
    dice = np.random.default_rng(0)
    a, b = (dice.integers(-3, 4, (128, 128)).astype(np.float16) for _ in range(2))
    x, y = (Tensor(n, device=NAME).realize() for n in (a, b))
    kernel = explore(x @ y).kernels[0].apply(
        Opt(OptOps.TC, "g0 g1 r0", "16x8x16"),
        Opt(OptOps.UPCAST, "g0", 4), Opt(OptOps.LOCAL, "g0", 2),
        Opt(OptOps.UPCAST, "g1", 4), Opt(OptOps.LOCAL, "g1", 4),
        Opt(OptOps.SPLIT, "r0", 2), Opt(OptOps.ORDER, "r0", "l0"),
        Opt(OptOps.STAGE, "r0", 1), Opt(OptOps.UPCAST, "a_r1", 8),
        Opt(OptOps.STAGE, "r0", 2), Opt(OptOps.UPCAST, "b_l1", 8),
        Opt(OptOps.PIPELINE, "r0", 3),
    )  # fmt: skip
    source = kernel.built(NAME).source
    assert source.shared_bytes > 48 << 10
    assert "extern __shared__" in source.text
    (result,) = kernel.run()
    np.testing.assert_array_equal(result, a.astype(np.float64) @ b.astype(np.float64))


def test_its_target_is_the_machines_with_what_its_driver_says(gpu: FakeGpu) -> None:
    here, table = Device[NAME].target, Device[f"{NAME}:H100"].target
    assert here.tensor_cores == table.tensor_cores and here.tensor_cores
    assert here.hardware and table.hardware
    assert here.hardware.memory_bytes == 85_520_809_984
    same = replace(here.hardware, memory_bytes=table.hardware.memory_bytes)
    assert same == table.hardware


def test_a_product_has_its_cost_and_its_tensor_cores(gpu: FakeGpu) -> None:
    a = Tensor(np.ones((64, 64), np.float16), device=NAME).realize()
    kernel = explore(a.matmul(a, dtype="float32")).kernels[-1].optimized()
    assert any(opt.op is OptOps.TC for opt in kernel.applied_opts), kernel.applied_opts
    assert kernel.target.hardware is Device[NAME].target.hardware
    assert kernel.cost.predicted_s > 0
    (actual,) = kernel.run()
    np.testing.assert_array_equal(actual, np.full((64, 64), 64, np.float32))


def test_without_a_gpu_it_says_how_to_get_it() -> None:
    """Asked in a process of its own, where nothing plays one."""
    script = (
        "from workbench.backends.device import Device\n"
        "if not Device['CUDA'].is_available: Device['CUDA'].target"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0 or "pip install 'workbench[cuda]'" in run.stderr


def test_random_programs_with_random_opts(gpu: FakeGpu) -> None:
    check_random_programs(NAME, 750_000)
    assert gpu.launches


def test_a_tiled_product(gpu: FakeGpu) -> None:
    check_tiled_product(NAME, 16)


def test_memory_is_the_drivers(gpu: FakeGpu) -> None:
    check_memory(NAME)
    assert gpu.memory


def test_a_time_is_the_gpus(gpu: FakeGpu) -> None:
    check_time(NAME)


def test_an_error_names_the_line_and_the_operation(gpu: FakeGpu) -> None:
    check_an_error_names_the_line_and_the_operation(NAME)


def test_a_captured_function(gpu: FakeGpu) -> None:
    @TinyJit
    def step(x: Tensor) -> Tensor:
        return ((x * 2).contiguous().sum(axis=0, keepdim=True) + x).realize()

    before = gpu.built
    for seed in range(6):
        values = np.random.default_rng(seed).standard_normal((4, 8)).astype(np.float32)
        actual = step(Tensor(values, device=NAME).realize()).numpy()
        np.testing.assert_allclose(actual, (values * 2).sum(0) + values, rtol=1e-5)
    assert 1 <= gpu.built - before <= 4, "a graph is built for new addresses alone"


def test_memory_that_runs_out_is_said(gpu: FakeGpu) -> None:
    with pytest.raises(DeviceError, match="cannot allocate"):
        Device[NAME].memory.pool.acquire(1 << 33)


def test_a_fault_names_the_kernel_and_what_to_do(gpu: FakeGpu) -> None:
    x = Tensor(np.ones(8, np.float32), device=NAME).realize()
    kernel = explore(x + 1).kernels[-1]
    launch = kernel.launch()
    gpu.fault = "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"
    with pytest.raises(DeviceError) as error:
        launch()
    assert f"the GPU stopped in {kernel.name}" in str(error.value)
    assert "ILLEGAL_ADDRESS" in error.value.because
    assert "in another process" in error.value.hint
    assert Device[NAME].is_lost, "a worker that has had it ends"
