"""Which opts are legal: the rules S1-S15 of tinygrad's kernels, as amended here, as one table.

A row is a kernel, a list of opts, and what comes of it: the axes, or a word of the refusal of
the last opt. The rules, and how they are amended:

    S1   an opt that is not legal raises KernelOptError and leaves the reason
    S2   UPCAST: outputs only. Amended: bounded by the lanes in all, not by 8; LOOP axes too
    S3   UNROLL: reductions only. Amended: bounded by the lanes in all, not by 32
    S4   LOCAL: global outputs only. Amended: legal on every device; LOOP axes too
    S5   GROUP, GROUPTOP: reductions only, not a group again. Amended: legal on every device
    S6   element x lanes x work-items x amount are within the device's local memory. Amended:
         of all stages together, and STAGE too
    S7   PADTO: no lanes, at most 4 times the size. Amended: any reduction, with its identity
         (sizes of kernels are numbers: there is nothing symbolic to refuse)
    S8   PADTO goes with UPCAST, UNROLL and GROUP. Amended: also where f(0) is not 0
    S9   amount 0 is the whole axis
    S10  UPCASTMID: for images, which are not built: it is no opt
    S11  NOLOCALS: not twice, not with work-groups, and none after it
    S12  an amount divides the axis, unless it is PADTO's
    S13  TC: there are no tensor cores here
    S14  SWAP: no rule there. Ours: of two loops, not of lanes
    S15  the order of a list says what its integers mean
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from tests.ir.opt.support import apply, opt, sizes
from tests.ir.samples import at, axis, kernel, load, param, reduced
from tests.support import by_rows
from tests.tools.kernels import EXAMPLES, LLVM, PYTHON, Example, interpreted, matmul_bias_relu
from workbench.base.errors import KernelOptError
from workbench.base.target import Target
from workbench.ir.node.ops import Ops
from workbench.ir.opt.apply import apply_opt, why_not
from workbench.ir.opt.opt import Opt
from workbench.ir.verify.verify import verify


def reduction(name: str, op: Ops, rows: int, columns: int) -> Example:
    """Reduce exp2 of each row by ADD or MAX: f(0) is 1, which no padding may bring in."""
    g0, r0 = axis("g0", rows), axis("r0", columns)
    x = load(param(1, rows * columns), g0 * columns + r0).alu(Ops.EXP2)
    graph = kernel("g0 r0", (at(param(0, rows), g0), reduced(op, x, r0), "g0"))
    by = {Ops.ADD: "sum", Ops.MAX: "max"}[op]
    return Example(name, graph, lambda x: getattr(2 ** x.reshape(rows, columns), by)(axis=1))


MATMUL = EXAMPLES["matmul_bias_relu"]  # g0=8 g1=16 r0=12
LONG = matmul_bias_relu(2, 3, 64)
WIDE = matmul_bias_relu(2, 64, 3)
ODD = matmul_bias_relu(7, 11, 13)
SOFTMAX = EXAMPLES["softmax"]  # g0=8 r0=16 r1=16 f0=16 i0=16
COPY = EXAMPLES["transpose"]  # no reduction
SUM = reduction("sum of exp2", Ops.ADD, 7, 13)
MAX = reduction("greatest exp2", Ops.MAX, 7, 13)
FEW_LANES = Target("LLVM", max_lanes=32)


def little(local_bytes: int) -> Target:
    return Target("LLVM", scratch_bytes=local_bytes)


class Row(NamedTuple):
    rule: str
    example: Example
    opts: list[Opt]
    axes: str = ""
    refused: str = ""
    target: Target = LLVM


IN_LANES = [opt("UPCAST", "g1", 4), opt("LOCAL", "g0", 2)]
# fmt: off
TABLE = [
    Row("S1", MATMUL, [Opt("UPCAST", "g1", 4)], refused="is not an opt"),  # type: ignore[arg-type]
    Row("S1", MATMUL, [opt("UPCAST", "q7", 4)], refused="no axis q7"),
    Row("S1", MATMUL, [opt("UPCAST", "g1", -4)], refused="splits nothing"),
    Row("S1", MATMUL, [opt("UPCAST", "g1", "4")], refused="a whole number"),
    Row("S1", MATMUL, [opt("UPCAST", -1, 4)], refused="no axis -1"),

    Row("S2", MATMUL, [opt("UPCAST", 1, 4)], axes="g0=8 g1=4 r0=12 u0=4"),
    Row("S2", MATMUL, [opt("UPCAST", 2, 4)], refused="no axis 2"),
    Row("S2", MATMUL, [opt("UPCAST", "r0", 4)], refused="r0 is REDUCE"),
    Row("S2", MATMUL, [opt("UPCAST", "g1", 4), opt("UPCAST", "u0", 2)], refused="u0 is UPCAST"),
    Row("S2", MATMUL, [opt("LOCAL", "g0", 4), opt("UPCAST", "l0", 2)],
        axes="g0=2 g1=16 l0=2 r0=12 u0=2"),
    # amended: more than 8, as far as lanes go
    Row("S2", MATMUL, [opt("UPCAST", "g1", 16)], axes="g0=8 r0=12 u0=16"),
    Row("S2", MATMUL, [opt("UPCAST", "g1", 16), opt("UPCAST", "g0", 4)],
        refused="64 lanes at once", target=FEW_LANES),
    Row("S2", WIDE, [opt("UPCAST", "g1", 64)], refused="64 lanes at once", target=FEW_LANES),
    # amended: an output axis inside of a reduction
    Row("S2", MATMUL, [opt("ORDER", "r0", "g1"), opt("UPCAST", "g1", 8)],
        axes="g0=8 g1=2 r0=12 u0=8"),

    Row("S3", MATMUL, [opt("UNROLL", 0, 4)], axes="g0=8 g1=16 r0=3 n0=4"),
    Row("S3", MATMUL, [opt("UNROLL", 0, 12)], axes="g0=8 g1=16 n0=12"),
    Row("S3", MATMUL, [opt("UNROLL", "g0", 4)], refused="g0 is GLOBAL"),
    Row("S3", COPY, [opt("UNROLL", 0, 4)], refused="no axis 0"),
    Row("S3", MATMUL, [opt("GROUP", 0, 4), opt("UNROLL", 0, 4)],
        axes="g0=8 g1=16 r0=3 r1=4 n0=4"),  # the whole of the group
    # amended: more than 32, as far as lanes go
    Row("S3", LONG, [opt("UNROLL", 0, 64)], axes="g0=2 g1=3 n0=64"),
    Row("S3", LONG, [opt("UNROLL", 0, 64)], refused="64 lanes at once", target=FEW_LANES),
    Row("S3", SOFTMAX, [opt("UNROLL", 0, 4), opt("UNROLL", 1, 2)],
        axes="g0=8 i0=16 r0=4 r1=8 n0=4 n1=2 f0=16"),

    Row("S4", MATMUL, [opt("LOCAL", 0, 4), opt("LOCAL", 1, 8)], axes="g0=2 g1=2 l0=4 l1=8 r0=12"),
    Row("S4", MATMUL, [opt("LOCAL", 0, 4), opt("LOCAL", 0, 2)], axes="g1=16 l0=4 l1=2 r0=12"),
    Row("S4", MATMUL, [opt("LOCAL", "r0", 4)], refused="r0 is REDUCE"),
    Row("S4", MATMUL, [opt("LOCAL", "g0", 4), opt("LOCAL", "l0", 2)], refused="l0 is LOCAL"),
    Row("S4", MATMUL, [opt("UPCAST", "g0", 4), opt("LOCAL", "u0", 2)], refused="u0 is UPCAST"),
    # amended: on every device, LOOP axes too
    Row("S4", MATMUL, [opt("LOCAL", 0, 4)], axes="g0=2 g1=16 l0=4 r0=12", target=PYTHON),
    Row("S4", MATMUL, [opt("ORDER", "r0", "g1"), opt("LOCAL", "g1", 4)],
        axes="g0=8 g1=4 l0=4 r0=12"),

    Row("S5", MATMUL, [opt("GROUP", 0, 4)], axes="g0=8 g1=16 x0=4 r0=3 r1=4"),
    Row("S5", MATMUL, [opt("GROUPTOP", 0, 4)], axes="g0=8 g1=16 x0=4 r0=3 r1=4"),
    Row("S5", MATMUL, [opt("GROUP", "g0", 4)], refused="g0 is GLOBAL"),
    Row("S5", COPY, [opt("GROUP", 0, 4)], refused="no axis 0"),
    Row("S5", MATMUL, [opt("GROUP", 0, 4), opt("GROUP", "x0", 2)], refused="x0 is GROUP_REDUCE"),
    Row("S5", MATMUL, [opt("GROUP", 0, 2), opt("GROUP", 0, 2)],
        axes="g0=8 g1=16 x0=2 x1=2 r0=3 r2=2 r1=2"),
    Row("S5", SOFTMAX, [opt("GROUP", "r1", 4)], axes="g0=8 i0=16 x0=4 r0=16 r1=4 r2=4 f0=16"),
    # amended: on every device
    Row("S5", MATMUL, [opt("GROUP", 0, 4)], axes="g0=8 g1=16 x0=4 r0=3 r1=4", target=PYTHON),

    # 4 bytes x 4 lanes x 2 work-items x 4
    Row("S6", MATMUL, [*IN_LANES, opt("GROUP", 0, 4)],
        axes="g0=4 g1=4 l0=2 x0=4 r0=3 r1=4 u0=4", target=little(128)),
    Row("S6", MATMUL, [*IN_LANES, opt("GROUP", 0, 4)], refused="128 bytes", target=little(127)),
    Row("S6", MATMUL, [opt("GROUP", 0, 4), opt("UPCAST", "g1", 4), opt("LOCAL", "g0", 4)],
        refused="256 bytes", target=little(255)),
    # amended: STAGE too, and all together: 2 rows of 12 are 96 bytes, 4 partial sums 16
    Row("S6", MATMUL, [opt("UPCAST", "g0", 2), opt("STAGE", "g0", 1)],
        axes="g0=4 g1=16 r0=12 u0=2 a_r0=12 a_u0=2", target=little(96)),
    Row("S6", MATMUL, [opt("UPCAST", "g0", 2), opt("STAGE", "g0", 1)],
        refused="96 bytes", target=little(95)),
    Row("S6", MATMUL, [opt("STAGE", "g0", 1), opt("GROUP", 0, 4)],
        refused="64 bytes", target=little(63)),

    Row("S7", MATMUL, [opt("PADTO", 0, 6)], axes="g0=12 g1=16 r0=12"),
    Row("S7", MATMUL, [opt("UPCAST", 0, 0), opt("PADTO", "u0", 32)], refused="only loops"),
    Row("S7", MATMUL, [opt("UNROLL", 0, 0), opt("PADTO", 2, 8)], refused="no axis 2"),
    Row("S7", SUM, [opt("PADTO", 0, 27)], axes="g0=27 r0=13"),
    Row("S7", SUM, [opt("PADTO", 0, 28)], refused="4 times or more"),
    Row("S7", SUM, [opt("PADTO", 0, 7)], refused="a multiple of 7 already"),
    Row("S7", MATMUL, [opt("LOCAL", 0, 4), opt("PADTO", 2, 6)], axes="g0=2 g1=16 l0=6 r0=12"),
    # amended: any reduction
    Row("S7", MAX, [opt("PADTO", 1, 32)], axes="g0=7 r0=32"),
    Row("S7", MAX, [opt("PADTO", 0, 8)], axes="g0=8 r0=13"),

    Row("S8", ODD, [opt("PADTO", n, 8) for n in range(3)], axes="g0=8 g1=16 r0=16"),
    Row("S8", ODD, [opt("PADTO", 0, 8), opt("PADTO", 1, 4), opt("UPCAST", 0, 2),
                    opt("UPCAST", 1, 4)], axes="g0=4 g1=3 r0=13 u0=2 u1=4"),
    Row("S8", ODD, [opt("PADTO", 2, 4), opt("UNROLL", 0, 4)], axes="g0=7 g1=11 r0=4 n0=4"),
    Row("S8", ODD, [opt("PADTO", 2, 8), opt("GROUP", 0, 8)], axes="g0=7 g1=11 x0=8 r0=2 r1=8"),
    Row("S8", ODD, [opt("GROUP", 0, 13), opt("PADTO", "x0", 4)], axes="g0=7 g1=11 x0=16 r1=13"),
    # amended: exp2(0) is not 0
    Row("S8", SUM, [opt("PADTO", 1, 8), opt("UNROLL", 0, 8)], axes="g0=7 r0=2 n0=8"),
    Row("S8", MAX, [opt("PADTO", 1, 8), opt("GROUPTOP", 0, 8)], axes="g0=7 x0=8 r0=2 r1=8"),
    Row("S8", SOFTMAX, [opt("PADTO", name, 6) for name in ("r0", "r1", "f0", "i0")],
        axes="g0=8 i0=18 r0=18 r1=18 f0=18"),

    Row("S9", MATMUL, [opt("UPCAST", 1, 0)], axes="g0=8 r0=12 u0=16"),
    Row("S9", ODD, [opt("UPCAST", 0, 0)], axes="g1=11 r0=13 u0=7"),
    Row("S9", ODD, [opt("UNROLL", 0, 0)], axes="g0=7 g1=11 n0=13"),
    Row("S9", ODD, [opt("LOCAL", 0, 0)], axes="g1=11 l0=7 r0=13"),
    Row("S9", ODD, [opt("GROUP", 0, 0)], axes="g0=7 g1=11 x0=13 r1=13"),
    Row("S9", ODD, [opt("SPLIT", "g0", 0)], refused="leaves no outer loop"),
    Row("S9", ODD, [opt("PADTO", "g0", 0)], refused="cannot be rounded up"),

    Row("S10", MATMUL, [Opt("UPCASTMID", 1, 4)], refused="is not an opt"),  # type: ignore[arg-type]

    Row("S11", MATMUL, [opt("NOLOCALS")], axes="g0=8 g1=16 r0=12"),
    Row("S11", MATMUL, [opt("NOLOCALS"), opt("NOLOCALS")], refused="already"),
    Row("S11", MATMUL, [opt("LOCAL", 0, 4), opt("NOLOCALS")], refused="l0 is the work-items"),
    Row("S11", MATMUL, [opt("GROUP", 0, 4), opt("NOLOCALS")], refused="x0 is the work-items"),
    Row("S11", MATMUL, [opt("NOLOCALS"), opt("LOCAL", 0, 4)], refused="NOLOCALS"),
    Row("S11", MATMUL, [opt("NOLOCALS"), opt("GROUP", 0, 4)], refused="NOLOCALS"),
    Row("S11", MATMUL, [opt("NOLOCALS"), opt("GROUPTOP", 0, 4)], refused="NOLOCALS"),
    Row("S11", MATMUL, [opt("NOLOCALS"), opt("UPCAST", 0, 4), opt("THREAD", "g1", 2),
                        opt("PADTO", "r0", 8), opt("ORDER", "r0", "g1"), opt("LOCAL", "g1", 4)],
        refused="NOLOCALS"),  # it lasts
    Row("S11", MATMUL, [opt("NOLOCALS", "g0", 4)], refused="takes no axis"),

    Row("S12", MATMUL, [opt("UPCAST", 1, 5)], refused="5 does not divide 16"),
    Row("S12", MATMUL, [opt("UNROLL", 0, 5)], refused="5 does not divide 12"),
    Row("S12", MATMUL, [opt("LOCAL", 0, 3)], refused="3 does not divide 8"),
    Row("S12", MATMUL, [opt("GROUP", 0, 5)], refused="5 does not divide 12"),
    Row("S12", MATMUL, [opt("SPLIT", "g1", 32)], refused="32 does not divide 16"),
    Row("S12", MATMUL, [opt("THREAD", "g1", 7)], refused="7 does not divide 16"),
    Row("S12", MATMUL, [opt("PADTO", 1, 5)], axes="g0=8 g1=20 r0=12"),

    Row("S13", MATMUL, [opt("TC", 0, 1)], refused="no tensor cores on LLVM"),
    Row("S13", MATMUL, [opt("TC", 0, 1)], refused="no tensor cores on PYTHON", target=PYTHON),

    Row("S14", MATMUL, [opt("SWAP", 0, 1)], axes="g1=16 g0=8 r0=12"),
    Row("S14", MATMUL, [opt("SWAP", 0, 2)], axes="g1=16 g0=8 r0=12"),
    Row("S14", MATMUL, [opt("UPCAST", "g0", 4), opt("SWAP", "g0", "u0")], refused="u0 is a lane"),

    Row("S15", MATMUL, [opt("UPCAST", 0, 0), opt("UPCAST", 0, 4)], axes="g1=4 r0=12 u0=8 u1=4"),
    Row("S15", MATMUL, [opt("UPCAST", 0, 4), opt("UPCAST", 0, 0)], axes="g1=16 r0=12 u0=4 u1=2"),
    Row("S15", MATMUL, [opt("LOCAL", 0, 4), opt("UPCAST", 2, 2)],
        axes="g0=2 g1=16 l0=2 r0=12 u0=2"),
    Row("S15", MATMUL, [opt("UPCAST", 2, 2)], refused="no axis 2"),  # before LOCAL
]
# fmt: on
RULES = [f"S{n}" for n in range(1, 16)]


def test_every_rule_is_in_the_table() -> None:
    assert sorted({row.rule for row in TABLE}, key=RULES.index) == RULES
    assert all(bool(row.axes) != bool(row.refused) for row in TABLE)


@by_rows("row", TABLE, ids=[f"{r.rule} {' '.join(map(str, r.opts))}" for r in TABLE])
def test_the_rule_holds(row: Row) -> None:
    graph, named = row.example.graph, list[Opt]()
    for each in row.opts[:-1]:
        graph, by_name = apply_opt(graph, each, row.target)
        named.append(by_name)
    refusal = why_not(graph, row.opts[-1], row.target)
    if row.refused:
        assert refusal is not None, f"it makes {sizes(graph)}"
        assert row.refused in refusal.because and refusal.hint
        with pytest.raises(KernelOptError) as caught:
            apply_opt(graph, row.opts[-1], row.target)
        assert caught.value.because == refusal.because
        return
    assert refusal is None, refusal
    variant, by_name = apply_opt(graph, row.opts[-1], row.target)
    assert " ".join(f"{name}={size}" for name, size in sizes(variant).items()) == row.axes
    verify(variant, "kernel")
    arrays = row.example.arrays()
    expected: Any = pytest.approx(row.example.wanted(arrays), rel=1e-4, abs=1e-5)
    assert interpreted(variant, arrays) == expected
    again = apply(row.example.graph, *named, by_name, target=row.target)
    assert again is variant, "the list replays by name"
