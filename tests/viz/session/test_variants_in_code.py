"""Variants in code: with the words that the page has."""

from __future__ import annotations

import pytest

from tests.viz.session.support import done, session_of
from tests.viz.support import matmul, softmax
from workbench import Tensor, explore
from workbench.base.errors import WorkbenchError
from workbench.ir.opt.opt import Opt, OptOps

pytestmark = pytest.mark.usefixtures("nothing_saved")


def test_variants_in_code_are_those_of_the_workbench(monkeypatch: pytest.MonkeyPatch) -> None:
    ex = matmul()
    assert [v.name for v in ex.variants] == ["plain"]
    with session_of(ex) as session:
        monkeypatch.setattr(ex.display, "session", session)
        done(session, "apply", variant=0, opt='UPCAST("g1", 4)')
        kernel = ex.kernels[0].apply(Opt(OptOps.UNROLL, "r0", 4))
        mine = ex.add(kernel, "by hand")
        assert [v.name for v in ex.variants] == ["plain", "UPCAST g1 4", "by hand"]
        assert mine.kernel.ast is kernel.ast
        assert str(mine) == 'by hand (kernel 1): UNROLL("r0", 4)'
        ex.rename(mine, "")
        assert "UNROLL r0 4" in str(ex.variants)
        ex.delete(ex.variants.named("UPCAST g1 4"))
        assert [v.name for v in ex.variants] == ["plain", "UNROLL r0 4"]
        ex.delete(mine)
        assert [v.name for v in ex.variants] == ["plain"]
        ex.delete(mine, back=True)
        assert [v.name for v in ex.variants] == ["plain", "UNROLL r0 4"]
        with pytest.raises(WorkbenchError, match="cannot delete plain"):
            ex.delete(ex.variants[0])
        with pytest.raises(WorkbenchError, match="there is no variant 'best'"):
            ex.variants.named("best")


def test_a_variant_of_another_exploration_or_plan_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ex, other = matmul(), softmax()
    with session_of(ex) as session, session_of(other) as other_session:
        monkeypatch.setattr(ex.display, "session", session)
        monkeypatch.setattr(other.display, "session", other_session)
        mine = ex.add(ex.kernels[0].apply(Opt(OptOps.UNROLL, "r0", 4)), "mine")
        theirs = other.add(other.kernels[0].apply(Opt(OptOps.UPCAST, "g0", 4)), "theirs")
        equal = matmul().variants[0]
        ex.delete(mine)
        ex.add(ex.kernels[0].apply(Opt(OptOps.UNROLL, "r0", 2)), "other")
        for act in (ex.delete, lambda v: ex.delete(v, back=True), lambda v: ex.rename(v, "x")):
            for wrong in (theirs, equal):
                with pytest.raises(WorkbenchError, match="one of another exploration"):
                    act(wrong)
        with pytest.raises(WorkbenchError, match="it was deleted"):
            ex.rename(mine, "x")
        done(session, "device", name="PYTHON")
        ex.delete(mine, back=True)
        assert mine.name in [v.name for v in ex.variants], "on whatever device"
        decision = next(d for d in session.record.plan.decisions if not d.stored)
        done(session, "replan", node=decision.node, store=True)
        with pytest.raises(WorkbenchError, match="planned again"):
            ex.delete(mine, back=True)


def test_a_kernel_of_the_plan_before_is_not_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that was planned again by hand has other kernels at the same places."""
    ex = explore(Tensor.empty(64, 48).exp().sum(1))
    before = ex.kernels[0].apply(Opt(OptOps.UPCAST, "g0", 4))
    with session_of(ex) as session:
        monkeypatch.setattr(ex.display, "session", session)
        decision = next(d for d in session.record.plan.decisions if d.value.startswith("exp"))
        done(session, "replan", node=decision.node, store=True)
        with pytest.raises(WorkbenchError, match="the page shows another plan"):
            ex.add(before, "mine")
        now = ex.variants[0].kernel.apply(Opt(OptOps.UPCAST, "g0", 4))
        assert ex.add(now, "mine").kernel.ast is now.ast
        with pytest.raises(WorkbenchError, match="not a kernel of this exploration"):
            ex.add(matmul().kernels[0])


def test_a_variant_whose_name_is_taken_is_not_added(monkeypatch: pytest.MonkeyPatch) -> None:
    ex = matmul()
    with session_of(ex) as session:
        monkeypatch.setattr(ex.display, "session", session)
        four, two = (ex.kernels[0].apply(Opt(OptOps.UNROLL, "r0", n)) for n in (4, 2))
        ex.add(four, "mine")
        for name in ("mine", "auto"):
            with pytest.raises(WorkbenchError, match="another variant of this kernel"):
                ex.add(two, name)
        assert [v.name for v in ex.variants] == ["plain", "mine"]
        assert ex.add(four, "mine").name == "mine", "the cell that is run again"
        assert ex.add(four, "ours").name == "ours"
        assert [v.name for v in ex.variants] == ["plain", "ours"]


def test_an_error_in_code_keeps_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    ex = matmul()
    with session_of(ex) as session:
        monkeypatch.setattr(ex.display, "session", session)
        with pytest.raises(WorkbenchError) as caught:
            ex.page.ask(ex, "try_rule", variant=0, text="x + -> x", language="C")
        assert caught.value.line == 1 and not caught.value.where
