"""Variants on disk: what somebody tried comes back when the cell, or Python, is run again.

A JSON file per expression and machine in the cache folder. What is read is checked field by
field; opts are text and are parsed. A file that is damaged counts as absent. Writers merge what
is there and replace the file whole, so two sessions at once leave a whole file.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from threading import Lock
from typing import Any

from workbench.backends.runtime.cache import key_of
from workbench.backends.runtime.private_files import read_json, warn, write_json
from workbench.viz.record.machine import machine

VERSION = 1
FOLDER = "variants"
MOST_ENTRIES = 60
"""Variants kept of one expression; the oldest go first."""
Key = tuple[int, tuple[str, ...]]
Entry = dict[str, Any]
Timings = Mapping[tuple[int, str], Entry]
"""By variant and device."""
_lock = Lock()


def load(key: str) -> dict[Key, Entry]:
    """Return what was kept of an expression on this machine, by kernel and opts: name, note,
    pinned, timings by device, when."""
    return _read(_name(key))


def store(
    record: Mapping[str, Any], timings: Timings, edited: Mapping[int, object]
) -> None:
    """Keep the variants of a record, beside what other sessions kept of the same expression;
    not source edited by hand, nor what was made with rules off. Without a cache folder it does
    nothing."""
    fresh, name = _entries(record, timings, edited), _name(record["key"])
    with _lock:
        merged = _merged(_read(name), fresh)
        rows = [{"kernel": k, "opts": list(o), **e} for (k, o), e in merged.items()]
        write_json(FOLDER, name, {"v": VERSION, "variants": rows})


def _entries(
    record: Mapping[str, Any], timings: Timings, edited: Mapping[int, object]
) -> dict[Key, Entry]:
    found: dict[Key, Entry] = {}
    for place, row in enumerate(record["variants"]):
        if place in edited or row["rules_off"]:
            continue
        found[row["kernel"], tuple(row["opts"])] = {
            "name": row["name"],
            "note": row["note"],
            "pinned": record["pinned"] == place,
            "timings": {d: t for (v, d), t in timings.items() if v == place},
            "when": int(time.time()),
        }
    return found


def _merged(known: Mapping[Key, Entry], fresh: Mapping[Key, Entry]) -> dict[Key, Entry]:
    merged = {k: e | {"pinned": False} for k, e in known.items()} | dict(fresh)
    for key, entry in fresh.items():
        before = known.get(key, {"timings": {}})
        merged[key] = entry | {"timings": before["timings"] | entry["timings"]}
    youngest = sorted(merged, key=lambda k: -merged[k]["when"])[:MOST_ENTRIES]
    return {key: merged[key] for key in merged if key in set(youngest)}


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
        return {_key(row): _entry(row) for row in data["variants"]}
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        warn(f"variants kept in {name} cannot be read ({error!r}); going on without")
        return {}


def _key(row: Mapping[str, Any]) -> Key:
    opts = row["opts"]
    if type(row["kernel"]) is not int or not all(isinstance(o, str) for o in opts):
        raise ValueError("a kernel is a number, and its opts are texts")
    return row["kernel"], tuple(opts)


def _entry(row: Mapping[str, Any]) -> Entry:
    """Return a row's fields, each of the type that a record has."""
    return {
        "name": str(row["name"])[:80],
        "note": str(row["note"])[:1000],
        "pinned": row["pinned"] is True,
        "timings": {str(d): _timing(t) for d, t in dict(row["timings"]).items()},
        "when": int(row["when"]),
    }


def _timing(row: Mapping[str, Any]) -> Entry:
    numbers = ("median_s", "min_s", "spread", "gflops", "gbytes")
    found: Entry = {name: _number(row[name]) for name in numbers}
    found |= {n: _maybe(row[n]) for n in ("cold_s", "fraction")}
    found["samples"] = [_number(s) for s in row["samples"]][:100]
    found |= {"device": str(row["device"])[:40], "emulator": row["emulator"] is True}
    text = str(row["text"])[:200]
    earlier = ", measured earlier"
    return found | {"text": text if text.endswith(earlier) else text + earlier}


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ValueError("a time is a number")
    return number


def _maybe(value: Any) -> float | None:
    return None if value is None else _number(value)
