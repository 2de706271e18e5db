"""The request of the pane GPU: a kernel on the emulator, one group of it step by step."""

from __future__ import annotations

from workbench.base.errors import WorkbenchError
from workbench.emulator.emulate import emulate_for_steps
from workbench.viz.schema.replies import NoResult
from workbench.viz.session.live_record import LiveRecord
from workbench.worker.client import TaskStopped


def emulate(
    session: LiveRecord, variant: int, group: list[int] | None, without: int | None
) -> NoResult:
    """Add to a variant its run on the emulator, with the steps of a group (None: that of the first
    finding, else the first one), `without` one of the program's barriers.

    Errors: WorkbenchError where its data are not here, for code edited by hand, and for a group
    that there is not.
    """
    kernel, mine = session.kernels[variant], session.recorder
    if session.row(variant).edited:
        what, because = "this cannot be stepped", "its code was edited by hand"
        raise WorkbenchError(what, because, "the variant it is of")
    session.status("emulate", 0, 1, "running all work-items")
    try:
        run = emulate_for_steps(kernel, True if group is None else group, without)
    finally:
        session.status(None)
    if session.jobs.is_stopped():
        raise TaskStopped()
    with session.lock:
        if session.recorder is mine and session.kernels[variant] is kernel:
            mine.add_trace(variant, run, without)
            session.tell_changes()
    return NoResult()
