"""Saved variants: those of this notebook are restored at once, others on request."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.base.errors import WorkbenchError
from workbench.viz.schema.messages import NoResult
from workbench.viz.schema.saved import SavedEdit, SavedVariant
from workbench.viz.session import persistence
from workbench.viz.session.handlers.variant_names import RESERVED
from workbench.viz.session.handlers.variants import adopt, edited_variant, variant_of
from workbench.viz.session.live_record import Edited, LiveRecord
from workbench.viz.session.opt_text import parse_opt


def show(session: LiveRecord) -> NoResult:
    """Show the variants that other notebooks saved of the expression."""
    with session.lock:
        session.shows_saved = True
    for _ in restored(session):
        session.tell_changes()
    return NoResult()


def forget(session: LiveRecord) -> NoResult:
    """Delete from disk the variants that other notebooks saved, and that are not shown."""
    with session.lock:
        keys = _others(session)
        persistence.forget(session.record.key, keys)
        for key in keys:
            del session.earlier[key]
        count(session)
    return NoResult()


def count(session: LiveRecord) -> None:
    """Set the number of variants that could be shown."""
    number = len(_others(session))
    if number != session.record.saved:
        session.put(("saved",), number)


def _others(session: LiveRecord) -> list[persistence.Key]:
    """Return the variants of other notebooks that could be shown."""
    listed = {
        persistence.key_for(row, session.edited.get(place))
        for place, row in enumerate(session.record.variants)
    }
    return [
        key
        for key, entry in session.earlier.items()
        if 0 <= key.kernel < len(session.record.kernels)
        if entry.name not in RESERVED and not _has_failed(entry)
        if key not in listed and not is_own(session, entry)
    ]


def _has_failed(entry: SavedVariant) -> bool:
    """Whether a variant is edited source that did not compile, crashed, or ran too long."""
    return entry.edited is not None and entry.edited.error is not None


def is_own(session: LiveRecord, entry: SavedVariant) -> bool:
    """Whether a variant comes back by itself: one of this notebook, or where all are shown."""
    return session.shows_saved or persistence.origin() in entry.origins


def restored(session: LiveRecord, only_by_hand: bool = False) -> Iterator[None]:
    """Add the variants that an earlier session of this notebook saved (of any, once they are
    shown), one per step, without running them; variants whose opts are no longer legal are left
    out, and edited source that failed. `only_by_hand` leaves out the default opts and
    their descendants, too: they follow when this session has applied the default opts itself."""
    autos = {key[:2] for key, entry in session.earlier.items() if entry.name == "auto"}
    for key, entry in list(session.earlier.items()):
        if (only_by_hand and key[:2] in autos) or not is_own(session, entry):
            continue
        if _has_failed(entry):
            continue
        with session.lock:
            if 0 <= key.kernel < len(session.record.kernels):
                _restore(session, key, entry)
        yield
    with session.lock:
        count(session)


def _restore(session: LiveRecord, key: persistence.Key, entry: SavedVariant) -> None:
    root = session.record.kernels[key.kernel].root
    try:
        opts = [parse_opt(text) for text in key.opts]
        variant = variant_of(session, session.kernels[root].apply(*opts), root)
        if entry.edited is not None:
            _restore_edited(session, variant, entry, entry.edited)
    except WorkbenchError:
        return  # saved by a version with other opts


def _restore_edited(session: LiveRecord, parent: int, entry: SavedVariant, was: SavedEdit) -> None:
    source = Edited(was.device, was.text)
    if source in session.edited.values():
        return  # the user has added it meanwhile
    variant = edited_variant(session, source, parent, entry.name)
    adopt(session, variant)
    session.set(variant, "error", was.error)
    session.set(variant, "check", was.check)
    if was.check is not None:
        session.checks[variant, source.device] = was.check
