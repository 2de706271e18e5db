"""What holds for each device with work-groups that runs kernels, through any driver."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.agreement.hunt import attempts, report
from tests.backends.gpu.fake_gpu import FakeGpu
from tests.support import count
from workbench import Kernel, Opt, OptOps, Tensor, TinyJit, explore
from workbench.backends.contract import require_code
from workbench.backends.device import Device
from workbench.backends.program.text import Source
from workbench.base.errors import CompileError, DeviceError
from workbench.base.installation import install_command
from workbench.ir.opt.heuristic.default_opts import heuristic
from workbench.pipeline import stages
from workbench.search.realization import tuned

Array = np.ndarray[Any, Any]


def check_random_programs(device: str, first_seed: int, refused: str = "") -> None:
    """Random programs with random opts compute what numpy does; those that are refused say
    `refused`, and are not many."""
    seeds = range(first_seed, first_seed + count(300))
    right = 0
    for attempt in attempts(seeds, device, "mixed"):
        words = attempt.refusal or attempt.verdict
        if refused and refused in words:
            continue
        assert not words, report(attempt)
        right += 1
    assert right >= len(seeds) // 3


def check_captured_function(device: str, gpu: FakeGpu) -> None:
    """Its launches are a graph, which is built for new addresses alone."""

    @TinyJit
    def step(x: Tensor) -> Tensor:
        return ((x * 2).contiguous().sum(axis=0, keepdim=True) + x).realize()

    before = gpu.built
    for seed in range(6):
        values = np.random.default_rng(seed).standard_normal((4, 8)).astype(np.float32)
        actual = step(Tensor(values, device=device).realize()).numpy()
        np.testing.assert_allclose(actual, (values * 2).sum(0) + values, rtol=1e-5)
    assert 1 <= gpu.built - before <= 4


def tiled_product(device: str, size: int = 32) -> tuple[Kernel, Array]:
    """Return a matrix product whose operands are staged in shared memory, and its value."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, size), dtype=np.float32) for _ in range(2))
    kernel = explore(Tensor(a, device=device) @ Tensor(b, device=device)).kernels[-1]
    for opt in (
        Opt(OptOps.LOCAL, "g0", 8),
        Opt(OptOps.LOCAL, "g1", 8),
        Opt(OptOps.SPLIT, "r0", 8),
        Opt(OptOps.ORDER, "r0", "l0"),
        Opt(OptOps.STAGE, "r0", 1),
        Opt(OptOps.STAGE, "r0", 2),
    ):
        kernel = kernel.apply(opt)
    return kernel, a @ b


def check_tiled_product(device: str, size: int = 32) -> None:
    """It is right."""
    kernel, expected = tiled_product(device, size)
    np.testing.assert_allclose(kernel.run()[0], expected, rtol=1e-4, atol=1e-5)


def check_default_opts_of_a_gpu(device: str) -> None:
    """Tiles in shared memory, and rows by work-groups, are right."""
    gpu = replace(Device[device].target, serial_items=False, cores=16)
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((96, 128), dtype=np.float32) for _ in range(2))
    x, y = Tensor(a, device=device), Tensor(b, device=device)
    stages_used = set()
    for result, right in (
        (x @ y.T, a @ b.T),
        ((x.T + 1).contiguous(), a.T + 1),
        ((x - x.max(1, keepdim=True)).sum(1), (a - a.max(1, keepdims=True)).sum(1)),
    ):
        (kernel,) = explore(result).kernels
        _, opts, steps = heuristic(kernel.original, gpu)
        stages_used |= {step.name for step in steps}
        (actual,) = kernel.apply(*opts).run()
        np.testing.assert_allclose(actual, right, rtol=1e-4, atol=1e-4)
    assert stages_used >= {"product-tile", "transposed-tile", "group-rows"}


