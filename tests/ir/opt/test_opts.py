"""Opts: what each makes of a kernel, what it refuses and why, and what it never touches."""

from __future__ import annotations

from typing import Any

import pytest

from tests.filecheck import filecheck
from tests.ir.samples import at, axis, kernel, load, param, reduced
from tests.kernels import EXAMPLES, LLVM, interpreted, matmul_bias_relu, random_form
from tests.support import count
from workbench.errors import KernelOptError
from workbench.ir.axis import AxisType
from workbench.ir.expr import to_expr
from workbench.ir.ops import Ops
from workbench.ir.opt.apply import (
    actions,
    apply_opt,
    caption,
    legal_opts,
    resolve,
    why_not,
)
from workbench.ir.opt.opt import Axis, Opt, OptOps, axes, ranges
from workbench.ir.text import to_text
from workbench.ir.uop import UOp
from workbench.ir.verify import verify
from workbench.target import Target

MATMUL = EXAMPLES["matmul_bias_relu"].graph  # g0 = 8, g1 = 16, r0 = 12
TILED = EXAMPLES["tiled_matmul"].graph
PRIME = matmul_bias_relu(7, 11, 13).graph


def opt(op: str, axis: Any = None, arg: Any = None) -> Opt:
    return Opt(OptOps[op], axis, arg)


def apply(graph: UOp, *opts: Opt, target: Target = LLVM) -> UOp:
    for each in opts:
        graph, _ = apply_opt(graph, each, target)
    return graph


def sizes(graph: UOp) -> dict[str, int]:
    return {a.name: a.size for a in axes(graph)}


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


def test_every_op_is_tested_above_and_has_a_caption() -> None:
    assert {o.op for opts, _ in AFTER.values() for o in opts} == set(OptOps)
    for op in OptOps:
        filecheck(
            caption(op), f"CHECK: {op.name} here: {{{{.+}}}}. On a GPU: {{{{.+}}}}."
        )


def test_order_undoes_order_and_swap_undoes_swap() -> None:
    assert apply(MATMUL, opt("SWAP", "g0", "r0"), opt("SWAP", "g0", "r0")) is MATMUL
    assert apply(MATMUL, opt("ORDER", "r0", "g1"), opt("ORDER", "g1", "r0")) is MATMUL


# names


def test_splitting_an_axis_leaves_every_other_name() -> None:
    for op, name in (
        ("UPCAST", "g1"),
        ("SPLIT", "g0"),
        ("LOCAL", "g1"),
        ("UNROLL", "r0"),
    ):
        before, after = sizes(MATMUL), sizes(apply(MATMUL, opt(op, name, 4)))
        fresh = set(after) - set(before)
        assert len(fresh) == 1 and after[fresh.pop()] == 4
        assert after[name] == before[name] // 4
        assert all(after[n] == before[n] for n in before if n != name)


def test_the_inner_part_is_named_anew_each_time() -> None:
    graph = apply(
        MATMUL, opt("UPCAST", "g1", 2), opt("UPCAST", "g1", 2), opt("UPCAST", "g0", 4)
    )
    assert sizes(graph) == {"g0": 2, "g1": 4, "r0": 12, "u0": 2, "u1": 2, "u2": 4}


def test_axes_are_listed_by_kind_then_in_loop_order() -> None:
    graph = apply(
        MATMUL,
        opt("UNROLL", "r0", 2),
        opt("UPCAST", "g0", 2),
        opt("LOCAL", "g1", 4),
        opt("ORDER", "g1", "g0"),
    )
    assert axes(graph) == (
        Axis("g1", AxisType.GLOBAL, 4),
        Axis("g0", AxisType.GLOBAL, 4),
        Axis("l0", AxisType.LOCAL, 4),
        Axis("r0", AxisType.REDUCE, 6),
        Axis("u0", AxisType.UPCAST, 2),
        Axis("n0", AxisType.UNROLL, 2),
    )


