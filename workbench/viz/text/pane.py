"""One pane of an exploration: a value that prints as text, and is shown alone in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import to_builtins

from workbench.base.display import Printed
from workbench.base.trace import Match, PassRecord
from workbench.ir.opt.opt import Opt
from workbench.kernel.kernel import Kernel
from workbench.measure.speeds import Speeds
from workbench.viz.model import rewrites
from workbench.viz.model.decisions import printed_decisions
from workbench.viz.model.loops import kernel_nest
from workbench.viz.model.passes import pass_rows
from workbench.viz.model.provenance import scheduled
from workbench.viz.model.words import explained, kernel_number
from workbench.viz.record.links import readable
from workbench.viz.record.variants import readable_code, variant_row
from workbench.viz.scheduled_tensors import ScheduledTensors
from workbench.viz.session.timing_rows import timing_text
from workbench.viz.text.decisions import decisions_text
from workbench.viz.text.nest import nest_text
from workbench.viz.text.passes import outcome

PANES = {
    "loops": "tune", "plan": "plan", "rewrites": "rewrites", "code": "tune", "results": "tune",
}  # fmt: skip
"""The panes that can stand alone, and the mode of the page each belongs to."""
MOST_STEPS = 200
"""Rewrites of one pass that are printed."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pane(Printed):
    """One pane of an exploration. `name` is a key of PANES; `variant` is the kernel that it is of,
    with its place (None: all of them)."""

    exploration: ScheduledTensors
    name: str
    variant: tuple[int, Kernel] | None = None

    @property
    def view(self) -> dict[str, Any]:
        """What of a page is looked at."""
        only = {"only": self.name, "mode": PANES[self.name]}
        return only if self.variant is None else {**only, "kernel": self.variant[0]}

    def __str__(self) -> str:
        ex = self.exploration
        variants = enumerate(ex.kernels) if self.variant is None else [self.variant]
        if self.name == "plan":
            return plan_text(ex)
        if self.name == "results":
            return results_text(ex)
        of_kernel = _OF_KERNEL[self.name]
        parts = [f"{_head(i, k)}\n{of_kernel(ex, i, k)}" for i, k in variants]
        return "\n\n".join(parts) or self._nothing()

    def _nothing(self) -> str:
        ex = self.exploration
        more = [steps_text(ex.passes)] if self.name == "rewrites" else []
        return "\n".join([ex.headline, ex.nothing_to_do, *more]).rstrip()


def plan_text(ex: ScheduledTensors) -> str:
    """Return the kernels, and the decisions that made them."""
    kernels = [_head(i, k) for i, k in enumerate(ex.kernels)]
    nothing = [ex.nothing_to_do] if ex.nothing_to_do else []
    decisions = decisions_text(printed_decisions(ex.decisions), len(ex.decisions))
    return "\n".join([ex.headline, *nothing, *kernels, decisions])


def loops_text(ex: ScheduledTensors, number: int, kernel: Kernel) -> str:
    """Return the loop nest of a kernel, with what each loop touches."""
    return explained(lambda: nest_text(kernel_nest(kernel)))


def code_text(ex: ScheduledTensors, number: int, kernel: Kernel) -> str:
    """Return the C of a kernel."""
    return explained(lambda: "\n".join(readable_code(readable(kernel)[0]).lines))


def rewrites_text(ex: ScheduledTensors, number: int, kernel: Kernel) -> str:
    """Return every pass that changed something on the way to a kernel, with its rewrites."""
    before = list(scheduled(ex.passes))[number][2]
    return steps_text((*before, *kernel.observed(kernel.device)))


def steps_text(records: Sequence[PassRecord]) -> str:
    """Return every pass that changed something, with its rewrites."""
    parts = []
    for record, row in zip(records, pass_rows(records), strict=True):
        if not record.name or not (row.changed or row.error):
            continue
        head = f"{'  ' * row.depth}{row.name}: {outcome(row)}"
        lines = [
            f"  {i}. {_step(m)}" for i, m in enumerate(record.matches[:MOST_STEPS], 1)
        ]
        more = len(record.matches) - MOST_STEPS
        lines += [f"  and {more:,} more"] if more > 0 else []
        parts.append("\n".join([head, *lines]))
    return "\n".join(parts)


def results_text(ex: ScheduledTensors) -> str:
    """Return the variants that were tried where the exploration is shown, with times, checks and
    notes; the plain ones where nobody tried any."""
    rows, speeds = tried(ex), speeds_of(ex)
    parts = []
    for number, kernel in enumerate(ex.kernels):
        own = [row for row in rows if row["kernel"] == number]
        lines = [
            _head(number, kernel),
            *[line for row in own for line in _result(row, speeds)],
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) or f"{ex.headline}\n{ex.nothing_to_do}"


def tried(ex: ScheduledTensors) -> list[dict[str, Any]]:
    """Return the rows of the variants of an exploration, as the record has them."""
    session = ex.display.session
    if session is None:
        return [
            to_builtins(variant_row(i, k, "plain", None))
            for i, k in enumerate(ex.kernels)
        ]
    with session.lock:
        return [dict(row) for row in session.record["variants"]]


def speeds_of(ex: ScheduledTensors) -> Speeds | None:
    """Return the speeds that an exploration's record has; None where it has none yet."""
    session = ex.display.session
    return None if session is None else session.recorder.speeds


def _result(row: Mapping[str, Any], speeds: Speeds | None) -> Iterator[str]:
    opts = ", ".join(row["opts"]) or "no opts"
    how = [*row["rules_off"], *(["source edited by hand"] if row["edited"] else [])]
    yield f"  {row['name']}: {'; '.join([opts, *how])}"
    yield f"    {timing_text(row['timing'], speeds) if row['timing'] else 'not timed'}"
    remarks = [
        row["check"] and row["check"]["text"],
        row["error"] and _error_text(row["error"]),
    ]
    for words in (*remarks, row["note"]):
        if words:
            yield f"    {words}"


def _error_text(error: Mapping[str, str]) -> str:
    return f"failed: {error['what']}: {error['because']}".rstrip(": ")


def _head(place: int, kernel: Kernel) -> str:
    where = "" if kernel.line is None else f"  {kernel.line}"
    return f"kernel {kernel_number(place)}: {kernel.title or kernel.name}{where}"


def _step(match: Match) -> str:
    if isinstance(match.rule, Opt):
        return str(match.rule)
    if match.before is match.after:
        return f"{match.rule!r}: {_line(match.before)}"
    return f"{match.rule!r}: {_line(match.before)}  ->  {_line(match.after)}"


def _line(state: Any) -> str:
    words = rewrites.text(state).rpartition("\n")[2]
    return words if len(words) <= 100 else f"{words[:98]}.."


_OF_KERNEL = {"loops": loops_text, "code": code_text, "rewrites": rewrites_text}
