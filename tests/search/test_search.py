"""Kernel.search: nothing gets worse, results are data, and are kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.search.support import numbers, quick
from workbench import Context, Kernel, Opt, OptOps, SearchResult, Tensor, explore
from workbench.base.cache import cache_folder
from workbench.base.errors import ParseError, WorkbenchError
from workbench.search import evaluation
from workbench.search import search as searching
from workbench.search.moves import Candidate, Measured


@pytest.mark.usefixtures("made_up_times")
def test_it_finds_something_faster_that_is_right(kernel: Kernel) -> None:
    plain = kernel.original
    result = quick(kernel)
    assert result.speedup is not None and result.speedup > 1
    assert result.kernel.applied_opts, "plain is far from best"
    assert result.kernel.check().ok and result.kernel.original is plain
    assert result.kernel.ast is result.kernel_of(result.best).ast
    ways = {t.how for t in result.tried}
    assert {"start: as given", "start: the default opts"} <= ways
    assert kernel.applied_opts == (), "the kernel itself is unchanged"


def test_it_goes_on_from_the_kernel_that_it_is_given(kernel: Kernel) -> None:
    start = kernel.apply(Opt(OptOps.UPCAST, "g1", 8))
    result = quick(start)
    assert result.tried[0].opts == start.applied_opts
    assert result.given is start and result.kernel.check().ok
    hows = [t.how for t in result.tried if t.parent is None]
    assert hows == ["start: as given", "start: the default opts", "start: plain"]


def test_it_prints_and_is_plain_data(kernel: Kernel, tmp_path: Path) -> None:
    result = quick(kernel)
    text = str(result)
    assert f"best: number {result.best}" in text and "start: as given" in text
    assert len(text.splitlines()) <= len(result.tried) + 3
    rows = result.tree().splitlines()[2:]
    indices = [int(row.lstrip("*").split()[0]) for row in rows]
    assert sorted(indices) == list(range(len(result.tried))), "the tree has all"
    timed = [c for c in result.tried if c.seconds is not None and c.spread is not None]
    assert timed and text.count("±") >= 2, "the best, and in the list"
    path = tmp_path / "search.json"
    result.save(path)
    again = SearchResult.load(path, kernel)
    assert again.to_dict() == result.to_dict() == json.loads(path.read_text())
    assert again.kernel.ast is result.kernel.ast
    for number in range(len(again.tried)):
        assert again.kernel_of(number).ast is result.kernel_of(number).ast
    other = explore(numbers(4, 4) + 1).kernels[0]
    with pytest.raises(ParseError, match="another kernel"):
        SearchResult.load(path, other)


def test_a_form_is_asked_for_by_a_number_that_there_is(kernel: Kernel) -> None:
    trials = tuple(
        Candidate(number, None, opts, "start: as given", 1.0)
        for number, opts in enumerate([(), (Opt(OptOps.UPCAST, "g1", 4),)])
    )
    result = SearchResult(kernel, kernel, trials, 1, 1.0, "ended", 1.0, "LLVM")
    for number in (1, np.int64(1)):
        assert result.kernel_of(number).applied_opts == trials[1].opts  # type: ignore[arg-type]
    wrong: list[Any] = [2, 99, -1, 2**70, True, 1.0, None, "1", [0], np.ones(2)]
    for number in wrong:
        with pytest.raises(WorkbenchError, match="there is no candidate") as caught:
            result.kernel_of(number)
        assert caught.value.because == "2 were tried, numbered from 0"
        assert caught.value.hint == "0 to 1; the best is 1"


def test_a_result_that_cannot_be_saved_says_so(kernel: Kernel, tmp_path: Path) -> None:
    trial = Candidate(0, None, (), "start: as given", 1.0)
    result = SearchResult(kernel, kernel, (trial,), 0, 1.0, "ended", 1.0, "LLVM")
    for path in (tmp_path, tmp_path / "missing" / "search.json"):
        with pytest.raises(WorkbenchError, match="cannot write"):
            result.save(path)
        with pytest.raises(WorkbenchError, match="cannot read"):
            SearchResult.load(path, kernel)


BROKEN: list[Any] = [
    ("best", -1), ("best", 10**9), ("best", True), ("tried", [1]), ("tried", [{}]), ("v", 7),
    ("speedup", "fast"), ("speedup", float("nan")), ("seconds", -1.0), ("tried", None),
    ("tried", [{"parent": 5, "opts": [], "how": "", "seconds": 1, "note": ""}]),
    ("tried", [{"parent": None, "opts": [["NONE", 1, 2]], "how": "", "seconds": 1, "note": ""}]),
    ("tried", [{"parent": None, "opts": [["UPCAST", {}, 2]], "how": "", "seconds": 1, "note": ""}]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BROKEN, ids=str)
def test_data_that_is_damaged_is_refused(kernel: Kernel, name: str, value: Any) -> None:
    trial = Candidate(0, None, (), "start: as given", 1.0)
    good = SearchResult(kernel, kernel, (trial,), 0, 1.0, "ended", 1.0, "LLVM").to_dict()
    assert SearchResult.from_dict(good, kernel).kernel.ast is kernel.ast
    with pytest.raises(WorkbenchError, match="not a saved search"):
        SearchResult.from_dict(good | {name: value}, kernel)


def test_it_is_kept_and_found_again(kernel: Kernel) -> None:
    own = kernel.apply(Opt(OptOps.UNROLL, "r0", 2))
    first = quick(own, budget_s=10.0, cached=True)
    assert not first.is_kept
    again = own.search(budget_s=10.0, progress=False)
    assert again.is_kept and again.to_dict() == first.to_dict()
    assert again.kernel.ast is first.kernel.ast and "found in the cache" in str(again)
    assert not quick(own, 1, 12.0, cached=True).is_kept, "that had less time"
    assert not quick(own, 1, 10.0).is_kept
    for path in (cache_folder() / "searches").glob("*.json"):
        assert path.stat().st_mode & 0o077 == 0
    (cache_folder() / "searches" / searching._name(own, 2)).write_text("{ damaged")
    with pytest.warns(RuntimeWarning, match="going on without"):
        assert not quick(own, 1, 5.0, cached=True).is_kept


def test_a_search_that_timed_nothing_is_not_kept(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another time the machine may have more memory, or less to do."""
    failed = Measured(error="the program was killed")
    monkeypatch.setattr(evaluation.OnWorker, "_one", lambda *_: failed)
    own = kernel.apply(Opt(OptOps.UNROLL, "r0", 8))
    result = quick(own, cached=True)
    why = "no candidate could be timed: the program was killed"
    assert result.ended == f"nothing left to try; {why}" and not result.ranked()
    assert searching._cached(own, 2, 0.1) is None


def test_the_emulator_is_searched_too() -> None:
    with Context(DEV="PYTHON"):
        small = explore(Tensor(np.ones((6, 8), np.float32)).sum(1)).kernels[0]
        result = quick(small)
    assert result.device == "PYTHON" and len(result.ranked()) >= 2


@pytest.mark.parametrize("value", [0, -1, 1.5, None, "2"])
def test_a_width_is_a_number(kernel: Kernel, value: Any) -> None:
    with pytest.raises(WorkbenchError, match="cannot use width"):
        kernel.search(width=value)
    assert len(kernel.search(width=np.int64(1), budget_s=0.1).ranked()) >= 1  # type: ignore[arg-type]
    with pytest.raises(WorkbenchError, match="cannot use budget_s"):
        kernel.search(budget_s="long")  # type: ignore[arg-type]
    with pytest.raises(WorkbenchError, match="is not an executor"):
        kernel.search(executor="here")  # type: ignore[arg-type]
