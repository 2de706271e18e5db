"""The full benchmark on tiny inputs: what is checked, told, written and left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from workbench.base.errors import WorkbenchError
from workbench.bench import report as text
from workbench.bench.full import run
from workbench.bench.peers import PEERS, Peer, PeerProcess, WorkerError
from workbench.bench.report import FAILED, RIGHT, WRONG, Figure, Report, ReportRow
from workbench.bench.suite import ENTRIES
from workbench.cli.command import main

ADD = ENTRIES[0]
NUMPY = PEERS["numpy"]


def made_up(ours: tuple[float, ...], theirs: tuple[float, ...], name: str) -> ReportRow:
    figures = {"workbench": Figure(RIGHT, "", 0.1, ours), "torch": Figure(RIGHT, "", 0.2, theirs)}
    return ReportRow(name, 2_000_000_000, 100, 10.0, figures)


REPORT = Report(
    {"processor": "made up"},
    {"workbench": "1", "torch": "2"},
    ("jax is not installed",),
    2,
    (made_up((0.2, 0.4, 0.4), (0.1, 0.1, 0.2), "matmul 512"), made_up((0.5,), (1.0,), "b")),
)


def test_the_command_writes_what_it_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, picture = tmp_path / "out.json", tmp_path / "sub" / "out.svg"
    arguments = "bench --smoke --only add embedding --peers numpy --json".split()
    assert main([*arguments, str(out), "--plot", str(picture)]) == 0
    report = Report.from_json(out.read_text())
    assert [row.name for row in report.rows] == [
        "add", "add, 1000 elements", "embedding",
    ]  # fmt: skip
    assert report.peers == ("numpy",) and report.is_right
    assert all(f.samples_s for row in report.rows for f in row.figures.values())
    drawn = ElementTree.fromstring(picture.read_text())
    dots = drawn.findall(".//{*}circle/{*}title")
    assert len(dots) == 3
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith("embedding"))
    assert row.split() == ["embedding", "right", "right"], "times of tiny inputs say nothing"


def test_the_operations_are_those_of_the_inputs() -> None:
    entry = next(entry for entry in ENTRIES if entry.name == "matmul 512")
    (row,) = run([entry], [], smoke=True).rows
    m, k, n = entry.smoke
    assert row.operations == 2 * m * k * n < entry.operations() == 2 * 512**3


def test_every_library_here_has_a_version() -> None:
    assert all(peer.version for peer in PEERS.values() if peer.is_installed)


def test_a_wrong_answer_is_told_and_not_timed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lie = replace(ADD, array=lambda np, a, b: a - b)
    monkeypatch.setattr("workbench.bench.suite.ENTRIES", (lie,))
    assert main(["bench", "--smoke", "--only", "add", "--peers"]) == 1
    output = capsys.readouterr().out
    assert "WRONG: workbench on add: 15 of 15 elements" in output
    report = run([lie], [NUMPY], smoke=True)
    assert {f.state for f in report.rows[0].figures.values()} == {WRONG}
    assert report.rows[0].ratio("numpy") is None


def test_json_and_back() -> None:
    assert Report.from_json(REPORT.to_json()) == REPORT
    with pytest.raises(WorkbenchError, match="cannot read the report"):
        Report.from_json(REPORT.to_json().replace('"schema": 2', '"schema": 99'))


def test_ratios_are_of_neighbours_in_time() -> None:
    assert REPORT.ratios("torch") == {"matmul 512": 2.0, "b": 0.5}
    assert REPORT.rows[0].ratio_of_least("torch") == 2.0
    assert REPORT.rows[0].share_of_peak() == 0.5  # 2e9 in 0.4 s, of 10 GFLOP/s
    summary = "\n".join(text.summary(REPORT))
    assert "geometric mean: 1.00, <= 0.8 (2 rows): OVER" in summary
    assert "rows above 1.5 of torch: matmul 512 2.0: OVER" in summary
    assert "matmul 512: 0.50 of the best of numpy and torch, >= 0.95: OVER" in summary


def test_a_busy_machine_is_no_judge() -> None:
    busy = replace(REPORT, machine={"load": "3.0"})
    summary = "\n".join(text.summary(busy))
    assert "(2 rows): (the machine was busy)" in summary and "OVER" not in summary
    alone = "\n".join(text.summary(replace(REPORT, threads=1)))
    assert "(2 rows): (the budgets are for 2 threads)" in alone


def test_a_missing_peer_costs_a_sentence() -> None:
    missing = Peer("absent", "no_such_package", "pip install it", NUMPY.prepare)
    report = run([ADD], [missing], smoke=True)
    assert report.absent == ("absent is not installed, so it is left out: pip install it",)
    assert report.peers == () and report.is_right


def test_a_broken_peer_costs_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tinygrad.py").write_text("raise ImportError('no LLVM')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (message,) = run([ADD], [PEERS["tinygrad"]], smoke=True).absent
    assert message.startswith("tinygrad cannot run here: ImportError: no LLVM")


@pytest.mark.parametrize("name", ["numpy", "torch", "jax"])
def test_the_forms_of_a_peer_agree(name: str) -> None:
    if not PEERS[name].is_installed:
        pytest.skip(PEERS[name].absence)
    for row in run(ENTRIES, [PEERS[name]], smoke=True).rows:
        assert row.figures[name].state == RIGHT, row.figures[name].remark


def test_a_process_that_ends_says_its_last_words(tmp_path: Path) -> None:
    broken = Peer("numpy", "numpy", "", NUMPY.prepare, (("PYTHONHOME", "/nowhere"),))
    with PeerProcess(broken, 1, str(tmp_path)) as worker:
        with pytest.raises(WorkerError, match="its process ended: .*"):
            worker.prepare(ADD.name, smoke=True)
    with PeerProcess(replace(NUMPY, name="nobody"), 1, str(tmp_path)) as worker:
        with pytest.raises(WorkerError, match="KeyError: 'nobody'"):
            worker.prepare(ADD.name, smoke=True)


def test_a_library_that_stops_while_it_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = PeerProcess.sample

    def sample(self: PeerProcess, budget_s: float) -> float:
        if self.peer.name == "numpy":
            raise WorkerError("numpy", "it stopped")
        return real(self, budget_s)

    monkeypatch.setattr(PeerProcess, "sample", sample)
    (row,) = run([ADD], [NUMPY], smoke=True).rows
    assert row.figures["numpy"] == Figure(FAILED, "it stopped")
    assert row.figures["workbench"].samples_s


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "nothing"], "no row is named nothing"),
        (["--peers", "nobody"], "there is no peer nobody"),
        (["--quick", "--only", "add"], "--quick has neither"),
    ],
)
def test_a_wrong_option(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *arguments]) == 1
    assert message in capsys.readouterr().err
