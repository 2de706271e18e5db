"""The passes of a kernel as text, with their rewrites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.base.trace import Match, PassRecord
from workbench.ir.opt.opt import Opt
from workbench.kernel.kernel import Kernel
from workbench.viz.decision_text import outcome
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model import passes
from workbench.viz.model.passes import pass_rows
from workbench.viz.model.provenance import scheduled
from workbench.viz.page.panel import Panel, kernels_text

MOST_STEPS = 200
"""Most rewrites of one pass that are printed."""


def rewrites_text(ex: ScheduledTensors, kernels: Sequence[tuple[int, Kernel]]) -> str:
    """Return for each kernel the passes that changed something or failed, with their rewrites;
    without kernels, those of scheduling."""

    def steps_of(place: int, kernel: Kernel) -> str:
        before = list(scheduled(ex.passes))[place][2]
        return _steps_text((*before, *kernel.observed(kernel.device)))

    text = kernels_text(ex, kernels, steps_of)
    return text if kernels else f"{text}\n{_steps_text(ex.passes)}".rstrip()


def _steps_text(records: Sequence[PassRecord]) -> str:
    parts = []
    for record, row in zip(records, pass_rows(records), strict=True):
        if not record.name or not (row.changed or row.error):
            continue
        head = f"{'  ' * row.depth}{row.name}: {outcome(row)}"
        lines = [f"  {i}. {_step(m)}" for i, m in enumerate(record.matches[:MOST_STEPS], 1)]
        more = len(record.matches) - MOST_STEPS
        lines += [f"  and {more:,} more"] if more > 0 else []
        parts.append("\n".join([head, *lines]))
    return "\n".join(parts)


def _step(match: Match) -> str:
    if isinstance(match.rule, Opt):
        return str(match.rule)
    if match.before is match.after:
        return f"{match.rule!r}: {_line(match.before)}"
    return f"{match.rule!r}: {_line(match.before)}  ->  {_line(match.after)}"


def _line(state: Any) -> str:
    words = passes.text(state).rpartition("\n")[2]
    return words if len(words) <= 100 else f"{words[:98]}.."


PANEL = Panel(pane="rewrites", mode="rewrites", text=rewrites_text)
