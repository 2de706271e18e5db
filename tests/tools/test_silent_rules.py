"""A full run fails when a rule fired in none of its processes; nothing else fails it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ir.samples import axis
from tests.support import ROOT
from tests.tools.silent_rules import noting
from workbench.base.trace import observe
from workbench.ir.rewriting import rewrite as driver
from workbench.ir.rewriting.patterns import var
from workbench.ir.rewriting.rewrite import Rule, RuleSet, rewrite

CONFTEST = """
import sys

sys.path.insert(0, {root!r})


def pytest_configure(config):
    from rules_here import RULES
    from tests.tools.silent_rules import SilentRules

    config.pluginmanager.register(SilentRules(lambda: RULES), "silent-rules")
"""
RULES_HERE = """
from workbench.base.dtypes import dtypes
from workbench.ir.rewriting.patterns import var
from workbench.ir.rewriting.rewrite import Rule, RuleSet, rewrite
from workbench.ir.node.uop import UOp

x = var("x")
ROWS = [("add-zero", x + 0, x), ("mul-one", x * 1, x), ("idiv-one", x // 1, x)]
RULES = {row[0]: Rule(*row) for row in ROWS}


def apply(*names):
    node = ((UOp.const(dtypes.int32, 3) + 0) * 1) // 1
    rewrite(node, RuleSet("twins", [Rule(*row) for row in ROWS]))  # others, of these names
    rewrite(node, RuleSet("here", [RULES[name] for name in names]))
"""
TEST = """
from rules_here import apply


def test_{number}():
    apply(*{names!r})
"""


def run(folder: Path, *arguments: str, fired: list[list[str]]) -> tuple[int, str]:
    """Run pytest on a project of one file per list of names: the rules that its test fires."""
    (folder / "pytest.ini").write_text("[pytest]\ntestpaths = .\npythonpath = .\n")
    (folder / "conftest.py").write_text(CONFTEST.format(root=str(ROOT)))
    (folder / "rules_here.py").write_text(RULES_HERE)
    for number, names in enumerate(fired):
        text = TEST.format(number=number, names=names)
        (folder / f"test_{number}.py").write_text(text)
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )
    return process.returncode, process.stdout + process.stderr


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n2"]], ids=["one", "two"])
def test_a_rule_that_fires_in_no_process_fails_the_run(tmp_path: Path, workers: list[str]) -> None:
    status, output = run(tmp_path, *workers, fired=[["add-zero"], ["idiv-one"]])
    assert "silent rules: mul-one of 3" in output and status == 1, output


def test_rules_that_all_fire_fail_nothing(tmp_path: Path) -> None:
    status, output = run(tmp_path, fired=[["add-zero"], ["idiv-one", "mul-one"]])
    assert "silent rules: none of 3" in output and status == 0, output


@pytest.mark.parametrize("chosen", [["-k", "0"], ["test_0.py"], ["--collect-only"]])
def test_a_part_of_the_tests_proves_nothing(tmp_path: Path, chosen: list[str]) -> None:
    status, output = run(tmp_path, *chosen, fired=[["add-zero"], []])
    assert "not counted" in output and status == 0, output


@pytest.mark.parametrize("watched", [False, True])
def test_a_rule_is_noted_whether_or_not_it_is_watched(
    monkeypatch: pytest.MonkeyPatch, watched: bool
) -> None:
    x, fired = var("x"), set[Rule]()
    rules = RuleSet("two", [Rule("add-zero", x + 0, x), Rule("mul-one", x * 1, x)])
    monkeypatch.setattr(driver, "_run", noting(fired, driver._run))
    node = axis("g0", 4)
    if watched:
        with observe() as watching:
            assert rewrite(node + 0, rules) is node
        assert [m.rule.name for m in watching.records[0].matches] == ["add-zero"]
    else:
        assert rewrite(node + 0, rules) is node
    assert fired == {rules.rules[0]}
