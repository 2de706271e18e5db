"""Variants saved on disk, and restored when the cell runs again, or Python has restarted.

A JSON file per expression and machine in the cache folder, of the type `SavedVariants`. Opts are
saved as text, and parsed when they are read. Edited source stays marked as edited, so that it runs
only in a process of its own. A damaged file counts as absent. Writers merge with the file's
variants and replace it atomically, so that two sessions at once leave a valid file.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol
from uuid import uuid4

from msgspec.structs import replace

from workbench.backends.device import Device
from workbench.base.cache import key_of, read_json, update_json, warn
from workbench.base.errors import DeviceError
from workbench.base.interrupts import free_lock
from workbench.base.typed import to_json
from workbench.edited import IRLevel
from workbench.measure.speeds import FLOATS
from workbench.viz.record.about import machine_row
from workbench.viz.schema.record import PageRecord
from workbench.viz.schema.saved import SavedEdit, SavedVariant, SavedVariants
from workbench.viz.schema.variant import SearchRow, TimingRow, VariantRow

FOLDER = "variants"
MOST_ENTRIES = 60
"""Most variants saved of one expression; the oldest are dropped first."""
MOST_EDITED = 16
"""Most saved variants of one expression that are edited source."""
MOST_SOURCE_BYTES = 150_000
"""Longer edited source is not saved: a file must stay well below the size that can be read."""
MOST_SEARCHES = 8
"""Most variants of one expression whose search is saved."""
MOST_ORIGINS = 8
"""Most notebooks that are saved with a variant; the oldest are dropped first."""
NOTEBOOK = "JPY_SESSION_NAME"
"""The environment variable in which Jupyter names the notebook of a Python session."""
MOST_SEARCH_BYTES = 100_000
"""Most bytes of a saved search; a larger one is left out."""


class Key(NamedTuple):
    """The identity of a variant: kernel, opts, and a digest of edited source ("": not edited)."""

    kernel: int
    opts: tuple[str, ...]
    source: str = ""


class SourceText(Protocol):
    """Source that was edited by hand, the device that runs it, and the level of IR text."""

    @property
    def device(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def level(self) -> IRLevel | Literal[""]: ...


Timings = Mapping[tuple[int, str], TimingRow]
"""Timings by variant and device."""
UNKNOWN = SavedVariant(0, [])
"""The saved data of an unknown variant."""
NO_VARIANTS: Mapping[Key, SavedVariant] = MappingProxyType({})
_lock = free_lock()


def load(key: str) -> dict[Key, SavedVariant]:
    """Return the saved variants of an expression on this machine that are valid in this session,
    with their timings marked as earlier. A warning counts the others, which stay saved."""
    name = _name(key)
    saved = _keyed(read_json(FOLDER, name, SavedVariants))
    faults = {each: fault for each, entry in saved.items() if (fault := _fault(entry))}
    if faults:
        count, first = len(faults), next(iter(faults.values()))
        warn(f"{count} of the variants in {name} cannot be read ({first}); going on without")
    return {each: _earlier(entry) for each, entry in saved.items() if each not in faults}


def store(
    record: PageRecord,
    timings: Timings,
    edited: Mapping[int, SourceText],
    before: Mapping[Key, SavedVariant] = NO_VARIANTS,
) -> dict[Key, SavedVariant]:
    """Save the variants of a record, merged with those that other sessions saved of the same
    expression. Left out are variants with rules off, long edited source, and variants deleted in
    this record. Without a cache folder nothing is saved.

    `before` is the data that this session last read or stored: other sessions may change a note or
    pin that this one has left as it was. Return `before` for the next call.
    """
    fresh, name = _entries(record, timings, edited), _name(record.key)
    deleted = {
        key_for(row, edited.get(place))
        for place, row in enumerate(record.variants) if row.deleted
    }  # fmt: skip

    def merged(on_disk: SavedVariants | None) -> SavedVariants:
        others = _keyed(on_disk)
        for key in deleted & others.keys():
            del others[key]
        entries = _merged(others, fresh, before)
        return SavedVariants(1, list(entries.values()))

    with _lock:
        update_json(FOLDER, name, SavedVariants, merged)
    return {**before, **fresh}


def forget(key: str, variants: Collection[Key]) -> None:
    """Delete saved variants of an expression."""
    name = _name(key)

    def without(on_disk: SavedVariants | None) -> SavedVariants:
        others = _keyed(on_disk)
        remaining = [entry for each, entry in others.items() if each not in variants]
        return SavedVariants(1, remaining)

    with _lock:
        update_json(FOLDER, name, SavedVariants, without)


def origin() -> str:
    """Return a digest of the notebook of this Python session; of this process if none is known."""
    notebook = os.environ.get(NOTEBOOK)
    return key_of(notebook or _process())[:16]


@cache
def _process() -> str:
    """Return a name that no other process has."""
    return uuid4().hex


def _recent(origins: Sequence[str]) -> list[str]:
    """Return the last of some origins, each once."""
    return list(dict.fromkeys(reversed(origins)))[:MOST_ORIGINS][::-1]


def key_for(row: VariantRow, source: SourceText | None) -> Key:
    """Return the key of a variant, given its row in the record."""
    digest = "" if source is None else _digest(source.device, source.text)
    return Key(row.kernel, tuple(row.opts), digest)


def _digest(device: str, text: str) -> str:
    return key_of(json.dumps(device), json.dumps(text))[:16]  # `dumps` escapes what is not ASCII


def _entries(
    record: PageRecord, timings: Timings, edited: Mapping[int, SourceText]
) -> dict[Key, SavedVariant]:
    entries: dict[Key, SavedVariant] = {}
    for place, row in enumerate(record.variants):
        source = edited.get(place)
        if row.rules_off or row.deleted or not _is_short(source):
            continue
        entry = SavedVariant(
            kernel=row.kernel,
            opts=row.opts,
            name=row.name,
            note=row.note,
            search=_short(row.search),
            pinned=record.pinned == place,
            timings={d: t for (v, d), t in timings.items() if v == place},
            when=row.when or int(time.time()),
            origins=[origin()],
        )
        if source is not None:
            edit = SavedEdit(source.device, source.text, row.check, row.error, source.level)
            entry = replace(entry, edited=edit)
        entries[key_for(row, source)] = entry
    return entries


def _is_short(source: SourceText | None) -> bool:
    return source is None or len(json.dumps(source.text)) <= MOST_SOURCE_BYTES


def _short(search: SearchRow | None) -> SearchRow | None:
    return search if len(to_json(search)) <= MOST_SEARCH_BYTES else None


def _merged(
    on_disk: Mapping[Key, SavedVariant],
    fresh: Mapping[Key, SavedVariant],
    before: Mapping[Key, SavedVariant],
) -> dict[Key, SavedVariant]:
    is_pinned_here = any(
        entry.pinned is not before.get(key, UNKNOWN).pinned for key, entry in fresh.items()
    )
    merged = dict(on_disk)
    for key, entry in fresh.items():
        stored = on_disk.get(key, UNKNOWN)
        is_note_theirs = key in on_disk and entry.note == before.get(key, UNKNOWN).note
        merged[key] = replace(
            entry,
            timings=stored.timings | entry.timings,
            origins=_recent([*stored.origins, *entry.origins]),
            search=entry.search or stored.search,
            note=stored.note if is_note_theirs else entry.note,
            edited=_with_check(entry.edited, stored.edited),
        )
    pins = fresh if is_pinned_here else {**fresh, **on_disk}
    for key, entry in merged.items():
        merged[key] = replace(entry, pinned=pins.get(key, UNKNOWN).pinned)
    youngest = sorted(merged, key=lambda k: -merged[k].when)
    edited = [key for key in youngest if key.source][:MOST_EDITED]
    remaining = [key for key in youngest if not key.source or key in edited][:MOST_ENTRIES]
    with_search = [key for key in remaining if merged[key].search]
    for key in with_search[MOST_SEARCHES:]:
        merged[key] = replace(merged[key], search=None)
    return {key: merged[key] for key in merged if key in set(remaining)}


def _with_check(edit: SavedEdit | None, stored: SavedEdit | None) -> SavedEdit | None:
    """Return an edit, with the stored check if this session has not checked it."""
    if edit is None or stored is None or edit.check is not None:
        return edit
    return replace(edit, check=stored.check)


# reading


def _name(key: str) -> str:
    this_machine = machine_row()
    machine_key = key_of(this_machine.cpu, str(this_machine.cores))[:12]
    return f"{key_of(key)[:32]}-{machine_key}.json"


def _keyed(saved: SavedVariants | None) -> dict[Key, SavedVariant]:
    """Return all variants of a file by their keys, also those that only another session can use: a
    session that writes the file writes them again."""
    entries = () if saved is None else saved.variants
    return {_key_of(entry): entry for entry in entries}


def _key_of(entry: SavedVariant) -> Key:
    digest = "" if entry.edited is None else _digest(entry.edited.device, entry.edited.text)
    return Key(entry.kernel, tuple(entry.opts), digest)


def _fault(entry: SavedVariant) -> str:
    """Return why a saved variant is not valid in this session ("": it is)."""
    if entry.edited is not None and not _runs_text(entry.edited):
        return "its edited source is of a language that does not run here"
    if not {t.kind for t in entry.timings.values()} <= {None, *FLOATS}:
        return f"its peak is none of {', '.join(FLOATS)}"
    return ""


def _earlier(entry: SavedVariant) -> SavedVariant:
    return replace(entry, timings={d: replace(t, earlier=True) for d, t in entry.timings.items()})


def _runs_text(edit: SavedEdit) -> bool:
    try:
        return Device[edit.device].language is not None or bool(edit.level)
    except DeviceError:
        return False
