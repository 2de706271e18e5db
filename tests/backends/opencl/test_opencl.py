"""The OPENCL device computes what numpy does, through whatever driver there is."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.agreement.hunt import attempts, report
from tests.backends.opencl.support import need_driver
from tests.support import count
from workbench import Opt, OptOps, Tensor, explore
from workbench.backends.device import Device
from workbench.backends.opencl import driver as drivers
from workbench.backends.program.source import Source
from workbench.base.errors import CompileError
from workbench.base.libraries import library
from workbench.pipeline import stages

NAME = "OPENCL"
Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.usefixtures("driver")


@pytest.fixture(scope="module")
def driver() -> None:
    need_driver()


def test_random_programs_with_random_opts() -> None:
    for attempt in attempts(range(730_000, 730_000 + count(300)), NAME, "mixed"):
        assert not attempt.verdict and not attempt.refusal, report(attempt)


def test_a_tiled_product() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((32, 32), dtype=np.float32) for _ in range(2))
    kernel = explore(Tensor(a, device=NAME) @ Tensor(b, device=NAME)).kernels[-1]
    for opt in (
        Opt(OptOps.LOCAL, "g0", 8),
        Opt(OptOps.LOCAL, "g1", 8),
        Opt(OptOps.SPLIT, "r0", 8),
        Opt(OptOps.ORDER, "r0", "l0"),
        Opt(OptOps.STAGE, "r0", 1),
        Opt(OptOps.STAGE, "r0", 2),
    ):
        kernel = kernel.apply(opt)
    (actual,) = kernel.run()
    np.testing.assert_allclose(actual, a @ b, rtol=1e-4, atol=1e-5)
    text = stages(kernel.ast, NAME, "source").source.text
    assert text.count("barrier(CLK_LOCAL_MEM_FENCE);") == 2
    assert text.count("__local float") == 2


def test_memory_is_the_drivers() -> None:
    values = np.arange(100, dtype=np.float32)
    x = Tensor(values, device=NAME).realize()
    np.testing.assert_array_equal(x[64:].numpy(), values[64:])
    np.testing.assert_array_equal(x.to("PYTHON").numpy(), values)
    x[32:64] = 0
    expected = values.copy()
    expected[32:64] = 0
    np.testing.assert_array_equal(x.numpy(), expected)


def test_a_time_is_the_drivers() -> None:
    x = Tensor(np.ones((64, 64), np.float32), device=NAME).realize()
    timing = explore(x + 1).kernels[-1].time(budget_s=0.05)
    assert timing.median_s > 0


def test_an_error_of_the_compiler_names_the_line() -> None:
    text = "__kernel void wrong(__global float *p0) {\n  p0[0] = undefined_name;\n}\n"
    source = Source("wrong", "OpenCL C", text, ())
    with pytest.raises(CompileError) as error:
        Device[NAME].load(source).bind([])
    assert error.value.line == 2 and "undefined_name" in str(error.value)


def test_a_simulator_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Installing one adds its driver to those that are found."""
    chosen = drivers.find_driver()
    assert chosen is not None and not drivers.is_simulator(chosen)
    cl = library("pyopencl")
    names = SimpleNamespace(name="Oclgrind")
    simulator = SimpleNamespace(platform=names, type=cl.device_type.GPU)
    both = [SimpleNamespace(get_devices=lambda d=d: [d]) for d in (simulator, chosen)]
    for platforms, expected in ((both, chosen), (both[:1], None)):
        monkeypatch.setattr(cl, "get_platforms", lambda found=platforms: found)
        assert drivers.find_driver.__wrapped__() is expected


def test_an_error_in_a_line_of_a_kernel_names_its_operation() -> None:
    kernel = explore(Tensor(np.ones(8, np.float32), device=NAME) + 1).kernels[-1]
    source = stages(kernel.ast, NAME, "source").source
    lines = source.text.split("\n")
    at = next(i for i, line in enumerate(lines) if line.lstrip().startswith("p0["))
    lines[at] = lines[at].replace("p1", "undefined_name")
    wrong = replace(source, text="\n".join(lines))
    with pytest.raises(CompileError, match="the code of ") as error:
        Device[NAME].load(wrong).bind([])
    assert error.value.line == at + 1 and lines[at].strip() in str(error.value)
