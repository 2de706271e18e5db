"""Every method of Tensor with default opts on a device with work-groups: what torch computes, and
no finding."""

from __future__ import annotations

import pytest

from tests.emulator.device import NAME, Emulated
from tests.support import LONG
from tests.tensor.cases.case import Case, compare_values
from tests.tensor.cases.table import cases

ROWS = [*cases()][:: 1 if LONG else 20]


@pytest.mark.parametrize("case", [c for _, c in ROWS], ids=[key for key, _ in ROWS])
@pytest.mark.filterwarnings("ignore")  # numpy's, of torch's infinities
def test_a_method(case: Case, device: Emulated) -> None:
    device.traces.clear()
    compare_values(case, case.dtypes[0], NAME)
    assert [str(f) for trace in device.traces for f in trace.findings] == []
