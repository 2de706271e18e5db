"""Opts: what each makes of a kernel, and that the answer stays the same."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ir.opt.support import MATMUL, apply, opt
from tests.ir.opt.test_docs import MODULES, REFUSED_EVERYWHERE, shown
from tests.tools.filecheck import filecheck
from tests.tools.kernels import EXAMPLES, LLVM, interpreted
from workbench import Tensor, emulate, explore
from workbench.backends.device import Device
from workbench.ir.lower.lower import lower
from workbench.ir.opt.opt import Opt, OptOps
from workbench.ir.text.program import to_expr
from workbench.ir.verify.verify import verify

# what each opt does, on the text of a kernel

PLAIN = """
    CHECK: g0 = RANGE 8 global
    CHECK: g1 = RANGE 16 global
    CHECK: r0 = RANGE 12 reduce
    CHECK: order g0 g1 r0
    CHECK: REDUCE(add, p1[g0*12 + r0] * p2[r0*16 + g1], r0)
    CHECK: STORE(p0[g0*16 + g1], {{.*}}) END g0 g1
"""
AFTER = {
    "upcast": (
        [opt("UPCAST", "g1", 8)],
        """
        CHECK: g0 = RANGE 8 global
        CHECK: g1 = RANGE 2 global
        CHECK: r0 = RANGE 12 reduce
        CHECK: u0 = RANGE 8 upcast
        CHECK: order g0 g1 r0
        CHECK: REDUCE(add, p1[g0*12 + r0] * p2[r0*16 + (g1*8 + u0)], r0)
        CHECK: STORE(p0[g0*16 + (g1*8 + u0)], {{.*}} + p3[g1*8 + u0]{{.*}}) END g0 g1 u0
        """,
    ),
    "upcast the whole axis": (
        [opt("UPCAST", "g1", 0)],
        """
        CHECK-NOT: g1
        CHECK: u0 = RANGE 16 upcast
        CHECK: order g0 r0
        CHECK: STORE(p0[g0*16 + u0], {{.*}}) END g0 u0
        """,
    ),
    "unroll": (
        [opt("UNROLL", "r0", 4)],
        """
        CHECK: g1 = RANGE 16 global
        CHECK: r0 = RANGE 3 reduce
        CHECK: n0 = RANGE 4 unroll
        CHECK: order g0 g1 r0
        CHECK: REDUCE(add, p1[g0*12 + (r0*4 + n0)] * p2[(r0*4 + n0)*16 + g1], n0, r0)
        CHECK: END g0 g1
        """,
    ),
    "thread": (
        [opt("THREAD", "g1", 2)],
        """
        CHECK: t0 = RANGE 2 thread
        CHECK: g0 = RANGE 8 global
        CHECK: g1 = RANGE 8 global
        CHECK: order t0 g0 g1 r0
        CHECK: REDUCE(add, p1[g0*12 + r0] * p2[r0*16 + (t0*8 + g1)], r0)
        CHECK: END g0 g1 t0
        """,
    ),
    "group": (
        [opt("GROUP", "r0", 4)],
        """
        CHECK: x0 = RANGE 4 group
        CHECK: r0 = RANGE 3 reduce
        CHECK: r1 = RANGE 4 reduce
        CHECK: order g0 g1 x0 r0 r1
        CHECK: REDUCE(add, p1[g0*12 + (r0*4 + x0)] * p2[(r0*4 + x0)*16 + g1], r0)
        CHECK: group0 = STAGE({{.*}}, x0)
        CHECK: REDUCE(add, group0[r1], r1)
        """,
    ),
    "group, outer part": (
        [opt("GROUPTOP", "r0", 4)],
        """
        CHECK: order g0 g1 x0 r0 r1
        CHECK: REDUCE(add, p1[g0*12 + (x0*3 + r0)] * p2[(x0*3 + r0)*16 + g1], r0)
        CHECK: STAGE({{.*}}, x0)
        """,
    ),
    "split a reduction": (
        [opt("SPLIT", "r0", 4)],
        """
        CHECK: r0 = RANGE 3 reduce
        CHECK: r1 = RANGE 4 reduce
        CHECK: order g0 g1 r0 r1
        CHECK: REDUCE(add, p1[g0*12 + (r0*4 + r1)] * p2[(r0*4 + r1)*16 + g1], r0, r1)
        """,
    ),
    "split an output axis": (
        [opt("SPLIT", "g0", 2)],
        """
        CHECK: g0 = RANGE 4 global
        CHECK: g2 = RANGE 2 global
        CHECK: g1 = RANGE 16 global
        CHECK: order g0 g2 g1 r0
        CHECK: p1[(g0*2 + g2)*12 + r0]
        """,
    ),
    "local": (
        [opt("LOCAL", "g0", 4)],
        """
        CHECK: g0 = RANGE 2 global
        CHECK: g1 = RANGE 16 global
        CHECK: l0 = RANGE 4 local
        CHECK: order g0 g1 l0 r0
        CHECK: p1[(g0*4 + l0)*12 + r0]
        CHECK: END g0 l0 g1
        """,
    ),
    "two locals make a work-group inside all groups": (
        [opt("LOCAL", "g0", 4), opt("LOCAL", "g1", 8)],
        "CHECK: order g0 g1 l0 l1 r0",
    ),
    "order": (
        [opt("ORDER", "r0", "g1")],
        """
        CHECK: g0 = RANGE 8 global
        CHECK: g1 = RANGE 16 loop
        CHECK: order g0 r0 g1
        CHECK: REDUCE(add, p1[g0*12 + r0] * p2[r0*16 + g1], r0)
        """,
    ),
    "order of output axes": ([opt("ORDER", "g1", "g0")], "CHECK: order g1 g0 r0"),
    "stage a column": (
        [opt("STAGE", "g1", 2)],
        """
        CHECK: g1 = RANGE 16 global
        CHECK: b_r0 = RANGE 12 fill
        CHECK: r0 = RANGE 12 reduce
        CHECK: order g0 g1 b_r0 r0
        CHECK: Bs = STAGE(p2[b_r0*16 + g1], b_r0)
        CHECK: REDUCE(add, p1[g0*12 + r0] * Bs[r0], r0)
        """,
    ),
    "stage a row ends the loops that are spread": (
        [opt("STAGE", "g0", 1)],
        """
        CHECK: g0 = RANGE 8 global
        CHECK: a_r0 = RANGE 12 fill
        CHECK: g1 = RANGE 16 loop
        CHECK: order g0 a_r0 g1 r0
        CHECK: As = STAGE(p1[g0*12 + a_r0], a_r0)
        """,
    ),
    "stage a tile of lanes": (
        [opt("UPCAST", "g1", 8), opt("STAGE", "g1", 2)],
        """
        CHECK: b_u0 = RANGE 8 upcast
        CHECK: Bs = STAGE(p2[b_r0*16 + (g1*8 + b_u0)], b_r0, b_u0)
        CHECK: Bs[r0, u0]
        """,
    ),
    "pad an output axis": (
        [opt("PADTO", "g1", 6)],
        """
        CHECK: g1 = RANGE 18 global
        CHECK: order g0 g1 r0
        CHECK: p2[r0*16 + g1 where g1 < 16]
        CHECK: STORE(p0[g0*16 + g1 where g1 < 16], {{.*}}) END g0 g1
        """,
    ),
    "pad a reduction with its identity": (
        [opt("PADTO", "r0", 8)],
        """
        CHECK: r0 = RANGE 16 reduce
        CHECK: REDUCE(add, where(r0 < 12, {{.*}}, 0.0), r0)
        CHECK: STORE(p0[g0*16 + g1], {{.*}}) END g0 g1
        """,
    ),
    "swap": (
        [opt("SWAP", "r0", "g0")],
        """
        CHECK: g1 = RANGE 16 loop
        CHECK: g0 = RANGE 8 loop
        CHECK: order r0 g1 g0
        """,
    ),
    "groups of two axes, the second stages behind both": (
        [opt("SPLIT", "r0", 4), opt("GROUP", "r0", 3), opt("GROUP", "r1", 2)],
        """
        CHECK: order g0 g1 x0 x1 r1 r0 r2
        CHECK: REDUCE(add, p1[g0*12 + (x0*4 + (r1*2 + x1))] * {{.*}}, r1)
        CHECK: group1 = STAGE({{.*}}, x1)
        CHECK: REDUCE(add, group1[r0], r0)
        CHECK: group0 = STAGE({{.*}}, x0)
        CHECK: REDUCE(add, group0[r2], r2)
        """,
    ),
    "no work-groups": (
        [opt("NOLOCALS")],
        """
        CHECK: g1 = RANGE 16 global
        CHECK: order g0 g1 r0
        CHECK-NEXT: no work-groups
        CHECK: STORE(p0[g0*16 + g1], {{.*}}) END g0 g1
        """,
    ),
    "no work-groups lasts": (
        [opt("NOLOCALS"), opt("UPCAST", "g1", 8), opt("ORDER", "r0", "g1"),
         opt("THREAD", "g0", 2), opt("PADTO", "r0", 8), opt("STAGE", "r0", 2)],
        """
        CHECK: order t0 g0 r0 b_g1 g1
        CHECK-NEXT: no work-groups
        """,
    ),
}  # fmt: skip


def test_the_kernel_before() -> None:
    filecheck(to_expr(MATMUL), PLAIN)


@pytest.mark.parametrize("name", AFTER)
def test_before_and_after(name: str) -> None:
    opts, expected = AFTER[name]
    after = apply(MATMUL, *opts)
    filecheck(to_expr(after), expected)
    verify(after, "kernel")
    filecheck(to_expr(MATMUL), PLAIN)  # unchanged


@pytest.mark.parametrize("name", AFTER)
def test_the_answer_is_the_same(name: str) -> None:
    example = EXAMPLES["matmul_bias_relu"]
    arrays = example.arrays()
    after = apply(MATMUL, *AFTER[name][0])
    assert interpreted(after, arrays) == pytest.approx(example.wanted(arrays), abs=1e-5)


def test_every_op_is_tested_and_has_a_caption() -> None:
    """Here, or by what its file shows (test_docs.py)."""
    named = {o.op.name for opts, _ in AFTER.values() for o in opts}
    assert len(named) >= 12 and not named & REFUSED_EVERYWHERE
    shown_elsewhere = {each.op.name for module in MODULES for each in shown(module)}
    assert named | shown_elsewhere == {op.name for op in OptOps} - REFUSED_EVERYWHERE
    for op in OptOps:
        filecheck(op.caption, f"CHECK: {op.name} on a processor: {{{{.+}}}}. On a GPU: {{{{.+}}}}.")


def test_order_undoes_order_and_swap_undoes_swap() -> None:
    assert apply(MATMUL, opt("SWAP", "g0", "r0"), opt("SWAP", "g0", "r0")) is MATMUL
    assert apply(MATMUL, opt("ORDER", "r0", "g1"), opt("ORDER", "g1", "r0")) is MATMUL


def test_a_sum_in_an_index_stays_one_sum_where_its_axis_is_padded() -> None:
    """As an index that is clamped it would be another, in memory of the same name."""
    n = 5
    keys, values, table = np.array([2, 0, 1, 4, 3]), np.arange(n), np.arange(n) * 10.0
    found = (Tensor(keys).reshape(n, 1) == Tensor.arange(n)).where(Tensor(values).reshape(n, 1), 0)
    places = found.sum(0)
    y = (Tensor(table.astype(np.float32))[places] + places).max(0)
    kernel = explore(y, device="CUDA:H100").kernels[-1]
    for opts in (
        [opt("GROUP", "r1", 0), opt("PADTO", "r0", 8)],
        [opt("PADTO", "r1", 8), opt("GROUP", "r1", 0), opt("PADTO", "r0", 8)],
    ):
        after = kernel.apply(*opts)
        verify(after.ast, "kernel")
        assert emulate(after).outputs[0] == [44.0]


def test_without_work_groups_the_program_here_is_the_same() -> None:
    plain, without = (lower(graph, LLVM) for graph in (MATMUL, apply(MATMUL, opt("NOLOCALS"))))
    assert without[0].src == plain[0].src and without[1][1:] == plain[1][1:]
    sources = [Device["LLVM"].render(*variant).text for variant in (plain, without)]
    assert sources[0] == sources[1]


def test_a_whole_number_of_numpy_is_one() -> None:
    kernel = explore(Tensor.empty(8, 6) @ Tensor.empty(6, 16)).kernels[0]
    for axis, amount in (("g1", np.int64(4)), (np.int32(1), np.uint8(4))):
        same = Opt(OptOps.UPCAST, axis, amount)  # type: ignore[arg-type]
        assert same.arg == 4 and type(same.arg) is int and "np" not in repr(same)
        named = kernel.apply(Opt(OptOps.UPCAST, "g1", 4))
        assert kernel.apply(same).ast is named.ast
    (refusal,) = {
        str(kernel.why_not(Opt(OptOps.UPCAST, "g1", np.array([4]))))  # type: ignore[arg-type]
    }
    assert "the amount must be a whole number" in refusal
