"""Variants and plans by hand saved on disk, for when the cell runs again, or Python has restarted.

A JSON file per expression and machine in the cache folder, of the type `SavedVariants`. Opts are
saved as text, and parsed when they are read. Edited source stays marked as edited, so that it runs
only in a process of its own; it is saved with the rules that were off. A damaged file counts as
absent, a variant that cannot be read stays in the file. Writers merge with the file's variants and
replace it atomically, so that two sessions at once leave a valid file.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence, Set
from contextlib import suppress
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol
from uuid import uuid4

from msgspec.structs import replace

from workbench.backends.device import Device
from workbench.base.cache import key_of, read_json, update_json
from workbench.base.errors import DeviceError, plural
from workbench.base.interrupts import free_lock
from workbench.base.source import warn_user
from workbench.base.typed import to_json, typed
from workbench.edited import IRLevel
from workbench.measure.speeds import FLOATS
from workbench.viz.record.about import machine_row
from workbench.viz.schema.record import PageRecord
from workbench.viz.schema.saved import SavedEdit, SavedPlan, SavedPlans, SavedVariant, SavedVariants
from workbench.viz.schema.variant import SearchRow, TimingRow, joined_searches

FOLDER, PLANS_FOLDER = "variants", "plans"
MOST_ENTRIES = 60
"""Most variants saved of one expression; those that a search found are dropped first, and the
oldest before others."""
MOST_EDITED = 16
"""Most saved variants of one expression that are edited source."""
MOST_SOURCE_BYTES = 150_000
"""Longer edited source is not saved: a file must stay well below the size that can be read."""
BUILT_IN = ("plain", "auto")
"""The names of variants that every record has, saved or not."""
MOST_PLANS = 8
"""Most plans by hand saved of one expression; the oldest are dropped first."""
MOST_SEARCHES = 8
"""Most searches saved of one expression; the oldest are dropped first."""
MOST_ORIGINS = 8
"""Most notebooks that are saved with a variant; the oldest are dropped first."""
NOTEBOOK = "JPY_SESSION_NAME"
"""The environment variable in which Jupyter names the notebook of a Python session."""
MOST_SEARCH_BYTES = 100_000
"""Most bytes of a saved search; a larger one is left out."""
MOST_UNREAD_BYTES = 500_000
"""Most bytes of the variants of a file that cannot be read, such as those of a later version, and
stay in it."""


class Key(NamedTuple):
    """The identity of a variant: kernel, opts, a digest of edited source ("": not edited), the
    rules that are off when it is compiled, and those that are off in the plan."""

    kernel: int
    opts: tuple[str, ...]
    source: str = ""
    rules_off: tuple[str, ...] = ()
    plan_off: tuple[str, ...] = ()


class Limit(NamedTuple):
    """A limit of what is saved: the word for what it counts, and what is left out."""

    word: str
    why: str


LONG_EDIT = Limit("edited text", f"longer than {MOST_SOURCE_BYTES // 1000} kB")
MANY_EDITS = Limit("edited text", f"at most {MOST_EDITED} are, the latest")
MANY_VARIANTS = Limit(
    "variant", f"at most {MOST_ENTRIES} are, those of searches last, and the latest of each"
)
LONG_SEARCH = Limit("log of a search", f"longer than {MOST_SEARCH_BYTES // 1000} kB")
MANY_PLANS = Limit("plan by hand", f"at most {MOST_PLANS} are, the latest")
MANY_SEARCHES = Limit("log of a search", f"at most {MOST_SEARCHES} are, the latest")


class Stored(NamedTuple):
    """What `store` did: the `variants` for its next call, the limits that leave out variants and
    searches, by their ids, and the ids of those that are saved, or were deleted."""

    variants: Mapping[Key, SavedVariant]
    left_out: Mapping[Hashable, Limit]
    settled: Set[Hashable]


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
    saved, unread = _entries_of(read_json(FOLDER, name, SavedVariants))
    faults = {each: fault for each, entry in saved.items() if (fault := _fault(entry))}
    reasons = [*(reason for _, reason in unread), *faults.values()]
    if reasons:
        what = f"{len(reasons)} of the variants in {name} cannot be read"
        warn_user(f"{what} ({reasons[0]}); going on without")
    return {each: _earlier(entry) for each, entry in saved.items() if each not in faults}


def store(
    record: PageRecord,
    timings: Timings,
    edited: Mapping[int, SourceText],
    before: Mapping[Key, SavedVariant] = NO_VARIANTS,
    key: str = "",
) -> Stored:
    """Save the variants of a record, merged with those that other sessions saved of the same
    expression; `key` names the expression ("": the record's own). Left out are opts in a plan where
    a rule is off, variants deleted in this record, and what is beyond a Limit. Without a cache
    folder nothing is saved.

    `before` is the data that this session last read or stored: other sessions may change a note or
    pin that this one has left as it was.
    """
    left_out: dict[Hashable, Limit] = {}
    settled: set[Hashable] = set()
    fresh, name = _entries(record, timings, edited, left_out), _name(key or record.key)
    deleted = {
        key_for(record, place, edited.get(place))
        for place, row in enumerate(record.variants) if row.deleted
    }  # fmt: skip

    def merged(on_disk: SavedVariants | None) -> SavedVariants:
        others, unread = _entries_of(on_disk)
        for each in deleted & others.keys():
            del others[each]
        entries = _merged(others, fresh, before, left_out)
        settled.update(entries, (_id_of(k, row) for k, e in entries.items() for row in e.searches))
        return SavedVariants(1, [*_kept(unread), *entries.values()])

    with _lock:
        update_json(FOLDER, name, SavedVariants, merged)
    return Stored({**before, **fresh}, left_out, settled | deleted)


def left_out_texts(left_out: Mapping[Hashable, Limit]) -> list[str]:
    """Return a text for each limit: how much it leaves out, and why."""
    counts = Counter(left_out.values())
    return [f"{plural(n, word)} not saved: {why}" for (word, why), n in counts.items()]


def forget(key: str, variants: Collection[Key]) -> None:
    """Delete saved variants of an expression."""
    name = _name(key)

    def without(on_disk: SavedVariants | None) -> SavedVariants:
        others, unread = _entries_of(on_disk)
        remaining = [entry for each, entry in others.items() if each not in variants]
        return SavedVariants(1, [*_kept(unread), *remaining])

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


def key_for(record: PageRecord, place: int, source: SourceText | None) -> Key:
    """Return the key of a variant, given its place in the record."""
    row = record.variants[place]
    digest = "" if source is None else _digest(source.device, source.text)
    off = tuple(row.rules_off), tuple(record.without.rules)
    return Key(row.kernel, tuple(row.opts), digest, *off)


def digest_of(key: Key) -> str:
    """Return the name by which a saved variant refers to the one that it was made from."""
    return key_of(json.dumps(key))[:16]


def _parent(record: PageRecord, place: int, edited: Mapping[int, SourceText]) -> str:
    """Return the digest of the variant that a variant was made from; of a deleted one, of the one
    before it ("": the kernel without opts)."""
    rows = record.variants
    parent = rows[place].parent
    while parent is not None and rows[parent].deleted:
        parent = rows[parent].parent
    if parent is None or rows[parent].parent is None:
        return ""
    return digest_of(key_for(record, parent, edited.get(parent)))


def _digest(device: str, text: str) -> str:
    return key_of(json.dumps(device), json.dumps(text))[:16]  # `dumps` escapes what is not ASCII


def _entries(
    record: PageRecord,
    timings: Timings,
    edited: Mapping[int, SourceText],
    left_out: dict[Hashable, Limit],
) -> dict[Key, SavedVariant]:
    entries: dict[Key, SavedVariant] = {}
    for place, row in enumerate(record.variants):
        source = edited.get(place)
        is_of_rules = source is None and record.without.rules
        if is_of_rules or row.deleted:
            continue
        key = key_for(record, place, source)
        if not _is_short(source):
            left_out[key] = LONG_EDIT
            continue
        long = [search for search in row.searches if not _is_small(search)]
        left_out |= {_id_of(key, search): LONG_SEARCH for search in long}
        entry = SavedVariant(
            kernel=row.kernel,
            opts=row.opts,
            name=row.name,
            note=row.note,
            searches=[search for search in row.searches if search not in long],
            pinned=record.pinned == place,
            timings={d: t for (v, d), t in timings.items() if v == place},
            when=row.when or int(time.time()),
            origins=[origin()],
            rules_off=row.rules_off,
            plan_off=record.without.rules,
            parent=_parent(record, place, edited),
        )
        if source is not None:
            edit = SavedEdit(source.device, source.text, row.check, row.error, source.level)
            entry = replace(entry, edited=edit)
        entries[key] = entry
    return entries


def _is_short(source: SourceText | None) -> bool:
    return source is None or len(json.dumps(source.text)) <= MOST_SOURCE_BYTES


def _id_of(key: Key, search: SearchRow) -> Hashable:
    """Return the id of a search that found a variant."""
    return key, search.when, search.tried, search.seconds


def _is_small(search: SearchRow) -> bool:
    return len(to_json(search)) <= MOST_SEARCH_BYTES


def _merged(
    on_disk: Mapping[Key, SavedVariant],
    fresh: Mapping[Key, SavedVariant],
    before: Mapping[Key, SavedVariant],
    left_out: dict[Hashable, Limit],
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
            searches=joined_searches(stored.searches, entry.searches),
            parent=entry.parent or stored.parent,
            note=stored.note if is_note_theirs else entry.note,
            edited=_with_check(entry.edited, stored.edited),
        )
    pins = fresh if is_pinned_here else {**fresh, **on_disk}
    for key, entry in merged.items():
        merged[key] = replace(entry, pinned=pins.get(key, UNKNOWN).pinned)
    # a search finds its variants again; nobody types an edit twice
    youngest = sorted(merged, key=lambda k: (bool(merged[k].searches), -merged[k].when))
    edited = [key for key in youngest if key.source][:MOST_EDITED]
    remaining = [key for key in youngest if not key.source or key in edited][:MOST_ENTRIES]
    for key in youngest:
        if key not in remaining and merged[key].name not in BUILT_IN:
            left_out[key] = MANY_EDITS if key.source and key not in edited else MANY_VARIANTS
    searches = [(key, row) for key in remaining for row in merged[key].searches]
    by_date = sorted(searches, key=lambda each: -each[1].when)
    latest, older = by_date[:MOST_SEARCHES], by_date[MOST_SEARCHES:]
    left_out |= {_id_of(key, row): MANY_SEARCHES for key, row in older}
    for key in remaining:
        saved = [row for other, row in latest if other == key]
        merged[key] = replace(merged[key], searches=joined_searches(saved, []))
    return {key: merged[key] for key in merged if key in set(remaining)}


def _with_check(edit: SavedEdit | None, stored: SavedEdit | None) -> SavedEdit | None:
    """Return an edit, with the stored check if this session has not checked it."""
    if edit is None or stored is None or edit.check is not None:
        return edit
    return replace(edit, check=stored.check)


# plans by hand, in a file of their own


def load_plans(key: str) -> list[SavedPlan]:
    """Return the plans by hand saved of an expression, the oldest first. A warning counts those
    that cannot be read, which stay saved."""
    name = _name(key)
    plans, unread = _plans_of(read_json(PLANS_FOLDER, name, SavedPlans))
    if unread:
        what = f"{len(unread)} of the plans by hand in {name} cannot be read"
        warn_user(f"{what} ({unread[0][1]}); going on without")
    return plans


def store_plan(key: str, plan: SavedPlan) -> Mapping[Hashable, Limit]:
    """Save a plan by hand of an expression, instead of the one of the same id and of those with the
    same choices. Return the limits that leave out others, by their ids."""
    left_out: dict[Hashable, Limit] = {}

    def merged(on_disk: SavedPlans | None) -> SavedPlans:
        others, unread = _plans_of(on_disk)
        same = [each for each in others if _is_same_plan(each, plan)]
        origins = _recent([*(o for each in same for o in each.origins), *plan.origins])
        rest = [each for each in others if each not in same and each.id != plan.id]
        plans = [*rest, replace(plan, origins=origins)]
        left_out.update({each.id: MANY_PLANS for each in plans[:-MOST_PLANS]})
        return SavedPlans(1, [*_kept(unread), *plans[-MOST_PLANS:]])

    with _lock:
        update_json(PLANS_FOLDER, _name(key), SavedPlans, merged)
    return left_out


def _is_same_plan(one: SavedPlan, other: SavedPlan) -> bool:
    """Whether two plans are made by the same choices."""
    return (one.steps, one.rules_off) == (other.steps, other.rules_off)


def forget_plan(key: str, plan_id: str) -> None:
    """Delete a saved plan by hand of an expression, if it is there."""

    def without(on_disk: SavedPlans | None) -> SavedPlans:
        plans, unread = _plans_of(on_disk)
        return SavedPlans(1, [*_kept(unread), *(each for each in plans if each.id != plan_id)])

    with _lock:
        update_json(PLANS_FOLDER, _name(key), SavedPlans, without)


def _plans_of(saved: SavedPlans | None) -> tuple[list[SavedPlan], list[tuple[Any, str]]]:
    """Return the plans of a file, and the rows that cannot be read, each with the reason."""
    plans, unread = [], []
    for row in () if saved is None else saved.plans:
        try:
            plans.append(typed(row, SavedPlan))
        except ValueError as error:
            unread.append((row, str(error)))
    return plans, unread


# reading


def _name(key: str) -> str:
    this_machine = machine_row()
    machine_key = key_of(this_machine.cpu, str(this_machine.cores))[:12]
    return f"{key_of(key)[:32]}-{machine_key}.json"


def _entries_of(
    saved: SavedVariants | None,
) -> tuple[dict[Key, SavedVariant], list[tuple[Any, str]]]:
    """Return the variants of a file by their keys, also those that only another session can use,
    and the rows that cannot be read, each with the reason: a session that writes the file writes
    both again."""
    entries: dict[Key, SavedVariant] = {}
    unread = []
    for row in () if saved is None else saved.variants:
        try:
            entry = typed(row, SavedVariant)
        except ValueError as error:
            unread.append((row, str(error)))
        else:
            entries[_key_of(entry)] = entry
    return entries, unread


def _kept(unread: Sequence[tuple[Any, str]]) -> list[Any]:
    """Return the rows that cannot be read, and may be variants of another version."""
    rows, room = [], MOST_UNREAD_BYTES
    for row, _ in unread:
        with suppress(ValueError, RecursionError):  # deeper than it can be written
            room -= len(to_json(row))
            if isinstance(row, dict) and room >= 0:
                rows.append(row)
    return rows


def _key_of(entry: SavedVariant) -> Key:
    digest = "" if entry.edited is None else _digest(entry.edited.device, entry.edited.text)
    off = tuple(entry.rules_off), tuple(entry.plan_off)
    return Key(entry.kernel, tuple(entry.opts), digest, *off)


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
