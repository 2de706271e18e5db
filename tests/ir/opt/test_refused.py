"""What is refused: because of what, and what to try instead. The kernel stays as it was."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.ir.opt.support import MATMUL, PRIME, apply, opt, sizes
from tests.support import by_rows
from tests.tools.kernels import EXAMPLES, LLVM, matmul_bias_relu
from workbench.base.errors import KernelOptError
from workbench.base.target import Target
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_opt, why_not
from workbench.ir.opt.opt import Opt
from workbench.ir.text.printer import to_text

THREADED = apply(MATMUL, opt("THREAD", "g0", 2))
STAGED = apply(MATMUL, opt("STAGE", "g1", 2))
GROUPED = apply(MATMUL, opt("GROUP", "r0", 12), opt("SPLIT", "x0", 4))
ONE_ROW = matmul_bias_relu(1, 3, 2).graph
LONG = matmul_bias_relu(771, 3, 2).graph
COPY = EXAMPLES["transpose"].graph
SAME = EXAMPLES["gram"].graph
TWICE = apply(SAME, opt("STAGE", "g1", 1))
ILLEGAL: list[tuple[UOp, Any, str, str]] = [
    # kernel, opt, because, try
    (MATMUL, opt("UPCAST", "g1", 5), "16 elements, and 5 does not divide 16", "2, 4, 8, 16"),
    (MATMUL, opt("UPCAST", "g1", 32), "32 does not divide 16", 'UPCAST("g1", 16)'),
    (MATMUL, opt("UPCAST", "g1", 1), "1 splits nothing: an amount is 2 or more", "legal here: 2"),
    (MATMUL, opt("UPCAST", "g1", -4), "-4 splits nothing: an amount is 2 or more", "legal here: 2"),
    (MATMUL, opt("UPCAST", "g1", True), "a whole number, not True", "4"),
    (MATMUL, opt("UPCAST", "g1", False), "a whole number, not False", "4"),
    (MATMUL, opt("UPCAST", "g1", 4.0), "a whole number, not 4.0", "4"),
    (MATMUL, opt("UPCAST", "g1", "4"), "a whole number, not '4'", "4"),
    (MATMUL, opt("UPCAST", "g1"), "takes an axis and an amount", "4"),
    (MATMUL, opt("PADTO", "g1"), "takes an axis and an amount", "from 2"),
    (MATMUL, opt("THREAD", None), "takes an axis and an amount", "g0"),
    (MATMUL, opt("UPCAST", "g1", 10**30), "does not divide 16", "2, 4, 8, 16"),
    (MATMUL, opt("UPCAST", "q7", 4), "no axis q7", "g0 (8), g1 (16)"),
    (MATMUL, opt("UPCAST", "", 4), "no axis", "g0 (8), g1 (16)"),
    (MATMUL, opt("UPCAST", None, 4), "takes an axis and an amount", "g0 (8), g1 (16)"),
    (MATMUL, opt("UPCAST", ["g1"], 4), "no axis", "g0 (8), g1 (16)"),
    (MATMUL, opt("UPCAST", 2, 4), "no axis 2", "g0 (8), g1 (16)"),
    (MATMUL, opt("UPCAST", -1, 4), "no axis -1", "g0 (8), g1 (16)"),
    (MATMUL, opt("UPCAST", True, 4), "no axis True", "g0 (8), g1 (16)"),
    (MATMUL, opt("UPCAST", 1.0, 4), "no axis 1.0", "g0 (8), g1 (16)"),
    (MATMUL, opt("UPCAST", "r0", 4), "applies to output axes, and r0 is REDUCE", "g0 (8), g1"),
    (MATMUL, opt("LOCAL", "r0", 4), "applies to output axes, and r0 is REDUCE", "g0 (8), g1"),
    (MATMUL, opt("UNROLL", "g0", 4), "applies to reduce axes, and g0 is GLOBAL", "r0 (12)"),
    (MATMUL, opt("UNROLL", "r0", 5), "5 does not divide 12", "2, 3, 4, 6, 12"),
    (MATMUL, opt("UNROLL", 1, 4), "no axis 1", "r0 (12)"),
    (MATMUL, opt("SPLIT", "r0", 12), "leaves no outer loop", 'SPLIT("r0", 6)'),
    (MATMUL, opt("SPLIT", "r0", 0), "leaves no outer loop", "(legal here: 2, 3, 4, 6)"),
    (LONG, opt("SPLIT", "g1", 0), "leaves no outer loop", "another axis"),
    (LONG, opt("THREAD", "g0", 0), "256 is the limit", 'THREAD("g0", 3)'),
    (MATMUL, opt("SPLIT", "r0", 7), "7 does not divide 12", "SPLIT"),
    (PRIME, opt("UPCAST", "g0", 2), "7 elements, and 2 does not divide 7", "7"),
    (PRIME, opt("UNROLL", "r0", 4), "4 does not divide 13", "13"),
    (PRIME, opt("SPLIT", "g1", 8), "8 does not divide 11", ""),
    (MATMUL, opt("ORDER", "g0", "g1"), "g0 stands right before g1 already", "g0 g1 r0"),
    (MATMUL, opt("ORDER", "g0", "g0"), "cannot move past itself", "g0 g1 r0"),
    (MATMUL, opt("SWAP", "g0", "g0"), "cannot move past itself", "g0 g1 r0"),
    (MATMUL, opt("ORDER", "q7", "g0"), "no axis q7", "g0 g1 r0"),
    (MATMUL, opt("SWAP", "g0", "q7"), "no axis q7", "g0 g1 r0"),
    (MATMUL, opt("ORDER", "g0"), "needs a second axis", "g0 g1 r0"),
    (MATMUL, opt("ORDER", ["g0"], "g1"), "no axis", "g0 g1 r0"),
    (MATMUL, opt("SWAP", 0, 3), "no axis 3", "g0 g1 r0"),
    (MATMUL, opt("SWAP", 1, 1), "cannot move past itself", "g0 g1 r0"),
    (MATMUL, opt("ORDER", -1, 0), "no axis -1", "g0 g1 r0"),
    (MATMUL, opt("ORDER", True, 0), "no axis True", "g0 g1 r0"),
    (MATMUL, opt("STAGE", 3, 1), "no loop 3", "g0 g1 r0"),
    (MATMUL, opt("STAGE", "r0", 1), "does not change inside of r0", "further out"),
    (MATMUL, opt("STAGE", "q7", 1), "no loop q7", "g0 g1 r0"),
    (MATMUL, opt("STAGE", ["g0"], 1), "no loop", "g0 g1 r0"),
    (MATMUL, opt("STAGE", "g0", 0), "does not load input 0", "1, 2, 3"),
    (MATMUL, opt("STAGE", "g0", 9), "does not load input 9", "1, 2, 3"),
    (MATMUL, opt("STAGE", "g0"), "takes an axis and an input", "1, 2, 3"),
    (MATMUL, opt("STAGE", "g0", True), "does not load input True", "1, 2, 3"),
    (MATMUL, opt("STAGE", "g0", 1.0), "does not load input 1.0", "1, 2, 3"),
    (MATMUL, opt("STAGE", "g0", "1"), "does not load input '1'", "1, 2, 3"),
    (MATMUL, opt("STAGE", "g0", [1]), "does not load input [1]", "1, 2, 3"),
    (SAME, opt("STAGE", "r0", 1), "2 different indexes", "another loop"),
    (TWICE, opt("STAGE", "r0", 1), "does not change inside of r0", "further out"),
    (THREADED, opt("ORDER", "g0", "t0"), "t0 is spread over threads", "stays outermost"),
    (THREADED, opt("THREAD", "g1", 2), "t0 is spread over 2 threads already", "one THREAD"),
    (THREADED, opt("SPLIT", "t0", 2), "SPLIT applies to loop axes, and t0 is THREAD", "g0"),
    (MATMUL, opt("THREAD", "r0", 2), "applies to global output axes", "g0 (8)"),
    (MATMUL, opt("THREAD", "g1", 5), "5 does not divide 16", "THREAD"),
    (MATMUL, opt("GROUP", "g1", 4), "applies to reduce axes", "r0 (12)"),
    (MATMUL, opt("GROUPTOP", "r0", 5), "5 does not divide 12", "GROUPTOP"),
    (MATMUL, opt("PADTO", "g1", 8), "16 elements, a multiple of 8 already", ""),
    (MATMUL, opt("PADTO", "g1", 64), "would grow 4 times or more", "below 64"),
    (MATMUL, opt("PADTO", "g1", 1), "cannot be rounded up", "from 2"),
    (MATMUL, opt("PADTO", "g1", 0), "cannot be rounded up", "from 2"),
    (MATMUL, opt("PADTO", "g1", True), "cannot be rounded up", "from 2"),
    (MATMUL, opt("PADTO", "g1", 6.0), "cannot be rounded up", "from 2"),
    (MATMUL, opt("PADTO", "q7", 6), "no axis q7", "g0, g1, r0"),
    (MATMUL, opt("PADTO", 3, 6), "no axis 3", "g0, g1, r0"),
    (MATMUL, opt("PADTO", "g1", -6), "cannot be rounded up", "from 2"),
    (MATMUL, opt("PADTO", "g1", 16), "a multiple of 16 already", "without padding"),
    (GROUPED, opt("PADTO", "x1", 8), "beyond its end, group0", "before the axis is"),
    (STAGED, opt("STAGE", "g1", 2), "input 2 is staged already, as Bs", "1, 3"),
    (STAGED, opt("STAGE", "g0", 2), "input 2 is staged already, as Bs", "1, 3"),
    (STAGED, opt("STAGE", "g0", 4), "does not load input 4", "1, 3"),
    (ONE_ROW, opt("UPCAST", "g0", 0), "g0 has one element", 'PADTO("g0", 2)'),
    (ONE_ROW, opt("THREAD", "g0", 2), "g0 has one element", 'PADTO("g0", 2)'),
    (COPY, opt("UNROLL", "r0", 4), "no axis r0", "reduce axes: none"),
    (COPY, opt("GROUP", 0, 4), "no axis 0", "reduce axes: none"),
    (MATMUL, opt("NOLOCALS", 0), "takes no axis", "OptOps.NOLOCALS"),
    (MATMUL, opt("NOLOCALS", None, 0), "takes no axis", "OptOps.NOLOCALS"),
    (MATMUL, opt("TC", 0, 0), "no tensor cores", "UPCAST"),
    (MATMUL, Opt("UPCAST", "g1", 4), "is not an opt", "OptOps.UPCAST"),  # type: ignore[arg-type]
    (MATMUL, Opt(["UPCAST"], "g1"), "is not an opt", "OptOps.UPCAST"),  # type: ignore[arg-type]
    (MATMUL, "UPCAST", "is not an opt", "OptOps.UPCAST"),
    (MATMUL, None, "is not an opt", "OptOps.UPCAST"),
]


@by_rows("graph, wrong, because, hint", ILLEGAL, ids=[str(i[1]) for i in ILLEGAL])
def test_what_is_illegal_says_why_and_what_would_be_legal(
    graph: UOp, wrong: Any, because: str, hint: str
) -> None:
    refusal = why_not(graph, wrong, LLVM)
    assert refusal is not None
    assert because in refusal.because and hint in refusal.hint
    with pytest.raises(KernelOptError) as caught:
        apply_opt(graph, wrong, LLVM)
    assert caught.value.because == refusal.because and caught.value.hint == refusal.hint


@by_rows("op", ["UPCAST", "UNROLL", "LOCAL", "THREAD", "GROUP", "GROUPTOP", "SPLIT"])
@by_rows("amount", [-(2**63), -1, 1, 5, 7, 13, 10**30])
def test_no_split_is_by_nothing_or_by_what_does_not_divide(op: str, amount: int) -> None:
    name = "r0" if op in ("UNROLL", "GROUP", "GROUPTOP") else "g1"
    refusal = why_not(MATMUL, opt(op, name, amount), LLVM)
    words = "splits nothing" if amount < 2 else "does not divide"
    assert refusal is not None and words in refusal.because and refusal.hint


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
        '  try      UPCAST("g1", 4)   (legal here: 2, 4, 8, 16), or PADTO("g1", 5) first\n'
        "  where    In [7], line 3"
    )


def test_a_refused_opt_leaves_the_kernel() -> None:
    before = to_text(MATMUL)
    for graph, wrong, _, _ in ILLEGAL:
        with pytest.raises(KernelOptError):
            apply_opt(graph, wrong, LLVM)
    assert to_text(MATMUL) == before


def test_every_amount_that_a_hint_offers_is_legal() -> None:
    few = Target("LLVM", max_lanes=32)
    crowded = apply(MATMUL, opt("UPCAST", "g0", 8), target=few)
    wrong = [opt(op, "g1", 5) for op in ("UPCAST", "SPLIT", "LOCAL")]
    for graph in (MATMUL, crowded):
        for each in (*wrong, opt("UNROLL", "r0", 5), opt("SPLIT", "r0", 5)):
            refusal = why_not(graph, each, few)
            assert refusal is not None
            offered = re.search(r"legal here: ([\d, ]+)", refusal.hint)
            assert offered is not None
            for amount in map(int, offered[1].split(", ")):
                assert why_not(graph, Opt(each.op, each.axis, amount), few) is None


def test_the_outer_one_of_two_axes_of_a_tile_is_padded() -> None:
    """Its steps beyond the end have elements of their own; those of the inner one have not."""
    assert sizes(GROUPED)["x0"] == 3 and sizes(GROUPED)["x1"] == 4
    assert why_not(GROUPED, opt("PADTO", "x0", 4), LLVM) is None


def test_a_hint_offers_no_amount_where_none_is_legal() -> None:
    refusal = why_not(PRIME, opt("SPLIT", "g1", 8), LLVM)
    assert refusal is not None
    assert refusal.hint.startswith("another axis (no amount is legal here)")
    assert refusal.hint.endswith(', or PADTO("g1", 8) first')
