"""Requests that need no kernel run: an opt applied, default opts, code, and names of variants.

Sections: Names of variants, and deleted variants; Requests that need no kernel run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace as replace_row

from workbench.backends.device import Device, DeviceInfo
from workbench.backends.program.text import Language
from workbench.base.errors import WorkbenchError, cut
from workbench.base.trace import unobserved
from workbench.ir.rewriting.rewrite import is_typed
from workbench.kernel.inputs import FromSchedule
from workbench.kernel.kernel import Kernel
from workbench.viz.model.words import opts_words
from workbench.viz.record.about import IR_LANGUAGES
from workbench.viz.record.record import MOST_KERNELS
from workbench.viz.record.variants import code_row, is_of_one_device, step_rows, without_device
from workbench.viz.schema.messages import NoResult, VariantReply
from workbench.viz.schema.variant import TimingRow, VariantRow, joined_searches
from workbench.viz.session import persistence
from workbench.viz.session.live_record import Edited, LiveRecord
from workbench.viz.session.opt_text import parse_opts
from workbench.viz.session.requests import CHOICE

# --------------------------------------------------------------------------------------------------
# Names of variants, and deleted variants. A variant without a name of its own is called by its
# opts: by the name of its parent, and the opts that it adds.

MOST_NAME = 80
"""Most characters of a name."""
RESERVED = ("plain", "auto")
"""Names of the kernel without opts and with the default opts: no other variant may have them."""
THEN = " + "
"""The text between a parent's name and the opts that a variant adds; the page uses it, too."""


def name(session: LiveRecord, variant: int, text: str) -> NoResult:
    """Name a variant; without text it is called by its opts again.

    Errors: WorkbenchError for "plain" and "auto", and for a name that another variant has.
    """
    row = session.row(variant)
    if row.name in RESERVED:
        because = "every kernel has one of this name, and the page compares with it"
        raise WorkbenchError(f"cannot rename {row.name}", because, "a note")
    named = require_free(session, row.kernel, text, variant)
    session.set(variant, "name", named or _by_opts(session, variant))
    return NoResult()


def require_free(session: LiveRecord, number: int, text: str, but: int | None) -> str:
    """Return `text` as a name that no variant of a kernel has, except perhaps `but`.

    Errors: WorkbenchError for "plain" and "auto", and for a name that another variant has.
    """
    named = " ".join(text.split())[:MOST_NAME]
    if named in {*RESERVED, *_names(session, number, but=but)}:
        because = "another variant of this kernel has that name"
        raise WorkbenchError(f"cannot name it {named!r}", because, "another name")
    return named


def has_default_opts(row: VariantRow) -> bool:
    """Whether a variant is one that every kernel has: without opts, or with those of a device."""
    return row.name in (*RESERVED, f"auto on {row.default_of}")


def delete(session: LiveRecord, variants: list[int], back: bool) -> NoResult:
    """Delete variants, or bring them back. Their children stay.

    Errors: WorkbenchError for the un-optimised variant of a kernel.
    """
    for variant in variants:
        row = session.row(variant)
        if session.record.kernels[row.kernel].root == variant:
            because = "the others are compared with it"
            what = f"cannot delete {row.name}, the kernel without opts"
            raise WorkbenchError(what, because, "another variant")
    for variant in variants:
        session.set(variant, "deleted", not back)
        key = persistence.key_for(session.record, variant, session.edited.get(variant))
        session.earlier.pop(key, None)
        if not back and session.record.pinned == variant:
            session.put(("pinned",), None)
    return NoResult()


def default_name(session: LiveRecord, kernel: Kernel, parent: int, but: int | None = None) -> str:
    """Return the name of a new variant: "UPCAST g1 4" on a kernel without opts, "auto + UNROLL r0
    8" after another variant, "UPCAST g1 4 without form-fma" where a rule is off. The variant `but`
    may have the same name."""
    row, before = session.row(parent), session.kernels[parent]
    number, opts = row.kernel, kernel.applied_opts
    root = session.record.kernels[number].root
    plain = session.kernels[root]
    off = [rule for rule in kernel.rules_off if rule not in plain.rules_off]
    count = len(before.applied_opts)
    extends_parent = opts[:count] == before.applied_opts and len(opts) > count
    if extends_parent and parent != root and before.rules_off == kernel.rules_off:
        words = row.name + THEN + opts_words(opts[count:])
        return free_name(session, number, words, but=but)
    words = opts_words(opts) or ("" if off else "plain")
    typed = [rule for rule in off if is_typed(rule)]
    off = [rule for rule in off if not is_typed(rule)]
    words = f"{words} without {', '.join(off)}".strip() if off else words
    words = f"{words} with {', '.join(typed)}".strip() if typed else words
    return free_name(session, number, words, but=but)


