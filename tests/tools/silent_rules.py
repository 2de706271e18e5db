"""A pytest plugin: a full run fails when a rule of the package fired in no test.

Every process notes which Rule objects the rewrite driver reports, whether or not an observer
watches; the workers of xdist send theirs to the controller. Objects and not names are noted:
tests have rules of their own, under the same names. Rules of interpreters that a test starts
do not count.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import workbench
from workbench.base.trace import Match
from workbench.ir.rewriting import rewrite
from workbench.ir.rewriting.passes import Pass
from workbench.ir.rewriting.rewrite import Rule, RuleSet

FIRED, WHOLE = "workbench_rules_fired", "workbench_whole_run"


def package_rules(package: ModuleType = workbench) -> dict[str, Rule]:
    """Return every rule of the package, by name.

    Errors: ValueError where two rules share a name.
    """
    by_name: dict[str, Rule] = {}
    for rule in (rule for rules in rule_sets(package) for rule in rules.rules):
        if by_name.setdefault(rule.name, rule) is not rule:
            raise ValueError(f"two rules are named {rule.name}")
    return by_name


def rule_sets(package: ModuleType = workbench) -> list[RuleSet]:
    """Return the rule sets that the modules of `package` hold, those of passes among them."""
    values = [v for module in _modules(package) for v in vars(module).values()]
    members = [v.run if isinstance(v, Pass) else v for v in values]
    return [v for v in members if isinstance(v, RuleSet)]


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    yield package
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        yield importlib.import_module(info.name)


class _Noting:
    """Stands for the driver's list of matches: notes the rules, and passes the matches on."""

    def __init__(self, fired: set[Rule], matches: list[Match] | None):
        self.fired, self.matches = fired, matches

    def append(self, match: Match) -> None:
        self.fired.add(match.rule)
        if self.matches is not None:
            self.matches.append(match)


def noting(fired: set[Rule], run: Callable[..., Any]) -> Callable[..., Any]:
    """Return the driver's loop `run`, which adds to `fired` every rule that fires."""

    def noted(root: Any, by_op: Any, matches: list[Match] | None, limit: Any) -> Any:
        return run(root, by_op, _Noting(fired, matches), limit)

    return noted


class SilentRules:
    """The plugin. `rules()` gives what must fire; asked for at the end, when all is imported."""

    def __init__(self, rules: Callable[[], dict[str, Rule]] = package_rules):
        self.rules = rules
        self.fired: set[Rule] = set()
        self.names: set[str] = set()
        self.whole: list[bool] = []  # one answer of each process that ran tests
        self.selected_some = False
        self.verdict = ""

    def pytest_sessionstart(self) -> None:
        self.driver = rewrite._run
        rewrite._run = noting(self.fired, self.driver)

    def pytest_unconfigure(self) -> None:
        rewrite._run = self.driver

    # what a process that runs tests knows

    def pytest_deselected(self) -> None:
        self.selected_some = True

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        tests = {f for p in _testpaths(session) for f in p.rglob("test_*.py")}
        files = {item.path for item in session.items}
        if session.items:
            ran = not session.config.option.collectonly
            self.whole.append(ran and not self.selected_some and files >= tests)

    # across processes

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        output = getattr(node, "workeroutput", {})
        self.names |= set(output.get(FIRED, ()))
        self.whole.append(output.get(WHOLE, False))

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if not (self.whole and all(self.whole)) or exitstatus != pytest.ExitCode.OK:
            return
        rules = self.rules()
        self.names |= {name for name, rule in rules.items() if rule in self.fired}
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[FIRED] = sorted(self.names)
            session.config.workeroutput[WHOLE] = True
            return
        silent = sorted(set(rules) - self.names)
        self.verdict = f"silent rules: {', '.join(silent) or 'none'} of {len(rules)}"
        if silent:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        uncounted = "silent rules: not counted, the run was partial or failed"
        terminalreporter.write_line(self.verdict or uncounted)


def _testpaths(session: pytest.Session) -> list[Any]:
    return [session.config.rootpath / p for p in session.config.getini("testpaths")]
