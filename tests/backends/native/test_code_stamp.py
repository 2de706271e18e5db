"""The stamp of the code: it changes with each file."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.backends.native import code_stamp as module


def test_the_code_is_known_by_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("base", "ir", "backends", "execution", "cost"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "code.py").write_text("a = 1\n")
    for part in ("pickles.py", "pipeline.py"):
        (tmp_path / part).write_text("")
    monkeypatch.setattr(module, "PACKAGE", tmp_path)
    code_stamp = module.code_stamp.__wrapped__
    stamps = [code_stamp()]
    (tmp_path / "ir" / "code.py").write_text("a = 12\n")
    stamps.append(code_stamp())
    (tmp_path / "ir" / "more.py").write_text("")
    stamps.append(code_stamp())
    assert len({*stamps}) == 3
    (tmp_path / "pipeline.py").unlink()
    assert code_stamp() == ""