def free_name(
    session: LiveRecord, number: int, word: str, counts: bool = False, but: int | None = None
) -> str:
    """Return `word`, with a number if another variant of the kernel has that name; with `counts`
    always with a number: "search 1"."""
    names = _names(session, number, but)
    names |= {entry.name for entry in session.earlier.values()} if counts else set()
    word = cut(word, MOST_NAME)
    if not counts and word not in names:
        return word
    count = 1 if counts else 2
    while f"{word} {count}" in names:
        count += 1
    return f"{word} {count}"


def _by_opts(session: LiveRecord, variant: int) -> str:
    row, kernel = session.row(variant), session.kernels[variant]
    if row.edited:
        return free_name(session, row.kernel, "edited", counts=True)
    root = session.record.kernels[row.kernel].root
    parent = root if row.parent is None else row.parent
    return default_name(session, kernel, parent, but=variant)


def _names(session: LiveRecord, number: int, but: int | None = None) -> set[str]:
    rows = enumerate(session.record.variants)
    return {v.name for i, v in rows if v.kernel == number and not v.deleted and i != but}


# --------------------------------------------------------------------------------------------------
# Requests that need no kernel run: opts, code, notes, devices.

MOST_VARIANTS = 500
"""Most variants of one session."""
MOST_PREDICTED = 64
"""Most variants that are predicted on a machine that is not here before they are selected."""
MOST_NOTE = 1000
"""Most characters of a note."""
OF_DEVICE = (
    "code", "loops", "counts", "passes", "offers", "refused", "bound", "cost", "error"
)  # fmt: skip
"""Fields of a variant that belong to one device, besides its timing and its check."""
_NEW: Mapping[str, Any] = MappingProxyType(
    {"passes": [], "offers": [], "refused": [], "counts": None, "bound": None}
    | {"cost": None, "error": None}
)
"""Fields of a variant that are not known yet on a device, with their empty values."""


def apply(session: LiveRecord, variant: int, opt: str) -> VariantReply:
    """Apply an offer, one opt or several; return the new variant.

    Errors: ParseError; KernelOptError.
    """
    kernel = session.kernels[variant].apply(*parse_opts(opt))
    return VariantReply(variant_of(session, kernel, variant))


def auto(session: LiveRecord, kernel: int) -> VariantReply:
    """Return the variant of a kernel with the default opts, added if it is new."""
    root = session.record.kernels[kernel].root
    return VariantReply(_default_opts(session, root, session.kernels[root].optimized()))


def _default_opts(session: LiveRecord, root: int, tuned: Kernel) -> int:
    """Return the variant with the default opts of the session's device. It is called "auto", or
    "auto on DEVICE" where the device of the expression may have other default opts."""
    device, first = session.device, session.recorder.exploration.device
    name = "auto" if shares_default_opts(device, first) else f"auto on {device}"
    variant = variant_of(session, tuned, root, name)
    # set here, because the user may have added the variant before
    session.set(variant, "steps", step_rows(tuned.steps))
    session.set(variant, "default_of", device)
    return variant


def shares_default_opts(name: str, other: str) -> bool:
    """Whether two devices have the same default opts, as all processors of this machine have."""
    devices = Device[name], Device[other]
    return name == other or not any(d.is_elsewhere or d.has_groups for d in devices)


def code(session: LiveRecord, variant: int, language: str, device: str | None) -> VariantReply:
    """Add a variant's code in a language for a device (None: the session's), unless it is there.

    Errors: WorkbenchError if the device has no such code, or is missing.
    """
    if device is not None and Device[device].name != session.device:
        return _code_elsewhere(session, variant, language, Device[device])
    if not _has_code(session, variant, language) and variant not in session.edited:
        renderer = _renderer(Device[session.device], language)
        if language in IR_LANGUAGES:
            session.recorder.code.add_ir(variant, IR_LANGUAGES[language])
        elif renderer is not None:
            session.recorder.code.add_readable(variant, *renderer)
        else:
            session.recorder.add_compiled(variant)
    if not _has_code(session, variant, language):
        rows = session.row(variant).code
        refusals = (row.error for row in rows if row.language == language)
        error = next(refusals, None) or session.row(variant).error
        if error is not None:
            raise error.as_error()
        raise _no_code(language, session.device)
    return VariantReply(variant)