def test_a_loop_that_leaves_the_outside_is_a_loop_and_becomes_global_again() -> None:
    moved = apply(MATMUL, opt("ORDER", "r0", "g1"))
    kinds = {a.name: a.kind for a in axes(moved)}
    assert kinds == {"g0": AxisType.GLOBAL, "g1": AxisType.LOOP, "r0": AxisType.REDUCE}
    assert apply(moved, opt("ORDER", "g1", "r0")) is MATMUL


# integer axes


@pytest.mark.parametrize(
    "op, place, name",
    [
        ("UPCAST", 0, "g0"), ("UPCAST", 1, "g1"), ("LOCAL", 1, "g1"), ("UNROLL", 0, "r0"),
        ("SPLIT", 0, "g0"), ("SPLIT", 2, "r0"),
    ],
)  # fmt: skip
def test_an_integer_counts_the_axes_that_the_op_applies_to(
    op: str, place: int, name: str
) -> None:
    after, named = apply_opt(MATMUL, opt(op, place, 4), LLVM)
    assert named == opt(op, name, 4)
    assert after is apply(MATMUL, named)
    assert resolve(MATMUL, opt(op, place, 4)) == named


def test_unroll_counts_from_the_first_reduction_also_after_splits() -> None:
    graph = apply(MATMUL, opt("SPLIT", "r0", 4), opt("UPCAST", "g0", 2))
    assert resolve(graph, opt("UNROLL", 0, 2)).axis == "r0"
    assert resolve(graph, opt("UNROLL", 1, 2)).axis == "r1"


def test_upcast_counts_work_items_too() -> None:
    graph = apply(MATMUL, opt("LOCAL", "g0", 4))
    assert [resolve(graph, opt("UPCAST", n, 2)).axis for n in range(3)] == [
        "g0",
        "g1",
        "l0",
    ]


# what is refused

