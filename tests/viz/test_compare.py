"""Kernels and plans in columns: rows are aligned by provenance, and no fact is lost or moved."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import Opt, OptOps, Tensor, WorkbenchError, compare, explore, load
from workbench.viz.compare import Differences, differences_bundle, graph_signs
from workbench.viz.model.differences import Row, aligned

A = np.random.default_rng(0).standard_normal((16, 32)).astype(np.float32)

columns_of_keys = st.lists(
    st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 99)), max_size=6),
    min_size=1, max_size=4,
)  # fmt: skip


@given(columns_of_keys)
def test_alignment_keeps_every_value_in_its_column_and_row(columns: Any) -> None:
    rows = aligned(columns)
    for place, column in enumerate(columns):
        found = [(key, cells[place]) for key, cells in rows if cells[place] is not None]
        assert Counter(found) == Counter(column)
        for wanted in {key for key, _ in column}:  # equal keys keep their order
            assert [v for k, v in found if k == wanted] == [v for k, v in column if k == wanted]
    assert [pair for key, cells in rows if (pair := (key, cells[0]))[1] is not None] == columns[0]


def cells(differences: Differences, section: str, label: str) -> tuple[str, ...]:
    return next(row.cells for row in differences[section].rows if row.label == label)


def test_variants_of_a_kernel() -> None:
    plain = explore((Tensor(A) @ Tensor(A).transpose()).relu()).kernels[0]
    wide = plain.apply(Opt(OptOps.UPCAST, "g1", 8))
    both = compare(plain, wide.without("form-fma"))
    assert both.names == ("plain", "UPCAST g1 8, without form-f…")
    assert cells(both, "kernel", "opts") == ("none", "UPCAST g1 8")
    assert cells(both, "kernel", "rules off") == ("none", "form-fma")
    assert cells(both, "kernel", "answer")[1].startswith("equal")
    assert cells(both, "loops", "g1")[0] == "global, 16 steps, depth 1"
    assert cells(both, "loops", "u0")[0] == ""
    assert cells(both, "counts", "stores") == (f"{16 * 16}", f"{16 * 16 // 8}")
    fired = {rule for r in both["rules that fired"].rows for rule in [r.label] if r.cells[0]}
    in_plain = {
        f"{record.name}: {match.rule!r}"
        for record in plain.compile().passes
        for match in record.matches
    }
    assert fired == in_plain
    lines = [line.text for line in plain.compile().assembly_lines if not line.is_label]
    counted = {row.label: row.cells[0] for row in both["instructions"].rows if row.cells[0]}
    assert counted == {k: str(n) for k, n in Counter(t.split()[0] for t in lines).items()}
    nodes = {(row.label, row.cells) for row in both["graph"].different}
    assert ("u0", ("", 'RANGE.index 8 {"u0", UPCAST}')) in nodes, "only the second has it"
    assert ("g1", ('RANGE.index 16 {"g1", GLOBAL}', 'RANGE.index 2 {"g1", GLOBAL}')) in nodes
    back = {(row.label, row.cells[::-1]) for row in compare(wide, plain)["graph"].different}
    assert {cells for _, cells in back} == {cells for _, cells in nodes}
    html = differences_bundle(both)["text/html"]
    assert '<span class="added">+' in html and '<span class="removed">-' in html
    same = compare(plain, plain)
    assert not any(s.different or s.text for s in same.sections if s.title != "kernel")


def test_a_kernel_on_two_devices_has_one_answer() -> None:
    plain = explore(Tensor(A).exp().sum(axis=1)).kernels[0]
    both = compare({"here": plain, "there": plain.on("CUDA:H100").kernel})
    assert both.names == ("here", "there")
    assert cells(both, "kernel", "answer")[1].startswith("equal")
    parallel = cells(both, "kernel", "in parallel")
    assert parallel == ("1 thread", f"{A.shape[0]} work-groups of 1 work-item")
    assert cells(both, "counts", "other")[0].endswith("instructions")
    assert cells(both, "counts", "other")[1].endswith("of elements")
    copies = [pickle.loads(pickle.dumps(plain)) for _ in range(2)]
    assert cells(compare(*copies), "kernel", "answer")[1].startswith("equal")
    assert copies[0].compare(copies[1].optimized()).equal


def test_plans_are_aligned_by_their_values() -> None:
    a, b = Tensor(A), Tensor(A.T)
    h = a @ b
    y = h.relu().sum(axis=1) + h.exp().sum(axis=1)
    cut = explore(y)
    cut = cut.replan({h: True})
    fused = cut.replan({h: False})
    both = compare(cut, fused, seconds=0.01)
    assert both.names == ("cut", "fused")
    assert not both["values"].different
    (decision,) = both["decisions"].different
    assert decision.cells[0].startswith("stored (for") and decision.cells[1].startswith(
        "fused (for"
    )
    assert [len([c for c in (r.cells[n] for r in both["kernels"].rows) if c]) for n in (0, 1)] == [
        2,
        1,
    ]
    assert all(cells(both, "time", "one run"))
    counted = [[k.estimates for k in ex.kernels] for ex in (cut, fused)]
    whole = {row.label: row.cells for row in both["whole plan"].rows}
    assert whole["operations"] == tuple(f"{sum(e.flops for e in es):,}" for es in counted)
    # other tensors, the same expression: the values are the same ones
    again = explore((Tensor(A + 1) @ b).relu().sum(axis=1))
    other = explore((Tensor(A + 2) @ b).relu().sum(axis=1))
    assert not compare(again, other)["values"].different
    more = compare((Tensor(A) + 1).sum(), (Tensor(A) + 1).sum() + 2)
    added = [row.label for row in more["values"].different]
    assert added == ["2.0 scalar", "add scalar"]
    assert len(more["kernels"].rows) == 1 and more["source"].text
    one, other = explore((Tensor(A) + 1).sum()), explore((Tensor(A) * 3 + 1).sum())
    before, now = graph_signs(one, other)
    assert set(before.values()) <= {"≠"} and {n.op.name for n, s in now.items() if s == "+"} == {
        "MUL", "CONST",
    }  # fmt: skip
    assert graph_signs(one, one) == ({}, {})


def test_a_file_of_yesterday_stands_beside_today(tmp_path: Path) -> None:
    ex = explore(Tensor(A).exp().sum(axis=1))
    ex.add(ex.kernels[0].apply(Opt(OptOps.UPCAST, "g0", 4)), name="mine <b>")
    loaded = load(ex.save(tmp_path / "yesterday.json"))
    both = compare(ex, loaded)
    assert both.names == ("ex", "loaded")
    assert not both["values"].different and not both["decisions"].different
    assert cells(both, "variants", "kernel 1, mine <b>") == ("not timed", "not timed")
    assert cells(both, "kernel", "answer")[1].startswith("equal"), "on the data of today"
    assert graph_signs(ex, loaded) == ({}, {}), "another process has other memory of equal shape"
    html = differences_bundle(both)["text/html"]
    assert html.count("<img") == 2
    assert "mine &lt;b&gt;" in html and "<b>" not in html.replace("<b>", "", 0).split("variants")[1]


def test_one_computation_of_equal_and_of_other_data() -> None:
    kernels = [explore(Tensor(data.copy()) * 2).kernels[0] for data in (A, A, A + 1)]
    answers = cells(compare(*kernels), "kernel", "answer")
    assert answers[1].startswith("equal") and "greatest difference 0," in answers[1]
    assert answers[2] == "the same computation, of other data"
    assert (
        cells(compare(*kernels[:1], explore(Tensor(A) + 2).kernels[0]), "kernel", "answer")[1]
        == "another computation"
    )


def test_three_columns_and_text() -> None:
    plain = explore(Tensor(A) * 2).kernels[0]
    opts = [plain.apply(Opt(OptOps.UPCAST, "g0", n)) for n in (2, 4)]
    three = compare(plain, *opts)
    text = str(three)
    assert (
        "UPCAST g0 2" in text and "UPCAST g0 4" in text and "--- column 1\n  +++ column 3" in text
    )
    assert "memory: no difference" in text
    assert Row("x", ("1", "2", "1")).differs and not Row("x", ("1", "1", "1")).differs
    with pytest.raises(WorkbenchError, match="there is no section 'memorie'"):
        three["memorie"]


def test_a_path_is_compared_once_it_is_loaded() -> None:
    with pytest.raises(WorkbenchError) as error:
        compare(explore(Tensor(A) * 2), "mine.json")
    assert error.value.hint == "compare(ex, load('mine.json'))"


@pytest.mark.parametrize(
    ("values", "seconds", "because"),
    [
        ((), 0, "there is no value"),
        (("k",), 0, "there is 1 value"),
        (("k", 3), 0, "cannot compare argument 2, an int"),
        (("k", "ex"), 0, "have no rows in common"),
        (("k", "k"), -1, "seconds=-1 is not a number of seconds"),
        (("k", "k"), "x", "seconds='x' is not"),
        (("k", "gpu"), 0.1, "predicted, not run here"),
    ],
)
def test_bad_input_is_refused(values: Any, seconds: Any, because: str) -> None:
    ex = explore(Tensor(A) * 2)
    k = ex.kernels[0]
    known: dict[Any, Any] = {"k": k, "ex": ex, "gpu": k.on("CUDA:H100").kernel}
    with pytest.raises(WorkbenchError, match=because):
        compare(*(known.get(value, value) for value in values), seconds=seconds)


def test_a_rule_that_raises_leaves_the_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    k = explore(Tensor(A) * 2).kernels[0]

    def fails(*_: object, **__: object) -> None:
        raise ZeroDivisionError("of a rule")

    monkeypatch.setattr("workbench.kernel.runnable.recorded", fails)
    both = compare(k, k)
    assert cells(both, "kernel", "program") == ("ZeroDivisionError: of a rule",) * 2


def test_a_question_that_waits_is_not_answered() -> None:
    asked = explore(Tensor(A).sum(), ask="kernels")
    with pytest.raises(WorkbenchError, match="argument 1 waits for a guess"):
        compare(asked, asked)


def test_kernels_of_one_title_are_numbered() -> None:
    a = Tensor(A)
    pair, one = explore(a @ a.T, a.T @ a), explore(a @ a.T)
    labels = [row.label for row in compare(pair, one)["kernels"].rows]
    assert labels == ["matmul (1 of 2)", "matmul (2 of 2)"]
