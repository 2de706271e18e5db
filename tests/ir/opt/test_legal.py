"""Which opts are legal, and that what a menu lists applies."""

from __future__ import annotations

import pytest

from tests.ir.opt.support import MATMUL, apply, opt, sizes
from tests.ir.samples import at, axis, kernel, load, param, reduced
from tests.support import count
from tests.tools.kernels import EXAMPLES, LLVM, random_form
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import actions, legal_opts, why_not
from workbench.ir.opt.opt import OptOps, axes
from workbench.ir.verify.verify import verify


@pytest.mark.parametrize("name", EXAMPLES)
def test_legal_opts_apply_and_give_different_kernels(name: str) -> None:
    for seed in range(count(30, 30)):
        graph = random_form(EXAMPLES[name], seed, 2).graph
        listed = legal_opts(graph, LLVM)
        variants = [apply(graph, each) for each in listed]
        assert len(set(variants)) == len(variants) and graph not in variants
        for each in variants:
            verify(each, "kernel")
        legal = [each for each in actions(graph, LLVM) if why_not(graph, each, LLVM) is None]
        assert {apply(graph, each) for each in legal} == set(variants)


def test_the_action_table_of_a_matmul() -> None:
    named = {OptOps[n] for n in "UPCAST LOCAL SPLIT PADTO ORDER STAGE".split()}
    named |= {OptOps.UNROLL, OptOps.GROUP, OptOps.GROUPTOP}
    listed = [o for o in legal_opts(MATMUL, LLVM) if o.op in named]
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
