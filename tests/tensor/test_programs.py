"""Random programs of assignments, views, reads and TinyJits against numpy."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support import LONG, count
from tests.tensor.memory_programs import MemoryProgram
from tests.tensor.programs import run
from tests.tools.devices import device_params

KNOWN = {
    "cannot capture fn": "its result is known, or a view of what is in memory; or an argument is "
    "also a tensor that it reaches by another name, and it is written"
}
"""Refusals that are right, by their first line."""


@pytest.mark.parametrize("device", ["LLVM", "C", "PYTHON"])
@pytest.mark.parametrize("part", range(4))
def test_programs_agree_with_numpy(device: str, part: int) -> None:
    long, short = (4_000, 8) if device == "LLVM" else (500, 2)
    number = long if LONG else short
    refusals: Counter[str] = Counter()
    for seed in range(part * number, (part + 1) * number):
        wrong = run(seed, device, refusals)
        assert not wrong, wrong
    print(f"{number} programs on {device}; refused: {dict(refusals)}")
    assert set(refusals) <= set(KNOWN) and refusals.total() <= max(3, number / 3)


@pytest.mark.parametrize("device", device_params("LLVM", "C", "PYTHON", "OPENCL"))
def test_memory_with_several_names_agrees_with_numpy(device: str) -> None:
    """Copies, views, bits, writes, moves and shared memory: no value is wrong, none unreadable."""
    for seed in range(count(2_000 if device in ("LLVM", "PYTHON") else 300, 100)):
        wrong = run(seed, device, kind=MemoryProgram)
        assert not wrong, wrong
