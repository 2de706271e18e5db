"""Arrays that PADTO makes longer than what fills them: languages set their end to 0."""

from __future__ import annotations

import re

import pytest

from workbench import Kernel, Opt, OptOps, Tensor, dtypes, explore

ZEROS = {
    "C": r"\w+\[\d+\] __attribute__\(\(aligned\(64\)\)\) = \{0\};",
    "OPENCL": r"\w+\[\d+\] __attribute__\(\(aligned\(16\)\)\) = \{0\};",
    "CUDA:H100": r"__align__\(16\) float \w+\[\d+\] = \{\};",
    "HIP:MI300X": r"__align__\(16\) float \w+\[\d+\] = \{\};",
    "METAL:M3": r"alignas\(16\) float \w+\[\d+\] = \{\};",
    "WEBGPU": r"var \w+: array<f32, \d+>;",
    "LLVM": r"store \[\d+ x float\] zeroinitializer, ptr %\w+",
}


def staged(device: str, *opts: Opt) -> Kernel:
    x = Tensor.empty(6, 8, 5).cast(dtypes.int8).cast(dtypes.int32).sum(1)
    kernel = explore(x, device=device).kernels[-1]
    return kernel.apply(Opt(OptOps.STAGE, "g1", 1), *opts)


@pytest.mark.parametrize("device", ZEROS)
def test_the_end_of_a_padded_row_is_zero(device: str) -> None:
    text = staged(device, Opt(OptOps.PADTO, "r0", 12)).code_for(device)
    assert len(re.findall(ZEROS[device], str(text))) == 1


@pytest.mark.parametrize("device", [name for name in ZEROS if name != "WEBGPU"])
def test_a_row_that_is_filled_is_left_as_it_is(device: str) -> None:
    assert not re.findall(ZEROS[device], str(staged(device).code_for(device)))
