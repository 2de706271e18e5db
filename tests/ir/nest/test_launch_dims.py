"""Axes of a launch get dimensions: neighbours fold, and axes that never meet share one."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest

from workbench import Kernel, Opt, OptOps, Tensor, explore
from workbench.backends.gpu.work_group_device import common_gpu
from workbench.base.errors import CompileError
from workbench.ir.nest.loops import Dims, grid_dims, group_shape, item_dims
from workbench.ir.opt.apply import apply_opt, why_not

MANY = 1 << 16


@pytest.mark.parametrize(
    "extents, limits, dims",
    [
        ((), (MANY,), []),
        ((5,), (MANY,) * 3, [[0]]),
        ((5, 6), (MANY,) * 3, [[1], [0]]),
        ((5, 6, 7), (MANY,) * 3, [[2], [1], [0]]),
        ((5, 6, 7, 8), (MANY,) * 3, [[3], [2], [0, 1]]),
        ((5, 6, 7, 8, 9), (MANY, MANY), [[4], [0, 1, 2, 3]]),
        ((100, 3, 8), (1000, 10), None),
        ((10, 3, 8), (1000, 10), [[1, 2], [0]]),
        ((70_000, 8), (1 << 31, 65_535), [[0, 1]]),
        ((70_000,), (65_535, 65_535), None),
        ((5,), (), None),
    ],
)
def test_loops_of_a_grid(
    extents: tuple[int, ...], limits: tuple[int, ...], dims: Dims | None
) -> None:
    assert grid_dims(extents, limits) == dims


def test_axes_that_meet_are_apart() -> None:
    rng = random.Random(0)
    for _ in range(200):
        nests = [rng.sample(range(6), rng.randint(1, 4)) for _ in range(4)]
        chosen = item_dims(nests)
        for nest in nests:
            for a, b in combinations(nest, 2):
                assert chosen[a] != chosen[b], (nests, chosen)
        longest = max(nests, key=len)
        assert max(chosen.values()) + 1 >= len(longest)
        assert sorted(set(chosen.values())) == [*range(max(chosen.values()) + 1)]


def test_the_innermost_axis_is_dimension_0() -> None:
    assert item_dims([[0, 1], [2]]) == {0: 1, 1: 0, 2: 0}


def kernel_of(tensor: Tensor, *opts: Opt) -> Kernel:
    kernel = explore(tensor).kernels[-1]
    for opt in opts:
        kernel = kernel.apply(opt)
    return kernel


def test_axes_in_loops_of_their_own_are_the_same_work_items() -> None:
    softmax = Tensor(np.ones((3, 64), np.float32)).realize().softmax(1)
    opts = (
        Opt(OptOps.LOCAL, "g0", 3),
        Opt(OptOps.GROUP, "r0", 32),
        Opt(OptOps.GROUP, "r1", 64),
        Opt(OptOps.LOCAL, "i0", 32),
    )
    kernel, gpu = kernel_of(softmax).ast, common_gpu("GPU")
    for opt in opts:
        kernel, _ = apply_opt(kernel, opt, gpu)
    assert group_shape(kernel) == (64, 3)


def test_a_group_has_three_dimensions() -> None:
    x = Tensor(np.ones((4, 4, 4, 8), np.float32)).realize()
    tensor = x.permute(2, 1, 0, 3).sum(3)
    opts = [Opt(OptOps.LOCAL, f"g{axis}", 2) for axis in range(3)]
    kernel, gpu = kernel_of(tensor).ast, common_gpu("GPU")
    for opt in opts:
        kernel, _ = apply_opt(kernel, opt, gpu)
    assert group_shape(kernel) == (2, 2, 2)
    refusal = why_not(kernel, Opt(OptOps.GROUP, "r0", 4), gpu)
    assert refusal is not None and "4 dimensions, and 3 fit" in refusal.because


def test_a_dimension_of_a_group_has_a_limit_of_its_own() -> None:
    """A group of CUDA has at most 64 work-items along z (CUDA C++ Programming Guide, "Technical
    Specifications per Compute Capability")."""
    x = Tensor(np.ones((128, 2, 2), np.float32)).realize()
    kernel = kernel_of(x + Tensor(np.ones((128, 2), np.float32)).realize().reshape(128, 1, 2))
    there = kernel.on("CUDA:H100").kernel
    for size, is_legal in ((64, True), (128, False)):
        group = there.apply(Opt(OptOps.LOCAL, "g0", size), Opt(OptOps.LOCAL, "g1", 2))
        reason = group.why_not(Opt(OptOps.LOCAL, "g2", 2))
        assert (reason is None) == is_legal, reason
    words = "a work-group has 128 work-items along z, and 64 fit on CUDA:H100"
    assert reason is not None and words in reason


def test_a_group_too_large_is_written_for_no_device() -> None:
    """Opts of a processor are not asked of the device whose code is read."""
    kernel = kernel_of(Tensor(np.ones(8192, np.float32)).realize() + 1)
    large = kernel.apply(Opt(OptOps.LOCAL, "g0", 4096))
    with pytest.raises(CompileError, match="4,096 work-items, and 1,024 fit on CUDA:H100"):
        large.code_for("CUDA:H100")