ILLEGAL: list[tuple[UOp, Any, str, str]] = [
    # kernel, opt, because, try
    (
        MATMUL,
        opt("UPCAST", "g1", 5),
        "16 elements, and 5 does not divide 16",
        "2, 4, 8, 16",
    ),
    (MATMUL, opt("UPCAST", "g1", 32), "32 does not divide 16", 'UPCAST("g1", 16)'),
    (MATMUL, opt("UPCAST", "g1", 1), "an amount of 1 splits nothing", "2 or more"),
    (MATMUL, opt("UPCAST", "g1", -4), "an amount of -4 splits nothing", "2 or more"),
    (MATMUL, opt("UPCAST", "g1", True), "a whole number, not True", "4"),
    (MATMUL, opt("UPCAST", "g1", False), "a whole number, not False", "4"),
    (MATMUL, opt("UPCAST", "g1", 4.0), "a whole number, not 4.0", "4"),
    (MATMUL, opt("UPCAST", "g1", "4"), "a whole number, not '4'", "4"),
    (MATMUL, opt("UPCAST", "g1"), "a whole number, not None", "4"),
    (MATMUL, opt("UPCAST", "g1", 10**30), "does not divide 16", "2, 4, 8, 16"),
    (MATMUL, opt("UPCAST", "q7", 4), "no axis q7", "g0 (8), g1 (16)"),
    (MATMUL, opt("UPCAST", "", 4), "no axis", "g0 (8), g1 (16)"),
    (MATMUL, opt("UPCAST", None, 4), "no axis", "g0 (8), g1 (16)"),
    (MATMUL, opt("UPCAST", ["g1"], 4), "no axis", "g0 (8), g1 (16)"),
    (MATMUL, opt("UPCAST", 2, 4), "no axis 2", "g0 (8), g1 (16)"),
    (MATMUL, opt("UPCAST", -1, 4), "no axis -1", "g0 (8), g1 (16)"),
    (MATMUL, opt("UPCAST", True, 4), "no axis True", "g0 (8), g1 (16)"),
    (MATMUL, opt("UPCAST", 1.0, 4), "no axis 1.0", "g0 (8), g1 (16)"),
    (
        MATMUL,
        opt("UPCAST", "r0", 4),
        "applies to output axes, and r0 is REDUCE",
        "g0 (8), g1",
    ),
    (
        MATMUL,
        opt("LOCAL", "r0", 4),
        "applies to output axes, and r0 is REDUCE",
        "g0 (8), g1",
    ),
    (
        MATMUL,
        opt("UNROLL", "g0", 4),
        "applies to reduce axes, and g0 is GLOBAL",
        "r0 (12)",
    ),
    (MATMUL, opt("UNROLL", "r0", 5), "5 does not divide 12", "2, 3, 4, 6, 12"),
    (MATMUL, opt("UNROLL", 1, 4), "no axis 1", "r0 (12)"),
    (MATMUL, opt("SPLIT", "r0", 12), "leaves no outer loop", ""),
    (MATMUL, opt("SPLIT", "r0", 0), "leaves no outer loop", ""),
    (MATMUL, opt("SPLIT", "r0", 7), "7 does not divide 12", "SPLIT"),
    (PRIME, opt("UPCAST", "g0", 2), "7 elements, and 2 does not divide 7", "7"),
    (PRIME, opt("UNROLL", "r0", 4), "4 does not divide 13", "13"),
    (PRIME, opt("SPLIT", "g1", 8), "8 does not divide 11", ""),
    (MATMUL, opt("ORDER", "g0", "g1"), "g0 stands right before g1 already", "g0 g1 r0"),
    (MATMUL, opt("ORDER", "g0", "g0"), "cannot move past itself", "g0 g1 r0"),
    (MATMUL, opt("SWAP", "g0", "g0"), "cannot move past itself", "g0 g1 r0"),
    (MATMUL, opt("ORDER", "q7", "g0"), "no axis q7", "g0 g1 r0"),
    (MATMUL, opt("SWAP", "g0", "q7"), "no axis q7", "g0 g1 r0"),
    (MATMUL, opt("ORDER", "g0"), "no axis None", "g0 g1 r0"),
    (MATMUL, opt("ORDER", ["g0"], "g1"), "no axis", "g0 g1 r0"),
    (MATMUL, opt("STAGE", "r0", 1), "does not change inside of r0", "further out"),
    (MATMUL, opt("STAGE", "q7", 1), "no loop q7", "g0 g1 r0"),
    (MATMUL, opt("STAGE", ["g0"], 1), "no loop", "g0 g1 r0"),
    (MATMUL, opt("STAGE", "g0", 0), "does not load input 0", "1, 2, 3"),
    (MATMUL, opt("STAGE", "g0", 9), "does not load input 9", "1, 2, 3"),
    (MATMUL, opt("STAGE", "g0"), "does not load input None", "1, 2, 3"),
    (MATMUL, opt("STAGE", "g0", True), "does not load input True", "1, 2, 3"),
    (MATMUL, opt("STAGE", "g0", 1.0), "does not load input 1.0", "1, 2, 3"),
    (MATMUL, opt("STAGE", "g0", "1"), "does not load input '1'", "1, 2, 3"),
    (MATMUL, opt("STAGE", "g0", [1]), "does not load input [1]", "1, 2, 3"),
    (MATMUL, opt("PADTO", "g1", 8), "16 elements, a multiple of 8 already", ""),
    (MATMUL, opt("PADTO", "g1", 64), "would grow more than 4 times", "below 64"),
    (MATMUL, opt("PADTO", "g1", 1), "nothing to round up to", "from 2"),
    (MATMUL, opt("PADTO", "g1", 0), "nothing to round up to", "from 2"),
    (MATMUL, opt("PADTO", "g1", True), "nothing to round up to", "from 2"),
    (MATMUL, opt("PADTO", "g1", 6.0), "nothing to round up to", "from 2"),
    (MATMUL, opt("PADTO", "q7", 6), "no axis q7", "g0, g1, r0"),
    (MATMUL, opt("PADTO", 3, 6), "no axis 3", "g0, g1, r0"),
    (TILED, opt("PADTO", "r1", 6), "stage As has the size of r1", "PADTO first"),
    (TILED, opt("PADTO", "a_f1", 6), "only loops are padded", "g0"),
    (MATMUL, Opt("UPCAST", "g1", 4), "is not an opt", "OptOps.UPCAST"),  # type: ignore[arg-type]
    (MATMUL, Opt(["UPCAST"], "g1"), "is not an opt", "OptOps.UPCAST"),  # type: ignore[arg-type]
    (MATMUL, "UPCAST", "is not an opt", "OptOps.UPCAST"),
    (MATMUL, None, "is not an opt", "OptOps.UPCAST"),
]


