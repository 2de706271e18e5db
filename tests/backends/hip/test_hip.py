"""The HIP device, whose driver the emulator plays: what it compiles, loads, launches and copies,
and what it says when something is wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.backends.gpu.checks import (
    check_an_error_names_the_line_and_the_operation,
    check_memory,
    check_random_programs,
    check_tiled_product,
    check_time,
)
from tests.backends.gpu.fake_gpu import FakeGpu, device_with, mend
from tests.backends.hip.fake import MI300X, fakes
from workbench import OptOps, Tensor, explore
from workbench.backends.device import Device
from workbench.backends.hip import runtime
from workbench.backends.hip.driver import HipDriver
from workbench.backends.hip.machines import machine_of
from workbench.base.errors import DeviceError

NAME = "HIP"


@pytest.fixture(scope="module")
def played() -> Iterator[FakeGpu]:
    fake = FakeGpu()
    with device_with(NAME, fake, fakes(fake)) as patch:
        patch.setattr(runtime, "in_child", lambda function, *rest: function(*rest))
        yield fake


@pytest.fixture
def gpu(played: FakeGpu) -> Iterator[FakeGpu]:
    yield played
    mend(played)


def test_its_target_is_the_machines_with_what_its_driver_says(gpu: FakeGpu) -> None:
    here, table = Device[NAME].target, Device[f"{NAME}:MI300X"].target
    assert HipDriver.here().arch == "gfx942"
    assert here.tensor_cores == table.tensor_cores and here.tensor_cores
    assert (here.group_items, here.warp_lanes, here.cores) == (1024, 64, 304)
    assert here.l2_bytes == 4 << 20 and here.shared_bytes == 64 << 10
    assert here.hardware and table.hardware
    assert here.hardware.memory_bytes == MI300X.totalGlobalMem
    same = replace(here.hardware, memory_bytes=table.hardware.memory_bytes)
    assert same == table.hardware


def test_another_gpu_of_an_architecture_and_an_unknown_one() -> None:
    half = machine_of("AMD Instinct MI300A", "gfx942", 152, 2.1e9, 128 << 30).hardware
    whole = Device[f"{NAME}:MI300X"].target.hardware
    assert half and whole and half.name == "AMD Instinct MI300A"
    assert half.peak("float32") == pytest.approx(whole.peak("float32") / 2)
    assert half.bandwidth("shared") == pytest.approx(whole.bandwidth("shared") / 2)
    assert half.bandwidth("DRAM") == whole.bandwidth("DRAM")
    card = machine_of("AMD Radeon RX 7900 XTX", "gfx1100", 48, 2.5e9, 24 << 30)
    assert card.hardware is None and card.tensor_cores


def test_without_a_gpu_it_says_how_to_get_it() -> None:
    """Asked in a process of its own, where nothing plays one."""
    script = (
        "from workbench.backends.device import Device\n"
        "if not Device['HIP'].is_available: Device['HIP'].target"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0 or "pip install 'workbench[hip]'" in run.stderr


def test_random_programs_with_random_opts(gpu: FakeGpu) -> None:
    check_random_programs(NAME, 760_000)
    assert gpu.launches


def test_a_tiled_product(gpu: FakeGpu) -> None:
    check_tiled_product(NAME, 16)


def test_a_product_has_its_cost_and_its_tensor_cores(gpu: FakeGpu) -> None:
    a = Tensor(np.ones((64, 64), np.float16), device=NAME).realize()
    kernel = explore(a.matmul(a, dtype="float32")).kernels[-1].optimized()
    assert any(opt.op is OptOps.TC for opt in kernel.applied_opts), kernel.applied_opts
    assert kernel.target.hardware is Device[NAME].target.hardware
    assert kernel.cost.predicted_s > 0
    (actual,) = kernel.run()
    np.testing.assert_array_equal(actual, np.full((64, 64), 64, np.float32))


def test_memory_is_the_drivers(gpu: FakeGpu) -> None:
    check_memory(NAME)
    assert gpu.memory


def test_a_time_is_the_gpus(gpu: FakeGpu) -> None:
    check_time(NAME)


def test_an_error_names_the_line_and_the_operation(gpu: FakeGpu) -> None:
    check_an_error_names_the_line_and_the_operation(NAME)


def test_memory_that_runs_out_is_said(gpu: FakeGpu) -> None:
    with pytest.raises(DeviceError, match="cannot allocate"):
        Device[NAME].memory.pool.acquire(1 << 33)


def test_a_fault_names_the_kernel_and_what_to_do(gpu: FakeGpu) -> None:
    x = Tensor(np.ones(8, np.float32), device=NAME).realize()
    kernel = explore(x + 1).kernels[-1]
    launch = kernel.launch()
    gpu.fault = "hipErrorLaunchFailure"
    with pytest.raises(DeviceError) as error:
        launch()
    assert f"the GPU stopped in {kernel.name}" in str(error.value)
    assert error.value.because == gpu.fault and "in another process" in error.value.hint
    assert Device[NAME].is_lost, "a worker that has had it ends"
