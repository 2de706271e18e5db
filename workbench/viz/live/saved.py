"""Variants on disk: what somebody tried comes back when the cell, or Python, is run again.

A JSON file per expression and machine in the cache folder. What is read is checked field by
field; opts are text and are parsed. A file that is damaged counts as absent. Writers merge what
is there and replace the file whole, so two sessions at once leave a whole file.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
import tempfile
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from workbench.backends.runtime.cache import cache_folder, key_of
from workbench.viz.record.machine import machine

VERSION = 1
MOST_FILES = 400
MOST_BYTES = 1 << 20
"""A larger file is not ours."""
MOST_ENTRIES = 60
"""Variants kept of one expression; the oldest go first."""
Key = tuple[int, tuple[str, ...]]
Entry = dict[str, Any]
_lock = Lock()


def load(key: str) -> dict[Key, Entry]:
    """Return what was kept of an expression on this machine, by kernel and opts: name, note,
    pinned, timings by device, when."""
    folder = _folder()
    return {} if folder is None else _read(folder / _name(key))


def store(record: Mapping[str, Any], device: str, edited: Mapping[int, object]) -> None:
    """Keep the variants of a record, beside what other sessions kept of the same expression.
    Without a cache folder it does nothing."""
    folder = _folder()
    if folder is None:
        return
    fresh = entries(record, device, edited)
    with _lock:
        path = folder / _name(record["key"])
        merged = _merged(_read(path), fresh)
        rows = [{"kernel": k, "opts": list(o), **e} for (k, o), e in merged.items()]
        try:
            _write(path, json.dumps({"v": VERSION, "variants": rows}))
            _trim(folder)
        except OSError as error:
            _warn(f"variants cannot be kept: {error.strerror}")


def entries(
    record: Mapping[str, Any], device: str, edited: Mapping[int, object]
) -> dict[Key, Entry]:
    """Return what is worth keeping of a record: not source that was edited by hand."""
    found: dict[Key, Entry] = {}
    for place, row in enumerate(record["variants"]):
        if place in edited:
            continue
        timing = None if row["timing"] is None else dict(row["timing"])
        found[row["kernel"], tuple(row["opts"])] = {
            "name": row["name"],
            "note": row["note"],
            "pinned": record["pinned"] == place,
            "timings": {} if timing is None else {device: timing},
            "when": int(time.time()),
        }
    return found


def _merged(
    known: Mapping[Key, Entry], fresh: Mapping[Key, Entry]
) -> dict[Key, Entry]:
    merged = {k: e | {"pinned": False} for k, e in known.items()} | dict(fresh)
    for key, entry in fresh.items():
        before = known.get(key, {"timings": {}})
        merged[key] = entry | {"timings": before["timings"] | entry["timings"]}
    youngest = sorted(merged, key=lambda k: -merged[k]["when"])[:MOST_ENTRIES]
    return {key: merged[key] for key in merged if key in set(youngest)}


# files


def _folder() -> Path | None:
    folder = cache_folder() / "variants"
    try:
        for path in (folder.parent, folder):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = folder.stat()
    except OSError:
        return None
    shared = about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if hasattr(os, "geteuid") and (about.st_uid != os.geteuid() or shared):
        _warn(f"the folder {folder} is not yours alone; not using it")
        return None
    return folder


def _name(key: str) -> str:
    about = machine()
    here = key_of(about["cpu"], str(about["cores"]))[:12]
    return f"{key_of(key)[:32]}-{here}.json"


def _read(path: Path) -> dict[Key, Entry]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError("it is too large")
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["v"] != VERSION:
            return {}
        return {_key(row): _entry(row) for row in data["variants"]}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        _warn(f"variants kept in {path.name} cannot be read ({error}); going on without")
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


def _write(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _trim(folder: Path) -> None:
    files = sorted(folder.glob("*.json"), key=lambda p: p.stat().st_mtime)
    for path in files[: max(0, len(files) - MOST_FILES)]:
        with contextlib.suppress(OSError):
            path.unlink()


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=4)
