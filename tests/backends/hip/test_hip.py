"""The HIP device, whose driver the emulator plays: what it compiles, loads, launches and copies,
and what it says when something is wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.backends.gpu.checks import (
    check_a_fault_takes_the_gpu,
    check_absence,
    check_an_error_names_the_line_and_the_operation,
    check_memory,
    check_memory_that_runs_out,
    check_product_of_halves,
    check_random_programs,
    check_target,
    check_tiled_product,
    check_time,
)
from tests.backends.gpu.fake_gpu import FakeGpu, device_with, mend
from tests.backends.hip.fake import MI300X, fakes
from workbench.backends.device import Device
from workbench.backends.hip import runtime
from workbench.backends.hip.driver import HipDriver
from workbench.backends.hip.machines import machine_of

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
    here = Device[NAME].target
    assert HipDriver.here().arch == "gfx942"
    assert (here.group_items, here.warp_lanes, here.cores) == (1024, 64, 304)
    assert here.l2_bytes == 4 << 20 and here.shared_bytes == 64 << 10
    check_target(NAME, "MI300X", MI300X.totalGlobalMem)


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
    check_absence(NAME, "hip")


def test_random_programs_with_random_opts(gpu: FakeGpu) -> None:
    check_random_programs(NAME, 760_000)
    assert gpu.launches


def test_a_tiled_product(gpu: FakeGpu) -> None:
    check_tiled_product(NAME, 16)


def test_a_product_has_its_cost_and_its_tensor_cores(gpu: FakeGpu) -> None:
    check_product_of_halves(NAME)


def test_memory_is_the_drivers(gpu: FakeGpu) -> None:
    check_memory(NAME)
    assert gpu.memory


def test_a_time_is_the_gpus(gpu: FakeGpu) -> None:
    check_time(NAME)


def test_an_error_names_the_line_and_the_operation(gpu: FakeGpu) -> None:
    check_an_error_names_the_line_and_the_operation(NAME)


def test_memory_that_runs_out_is_said(gpu: FakeGpu) -> None:
    check_memory_that_runs_out(NAME)


def test_a_fault_names_the_kernel_and_what_to_do(gpu: FakeGpu) -> None:
    check_a_fault_takes_the_gpu(NAME, gpu, "hipErrorLaunchFailure")
