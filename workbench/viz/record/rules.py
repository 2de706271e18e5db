"""Rules as rows of a record: their text, their reason, their place; and their code.

Sections: Rules as rows; Places of rules; The code of a rule.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
from collections.abc import Callable, Container, Sequence
from functools import cache
from pathlib import Path
from textwrap import dedent
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from workbench.base.trace import PassStep
from workbench.ir.gradient.backward import GradientRow
from workbench.ir.opt.opt import Opt
from workbench.ir.rewriting.passes import Switch
from workbench.ir.rewriting.rewrite import Rule, RuleSet, added_rules
from workbench.pipeline import switches
from workbench.viz.model.words import paragraphs
from workbench.viz.schema.messages import CodePart
from workbench.viz.schema.record import RuleRow

# --------------------------------------------------------------------------------------------------
# Rules as rows.


class RuleRows:
    """The table of all rules, opts and steps that were recorded, each once."""

    def __init__(self) -> None:
        self.listed: list[RuleRow] = []
        self._places: dict[Any, int] = {}

    def at(self, place: int) -> Rule | None:
        """Return the rule at a place; None for an opt or a step."""
        key = list(self._places)[place]
        return key if isinstance(key, Rule) else None

    def switches(self) -> list[Switch]:
        """Return the listed rules and steps, without opts."""
        return [key for key in self._places if isinstance(key, Switch)]

    def add(self, rule: Any) -> int:
        """Return the place of a rule, an opt or a step; it is added where it is new."""
        is_key = isinstance(rule, (Rule, Opt, PassStep))
        key = rule if is_key else (rule.name, str(rule))
        if key not in self._places:
            self._places[key] = len(self.listed)
            self.listed.append(rule_row(rule))
        return self._places[key]


def rule_row(rule: Any, usable: Container[object] | None = None) -> RuleRow:
    """Return the row of a rule, an opt or a step: its text, its reason, and its place. `usable` are
    all `switches()`; whoever makes many rows asks for them once."""
    if isinstance(rule, Rule):
        place = place_of(rule)
        text = str(rule).removeprefix(f"{rule.name}: ")
        doc, is_fixed = paragraphs(rule.doc), _is_fixed(rule, usable)
        return RuleRow(rule.name, text, doc, place.file, place.line, place.table, is_fixed)
    if isinstance(rule, GradientRow):
        return _gradient_row(rule)
    if isinstance(rule, PassStep):
        place = _step_place(rule.name)
        return RuleRow(rule.name, "", rule.why, place.file, place.line, "", _is_fixed(rule, usable))
    doc = rule.op.caption if isinstance(rule, Opt) else str(rule.why)
    opts = "" if isinstance(rule, Opt) else ", ".join(map(str, rule.opts))
    name = str(rule) if isinstance(rule, Opt) else rule.name
    table = "opts" if isinstance(rule, Opt) else "default opts"
    return RuleRow(name, opts, doc, "", 0, table, True)


def _is_fixed(switch: Rule | PassStep, usable: Container[object] | None) -> bool:
    return switch not in (switches() if usable is None else usable)


def _gradient_row(row: GradientRow) -> RuleRow:
    """Return the row of a rule of a gradient: its formula as it stands in the table, and its
    place."""
    if row.function is None:
        return RuleRow(row.name, "", row.why, "", 0, "gradients", True)
    code = row.function.__code__
    module = sys.modules[row.function.__module__]
    text, doc = _formula(row.function), inspect.getdoc(row.function) or ""
    why = "\n\n".join(part for part in (paragraphs(doc), row.why) if part)
    place = _relative(str(module.__file__))
    line = code.co_firstlineno
    return RuleRow(row.name, text, why, place, line, "gradients", True)


def _formula(function: Callable[..., Any]) -> str:
    """Return the formula of a gradient rule as it stands in the table, "g, n, x, y: (g, g)"; of a
    function of several lines its name and parameters; "" without sources."""
    if function.__name__ != "<lambda>":
        return f"{function.__name__}({', '.join(inspect.signature(function).parameters)})"
    try:
        row = inspect.getsource(function).strip()
    except OSError:  # installed without sources
        return ""
    head, _, body = row.partition("lambda ")
    names, _, formula = body.partition(":")
    return f"{names}: {formula.strip().rstrip(',')}" if head else ""


# --------------------------------------------------------------------------------------------------
# Places of rules.

ROOT = Path(__file__).parents[3]
"""The folder that has the package: paths of files are relative to it."""


class RulePlace(NamedTuple):
    """The place of a rule: the path of its file, its line and its table. Of a rule that a user
    registered it is the line that registered it, in a cell or in a file."""

    path: str
    line: int
    table: str

    @property
    def file(self) -> str:
        """The file as a row names it."""
        return _relative(self.path)


def place_of(rule: Rule) -> RulePlace:
    """Return the place of a rule: its row in a table, else the function that it calls."""
    for added in added_rules():
        if rule in added.rules.rules:
            name, number = (added.where.name, added.where.line) if added.where else ("", 0)
            return RulePlace(name, number, added.rules.name)
    table, module = _tables().get(rule, ("", None))
    called = rule.becomes if inspect.isfunction(rule.becomes) else rule.where
    defined = None if called is None else sys.modules.get(called.__module__)
    for where in (module, defined):
        line = None if where is None else _rows(where).get(rule.name)
        if where is not None and line:
            return RulePlace(str(where.__file__), line, table)
    if called is None or defined is None:
        return RulePlace("", 0, table)
    line = called.__code__.co_firstlineno
    return RulePlace(str(defined.__file__), line, table)


@cache
def _tables() -> dict[Rule, tuple[str, ModuleType | None]]:
    """Return for each rule the smallest table that has it, and the module of that table."""
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
def _step_place(name: str) -> RulePlace:
    """Return the place of a PassStep; an empty one where it is not found."""
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("workbench."):
            values = list(vars(module).values())
            has_it = any(isinstance(v, PassStep) and v.name == name for v in values)
            if has_it and name in _rows(module):
                return RulePlace(str(module.__file__), _rows(module)[name], "")
    return RulePlace("", 0, "")


@cache
def _rows(module: ModuleType) -> dict[str, int]:
    """Return the line of each `Rule("name", ..` and each step in a module's source."""
    try:
        lines = inspect.getsource(module).split("\n")
    except OSError:  # installed without sources
        return {}
    line_numbers: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        words = line.strip()
        quoted = next((words.partition(c)[2] for c in ("PassStep(", "Rule(") if c in words), words)
        if quoted.startswith('"'):
            line_numbers.setdefault(quoted[1:].partition('"')[0], number)
    return line_numbers