def check_memory(device: str) -> None:
    """Parts of memory are read, written, and copied to another device."""
    values = np.arange(100, dtype=np.float32)
    x = Tensor(values, device=device).realize()
    np.testing.assert_array_equal(x[64:].numpy(), values[64:])
    np.testing.assert_array_equal(x.to("PYTHON").numpy(), values)
    x[32:64] = 0
    values[32:64] = 0
    np.testing.assert_array_equal(x.numpy(), values)


def check_time(device: str) -> None:
    """A kernel takes some time by the clock of the device."""
    x = Tensor(np.ones((8, 8), np.float32), device=device).realize()
    assert explore(x + 1).kernels[-1].time(budget_s=0.02).median_s > 0


def check_an_error_names_the_line_and_the_operation(device: str) -> None:
    """A line of a kernel that somebody made wrong."""
    kernel = explore(Tensor(np.ones(8, np.float32), device=device) + 1).kernels[-1]
    source = stages(kernel.ast, device, "source").source
    lines = source.text.split("\n")
    at = next(i for i, line in enumerate(lines) if line.lstrip().startswith("p0["))
    lines[at] = lines[at].replace("p1", "undefined_name")
    wrong = replace(source, text="\n".join(lines))
    for use in (require_code, lambda program: program.bind([])):
        with pytest.raises(CompileError) as error:
            use(Device[device].load(wrong))
        assert error.value.line == at + 1 and lines[at].strip() in str(error.value)
        assert "undefined_name" in error.value.because
        assert error.value.because.count("the code of ") == 1


def check_absence(device: str, extra: str) -> None:
    """Without a GPU it says how to get it; asked in a process of its own, where nothing plays
    one."""
    script = (
        "from workbench.backends.device import Device\n"
        f"if not Device[{device!r}].is_available: Device[{device!r}].target"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0 or install_command(extra) in run.stderr


def check_target(device: str, machine: str, memory_bytes: int) -> None:
    """Its Target is that of a machine of the table, with what the driver says of its memory."""
    here, table = Device[device].target, Device[f"{device}:{machine}"].target
    assert here.tensor_cores == table.tensor_cores and here.tensor_cores
    assert here.hardware and table.hardware
    assert here.hardware.memory_bytes == memory_bytes
    same = replace(here.hardware, memory_bytes=table.hardware.memory_bytes)
    assert same == table.hardware


def check_product_of_halves(device: str) -> None:
    """It is by tensor cores, right, and has its cost."""
    a = Tensor(np.ones((64, 64), np.float16), device=device).realize()
    kernel = explore(a.matmul(a, dtype="float32")).kernels[-1].optimized()
    assert any(opt.op is OptOps.TC for opt in kernel.applied_opts), kernel.applied_opts
    assert kernel.target.hardware is Device[device].target.hardware
    assert kernel.cost.predicted_s > 0
    (actual,) = kernel.run()
    np.testing.assert_array_equal(actual, np.full((64, 64), 64, np.float32))


def check_memory_that_runs_out(device: str) -> None:
    """It is said."""
    with pytest.raises(DeviceError, match="cannot allocate"):
        Device[device].memory.pool.acquire(1 << 33)


def error_of_a_fault(device: str, gpu: FakeGpu, word: str) -> DeviceError:
    """Return the error of a launch that the driver ends with a word; it names the kernel."""
    x = Tensor(np.ones(8, np.float32), device=device).realize()
    kernel = explore(x + 1).kernels[-1]
    launch = kernel.launch()
    gpu.fault = word
    with pytest.raises(DeviceError) as error:
        launch()
    assert f"the GPU stopped in {kernel.name}" in str(error.value)
    assert word in error.value.because
    return error.value


def check_a_fault_takes_the_gpu(device: str, gpu: FakeGpu, word: str) -> None:
    """A worker that has had one ends, since its process cannot use the GPU any more."""
    assert "in another process" in error_of_a_fault(device, gpu, word).hint
    assert Device[device].is_lost


def default_source(tensor: Tensor, device: str) -> Source:
    """Return the text of a tensor's last kernel, with the default opts of `device`."""
    kernel = tuned(explore(tensor, device=device).kernels[-1].ast, device)
    return stages(kernel, device, "source").source
