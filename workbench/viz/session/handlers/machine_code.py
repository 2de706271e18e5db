"""Details of machine code on request: the costs of its instructions, and the passes of its
compiler.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from workbench.viz.listing.instructions import instruction_costs
from workbench.viz.record.about import ASSEMBLY
from workbench.viz.schema.messages import NoResult
from workbench.viz.schema.variant import CodeRow, CompilerPass, CompilerPasses
from workbench.viz.session.handlers import measurement
from workbench.viz.session.live_record import LiveRecord


def costs(session: LiveRecord, variant: int, device: str | None) -> NoResult:
    """Add what the instructions of a variant cost on a device (None: the session's), where a tool
    here knows it."""
    row = _machine_code(session, variant, device)
    is_here = row is not None and not row.note  # the tool knows this machine's processor
    outcome = instruction_costs(row.lines) if row is not None and is_here else None
    if row is not None and outcome is not None:
        changes = {"costs": outcome.lines, "costs_by": outcome.source}
        _replace(session, variant, row, changes)
    return NoResult()


def compiler_passes(session: LiveRecord, variant: int) -> NoResult:
    """Add the passes of the compiler that made the machine code of a variant.

    Errors: WorkbenchError for a compiler that does not say them.
    """
    row = _machine_code(session, variant)
    if row is None:
        return NoResult()
    with session.lock:
        candidate = measurement.worker_row(session, variant)
    with session.jobs.use_worker(row.device) as worker:
        worker.start()
        task = {"do": "passes", "kernel": candidate}
        answer = measurement.ask(session, worker, task, "the compiler's passes")
    _replace(session, variant, row, {"made_by": _passes(answer["passes"])})
    return NoResult()


def _passes(listed: list[tuple[str, str, list[str]]]) -> CompilerPasses:
    places: dict[str, int] = {}
    passes = [
        CompilerPass(name, title, [places.setdefault(x, len(places)) for x in lines])
        for name, title, lines in listed
    ]
    return CompilerPasses(list(places), passes)


def _machine_code(session: LiveRecord, variant: int, device: str | None = None) -> CodeRow | None:
    with session.lock:
        row = session.row(variant)
        code = row.code
        if device is not None:
            both = *row.code, *row.code_elsewhere
            code = [c for c in both if c.device == device]
        return next((c for c in code if c.language == ASSEMBLY.name), None)


def _replace(session: LiveRecord, variant: int, row: CodeRow, changes: dict[str, Any]) -> None:
    """Change a program of a variant, unless it has another one now, as on another device."""
    with session.lock:
        changed = replace(row, **changes)
        for field in ("code", "code_elsewhere"):
            code = getattr(session.row(variant), field)
            if any(other is row for other in code):
                both = [changed if other is row else other for other in code]
                session.set(variant, field, both)
