"""Kernels that somebody typed: whatever they say, nothing outside of a buffer is touched."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import count
from tests.tools.kernels import EXAMPLES, random_form
from workbench import Kernel, Opt, OptOps, Tensor, explore
from workbench.base.errors import ParseError, VerifyError
from workbench.ir.text.parser import parse
from workbench.ir.text.printer import to_text

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
    (result,) = kernel.run(device)
    assert np.array_equal(result[8:], np.ones(size - 8))


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


HALF_FILLED = """p0 = PARAM.float32 {{0, 8}}
p1 = PARAM.float32 {{1, 8}}
g0 = RANGE.index 8 {{"g0", GLOBAL}}
a_f0 = RANGE.index {filled} {{"a_f0", FILL}}
v1 = INDEX.float32 p0, g0
v2 = INDEX.float32 p1, a_f0
v3 = LOAD.float32 v2
v4 = STAGE.float32 v3, a_f0 {{"As", (8,)}}
v5 = INDEX.float32 v4, {read}
v6 = LOAD.float32 v5
v7 = STORE v1, v6
v8 = END v7, g0
SINK v8 {{KernelInfo("k", ("a_f0", "g0"))}}"""


def test_what_is_read_and_never_written_is_refused() -> None:
    with pytest.raises(VerifyError, match="of the STAGE As is read and never written"):
        Kernel.from_text(HALF_FILLED.format(filled=4, read="g0"))
    assert Kernel.from_text(HALF_FILLED.format(filled=8, read="g0")).check().ok
    # half of it is enough where no more is read
    half = HALF_FILLED.format(filled=4, read="v0").replace(
        "v1 =", "v0 = IDIV.index g0, 2:index\nv1 ="
    )
    assert Kernel.from_text(half).check().ok


CHAIN = """p0 = PARAM.float32 {{0, 8}}
p1 = PARAM.float32 {{1, 4}}
g0 = RANGE.index 8 {{"g0", GLOBAL}}
a_f0 = RANGE.index 4 {{"a_f0", FILL}}
b_f0 = RANGE.index 8 {{"b_f0", FILL}}
v1 = INDEX.float32 p0, g0
v2 = INDEX.float32 p1, a_f0
v3 = LOAD.float32 v2
v4 = STAGE.float32 v3, a_f0 {{"As", (8,)}}
v5 = INDEX.float32 v4, b_f0
v6 = LOAD.float32 v5
v7 = STAGE.float32 v6, b_f0 {{"Bs", (8,)}}
v8 = INDEX.float32 v7, g0
v9 = LOAD.float32 v8
v10 = CMPLT.bool g0, {used}:index
v11 = WHERE.float32 v10, v9, 0.0:float32
v12 = STORE v1, v11
v13 = END v12, g0
SINK v13 {{KernelInfo("k", ("a_f0", "b_f0", "g0"))}}"""


def test_what_is_made_of_elements_that_nothing_wrote_may_be_read_and_not_used() -> None:
    assert Kernel.from_text(CHAIN.format(used=4)).check().ok
    with pytest.raises(VerifyError, match=r"STAGE Bs .*\n.*does not reach \(4,\)"):
        Kernel.from_text(CHAIN.format(used=5))


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_opts_make_can_be_pasted(name: str) -> None:
    """PADTO lets a tile be read beyond what its fill writes, and throws away what it finds."""
    for seed in range(count(300)):
        form = random_form(EXAMPLES[name], seed, 5)
        assert Kernel.from_text(to_text(form.graph)).ast is form.graph, form.opts


def test_a_kernel_that_reads_what_it_writes_is_refused() -> None:
    """Whether an element is read before it is written, each device's loops would decide."""
    text = HALF_FILLED.format(filled=8, read="g0").replace(
        "v2 = INDEX.float32 p1", "v2 = INDEX.float32 p0"
    )
    with pytest.raises(VerifyError, match="slot 0 is read and written"):
        Kernel.from_text(text)


def test_a_large_stage_is_not_believed() -> None:
    """Too many positions to try each: what is plainly filled is taken, anything else refused."""
    size = 1 << 20
    text = (
        HALF_FILLED.format(filled=size, read="g0")
        .replace("{0, 8}", f"{{0, {size}}}")
        .replace("{1, 8}", f"{{1, {size}}}")
        .replace("(8,)", f"({size},)")
        .replace("RANGE.index 8 ", f"RANGE.index {size} ")
    )
    assert Kernel.from_text(text).check().ok
    gaps = text.replace(f'RANGE.index {size} {{"a_f0', f'RANGE.index {size // 2} {{"a_f0')
    gaps = gaps.replace("v2 =", "c = MUL.index a_f0, 2:index\nv2 =")
    with pytest.raises(VerifyError, match="As may be read and never written"):
        Kernel.from_text(gaps.replace("v3, a_f0", "v3, c"))


def test_the_end_of_a_row_does_not_count_as_steps_of_its_sums() -> None:
    """Of a padded row divided by a sum of a group, each step of the row reads all of the sum: the
    two together are too many steps, and the sum does not depend on where the row ends."""
    (kernel,) = explore(Tensor.empty(2, 3001).softmax(), device="METAL:M3").kernels
    for axis, op in (("r0", "GROUP"), ("r1", "GROUP"), ("i0", "LOCAL")):
        kernel = kernel.apply(Opt(OptOps.PADTO, axis, 432), Opt(OptOps[op], axis, 432))
    text = kernel.to_text()
    assert Kernel.from_text(text).to_text() == text
    short = text.replace('x1 = RANGE.index 432 {"x1"', 'x1 = RANGE.index 431 {"x1"')
    assert short != text
    with pytest.raises(VerifyError, match="group1 is read and never written"):
        Kernel.from_text(short)
