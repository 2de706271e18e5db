"""The METAL device, whose driver the emulator plays: what it compiles, launches and copies, and
what it says when something is wrong."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.backends.gpu.checks import (
    check_absence,
    check_an_error_names_the_line_and_the_operation,
    check_memory,
    check_memory_that_runs_out,
    check_random_programs,
    check_target,
    check_tiled_product,
    check_time,
    error_of_a_fault,
)
from tests.backends.gpu.fake_gpu import FakeGpu, device_with, mend
from tests.backends.metal.fake import fakes
from workbench import Opt, OptOps, Tensor, explore
from workbench.backends.device import Device
from workbench.backends.metal.metal_device import MOST_PENDING, MetalDriver
from workbench.backends.metal.metal_machines import machine_of
from workbench.base.errors import DeviceError

NAME = "METAL"


@pytest.fixture(scope="module")
def played() -> Iterator[FakeGpu]:
    fake = FakeGpu()
    with device_with(NAME, fake, fakes(fake)):
        yield fake


@pytest.fixture
def gpu(played: FakeGpu) -> Iterator[FakeGpu]:
    yield played
    MetalDriver.current().pending.clear()
    mend(played)


def test_its_target_is_the_machines_with_what_its_driver_says(gpu: FakeGpu) -> None:
    here = Device[NAME].target
    assert MetalDriver.current().arch == "apple9"
    assert (here.group_items, here.shared_bytes) == (1024, 32 << 10)
    check_target(NAME, "M3", 5_726_633_984)


def test_another_gpu() -> None:
    other = machine_of("Apple M3 Pro", "apple9", 12 << 30)
    assert other.hardware is None and other.tensor_cores
    old = machine_of("AMD Radeon Pro 560X", "", 4 << 30)
    assert old.hardware is None and not old.tensor_cores


def test_without_a_gpu_it_says_how_to_get_it() -> None:
    check_absence(NAME, "metal")


def test_random_programs_with_random_opts(gpu: FakeGpu) -> None:
    """What the language lacks, such as float64, is refused."""
    check_random_programs(NAME, 770_000, refused="Metal has no")
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


def test_launches_queue_up_to_a_number(gpu: FakeGpu) -> None:
    x = Tensor(np.ones(8, np.float32), device=NAME).realize()
    launch = explore(x + 1).kernels[-1].launch()
    Device[NAME].synchronize()
    before = len(gpu.launches)
    for _ in range(MOST_PENDING + 3):
        launch(wait=False)
    assert len(gpu.launches) == before + 3, "those that had to be waited for"
    Device[NAME].synchronize()
    assert len(gpu.launches) == before + MOST_PENDING + 3


def test_memory_that_runs_out_is_said(gpu: FakeGpu) -> None:
    check_memory_that_runs_out(NAME)


def test_a_group_that_is_too_large_for_a_kernel_is_said(gpu: FakeGpu) -> None:
    x = Tensor(np.ones(1024, np.float32), device=NAME).realize()
    kernel = explore(x + 1).kernels[-1].apply(Opt(OptOps.LOCAL, "g0", 1024))
    with pytest.raises(DeviceError, match="allows 512"):
        kernel.run()


def test_a_fault_names_the_kernel(gpu: FakeGpu) -> None:
    error_of_a_fault(NAME, gpu, "Caused GPU Address Fault Error (0000000b)")
