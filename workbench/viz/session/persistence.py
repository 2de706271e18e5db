"""Variants on disk: what somebody tried comes back when the cell, or Python, is run again.

A JSON file per expression and machine in the cache folder. What is read is checked field by
field; opts are text and are parsed, and source that was edited by hand is text, too: it stays
marked as edited, and so runs in a process of its own alone. A file that is damaged counts as
absent. Writers merge what is there and replace the file whole, so two sessions at once leave a
whole file.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from workbench.backends.device import Device
from workbench.backends.native.object_cache import key_of
from workbench.backends.native.private_files import read_json, warn, write_json
from workbench.base.forking import free_lock
from workbench.measure.speeds import FLOATS
from workbench.viz.record.machine import machine
from workbench.viz.session.search_rows import search_read

VERSION = 1
FOLDER = "variants"
MOST_ENTRIES = 60
"""Variants kept of one expression; the oldest go first."""
MOST_EDITED = 16
"""Those of them that hold source edited by hand."""
MOST_SOURCE_BYTES = 150_000
"""Longer source is not kept: all of a file stays well below what is read again."""
MOST_SEARCHES, MOST_SEARCH_BYTES = 8, 100_000
"""Those that hold all that a search tried, and how much that may be."""


class Key(NamedTuple):
    """A variant: kernel and opts; and of source edited by hand a digest, else ""."""

    kernel: int
    opts: tuple[str, ...]
    source: str = ""


class SavedSource(Protocol):
    """Source that was edited by hand, and the device that runs it."""

    @property
    def device(self) -> str: ...

    @property
    def text(self) -> str: ...


Entry = dict[str, Any]
Timings = Mapping[tuple[int, str], Entry]
"""By variant and device."""
UNKNOWN: Entry = {"note": "", "pinned": False, "timings": {}, "search": None}
"""What is known of a variant that is not there."""
NOTHING: Mapping[Key, Entry] = MappingProxyType({})
_lock = free_lock()


def load(key: str) -> dict[Key, Entry]:
    """Return what was kept of an expression on this machine: name, note, pinned, timings by
    device, when, edited: None, or device, text and what came of it (check, error), and search:
    None, or what a search tried that ended here (see `searched`)."""
    return _read(_name(key))


def store(
    record: Mapping[str, Any],
    timings: Timings,
    edited: Mapping[int, SavedSource],
    before: Mapping[Key, Entry] = NOTHING,
) -> dict[Key, Entry]:
    """Keep the variants of a record, beside what other sessions kept of the same expression;
    not what was made with rules off. Without a cache folder nothing is kept.

    `before` is what this session has read, or stored last: a note and a pin that it has not
    changed since are those of the others. Return what is `before` the next time.
    """
    fresh, name = _entries(record, timings, edited), _name(record["key"])
    with _lock:
        merged = _merged(_read(name), fresh, before)
        rows = [
            {"kernel": key.kernel, "opts": list(key.opts), **entry}
            for key, entry in merged.items()
        ]
        write_json(FOLDER, name, {"v": VERSION, "variants": rows})
    return {**before, **fresh}


def key_for(row: Mapping[str, Any], source: SavedSource | None) -> Key:
    """Return the key of a variant, given its row in the record."""
    digest = "" if source is None else _digest(source.device, source.text)
    return Key(row["kernel"], tuple(row["opts"]), digest)


def _digest(device: str, text: str) -> str:
    return key_of(device, json.dumps(text))[:16]  # whatever it holds is ASCII there


def _entries(
    record: Mapping[str, Any], timings: Timings, edited: Mapping[int, SavedSource]
) -> dict[Key, Entry]:
    entries: dict[Key, Entry] = {}
    for place, row in enumerate(record["variants"]):
        source = edited.get(place)
        if row["rules_off"] or not _is_short(source):
            continue
        entries[key_for(row, source)] = {
            "name": row["name"],
            "note": row["note"],
            "search": _short(row["search"]),
            "pinned": record["pinned"] == place,
            "timings": {d: t for (v, d), t in timings.items() if v == place},
            "when": int(time.time()),
            "edited": None
            if source is None
            else {
                "device": source.device,
                "text": source.text,
                "check": row["check"],
                "error": row["error"],
            },
        }
    return entries


def _is_short(source: SavedSource | None) -> bool:
    return source is None or len(json.dumps(source.text)) <= MOST_SOURCE_BYTES


def _short(search: Entry | None) -> Entry | None:
    return search if len(json.dumps(search)) <= MOST_SEARCH_BYTES else None


def _merged(
    on_disk: Mapping[Key, Entry],
    fresh: Mapping[Key, Entry],
    before: Mapping[Key, Entry],
) -> dict[Key, Entry]:
    is_pinned_here = any(
        entry["pinned"] is not before.get(key, UNKNOWN)["pinned"]
        for key, entry in fresh.items()
    )
    merged = dict(on_disk)
    for key, entry in fresh.items():
        there = on_disk.get(key, UNKNOWN)
        timings = there["timings"] | entry["timings"]
        search = entry["search"] or there["search"]
        merged[key] = entry | {"timings": timings, "search": search}
        if key in on_disk and entry["note"] == before.get(key, UNKNOWN)["note"]:
            merged[key]["note"] = there["note"]
    pins = fresh if is_pinned_here else {**fresh, **on_disk}
    for key, entry in merged.items():
        merged[key] = entry | {"pinned": pins.get(key, UNKNOWN)["pinned"]}
    youngest = sorted(merged, key=lambda k: -merged[k]["when"])
    edited = [key for key in youngest if key.source][:MOST_EDITED]
    stay = [key for key in youngest if not key.source or key in edited][:MOST_ENTRIES]
    searched = [key for key in stay if merged[key]["search"]]
    for key in searched[MOST_SEARCHES:]:
        merged[key] = merged[key] | {"search": None}
    return {key: merged[key] for key in merged if key in set(stay)}


# what is read is checked


def _name(key: str) -> str:
    about = machine()
    here = key_of(about["cpu"], str(about["cores"]))[:12]
    return f"{key_of(key)[:32]}-{here}.json"


def _read(name: str) -> dict[Key, Entry]:
    data = read_json(FOLDER, name)
    try:
        if data is None or data["v"] != VERSION:
            return {}
        return dict(map(_keyed, data["variants"]))
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        warn(f"variants kept in {name} cannot be read ({error!r}); going on without")
        return {}


def _keyed(row: Mapping[str, Any]) -> tuple[Key, Entry]:
    opts, entry = row["opts"], _entry(row)
    if type(row["kernel"]) is not int or not all(isinstance(o, str) for o in opts):
        raise ValueError("a kernel is a number, and its opts are texts")
    source = entry["edited"]
    digest = "" if source is None else _digest(source["device"], source["text"])
    return Key(row["kernel"], tuple(opts), digest), entry


def _entry(row: Mapping[str, Any]) -> Entry:
    """Return a row's fields, each of the type that a record has."""
    return {
        "name": str(row["name"])[:80],
        "note": str(row["note"])[:1000],
        "pinned": row["pinned"] is True,
        "timings": {str(d): _timing(t) for d, t in dict(row["timings"]).items()},
        "when": int(row["when"]),
        "edited": _edited(row.get("edited")),
        "search": search_read(row.get("search")),
    }