@pytest.mark.parametrize(
    "graph, wrong, because, hint", ILLEGAL, ids=[str(i[1]) for i in ILLEGAL]
)
def test_what_is_illegal_says_why_and_what_would_be_legal(
    graph: UOp, wrong: Any, because: str, hint: str
) -> None:
    refusal = why_not(graph, wrong, LLVM)
    assert refusal is not None
    assert because in refusal.because and hint in refusal.hint
    with pytest.raises(KernelOptError) as caught:
        apply_opt(graph, wrong, LLVM)
    assert caught.value.because == refusal.because and caught.value.hint == refusal.hint


def test_lanes_are_not_in_the_loop_order() -> None:
    graph = apply(MATMUL, opt("UPCAST", "g1", 4))
    for wrong in (opt("ORDER", "u0", "g0"), opt("SWAP", "g0", "u0")):
        refusal = why_not(graph, wrong, LLVM)
        assert refusal is not None and "u0 is a lane axis" in refusal.because
    refusal = why_not(graph, opt("SPLIT", "u0", 2), LLVM)
    assert refusal is not None and "u0 is UPCAST" in refusal.because


def test_lanes_are_bounded_by_the_target() -> None:
    few = Target("LLVM", max_lanes=32)
    graph = apply(MATMUL, opt("UPCAST", "g1", 8), target=few)
    refusal = why_not(graph, opt("UPCAST", "g0", 8), few)
    assert refusal is not None
    assert "64 lanes at once" in refusal.because and "limit is 32" in refusal.because
    assert "at most 4" in refusal.hint
    assert why_not(graph, opt("UNROLL", "r0", 6), few) is not None
    assert why_not(graph, opt("UPCAST", "g0", 4), few) is None
    full = apply(graph, opt("UPCAST", "g0", 4), target=few)
    refusal = why_not(full, opt("UNROLL", "r0", 2), few)
    assert refusal is not None and "SPLIT" in refusal.hint


def test_nought_is_the_whole_axis_even_of_a_prime() -> None:
    assert sizes(apply(PRIME, opt("UPCAST", "g0", 0))) == {"g1": 11, "r0": 13, "u0": 7}
    assert apply(PRIME, opt("UPCAST", "g0", 0)) is apply(PRIME, opt("UPCAST", "g0", 7))
    assert sizes(apply(PRIME, opt("UNROLL", "r0", 0))) == {"g0": 7, "g1": 11, "n0": 13}


def test_an_axis_used_up_is_gone() -> None:
    graph = apply(PRIME, opt("UPCAST", "g0", 0))
    refusal = why_not(graph, opt("UPCAST", "g0", 7), LLVM)
    assert refusal is not None and "no axis g0" in refusal.because


def test_the_error_has_its_form() -> None:
    with pytest.raises(KernelOptError) as caught:
        apply_opt(MATMUL, opt("UPCAST", "g1", 5), LLVM, "In [7], line 3")
    assert str(caught.value) == (
        'cannot apply UPCAST("g1", 5)\n'
        "  because  axis g1 has 16 elements, and 5 does not divide 16\n"
        '  try      UPCAST("g1", 4)   (legal here: 2, 4, 8, 16)\n'
        "  where    In [7], line 3"
    )


def test_a_refused_opt_leaves_the_kernel() -> None:
    before = to_text(MATMUL)
    for graph, wrong, _, _ in ILLEGAL:
        with pytest.raises(KernelOptError):
            apply_opt(graph, wrong, LLVM)
    assert to_text(MATMUL) == before


