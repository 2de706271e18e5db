"""Requests that Python answers by itself: applying opts, code, notes, devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace as replace_row

from workbench.backends.device import Device
from workbench.base.errors import DeviceError, WorkbenchError
from workbench.ir.opt.opt import Opt
from workbench.kernel.inputs import FromSchedule
from workbench.kernel.kernel import Kernel
from workbench.viz.record.variants import code_row, error_row, step_rows
from workbench.viz.schema.replies import NoResult, VariantReply
from workbench.viz.schema.saved import SavedEdit, SavedVariant
from workbench.viz.session import persistence
from workbench.viz.session.live_record import Edited, LiveRecord
from workbench.viz.session.opt_text import parse_opt, parse_opts

MOST_VARIANTS = 500
"""Most variants of one session."""
MOST_NOTE = 1000
OF_DEVICE = (
    "code", "loops", "counts", "passes", "offers", "refused", "bound", "cost", "error"
)  # fmt: skip
"""Fields of a variant that belong to one device, besides its timing and its check."""
_NEW: Mapping[str, Any] = MappingProxyType(
    {"passes": [], "offers": [], "refused": [], "counts": None, "bound": None}
    | {"cost": None, "error": None}
)
"""What of a variant is not known on a device that is new to it."""


def apply(session: LiveRecord, variant: int, opt: str) -> VariantReply:
    """Apply one opt to a variant; return the new variant."""
    kernel = session.kernels[variant].apply(parse_opt(opt))
    return VariantReply(variant_of(session, kernel, variant))


def paste(session: LiveRecord, variant: int, text: str) -> VariantReply:
    """Apply a whole list of opts to the un-optimised kernel of a variant. Where one is not legal,
    those before it are applied, and the error is shown with the variant.

    Errors: ParseError; KernelOptError where the first one is not legal.
    """
    root = _root(session, variant)
    kernel, opts = session.kernels[root], parse_opts(text)
    candidate, error = _as_far_as_possible(kernel, opts)
    if error is not None and candidate is kernel:
        raise error
    child = variant_of(session, candidate, root)
    if error is not None:
        session.set(child, "error", error_row(error))
    return VariantReply(child)


def auto(session: LiveRecord, kernel: int) -> VariantReply:
    """Return the variant with the default opts."""
    root = session.record.kernels[kernel].root
    tuned = session.kernels[root].optimized()
    variant = variant_of(session, tuned, root, "auto")
    # the user may have added it before
    session.set(variant, "steps", step_rows(tuned.steps))
    return VariantReply(variant)


def code(session: LiveRecord, variant: int, language: str) -> VariantReply:
    """Compile a variant, unless the code in that language is there.

    Errors: WorkbenchError where the device has no such code.
    """
    if not _has_code(session, variant, language) and variant not in session.edited:
        device = Device.for_language(language)
        if device is not None and device in Device.renderers:
            session.recorder.add_readable(variant, device)
        else:
            session.recorder.add_compiled(variant)
    error = session.row(variant).error
    if not _has_code(session, variant, language):
        if error is not None:
            raise WorkbenchError(error.what, error.because, error.hint)
        because = f"{session.device} makes none of this variant"
        raise WorkbenchError(f"there is no {language[:20]} to show", because)
    return VariantReply(variant)


def pin(session: LiveRecord, variant: int | None) -> NoResult:
    """Make a variant the one that others are compared with."""
    session.put(("pinned",), variant)
    return NoResult()


def note(session: LiveRecord, variant: int, text: str) -> NoResult:
    """Set the note of a variant."""
    session.set(variant, "note", text[:MOST_NOTE])
    return NoResult()


def device(session: LiveRecord, name: str) -> NoResult:
    """Change the device: the same variants, with code, answers and times of that device only.

    Errors: DeviceError for a device that is unknown, or missing: it says how to get it.
    """
    info = Device[name]
    if not info.is_available:
        what = f"the device {info.name} is not available here"
        raise DeviceError(what, info.about, info.how_to_get)
    for variant in range(len(session.kernels)):
        session.elsewhere[variant, session.device] = copy(session.row(variant))
    session.device, session.watched = info.name, None
    session.put(("device",), info.name)
    headline, _, _ = session.record.headline.rpartition(" on ")
    session.put(("headline",), f"{headline} on {info.name}")
    for variant, kernel in enumerate(session.kernels):
        session.kernels[variant] = on_device(kernel, info.name)
        _show_device(session, variant)
    return NoResult()


def _show_device(session: LiveRecord, variant: int) -> None:
    """Show the fields of a variant that are known on the session's device."""
    edited = session.edited.get(variant)
    is_apart = edited is not None and not Device[session.device].is_emulator
    here = variant, edited.device if edited and is_apart else session.device
    row = session.row(variant)
    here_before = session.elsewhere.get((variant, session.device))
    row_here = replace_row(row, **_NEW) if here_before is None else copy(here_before)
    if here_before is None:  # loops and C are the same for every device
        row_here.code = [c for c in row.code if c.device == Device.reader.name]
    if edited is not None:
        row_here.code, row_here.error = row.code, row.error
    row_here.timing, row_here.check = (
        session.timings.get(here),
        session.checks.get(here),
    )
    for field in (*OF_DEVICE, "timing", "check"):
        session.set(variant, field, getattr(row_here, field))


