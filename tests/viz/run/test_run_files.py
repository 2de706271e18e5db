"""Runs in files and in other formats: nothing is lost, and damaged files are refused."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import workbench
from workbench import Tensor, explore
from workbench.base.errors import WorkbenchError
from workbench.cli.command import main
from workbench.measure.speeds import earlier_speeds
from workbench.viz.run import facts
from workbench.viz.run.run import Run
from workbench.viz.schema.run import RunKernel

A = np.random.default_rng(0).random((24, 32), np.float32)


@pytest.fixture(autouse=True)
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predict by speeds that were measured before: measuring them takes seconds."""
    monkeypatch.setattr(facts, "speeds", earlier_speeds)


def profiled() -> Run:
    """Return the run of several kernels."""
    with workbench.profile() as run:
        for _ in range(2):
            ((Tensor(A) @ Tensor(A.T)).relu().contiguous() + 1).sum(1).realize()
    return run


def test_a_saved_run_is_the_same(tmp_path: Path) -> None:
    run = profiled()
    loaded = workbench.load(run.save(tmp_path / "run.json"))
    assert loaded.to_dict() == run.to_dict() and str(loaded) == str(run)
    assert [*loaded.kernels] == [*run.kernels] and [*loaded.gaps] == [*run.gaps]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d["run"]["spans"]["kind"].append(0), "several lengths"),
        (lambda d: d["run"]["spans"]["subject"].__setitem__(0, 99), "not there"),
        (lambda d: d["run"]["gaps"]["lane"].__setitem__(0, 99), "not there"),
        (lambda d: d["run"].pop("lanes"), "lanes"),
        (lambda d: d["run"]["spans"]["start_ns"].__setitem__(0, "<b>"), "Expected"),
        (lambda d: d.update(v=2), "of form 2"),
        (lambda d: d.update(run=None), "damaged"),
    ],
)
def test_damaged_files_are_refused(change: Any, reason: str, tmp_path: Path) -> None:
    path = profiled().save(tmp_path / "run.json")
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    with pytest.raises(WorkbenchError, match=reason):
        workbench.load(path)


def test_a_run_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = profiled().save(tmp_path / "run.json")
    path.write_text(path.read_text()[:500])
    with pytest.raises(WorkbenchError, match="cut off or damaged"):
        workbench.load(path)


def test_a_trace_has_every_span_and_nests(tmp_path: Path) -> None:
    run = profiled()
    trace = json.loads(run.to_chrome_trace(tmp_path / "trace.json").read_text())
    events = trace["traceEvents"]
    complete = [event for event in events if event["ph"] == "X"]
    kinds = Counter(event["cat"] for event in complete)
    record = run.record
    assert kinds == Counter(record.kinds[kind] for kind in record.spans.kind) + Counter(
        gap=len(record.gaps.start_ns)
    )
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {event["tid"] for event in complete} <= set(names)
    for tid in names:
        open_ends: list[float] = []
        own = [(e["ts"], e["dur"]) for e in complete if e["tid"] == tid]
        for start, length in sorted(own, key=lambda each: (each[0], -each[1])):
            while open_ends and open_ends[-1] <= start + 1e-6:
                open_ends.pop()
            assert not open_ends or start + length <= open_ends[-1] + 1e-6
            open_ends.append(start + length)


def test_tables_go_to_pandas_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    run = profiled()
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    assert run.kernels.to_pandas() == [*run.kernels]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(WorkbenchError, match="pip install pandas"):
        run.kernels.to_pandas()


# Two runs.


def changed(run: Run, **fields: Any) -> Run:
    """Return a run whose first kernel has other fields."""
    first, *others = run.record.kernels
    return Run(replace(run.record, kernels=[replace(first, **fields), *others]))


def times(median: float, low: float, high: float, launches: int = 9) -> dict[str, Any]:
    """Return the fields of these times of launches."""
    return {"median_ns": median, "low_ns": low, "high_ns": high, "launches": launches}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (times(100, 95, 105), times(200, 190, 230), "2.00 times slower"),
        (times(200, 190, 230), times(100, 95, 105), "2.00 times faster"),
        (times(100, 50, 150), times(140, 90, 190), "no kernel differs"),
        (times(100, 99.9, 100.1), times(101, 100.9, 101.1), "no kernel differs"),
        (times(100, 100, 100, 1), times(900, 900, 900, 1), "too few launches"),
    ],
)
def test_differences_are_those_beyond_the_noise(
    before: dict[str, Any], after: dict[str, Any], words: str
) -> None:
    run = explore(Tensor(A).sum(1)).run(repeat=5)
    assert words in str(changed(run, **after) - changed(run, **before))