# what is legal


@pytest.mark.parametrize("name", EXAMPLES)
def test_legal_opts_apply_and_give_different_kernels(name: str) -> None:
    for seed in range(count(30)):
        graph = random_form(EXAMPLES[name], seed, 2).graph
        listed = legal_opts(graph, LLVM)
        made = [apply(graph, each) for each in listed]
        assert len(set(made)) == len(made) and graph not in made
        for each in made:
            verify(each, "kernel")
        legal = [each for each in actions(graph) if why_not(graph, each, LLVM) is None]
        assert {apply(graph, each) for each in legal} == set(made)


def test_the_action_table_of_a_matmul() -> None:
    listed = legal_opts(MATMUL, LLVM)
    assert [str(o) for o in listed if o.axis == "g1"] == [
        'UPCAST("g1", 0)', 'UPCAST("g1", 2)', 'UPCAST("g1", 4)', 'UPCAST("g1", 8)',
        'LOCAL("g1", 2)', 'LOCAL("g1", 4)', 'LOCAL("g1", 8)', 'LOCAL("g1", 16)',
        'SPLIT("g1", 8)', 'PADTO("g1", 6)', 'PADTO("g1", 32)', 'ORDER("g1", "g0")',
        'STAGE("g1", 1)', 'STAGE("g1", 2)',
    ]  # fmt: skip
    assert [str(o) for o in listed if o.axis == "r0"] == [
        *[f'UNROLL("r0", {n})' for n in (0, 2, 3, 4, 6)],
        *[f'PADTO("r0", {n})' for n in (8, 32)], 'ORDER("r0", "g1")',
    ]  # fmt: skip


def test_a_kernel_without_axes_has_no_opts() -> None:
    zero = UOp.index(0)
    graph = kernel("", (at(param(0, 1), zero), load(param(1, 1), zero) + 1.0, ""))
    verify(graph, "kernel")
    assert legal_opts(graph, LLVM) == () and axes(graph) == ()


def test_opts_apply_to_the_axes_of_a_stage() -> None:
    graph = EXAMPLES["tiled_matmul"].graph
    after = apply(graph, opt("UPCAST", "a_f1", 4))
    assert "a_f1" not in sizes(after) and sizes(after)["u0"] == 4
    assert sizes(after)["b_f1"] == 4


def test_one_range_of_two_reductions_is_split_in_both() -> None:
    g0, r0 = axis("g0", 4), axis("r0", 8)
    x = load(param(1, 32), g0 * 8 + r0)
    value = reduced(Ops.MAX, x, r0) + reduced(Ops.ADD, x, r0)
    graph = kernel("g0 r0", (at(param(0, 4), g0), value, "g0"))
    after = apply(graph, opt("UNROLL", "r0", 2))
    reduces = [n for n in after.toposort() if n.op is Ops.REDUCE]
    assert [{r.axis_name for r in n.src[1:]} for n in reduces] == [{"r0", "n0"}] * 2


# opts as values


@pytest.mark.parametrize(
    "value, code, short",
    [
        (opt("UPCAST", "g1", 4), "Opt(OptOps.UPCAST, 'g1', 4)", 'UPCAST("g1", 4)'),
        (opt("SWAP", "g0", "r0"), "Opt(OptOps.SWAP, 'g0', 'r0')", 'SWAP("g0", "r0")'),
        (opt("UNROLL", 0, 0), "Opt(OptOps.UNROLL, 0, 0)", "UNROLL(0, 0)"),
    ],
)
def test_an_opt_prints_as_python_that_makes_it(
    value: Opt, code: str, short: str
) -> None:
    assert repr(value) == code and str(value) == short
    assert eval(code, {"Opt": Opt, "OptOps": OptOps}) == value
    assert hash(value) == hash(eval(code, {"Opt": Opt, "OptOps": OptOps}))


def test_ranges_are_those_of_the_graph() -> None:
    assert {name: r.extent for name, r in ranges(MATMUL).items()} == sizes(MATMUL)
