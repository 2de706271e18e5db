"""The HIP device, whose driver the emulator plays: what it compiles, loads, launches and copies,
and what it says when something is wrong."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest

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
from tests.backends.gpu.fake_gpu import FakeGpu, device_with, mend
from tests.backends.hip.fake import MI300X, fakes
from workbench import Tensor, explore
from workbench.backends.device import Device
from workbench.backends.gpu.memory import KEPT_GRAPHS
from workbench.backends.hip import hip_device as runtime
from workbench.backends.hip.driver import HipDriver, part
from workbench.backends.hip.hip_machines import machine_of
from workbench.backends.memory import Buffer
from workbench.base.dtypes import dtypes
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
    here = Device[NAME].target
    assert HipDriver.current().arch == "gfx942"
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


def test_a_captured_function(gpu: FakeGpu) -> None:
    check_captured_function(NAME, gpu)


def test_graphs_that_nobody_has_are_given_back(gpu: FakeGpu) -> None:
    """Those for old addresses, and all with the last launch."""
    driver = part("hip").hipGraphLaunch.__self__
    before = len(driver.executables)
    x = Tensor(np.arange(8, dtype=np.float32), device=NAME).realize()
    launch = explore(x * 3).kernels[-1].launch()
    graph = Device[NAME].graph([launch])
    assert graph is not None
    outs = [
        Buffer.of(NAME, dtypes.float32, np.zeros(8, np.float32)) for _ in range(KEPT_GRAPHS + 3)
    ]
    for out in outs:
        launch.move(0, out)
        graph()
        np.testing.assert_array_equal(out.to_numpy(), np.arange(8) * 3)
    assert len(driver.executables) - before == KEPT_GRAPHS
    del graph
    gc.collect()
    assert len(driver.executables) == before


def test_a_launch_that_fails_in_a_graph_ends_its_capture(
    gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = part("hip").hipGraphLaunch.__self__
    x = Tensor(np.arange(8, dtype=np.float32), device=NAME).realize()
    launch = explore(x * 5).kernels[-1].launch()
    graph = Device[NAME].graph([launch])
    assert graph is not None

    def fail() -> None:
        raise RuntimeError("hipErrorInvalidValue")

    monkeypatch.setattr(launch, "enqueue", fail)
    with pytest.raises(DeviceError, match="HIP cannot build a graph"):
        graph()
    assert driver.captured is None
    monkeypatch.undo()
    graph()


def test_properties_as_each_release_of_the_package_has_them(
    gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = part("hip").hipGraphLaunch.__self__
    for function in (fake.GetDeviceProperties, fake.later_properties):
        monkeypatch.setattr(part("hip"), "hipGetDeviceProperties", function)
        found = HipDriver.find()
        assert found is not None and found.name == MI300X.name
    texts = replace_words(MI300X)
    monkeypatch.setattr(HipDriver.current(), "properties", texts)
    assert HipDriver.current().arch == "gfx942"
    assert HipDriver.current().target().hardware == Device[NAME].target.hardware


def replace_words(properties: SimpleNamespace) -> SimpleNamespace:
    """Return properties with texts, as later releases have them."""
    words = {n: v.decode() for n, v in vars(properties).items() if isinstance(v, bytes)}
    return SimpleNamespace(**vars(properties) | words)


def test_memory_that_runs_out_is_said(gpu: FakeGpu) -> None:
    check_memory_that_runs_out(NAME)


def test_a_fault_names_the_kernel_and_what_to_do(gpu: FakeGpu) -> None:
    check_a_fault_takes_the_gpu(NAME, gpu, "hipErrorLaunchFailure")
