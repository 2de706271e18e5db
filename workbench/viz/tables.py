"""Tuples that print as a table: what `Exploration.passes` and `.decisions` are."""

from __future__ import annotations

from workbench.base.display import Printed
from workbench.base.trace import PassRecord
from workbench.ir.schedule.item import Decision
from workbench.viz.model.decisions import printed_decisions
from workbench.viz.model.passes import outcomes
from workbench.viz.text.decisions import decisions_text
from workbench.viz.text.passes import passes_text


class PassTable(Printed, tuple[PassRecord, ...]):
    """Passes in execution order; printed, a line each: its outcome and its time."""

    __slots__ = ()

    def __str__(self) -> str:
        return passes_text(tuple(outcomes(self))) or "no passes"


class Decisions(Printed, tuple[Decision, ...]):
    """Decisions of the scheduler; printed, a line each: the value, whether it is stored or fused,
    and why."""

    __slots__ = ()

    def __str__(self) -> str:
        return decisions_text(printed_decisions(self), len(self)) or "no decisions"
