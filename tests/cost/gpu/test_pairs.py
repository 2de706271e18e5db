"""Pairs of variants of a kernel: which of the two is faster, by the model and by what decides it.

measured   an H200, by this project: fp32 512, 1024, 4096: 25, 89, 3,221 us; fp16 4096: 375 us by
           one group of 8 warps, 407 by two of 4 (docs/why/opts.md)
SASS       instructions counted in the machine code of NVRTC 13.5: of the same ones neither is
           faster; of those that differ by a pipe that is busy, the one with fewer
arithmetic bytes, sectors or requests that one of the two moves more often, and nothing else
textbook   NVIDIA, CUDA C++ Best Practices Guide (coalescing, shared memory, bank conflicts); S.
           Boehm, How to Optimize a CUDA Matmul Kernel, 2022; M. Harris, Optimizing Parallel
           Reduction in CUDA, 2007; CUTLASS, Efficient GEMM in CUDA
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import pytest

from tests.support import LONG, by_rows
from workbench import Opt, OptOps, Tensor, dtypes, explore
from workbench.backends.device import Device
from workbench.cost.gpu.gpu_cost import GpuCost, gpu_cost
from workbench.ir.opt.apply import apply_opt
from workbench.ir.opt.heuristic.default_opts import heuristic

Opts = tuple[Opt, ...]


def o(op: str, axis: str, arg: int) -> Opt:
    return Opt(getattr(OptOps, op), axis, arg)


def product(size: int, of_halves: bool = False) -> Tensor:
    dtype = dtypes.float16 if of_halves else dtypes.float32
    a, b = (Tensor.empty(size, size, dtype=dtype) for _ in range(2))
    return a @ b


KERNELS: dict[str, Callable[[], Tensor]] = {
    "fp32 512": lambda: product(512),
    "fp32 1024": lambda: product(1024),
    "fp32 4096": lambda: product(4096),
    "fp16 1024": lambda: product(1024, True),
    "fp16 2048": lambda: product(2048, True),
    "fp16 4096": lambda: product(4096, True),
    "add": lambda: Tensor.empty(1 << 24) + Tensor.empty(1 << 24),
    "transpose": lambda: Tensor.empty(4096, 4096).T.contiguous(),
    "row sums": lambda: Tensor.empty(4096, 4096).sum(1),
    "column sums": lambda: Tensor.empty(4096, 4096).sum(0),
    "softmax": lambda: Tensor.empty(4096, 4096).softmax(-1),
    "gemv": lambda: Tensor.empty(4096, 4096) @ Tensor.empty(4096),
    "few rows": lambda: Tensor.empty(64, 4096).sum(1),
}


@cache
def proposed(kernel: str, machine: str) -> Opts:
    """Return the opts that the steps propose."""
    plain = explore(KERNELS[kernel]()).kernels[0].ast
    return heuristic(plain, Device[machine].target)[1]


def without_pipeline(kernel: str, machine: str) -> Opts:
    return tuple(x for x in proposed(kernel, machine) if x.op is not OptOps.PIPELINE)


@cache
def cost(kernel: str, opts: Opts, machine: str) -> GpuCost:
    plain = ast = explore(KERNELS[kernel]()).kernels[0].ast
    target = Device[machine].target
    for opt in opts:
        ast, _ = apply_opt(ast, opt, target)
    return gpu_cost(ast, target, plain)


class Pair(NamedTuple):
    """The second variant is `least` times as fast as the first, at least, and `most` at most."""

    name: str
    kernel: str
    first: Opts | str
    second: Opts | str
    least: float
    most: float
    decided: str
    machine: str = "CUDA:H100"


NO = "without PIPELINE"
GROUP16 = (o("LOCAL", "g0", 16), o("LOCAL", "g1", 16))
GROUP32 = (o("LOCAL", "g0", 32), o("LOCAL", "g1", 32))
DEEP16 = (*GROUP16, o("SPLIT", "r0", 16), o("ORDER", "r0", "l0"))  # type: ignore[arg-type]
DEEP32 = (*GROUP32, o("SPLIT", "r0", 32), o("ORDER", "r0", "l0"))  # type: ignore[arg-type]
STAGED = (o("STAGE", "r0", 1), o("STAGE", "r0", 2))


def tile(rows: int, columns: int, *more: Opt) -> Opts:
    upcasts = [(n, x) for n, x in (("g0", rows), ("g1", columns)) if x > 1]
    return (
        *[o("UPCAST", n, x) for n, x in upcasts], *GROUP16, o("SPLIT", "r0", 16),
        o("ORDER", "r0", "l0"), *STAGED, *more,  # type: ignore[arg-type]
    )  # fmt: skip


PAIRS = [
    # copies ahead
    Pair("2 buffers", "fp16 4096", NO, "PIPELINE 2", 1.1, 2, "textbook, CUTLASS"),
    Pair("3 buffers", "fp16 4096", NO, "PIPELINE 3", 1.1, 2, "textbook, CUTLASS"),
    Pair("4 buffers", "fp16 4096", NO, "PIPELINE 4", 1.1, 2, "textbook, CUTLASS"),
    Pair("4 or 3", "fp16 4096", "PIPELINE 3", "PIPELINE 4", 0.9, 1.1, "arithmetic: both hide 500"
         " cycles by two steps of 1,100 or more"),
    Pair("small", "fp16 1024", NO, "PIPELINE 3", 1.1, 2, "textbook, CUTLASS"),
    Pair("A100", "fp16 2048", NO, "PIPELINE 2", 1.1, 2.5, "textbook, CUTLASS", "CUDA:A100"),
    Pair("A100, large", "fp16 4096", NO, "PIPELINE 3", 1.1, 2, "textbook, CUTLASS", "CUDA:A100"),
    Pair("floats", "fp32 4096", NO, "PIPELINE 3", 1.005, 1.6, "textbook, CUTLASS"),
    Pair("floats, small", "fp32 1024", NO, "PIPELINE 3", 1.02, 1.6, "textbook, CUTLASS"),
    Pair("by hand", "fp32 1024", tile(4, 4), tile(4, 4, o("PIPELINE", "r0", 2)), 1.0, 1.6,
         "textbook, CUTLASS"),
    # unrolled copies
    Pair("unrolled copy", "fp16 1024", "proposed", "a_l0 2", 0.93, 1.07, "SASS: 36 LDGSTS, 64 HMMA,"
         " 32 LDSM in both"),
    Pair("by four", "fp16 4096", "proposed", "a_l0 4", 0.93, 1.07, "SASS: as many in both"),
    Pair("unrolled, awaited", "fp16 1024", NO, "no a_l0 2", 0.93, 1.07, "SASS: as many in both"),
    # staged or not
    Pair("tiles of 16", "fp32 1024", GROUP16, (*DEEP16, *STAGED), 1.05, 2, "SASS: 64 LDS and 16"
         " LDS.128 for 64 FFMA, not 128 LDG; textbook, Boehm 3: 1.5"),
    Pair("tiles of 32", "fp32 1024", GROUP32, (*DEEP32, *STAGED), 1.1, 2, "SASS; textbook, Boehm"),
    Pair("one operand", "fp32 1024", DEEP32, (*DEEP32, STAGED[0]), 1.0, 2, "SASS: LDS.128 for 4"
         " LDG"),
    Pair("a transpose", "transpose", (o("LOCAL", "g1", 256),), "proposed", 2, 9, "textbook, Best"
         " Practices Guide: 8 sectors for the bytes of one"),
    # register tiles
    Pair("a row of 8", "fp32 1024", tile(1, 1), tile(8, 1), 1.5, 5, "textbook, Boehm 4: 2.9"),
    Pair("4 x 4", "fp32 1024", tile(1, 1), tile(4, 4), 2, 8, "textbook, Boehm 5"),
    Pair("8 x 8", "fp32 4096", tile(4, 4), tile(8, 8), 1.02, 2, "textbook, Boehm 5: 8 x 8"),
    Pair("too much", "fp32 512", tile(4, 4), tile(16, 16), 0.05, 0.8, "arithmetic: 4 groups for"
         " 132 units"),
    # vectors, neighbours
    Pair("vectors of 4", "add", (o("LOCAL", "g0", 256),), (o("UPCAST", "g0", 4),
         o("LOCAL", "g0", 256)), 0.98, 1.3, "textbook: both are bound by memory"),
    Pair("neighbours", "transpose", (o("LOCAL", "g1", 256),), (o("LOCAL", "g0", 8),
         o("LOCAL", "g1", 32)), 0.7, 9, "arithmetic: sectors"),
    Pair("coalesced", "fp32 1024", (o("LOCAL", "g0", 256),), GROUP32, 2, 20, "textbook, Boehm 2:"
         " 6.4"),
    Pair("columns", "column sums", (o("LOCAL", "g0", 8),), (o("LOCAL", "g0", 32),), 1.0, 4,
         "arithmetic: lanes of a warp"),
    Pair("a vector's lanes", "column sums", (), (o("LOCAL", "g0", 32),), 1.5, 99, "textbook, Best"
         " Practices Guide"),
    # shared reductions
    Pair("a row by a warp", "few rows", (o("LOCAL", "g0", 16),), (o("GROUP", "r0", 32),), 2, 99,
         "textbook, Harris: work-items read neighbours"),
    Pair("a row by 256", "few rows", (o("GROUP", "r0", 32),), (o("GROUP", "r0", 256),), 1.0, 4,
         "arithmetic: 64 groups of a warp on 132 units"),
    Pair("softmax", "softmax", (o("LOCAL", "i0", 256),), "proposed", 2, 999, "textbook, Harris"),
    Pair("gemv", "gemv", (o("LOCAL", "g0", 64),), "proposed", 2, 99, "textbook: rows are read by"
         " neighbours"),
    # tensor cores, warps
    Pair("tensor cores", "fp16 2048", "simple tile", "proposed", 2, 30, "textbook: 989 against 134"
         " TF/s"),
    Pair("8 warps or 4", "fp16 4096", "4 warps", "proposed", 0.95, 1.3, "measured: 407 and 375 us"),
    Pair("half a warp", "add", (o("LOCAL", "g0", 16),), (o("LOCAL", "g0", 32),), 1.05, 3,
         "arithmetic: half of the lanes do nothing"),
]  # fmt: skip


def opts_of(pair: Pair, variant: Opts | str) -> Opts:
    if not isinstance(variant, str):
        return variant
    plain = without_pipeline(pair.kernel, pair.machine)
    word, _, number = variant.rpartition(" ")
    named: dict[str, Callable[[], Opts]] = {
        "proposed": lambda: proposed(pair.kernel, pair.machine),
        NO: lambda: plain,
        "simple tile": lambda: tile(4, 4),
        "4 warps": lambda: tuple(
            o("LOCAL", "g0", 2) if x == o("LOCAL", "g0", 4) else x
            for x in proposed(pair.kernel, pair.machine)
        ),
    }
    if variant in named:
        return named[variant]()
    if word == "PIPELINE":
        return (*plain, o("PIPELINE", "r0", int(number)))
    if word == "a_l0":
        return (*proposed(pair.kernel, pair.machine), o("UPCAST", "a_l0", int(number)))
    return (*plain, o("UPCAST", "a_l0", int(number)))


SOME_PAIRS = PAIRS[:: 1 if LONG else 2]


@by_rows("pair", SOME_PAIRS, ids=[f"{p.kernel}, {p.name}" for p in SOME_PAIRS])
def test_the_order_of_two_variants(pair: Pair) -> None:
    first, second = (
        cost(pair.kernel, opts_of(pair, variant), pair.machine)
        for variant in (pair.first, pair.second)
    )
    ratio = first.predicted_s / second.predicted_s
    assert pair.least <= ratio <= pair.most, (ratio, str(first), str(second))


@pytest.mark.parametrize(
    ("kernel", "measured_us"),
    [("fp32 512", 25), ("fp32 1024", 89), ("fp32 4096", 3221), ("fp16 4096", 403)],
)
def test_a_prediction_is_within_a_fifth_of_what_was_measured(
    kernel: str, measured_us: float
) -> None:
    """On an H200; registers estimated."""
    machine = "CUDA:H200"
    result = cost(kernel, proposed(kernel, machine), machine)
    assert result.predicted_s * 1e6 == pytest.approx(measured_us, rel=0.2)


@pytest.mark.parametrize("machine", ["CUDA:H100", "CUDA:H200", "CUDA:A100", "CUDA:RTX 4090"])
@pytest.mark.parametrize("kernel", ["fp16 1024", "fp16 2048", "fp16 4096"])
def test_where_copies_go_on_a_large_product_is_proposed_with_them(
    kernel: str, machine: str
) -> None:
    """Where a tile leaves no room for a second one, a smaller tile does."""
    assert any(x.op is OptOps.PIPELINE for x in proposed(kernel, machine))
