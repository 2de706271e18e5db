"""One value of a program has one rounding, in each kernel that computes it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.agreement.one_rounding import case, failures
from tests.support import count
from workbench import Context, Tensor
from workbench.backends.device import Device

SEEDS = {"LLVM": 600, "C": 150, "PYTHON": 300, "OPENCL": 100, "WASM": 150}
DEVICES = [name for name in SEEDS if Device.available(name)]


@pytest.mark.parametrize("device", DEVICES)
def test_what_must_hold_of_one_value_holds(device: str) -> None:
    """A report names the seed, and has a script that fails."""
    reports = [r for n in range(count(SEEDS[device], 30)) for r in failures(case(n, device))[1]]
    assert not reports, "\n\n".join(reports)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_product_is_rounded_before_it_is_read(dtype: str, device: str) -> None:
    rng = np.random.default_rng(4)
    a, b, c = rng.standard_normal((3, 1000)).astype(dtype)
    with Context(DEV=device):
        x, y, z = Tensor(a), Tensor(b), Tensor(c)
        product = x * y
        np.testing.assert_array_equal((product + z).numpy(), a * b + c)
        np.testing.assert_array_equal((z - product).numpy(), c - a * b)
        assert (product - product.contiguous()).abs().max().item() == 0.0
        assert (product - product.max()).max().item() == 0.0
        fraction = (product - product.floor()).numpy()
        assert (fraction >= 0).all() and (fraction <= 1).all()


@pytest.mark.parametrize("device", DEVICES)
def test_a_product_of_matrices_is_added_up_in_one_order(device: str) -> None:
    a, b = (np.random.RandomState(n).rand(16, 16).astype("float32") for n in (1, 10))
    with Context(DEV=device):
        x = Tensor(a) @ Tensor(b)
        assert (x.pad(((1, 1), (1, 1))).max() - x).numpy().min() == 0
