"""Floats of 16 bits in CUDA C++ compile with NVIDIA's headers and without, to conversions that are
instructions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.backends.cuda.test_sass import needs_nvrtc
from workbench import Tensor, dtypes, explore
from workbench.backends.cuda import nvrtc
from workbench.backends.cuda.sass import compile_to_sass
from workbench.base.dtypes import DType
from workbench.pipeline import stages
from workbench.search.realization import tuned

pytestmark = needs_nvrtc
BOTH = (dtypes.float16, dtypes.bfloat16)
NAME = "CUDA:H100"
CASES: dict[str, Callable[[Tensor], Tensor]] = {
    "elementwise": lambda x: (x * 2 + x).relu(),
    "softmax": lambda x: x.softmax(1),
    "transposed": lambda x: x.T.contiguous(),
    "bits": lambda x: x.bitcast(dtypes.int16),
    "of bits": lambda x: (x.bitcast(dtypes.uint16) + 1).bitcast(x.dtype) * 2,
    "matmul": lambda x: x @ x.T,
}


def text_of(name: str, dtype: DType) -> str:
    kernel = explore(CASES[name](Tensor.empty(64, 256, dtype=dtype)), device=NAME)
    return stages(tuned(kernel.kernels[-1].ast, NAME), NAME, "source").source.text


@pytest.mark.parametrize("has_headers", [True, False], ids=["headers", "no headers"])
@pytest.mark.parametrize("dtype", BOTH, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_it_compiles(
    name: str, dtype: DType, has_headers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = nvrtc.toolkit()
    assert tools is not None
    headers = tools.headers if has_headers else ""
    monkeypatch.setattr(nvrtc, "toolkit", lambda: tools._replace(headers=headers))
    text = text_of(name, dtype)
    code = compile_to_sass(text, "sm_80" if "mma" in text else "sm_75")
    assert any(" ST" in line.text for line in code.lines), code.text


@pytest.mark.parametrize("dtype", BOTH, ids=str)
def test_a_conversion_is_an_instruction(dtype: DType) -> None:
    code = compile_to_sass(text_of("softmax", dtype), "sm_90")
    word = "F2FP.F16.F32" if dtype is dtypes.float16 else "F2FP.BF16.F32"
    assert any(word in line.text for line in code.lines), code.text
    short = compile_to_sass(text_of("elementwise", dtype), "sm_90")
    assert len(short.lines) <= 24, short.text
