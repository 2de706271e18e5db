"""The OPENCL device computes what numpy does, through whatever driver there is."""

from __future__ import annotations

import os
import signal
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.backends.gpu.checks import (
    check_an_error_names_the_line_and_the_operation,
    check_default_opts_of_a_gpu,
    check_memory,
    check_random_programs,
    check_tiled_product,
    check_time,
    tiled_product,
)
from tests.backends.opencl.support import need_driver
from workbench import Context, Opt, OptOps, Tensor, explore
from workbench.backends.device import Device
from workbench.backends.opencl import opencl_code as drivers
from workbench.backends.program.text import Source
from workbench.base.errors import CompileError, DeviceError
from workbench.base.installation import library
from workbench.pipeline import stages

NAME = "OPENCL"
Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.usefixtures("driver")


@pytest.fixture(scope="module")
def driver() -> None:
    need_driver()


def test_random_programs_with_random_opts() -> None:
    check_random_programs(NAME, 730_000)


def test_a_tiled_product() -> None:
    check_tiled_product(NAME)
    kernel, _ = tiled_product(NAME)
    text = stages(kernel.ast, NAME, "source").source.text
    assert text.count("barrier(CLK_LOCAL_MEM_FENCE);") == 2
    assert text.count("__local float") == 2


def test_default_opts_of_a_gpu() -> None:
    """A driver for a processor gets opts of its own by default."""
    check_default_opts_of_a_gpu(NAME)


def test_a_value_behind_a_condition_lives_over_a_barrier() -> None:
    """What PoCL 3.0 makes wrong where the load is a branch: each work-item has its own."""
    values = np.arange(12, dtype=np.uint8).reshape(4, 3) % 5
    x = Tensor(values, device=NAME)
    high = (Tensor.arange(3, device=NAME) > (x // x)).where(5, 31)
    (kernel,) = explore(high.argmax(0)).kernels
    opts = (Opt(OptOps.GROUPTOP, "r1", 0), Opt(OptOps.PADTO, "g0", 4), Opt(OptOps.GROUP, "r0", 4))
    assert kernel.apply(*opts).check()


def test_memory_is_the_drivers() -> None:
    check_memory(NAME)


def test_a_time_is_the_drivers() -> None:
    check_time(NAME)


def test_an_error_of_the_compiler_names_the_line() -> None:
    text = "__kernel void wrong(__global float *p0) {\n  p0[0] = undefined_name;\n}\n"
    source = Source("wrong", "OpenCL C", text, ())
    with pytest.raises(CompileError) as error:
        Device[NAME].load(source).bind([])
    assert error.value.line == 2 and "undefined_name" in str(error.value)


def test_a_simulator_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Installing one adds its driver to those that are found."""
    chosen = drivers.OpenCLDriver.gpu_here()
    assert chosen is not None and not drivers.is_simulator(chosen)
    cl = library("pyopencl")
    names = SimpleNamespace(name="Oclgrind")
    simulator = SimpleNamespace(platform=names, type=cl.device_type.GPU)
    both = [SimpleNamespace(get_devices=lambda d=d: [d]) for d in (simulator, chosen)]
    for platforms, expected in ((both, chosen), (both[:1], None)):
        monkeypatch.setattr(cl, "get_platforms", lambda found=platforms: found)
        assert drivers.OpenCLDriver.find() is expected


def test_an_error_in_a_line_of_a_kernel_names_its_operation() -> None:
    check_an_error_names_the_line_and_the_operation(NAME)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_is_refused_instead_of_waiting_for_ever() -> None:
    """The threads of a driver, which end what it launches, are not in a forked process."""
    x = Tensor(np.arange(24, dtype=np.float32), device=NAME)
    assert (x + 1).sum().item() == 300
    child = os.fork()
    if not child:
        signal.alarm(60)
        status = 1
        try:
            (x + 1).sum().item()
        except DeviceError as error:
            status = 0 if "get_context('spawn')" in str(error) else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert (x + 2).sum().item() == 324


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_wrap(dtype: str) -> None:
    """A compiler that takes signed sums for numbers without end folds such comparisons."""
    most = np.iinfo(dtype).max // 2 + 1
    x = np.arange(84, dtype=np.uint16).astype(dtype) ^ most
    with Context(DEV=NAME):
        a = Tensor(x)
        np.testing.assert_array_equal((a + a).minimum(most).sign().numpy(), -np.ones(84))
        np.testing.assert_array_equal(((a * 3) < a).numpy(), x * 3 < x)
        np.testing.assert_array_equal(((-a - a) < 0).numpy(), -x - x < 0)
        total = (a * a).sum(dtype=dtype)
        np.testing.assert_array_equal((total < 0).numpy(), (x * x).sum(dtype=dtype) < 0)
        halves = Tensor(np.full(84, 65535, np.uint16))
        np.testing.assert_array_equal((halves * halves).numpy(), np.ones(84))
