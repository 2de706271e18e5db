"""What CUDA C++ is written for, an instruction that a GPU has, is in the text and in the SASS."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.cuda.test_sass import needs_nvrtc
from workbench import Tensor, dtypes, explore
from workbench.ir.opt.opt import Opt, OptOps
from workbench.kernel.kernel import Kernel

H100 = "CUDA:H100"


def greatest() -> Kernel:
    return explore(Tensor.empty(64, 32).max(1), device=H100).kernels[0]


def bytes_added() -> Kernel:
    """Sixteen sums of bytes for each work-item: a vector that has no type."""
    x, y = (Tensor.empty(64, 32, dtype=dtypes.int8) for _ in range(2))
    return explore(x + y, device=H100).kernels[0].apply(Opt(OptOps.UPCAST, "g0", 16))


def test_the_greater_of_two_floats_is_one_instruction() -> None:
    text = str(greatest().code_for(H100))
    assert "max.NaN.f32" in text and "__CUDA_ARCH__ >= 800" in text


@pytest.mark.parametrize("values", [[1.0, 2.0], [np.nan, 1.0], [1.0, np.nan], [-np.inf, -1.0]])
def test_it_is_numpys(values: list[float]) -> None:
    x = Tensor(np.array(values, np.float32), device=H100)
    np.testing.assert_array_equal(x.max().numpy(), np.max(np.array(values, np.float32)))


def test_a_vector_without_a_type_is_stored_in_parts() -> None:
    text = str(bytes_added().code_for(H100))
    assert "char16" not in text and text.count("*(char4 *)") >= 4


@needs_nvrtc
def test_nvrtc_compiles_both() -> None:
    for kernel, word in ((greatest(), "FMNMX.NAN"), (bytes_added(), "STG")):
        code = kernel.compile(H100).machine_code
        assert code is not None
        assert any(word in line.text for line in code.lines)