def _renderer(info: DeviceInfo, language: str) -> tuple[DeviceInfo, Language] | None:
    """Return the device and the language by which code is rendered without compiling: those of
    another device, or of a machine that is not here, whose compiler may take a second. None: the
    variant must be compiled."""
    for own in info.languages:
        if own.name == language:
            return (info, own) if info.is_elsewhere else None
    return Device.renderer_of(language)


def _code_elsewhere(
    session: LiveRecord, variant: int, language: str, info: DeviceInfo
) -> VariantReply:
    if variant in session.edited:
        because = f"edited source runs on {session.edited[variant].device} alone"
        hint = "the variant that it was edited from"
        raise WorkbenchError(f"{info.name} does not compile this", because, hint)
    _require(info)
    rows = session.row(variant).code_elsewhere
    if not any(row.device == info.name for row in rows):
        session.recorder.code.add_elsewhere(variant, info)
    rows = session.row(variant).code_elsewhere
    if not any((c.device, c.language) == (info.name, language) for c in rows):
        raise _no_code(language, info.name)
    return VariantReply(variant)


def _no_code(language: str, device: str) -> WorkbenchError:
    because = f"{device} makes none of this variant"
    return WorkbenchError(f"there is no {language[:20]} to show", because)


def passes(session: LiveRecord, variant: int) -> NoResult:
    """Compile a variant if it has no passes yet, which adds them, and the links of its code."""
    if variant not in session.edited and not session.row(variant).passes:
        _add_compiled(session, variant)
    return NoResult()


def data(session: LiveRecord, kernel: int) -> NoResult:
    """Add the buffers of a kernel, with which the page runs it, or the reason why there are
    none."""
    with session.lock:
        session.recorder.add_data(kernel)
    return NoResult()


def pin(session: LiveRecord, variant: int | None) -> NoResult:
    """Make a variant the one that others are compared with."""
    session.put(("pinned",), variant)
    return NoResult()


def note(session: LiveRecord, variant: int, text: str) -> NoResult:
    """Set the note of a variant."""
    session.set(variant, "note", text[:MOST_NOTE])
    return NoResult()


def device(session: LiveRecord, name: str) -> NoResult:
    """Change the device: the variants stay, with code, checks and times of that device only.

    Errors: DeviceError for a device that is unknown, or missing: it says how to get it.
    """
    show_device(session, name)
    steps = session.in_this_plan(_prefetch_device(session, Device[session.device]))
    session.jobs.submit(session.recorder, steps, CHOICE)  # a stop does not drop it
    return NoResult()


def show_device(session: LiveRecord, name: str) -> None:
    """Change the device as `device` does, and prefetch nothing.

    Errors: DeviceError for a device that is unknown, or missing: it says how to get it.
    """
    info = Device[name]
    _require(info)
    for variant in range(len(session.kernels)):
        session.elsewhere[variant, session.device] = copy(session.row(variant))
    session.device, session.watched = info.name, None
    session.put(("device",), info.name)
    headline, _, _ = session.record.headline.rpartition(" on ")
    session.put(("headline",), f"{headline} on {info.name}")
    session.put(("elsewhere",), info.notice)
    session.put(("plan", "check"), None)
    for variant, kernel in enumerate(session.kernels):
        session.kernels[variant] = on_device(kernel, info.name)
        _show_device(session, variant)
    session.recorder.machine.show_device()
    session.recorder.runs.show_device()


def _require(info: DeviceInfo) -> None:
    """Errors: DeviceError for a device that is missing: it says how to get it."""
    if not info.is_available and not info.is_elsewhere:
        raise info.missing()


def _prefetch_device(session: LiveRecord, info: DeviceInfo) -> Iterator[None]:
    """Add what is known of a device without running kernels, with its progress: sources, default
    opts and machine code of the first kernels, then predicted times."""
    works = [*_works_of_device(session, info)]
    try:
        for number, (text, work) in enumerate(works):
            if session.device != info.name:
                return
            session.status("device", number, len(works), text, is_asked=True)
            work()
            yield
    finally:
        session.status(None, is_asked=True)
    yield from _predicted(session)
    if info.is_elsewhere:
        yield from _variant_costs(session)


