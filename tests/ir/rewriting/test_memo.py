"""Memos of what was made of kernels: the rules in force, the limit, threads, Ctrl-C, forks."""

from __future__ import annotations

import os
from threading import Barrier, Thread

import pytest

from workbench.cost import default_opts
from workbench.ir.rewriting import rewrite
from workbench.ir.rewriting.passes import Memo
from workbench.ir.rewriting.rewrite import without
from workbench.search.realization import tuned
from workbench.tensor.tensor import Tensor
from workbench.viz.exploration.explore import explore


def test_a_value_is_made_once_for_the_rules_in_force() -> None:
    memo, made = Memo[int](), iter(range(10))
    assert [memo.value("k", lambda: next(made)) for _ in range(3)] == [0, 0, 0]
    with without(["fold-constants"]):
        assert [memo.value("k", lambda: next(made)) for _ in range(2)] == [1, 1]
    assert memo.value("k", lambda: next(made), is_seen=True) == 0, "the first stays"
    assert next(made) == 3, "but it was made again, for who watches"


def test_what_may_have_used_a_rule_that_was_added_meanwhile_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memo = Memo[int]()

    def made() -> int:
        monkeypatch.setattr(rewrite, "_added", (*rewrite._added, ()))
        return 1

    assert memo.value("k", made) == 1 and not memo.entries


def test_the_last_used_stay() -> None:
    memo = Memo[int](most=3)
    for n in range(5):
        memo.value(n, lambda n=n: n)  # type: ignore[misc]
    assert [*memo.entries.values()] == [2, 3, 4]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_fails_leaves_no_entry(error: type[BaseException]) -> None:
    memo = Memo[int]()

    def fails() -> int:
        raise error

    with pytest.raises(error):
        memo.value("k", fails)
    assert not memo.entries and memo.value("k", lambda: 1) == 1


def test_threads_have_one_value() -> None:
    memo, both, results = Memo[object](), Barrier(2), list[object]()

    def made() -> object:
        both.wait()  # both make one, and neither waits for the other
        return object()

    threads = [Thread(target=lambda: results.append(memo.value("k", made))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results[0] is results[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_adds_entries_while_a_thread_of_the_parent_does() -> None:
    memo = Memo[int]()
    with memo._lock:
        child = os.fork()
        if child == 0:
            os._exit(memo.value("k", lambda: 7))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_realize_and_optimized_share_the_default_opts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default_opts, "_memo", Memo())
    decide, decided = default_opts._decide, []

    def noted(kernel: object, target: object) -> object:
        decided.append(kernel)
        return decide(kernel, target)  # type: ignore[arg-type]

    monkeypatch.setattr(default_opts, "_decide", noted)
    a = Tensor.ones(8, 8).contiguous().realize()
    (kernel,) = explore((a @ a).relu(), device="LLVM").kernels
    decided.clear()
    assert tuned(kernel.original, "LLVM") is kernel.optimized().ast
    assert tuned(kernel.original, "LLVM") is kernel.optimized().ast
    assert decided == [kernel.original]
