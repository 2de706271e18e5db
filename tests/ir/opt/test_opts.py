"""Opts: what each makes of a kernel, what it never touches, and which are legal."""

from __future__ import annotations

import numpy as np
import pytest

from tests.filecheck import filecheck
from tests.ir.opt.support import MATMUL, apply, opt, sizes
from tests.ir.samples import at, axis, kernel, load, param, reduced
from tests.kernels import EXAMPLES, LLVM, interpreted, random_form, run
from tests.support import count
from workbench.backends.device import Device
from workbench.ir.axis import AxisType
from workbench.ir.expr import to_expr
from workbench.ir.lower.lower import lower
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
from workbench.ir.uop import UOp
from workbench.ir.verify import verify

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


def test_every_op_is_tested_above_and_has_a_caption() -> None:
    shown = {o.op for opts, _ in AFTER.values() for o in opts}
    assert shown == set(OptOps) - {OptOps.TC}, "which is refused everywhere"
    for op in OptOps:
        filecheck(
            caption(op), f"CHECK: {op.name} here: {{{{.+}}}}. On a GPU: {{{{.+}}}}."
        )


def test_order_undoes_order_and_swap_undoes_swap() -> None:
    assert apply(MATMUL, opt("SWAP", "g0", "r0"), opt("SWAP", "g0", "r0")) is MATMUL
    assert apply(MATMUL, opt("ORDER", "r0", "g1"), opt("ORDER", "g1", "r0")) is MATMUL


def test_without_work_groups_the_program_here_is_the_same() -> None:
    plain, without = (
        lower(graph, LLVM) for graph in (MATMUL, apply(MATMUL, opt("NOLOCALS")))
    )
    assert without[0].src == plain[0].src and without[1][1:] == plain[1][1:]
    sources = [Device["LLVM"].render(*made).text for made in (plain, without)]
    assert sources[0] == sources[1]


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


@pytest.mark.parametrize(
    "given, named",
    [
        (opt("SWAP", 0, 1), opt("SWAP", "g0", "g1")),
        (opt("SWAP", "g0", 2), opt("SWAP", "g0", "r0")),
        (opt("ORDER", 2, 0), opt("ORDER", "r0", "g0")),
        (opt("ORDER", 1, "g0"), opt("ORDER", "g1", "g0")),
        (opt("STAGE", 0, 2), opt("STAGE", "g0", 2)),
        (opt("STAGE", 1, 1), opt("STAGE", "g1", 1)),
    ],
)  # fmt: skip
def test_an_integer_counts_the_loops_that_are_moved_or_staged_in(
    given: Opt, named: Opt
) -> None:
    assert apply_opt(MATMUL, given, LLVM) == apply_opt(MATMUL, named, LLVM)
    assert resolve(MATMUL, given) == named


def test_integers_skip_what_has_no_place_in_the_loop_order() -> None:
    graph = apply(MATMUL, opt("UPCAST", "g0", 2), opt("ORDER", "r0", "g0"))
    # listed by kind first: g0 g1 r0 u0, whatever the order of the loops
    assert [resolve(graph, opt("SWAP", n, 0)).axis for n in range(4)] == [
        "g0",
        "g1",
        "r0",
        3,
    ]


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
        legal = [
            each for each in actions(graph, LLVM) if why_not(graph, each, LLVM) is None
        ]
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
        'GROUP("r0", 0)', 'GROUP("r0", 4)', 'GROUPTOP("r0", 4)',
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


def test_every_input_has_a_name_for_its_tile() -> None:
    """Letters are 26; a fused sum can have more inputs."""
    g0, r0, inputs = axis("g0", 4), axis("r0", 3), 29
    loads = [load(param(slot, 3), r0) for slot in range(1, inputs + 1)]
    total = reduced(Ops.ADD, sum(loads[1:], loads[0]), r0)
    graph = kernel("g0 r0", (at(param(0, 4), g0), total, "g0"))
    for slot in range(1, inputs + 1):
        graph, _ = apply_opt(graph, opt("STAGE", "g0", slot), LLVM)
    verify(graph, "kernel")
    names = [*"abcdefghijklmnopqrstuvwxyz", "in27", "in28", "in29"]
    assert {f"{name}_r0" for name in names} <= set(ranges(graph))
    stages = {n.arg[0] for n in graph.toposort() if n.op is Ops.STAGE}
    assert stages == {f"{name.upper()}s" for name in names}
    arrays = [np.zeros(4, np.float32), *np.eye(29, 3, dtype=np.float32)]
    for device in ("PYTHON", "LLVM"):
        assert run(graph, device, arrays).tolist() == [3.0] * 4
