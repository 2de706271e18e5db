"""The bar that shows how a search goes."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from workbench.search.moves import Candidate
from workbench.search.search import progress

TRIALS = [
    Candidate(0, None, (), "start: as given", 2e-3),
    Candidate(1, 0, (), "crashes", None, "the program crashed"),
    Candidate(2, 0, (), "wrong", 1e-6, "WRONG: its answer is not that of the start"),
    Candidate(3, 0, (), "better", 1e-3),
    Candidate(4, 0, (), "worse", 4e-3),
]
BAR = """
bars = []
class tqdm:
    def __init__(self, **options):
        self.options, self.said, self.n, self.closed = options, [], 0, False
        bars.append(self)
    def set_postfix_str(self, text, refresh):
        self.said.append(text)
    def update(self, n):
        self.n += n
    def close(self):
        self.closed = True
"""


@pytest.fixture
def tqdm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A tqdm of our own in the place of the real one."""
    (tmp_path / "tqdm").mkdir()
    (tmp_path / "tqdm" / "__init__.py").write_text("")
    (tmp_path / "tqdm" / "auto.py").write_text(BAR)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("tqdm", "tqdm.auto"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import tqdm.auto

    for name in ("tqdm", "tqdm.auto"):  # and out again at the end
        monkeypatch.setitem(sys.modules, name, sys.modules[name])
    return tqdm.auto


def test_a_bar_of_tqdm_is_filled_and_closed(tqdm: ModuleType) -> None:
    with pytest.raises(KeyboardInterrupt), progress(3600.0, True) as report:
        for trial in TRIALS:
            report(trial)
        raise KeyboardInterrupt
    (bar,) = tqdm.bars
    assert bar.options["total"] == 3600.0 and bar.closed and 0 <= bar.n < 3600
    assert bar.said[0] == "1 tried, best 2 ms, 1 times as fast"
    assert bar.said[2] == "3 tried, best 2 ms, 1 times as fast", "wrong is not fast"
    assert bar.said[4] == "5 tried, best 1 ms, 2 times as fast"


def test_who_wants_none_gets_none(tqdm: ModuleType) -> None:
    with progress(10.0, False) as report:
        report(TRIALS[0])
    assert tqdm.bars == []
