"""What joins or pads tensors, as pieces side by side: no load has a mask."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from workbench import Context, Tensor, explore
from workbench.base.target import Target
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.heuristic.default_opts import heuristic
from workbench.ir.opt.heuristic.register_tile import borders
from workbench.ir.opt.opt import Opt, OptOps

AVX2 = Target("LLVM", vector_bytes=32, vector_registers=16)


def tensor(*shape: int, seed: int = 0) -> Tensor:
    numbers = np.random.default_rng(seed).standard_normal(shape)
    return Tensor(numbers.astype(np.float32)).realize()


def joined(shape: tuple[int, ...], count: int, dim: int) -> Tensor:
    one, *rest = (tensor(*shape, seed=seed) for seed in range(count))
    return one.cat(*rest, dim=dim)


def turned() -> Tensor:
    x = tensor(6, 64)
    return (-x[:, 32:]).cat(x[:, :32], dim=1)


MADE: dict[str, tuple[Callable[[], Tensor], tuple[Opt, ...]]] = {
    "8 pieces of 100": (
        lambda: joined((6, 100), 8, 1),
        (Opt(OptOps.SPLIT, "g1", 100), Opt(OptOps.UPCAST, "g1", 8), Opt(OptOps.UPCAST, "g2", 4)),
    ),
    "channels": (
        lambda: joined((2, 6, 64), 2, 1),
        (Opt(OptOps.SPLIT, "g1", 6), Opt(OptOps.UPCAST, "g1", 2)),
    ),
    "100 and 200": (
        lambda: tensor(6, 100).cat(tensor(6, 200), dim=1),
        (Opt(OptOps.SPLIT, "g1", 100), Opt(OptOps.UPCAST, "g1", 3), Opt(OptOps.UPCAST, "g2", 4)),
    ),
    "stacked": (
        lambda: tensor(6, 32).stack(tensor(6, 32, seed=1), dim=1),
        (Opt(OptOps.UPCAST, "g1", 2),),
    ),
    "padded": (
        lambda: tensor(6, 64).pad(((0, 0), (32, 32))),
        (Opt(OptOps.SPLIT, "g1", 32), Opt(OptOps.UPCAST, "g1", 4), Opt(OptOps.UPCAST, "g2", 16)),
    ),
    "halves turned": (
        turned,
        (Opt(OptOps.SPLIT, "g1", 32), Opt(OptOps.UPCAST, "g1", 2), Opt(OptOps.UPCAST, "g2", 16)),
    ),
    "63 and 64 have no pieces": (lambda: tensor(6, 63).cat(tensor(6, 64), dim=1), ()),
    "17 are too many": (lambda: joined((6, 64), 17, 1), ()),
}


@pytest.mark.parametrize("name", MADE)
def test_pieces_of_what_changes_along_an_axis(name: str) -> None:
    build, expected = MADE[name]
    kernels = [i.kernel for i in build().schedule() if i.kernel is not None]
    assert len(kernels) == 1  # conditions on axes are not stored
    steps = {step.name: step.opts for step in heuristic(kernels[0], AVX2)[2]}
    assert steps.get("pieces", ()) == expected
    with Context(DEV="PYTHON"):
        reference = build().numpy()
    np.testing.assert_array_equal(build().numpy(), reference)


@pytest.mark.parametrize("name", [name for name in MADE if MADE[name][1]])
def test_pieces_are_computed_without_conditions(name: str) -> None:
    (kernel,) = explore(MADE[name][0]()).kernels
    for opt in heuristic(kernel.ast, AVX2)[1]:
        kernel = kernel.apply(opt)
    program = kernel.built("LLVM").linear
    assert not [n for n in program if n.op is Ops.WHERE]
    assert not [n for n in program if n.op is Ops.LOAD and len(n.src) > 1]


def test_borders_are_where_comparisons_change() -> None:
    axis, other = (UOp.range(100, f"g{n}", AxisType.GLOBAL) for n in range(2))
    for make in (
        lambda a: a < 20,
        lambda a: a <= 20,
        lambda a: a > 20,
        lambda a: a >= 20,
        lambda a: a + 7 < 20,
        lambda a: 3 < a - 7,
    ):
        (border,) = borders(make(axis), axis)
        values = [bool(make(n)) for n in range(100)]
        assert values[border - 1] != values[border]
        assert not borders(make(axis), other)
    assert not borders(axis + other < 20, axis)