def on_device(kernel: Kernel, name: str) -> Kernel:
    """Return the kernel as it would run on another device, on the same data."""
    if not isinstance(kernel.data, FromSchedule):
        return kernel
    return replace(kernel, data=replace(kernel.data, on=name))


# variants


def variant_of(session: LiveRecord, kernel: Kernel, parent: int, name: str = "") -> int:
    """Return the variant that `kernel` is, added to the record where it is new.

    Errors: WorkbenchError where there are too many.
    """
    existing = session.recorder.variant_of(parent, kernel)
    if existing is not None:
        return existing
    _leave_room(session)
    number = session.row(parent).kernel
    named = name or free_name(session, number, "mine")
    variant = session.recorder.add_variant(number, kernel, named, parent)
    session.set(variant, "rules_off", list(kernel.rules_off))
    adopt(session, variant)
    return variant


def edited_variant(
    session: LiveRecord, source: Edited, parent: int, name: str = ""
) -> int:
    """Return a variant of source edited by hand, added to the record without running it.

    Errors: WorkbenchError where there are too many variants.
    """
    _leave_room(session)
    number = session.row(parent).kernel
    named = name or free_name(session, number, "edited")
    kernel, lines = session.kernels[parent], source.text.split("\n")
    variant = session.recorder.add_variant(number, kernel, named, parent)
    session.edited[variant] = source
    session.set(variant, "edited", True)
    code = code_row(Device[source.device], lines)
    session.set(variant, "code", [code])
    return variant


def _leave_room(session: LiveRecord) -> None:
    if len(session.kernels) >= MOST_VARIANTS:
        because = f"there are {len(session.kernels)} already"
        raise WorkbenchError("no more variants", because, "explore again")


def free_name(session: LiveRecord, number: int, word: str) -> str:
    """Return "mine 1", or the next number that no variant of the kernel has."""
    names = {v.name for v in session.record.variants if v.kernel == number}
    names |= {entry.name for entry in session.earlier.values()}
    count = 1
    while f"{word} {count}" in names:
        count += 1
    return f"{word} {count}"


def adopt(session: LiveRecord, variant: int) -> None:
    """Set the note, pin and timings that an earlier session saved for a variant."""
    row = session.row(variant)
    source = session.edited.get(variant)
    entry = session.earlier.get(persistence.key_for(row, source))
    if entry is None or row.rules_off:
        return
    if row.name.startswith("mine") and entry.name not in ("plain", "auto"):
        session.set(variant, "name", entry.name)
    session.set(variant, "note", entry.note)
    session.set(variant, "search", entry.search)
    for name, timing in entry.timings.items():
        session.timings.setdefault((variant, name), timing)
    device = session.device if source is None else source.device
    session.set(variant, "timing", session.timings.get((variant, device)))
    if entry.pinned and session.record.pinned is None:  # else the user chose it here
        session.put(("pinned",), variant)


def restored(session: LiveRecord, only_by_hand: bool = False) -> Iterator[None]:
    """Add the variants that an earlier session saved, one per step, without running them; variants
    whose opts are no longer legal are left out. `only_by_hand` leaves out the default opts and
    their descendants, too: they follow when this session has applied the default opts itself."""
    autos = {key[:2] for key, entry in session.earlier.items() if entry.name == "auto"}
    for key, entry in list(session.earlier.items()):
        if only_by_hand and key[:2] in autos:
            continue
        with session.lock:
            if 0 <= key.kernel < len(session.record.kernels):
                _restore(session, key, entry)
        yield


def _restore(session: LiveRecord, key: persistence.Key, entry: SavedVariant) -> None:
    root = session.record.kernels[key.kernel].root
    try:
        opts = [parse_opt(text) for text in key.opts]
        variant = variant_of(session, session.kernels[root].apply(*opts), root)
        if entry.edited is not None:
            _restore_edited(session, variant, entry, entry.edited)
    except WorkbenchError:
        return  # saved by a version with other opts


def _restore_edited(
    session: LiveRecord, parent: int, entry: SavedVariant, was: SavedEdit
) -> None:
    source = Edited(was.device, was.text)
    if source in session.edited.values():
        return  # the user has added it meanwhile
    variant = edited_variant(session, source, parent, entry.name)
    adopt(session, variant)
    session.set(variant, "error", was.error)
    session.set(variant, "check", was.check)
    if was.check is not None:
        session.checks[variant, source.device] = was.check


def _root(session: LiveRecord, variant: int) -> int:
    number = session.row(variant).kernel
    return session.record.kernels[number].root


def _as_far_as_possible(
    kernel: Kernel, opts: Sequence[Opt]
) -> tuple[Kernel, WorkbenchError | None]:
    for opt in opts:
        try:
            kernel = kernel.apply(opt)
        except WorkbenchError as error:
            return kernel, error
    return kernel, None


def _has_code(session: LiveRecord, variant: int, language: str) -> bool:
    code = session.row(variant).code
    return any(c.language == language and c.error is None for c in code)
