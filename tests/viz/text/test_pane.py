"""One pane of an exploration: text in a terminal, a page of its own in a notebook."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.viz.record.support import plain
from tests.viz.session.support import session_of
from workbench import Opt, OptOps, Tensor, emulate, explore
from workbench.base.errors import WorkbenchError
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.program import program_lines
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.page.panel import panes
from workbench.viz.page.panels.gpu.panel import QUIET
from workbench.viz.schema.messages import ViewState
from workbench.viz.session import show

WITHOUT_LINE = re.compile(r"  (test_pane\.py|<string>):\d+|\d+ \w?s\b")
A = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)


@pytest.fixture
def ex() -> Exploration:
    return explore((Tensor(A) @ Tensor(A).transpose()).exp().sum(1) * 1.0)


def test_panes_print_what_they_show(ex: Exploration) -> None:
    loops = str(ex.loops)
    assert "G g0 x8" in loops and "acc0" in loops and ex.kernels[0].title in loops
    plan = str(ex.plan)
    assert ex.headline in plan and "it is a result that was asked for" in plan
    rewrites = str(ex.rewrites())
    assert "simplify-tensor: " in rewrites and "mul-one: " in rewrites
    assert "exp2-polynomial: exp2(" in rewrites and "decide: " in rewrites
    code = str(ex.code(ex.kernels[0]))
    assert "void r_" in code and "for (" in code
    assert repr(ex.code()) == code == str(ex.code(0)), "a terminal prints the text"


def test_the_code_of_a_machine_elsewhere_is_in_its_language() -> None:
    ex = explore(Tensor(A) * 2, device="CUDA", target="H100")
    code = str(ex.code(0))
    assert "__global__" in code and "blockIdx.x" in code and "void **args" not in code


def test_the_pane_gpu_prints_a_run_as_the_page_shows_it() -> None:
    x = Tensor(np.arange(64 * 64, dtype=np.float32).reshape(64, 64)).realize()
    y = x.transpose().contiguous()
    ex = explore(y, device="CUDA", target="H100", show="gpu")
    kernel = ex.kernels[0].optimized()
    trace = emulate(kernel)
    text = str(ex)
    assert f"{kernel.device}, {', '.join(map(str, kernel.applied_opts))}" in text
    assert "p0 is y, p1 is x" in text and str(trace) in text and QUIET in text
    for line in program_lines(trace.linear):
        assert f"  {line.text}\n" in text
    sums: Counter[str] = Counter()
    counts = r"(?:reads|writes) \w+: (\d+) (\w+).*?(?:, (\d+) times)?$"
    for number, unit, times in re.findall(counts, text, re.MULTILINE):
        sums[unit] += int(number) * int(times or 1)
    assert sums["transactions"] == trace.total("global").transactions
    assert sums["passes"] == trace.total("shared").transactions
    assert f"{sum(trace.barriers.values())} groups waited" in text
    column = ex.kernels[0].apply(Opt(OptOps.LOCAL, "g1", 32))
    slow = str(ex.pane("gpu", column))
    assert "uncoalesced: work-item" in slow and 'H100, LOCAL("g1", 32)' in slow
    large = Tensor.empty(4096, 4096)
    why = str(explore(large @ large, device="CUDA:H100", show="gpu"))
    assert "not run: a group alone would take about" in why and "for r0 in" in why


def test_one_pane_prints_that_pane(ex: Exploration) -> None:
    assert set(panes()) >= {"loops", "plan", "rewrites", "code", "results"}
    for name in panes():
        alone = explore(*ex.tensors, show=name)
        pane = ex.pane(name)
        is_other = name in ("values", "run")  # ex.values is of a node, ex.run runs
        own = pane if is_other else getattr(ex, name, pane)
        assert str(own() if callable(own) else own) == str(pane)
        assert WITHOUT_LINE.sub("", str(alone)) == WITHOUT_LINE.sub("", str(pane))
        mime_bundle = alone._repr_mimebundle_()
        assert mime_bundle is not None and mime_bundle["text/plain"] == str(alone)
        assert ('alt="The tensor graph' in mime_bundle["text/html"]) is (name == "plan")
    two = explore(*ex.tensors, Tensor(A) * 3)
    assert len(two.kernels) == 2
    for pane in (two.loops, two.rewrites(), two.code(), two.results):
        assert "kernel 1: " in str(pane) and "kernel 2: " in str(pane)
        assert "kernel 0: " not in str(pane), "readers count from 1, as in the page"
    assert "kernel 2: " in str(two.code(1)) and "kernel 1: " not in str(two.code(1))


def test_results_are_those_of_the_workbench(
    ex: Exploration, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # where no speeds are known
    assert "plain: no opts" in str(ex.results) and "not timed" in str(ex.results)
    with session_of(ex) as session, monkeypatch.context() as patch:
        patch.setattr(ex.display, "session", session)
        opt = str(ex.kernels[0].legal_opts()[0])
        reply = plain(session.handle({"do": "apply", "variant": 0, "opt": opt}))
        variant = reply["result"]["variant"]
        session.handle({"do": "note", "variant": variant, "text": "a note"})
        session.handle({"do": "check", "variant": variant})
        session.handle({"do": "measure", "variants": [variant]})
        assert "of peak" not in str(ex.results), "nobody has measured one"
        session.recorder.machine.measure()
        text = str(ex.results)
    for words in (f": {opt}", "a note", "right: ", " peak, ", " GB/s", "not timed"):
        assert words in text, words


@pytest.mark.parametrize("make", [lambda: Tensor(2.0) + 1, lambda: Tensor(A)])
def test_nothing_to_compute_is_said_by_every_pane(make: Callable[[], Tensor]) -> None:
    for name in panes():
        assert "Nothing to compute" in str(explore(make(), show=name)), name
    with pytest.raises(WorkbenchError, match="it has 0 kernels"):
        explore(make()).code(0)


def test_a_form_with_opts_has_its_own(ex: Exploration) -> None:
    best = ex.kernels[0].optimized()
    assert best.applied_opts
    for opt in best.applied_opts:
        assert str(opt) in str(ex.rewrites(best)) not in str(ex.rewrites(0))
    assert str(ex.code(best)) != str(ex.code(0))
    with pytest.raises(WorkbenchError, match="not a kernel of this exploration"):
        ex.code(5)
    with pytest.raises(WorkbenchError, match="not a kernel of this exploration"):
        ex.rewrites(explore(Tensor(A) + 1).kernels[0])


def test_a_notebook_shows_the_one_pane(ex: Exploration, monkeypatch: pytest.MonkeyPatch) -> None:
    views: list[ViewState] = []

    class Widget:
        comm = None

        def observe(self, *_: object) -> None:
            """Nothing of it changes here."""

        def _repr_mimebundle_(self) -> tuple[dict[str, str], dict[str, str]]:
            return {show.WIDGET: "view"}, {}

    def widget(page: show.LivePage, ex: Exploration, view: ViewState, *_: object) -> Widget:
        views.append(view)
        return Widget()

    plain = ex.code()._repr_mimebundle_()
    assert plain is not None and set(plain) == {"text/plain", "text/html"}
    assert "void r_" in plain["text/html"] and "<script" not in plain["text/html"]
    monkeypatch.setattr(show, "is_live", lambda: True)
    monkeypatch.setattr(show.LivePage, "to_widget", widget)
    for pane in (ex.loops, ex.plan, ex.rewrites(), ex.code(0)):
        mime_bundle = pane._repr_mimebundle_()
        assert mime_bundle is not None and mime_bundle[show.WIDGET] == "view"
        assert mime_bundle["text/plain"] == str(pane)
    assert [v.only for v in views] == ["loops", "plan", "rewrites", "code"]
    assert [v.mode for v in views] == ["tune", "plan", "rewrites", "tune"]
    assert views[-1].kernel == 0


def test_why_a_rule_of_a_pass_did_not_fire(ex: Exploration) -> None:
    record = next(r for r in ex.passes if r.name == "simplify-tensor")
    match = next(m for m in record.matches if m.rule.name == "mul-one")
    assert ex.why_not(match.rule, match.before, record.name).fires
    explanation = ex.why_not("add-zero", match.before, record.name)
    assert explanation.because == "the op is MUL, and ADD is needed"
    assert str(explanation).splitlines()[1].strip().strip("^") == "", "a caret under the part"
    after = ex.why_not("add-zero", Tensor(A) + 0).after
    assert after is not None and after.op is Ops.COPY, "a tensor stands for its node"
    assert not ex.why_not("mul-zero", match.before, record.name).fires
    lowered = ex.kernels[0].compile()["lowered"]
    fma = next(n for n in lowered.toposort() if n.op is Ops.FMA)
    assert not ex.why_not("form-fma", fma, "decompose").fires
    # what a pass leaves alone, and what an earlier rule of it takes, is of that pass alone
    index = next(n for n in ex.kernels[0].ast.toposort() if n.dtype.name == "index")
    explanation = ex.why_not("idiv-by-shift", index // 4, "decompose")
    assert (
        not explanation.fires and "the set decompose leaves this node alone" in explanation.because
    )
    assert ex.why_not("idiv-by-shift", index // 4).fires
    sum_ = UOp.index(3) + UOp.index(0)
    for of_pass in ("simplify-tensor", "simplify-kernel"):
        explanation = ex.why_not("add-zero", sum_, of_pass)
        assert explanation.because == "fold-constants, an earlier rule, fires here first"
    assert ex.why_not("add-zero", sum_).fires


def test_a_rule_or_a_node_that_is_none_is_refused(ex: Exploration) -> None:
    node = ex.kernels[0].ast
    with pytest.raises(WorkbenchError, match="no rule 'mul-on'") as error:
        ex.why_not("mul-on", node)
    assert "mul-one" in error.value.hint and error.value.because
    wrong: list[Any] = [None, 3, "x" * 1000, ""]
    for rule in wrong:
        with pytest.raises(WorkbenchError, match="there is no rule") as error:
            ex.why_not(rule, node)
        assert len(str(error.value)) < 400 and error.value.hint
    for nothing in (None, "g0", ex.kernels[0]):
        with pytest.raises(WorkbenchError, match="cannot compare a rule with this"):
            ex.why_not("add-zero", nothing)  # type: ignore[arg-type]
