"""Variants on disk: whole or absent, merged, bounded, and never trusted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.support import PATIENCE_S, ROOT
from tests.viz.support import matmul
from workbench.base.cache import MOST_BYTES
from workbench.base.typed import typed
from workbench.ir.nest.estimates import Estimates
from workbench.measure.timing import Samples
from workbench.viz.record.record import build
from workbench.viz.schema.record import PageRecord
from workbench.viz.schema.variant import CandidateRow, CheckRow, ErrorWords, SearchRow
from workbench.viz.session import persistence
from workbench.viz.session.live_record import Edited
from workbench.viz.session.opt_text import timing_row

KEY = "0123456789abcdef"
A, B = persistence.Key(0, ("A",)), persistence.Key(0, ("B",))
TIMING = timing_row(Samples((1e-3, 2e-3)), Estimates(1000, 1000), "LLVM", "f32", 2, run="a")


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "workbench" / "variants"


def record(*opts: str, key: str = KEY, note: str = "") -> PageRecord:
    """A record of variants, each with one opt."""
    page_record = build(matmul(), "first")
    (plain_row,) = page_record.variants
    rows = [replace(plain_row, name="mine 1", note=note, opts=[o]) for o in opts]
    return replace(page_record, key=key, pinned=0, variants=rows)


def test_what_is_stored_is_loaded(folder: Path) -> None:
    persistence.store(record("A", note="\u00e9<"), {(0, "LLVM"): TIMING, (0, "C"): TIMING}, {})
    entry = persistence.load(KEY)[A]
    assert entry.name == "mine 1" and entry.note == "\u00e9<" and entry.pinned
    assert set(entry.timings) == {"LLVM", "C"}
    assert entry.timings["LLVM"] == replace(TIMING, earlier=True)
    assert persistence.load("other") == {}
    assert oct(folder.stat().st_mode)[-3:] == "700"


def test_edited_source_is_kept_beside_what_it_was_made_from() -> None:
    rows = record("A", "A", "A")
    rows.variants[1].check = CheckRow(False, "WRONG")
    rows.variants[2].error = ErrorWords("crashed", "", "")
    texts = {1: Edited("C", "int f;"), 2: Edited("LLVM", "\ud800\0<script>")}
    persistence.store(rows, {(1, "C"): TIMING}, texts)
    entries = persistence.load(KEY)
    assert [(k.opts, bool(k.source)) for k in entries] == [
        (("A",), False), (("A",), True), (("A",), True),
    ]  # fmt: skip
    plain, first, second = entries.values()
    assert plain.edited is None
    assert msgspec.to_builtins(first.edited) == {
        "device": "C", "text": "int f;", "error": None, "level": "",
        "check": {"ok": False, "text": "WRONG"},
    }  # fmt: skip
    assert set(first.timings) == {"C"} and plain.timings == {}
    assert second.edited is not None and second.edited.error is not None
    assert second.edited.text == "\ud800\0<script>"
    assert second.edited.error.what == "crashed"
    persistence.store(rows, {}, texts)
    assert len(persistence.load(KEY)) == 3, "the same source is the same variant"


def test_edited_source_is_bounded(folder: Path) -> None:
    long = Edited("C", "\u00e9" * (persistence.MOST_SOURCE_BYTES // 6 + 1))
    many = {n: Edited("C", "x" * (persistence.MOST_SOURCE_BYTES - 9) + str(n)) for n in range(30)}
    persistence.store(record(*["A"] * 31), {}, {**many, 30: long})
    assert len(persistence.load(KEY)) == persistence.MOST_EDITED
    (path,) = folder.glob("*.json")
    assert path.stat().st_size < MOST_BYTES, "else it would not be read again"


@pytest.mark.parametrize(
    "edited",
    [4, {}, {"device": "PYTHON", "text": "", "check": None, "error": None},
     {"device": "C", "text": 4, "check": None, "error": None},
     {"device": "C", "text": "", "check": True, "error": None},
     {"device": "C", "text": "", "check": None, "error": {"what": ""}}],
)  # fmt: skip
def test_damaged_source_is_as_good_as_absent(folder: Path, edited: Any) -> None:
    persistence.store(record("A"), {}, {0: Edited("C", "int f;")})
    (path,) = folder.glob("*.json")
    data = json.loads(path.read_text())
    data["variants"][0]["edited"] = edited
    path.write_text(json.dumps(data))
    with pytest.warns(RuntimeWarning, match="cannot be read"):
        assert persistence.load(KEY) == {}


@pytest.mark.parametrize("device", ["C", "elsewhere", "\ud800"])
@pytest.mark.parametrize("kind", ["f32", "f17"])
def test_a_variant_of_another_session_stays_beside_those_of_this_one(
    folder: Path, device: str, kind: str
) -> None:
    """Its device may be registered only there; whoever writes the file writes it again."""
    persistence.store(record("A"), {(0, "LLVM"): TIMING}, {0: Edited("C", "int f;")})
    (path,) = folder.glob("*.json")
    data = json.loads(path.read_text())
    (entry,) = data["variants"]
    entry["edited"]["device"] = device
    entry["timings"]["LLVM"]["kind"] = kind
    path.write_text(json.dumps(data))
    is_valid = (device, kind) == ("C", "f32")
    persistence.store(record("B", "X"), {}, {})
    persistence.forget(KEY, [persistence.Key(0, ("X",))])
    with nullcontext() if is_valid else pytest.warns(RuntimeWarning, match="cannot be read"):
        assert len(persistence.load(KEY)) == 1 + is_valid
        assert B in persistence.load(KEY)
    variants = json.loads(path.read_text())["variants"]
    assert [v["opts"] for v in variants] == [["A"], ["B"]]
    assert variants[0] == {**entry, "pinned": False}


SEARCH = {
    "tried": 3, "timed": 2, "best": 2, "speedup": 1.5, "seconds": 9.0, "ended": "done",
    "device": "LLVM",
    "candidates": [[0, None, "start", 2e-3, "", 0.01], [1, 0, "\u202e<b>", None, "x", None],
               [2, 0, "UNROLL", 1e-3, "", None]],
    "predicted": False, "budget_s": None, "when": 0,
}  # fmt: skip


def test_what_a_search_tried_is_kept_of_the_youngest() -> None:
    rows = record(*[f"o{n}" for n in range(persistence.MOST_SEARCHES + 3)], "long")
    for row in rows.variants:
        row.searches = [typed(SEARCH, SearchRow)]
    long = SEARCH | {"ended": "x" * persistence.MOST_SEARCH_BYTES}
    rows.variants[-1].searches = [typed(long, SearchRow)]
    persistence.store(rows, {}, {})
    entries = persistence.load(KEY).values()
    searches = [msgspec.to_builtins(entry.searches) for entry in entries]
    assert searches == [[SEARCH]] * persistence.MOST_SEARCHES + [[]] * 4
    persistence.store(record("o0"), {}, {})
    (search,) = persistence.load(KEY)[persistence.Key(0, ("o0",))].searches
    assert msgspec.to_builtins(search) == SEARCH, "not lost by a session that has not searched"


def test_searches_that_found_the_same_variant_are_all_kept() -> None:
    """Of several sessions, too, and each once; above the limit the oldest are dropped."""
    first, second, third = (typed(SEARCH | {"when": when}, SearchRow) for when in (1, 2, 3))
    rows = record("A", "B")
    rows.variants[0].searches = [first, third]
    persistence.store(rows, {}, {})
    rows.variants[0].searches = [second, third]
    persistence.store(rows, {}, {})
    assert persistence.load(KEY)[A].searches == [first, second, third]
    later = [typed(SEARCH | {"when": 10 + n}, SearchRow) for n in range(persistence.MOST_SEARCHES)]
    rows.variants[1].searches = later[1:]
    persistence.store(rows, {}, {})
    saved = persistence.load(KEY)
    assert (saved[A].searches, saved[B].searches) == ([third], later[1:])


def test_the_one_search_of_an_older_file_is_read(folder: Path) -> None:
    persistence.store(record("A"), {}, {})
    (path,) = folder.glob("*.json")
    data = json.loads(path.read_text())
    old = {name: value for name, value in SEARCH.items() if name not in ("budget_s", "when")}
    del data["variants"][0]["searches"]
    data["variants"][0]["search"] = old
    path.write_text(json.dumps(data))
    assert msgspec.to_builtins(persistence.load(KEY)[A].searches) == [SEARCH]


@pytest.mark.parametrize(
    "broken",
    [4, {"candidates": []}, {"best": 7}, {"best": None}, {"speedup": "nan"}, {"tried": "3"},
     {"candidates": [[0, 0, "", None, ""]]}, {"candidates": [[0, None, "", -1, ""]]},
     {"candidates": [[0, None, "", None, ""], [0, None, "", None, ""]]},
     {"candidates": [[0, None]]}, {"candidates": 3}, {"candidates": [[[], None, "", None, ""]]}],
)  # fmt: skip
def test_a_damaged_search_is_as_good_as_absent(folder: Path, broken: Any) -> None:
    rows = record("A")
    rows.variants[0].searches = [typed(SEARCH, SearchRow)]
    persistence.store(rows, {}, {})
    (path,) = folder.glob("*.json")
    data = json.loads(path.read_text())
    wrong = SEARCH | broken if isinstance(broken, dict) else broken
    data["variants"][0]["searches"] = [wrong]
    path.write_text(json.dumps(data))
    with pytest.warns(RuntimeWarning, match="cannot be read"):
        assert persistence.load(KEY) == {}


def test_sessions_are_merged() -> None:
    persistence.store(record("A"), {(0, "LLVM"): TIMING}, {})
    persistence.store(record("B"), {}, {})
    entries = persistence.load(KEY)
    assert [k for k, e in entries.items() if e.pinned] == [B]
    assert entries[A].timings
    persistence.store(record("A", note="later"), {}, {})
    assert persistence.load(KEY)[A].timings, "not lost by one that has not measured"


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "nonsense\0", '{"v": 1}', '{"v": 1, "variants": [4]}',
        '{"v": 1, "variants": 1e999}', "[" * 100_000, " " * (MOST_BYTES + 1),
    ],
)  # fmt: skip
def test_a_damaged_file_is_as_good_as_absent(folder: Path, text: str) -> None:
    persistence.store(record("A"), {}, {})
    (path,) = folder.glob("*.json")
    path.write_text(text)
    with pytest.warns(RuntimeWarning, match="cannot be read"):
        assert persistence.load(KEY) == {}
    persistence.store(record("B"), {}, {})
    assert list(persistence.load(KEY)) == [B]


@pytest.mark.parametrize(
    "broken",
    [{"kernel": "x"}, {"of_a_later_version": 1}, {"pinned": 1},
     {"timings": {"LLVM": {**msgspec.to_builtins(TIMING), "median_s": "nan"}}}],
)  # fmt: skip
def test_a_variant_that_cannot_be_read_stays_and_hides_no_other(
    folder: Path, broken: dict[str, Any]
) -> None:
    persistence.store(record("A", "X"), {}, {})
    (path,) = folder.glob("*.json")
    data = json.loads(path.read_text())
    data["variants"][1] |= broken
    path.write_text(json.dumps(data))
    persistence.store(record("B"), {}, {})
    persistence.forget(KEY, [A])
    with pytest.warns(RuntimeWarning, match="1 of the variants in .* cannot be read"):
        assert list(persistence.load(KEY)) == [B]
    assert data["variants"][1] in json.loads(path.read_text())["variants"]


def test_variants_that_cannot_be_read_are_bounded(folder: Path) -> None:
    persistence.store(record("A"), {}, {})
    (path,) = folder.glob("*.json")
    later = {"later": "x" * (persistence.MOST_UNREAD_BYTES // 3)}
    deep = json.loads('{"deep": ' + "[" * 900 + "]" * 900 + "}")
    path.write_text(json.dumps({"v": 1, "variants": [deep, *[later] * 9]}))
    persistence.store(record("B"), {}, {})
    rows = json.loads(path.read_text())["variants"]
    assert rows.count(later) == 2 and rows[-1]["opts"] == ["B"]


def test_a_file_of_a_version_without_rules_is_read(folder: Path) -> None:
    persistence.store(record("A"), {(0, "LLVM"): TIMING}, {})
    (path,) = folder.glob("*.json")
    data = json.loads(path.read_text())
    for name in ("rules_off", "plan_off"):
        assert data["variants"][0].pop(name) == []
    path.write_text(json.dumps(data))
    assert set(persistence.load(KEY)[A].timings) == {"LLVM"}


def test_bytes_that_are_no_text(folder: Path) -> None:
    persistence.store(record("A"), {}, {})
    (path,) = folder.glob("*.json")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.warns(RuntimeWarning):
        assert persistence.load(KEY) == {}


def test_another_version_is_left_alone(folder: Path) -> None:
    persistence.store(record("A"), {}, {})
    (path,) = folder.glob("*.json")
    path.write_text('{"v": 2, "variants": "in another form"}')
    with pytest.warns(RuntimeWarning, match="cannot be read"):
        assert persistence.load(KEY) == {}
    assert "in another form" in path.read_text(), "looking changes nothing"


def test_a_folder_that_others_write_to_is_not_used(folder: Path) -> None:
    persistence.store(record("A"), {}, {})
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="not yours alone"):
        assert persistence.load(KEY) == {}


def test_a_folder_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    persistence.store(record("A"), {}, {})
    assert persistence.load(KEY) == {}


def test_it_is_bounded() -> None:
    persistence.store(record(*[f"o{n}" for n in range(persistence.MOST_ENTRIES + 20)]), {}, {})
    assert len(persistence.load(KEY)) == persistence.MOST_ENTRIES


def test_what_a_limit_leaves_out_is_said() -> None:
    rows = record("plain", *["A"] * (persistence.MOST_EDITED + 3), "long", "B")
    rows.variants[0].name = "plain"
    count = persistence.MOST_SEARCHES + 1
    searches = [typed(SEARCH | {"when": n}, SearchRow) for n in range(count)]
    long = typed(SEARCH | {"when": 99, "ended": "x" * persistence.MOST_SEARCH_BYTES}, SearchRow)
    rows.variants[-1].searches = [*searches, long]
    texts = {n + 1: Edited("C", f"int f{n};") for n in range(persistence.MOST_EDITED + 3)}
    texts[len(texts) + 1] = Edited("C", "x" * persistence.MOST_SOURCE_BYTES)
    stored = persistence.store(rows, {}, texts)
    assert persistence.left_out_texts(stored.left_out) == [
        "1 edited text not saved: longer than 150 kB",
        "1 log of a search not saved: longer than 100 kB",
        "3 edited texts not saved: at most 16 are, the latest",
        "1 log of a search not saved: at most 8 are, the latest",
    ]
    assert not stored.left_out.keys() & stored.settled
    many = record(*[f"o{n}" for n in range(persistence.MOST_ENTRIES + 2)], key="another")
    left_out = persistence.store(many, {}, {}).left_out
    (text,) = persistence.left_out_texts(left_out)
    assert text.startswith(f"2 variants not saved: at most {persistence.MOST_ENTRIES} are")
    assert persistence.left_out_texts(persistence.store(record("A"), {}, {}).left_out) == []


def test_what_was_made_by_hand_stays_before_what_a_search_found() -> None:
    """Also where it is older."""
    rows = record("mine", *[f"o{n}" for n in range(persistence.MOST_ENTRIES)])
    rows.variants[0].when = 1
    for row in rows.variants[1:]:
        candidate = CandidateRow(0, None, "", 1.0, "")
        row.searches = [SearchRow(1, 1, 0, None, 1.0, "", "LLVM", [candidate])]
    persistence.store(rows, {}, {})
    saved = persistence.load(KEY)
    assert persistence.Key(0, ("mine",)) in saved and len(saved) == persistence.MOST_ENTRIES


WRITER = """
import sys
from workbench.viz.record.record import build
from workbench.viz.schema.record import PageRecord
from workbench.viz.schema.variant import CheckRow, ErrorWords, SearchRow
from workbench.viz.session import persistence
from tests.viz.session.test_persistence import record
for number in range(60):
    persistence.store(record(f"{sys.argv[1]}{number % 10}"), {}, {})
    assert persistence.load("0123456789abcdef")
"""


def test_two_processes_at_once_leave_a_whole_file(folder: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", WRITER, name],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        for name in "AB"
    ]  # fmt: skip
    assert [w.wait(PATIENCE_S) for w in writers] == [0, 0]
    names = {key.opts[0] for key in persistence.load(KEY)}
    assert {f"A{n}" for n in range(10)} <= names or {f"B{n}" for n in range(10)} <= names
    assert [p.suffix for p in folder.iterdir()] == [".json"], "nothing half-written"
