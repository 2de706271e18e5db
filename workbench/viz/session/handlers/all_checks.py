"""The request that checks every kernel, and the results of the whole exploration."""

from __future__ import annotations

from workbench.base.errors import WorkbenchError
from workbench.base.trace import unobserved
from workbench.viz.model.words import plural
from workbench.viz.schema.messages import NoResult
from workbench.viz.schema.variant import CheckRow
from workbench.viz.session.handlers import measurement
from workbench.viz.session.live_record import LiveRecord
from workbench.worker.client import TaskStopped


def check_all(session: LiveRecord) -> NoResult:
    """Compare each kernel, with the default opts if that variant exists, and the results with what
    the expression means. Each verdict on a kernel is set at its variant, the one on all at the
    plan.

    Errors: WorkbenchError if data of a kernel are missing; TaskStopped.
    """
    mine, device = session.recorder, session.device
    for kernel in mine.exploration.kernels:
        kernel.require_data("cannot check this exploration")
    wrong: list[str] = []
    try:
        for number in range(len(session.record.kernels)):
            if session.jobs.is_stopped():
                raise TaskStopped()
            wrong += _wrong(session, number)
        session.status("check_all", len(session.record.kernels), 0, "all results")
        with unobserved():
            results = [run.check(device) for run in mine.exploration.runs]
    finally:
        session.status(None)
    wrong += ["the results" for result in results if not result.ok][:1]
    kernels = plural(len(session.record.kernels), "kernel")
    head = f"WRONG: {', '.join(wrong)}" if wrong else f"right: {kernels}, all results"
    text = "; ".join([f"{head} on {device}", *map(str, results)])
    with session.lock:
        if session.recorder is mine and session.device == device:
            session.put(("plan", "check"), CheckRow(not wrong, text))
            session.send_changes()
    return NoResult()


def _wrong(session: LiveRecord, number: int) -> list[str]:
    """Return the name of a kernel that is wrong or fails, in a list; [] if it is right."""
    variant = _variant(session, number)
    name = f"kernel {number + 1} {session.row(variant).name}"
    session.status("check_all", number, len(session.record.kernels), name)
    try:
        with measurement.use_worker(session, [variant]) as worker:
            measurement.check_variant(session, worker, variant)
    except TaskStopped:
        raise
    except WorkbenchError as error:
        return [f"{name} ({error.what})"]
    is_right = session.checks[variant, session.device].ok
    return [] if is_right else [name]


def _variant(session: LiveRecord, number: int) -> int:
    """Return the variant of a kernel that is checked: with the default opts, or the plain one."""
    return next(
        (
            v for v, row in enumerate(session.record.variants)
            if row.kernel == number and row.name == "auto" and not row.deleted
        ),
        session.record.kernels[number].root,
    )  # fmt: skip
