"""The page of a run by itself: a record without an exploration, in which the pane Run is shown."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.viz.glossary import glossary_rows
from workbench.viz.model.graph import FAMILIES, kind_rows
from workbench.viz.model.words import opt_kind_rows
from workbench.viz.record.about import device_rows, language_rows, machine_row
from workbench.viz.record.plan import empty_plan
from workbench.viz.schema.messages import ViewState
from workbench.viz.schema.record import (
    ExpressionRow,
    NodeColumns,
    PageRecipes,
    PageRecord,
    WithoutRow,
)
from workbench.viz.schema.run import RunRecord

RUN_VIEW = ViewState(mode="run", only="run")
"""The view of the page of a run: that pane alone."""


def page_record(runs: Sequence[RunRecord]) -> PageRecord:
    """Return the record of the page of the last of `runs`, with those that it is compared with."""
    run = runs[-1]
    return PageRecord(
        v=1, key="", expr=ExpressionRow(f"run {run.title}"[:200], None, ""), device="",
        elsewhere="", devices=device_rows(), languages=language_rows(), headline="", nothing="",
        without=WithoutRow([], ""), recipes=PageRecipes("", "", "", "", ["", ""], "", ""),
        machine=machine_row(), kinds=kind_rows(), opt_kinds=opt_kind_rows(),
        glossary=list(glossary_rows()), lines=[],
        nodes=NodeColumns([], [], [], [], [], [], [], [], []), readings=[], families=FAMILIES,
        texts=[], rules=[], passes=[], plan=empty_plan(), kernels=[], variants=[], pinned=None,
        saved=0, saved_edits=[], restoring=None, unsaved=[], saved_plans=[], baselines=[],
        panels={}, runs=[*runs],
    )  # fmt: skip
