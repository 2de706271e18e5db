"""The opening record of a page: all facts of an exploration that need no computation, and tables
that only grow.
"""

from __future__ import annotations

from typing import NamedTuple

from workbench.measure.speeds import Speeds
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.glossary.glossary import glossary_rows
from workbench.viz.model.families import family_rows
from workbench.viz.model.kinds import kind_rows
from workbench.viz.model.opts import opt_kind_rows
from workbench.viz.model.words import plural
from workbench.viz.page.panel import sections
from workbench.viz.record.about import device_rows, expression_key, language_rows, machine
from workbench.viz.record.nodes import Lines, Nodes, Texts, bounded
from workbench.viz.record.passes import PassRows
from workbench.viz.record.plan import empty_plan
from workbench.viz.record.recipe import page_recipes, recipe
from workbench.viz.record.rules import RuleRows
from workbench.viz.schema.record import ExpressionRow, PageRecord, WithoutRow

VERSION = 1


class Tables(NamedTuple):
    """What rows refer to by its place: each thing once."""

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
        machine=machine(machine_speeds, ex.device),
        kinds=kind_rows(),
        opt_kinds=opt_kind_rows(),
        glossary=list(glossary_rows()),
        lines=tables.lines.listed,
        nodes=tables.nodes.columns,
        readings=tables.nodes.readings.listed,
        families=family_rows(),
        texts=tables.texts.listed,
        rules=tables.rules.listed,
        passes=tables.passes.listed,
        plan=empty_plan(),
        kernels=[],
        variants=[],
        pinned=None,
        saved=0,
        baselines=[],
        panels=dict.fromkeys(sections()),
        origin=bounded(ex.origin.words),
    )