def _relative(file: str) -> str:
    path = Path(file)
    is_own = path.is_relative_to(ROOT / "workbench")
    return path.relative_to(ROOT).as_posix() if is_own else path.name


# --------------------------------------------------------------------------------------------------
# The code of a rule: its row in the table, and the functions that the row names.

MOST_CODE_LINES = 60
"""Most lines of one part of the code of a rule."""


def rule_code(rule: Switch) -> list[CodePart]:
    """Return the source text of a rule or a step: its row in a table, and its functions. Nothing is
    known where the package is installed without sources; a rule of a cell has functions only."""
    if isinstance(rule, GradientRow):
        functions = [("the function", rule.function)]
        return [part for title, each in functions if (part := _function_code(title, each))]
    if isinstance(rule, PassStep):
        row = _row_code(_step_place(rule.name), rule.name, "the step")
        return [row] if row else []
    named = [("becomes", rule.becomes), ("where", rule.where)]
    parts = [_row_code(place_of(rule), rule.name, "the rule")]
    parts += [_function_code(title, function) for title, function in named]
    return [part for part in parts if part is not None]


def _row_code(place: RulePlace, name: str, title: str) -> CodePart | None:
    """Return the call that makes a rule or a step, found by its first argument; None without it."""
    try:
        source = Path(place.path).read_text(encoding="utf-8")
        calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    except (OSError, SyntaxError, ValueError):  # a cell, or installed without sources
        return None
    for call in calls:
        first = call.args[0] if call.args else None
        if isinstance(first, ast.Constant) and first.value == name:
            lines = source.split("\n")[call.lineno - 1 : call.end_lineno]
            return _part(title, place.path, call.lineno, lines)
    return None


def _function_code(title: str, function: object) -> CodePart | None:
    """Return the code of a function; None for a pattern, and without sources."""
    if not isinstance(function, FunctionType):
        return None
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        return None
    return _part(f"{title}: {function.__name__}", function.__code__.co_filename, first, lines)


def _part(title: str, path: str, line: int, lines: Sequence[str]) -> CodePart:
    text = dedent("\n".join(each.rstrip("\n") for each in lines[:MOST_CODE_LINES]))
    more = max(0, len(lines) - MOST_CODE_LINES)
    is_file = os.path.isfile(path)
    return CodePart(
        title, _relative(path) if is_file else "", path if is_file else "", line, text, more
    )
