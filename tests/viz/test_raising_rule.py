"""A rule that raises is shown where it belongs, with the last good state; the rest works."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.viz.conftest import Spoil
from tests.viz.record.support import broken, plain
from tests.viz.session.support import session_of
from tests.viz.support import array
from workbench.base.context import Context
from workbench.base.errors import EndlessRewrite, WorkbenchError
from workbench.ir.schedule.schedule import base
from workbench.pipeline import COMPILE_PASSES, SCHEDULE_PASSES
from workbench.tensor.tensor import Tensor
from workbench.viz import Exploration, explore


def looked_at(ex: Exploration) -> str:
    """Look at everything; return the picture."""
    for pane in (ex.loops, ex.plan, ex.results, ex.passes, ex.decisions):
        assert str(pane) == repr(pane) != ""
    ex.to_networkx()
    ex.to_graphviz()
    with Context(LIVE=0):  # a picture that is to be read later has the time
        mime_bundle = ex._repr_mimebundle_()
    assert mime_bundle is not None and mime_bundle["text/plain"] == str(ex)
    html: str = mime_bundle["text/html"]
    return html


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ZeroDivisionError("<by> zero"), "ZeroDivisionError: <by> zero"),
        (EndlessRewrite("a rule never ends"), "a rule never ends"),
    ],
)
def test_a_rule_of_scheduling(spoil: Spoil, error: Exception, message: str, tmp_path: Path) -> None:
    y = (array(8, 8) * 1.0).exp()
    spoil([*SCHEDULE_PASSES.values()], "mul-one", error)
    ex = explore(y)
    assert ex.error is error and ex.kernels == ()
    assert ex.headline.endswith("scheduling failed") and message in str(ex)
    assert ex.passes[-1].error is error and ex.passes[-1].before is not None
    html = looked_at(ex)
    assert "&lt;by&gt; zero" in html or "never ends" in html
    assert 'alt="The tensor graph' in html, "the last good state"
    assert ex.to_html(tmp_path / "page.html").stat().st_size > 1000
    with session_of(ex) as session:
        session.complete()
        assert broken(plain(session.record)) == []
        assert message in plain(session.record)["passes"][-1]["error"]
        assert plain(session.record)["nodes"]["op"], "what there was before it"
        assert plain(session.handle({"do": "ping", "have": None}))["ok"]


@pytest.mark.parametrize("fails", [False, True])
def test_results_of_alternating_devices_have_their_names(spoil: Spoil, fails: bool) -> None:
    def on(device: str) -> Tensor:
        return Tensor([1.0, 2.0], device=device)

    first = (on("LLVM") + 1).reshape(2, 1)
    second = (on("PYTHON") * 5).reshape(2, 1)
    third = (on("LLVM") * (1.0 if fails else 7.0)).exp().reshape(2, 1)
    if fails:
        spoil([*SCHEDULE_PASSES.values()], "mul-one", ZeroDivisionError())
    ex = explore(first, second, third)
    assert (ex.error is not None) is fails
    names = [ex.lines.names(base(output)) for output in ex.outputs]
    assert names == [("first",), ("second",), ("third",)]


def test_what_cannot_be_asked_for_is_still_an_error() -> None:
    x = array(8, 8)
    ex = explore(x + 1)
    with pytest.raises(WorkbenchError):
        ex.replan({x + 2: True})


def test_a_rule_of_compiling(spoil: Spoil) -> None:
    y = array(8, 24) @ array(24, 8) + 1.0
    spoil([*COMPILE_PASSES.values()], "form-fma", ZeroDivisionError("no such luck"))
    ex = explore(y)
    assert ex.error is None and len(ex.kernels) == 1
    html = looked_at(ex)
    assert "no such luck" in html and "Compiling, as far as it came" in html
    assert "acc0 +=" in str(ex.loops), "the loops are there all the same"
    assert "no such luck" in str(ex.code())
    assert "failed: ZeroDivisionError: no such luck" in str(ex.rewrites())
    with session_of(ex) as session:
        session.complete()
        record = plain(session.record)
        assert broken(record) == []
        row = plain(session.row(0))
        assert "no such luck" in row["error"]["because"] and row["loops"]
        failed = [p for p in row["passes"] if record["passes"][p]["error"]]
        assert len(failed) == 1 and failed[0] == row["passes"][-1]
        assert record["passes"][failed[0]]["before"], "the last good state"
        reply = plain(session.handle({"do": "apply", "variant": 0, "opt": 'UPCAST("g1", 4)'}))
        assert reply["ok"] and plain(session.row(reply["result"]["variant"]))["loops"]
        reply = plain(session.handle({"do": "measure", "variants": [0]}))
        assert reply["ok"], "the worker process has rules of its own"


def test_a_rule_that_a_user_switches_off_again(spoil: Spoil) -> None:
    y = Tensor([1.0, 2.0]) * 1.0 + 3.0
    spoil([*SCHEDULE_PASSES.values()], "mul-one", ZeroDivisionError("mine"))
    assert explore(y).error is not None
    assert explore(y, without=("mul-one",)).kernels
