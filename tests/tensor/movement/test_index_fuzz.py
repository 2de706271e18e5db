"""Random reads and writes through indexes against numpy."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support import LONG
from tests.tensor.movement.index_programs import KINDS, run
from tests.tools.compiler import needs_c

PROGRAMS = {"LLVM": (2_000, 6), "C": (500, 1), "PYTHON": (1_500, 15)}
"""Programs of a part on a device: in the long profile, and otherwise."""


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize(
    "device", [pytest.param(d, marks=needs_c if d == "C" else ()) for d in PROGRAMS]
)
@pytest.mark.parametrize("kind", KINDS)
def test_indexes_do_what_numpys_do(kind: str, device: str, part: int) -> None:
    long, short = PROGRAMS[device]
    number = long if LONG else short
    refusals: Counter[str] = Counter()
    for seed in range(part * number, (part + 1) * number):
        wrong = run(kind, seed, device, refusals)
        assert not wrong, wrong
    print(f"{number} {kind}s on {device}; refused: {dict(refusals)}")
    known = ("as numpy", "index .. is out of range")  # in a tensor whose values are known
    assert all(reason.startswith(known) for reason in refusals)
    assert refusals.total() <= max(2, number / 3)
