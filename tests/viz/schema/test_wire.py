"""Whatever crosses the wire or lies in a file, however wrong, is a value or a clear error.

Each draw is data that is right, with a few things spoiled: of another type, missing, too much,
huge, NaN, nested deeply, in another order, in halves of characters.
"""

from __future__ import annotations

import json
import os
import random
import warnings
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from tests.support import count
from tests.viz.record.support import plain
from tests.viz.schema import decoded
from tests.viz.session.support import Page, session_of
from tests.viz.session.test_persistence import KEY, SEARCH, TIMING, record
from tests.viz.support import matmul
from workbench.base.cache import read_json, write_json
from workbench.base.errors import WorkbenchError
from workbench.base.typed import typed
from workbench.ir.opt.opt import Opt, OptOps
from workbench.kernel.kernel import Kernel
from workbench.measure.speeds import Rate, Speeds
from workbench.search.moves import Candidate
from workbench.search.result import SearchResult
from workbench.search.search import CachedSearch
from workbench.viz.schema.saved import SavedVariants
from workbench.viz.schema.variant import CheckRow, ErrorWords, SearchRow
from workbench.viz.session import persistence
from workbench.viz.session.handlers.variant_transfer import restored
from workbench.viz.session.live_record import Edited
from workbench.viz.session.requests import checked

SEED = os.environ.get("WORKBENCH_TEST_SEED", "")
"""Another seed spoils other things."""
REQUESTS: list[dict[str, Any]] = [
    {"do": "apply", "variant": 0, "opt": 'UPCAST("g1", 4)'},
    {"do": "paste", "variant": 0, "text": 'UPCAST("g0", 2), UPCAST("g1", 2)'},
    {"do": "opts", "variant": 0, "opts": ['UPCAST("g0", 2)'], "place": 0, "amount": 4},
    {"do": "name", "variant": 0, "text": "best"},
    {"do": "delete", "variants": [0], "back": False},
    {"do": "saved"},
    {"do": "forget"},
    {"do": "search_all", "budget_s": 0.5},
    {"do": "auto", "kernel": 0},
    {"do": "code", "variant": 0, "language": "LLVM"},
    {"do": "offers", "variant": 0},
    {
        "do": "compare", "variants": [0, 0], "device": "PYTHON", "without": ["form-fma"],
        "plan": "", "own": None,
    },
    {"do": "pairs", "side": None, "before": [1], "now": [2]},
    {"do": "measure_beside", "side": 0, "before": 0, "now": 0, "cold": None},
    {"do": "passes", "variant": 0},
    {"do": "data", "kernel": 0},
    {"do": "pin", "variant": 0},
    {"do": "note", "variant": 0, "text": "mine"},
    {"do": "device", "name": "LLVM"},
    {"do": "measure", "variants": [0], "cold": False},
    {"do": "check", "variant": 0},
    {"do": "check_all"},
    {"do": "check_nodes"},
    {"do": "edit", "variant": 0, "language": "LLVM", "text": "define"},
    {"do": "baseline"},
    {"do": "values", "variant": 0, "pass": 0, "node": 0, "at": {"g0": 0}},
    {
        "do": "table", "variant": 0, "node": 0, "rows": "", "columns": "1", "at": {"0": 0},
        "first": [0, 0],
    },
    {"do": "accesses", "variant": 0, "axis": "", "at": {}, "first": 0, "steps": 2},
    {"do": "compare", "variants": [0, 0]},
    {"do": "why_not", "pass": 0, "node": 0, "rule": 0},
    {"do": "lower_on", "variant": 0, "pass": 0, "step": 0, "language": "LLVM"},
    {"do": "choices", "node": 0, "parts": 2},
    {"do": "rule_off", "kernel": 0, "rule": 0, "on": True, "of": None},
    {"do": "bisect", "variant": 0},
    {"do": "replan", "node": 0, "store": True},
    {"do": "plans"},
    {"do": "search", "variant": 0, "budget_s": 1},
    {"do": "stop"},
    {"do": "ping", "have": 0},
]  # fmt: skip


def deep(levels: int) -> Any:
    value: Any = []
    for level in range(levels):
        value = [value] if level % 2 else {"at": value}
    return value


STRANGE: list[Any] = [
    None, True, False, -1, 0, 1, 7, 2**31, 2**63, 10**400, 1.5, -0.0, 1e308, float("nan"),
    float("inf"), "", "0", "nan", "LLVM", "C", "f32", "\ud800", "\0", "\u202e<script>", "x" * 5000,
    [], [[]], [0], [None, "a"], {}, {"": {}}, {"do": "ping"}, deep(8), deep(300),
]  # fmt: skip


