"""What ran is counted, and said where somebody listens."""

from __future__ import annotations

import logging
import subprocess
import sys

import numpy as np
import pytest

from workbench import Context, GlobalCounters, Tensor


def run() -> None:
    a = Tensor(np.ones((16, 24), np.float32))
    ((a @ a.transpose(0, 1)) + 1).realize()


def test_kernels_operations_bytes_and_time_add_up() -> None:
    GlobalCounters.reset()
    run()
    run()
    assert GlobalCounters.kernel_count == 2
    assert GlobalCounters.global_ops == 2 * (2 * 16 * 16 * 24 + 16 * 16)
    assert GlobalCounters.global_mem == 2 * 4 * (16 * 24 + 16 * 16)
    assert GlobalCounters.time_sum_s > 0
    GlobalCounters.reset()
    assert (GlobalCounters.kernel_count, GlobalCounters.time_sum_s) == (0, 0)


def test_copies_and_constants_are_no_kernels() -> None:
    GlobalCounters.reset()
    Tensor(np.ones(5, np.float32)).realize()
    Tensor.full((4, 4), 2.0).sum().realize()
    assert GlobalCounters.kernel_count == 0


def test_a_line_per_kernel_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="workbench"):
        run()
    (line,) = [r.getMessage() for r in caplog.records if r.name == "workbench"]
    assert "r_16_16_24" in line and "µs" in line and "GFLOP/s" in line and "GB/s" in line


@pytest.mark.parametrize("device", ["PYTHON", "CUDA:H100"])
def test_an_emulators_clock_says_so(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    x = Tensor(np.ones((4, 8), np.float32), device=device)
    with Context(DEBUG=2):
        x.sum(1).tolist()
    (line,) = (s for s in capsys.readouterr().err.splitlines() if "r_4_8" in s)
    assert line.endswith("EMULATOR") and "GFLOP/s" not in line


def test_debug_shows_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    run()
    assert capsys.readouterr().err == ""
    with Context(DEBUG=2):
        run()
    schedule, line = capsys.readouterr().err.splitlines()
    assert schedule.startswith("schedule: 1 kernel, 1 copy")  # level 1 says that
    assert "r_16_16_24" in line and "u0=8" in line


def test_a_wrong_environment_is_said_in_words() -> None:
    code = "import workbench; workbench.Tensor"
    process = subprocess.run(
        [sys.executable, "-c", code], env={"DEBUG": "lots"}, capture_output=True, text=True
    )
    assert "DEBUG='lots'" in process.stderr and "not a number" in process.stderr
