"""The expression of a page as Python code, and the opening record of a page.

Sections: The expression of a page as Python code that binds `ex` to the same exploration; The
opening record of a page.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from keyword import iskeyword
from typing import NamedTuple

from workbench.ir.opt.opt import Opt, OptOps
from workbench.measure.speeds import Speeds
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.exploration.replanning import replan_calls
from workbench.viz.glossary import glossary_rows
from workbench.viz.model.graph import FAMILIES, kind_rows
from workbench.viz.model.words import opt_kind_rows, plural
from workbench.viz.page.panel import sections
from workbench.viz.record.about import device_rows, expression_key, language_rows, machine_row
from workbench.viz.record.nodes import Lines, Nodes, Texts, bounded
from workbench.viz.record.passes import PassRows
from workbench.viz.record.plan import empty_plan
from workbench.viz.record.rules import RuleRows
from workbench.viz.schema.record import ExpressionRow, PageRecipes, PageRecord, WithoutRow

# --------------------------------------------------------------------------------------------------
# The expression of a page as Python code that binds `ex` to the same exploration; the code of a
# pass or a decision is in model/loops.py.

MOST_TEXT = 2000
"""Most characters of a line that is parsed."""
MOST_NAMES = 4
"""Most arrays that a baseline's example names."""
MOST_WORDS = 2
"""Most words of the name of a parameter that name an argument."""
EXPLORE = "explore"
EXAMPLE_OPTS = (Opt(OptOps.UPCAST, "g1", 4), Opt(OptOps.UNROLL, "r0", 8))
"""An example of opts that can be pasted."""


def recipe(ex: Exploration) -> str:
    """Return code that binds `ex` to an exploration equal to this one. It names the tensors as the
    user's line does, or `y` where the line does not say."""
    off = f", without={ex.rules_off!r}" if ex.rules_off else ""
    expression = _explored(ex)
    note = "" if expression else f"  # {_tensor_comment(ex)}"
    unknown = "y" if len(ex.tensors) == 1 else "*y"
    device = f", device={json.dumps(ex.on)}" if ex.on else ""
    lines = [f"ex = {EXPLORE}({expression or unknown}{off}{device}){note}"]
    lines += replan_calls(ex)
    return "\n".join(["from workbench import explore", "", *lines, ""])


def page_recipes(ex: Exploration) -> PageRecipes:
    """Return the Python code of a page that belongs to no single kernel or pass."""
    off = [json.dumps(name) for name in ex.rules_off]
    return PageRecipes(
        plan="print(ex.plan)\n",
        opts=", ".join(map(str, EXAMPLE_OPTS)),
        baseline=f"ex = {EXPLORE}(...); {baseline_recipe(ex)}",
        add='ex.add(kernel, "its name")',
        without=[f'{EXPLORE}(y, without=({", ".join([*off, ""])}"', '"))' if off else '",))'],
        replan="\n".join(replan_calls(ex)),
        script='ex.to_python("kernels.py")  # writes their data beside it\n',
    )


def baseline_recipe(ex: Exploration) -> str:
    """Return code that adds a baseline. A model or a function that was explored is its own, with
    its inputs. Else it is numpy: the user's line if it has operators alone, which numpy has, too,
    or a call of `f`, which the user writes. The arrays are default arguments with the user's names:
    they are copied once, outside of the timed call. A parameter of a model, whose name has dots, is
    an argument with its last words."""
    if ex.viewer.line is not None and (explored := _explored(ex)):
        return f'ex.baseline("as it is", {explored})'
    written = {b for item in ex.items for b in item.outputs}
    read = [b for item in ex.items for b in item.inputs if b not in written]
    names = [name for b in read if (name := ex.lines.name(b))]
    names = list(dict.fromkeys(names))
    text = "" if ex.line is None else ex.line.text
    body = _operators_alone(_explored(ex), names) or _operators_alone(text, names)
    if not body:  # `f` is for the user to write
        names = [name for name in names if _is_expression(name)][:MOST_NAMES]
        body = f"f({', '.join(_arguments(names))})"
    given = zip(_arguments(names), names, strict=True)
    arguments = ", ".join([f"{argument}={name}.numpy()" for argument, name in given])
    return f'ex.baseline("numpy", lambda{arguments and f" {arguments}"}: {body})'


def _is_expression(name: str) -> bool:
    """Whether a name is code: that of a tensor of a list or of a model is, with brackets or dots;
    one that says more is not."""
    try:
        return not isinstance(ast.parse(name, mode="eval").body, ast.Constant)
    except (SyntaxError, ValueError):
        return False


