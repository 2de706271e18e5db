"""The variants of a kernel as text, with times, checks and notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy

from workbench.backends.device import Device
from workbench.kernel.kernel import Kernel
from workbench.measure.kernel_time import seconds_text
from workbench.measure.speeds import Speeds
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model.words import kernel_number
from workbench.viz.page.panel import Panel, kernels_text
from workbench.viz.record.variants import variant_row
from workbench.viz.schema.variant import ErrorWords, VariantRow
from workbench.viz.session.opt_text import timing_text


def results_text(ex: ScheduledTensors, kernels: Sequence[tuple[int, Kernel]]) -> str:
    """Return the variants of the exploration's session; without a session the kernels without
    opts."""
    rows, speeds = _tried(ex), _speeds(ex)

    def results_of(place: int, kernel: Kernel) -> str:
        own = [row for row in rows if row.kernel == place and not row.deleted]
        return "\n".join(line for row in own for line in _result(row, speeds))

    return "\n".join([kernels_text(ex, kernels, results_of), *_baselines(ex, kernels)])


def _baselines(ex: ScheduledTensors, kernels: Sequence[tuple[int, Kernel]]) -> Iterator[str]:
    """Yield the lines of the baselines of all kernels, with what each takes in their modules."""
    session = ex.display.session
    if session is None:
        return
    with session.lock:
        rows = [copy(row) for row in session.record.baselines]
    if rows:
        yield "baselines"
    for row in rows:
        about = f" ({row.about})" if row.about else ""
        time = timing_text(row.timing, None) if row.timing else row.error or "not timed"
        yield f"  {row.name}{about}: {time}"
        times = {module.path: module.seconds for module in row.modules}
        for place, kernel in kernels:
            paths = dict.fromkeys(call.path for call in kernel.modules if call.path in times)
            if paths:
                total = seconds_text(sum(times[path] for path in paths))
                yield f"    {total} in {', '.join(paths)}, as kernel {kernel_number(place)}"


def _tried(ex: ScheduledTensors) -> list[VariantRow]:
    """Return the rows of the variants in the session's record; without a session, of the kernels
    without opts."""
    session = ex.display.session
    if session is None:
        return [variant_row(i, k, "plain", None) for i, k in enumerate(ex.kernels)]
    with session.lock:
        return [copy(row) for row in session.record.variants]


def _speeds(ex: ScheduledTensors) -> Speeds | None:
    """Return the speeds in an exploration's record; None where it has none yet."""
    session = ex.display.session
    return None if session is None else session.recorder.speeds


def _how_edited(row: VariantRow) -> str:
    """Return that the source was edited, and whether it was compiled for a machine that is not
    here."""
    device = row.code[0].device
    is_run = not Device[device].is_elsewhere
    only = "" if is_run else f", compiled for {device}, not run"
    return f"source edited by hand{only}"


def _result(row: VariantRow, speeds: Speeds | None) -> Iterator[str]:
    opts = ", ".join(row.opts) or "no opts"
    how = [*row.rules_off, *([_how_edited(row)] if row.edited else [])]
    yield f"  {row.name}: {'; '.join([opts, *how])}"
    yield f"    {timing_text(row.timing, speeds) if row.timing else 'not timed'}"
    for other in row.elsewhere:
        yield f"    on {other.device}: {timing_text(other, speeds)}"
    remarks = [row.check and row.check.text, row.error and _error_text(row.error)]
    for words in (*remarks, row.note):
        if words:
            yield f"    {words}"


def _error_text(error: ErrorWords) -> str:
    return f"failed: {error.what}: {error.because}".rstrip(": ")


PANEL = Panel(pane="results", mode="tune", text=results_text)
