"""One pane of an exploration: a value that prints as text, and is shown alone in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.backends.device import Device
from workbench.display import Printed
from workbench.errors import WorkbenchError
from workbench.ir.opt.opt import Opt
from workbench.kernel.kernel import Kernel
from workbench.trace import Match, PassRecord, unobserved
from workbench.viz.model import loops, rewrites
from workbench.viz.model.passes import outcome, pass_rows
from workbench.viz.record.variants import c_code

if TYPE_CHECKING:
    from workbench.viz.exploration import Exploration

MOST_STEPS = 200
"""Rewrites of one pass that are printed."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pane(Printed):
    """One pane. `name` says which ("loops", "plan", "rewrites", "code"); `view` what of it is
    looked at; `text()` gives what is printed, made when it is asked for."""

    exploration: Exploration
    name: str
    text: Callable[[], str]
    view: Mapping[str, Any]

    def __str__(self) -> str:
        return self.text()


def loops_text(kernels: tuple[Kernel, ...]) -> str:
    """Return the loop nest of every kernel, with what each loop touches."""
    return "\n\n".join(f"{_head(i, k)}\n{_nest(k)}" for i, k in enumerate(kernels))


def code_text(number: int, kernel: Kernel) -> str:
    """Return the C of a kernel."""
    try:
        code = "\n".join(c_code(kernel)["lines"])
    except WorkbenchError as error:
        code = str(error)
    return f"{_head(number, kernel)}\n{code}"


def rewrites_text(records: Sequence[PassRecord]) -> str:
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


def _head(number: int, kernel: Kernel) -> str:
    where = "" if kernel.line is None else f"  {kernel.line}"
    return f"kernel {number}: {kernel.title or kernel.name}{where}"


def _nest(kernel: Kernel) -> str:
    try:
        with unobserved():
            nest = loops.loop_nest(kernel.ast, Device[kernel.device].target)
    except WorkbenchError as error:
        return str(error)
    return loops.to_text(nest)


def _step(match: Match) -> str:
    if isinstance(match.rule, Opt):
        return str(match.rule)
    if match.before is match.after:
        return f"{match.rule!r}: {_line(match.before)}"
    return f"{match.rule!r}: {_line(match.before)}  ->  {_line(match.after)}"


def _line(state: Any) -> str:
    words = rewrites.text(state).rpartition("\n")[2]
    return words if len(words) <= 100 else f"{words[:98]}.."