def spoiled(data: Any, draw: random.Random) -> Any:
    """Return a copy of plain data with one to three things spoiled."""
    wrong = deepcopy(data)
    for _ in range(draw.choice([1, 1, 2, 3])):
        wrong = _spoil(wrong, draw)
    return wrong


def _spoil(data: Any, draw: random.Random) -> Any:
    is_inside = isinstance(data, dict | list) and data and draw.random() < 0.85
    if not is_inside:
        return deepcopy(draw.choice(STRANGE))
    places = list(data) if isinstance(data, dict) else list(range(len(data)))
    at = draw.choice(places)
    kind = draw.random()
    if kind < 0.6:
        data[at] = _spoil(data[at], draw)
    elif kind < 0.75:
        del data[at]
    elif isinstance(data, dict):
        data[draw.choice(["extra", "\ud800", "v", "id"])] = deepcopy(draw.choice(STRANGE))
    else:
        data.append(deepcopy(data[at]))
        draw.shuffle(data)
    return data


def spoiled_bytes(text: str, draw: random.Random) -> bytes:
    """Return a file's content as a full disk, another program or a bad day leaves it."""
    if draw.random() < 0.5:
        return json.dumps(spoiled(json.loads(text), draw)).encode()
    data = bytearray(text.encode())
    at = draw.randrange(len(data) + 1)
    match draw.randrange(4):
        case 0:
            return bytes(data[:at])
        case 1:
            data[at:at] = draw.choice([b"\0", b"\xff", b"[" * 5000, b"NaN", b'"'])
        case 2:
            data = bytearray(draw.randbytes(at % 100))
        case _:
            data[at:] = data[: len(data) // 2]
    return bytes(data)


def test_every_request_is_answered_and_the_session_lives(nothing_saved: Path) -> None:
    draw = random.Random(SEED + "requests")
    with session_of(matmul()) as session:
        page = Page(session)
        for _ in range(count(5000)):
            request = spoiled(draw.choice(REQUESTS), draw)
            refused = None
            try:
                checked(request, session.record)
            except WorkbenchError as error:
                assert error.what and error.because
                assert len(str(error)) < 1000
                refused = error
            if refused is None and not session.is_quick(request):
                continue  # it would be done, and take long
            reply = plain(session.handle(request))
            assert reply["ok"] is (reply["error"] is None), request
            if refused is not None:
                assert reply["error"]["what"] == refused.what
        assert plain(session.handle({"id": 1, "do": "ping", "have": None}))["ok"]
        session.send_changes()
        assert page.is_record_of(session)


SAID = ("apply", "opts", "paste", "auto", "code", "offers", "pin", "note", "values", "ping",
        "measure", "check", "replan", "stop")  # fmt: skip
"""Requests that are answered, so that something is said of each kind."""


def said() -> list[tuple[str, Any]]:
    """Return what a live session says: messages, and the results of replies by what was asked."""
    with session_of(matmul()) as session:
        page = Page(session)
        for request in (r for r in REQUESTS if r["do"] in SAID):
            session.handle({"id": 1, **request}, page)
    replies = [m["result"] for m in page.messages if m.get("ok") is not None]
    oks = [m["ok"] for m in page.messages if m.get("ok") is not None]
    asked = [r["do"] for r in REQUESTS if r["do"] in SAID]
    results = [(do, result) for do, result, ok in zip(asked, replies, oks, strict=True) if ok]
    assert len(results) > len(SAID) // 2
    return [*(("", message) for message in page.messages), *results]


def test_what_a_session_says_is_of_its_type_and_nothing_else_is(nothing_saved: Path) -> None:
    """Every message, patch and reply decodes as what the schema says; a spoiled one is refused,
    unless it says something else that is right."""
    draw, refusals = random.Random(SEED + "said"), 0
    whole = said()
    for do, data in whole:
        assert plain(_decoded(do, data)) == data
    small = [(do, data) for do, data in whole if len(json.dumps(data)) < 50_000]
    for _ in range(count(3000)):
        do, data = draw.choice(small)
        wrong = spoiled(data, draw)
        try:
            read = to_builtins(_decoded(do, wrong))
        except ValueError:
            refusals += 1
        else:
            assert repr(to_builtins(_decoded(do, read))) == repr(read)
    assert refusals > count(3000) // 2, "most of it is refused"


def _decoded(do: str, data: Any) -> Any:
    return decoded.result(do, data) if do else decoded.message(data)


def files(folder: Path) -> dict[str, Path]:
    """Write one file of each kind; return where they are."""
    rows = record("A", "A", note="mine")
    rows.variants[0].searches = [typed(SEARCH, SearchRow)]
    rows.variants[1].check = CheckRow(True, "right")
    rows.variants[1].error = ErrorWords("a", "b", "c")
    persistence.store(rows, {(0, "LLVM"): TIMING}, {1: Edited("C", "int f;")})
    rates = {"L1": Rate(2.0, 4.0), "memory": Rate(1.0, 1.5)}
    machine = Speeds(rates, rates, rates, 1e-9, 1e-9, 1e-6, 0.0)
    write_json("machine", "a.json", machine)
    write_json("searches", "a.json", CachedSearch(1.0, search().to_saved()))
    names = ("variants", "machine", "searches")
    return {name: next((folder / "workbench" / name).glob("*.json")) for name in names}


def search() -> SearchResult[Kernel]:
    kernel = matmul().kernels[0]
    opts = (Opt(OptOps.UPCAST, "g1", 4),)
    trials = [Candidate(0, None, (), "start: as given", 2.0)]
    trials.append(Candidate(1, 0, opts, "UPCAST", 1.0))
    trials.append(Candidate(2, 1, opts, "UPCAST", None, "too slow"))
    return SearchResult(kernel, kernel, tuple(trials), 1, 2.0, "done", 3.0, "LLVM")


def test_every_file_is_read_or_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    draw = random.Random(SEED + "files")
    paths = files(tmp_path)
    readers: dict[str, Callable[[], Any]] = {
        "variants": lambda: persistence.load(KEY),
        "machine": lambda: read_json("machine", "a.json", Speeds),
        "searches": lambda: read_json("searches", "a.json", CachedSearch),
    }
    whole = {name: paths[name].read_text() for name in paths}
    assert all(read() for read in readers.values())
    refusals = 0
    for _ in range(count(5000)):
        name = draw.choice(list(readers))
        content = spoiled_bytes(whole[name], draw)
        paths[name].write_bytes(content)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            value = readers[name]()
        assert all("cannot be read" in str(w.message) for w in caught)
        assert value or caught or content.strip() in (b"", b"null") or name == "variants"
        assert paths[name].read_bytes() == content, "looking changes nothing"
        refusals += bool(caught)
        if name == "variants":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                persistence.store(record("B"), {}, {})
                assert persistence.Key(0, ("B",)) in persistence.load(KEY)
    assert refusals > count(5000) // 3, "most of it is refused"


def test_a_session_begins_with_whatever_it_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of the right types, but about kernels, opts, devices and times that cannot be."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    draw = random.Random(SEED + "sessions")
    saved = json.loads(files(tmp_path)["variants"].read_text())
    draws = (spoiled(saved, draw) for _ in iter(int, 1))
    for _ in range(count(100)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            saved_variants: dict[persistence.Key, Any] = {}
            while not saved_variants:
                saved_variants = read_variants(next(draws))
        monkeypatch.setattr(
            persistence, "load", lambda key, saved_variants=saved_variants: saved_variants
        )
        with session_of(matmul()) as session:
            page = Page(session)
            session.shows_saved = True  # whoever saved them
            for _ in restored(session):
                session.send_changes()
            assert plain(session.handle({"do": "ping"}))["ok"]
            session.send_changes()
            assert page.is_record_of(session)


def read_variants(data: Any) -> dict[persistence.Key, Any]:
    try:
        saved = typed(data, SavedVariants)
    except ValueError:
        return {}
    return {
        key: persistence._earlier(entry)
        for key, entry in persistence._entries_of(saved)[0].items()
        if not persistence._fault(entry)
    }  # fmt: skip


def test_every_search_is_read_or_refused() -> None:
    draw = random.Random(SEED + "searches")
    result = search()
    data, kernel = result.to_dict(), result.given
    for _ in range(count(3000)):
        wrong = spoiled(data, draw)
        try:
            read = SearchResult.from_dict(wrong, kernel)
        except WorkbenchError as error:
            assert error.what and error.because and len(str(error)) < 1000
            continue
        assert str(read) and read.tree()
        assert json.loads(json.dumps(read.to_dict(), allow_nan=False))
