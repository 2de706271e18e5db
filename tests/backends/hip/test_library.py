"""What the HIP device uses of hip-python is there, as far as that shows without a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from tests.backends.gpu.fake_gpu import FakeGpu
from tests.backends.hip.fake import MI300X, fakes
from workbench.base.installation import install_command

package: Any = pytest.importorskip("hip", reason=install_command("hip"))


def test_calls_fit() -> None:
    """The fake driver has the parameters of the real one."""
    assert fakes(FakeGpu())["hip"].hip.hipMalloc(8) == (0, 1 << 40)


def test_the_properties_have_these_names() -> None:
    real = __import__("hip", fromlist=["hip"]).hip.hipDeviceProp_t()
    for name, value in vars(MI300X).items():
        kinds = (bytes, str) if isinstance(value, bytes) else type(value)
        assert isinstance(getattr(real, name), kinds), name
