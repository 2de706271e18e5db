"""What the page may ask, and with what: every request is checked here before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.base.errors import WorkbenchError

MOST_TEXT = 400_000
MOST_AT_ONCE = 16
"""Variants that one request may name."""
MOST_SECONDS = 600.0
Fields = dict[str, Any]

# fmt: off
FIELDS: Mapping[str, Mapping[str, str]] = {
    "apply":    {"variant": "variant", "opt": "text"},
    "paste":    {"variant": "variant", "text": "text"},
    "auto":     {"kernel": "kernel"},
    "code":     {"variant": "variant", "language": "text"},
    "offers":   {"variant": "variant"},
    "pin":      {"variant": "variant or null"},
    "note":     {"variant": "variant", "text": "text"},
    "device":   {"name": "text"},
    "measure":  {"variants": "variants", "cold": "flag"},
    "check":    {"variant": "variant"},
    "edit":     {"variant": "variant", "language": "text", "text": "text"},
    "baseline": {},
    "values":   {"variant": "variant or null", "pass": "pass", "step": "number",
                 "node": "node", "at": "positions"},
    "why_not":  {"pass": "pass", "step": "number", "node": "node", "rule": "rule"},
    "rule_off": {"kernel": "kernel or null", "rule": "rule or name", "on": "flag",
                 "of": "variant or null"},
    "bisect":   {"variant": "variant"},
    "replan":   {"node": "node", "store": "flag"},
    "plans":    {},
    "search":   {"variant": "variant", "budget_s": "seconds"},
    "stop":     {},
    "ping":     {"have": "number or null"},
}
# fmt: on
_MAY_LACK = {"have", "cold", "of"}


def checked(request: Any, record: Mapping[str, Any]) -> tuple[str, Fields]:
    """Return (what to do, its fields) of a request about `record`; a pass is called `place`,
    because Python has another use for its name.

    Errors: WorkbenchError for what is no request, is not known, or names what is not there.
    """
    if not isinstance(request, dict) or not isinstance(request.get("do"), str):
        raise WorkbenchError("this is no request", 'it has no "do"')
    do = request["do"]
    if do not in FIELDS:
        actions = ", ".join(FIELDS)
        raise WorkbenchError(f"cannot do {do[:40]!r}", f"known are {actions}")
    names = set(request) - {"id", "do"}
    unknown = sorted(map(str, names - set(FIELDS[do])))
    if unknown:
        raise WorkbenchError(f"{do} takes no {', '.join(unknown)[:80]}")
    fields: Fields = {}
    for name, kind in FIELDS[do].items():
        if name not in request and name not in _MAY_LACK:
            raise WorkbenchError(f"{do} needs {name}", "the request has none")
        value = request.get(name)
        if not _KINDS[kind](value, record):
            because = f"{_shown(value)} is not {_NAMES.get(kind, f'a {kind}')} here"
            raise WorkbenchError(f"{do} cannot take this {name}", because)
        fields["place" if name == "pass" else name] = value
    return do, fields


def _is_place(value: Any, table: Any) -> bool:
    return type(value) is int and 0 <= value < len(table)


def _is_text(value: Any, record: Any) -> bool:
    if not isinstance(value, str) or len(value) > MOST_TEXT:
        return False
    return not any("\ud800" <= c <= "\udfff" for c in value)  # half of a character


def _is_variant(value: Any, record: Any) -> bool:
    return _is_place(value, record["variants"])


def _are_variants(value: Any, record: Any) -> bool:
    return (
        isinstance(value, list)
        and 0 < len(value) <= MOST_AT_ONCE
        and all(_is_variant(v, record) for v in value)
    )


def _are_positions(value: Any, record: Any) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= MOST_AT_ONCE
        and all(isinstance(k, str) and type(v) is int for k, v in value.items())
    )


_KINDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "variant": _is_variant,
    "variant or null": lambda v, r: v is None or _is_variant(v, r),
    "variants": _are_variants,
    "kernel": lambda v, r: _is_place(v, r["kernels"]),
    "kernel or null": lambda v, r: v is None or _is_place(v, r["kernels"]),
    "pass": lambda v, r: _is_place(v, r["passes"]),
    "node": lambda v, r: _is_place(v, r["nodes"]["op"]),
    "rule": lambda v, r: _is_place(v, r["rules"]),
    "rule or name": lambda v, r: _is_place(v, r["rules"]) or _is_text(v, r),
    "positions": _are_positions,
    "number": lambda v, r: type(v) is int,
    "seconds": lambda v, r: type(v) in (int, float) and 0 < v <= MOST_SECONDS,
    "text": _is_text,
    "flag": lambda v, r: v is None or isinstance(v, bool),
    "number or null": lambda v, r: v is None or type(v) is int,
}
_NAMES = {
    "variants": f"a list of 1 to {MOST_AT_ONCE} variants",
    "text": "a short text",
    "rule or name": "a rule or the name of one",
    "seconds": f"more than 0 and at most {MOST_SECONDS:g} seconds",
}


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "\u2026"
