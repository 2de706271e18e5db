"""Results on disk: those of other code, targets and rules are others; a damaged one is none."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from workbench.backends.native import kept_results, object_cache
from workbench.backends.native.kept_results import keep_result, kept_result, result_key
from workbench.ir.rewriting.rewrite import without


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_a_key_is_of_all_that_a_result_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = (("a",), ("b",), ("a", "b"), ("ab",), ("", "ab"), ("b", "a"))
    keys = [result_key(kind, *each) for kind in ("schedule", "default opts") for each in texts]
    assert len({*keys}) == 12 and None not in keys
    with without(["mul-one"]):
        assert result_key("schedule", "a") is None
    monkeypatch.setattr(kept_results, "code_stamp", lambda: "other code")
    assert result_key("schedule", "a") not in keys
    monkeypatch.setattr(kept_results, "code_stamp", lambda: "")
    assert result_key("schedule", "a") is None


def test_what_is_kept_is_read_and_what_is_damaged_is_not() -> None:
    key = result_key("schedule", "a")
    assert key is not None and kept_result(key) is None
    keep_result(key, ("a", [1, -0.0]))
    assert kept_result(key) == ("a", [1, -0.0])
    for content in (b"", b"\x80", b"a\n", pickle.dumps(("a", [1]))[:-1], b"cworkbench\nnone\n."):
        object_cache.store_object(key, content)
        assert kept_result(key) is None
    keep_result(key, lambda: 1)
    assert kept_result(key) is None, "a function is not kept"
    keep_result(None, 1)
    assert kept_result(None) is None
