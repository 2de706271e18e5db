"""The CUDA device with a driver that the emulator plays: memory, launches, times and faults; a real
GPU is tested by `bench/cuda_device.py`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.backends.cuda.fake import fakes
from tests.backends.gpu.checks import (
    check_a_fault_takes_the_gpu,
    check_absence,
    check_an_error_names_the_line_and_the_operation,
    check_captured_function,
    check_memory,
    check_memory_that_runs_out,
    check_product_of_halves,
    check_random_programs,
    check_target,
    check_tiled_product,
    check_time,
)
from tests.backends.gpu.fake_gpu import WRONG_WORD, FakeGpu, device_with, mend
from workbench import Opt, OptOps, Tensor, explore
from workbench.backends.cuda import driver as runtime
from workbench.backends.cuda import nvrtc
from workbench.backends.cuda.driver import CudaDriver
from workbench.backends.device import Device
from workbench.base.errors import CompileError

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
    assert CudaDriver.current().arch == "sm_90"


def test_a_launch_gives_tiles_that_are_too_large_for_arrays_their_memory(gpu: FakeGpu) -> None:
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
    check_target(NAME, "H100", 85_520_809_984)


def test_a_product_has_its_cost_and_its_tensor_cores(gpu: FakeGpu) -> None:
    check_product_of_halves(NAME)


def test_without_a_gpu_it_says_how_to_get_it() -> None:
    check_absence(NAME, "cuda")


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
    check_captured_function(NAME, gpu)


def test_memory_that_runs_out_is_said(gpu: FakeGpu) -> None:
    check_memory_that_runs_out(NAME)


def test_a_fault_names_the_kernel_and_what_to_do(gpu: FakeGpu) -> None:
    check_a_fault_takes_the_gpu(NAME, gpu, "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access")
