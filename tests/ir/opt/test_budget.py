"""What the memory of a kernel holds: an opt is refused exactly where lowering would refuse what
it makes, one byte more or less."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from tests.ir.opt.support import MATMUL, apply, check_what_is_offered, opt, sizes
from tests.support import count
from tests.tools.kernels import EXAMPLES, LLVM, random_form
from workbench.base.errors import CompileError, KernelOptError
from workbench.base.target import Target
from workbench.ir.lower.statement_tree import build_tree
from workbench.ir.nest.recompute import recompute_rows
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import actions, apply_if_legal, apply_opt, legal_opts, legality, why_not
from workbench.ir.opt.opt import Opt, OptOps, ranges

WORK_ITEMS = {AxisType.LOCAL, AxisType.GROUP_REDUCE}


def allocated(graph: UOp) -> int:
    """Return the bytes of scratch that the statement tree of a kernel defines."""
    defines = [n for n in build_tree(graph, LLVM).toposort() if n.op is Ops.DEFINE]
    return sum(
        n.dtype.itemsize * math.prod(n.arg.shape) for n in defines if n.arg.space == "scratch"
    )


def lowers(graph: UOp, target: Target) -> bool:
    """Whether the arrays of a kernel fit, as they are."""
    try:
        build_tree(graph, target)
    except CompileError:
        return False
    return True


def drawn(graph: UOp, dice: random.Random) -> Opt:
    """Return an opt of the action table, or any two loops moved."""
    loops = graph.arg.order
    if len(loops) > 1 and dice.random() < 0.5:
        return Opt(dice.choice([OptOps.ORDER, OptOps.SWAP]), *dice.sample(loops, 2))
    return dice.choice([*actions(graph, LLVM)])


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_opts_allow_is_what_lowering_takes(name: str) -> None:
    dice, arrays = random.Random(name), 0
    for seed in range(count(100)):
        graph = random_form(EXAMPLES[name], seed, dice.randrange(4)).graph
        for _ in range(4):
            chosen = drawn(graph, dice)
            if why_not(graph, chosen, LLVM) is not None:
                continue
            candidate, _ = apply_opt(graph, chosen, LLVM)
            needed = allocated(candidate)
            arrays += needed > 0
            for limit in {max(0, needed - 1), needed}:
                agree(graph, chosen, candidate, replace(LLVM, scratch_bytes=limit))
    reduces = any(n.op is Ops.REDUCE for n in EXAMPLES[name].graph.toposort())
    assert arrays or not reduces, "no draw needed any memory"


def agree(graph: UOp, chosen: Opt, candidate: UOp, target: Target) -> None:
    """Fail unless `chosen` is legal just where `candidate` lowers: as it is, or, where the kernel
    before it does not, without its rows. Work-items that share nothing run one after another here,
    in memory that a GPU has for each: those may be refused sooner."""
    refusal = why_not(graph, chosen, target)
    if refusal is None:
        fits = lowers(candidate, target)
        if not lowers(graph, target):
            fits = fits or lowers(recompute_rows(candidate, target), target)
        assert fits, f"{chosen} is legal with {target.scratch_bytes}"
        assert apply_if_legal(graph, chosen, target) is candidate
        return
    has_work_items = any(r.axis_kind in WORK_ITEMS for r in ranges(candidate).values())
    assert has_work_items or not lowers(candidate, target), f"{chosen}: {refusal}"
    assert f"{target.scratch_bytes:,}" in refusal.because and refusal.hint
    check_what_is_offered(graph, chosen, refusal.hint, target)
    assert apply_if_legal(graph, chosen, target) is None
    with pytest.raises(KernelOptError) as caught:
        apply_opt(graph, chosen, target)
    assert (caught.value.because, caught.value.hint) == tuple(refusal)


def test_a_loop_order_whose_sums_are_too_many_says_what_would_do() -> None:
    """8 x 16 sums must outlive r0 outside of both: 512 bytes."""
    outside, little = opt("ORDER", "r0", "g0"), Target("LLVM", scratch_bytes=511)
    refusal = why_not(MATMUL, outside, little)
    assert refusal is not None
    assert "512 bytes over g0, g1" in refusal.because and "511" in refusal.because
    assert "SPLIT of g0 first" in refusal.hint
    assert why_not(MATMUL, outside, replace(little, scratch_bytes=512)) is None
    split = apply(MATMUL, opt("SPLIT", "g0", 4), target=little)
    assert sizes(split)["g2"] == 4
    apply(split, opt("ORDER", "r0", "g2"), target=little)  # as it says


def test_menus_leave_out_what_does_not_fit() -> None:
    outside, little = opt("ORDER", "r0", "g1"), Target("LLVM", scratch_bytes=63)
    assert outside in legal_opts(MATMUL, LLVM)
    assert outside not in legal_opts(MATMUL, little)
    legal, refused = legality(MATMUL, little)
    assert legal == legal_opts(MATMUL, little)
    assert "acc0 is an array of 64 bytes over g1" in refused[outside]
    assert "bytes of scratch memory" in refused[outside]


def test_a_hint_offers_only_amounts_that_fit() -> None:
    """Partial sums of 16 lanes: 64 bytes for each part."""
    little = Target("LLVM", scratch_bytes=200)
    graph = apply(MATMUL, opt("UPCAST", "g1", 0), target=little)
    for amount in (4, 5):  # too much, and no divisor
        refusal = why_not(graph, opt("GROUP", "r0", amount), little)
        assert refusal is not None
        assert refusal.hint.startswith('GROUP("r0", 3)   (legal here: 2, 3)')
    refusal = why_not(graph, opt("GROUP", "r0", 4), Target("LLVM", scratch_bytes=127))
    assert refusal is not None and refusal.hint.startswith("another axis")
