"""Kernels that somebody typed: whatever they say, nothing outside of a buffer is touched."""

from __future__ import annotations

import numpy as np
import pytest

from workbench import Kernel
from workbench.errors import ParseError, VerifyError
from workbench.ir.parse import parse

GATED = """p0 = PARAM.float32 {{0, {size}}}
g0 = RANGE.index {size} {{"g0", GLOBAL}}
v1 = CMPLT.bool 0:index, g0
v2 = INVALID.index
v3 = ADD.index g0, {shift}
v4 = WHERE.index v1, v3, v2
v5 = INDEX.float32 p0, v4
v6 = STORE v5, 1.0:float32
v7 = END v6, g0
SINK v7 {{KernelInfo({name}, ("g0",))}}"""


def test_a_gate_that_lets_an_index_out_is_refused() -> None:
    with pytest.raises(VerifyError, match="leaves its 4 elements"):
        Kernel.from_text(GATED.format(size=4, shift=99999999999, name='"k"'))


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_a_gate_too_large_to_try_gets_a_fence(device: str) -> None:
    size = 1 << 19
    kernel = Kernel.from_text(GATED.format(size=size, shift=7, name='"k"'))
    (found,) = kernel.run(device)
    assert np.array_equal(found[8:], np.ones(size - 8))


def test_a_gate_that_holds_is_left_alone() -> None:
    text = GATED.format(size=4, shift=-1, name='"k"')
    assert Kernel.from_text(text).ast is parse(text)


@pytest.mark.parametrize("name", ['""', "5"])
def test_a_kernel_needs_a_name(name: str) -> None:
    with pytest.raises((VerifyError, ParseError)):
        Kernel.from_text(GATED.format(size=4, shift=-1, name=name))


@pytest.mark.parametrize("text", [None, b"SINK", 7])
def test_text_is_text(text: object) -> None:
    with pytest.raises(ParseError, match="made from text"):
        Kernel.from_text(text)  # type: ignore[arg-type]


def test_an_empty_axis_and_a_far_slot_are_refused() -> None:
    text = GATED.format(size=4, shift=-1, name='"k"')
    for wrong in (
        text.replace("RANGE.index 4", "RANGE.index 0"),
        text.replace("{0, 4}", "{2000000, 4}"),
    ):
        with pytest.raises(VerifyError):
            Kernel.from_text(wrong)
