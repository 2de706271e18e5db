"""Rules as rows: their text, their reason, and their source line."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from workbench.base.trace import PassStep
from workbench.ir.gradient.steps import GradientRow
from workbench.ir.opt.opt import Opt
from workbench.ir.rewriting.rewrite import Rule, RuleSet, added_rules
from workbench.pipeline import COMPILE_STEPS
from workbench.viz.model.words import paragraphs
from workbench.viz.schema.record import RuleRow

ROOT = Path(__file__).parents[3]
"""The folder of the package: paths are relative to it."""


class Place(NamedTuple):
    """The place of a rule: a file below the package and a line, and its table. Of a registered one
    it is the line that registered it, in a cell or in a file."""

    file: str
    line: int
    table: str


class RuleRows:
    """The table of all rules, opts and steps that were recorded, each once."""

    def __init__(self) -> None:
        self.listed: list[RuleRow] = []
        self._places: dict[Any, int] = {}

    def at(self, place: int) -> Rule | None:
        """Return the rule at a place; None for an opt or a step."""
        key = list(self._places)[place]
        return key if isinstance(key, Rule) else None

    def add(self, rule: Any) -> int:
        """Return the place of a rule, of an Opt or of a step of the default opts."""
        is_key = isinstance(rule, (Rule, Opt, PassStep))
        key = rule if is_key else (rule.name, str(rule))
        if key not in self._places:
            self._places[key] = len(self.listed)
            self.listed.append(rule_row(rule))
        return self._places[key]


def rule_row(rule: Any) -> RuleRow:
    """Return the row of a rule, an opt or a step: its text and its place."""
    if isinstance(rule, Rule):
        place = place_of(rule)
        text = str(rule).removeprefix(f"{rule.name}: ")
        doc = paragraphs(rule.doc)
        return RuleRow(rule.name, text, doc, place.file, place.line, place.table)
    if isinstance(rule, GradientRow):
        return _gradient_row(rule)
    if isinstance(rule, PassStep):
        file, line = _step_place(rule.name)
        is_fixed = all(step.name != rule.name for step in COMPILE_STEPS)
        return RuleRow(rule.name, "", rule.why, file, line, "", is_fixed)
    doc = rule.op.caption if isinstance(rule, Opt) else str(rule.why)
    opts = "" if isinstance(rule, Opt) else ", ".join(map(str, rule.opts))
    name = str(rule) if isinstance(rule, Opt) else rule.name
    table = "opts" if isinstance(rule, Opt) else "default opts"
    return RuleRow(name, opts, doc, "", 0, table)


def _gradient_row(row: GradientRow) -> RuleRow:
    """Return the row of a rule of a gradient: its formula, as the table has it, and its place."""
    if row.function is None:
        return RuleRow(row.name, "", row.why, "", 0, "gradients", True)
    code = row.function.__code__
    module = sys.modules[row.function.__module__]
    text, doc = _formula(row.function), inspect.getdoc(row.function) or ""
    why = "\n\n".join(part for part in (paragraphs(doc), row.why) if part)
    place = _relative(module)
    line = code.co_firstlineno
    return RuleRow(row.name, text, why, place, line, "gradients", True)


def _formula(function: Callable[..., Any]) -> str:
    """Return what a rule of gradients gives, as its row in the table says it: "(g * y, g * x)"; of
    one with several lines its name."""
    if function.__name__ != "<lambda>":
        return f"{function.__name__}({', '.join(inspect.signature(function).parameters)})"
    try:
        row = inspect.getsource(function).strip()
    except OSError:  # installed without sources
        return ""
    head, _, body = row.partition("lambda ")
    names, _, formula = body.partition(":")
    return f"{names}: {formula.strip().rstrip(',')}" if head else ""


def place_of(rule: Rule) -> Place:
    """Return the place of a rule: its row in a table, else the function that it calls."""
    for added in added_rules():
        if rule in added.rules.rules:
            name, number = (added.where.name, added.where.line) if added.where else ("", 0)
            return Place(os.path.basename(name), number, added.rules.name)
    table, module = _tables().get(rule, ("", None))
    called = rule.becomes if inspect.isfunction(rule.becomes) else rule.where
    defined = None if called is None else sys.modules.get(called.__module__)
    for where in (module, defined):
        line = None if where is None else _rows(where).get(rule.name)
        if where is not None and line:
            return Place(_relative(where), line, table)
    if called is None or defined is None:
        return Place("", 0, table)
    line = called.__code__.co_firstlineno
    return Place(_relative(defined), line, table)


@cache
def _tables() -> dict[Rule, tuple[str, ModuleType | None]]:
    """Return per rule the smallest named table that has it, and the module of the table."""
    tables: dict[Rule, tuple[int, str, ModuleType]] = {}
    for name, module in list(sys.modules.items()):
        if not name.startswith("workbench."):
            continue
        for table in vars(module).values():
            if isinstance(table, RuleSet):
                size = len(table.rules)
                for rule in table.rules:
                    if rule not in tables or size < tables[rule][0]:
                        tables[rule] = size, table.name, module
    return {rule: (name, module) for rule, (_, name, module) in tables.items()}


@cache
def _step_place(name: str) -> tuple[str, int]:
    """Return the file and the line of a step of a function."""
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("workbench."):
            values = list(vars(module).values())
            has_it = any(isinstance(v, PassStep) and v.name == name for v in values)
            if has_it and name in _rows(module):
                return _relative(module), _rows(module)[name]
    return "", 0


@cache
def _rows(module: ModuleType) -> dict[str, int]:
    """Return the line of each `Rule("name", ..`, and of each step, in a module's source."""
    try:
        lines = inspect.getsource(module).split("\n")
    except OSError:  # installed without sources
        return {}
    line_numbers: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        words = line.strip()
        quoted = words.rpartition("PassStep(")[2].removeprefix("Rule(")
        if quoted.startswith('"'):
            line_numbers.setdefault(quoted[1:].partition('"')[0], number)
    return line_numbers


def _relative(module: ModuleType) -> str:
    path = Path(str(module.__file__))
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