def _works_of_device(
    session: LiveRecord, info: DeviceInfo
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what is added for a device: a text about it, and the work. The default opts are listed
    before anything is compiled, since compilers of machines that are not here start slowly."""
    kernels = session.record.kernels[:MOST_KERNELS]
    has_own = not shares_default_opts(info.name, session.recorder.exploration.device)
    works: list[tuple[str, Callable[[LiveRecord, int], object]]] = []
    if info.is_elsewhere:
        works.append(("source", _add_source))
    if has_own:
        works.append(("default opts", _list_auto))
    if info.is_elsewhere:
        works += [
            ("machine code", _add_compiled),
            ("machine code with default opts", _compile_auto),
        ]
    if has_own:
        works.append(("passes with default opts", _add_auto))
    for text, work in works:
        for number, kernel in enumerate(kernels):
            whose = f" of kernel {number + 1}" if len(kernels) > 1 else ""
            yield f"{text}{whose}", partial(work, session, kernel.root)


def _variant_costs(session: LiveRecord) -> Iterator[None]:
    """Predict the first variants that have no cost yet: on a machine that is not here their rows
    have no other time."""
    device = session.device
    for variant, row in enumerate(session.record.variants[:MOST_PREDICTED]):
        with session.lock:
            if session.device != device:
                return
            if (
                row.cost is None
                and row.error is None
                and not (row.edited or row.deleted)
                and (not row.default_of or shares_default_opts(row.default_of, device))
            ):
                with suppress(WorkbenchError):
                    session.recorder.add_cost(variant)
                session.send_changes()
        yield


def prefetch_code(session: LiveRecord) -> Iterator[None]:
    """Add code of the first kernels for a machine that is not here, whose compilers start slowly:
    first the source of each, which a page opens with, then the machine code of the plain kernels.
    Kernels with the default opts are compiled last. Compiling fills the cache of machine code
    without the session's lock, so that a request meanwhile does not wait."""
    device = Device[session.device]
    if not device.is_elsewhere:
        return
    roots = [kernel.root for kernel in session.record.kernels[:MOST_KERNELS]]
    for work in (_add_source, _add_compiled, _compile_auto):
        for root in roots:
            if session.device != device.name:
                return
            work(session, root)
            yield


def _add_source(session: LiveRecord, variant: int) -> None:
    with session.lock:
        device = Device[session.device]
        language = device.languages[0]
        if not any(c.language == language.name for c in session.row(variant).code):
            session.recorder.code.add_readable_or_error(variant, device, language)
            session.send_changes()


def _add_compiled(session: LiveRecord, variant: int) -> None:
    kernel = session.kernels[variant]
    _compile(lambda: kernel)
    with session.lock:
        row = session.row(variant)
        if session.kernels[variant] is kernel and not row.passes and row.error is None:
            session.recorder.add_compiled(variant)
            session.send_changes()


def _compile_auto(session: LiveRecord, variant: int) -> None:
    _compile(session.kernels[variant].optimized)


def _compile(make: Callable[[], Kernel]) -> None:
    """Compile a kernel to machine code, for the caches. An error is raised again where the code is
    shown."""
    with suppress(Exception), unobserved():
        kernel = make()
        _ = kernel.compile(kernel.device).machine_code


def _list_auto(session: LiveRecord, root: int) -> int | None:
    """Add the variant of a kernel with the default opts of the session's device to the list; return
    it, or None where there is none."""
    with suppress(WorkbenchError), session.lock:  # too many variants, or no opts there
        tuned = session.kernels[root].optimized()
        if tuned.applied_opts:
            variant = _default_opts(session, root, tuned)
            session.send_changes()
            return variant
    return None


def _add_auto(session: LiveRecord, root: int) -> None:
    variant = _list_auto(session, root)
    with suppress(WorkbenchError), session.lock:  # as above
        if variant is not None:
            session.recorder.complete(variant)
            session.send_changes()


def _predicted(session: LiveRecord) -> Iterator[None]:
    """Predict the times of kernels on the session's device, until it changes."""
    device, steps = (session.device, session.recorder.runs.predict(session.recorder.speeds))
    while session.device == device:
        with session.lock:
            if next(steps, None) is None:
                return
            session.send_changes()
        yield


def _show_device(session: LiveRecord, variant: int) -> None:
    """Set the fields of a variant to those that are known on the session's device."""
    edited = session.edited.get(variant)
    has_own_device = edited is not None and not Device[session.device].is_emulator
    timing_key = variant, edited.device if edited and has_own_device else session.device
    row = session.row(variant)
    here_before = session.elsewhere.get((variant, session.device))
    row_here = replace_row(row, **_NEW) if here_before is None else copy(here_before)
    if here_before is None:  # loops and C are the same for every device
        readable = (c for c in row.code if c.device == Device.reader.name)
        row_here.code = [c for c in readable if c.language not in IR_LANGUAGES]
    if edited is not None:
        row_here.code, row_here.error = row.code, row.error
    else:
        others = without_device(row.code_elsewhere, session.device)
        own = [c for c in row.code if is_of_one_device(c) and c not in others]
        session.set(variant, "code_elsewhere", [*others, *own])
    row_here.timing = session.timings.get(timing_key)
    # edited source is always shown with the check on its own device
    answered = timing_key if edited is None else (variant, edited.device)
    row_here.check = session.checks.get(answered)
    for field in (*OF_DEVICE, "timing", "check"):
        session.set(variant, field, getattr(row_here, field))
    show_elsewhere(session, variant)


def show_elsewhere(session: LiveRecord, variant: int) -> None:
    """Show the timings of a variant on other devices than the session's. Edited source has one
    device."""
    timing = session.row(variant).timing
    rows = [
        _with_bytes(row, session.elsewhere.get((variant, device)))
        for (v, device), row in session.timings.items()
        if v == variant and row is not timing and device != session.device
    ]
    if variant not in session.edited and rows != session.row(variant).elsewhere:
        session.set(variant, "elsewhere", rows)


def _with_bytes(timing: TimingRow, row: VariantRow | None) -> TimingRow:
    """Return a timing on another device, with the bytes that a run moves there if the variant was
    compiled for it."""
    if row is None or row.counts is None:
        return timing
    moved = row.counts["bytes_loaded"] + row.counts["bytes_stored"]
    return replace_row(timing, moved_bytes=moved)


def on_device(kernel: Kernel, name: str) -> Kernel:
    """Return the kernel for another device, on the same data; unchanged if it has data of its
    own."""
    if not isinstance(kernel.data, FromSchedule):
        return kernel
    return replace(kernel, data=kernel.data.for_device(name))


# variants


def variant_of(session: LiveRecord, kernel: Kernel, parent: int, name: str = "") -> int:
    """Return the variant with this kernel, added to the record if it is new, and brought back if it
    was deleted. Without a name it is called by its opts.

    Errors: WorkbenchError where there are too many.
    """
    existing = session.recorder.variant_of(parent, kernel)
    if existing is not None:
        if session.row(existing).deleted:
            session.set(existing, "deleted", False)
        return existing
    require_space(session)
    number = session.row(parent).kernel
    named = name or default_name(session, kernel, parent)
    variant = session.recorder.add_variant(number, kernel, named, parent, _now())
    session.set(variant, "rules_off", list(kernel.rules_off))
    adopt(session, variant, renames=not name)
    return variant


def edited_variant(session: LiveRecord, source: Edited, parent: int, name: str = "") -> int:
    """Return a new variant of edited source, added to the record without running it.

    Errors: WorkbenchError where there are too many variants.
    """
    require_space(session)
    number = session.row(parent).kernel
    named = name or free_name(session, number, "edited", counts=True)
    kernel, lines = session.kernels[parent], source.text.split("\n")
    variant = session.recorder.add_variant(number, kernel, named, parent, _now())
    session.edited[variant] = source
    session.set(variant, "edited", True)
    code = code_row(Device[source.device], lines, language=source.language)
    session.set(variant, "code", [code])
    return variant


def require_space(session: LiveRecord) -> None:
    """Errors: WorkbenchError if the session has its greatest number of variants."""
    if len(session.kernels) >= MOST_VARIANTS:
        because = f"there are {len(session.kernels)} already"
        raise WorkbenchError("no more variants", because, "explore again")


def _now() -> int:
    return int(time.time())


def adopt(session: LiveRecord, variant: int, renames: bool = False) -> None:
    """Set the note, date, pin and timings that an earlier session saved for a variant; with
    `renames` also its name."""
    row = session.row(variant)
    source = session.edited.get(variant)
    entry = session.earlier.get(persistence.key_for(session.record, variant, source))
    if entry is None:
        return
    if renames and entry.name not in ("", "plain", "auto"):
        session.set(variant, "name", entry.name)
    if row.when and entry.when:
        session.set(variant, "when", entry.when)
    session.set(variant, "note", entry.note)
    session.set(variant, "searches", joined_searches(row.searches, entry.searches))
    for name, timing in entry.timings.items():
        session.timings.setdefault((variant, name), timing)
    device = session.device if source is None else source.device
    session.set(variant, "timing", session.timings.get((variant, device)))
    show_elsewhere(session, variant)
    if entry.pinned and session.record.pinned is None:  # else the user chose it here
        session.put(("pinned",), variant)


def _has_code(session: LiveRecord, variant: int, language: str) -> bool:
    code = session.row(variant).code
    return any(c.language == language and c.error is None for c in code)
