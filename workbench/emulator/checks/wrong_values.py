"""Wrong outputs of a run: the first wrong element of each, and its last writer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.emulator.cells import NOBODY
from workbench.emulator.machine import Machine
from workbench.ir.meaning import closeness

Array = np.ndarray[Any, Any]


def find_wrong_values(machine: Machine, expected: Mapping[int, Array]) -> None:
    """Add a finding for each slot whose array is not `expected`, but for rounding."""
    for slot, right in expected.items():
        actual = machine.memory.params[slot].view(right.dtype)
        errors = closeness.errors(actual, right)
        wrong = np.flatnonzero(errors > closeness.limit_of(actual, right))
        if wrong.size:
            element = int(wrong[0])
            values = actual[element], right[element]
            writes = machine.memory.writes(slot)
            number = NOBODY if writes is None else int(writes.items[element])
            position = 0 if writes is None else int(writes.positions[element])
            machine.findings.wrong(f"p{slot}", element, number, position, values)
