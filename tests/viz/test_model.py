"""Records as plain data: loop nests, titles, passes, rewrites. No HTML, no Jupyter."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.viz.support import TARGET, array, check_golden, kernel_of, matmul, softmax
from workbench.base.errors import WorkbenchError
from workbench.base.trace import PassRecord
from workbench.ir.node.ops import Ops
from workbench.ir.opt.opt import Opt, OptOps
from workbench.ir.schedule.plan import Decision
from workbench.ir.text.program import to_expr
from workbench.measure.kernel_time import seconds_text
from workbench.tensor.tensor import Tensor
from workbench.viz import explore
from workbench.viz.decision_text import decisions_text, passes_text
from workbench.viz.model import passes as rewrites
from workbench.viz.model.decisions import cost_choices, cost_sentences, printed_decisions
from workbench.viz.model.loops import loop_nest
from workbench.viz.model.passes import pass_rows
from workbench.viz.model.title import decoded, value_name
from workbench.viz.model.words import brief_bytes, bytes_text, count_text, named_count, plural
from workbench.viz.text import nest_text

TILE = (Opt(OptOps.UPCAST, "g1", 4), Opt(OptOps.UPCAST, "g0", 2), Opt(OptOps.UNROLL, "r0", 4))


def test_loops_of_a_plain_matmul() -> None:
    check_golden("loops_matmul.txt", nest_text(loop_nest(matmul().kernels[0].ast, TARGET)))


def test_lanes_are_rows_of_their_own() -> None:
    kernel = matmul().kernels[0].apply(*TILE)
    check_golden("loops_tile.txt", nest_text(loop_nest(kernel.ast, TARGET)))


def test_a_loop_order_that_needs_an_array() -> None:
    kernel = matmul().kernels[0].apply(Opt(OptOps.ORDER, "r0", "g1"))
    check_golden("loops_ikj.txt", nest_text(loop_nest(kernel.ast, TARGET)))


def test_loops_of_a_softmax() -> None:
    nests = [nest_text(loop_nest(k.ast, TARGET)) for k in softmax().kernels]
    check_golden("loops_softmax.txt", "\n\n".join(nests))


def test_rows_know_what_they_stand_in() -> None:
    rows = loop_nest(matmul().kernels[0].ast, TARGET).rows
    assert [(r.kind, r.depth, r.axis) for r in rows] == [
        ("loop", 0, "g0"),
        ("loop", 1, "g1"),
        ("statement", 2, ""),
        ("loop", 2, "r0"),
        ("statement", 3, ""),
        ("statement", 2, ""),
    ]


TITLES: dict[str, Callable[[], Tensor]] = {
    "matmul+bias+relu": lambda: (array(6, 8) @ array(8, 4) + array(4)).relu(),
    "matmul": lambda: array(6, 8) @ array(8, 4),
    "dot": lambda: (array(8) * array(8)).sum(),
    "sum": lambda: array(6, 8).sum(axis=1),
    "max": lambda: array(6, 8).max(axis=0),
    "mean": lambda: array(6, 8).mean(axis=0),
    "sum+sqrt": lambda: (array(6, 8) * 2).sum(axis=1).sqrt(),
    "elementwise exp2+add": lambda: array(6, 8).exp2() + array(6, 8),
    "elementwise exp": lambda: array(6, 8).exp(),
    "elementwise log": lambda: array(6, 8).log(),
    "elementwise sigmoid": lambda: array(6, 8).sigmoid(),
    "elementwise tanh": lambda: array(6, 8).tanh(),
    "elementwise tan": lambda: array(6, 8).tan(),
    "elementwise sin+cos+add": lambda: array(6, 8).sin() + array(6, 8).cos(),
    "elementwise mul+add+relu": lambda: (array(6) * 3 + 1).relu(),
    "copy": lambda: array(6, 8).transpose(0, 1).contiguous(),
}


@pytest.mark.parametrize("title", TITLES)
def test_titles(title: str) -> None:
    assert explore(TITLES[title]()).kernels[0].title == title


@pytest.mark.parametrize(
    ("size", "window", "stride", "dilation", "title"),
    [
        (16, 3, 1, 1, "conv"),
        (16, 3, 2, 1, "conv"),
        (23, 7, 2, 1, "conv"),
        (16, 3, 1, 2, "conv"),
        (16, 2, 2, 1, "matmul"),  # no element is in two windows
        (16, 1, 1, 1, "matmul"),
    ],
)
def test_a_convolution_is_a_product_whose_windows_overlap(
    size: int, window: int, stride: int, dilation: int, title: str
) -> None:
    weight = array(4, 3, window, window)
    y = array(2, 3, size, size).conv2d(weight, stride=stride, dilation=dilation)
    assert explore(y).kernels[-1].title == title


@pytest.mark.parametrize("title", TITLES)
def test_a_name_says_whether_it_reduces_and_its_loops(title: str) -> None:
    kernel = kernel_of(TITLES[title]())
    first, *sizes = kernel.arg.name.split("_")
    kind, _, loops = decoded(kernel).partition("; ")
    kinds = {True: "r: it reduces", False: "e: element by element"}
    assert kind == kinds[any(n.op is Ops.REDUCE for n in kernel.toposort())]
    assert loops.split(", ") == [
        f"{n} {name}" for n, name in zip(sizes, kernel.arg.order, strict=True)
    ]
    for name in ("mine", "r_9", f"x_{'_'.join(sizes)}"):
        assert decoded(kernel.replace(arg=kernel.arg._replace(name=name))) == ""


def test_decisions_have_reasons() -> None:
    decisions = matmul().decisions
    text = decisions_text(printed_decisions(decisions), len(decisions))
    check_golden("decisions_matmul.txt", text)
    assert str(decisions) == text


def test_passes_in_order_with_their_counts() -> None:
    kernel = matmul().kernels[0].apply(*TILE)
    text = passes_text(pass_rows(kernel.compile("LLVM").passes), times=False)
    check_golden("passes_tile.txt", text)


def test_nested_and_idle_passes() -> None:
    records = [
        PassRecord("outer", "", 1, 2),
        PassRecord("inner", "", 1, 1, parent="outer"),
        PassRecord("broken", "", 2, None, error=ValueError("no")),
    ]
    rows = pass_rows(records)
    assert [(r.depth, r.changed) for r in rows] == [(0, True), (1, False), (0, True)]
    assert passes_text(rows, times=False).split("\n") == [
        "outer    done",
        "  inner  changed nothing",
        "broken   failed: ValueError: no",
    ]


def rewriting() -> PassRecord:
    """Return a pass of a real compilation that rewrites: exp2 becomes arithmetic."""
    records = softmax().kernels[0].compile("LLVM").passes
    return next(r for r in records if r.name == "decompose")


def test_replay_goes_from_the_input_to_the_result() -> None:
    record = rewriting()
    states = [rewrites.state(record, k) for k in range(len(record.matches) + 1)]
    assert states[0] is record.before
    assert states[-1] is record.after
    assert len(set(states)) == len(states)
    with pytest.raises(WorkbenchError, match="has no state"):
        rewrites.state(record, len(states))


def test_a_match_as_text() -> None:
    record = rewriting()
    first = rewrites.step(record, 1)
    match = record.matches[0]
    assert (first.before, first.after) == (to_expr(match.before), to_expr(match.after))
    assert first.rule == match.rule.name
    assert first.rule_text.startswith(f"{first.rule}: ")
    assert first.difference.startswith("--- before\n+++ after\n@@")
    with pytest.raises(WorkbenchError, match="has no match"):
        rewrites.step(record, 0)


def test_decisions_are_not_replayed() -> None:
    ex = softmax()
    decide = next(r for r in ex.passes if r.name == "decide")
    assert not rewrites.is_replayable(decide)
    assert rewrites.state(decide, 0) is decide.before
    assert rewrites.step(decide, 1).doc == decide.matches[0].rule.reason


def test_words() -> None:
    assert [bytes_text(n) for n in (0, 320, 1000, 20480, 1 << 21)] == [
        "0 B", "320 B", "1000 B", "20 KiB", "2 MiB",
    ]  # fmt: skip
    assert [seconds_text(s) for s in (2.0, 0.0034, 1.25e-5)] == ["2 s", "3.4 ms", "12.5 µs"]
    assert [plural(2, w) for w in ("kernel", "pass", "copy")] == [
        "2 kernels", "2 passes", "2 copies",
    ]  # fmt: skip


def test_figures_in_few_letters() -> None:
    texts = [brief_bytes(bytes_text(n)) for n in (0, 320, 1000, 20480, 3 << 19)]
    assert texts == ["0", "320", "1000", "20K", "1.5M"]
    assert brief_bytes("<= 20 KiB") == "≤20K"
    counts = [count_text(n) for n in (9999, 12000, 99_960, 83.3e6, 2e9)]
    assert counts == ["9999", "12.0 k", "100 k", "83.3 M", "2.00 G"]
    assert named_count("reuse", 64) == "reuse 64"
    assert named_count("tile bytes", 20480) == "tile 20 KiB"
    assert named_count("bytes in place", 320) == "in place 320 B"


ESTIMATES = {
    "evaluations": 48_000, "elements": 16_000,
    "cost_to_recompute": 64_000, "cost_to_store": 32_000,
}  # fmt: skip
FUSED_THRICE = (
    "each of its 16,000 elements {} computed 3 times: as long as 64.0 k operations more, with its "
    "reads. "
)


@pytest.mark.parametrize(
    ("stored", "more", "text"),
    [
        (
            True,
            {},
            f"Fused, {FUSED_THRICE.format('would be')}"
            "Storing it and reading it back takes as long as 32.0 k operations.",
        ),
        (
            True,
            {"cost_to_recompute": 500, "evaluations": 40_000},
            "Fused, each of its 16,000 elements would be computed 2.50 times: as long as 500 "
            "operations more, with its reads. Storing it and reading it back takes as long as "
            "32.0 k operations. By cost alone it would be fused.",
        ),
        (
            False,
            {},
            f"Fused, {FUSED_THRICE.format('is')}"
            "Storing it and reading it back would take as long as 32.0 k operations.",
        ),
        (
            False,
            {"cost_to_stage": 9000},
            f"Without that row, {FUSED_THRICE.format('would be')}"
            "Keeping the row takes as long as 9000 operations, storing all of it as long as "
            "32.0 k operations.",
        ),
        (
            False,
            {"elements": 1, "evaluations": 6, "cost_to_recompute": 1},
            "Fused, its one element is computed 6 times: as long as 1 operation more, with its "
            "reads. Storing it and reading it back would take as long as 32.0 k operations.",
        ),
        (
            False,
            {"elements": 1, "evaluations": 1, "cost_to_recompute": 0},
            "Storing its one element and reading it back would take as long as 32.0 k operations.",
        ),
        (True, {"elements": 0}, ""),
    ],
)
def test_costs_are_sentences(stored: bool, more: dict[str, float], text: str) -> None:
    node = matmul().outputs[0]
    decision = Decision("store-cheaper", node, stored, "it is", ESTIMATES | more)
    assert cost_sentences(decision) == text


def test_what_only_another_plan_says_is_no_number() -> None:
    """Fused, the epilogue of a product may leave the product in memory. By hand, it is charged with
    its own operations, of which a register tile saves most."""
    x = array(64, 64)
    relu = (x @ x).relu()
    ex = explore(relu @ x)
    (row,) = [d for d in ex.decisions if d.name == "store-for-tile"]
    assert "would be computed 64.0 times. Storing" in cost_sentences(row)
    assert [choice.text for choice in cost_choices(row)] == ["store it, and read it back"]
    (row,) = [d for d in ex.replan({relu: False}).decisions if d.name == "fuse-forced"]
    assert (
        "as long as 32.3 k operations more, with its reads, as a tile of results in registers uses "
        "each 8 times" in (cost_sentences(row))
    )


def test_without_estimates_cost_says_nothing() -> None:
    node = matmul().outputs[0]
    assert cost_sentences(Decision("store-asked", node, True, "it is the result")) == ""


def test_a_sum_of_multiples_is_a_sum() -> None:
    """A factor that is one constant everywhere makes no product of it; the titles agree."""
    x = array(6, 8)
    for tensor, name in (
        ((x * 2).sum(axis=1), "sum"),
        ((x * array(6, 8)).sum(axis=1), "sum of products"),
        ((x * x).sum(axis=1), "sum of squares"),
    ):
        ex = explore(tensor)
        assert [k.title for k in ex.kernels] == [name]
        assert name in {value_name(d.node) for d in ex.decisions}
        assert ("sum of products" in str(ex.decisions)) == (name == "sum of products")
    variance = explore(x.var(axis=1)).kernels
    assert variance[-1].title == "mean+sum of squares"
