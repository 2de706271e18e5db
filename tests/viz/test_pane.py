"""One pane of an exploration: text in a terminal, a page of its own in a notebook."""

from __future__ import annotations

import numpy as np
import pytest

from workbench import Tensor, explore
from workbench.errors import WorkbenchError
from workbench.ir.ops import Ops
from workbench.viz.exploration import Exploration
from workbench.viz.live import show
from workbench.viz.model.why import why_not

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


def test_a_form_with_opts_has_its_own(ex: Exploration) -> None:
    best = ex.kernels[0].optimized()
    assert best.applied_opts
    for opt in best.applied_opts:
        assert str(opt) in str(ex.rewrites(best)) not in str(ex.rewrites(0))
    assert str(ex.code(best)) != str(ex.code(0))
    with pytest.raises(WorkbenchError, match="no kernel of this exploration"):
        ex.code(5)
    with pytest.raises(WorkbenchError, match="no kernel of this exploration"):
        ex.rewrites(explore(Tensor(A) + 1).kernels[0])


def test_a_notebook_shows_the_one_pane(
    ex: Exploration, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    class Widget:
        def _repr_mimebundle_(self) -> tuple[dict[str, str], dict[str, str]]:
            return {show.WIDGET: "view"}, {}

    def widget(page: show.Page, ex: Exploration, view: dict[str, object]) -> Widget:
        asked.append(view)
        return Widget()

    plain = ex.code()._repr_mimebundle_()
    assert plain is not None and set(plain) == {"text/plain", "text/html"}
    assert "void r_" in plain["text/html"] and "<script" not in plain["text/html"]
    monkeypatch.setattr(show, "is_live", lambda: True)
    monkeypatch.setattr(show.Page, "to_widget", widget)
    for pane in (ex.loops, ex.plan, ex.rewrites(), ex.code()):
        shown = pane._repr_mimebundle_()
        assert shown is not None and shown[show.WIDGET] == "view"
        assert shown["text/plain"] == str(pane)
    assert [v["only"] for v in asked] == ["loops", "plan", "rewrites", "code"]
    assert [v["mode"] for v in asked] == ["tune", "plan", "rewrites", "tune"]
    assert asked[-1]["kernel"] == 0


def test_why_a_rule_of_a_pass_did_not_fire(ex: Exploration) -> None:
    record = next(r for r in ex.passes if r.name == "simplify-tensor")
    match = next(m for m in record.matches if m.rule.name == "mul-one")
    assert why_not("mul-one", match.before, "simplify-tensor").fires
    said = why_not("add-zero", match.before, record.name)
    assert said.because == "the op is MUL, and ADD is needed"
    later = why_not("mul-zero", match.before, record.name)
    assert not later.fires
    lowered = ex.kernels[0].compile()["lowered"]
    fma = next(n for n in lowered.toposort() if n.op is Ops.FMA)
    assert not why_not("form-fma", fma, "decompose").fires
    shifted = next(n for n in ex.kernels[0].ast.toposort() if n.dtype.name == "index")
    for name in ("idiv-by-shift", "no such pass"):
        assert not why_not("idiv-by-shift", shifted // 4, "decompose").fires, name
    assert why_not("idiv-by-shift", shifted // 4, "no such pass").fires
    with pytest.raises(WorkbenchError, match="no rule 'mul-on'") as error:
        why_not("mul-on", match.before)
    assert "mul-one" in error.value.hint
