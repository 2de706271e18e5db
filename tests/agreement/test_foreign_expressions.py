"""Random expressions of a generator that shares nothing with the others here, against numpy."""

import pytest

from tests.agreement.foreign_expressions import differences
from tests.support import count
from workbench import Device


@pytest.mark.parametrize("device", ["LLVM", "PYTHON", "C", "OPENCL"])
def test_random_expressions_have_the_values_that_numpy_computes(device: str) -> None:
    if not Device.available(device):
        pytest.skip(f"{device} is not here")
    n = count({"LLVM": 2000, "PYTHON": 1000}.get(device, 200), 40)
    wrong = differences(device, range(n))
    assert not wrong, "\n".join(wrong)