def test_kernels_of_one_run_alone_are_listed() -> None:
    one, two = (explore(y).run(repeat=4) for y in (Tensor(A).sum(1), Tensor(A).exp()))
    found = two - one
    assert [len(found.added), len(found.removed), len(found.changes)] == [1, 1, 0]
    assert "only after: " in str(found) and "only before: sum" in str(found)
    with pytest.raises(WorkbenchError, match="two runs"):
        _ = one - 1
    kernel: RunKernel = one.record.kernels[0]
    assert kernel.key != two.record.kernels[0].key


# From a terminal.


def test_a_script_is_profiled_and_shown(tmp_path: Path, capsys: Any) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom workbench import Tensor\n"
        "print(sys.argv[1], __name__)\nTensor([1.0, 2.0]).sum().realize()\n"
        "sys.exit(3)\n"
    )
    saved, trace = tmp_path / "run.json", tmp_path / "trace.json"
    options = ["--save", str(saved), "--trace", str(trace)]
    assert main(["profile", *options, str(script), "--word"]) == 3
    out = capsys.readouterr().out
    assert out.startswith("--word __main__") and "1 launch of 1 kernel" in out
    assert json.loads(trace.read_text())["traceEvents"]
    assert main(["show", str(saved), "kernels", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["kernel"] == "sum"
    assert main(["show", str(saved), "nothing"]) == 1
    assert "a run has kernels" in capsys.readouterr().err


def test_two_runs_are_compared_in_a_terminal_and_on_a_page(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "script.py"
    script.write_text("from workbench import Tensor\nTensor([1.0, 2.0]).sum().realize()\n")
    before, after, page = (tmp_path / name for name in ("1.json", "2.json", "run.html"))
    assert main(["profile", "--save", str(before), str(script)]) == 0
    capsys.readouterr()
    options = ["--before", str(before), "--save", str(after), "--html", str(page)]
    assert main(["profile", *options, str(script)]) == 0
    told = "1 kernel with too few launches to tell"
    assert told in capsys.readouterr().out
    assert page.stat().st_size > 100_000
    shown: list[Any] = []
    monkeypatch.setattr(
        "workbench.viz.run.run.export_html", lambda record, view: shown.append(record) or "<p>"
    )
    workbench.load(after).to_html(page, before=workbench.load(before))
    assert [run.kernels[0].title for run in shown[0].runs] == ["sum", "sum"]
    assert main(["show", str(after), "--before", str(before)]) == 0
    assert told in capsys.readouterr().out
    assert main(["show", str(after), "--before", str(script)]) == 1
    assert main(["profile", "--before", str(script), str(script)]) == 1
    ex = explore(Tensor([1.0]) + 1).save(tmp_path / "ex.json")
    assert main(["show", str(ex), "--before", str(before)]) == 1
    assert "only two runs are compared" in capsys.readouterr().err
    with pytest.raises(WorkbenchError, match="only two runs"):
        workbench.load(after).to_html(page, before="1.json")  # type: ignore[arg-type]


def test_a_script_that_fails_keeps_what_ran(tmp_path: Path, capsys: Any) -> None:
    script = tmp_path / "script.py"
    script.write_text("from workbench import Tensor\nTensor([1.0]).exp().realize()\n1 / 0\n")
    assert main(["profile", str(script)]) == 1
    shown = capsys.readouterr()
    assert "1 launch of 1 kernel" in shown.out and "ZeroDivisionError" in shown.err
    assert main(["profile", str(tmp_path / "none.py")]) == 1


def test_panes_of_an_exploration_are_shown(tmp_path: Path, capsys: Any) -> None:
    ex = explore((Tensor(A).sum(1) + 1).exp())
    path = str(ex.save(tmp_path / "ex.json"))
    assert main(["show", path, "code", "--kernel", "1"]) == 0
    assert capsys.readouterr().out.strip() == str(ex.code(0)).strip()
    assert main(["show", path, "memory", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["pane"] == "memory" and shown["data"]["steps"]
    assert main(["show", path, "code", "--kernel", "9"]) == 1
    assert main(["show", path]) == 0
