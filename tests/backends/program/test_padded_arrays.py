"""Arrays that PADTO makes longer than what fills them: languages set their end to 0."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.tools.compiler import needs_c
from workbench import Kernel, Opt, OptOps, Tensor, dtypes, explore
from workbench.backends.device import Device
from workbench.backends.program.analysis import analyse
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.pipeline import stages

ZEROS = {
    "C": r"\w+\[\d+\] __attribute__\(\(aligned\(64\)\)\) = \{0\};",
    "OPENCL": r"\w+\[\d+\] __attribute__\(\(aligned\(16\)\)\) = \{0\};",
    "CUDA:H100": r"__align__\(16\) float \w+\[\d+\] = \{\};",
    "HIP:MI300X": r"__align__\(16\) float \w+\[\d+\] = \{\};",
    "METAL:M3": r"alignas\(16\) float \w+\[\d+\] = \{\};",
    "WEBGPU": r"var \w+: array<f32, \d+>;",
    "LLVM": r"store \[\d+ x float\] zeroinitializer, ptr %\w+",
}


def written(device: str) -> Any:
    """Return a device, to be skipped where its code cannot be written here."""
    return pytest.param(device, marks=needs_c) if device == "C" else device


def staged(device: str, *opts: Opt) -> Kernel:
    x = Tensor.empty(6, 8, 5).cast(dtypes.int8).cast(dtypes.int32).sum(1)
    kernel = explore(x, device=device).kernels[-1]
    return kernel.apply(Opt(OptOps.STAGE, "g1", 1), *opts)


@pytest.mark.parametrize("device", [*map(written, ZEROS)])
def test_the_end_of_a_padded_row_is_zero(device: str) -> None:
    text = staged(device, Opt(OptOps.PADTO, "r0", 12)).code_for(device)
    assert len(re.findall(ZEROS[device], str(text))) == 1


@pytest.mark.parametrize("device", [written(name) for name in ZEROS if name != "WEBGPU"])
def test_a_row_that_is_filled_is_left_as_it_is(device: str) -> None:
    assert not re.findall(ZEROS[device], str(staged(device).code_for(device)))


@needs_c
@pytest.mark.parametrize("where", ["store", "if"])
def test_a_store_with_a_condition_may_leave_the_end_as_it_is(where: str) -> None:
    device = "C"
    target = Device[device].target
    linear = stages(staged(device).ast, device, "linear").linear
    assert not analyse(linear, target).padded
    at = next(i for i, n in enumerate(linear) if n.op is Ops.STORE)
    store = linear[at]
    assert store.place.param.op is Ops.DEFINE
    index = store.place.src[1]
    condition = index < index.like(3)
    gated = [store.replace(src=(*store.src, condition))]
    if where == "if":
        begin = UOp(Ops.IF, dtypes.void, (condition,))
        gated = [begin, store, UOp(Ops.ENDIF, dtypes.void, (begin,))]
    changed = (*linear[:at], *gated, *linear[at + 1 :])
    assert analyse(changed, target).padded == {store.place.param}