def _arguments(names: Sequence[str]) -> list[str]:
    """Return an argument's name for each name, all different: the name itself if it can be one."""
    arguments: list[str] = []
    for name in names:
        last = "_".join(re.findall(r"[^\W\d]\w*", name)[-MOST_WORDS:])
        argument = name if _is_plain(name) else last if _is_plain(last) else "array"
        free = (argument, *[f"{argument}{n}" for n in range(2, len(names) + 2)])
        taken = {*arguments, *[n for n in names if n != name]}
        arguments.append(next(n for n in free if n not in taken))
    return arguments


def _is_plain(name: str) -> bool:
    return name.isidentifier() and not iskeyword(name)


def _operators_alone(text: str, names: Sequence[str]) -> str:
    """Return the expression of a line that has only operators, numbers and all of `names`, which a
    kernel reads in this order; "" for other lines. In another order they may have been bound anew
    since: `y = a @ b; a, b = b, a`."""
    try:
        statements = ast.parse(text[:MOST_TEXT]).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    match statements:
        case [ast.Assign(value=value) | ast.Expr(value=value)]:
            nodes = list(ast.walk(value))
        case _:
            return ""
    used = [node for node in nodes if isinstance(node, ast.Name)]
    used.sort(key=lambda node: (node.lineno, node.col_offset))
    in_order = list(dict.fromkeys(node.id for node in used))
    allowed = (
        ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant, ast.operator, ast.unaryop, ast.Load,
    )  # fmt: skip
    is_plain = all(isinstance(node, allowed) for node in nodes)
    return ast.unparse(value) if is_plain and used and in_order == list(names) else ""


def _explored(ex: Exploration) -> str:
    """Return the arguments of `explore` in the user's line, or the name that the line gives its one
    tensor; "" where it has neither."""
    text = "" if ex.line is None else ex.line.text
    try:
        body = ast.parse(text[:MOST_TEXT]).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    for node in (n for statement in body for n in ast.walk(statement)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(EXPLORE):
            return ", ".join(map(ast.unparse, node.args))
    is_made_there = ex.line is not None and not ex.line.inner
    match body:
        case [ast.Assign(targets=[ast.Name(id=name)])] if len(ex.tensors) == 1:
            return name if is_made_there else ""
    return ""


def _tensor_comment(ex: Exploration) -> str:
    if len(ex.tensors) > 1:
        return f"y: a list of your {len(ex.tensors)} tensors"
    where = "" if ex.line is None else f" of {ex.line}"
    return f"y: your tensor{where}"


# --------------------------------------------------------------------------------------------------
# The opening record of a page: all facts of an exploration that need no computation, and tables
# that only grow.

VERSION = 1


class Tables(NamedTuple):
    """The tables of a record; rows refer to them by place."""

    lines: Lines
    texts: Texts
    rules: RuleRows
    nodes: Nodes
    passes: PassRows

    @staticmethod
    def of(ex: Exploration) -> Tables:
        """Return the empty tables of an exploration."""
        lines, texts, rules = Lines(), Texts(), RuleRows()
        nodes = Nodes(lines, ex.lines, ex.items)
        return Tables(lines, texts, rules, nodes, PassRows(nodes, texts, rules))


def opening(ex: Exploration, tables: Tables, machine_speeds: Speeds | None) -> PageRecord:
    """Return the record with its tables, no plan and no kernels."""
    named = ex.line.text if ex.line else f"explore of {plural(len(ex.tensors), 'tensor')}"
    return PageRecord(
        v=VERSION,
        key=expression_key(ex.outputs),
        expr=ExpressionRow(bounded(named), tables.lines.add(ex.line), recipe(ex)),
        device=ex.device,
        elsewhere=bounded(ex.elsewhere),
        devices=device_rows(),
        languages=language_rows(),
        headline=ex.kernel_counts,
        nothing=bounded(ex.nothing_to_do),
        without=WithoutRow(list(ex.rules_off), ""),
        recipes=page_recipes(ex),
        machine=machine_row(machine_speeds, ex.device),
        kinds=kind_rows(),
        opt_kinds=opt_kind_rows(),
        glossary=list(glossary_rows()),
        lines=tables.lines.listed,
        nodes=tables.nodes.columns,
        readings=tables.nodes.readings.listed,
        families=FAMILIES,
        texts=tables.texts.listed,
        rules=tables.rules.listed,
        passes=tables.passes.listed,
        plan=empty_plan(),
        kernels=[],
        variants=[],
        pinned=None,
        saved=0,
        saved_edits=[],
        restoring=None,
        unsaved=[],
        saved_plans=[],
        baselines=[],
        panels=dict.fromkeys(sections()),
        origin=bounded(ex.origin.words),
    )
