"""Edited source, and edited IR: compiled while the user types, and run as a variant, both in a
worker process; for a device that is not here the emulator reads and runs the text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from workbench.backends.compilers.compilers import MachineCode
from workbench.backends.compilers.refusal import line_words
from workbench.backends.device import Device
from workbench.backends.native.program import AsmLine
from workbench.backends.program.text import require_readable
from workbench.base.errors import DeviceError, WorkbenchError, plural
from workbench.base.typed import typed
from workbench.edited import EditedIR
from workbench.emulator.emulate import (
    MOST_PAGE_S,
    UNASKED_S,
    defects_of_edit,
    emulate_for_steps,
    read_ir,
    read_text,
)
from workbench.emulator.source.languages import LANGUAGES
from workbench.emulator.source.program import TextProgram
from workbench.emulator.source.tokens import SourceError
from workbench.emulator.steps import Trace
from workbench.kernel.kernel import Kernel
from workbench.viz.record.about import IR_LANGUAGES, language_rows
from workbench.viz.record.links import readable
from workbench.viz.record.variants import error_row
from workbench.viz.schema.messages import EditedCode, NoResult, VariantReply
from workbench.viz.schema.variant import CheckRow, CodeRow
from workbench.viz.session.handlers import measurement, variants
from workbench.viz.session.live_record import Edited, LiveRecord
from workbench.viz.session.opt_text import edited_code, edited_ir_code
from workbench.worker.client import TaskStopped, Worker
from workbench.worker.rows import Row

IR_S = 30.0
"""Seconds after which a worker that reads and lowers edited IR counts as hanging."""


def compile_source(
    session: LiveRecord, variant: int, language: str, text: str | None
) -> EditedCode:
    """Compile source that is being edited, without running it; return its code, or the error of the
    compiler. Without `text` the variant's edited source is compiled, and its code is set in the
    record. For a device that is not here, the emulator reads the text first.

    Errors: DeviceError for a language that no device here runs; TaskStopped; WorkbenchError if,
    without `text`, the variant was not edited, or another user edited it.
    """
    own = session.edited.get(variant)
    if text is None and own is None:
        what = "there is no source to compile"
        raise WorkbenchError(what, "the variant was not edited", "a text to compile")
    if text is None:
        measurement.refuse_foreign(session, variant)
    source = own if text is None else _edited(session, language, text)
    assert source is not None
    try:
        require_readable(source.text)
        code = _code(session, variant, source)
    except TaskStopped:
        raise
    except WorkbenchError as error:
        return EditedCode([], error_row(error))
    if text is None:
        session.set(variant, "code", code)
    return EditedCode(code, None)


def edit(session: LiveRecord, variant: int, language: str, text: str) -> VariantReply:
    """Run edited source as a new variant, which is checked, and timed beside the original. An error
    of its run is set at the new variant. For a machine that is not here it runs on the emulator,
    which checks it and names its defects; in another language it is only compiled. A text that is
    unchanged is no new variant: the one that has it runs again.

    Errors: DeviceError for a language that no device here runs; TaskStopped; WorkbenchError for
    source that its compiler refuses, with the line, and for too many variants: then no variant is
    added.
    """
    source = _edited(session, language, text)
    require_readable(text)
    unchanged = _unchanged(session, variant, source)
    if unchanged is not None:
        return _run_again(session, unchanged, source)
    variants.require_space(session)
    if is_emulated(source):
        return _edit_emulated(session, variant, source)
    is_alone = Device[source.device].can_abort
    with session.jobs.use_worker(source.device, exclusive=is_alone) as worker:
        code = _compiled(session, worker, variant, source)
        child = _added(session, variant, source, code)
        _check_and_time(session, worker, child, variant)
    return VariantReply(child)


def _check_and_time(session: LiveRecord, worker: Worker, edited: int, beside: int) -> None:
    """Check a variant of edited source, and time it beside another one; where its device is not
    here, do nothing."""
    source, kernel = session.edited[edited], session.kernels[edited]
    if Device[source.device].is_elsewhere and not source.level:
        return
    with _errors_of(session, edited):
        if kernel.has_data and kernel.original.code is None:
            measurement.check_variant(session, worker, edited)
            if source.level:
                _name_defects(session, edited, UNASKED_S)
        group = [beside, edited, measurement.reference(session, beside)]
        group = measurement.with_latest(session, group)
        limits = measurement.BUDGET_S, measurement.SAMPLES
        measurement.time_group(session, worker, group, False, *limits)


def _unchanged(session: LiveRecord, variant: int, source: Edited) -> int | None:
    """Return the variant that has a text already: another edit of the same kernel, or the variant
    whose code was edited; None if the text is new."""
    number = session.row(variant).kernel
    for place, other in session.edited.items():
        if session.row(place).kernel == number and _is_same(other, source):
            return place
    code = None if variant in session.edited else _original(session, variant, source)
    is_own = code is not None and _text(code) == source.text.rstrip()
    return variant if is_own else None


def _is_same(one: Edited, other: Edited) -> bool:
    return replace(one, text=one.text.rstrip()) == replace(other, text=other.text.rstrip())


def _text(code: CodeRow) -> str:
    return "\n".join(code.lines).rstrip()


def _run_again(session: LiveRecord, variant: int, source: Edited) -> VariantReply:
    """Run a variant whose text was not changed, and say so; one that was never edited is timed,
    also on the device of the text. Errors: TaskStopped."""
    with session.lock:
        if session.row(variant).deleted:
            session.set(variant, "deleted", False)
    name, run = session.row(variant).name, ""
    device = Device[source.device]
    if variant not in session.edited:
        if not device.is_elsewhere and not Device[session.device].is_elsewhere:
            group = [variant, measurement.reference(session, variant)]
            group = measurement.with_latest(session, group)
            with session.jobs.use_worker(session.device) as worker:
                limits = measurement.BUDGET_S, measurement.SAMPLES
                measurement.time_group(session, worker, group, False, *limits, device.name)
            run = ", timed again"
    else:
        with session.lock:
            session.set(variant, "error", None)
        run = ", run again"
        if is_emulated(source):
            with _errors_of(session, variant):
                emulate_edited(session, variant, None, None)
        else:
            parent = session.row(variant).parent
            assert parent is not None  # it was edited from that
            with session.jobs.use_worker(device.name, exclusive=device.can_abort) as worker:
                _check_and_time(session, worker, variant, parent)
    return VariantReply(variant, f"the text is unchanged: this is {name}{run}")


def _added(session: LiveRecord, variant: int, source: Edited, code: list[CodeRow]) -> int:
    """Add edited source as a variant with its code; return its place."""
    with session.lock:
        child = variants.edited_variant(session, source, variant)
        session.set(child, "code", code)
        session.send_changes()
    return child


@contextmanager
def _errors_of(session: LiveRecord, variant: int) -> Iterator[None]:
    """Set an error of the block, which runs a variant, at that variant; TaskStopped is raised."""
    try:
        yield
    except TaskStopped:
        raise
    except WorkbenchError as error:
        with session.lock:
            session.set(variant, "error", error_row(error))


def is_emulated(source: Edited) -> bool:
    """Whether the emulator reads and runs edited text for its device: it is not here."""
    info, language = Device[source.device], source.language
    named = bool(source.level) or (language is not None and language.name in LANGUAGES)
    return named and info.is_elsewhere and info.has_groups


def _edited(session: LiveRecord, language: str, text: str) -> Edited:
    """Return a text that a user edited, with the device that runs it: IR text runs on the session's
    device. Errors: as `_runs`."""
    level = IR_LANGUAGES.get(language)
    if level is None:
        return Edited(_runs(session, language), text)
    return Edited(session.device, text, level=level)


def _code(session: LiveRecord, variant: int, source: Edited) -> list[CodeRow]:
    """Return the rows of edited source, which the emulator reads first if it is the one that runs
    it; IR is read where it is compiled. Errors: as `_read` and `_compiled`."""
    if is_emulated(source) and not source.level:
        return _read(session, variant, source)
    with session.jobs.use_worker(source.device) as worker:
        return _compiled(session, worker, variant, source)


def _read(session: LiveRecord, variant: int, source: Edited) -> list[CodeRow]:
    """Return the rows of source that the emulator has read, and of its machine code if a compiler
    is here.

    Errors: SourceError, with line and column; WorkbenchError of the compiler, with the line.
    """
    info = Device[source.device]
    assert info.language is not None
    try:
        _program(session.kernels[variant], source)
    except SourceError as error:
        place = measurement.unedited(session, variant)
        if place is None:
            raise
        stages, _ = readable(session.kernels[place], info.name, info.language)
        words, hint = line_words(stages.source.edited(source.text), error.at.line)
        raise SourceError(error.at, error.because + words, error.hint or hint) from error
    try:
        with session.jobs.use_worker(source.device) as worker:
            return _compiled(session, worker, variant, source)
    except TaskStopped:
        raise
    except WorkbenchError as error:
        if error.line is not None:  # a compiler is here, and refuses the text
            raise
    with session.lock:
        original = _original(session, variant, source)
    return edited_code(source.device, source.text, original, [], None)


def _edit_emulated(session: LiveRecord, variant: int, source: Edited) -> VariantReply:
    """Run edited source on the emulator, as a new variant. Errors: as `_code`."""
    child = _added(session, variant, source, _code(session, variant, source))
    with _errors_of(session, child):
        emulate_edited(session, child, None, None)
    return VariantReply(child)


def check(session: LiveRecord, variant: int) -> NoResult:
    """Compare the outputs of a variant with what the expression means; those of source edited for a
    machine that is not here as the emulator computes them. Name the defects of edited IR.

    Errors: as `measurement.check` and `emulate_edited`.
    """
    edited = session.edited.get(variant)
    if edited is None or not is_emulated(edited):
        result = measurement.check(session, variant)
        if edited is not None and edited.level:
            _name_defects(session, variant, MOST_PAGE_S)
        return result
    measurement.refuse_foreign(session, variant)
    emulate_edited(session, variant, None, None)
    return NoResult()


def emulate_edited(
    session: LiveRecord, variant: int, group: list[int] | None, without: int | None
) -> None:
    """Run a variant of edited source on the emulator, and set its steps and its check.

    Errors: WorkbenchError if its data are not here; as `_trace`; TaskStopped.
    """
    source, kernel, mine = session.edited[variant], session.kernels[variant], session.recorder
    first = True if group is None else group
    with emulating(session, "running all work-items"):
        trace = _trace(kernel, source, first, without)
    with session.lock:
        if session.recorder is not mine:
            return
        mine.add_trace(variant, trace, without)
        if without is None:
            check = _check(trace)
            session.checks[variant, source.device] = check
            session.set(variant, "check", check)
        session.send_changes()


@contextmanager
def emulating(session: LiveRecord, text: str) -> Iterator[None]:
    """Show the progress of a run on the emulator, with a button that stops it.

    Errors: TaskStopped, after the run.
    """
    session.status("emulate", 0, 1, text)
    try:
        yield
    finally:
        session.status(None)
        if session.jobs.is_stopped():
            raise TaskStopped()


def _trace(kernel: Kernel, source: Edited, group: bool | list[int], barrier: int | None) -> Trace:
    """Return a run of edited text on the emulator. Errors: as `read_ir`, `read_text` and
    `emulate_for_steps`."""
    info, edited = Device[source.device], _program(kernel, source)
    return emulate_for_steps(kernel, info.target, group, barrier, edited=edited)


def _program(kernel: Kernel, source: Edited) -> TextProgram | EditedIR:
    info = Device[source.device]
    if source.level:
        return read_ir(kernel, info.name, source.text)
    assert info.language is not None
    return read_text(kernel, info.target, info.language.name, source.text)


def _name_defects(session: LiveRecord, variant: int, most_s: float) -> None:
    """Add to the verdict on edited IR that is wrong what the emulator says of it: the access
    outside of memory, with its line. It may take `most_s` seconds, in which a cell would wait."""
    source, row = session.edited[variant], session.row(variant)
    if row.check is None or row.check.ok is not False:
        return
    kernel, info = session.kernels[variant], Device[source.device]
    edited, found = read_ir(kernel, info.name, source.text), ""
    try:
        with emulating(session, f"looking for the defect, at most {most_s:g} s"):
            trace = defects_of_edit(kernel, info.target, edited, most_s)
            found = _check(trace).text if trace.findings else ""
    except DeviceError:
        if most_s < MOST_PAGE_S:
            found = f"Check looks for the line, at most {MOST_PAGE_S:g} s"
    if found:
        with session.lock:
            check = CheckRow(False, f"{row.check.text}; {found}")
            session.checks[variant, source.device] = check
            session.set(variant, "check", check)


def _check(trace: Trace) -> CheckRow:
    """Return the verdict of a run on the emulator."""
    if trace.findings:
        first, *more = trace.findings
        lines = [str(n) for n in trace.numbers(first)]
        word = "lines" if len(lines) > 1 else "line"
        where = f" ({word} {' and '.join(lines)})" if lines else ""
        rest = f"; {plural(len(more), 'more defect')}" if more else ""
        return CheckRow(False, f"WRONG on the emulator: {first}{where}{rest}")
    if trace.sample is not None:
        return CheckRow(None, f"PARTLY CHECKED: {trace.sample.words(trace.launch)}")
    count = sum(array.size for array in trace.outputs.values())
    return CheckRow(True, f"right on the emulator: {count:,} elements compared, no defect found")


def _compiled(session: LiveRecord, worker: Worker, variant: int, source: Edited) -> list[CodeRow]:
    """Return the rows of edited source and its machine code, compiled by the worker.

    Errors: WorkbenchError, with the line where the compiler names one.
    """
    with session.lock:
        candidate = measurement.kernel_row(session.kernels[variant])
        original = _original(session, variant, source)
    candidate |= source.fields
    worker.start()
    task: Row = {"do": "compile", "kernel": candidate}
    if source.level:
        task["silent_s"] = IR_S
    answer = measurement.ask(session, worker, task, "compile")
    assembly = [AsmLine(*line) for line in answer["assembly"]]
    elsewhere = typed(answer["code"], MachineCode) if answer["code"] else None
    if source.level:
        return edited_ir_code(source, original, answer["source"], assembly, elsewhere)
    if elsewhere is None and Device[source.device].is_elsewhere:
        what = f"{source.device} takes no edited text"
        raise DeviceError(what, "no compiler for it is known", "another machine")
    return edited_code(source.device, source.text, original, assembly, elsewhere)


def _original(session: LiveRecord, variant: int, source: Edited) -> CodeRow | None:
    """Return the code of a variant (edited source: of its origin) in the language of a source."""
    place = measurement.unedited(session, variant)
    rows = [] if place is None else session.row(place).code
    name = None if source.language is None else source.language.name
    return next((row for row in rows if row.language == name and row.lines), None)


def _runs(session: LiveRecord, language: str) -> str:
    """Return the device that runs a language as text, or compiles it for a machine that is not
    here; the session's device comes before others. Errors: DeviceError if there is none."""
    device = Device.for_text(language, session.device)
    if device is None:
        what = f"{language[:20]} cannot be edited"
        names = " or ".join(row.name for row in language_rows() if row.device)
        raise DeviceError(what, "no device here takes it as text", names)
    can_read = is_emulated(Edited(device.name, "")) or device.is_elsewhere and device.compiles_text
    if not device.is_available and not can_read:
        what = f"a text of {language} cannot be compiled here"
        because = f"{device.name} is not here, and nothing here compiles {language}"
        raise DeviceError(what, because, device.how_to_get)
    return device.name
