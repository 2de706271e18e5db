"""Lists of opts as tinygrad's tests record them replay here, by integer axis.

An integer is a position among the axes that the op applies to: outputs first, work-items
after them; UNROLL counts from the first reduce axis, a group's first; GROUP skips groups;
PADTO counts all loops. What is refused is refused in words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.ir.opt.support import opt
from workbench import Kernel, Opt, Tensor, dtypes, explore
from workbench.backends.native.machine import DPBF16PS
from workbench.base.errors import KernelOptError
from workbench.base.target import Target
from workbench.ir.opt.apply import apply_opt

Recorded = tuple[str, int, int]


def numbers(*shape: int, dtype: Any = dtypes.float32) -> Tensor:
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return Tensor(values).cast(dtype).realize()


def matmul(size: int) -> Tensor:
    return numbers(size, size) @ numbers(size, size)


def square_of_corner() -> Tensor:
    return numbers(324, 324).shrink(((0, 17), (0, 17))) * 100


def exponentials() -> Tensor:
    difference = numbers(16, 13, 13) - numbers(16, 13, 1)
    return (difference * 1.4426950408889634).exp2().sum(-1)


def convolution() -> Tensor:  # the batch is 4 for 256
    images = numbers(4, 3, 32, 32, dtype=dtypes.float16)
    return images.conv2d(numbers(12, 3, 2, 2, dtype=dtypes.float16))


EXPRESSIONS: dict[str, Callable[[], Tensor]] = {
    "elementwise": lambda: (numbers(4).square() * 2).sqrt() * (numbers(4) + 1).exp(),
    "200 elements": lambda: numbers(200) + 1,
    "matmul 4": lambda: matmul(4),
    "matmul 128": lambda: matmul(128),
    "matmul 289": lambda: matmul(289),
    "two reductions": lambda: numbers(8, 128, 8, 128).sum((1, 3)),
    "sum of 17 rows": lambda: square_of_corner().sum(0),
    "greatest of 0 and 1": lambda: (numbers(324, 324) > 1).where(1, 0).max(0),
    "transpose 240x40": lambda: numbers(40, 240).T.contiguous(),
    "transpose 8x32": lambda: numbers(32, 8).T.contiguous(),
    "fill": lambda: Tensor.full((45, 65), 1.0).contiguous(),
    "convolution": convolution,
    "sum of exponentials": exponentials,
}
L4: Recorded = ("LOCAL", 0, 4)
G8: Recorded = ("GROUPTOP", 0, 8)

# expression, recorded list, the axes that it makes
REPLAYED: list[tuple[str, list[Recorded], str]] = [
    ("elementwise", [("UPCAST", 0, 4)], "u0=4"),
    # x0 is what UNROLL 0 means: the reduce axes are counted from the group's on
    ("matmul 128", [L4, L4, G8, ("UNROLL", 0, 4), ("UPCAST", 0, 4), ("UPCAST", 1, 2)],
     "g0=2 g1=64 l0=4 l1=4 x0=2 r0=16 r1=8 u0=4 u1=2 n0=4"),
    ("matmul 128", [L4, L4, G8, ("UNROLL", 0, 4), ("UPCAST", 0, 8)],
     "g1=128 l0=4 l1=4 x0=2 r0=16 r1=8 u0=8 n0=4"),
    ("matmul 128", [L4, G8, ("UNROLL", 0, 4), ("UPCAST", 0, 4), ("UPCAST", 1, 2)],
     "g0=8 g1=64 l0=4 x0=2 r0=16 r1=8 u0=4 u1=2 n0=4"),
    ("matmul 128", [("UPCAST", 0, 4), ("UNROLL", 0, 2), ("UPCAST", 1, 4)],
     "g0=32 g1=32 r0=64 u0=4 u1=4 n0=2"),
    ("matmul 128", [("UNROLL", 0, 2), ("UPCAST", 1, 4), ("UPCAST", 0, 4), ("UNROLL", 0, 4)],
     "g0=32 g1=32 r0=16 u0=4 u1=4 n0=2 n1=4"),
    ("matmul 128", [("LOCAL", 0, 2), ("UPCAST", 1, 4), ("UNROLL", 0, 2), ("UPCAST", 0, 4)],
     "g0=16 g1=32 l0=2 r0=64 u0=4 u1=4 n0=2"),
    # GROUPTOP 1 is the second reduction, not what the first GROUPTOP made
    ("two reductions", [("LOCAL", 0, 2), ("LOCAL", 1, 2), G8, ("GROUPTOP", 1, 4), ("UPCAST", 0, 2),
                        ("UNROLL", 0, 4), ("UNROLL", 1, 4)],
     "g0=2 g1=4 l0=2 l1=2 x0=2 r0=16 r1=32 r3=4 r2=8 u0=2 n0=4 n1=4"),
    ("two reductions", [L4, ("LOCAL", 1, 4), ("GROUPTOP", 0, 4), ("GROUPTOP", 1, 4),
                        ("UPCAST", 0, 2), ("UPCAST", 0, 2)],
     "l0=4 l1=4 x0=4 x1=4 r0=32 r1=32 r3=4 r2=4 u0=2 u1=2"),
    ("matmul 289", [("PADTO", 0, 32)], "g0=320 g1=289 r0=289"),
    ("matmul 289", [("PADTO", 1, 32)], "g0=289 g1=320 r0=289"),
    ("matmul 289", [("PADTO", 2, 32)], "g0=289 g1=289 r0=320"),
    ("matmul 289", [("PADTO", 0, 32), ("PADTO", 1, 32)], "g0=320 g1=320 r0=289"),
    ("matmul 289", [("PADTO", 0, 32), ("PADTO", 1, 32), ("PADTO", 2, 32)],
     "g0=320 g1=320 r0=320"),
    ("matmul 289", [("PADTO", 0, 32), ("PADTO", 1, 32), ("UPCAST", 0, 2), ("UPCAST", 1, 2)],
     "g0=160 g1=160 r0=289 u0=2 u1=2"),
    ("matmul 4", [("UPCAST", 0, 0)], "g1=4 r0=4 u0=4"),
    ("matmul 4", [("UPCAST", 1, 0)], "g0=4 r0=4 u0=4"),
    ("matmul 4", [("UNROLL", 0, 0)], "g0=4 g1=4 n0=4"),
    ("matmul 4", [("PADTO", 0, 8)], "g0=8 g1=4 r0=4"),
    ("matmul 4", [("PADTO", 1, 8)], "g0=4 g1=8 r0=4"),
    ("matmul 4", [("PADTO", 2, 8)], "g0=4 g1=4 r0=8"),
    ("sum of 17 rows", [("PADTO", 0, 32)], "g0=32 r0=17"),
    ("sum of 17 rows", [("PADTO", 0, 32), ("UPCAST", 0, 8)], "g0=4 r0=17 u0=8"),
    ("greatest of 0 and 1", [("PADTO", 0, 32)], "g0=352 r0=324"),
    ("greatest of 0 and 1", [("PADTO", 0, 32), ("UPCAST", 0, 8)], "g0=44 r0=324 u0=8"),
    # UPCAST 3 is the second work-item axis
    ("transpose 240x40", [("UPCAST", 1, 4), ("LOCAL", 0, 16), ("LOCAL", 1, 2), ("UPCAST", 3, 2)],
     "g0=15 g1=5 l0=16 u0=4 u1=2"),
    ("transpose 8x32", [("LOCAL", 1, 4), ("UPCAST", 2, 2), ("LOCAL", 1, 8), ("UPCAST", 1, 0),
                        ("UPCAST", 1, 4), ("LOCAL", 0, 8), ("UPCAST", 1, 0), ("UPCAST", 0, 2)],
     "u0=2 u1=2 u2=4 u3=8 u4=2"),
    ("fill", [("PADTO", 0, 32)], "g0=2944"),
    ("200 elements", [("PADTO", 0, 32), ("UPCAST", 0, 4), ("UPCAST", 0, 7), ("UPCAST", 0, 0)],
     "u0=4 u1=7 u2=8"),
    ("convolution", [("PADTO", 3, 32), ("LOCAL", 3, 32), ("UPCAST", 3, 4), ("UPCAST", 3, 0)],
     "g0=4 g1=12 g2=31 r0=3 r1=2 r2=2 u0=4 u1=8"),
]  # fmt: skip

# expression, recorded list, why its last opt is refused
REFUSED: list[tuple[str, list[Recorded], str]] = [
    # lanes are not padded, and so not counted
    ("matmul 4", [("UPCAST", 0, 0), ("PADTO", 2, 8)], "no axis 2"),
    ("matmul 4", [("UPCAST", 1, 0), ("PADTO", 2, 8)], "no axis 2"),
    ("matmul 4", [("UNROLL", 0, 0), ("PADTO", 2, 8)], "no axis 2"),
    ("sum of exponentials", [("UNROLL", 0, 0), ("PADTO", 1, 32)], "no axis 1"),
    ("matmul 128", [("TC", 0, 1)], "no tensor core"),
    ("convolution", [("TC", 0, 1), ("PADTO", 2, 32)], "no tensor core"),
    ("fill", [("PADTO", 0, 32), ("GROUP", 0, 4)], "no axis 0"),
    ("matmul 128", [("LOCAL", 3, 32)], "no axis 3"),
    ("matmul 128", [("LOCAL", -1, 32)], "no axis -1"),
    ("matmul 128", [G8, ("GROUPTOP", 0, 32)], "32 does not divide 16"),
]  # fmt: skip
PROCESSORS = {
    "plain": Target("LLVM", no_tensor_cores="it lacks AMX"),
    "with BF16": Target("LLVM", tensor_cores=(DPBF16PS,)),
}
_made: dict[str, tuple[Kernel, Any]] = {}


def plain(name: str) -> tuple[Kernel, Any]:
    """Return an expression's kernel, and what it computes without opts (in one order of adding,
    so that answers are compared to a share of the greatest)."""
    if name not in _made:
        (kernel,) = explore(EXPRESSIONS[name]()).kernels
        _made[name] = kernel, kernel.run("LLVM")[0]
    return _made[name]


def listed(recorded: list[Recorded]) -> list[Opt]:
    return [opt(*each) for each in recorded]


def ids(rows: list[tuple[str, list[Recorded], str]]) -> list[str]:
    return [f"{name} {' '.join(map(str, listed(opts)))}" for name, opts, _ in rows]


@pytest.mark.parametrize("name, recorded, axes", REPLAYED, ids=ids(REPLAYED))
def test_it_replays(name: str, recorded: list[Recorded], axes: str) -> None:
    kernel, expected = plain(name)
    variant = kernel.apply(*listed(recorded))
    assert " ".join(f"{a.name}={a.size}" for a in variant.axes) == axes
    share = 2e-2 if expected.dtype == np.float16 else 1e-5
    error = np.abs(variant.run("LLVM")[0] - expected).max()
    assert error <= share * np.abs(expected).max(), "NaN is no answer either"
    # by name, as the kernel has them now, it is the same list
    assert all(isinstance(o.axis, str) for o in variant.applied_opts)
    assert kernel.apply(*variant.applied_opts).ast is variant.ast


@pytest.mark.parametrize("name, recorded, because", REFUSED, ids=ids(REFUSED))
@pytest.mark.parametrize("target", PROCESSORS, ids=PROCESSORS)
def test_it_is_refused_in_words(
    name: str, recorded: list[Recorded], because: str, target: str
) -> None:
    node = plain(name)[0].ast
    with pytest.raises(KernelOptError) as caught:
        for each in listed(recorded):
            node, _ = apply_opt(node, each, PROCESSORS[target])
    assert because in caught.value.because and caught.value.hint
