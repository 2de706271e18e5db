"""Random programs give with TinyJit what they give without, on three devices."""

from __future__ import annotations

from random import Random

import pytest

from tests.support import count
from tests.tensor.jit.random_programs import outcome, program, program_of_views
from workbench import Device

FOUND = (
    (1214, "LLVM"),
    (9009, "OPENCL"),
    (101_397, "PYTHON"),
    (109_706, "LLVM"),
    (119_928, "LLVM"),
)
"""Programs that were wrong: two places with one tensor, constants on another device, results
that are constants, places with one tensor that is gone."""


@pytest.mark.parametrize(("device", "programs"), [("LLVM", 1600), ("PYTHON", 300), ("OPENCL", 100)])
def test_names_that_are_bound_anew(device: str, programs: int) -> None:
    if not Device.available(device):
        pytest.skip(f"needs {device}")
    seeds = [seed for seed, name in FOUND if name == device]
    outcomes = []
    for seed in (*seeds, *range(100_000, 100_000 + count(programs, 80))):
        text = program(Random(seed))
        outcomes.append(result := outcome(text, device))
        assert result in ("right", "refused"), f"seed {seed}\n{text}\n{result}"
    assert outcomes.count("right") > 0.8 * len(outcomes)


@pytest.mark.parametrize(("device", "programs"), [("LLVM", 800), ("PYTHON", 200)])
def test_names_that_a_function_binds_to_views(device: str, programs: int) -> None:
    outcomes = []
    for seed in range(count(programs, 80)):
        text = program_of_views(Random(seed))
        outcomes.append(result := outcome(text, device))
        assert result in ("right", "refused"), f"seed {seed}\n{text}\n{result}"
    assert outcomes.count("right") > 0.3 * len(outcomes)