def _edited(row: Mapping[str, Any] | None) -> Entry | None:
    if row is None:
        return None
    if not _runs_text(row["device"]) or not isinstance(row["text"], str):
        raise ValueError("edited source is the text of a language that runs here")
    check, error = row["check"], row["error"]
    words = ("what", "because", "try")
    return {
        "device": row["device"],
        "text": row["text"],
        "check": check
        and {"ok": check["ok"] is True, "text": str(check["text"])[:1000]},
        "error": error and {word: str(error[word])[:2000] for word in words},
    }


def _runs_text(device: Any) -> bool:
    return device in Device.names() and Device[device].language is not None


def _timing(row: Mapping[str, Any]) -> Entry:
    numbers = ("median_s", "min_s", "spread", "gflops", "gbytes")
    timing: Entry = {name: _number(row[name]) for name in numbers}
    timing["cold_s"] = _maybe(row["cold_s"])
    timing |= {
        "kind": _kind(row.get("kind")),
        "threads": _threads(row.get("threads", 1)),
    }
    timing["samples"] = [_number(s) for s in row["samples"]][:100]
    timing |= {"device": str(row["device"])[:40], "emulator": row["emulator"] is True}
    return timing | {"run": str(row.get("run", ""))[:40], "earlier": True}


def _kind(value: Any) -> str | None:
    return value if value in FLOATS else None


def _threads(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError("a kernel runs on a thread or more")
    return value


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ValueError("a time is a number")
    return number


def _maybe(value: Any) -> float | None:
    return None if value is None else _number(value)
