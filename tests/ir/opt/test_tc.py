"""TC: which kernels it is legal on, which axes and tiles it offers, what it is refused with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.ir.opt.support import sizes
from tests.tools.kernels import LLVM
from tests.tools.tensor_cores import BY_ARCH, gpu_with
from workbench import Tensor, dtypes, explore
from workbench.backends.device import Device
from workbench.base.errors import KernelOptError
from workbench.base.target import Target
from workbench.ir.meaning.interpret import interpret_kernel
from workbench.ir.node.ops import AxisType
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_opt, legality, why_not
from workbench.ir.opt.opt import Opt, OptOps, axes

TC, UPCAST, LOCAL = OptOps.TC, OptOps.UPCAST, OptOps.LOCAL
AMPERE = gpu_with(*BY_ARCH["sm_80"])
CDNA = gpu_with(*BY_ARCH["gfx942"])
F16 = dtypes.float16


def matmul(m: int, n: int, k: int, dtype: Any = F16, out: Any = None) -> UOp:
    a, b = Tensor.empty(m, k, dtype=dtype), Tensor.empty(k, n, dtype=dtype)
    return of(a.cast(out) @ b.cast(out) if out else a @ b)


def of(tensor: Tensor) -> UOp:
    return explore(tensor).kernels[-1].ast


def refused(graph: UOp, opt: Opt, target: Target = AMPERE) -> str:
    refusal = why_not(graph, opt, target)
    assert refusal is not None and refusal.hint, opt
    with pytest.raises(KernelOptError):
        apply_opt(graph, opt, target)
    return refusal.because


def tiles(graph: UOp, target: Target) -> list[str]:
    legal, _ = legality(graph, target)
    return [str(opt) for opt in legal if opt.op is TC]


def test_a_tile_is_three_axes() -> None:
    graph, named = apply_opt(matmul(64, 32, 48), Opt(TC, 0, 0), AMPERE)
    assert str(named) == 'TC("g0 g1 r0", "16x8x16")'
    assert sizes(graph) == {
        "g0": 4, "g1": 4, "r0": 3, "w0": 16, "w1": 8, "w2": 16,
    }  # fmt: skip
    kinds = {a.name: a.kind for a in axes(graph)}
    assert {kinds[n] for n in ("w0", "w1", "w2")} == {AxisType.WARP}
    again, _ = apply_opt(matmul(64, 32, 48), named, AMPERE)
    assert again is graph, "the opt that is recorded says all"


def test_the_kernel_means_the_same_on_any_device() -> None:
    dice = np.random.default_rng(1)
    a, b = (dice.uniform(-1.5, 1.5, s).astype(np.float16) for s in ((34, 21), (21, 17)))
    plain = matmul(34, 17, 21)
    graph, _ = apply_opt(plain, Opt(TC, 0, 2), AMPERE)
    buffers = [np.zeros(34 * 17, np.float16), a.reshape(-1), b.reshape(-1)]
    first, second = (interpret_kernel(g, buffers) for g in (plain, graph))
    np.testing.assert_allclose(first, second, 1e-3, 3e-2)


@pytest.mark.parametrize(
    ("dtype", "out", "tile"),
    [
        (dtypes.float16, None, "16x8x16"), (dtypes.bfloat16, None, "16x8x16"),
        (dtypes.int8, dtypes.int32, "16x8x32"), (dtypes.float64, None, "8x8x4"),
    ],
    ids=str,
)  # fmt: skip
def test_dtypes(dtype: Any, out: Any, tile: str) -> None:
    assert tiles(matmul(64, 64, 64, dtype, out), AMPERE) == [f'TC("g0 g1 r0", "{tile}")']


def test_a_tile_that_rounds_is_chosen_by_name_alone() -> None:
    graph = matmul(64, 64, 64, dtypes.float32)
    assert tiles(graph, AMPERE) == []
    assert "float32 x float32" in refused(graph, Opt(TC, 0, 2))
    refusal = why_not(graph, Opt(TC, 0, 1), AMPERE)
    assert refusal is not None and "16x8x8 float32 as tf32" in refusal.hint
    assert why_not(graph, Opt(TC, 0, "16x8x8"), AMPERE) is None


def test_a_tile_by_its_sizes() -> None:
    graph = matmul(64, 64, 64)
    assert tiles(graph, CDNA) == ['TC("g0 g1 r0", "16x16x16")']
    large, _ = apply_opt(graph, Opt(TC, "g0 g1 r0", "32x32x8"), CDNA)
    assert sizes(large)["w0"] == 32
    assert "'16x8x4' is neither a level" in refused(graph, Opt(TC, 0, "16x8x4"))
    assert "8x8x4 float16" in refused(graph, Opt(TC, 0, "8x8x4"))


@pytest.mark.parametrize("grown", range(3))
def test_padding_is_of_level_2(grown: int) -> None:
    """One more than a tile: padded at level 2, refused below. A quarter of one: refused always."""
    one = gpu_with(BY_ARCH["sm_80"][0])
    shape = [16, 8, 16]
    shape[grown] += 1
    graph = matmul(*shape)
    for level in (0, 1):
        assert "does not divide" in refused(graph, Opt(TC, 0, level), one)
    assert why_not(graph, Opt(TC, 0, 2), one) is None
    shape = [16, 8, 16]
    shape[grown] //= 4
    for level in (0, 1, 2):
        assert "4 times or more" in refused(matmul(*shape), Opt(TC, 0, level), one)


def test_nine_choices_of_a_convolution() -> None:
    x, w = (Tensor.empty(16, 16, 18, 18, dtype=F16), Tensor.empty(16, 16, 3, 3, dtype=F16))
    graph = of(x.conv2d(w))
    names = [f"{m} g1 {k}" for m in ("g0", "g2", "g3") for k in ("r0", "r1", "r2")]
    refusals = [why_not(graph, Opt(TC, i, 2), AMPERE) for i in range(9)]
    assert refusals == [None] * 9
    assert [apply_opt(graph, Opt(TC, i, 2), AMPERE)[1].axis for i in range(9)] == names
    assert len(tiles(graph, AMPERE)) == 9
    assert "several axes" in refused(graph, Opt(TC, 0, 0))


def test_rows_and_columns_may_be_exchanged() -> None:
    graph, _ = apply_opt(matmul(64, 32, 48), Opt(TC, "g1 g0 r0", 0), AMPERE)
    assert sizes(graph)["g1"] == 32 // 16 and sizes(graph)["g0"] == 64 // 8


def test_what_is_not_a_product() -> None:
    a, b = Tensor.empty(64, 64, dtype=F16), Tensor.empty(64, 64, dtype=F16)
    f32 = dtypes.float32
    for graph in (
        of(a.cast(f32).sum(1)),
        of((a.cast(f32) * b.cast(f32)).sum(1)),
        of(a.cast(f32).max(1)),
        of(a @ Tensor.empty(64, dtype=F16)),
        matmul(64, 64, 64, dtypes.int8),  # products of 8 bits wrap
    ):
        assert "no sum adds products of two loads" in refused(graph, Opt(TC, 0, 2))
    floats = Tensor.empty(64, 64)
    for op, graph in (
        ("MAX", of(a.relu() @ b)),
        ("ADD", of(b @ (a + 1))),
        ("CAST", of(floats.half() @ b)),
    ):
        reason = refused(graph, Opt(TC, 0, 2))
        assert f"the kernel computes an operand ({op})" in reason
    graph = matmul(64, 32, 48)
    for names in ("g0 r0 g1", "g0 g1", "g0 g1 r1", "g0 g0 r0", 2, None):
        assert "not rows, columns and steps" in refused(graph, Opt(TC, names, 2))
    for level in (3, -1, True, 1.0, "x"):
        assert "neither a level" in refused(graph, Opt(TC, 0, level))  # type: ignore[arg-type]
    assert "takes a place and a level" in refused(graph, Opt(TC, 0))


def test_other_opts_with_it() -> None:
    graph = matmul(64, 64, 96)
    tiled, _ = apply_opt(graph, Opt(TC, 0, 2), AMPERE)
    for name in ("w0", "w1", "w2"):
        for op in (UPCAST, LOCAL, OptOps.UNROLL, OptOps.SPLIT, OptOps.PADTO):
            assert "WARP" in refused(tiled, Opt(op, name, 2))
    for op in (OptOps.GROUP, OptOps.GROUPTOP):
        assert "tensor core" in refused(tiled, Opt(op, "r0", 2))
        before, _ = apply_opt(graph, Opt(op, "r0", 2), AMPERE)
        assert "shares out the sum" in refused(before, Opt(TC, 0, 2))
    assert "already" in refused(tiled, Opt(TC, 0, 2))
    assert "work-items" in refused(tiled, Opt(OptOps.NOLOCALS))
    without, _ = apply_opt(graph, Opt(OptOps.NOLOCALS), AMPERE)
    assert "NOLOCALS" in refused(without, Opt(TC, 0, 2))
    split, _ = apply_opt(graph, Opt(OptOps.STAGE, "g0", 1), AMPERE)
    assert why_not(split, Opt(TC, 0, 2), AMPERE) is not None


def test_the_work_items_of_its_warps_count() -> None:
    tiled, _ = apply_opt(matmul(4096, 64, 64), Opt(TC, 0, 2), AMPERE)
    assert why_not(tiled, Opt(LOCAL, "g0", 32), AMPERE) is None
    small = replace(AMPERE, group_items=512)
    assert "1,024 work-items" in refused(tiled, Opt(LOCAL, "g0", 32), small)
    few = replace(AMPERE, max_lanes=64)  # a lane has 4 elements of each tile
    assert why_not(tiled, Opt(UPCAST, "g0", 16), few) is None
    assert "128 lanes" in refused(tiled, Opt(UPCAST, "g0", 32), few)


def test_a_processor_may_have_none() -> None:
    """What it lacks is said."""
    plain = replace(LLVM, tensor_cores=(), no_tensor_cores="it lacks AMX")
    for level in (0, 1, 2):
        words = refused(matmul(64, 64, 64), Opt(TC, 0, level), plain)
        assert words.startswith("there are no tensor cores on LLVM: it lacks AMX")


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        ("LLVM:Raspberry Pi 5", "its processor does not have BF16 (bfmmla)"),
        ("LLVM:Banana Pi F3", "no compiler here has a product of matrices for riscv64"),
        ("C", "products of tiles are intrinsics of single processors, not C"),
    ],
)
def test_a_machine_says_why_it_has_none(machine: str, words: str) -> None:
    target = Device[machine].target
    assert words in refused(matmul(64, 64, 64), Opt(TC, 0, 2), target)


def test_this_processor_has_some_or_says_what_it_lacks() -> None:
    target = Device["LLVM"].target
    assert bool(target.tensor_cores) != bool(target.no_tensor_cores)
