"""Edited source: compiled while the user types, and run as a variant, both in a worker process."""

from __future__ import annotations

from workbench.backends.compilers.compilers import MachineCode
from workbench.backends.device import Device
from workbench.backends.native.program import AsmLine
from workbench.backends.program.text import require_readable
from workbench.base.errors import DeviceError, WorkbenchError
from workbench.base.typed import typed
from workbench.viz.record.about import language_rows
from workbench.viz.record.variants import error_row
from workbench.viz.schema.messages import EditedCode, VariantReply
from workbench.viz.schema.variant import CodeRow
from workbench.viz.session.handlers import measurement, variants
from workbench.viz.session.live_record import Edited, LiveRecord
from workbench.viz.session.opt_text import edited_code
from workbench.worker.client import TaskStopped, Worker


def compile_source(
    session: LiveRecord, variant: int, language: str, text: str | None
) -> EditedCode:
    """Compile source that is being edited, without running it; return its code, or the error of the
    compiler. Without `text` the variant's edited source is compiled, and its code is set in the
    record.

    Errors: DeviceError for a language that no device here runs; TaskStopped; WorkbenchError if,
    without `text`, the variant was not edited, or another user edited it.
    """
    own = session.edited.get(variant)
    if text is None and own is None:
        what = "there is no source to compile"
        raise WorkbenchError(what, "the variant was not edited", "a text to compile")
    if text is None:
        measurement.refuse_foreign(session, variant)
    source = own if text is None else Edited(_runs(session, language), text)
    assert source is not None
    try:
        require_readable(source.text)
        with session.jobs.use_worker(source.device) as worker:
            code = _compiled(session, worker, variant, source)
    except TaskStopped:
        raise
    except WorkbenchError as error:
        return EditedCode([], error_row(error))
    if text is None:
        session.set(variant, "code", code)
    return EditedCode(code, None)


def edit(session: LiveRecord, variant: int, language: str, text: str) -> VariantReply:
    """Run edited source as a new variant, which is checked, and timed beside the original. An error
    of its run is set at the new variant. For a machine that is not here it is only compiled.

    Errors: DeviceError for a language that no device here runs; TaskStopped; WorkbenchError for
    source that its compiler refuses, with the line, and for too many variants: then no variant is
    added.
    """
    source = Edited(_runs(session, language), text)
    require_readable(text)
    variants.require_space(session)
    is_alone = Device[source.device].can_abort
    with session.jobs.use_worker(source.device, exclusive=is_alone) as worker:
        code = _compiled(session, worker, variant, source)
        with session.lock:
            child = variants.edited_variant(session, source, variant)
            session.set(child, "code", code)
            session.send_changes()
        if Device[source.device].is_elsewhere:
            return VariantReply(child)
        try:
            kernel = session.kernels[child]
            if kernel.has_data and kernel.original.code is None:
                measurement.check_variant(session, worker, child)
            number = session.row(variant).kernel
            group = [variant, child, measurement.reference(session, variant)]
            group = list(dict.fromkeys(group + measurement.headline(session, number)))
            limits = measurement.BUDGET_S, measurement.SAMPLES
            measurement.time_group(session, worker, group, False, *limits)
        except TaskStopped:
            raise
        except WorkbenchError as error:
            with session.lock:
                session.set(child, "error", error_row(error))
    return VariantReply(child)


def _compiled(session: LiveRecord, worker: Worker, variant: int, source: Edited) -> list[CodeRow]:
    """Return the rows of edited source and its machine code, compiled by the worker.

    Errors: WorkbenchError, with the line where the compiler names one.
    """
    with session.lock:
        candidate = measurement.kernel_row(session.kernels[variant])
        original = _original(session, variant, source.device)
    candidate |= {"device": source.device, "source": source.text}
    worker.start()
    task = {"do": "compile", "kernel": candidate}
    answer = measurement.ask(session, worker, task, "compile")
    assembly = [AsmLine(*line) for line in answer["assembly"]]
    elsewhere = typed(answer["code"], MachineCode) if answer["code"] else None
    if elsewhere is None and Device[source.device].is_elsewhere:
        what = f"{source.device} takes no edited text"
        raise DeviceError(what, "no compiler for it is known", "another machine")
    return edited_code(source.device, source.text, original, assembly, elsewhere)


def _original(session: LiveRecord, variant: int, device: str) -> CodeRow | None:
    """Return the code of a variant (edited source: of its origin) in a device's language."""
    language = Device[device].language
    place: int | None = variant
    while place in session.edited:
        place = session.row(place).parent
    rows = [] if place is None else session.row(place).code
    name = None if language is None else language.name
    return next((row for row in rows if row.language == name and row.lines), None)


def _runs(session: LiveRecord, language: str) -> str:
    """Return the device that runs a language as text, or compiles it for a machine that is not
    here; the session's device comes before others. Errors: DeviceError if there is none."""
    device = Device.for_text(language, session.device)
    if device is None:
        what = f"{language[:20]} cannot be edited"
        names = " or ".join(row.name for row in language_rows() if row.device)
        raise DeviceError(what, "no device here takes it as text", names)
    if not device.is_available and not (device.is_elsewhere and device.compiles_text):
        what = f"a text of {language} cannot be compiled here"
        because = f"{device.name} is not here, and nothing here compiles {language}"
        raise DeviceError(what, because, device.how_to_get)
    return device.name
