"""Random networks, forward, backward and in training, held against PyTorch.

More of them, with their seeds: `python -m tests.models.torch.random_networks LLVM 0 1000`.
"""

import pytest

from tests.models.torch.random_networks import tried
from tests.support import count
from workbench import Device

AT_ONCE = 5
"""Networks of a test; each takes a second of a processor."""
BLOCKS = [
    (device, first)
    for device, n_long in (("LLVM", 5000), ("C", 500))
    for first in range(0, count(n_long, n_long // AT_ONCE // 2), AT_ONCE)
]


@pytest.mark.parametrize(("device", "first"), BLOCKS)
def test_random_networks_compute_what_torch_computes(device: str, first: int) -> None:
    if not Device.available(device):
        pytest.skip(f"{device} is not here")
    wrong, _ = tried(device, range(first, first + AT_ONCE))
    assert not wrong, "\n".join(map(str, wrong))
