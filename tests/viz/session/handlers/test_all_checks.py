"""A check of everything: each verdict is its variant's, and the plan has that on the whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.viz.record.support import plain
from tests.viz.session.support import ask, done, session_of
from workbench import Rule, RuleSet, Tensor, explore, register, unregister, var
from workbench.viz.session.session import Session


def two_kernels() -> Any:
    values = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    stored = (Tensor(values) @ Tensor(values)).contiguous()
    return explore((stored + 3.0) * 2.0)


def verdicts(session: Session) -> list[tuple[str, bool]]:
    rows = plain(session.record)["variants"]
    return [(row["name"], row["check"]["ok"]) for row in rows if row["check"]]


def test_all_kernels_and_all_results() -> None:
    with session_of(two_kernels()) as session:
        done(session, "auto", kernel=1)
        done(session, "check_all")
        check = plain(session.record)["plan"]["check"]
        assert check["ok"] and check["text"].startswith("right: 2 kernels, all results")
        assert "before any rule" in check["text"]
        assert verdicts(session) == [("plain", True), ("auto", True)]
        done(session, "device", name="PYTHON")
        assert plain(session.record)["plan"]["check"] is None, "that was on LLVM"


def test_a_wrong_rule_names_the_kernel_and_the_results() -> None:
    x = var("x")
    rules = register(RuleSet("mine", [Rule("no-3", x + 3.0, x)]), "simplify-tensor")
    try:
        with session_of(two_kernels()) as session:
            done(session, "check_all")
            check = plain(session.record)["plan"]["check"]
            wrong = f"WRONG: kernel 2 plain, the results on {session.device}; "
            assert not check["ok"] and check["text"].startswith(wrong)
            assert verdicts(session) == [("plain", True), ("plain", False)]
    finally:
        unregister(rules)


def test_a_loaded_exploration_without_data_says_so(tmp_path: Any) -> None:
    from workbench import load

    with session_of(load(two_kernels().save(tmp_path / "a.workbench"))) as session:
        error = ask(session, "check_all")["error"]
        assert "cannot check this exploration" in error["what"]
