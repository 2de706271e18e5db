"""Caches as the system tells them, and which of them holds how much."""

from __future__ import annotations

from pathlib import Path

from workbench.backends.native.machine import caches, level_of, line_bytes

LEVELS = (("L1", 32 << 10), ("L2", 1 << 20))


def test_data_caches_by_level(tmp_path: Path) -> None:
    rows = {
        "index0": ("1", "Data", "48K"),
        "index1": ("1", "Instruction", "32K"),
        "index2": ("2", "Unified", "2M"),
        "index3": ("3", "Unified", "odd"),
    }
    for name, values in rows.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "coherency_line_size").write_text("128\n")
        for part, value in zip(("level", "type", "size"), values, strict=True):
            (tmp_path / name / part).write_text(value + "\n")
    (tmp_path / "index4").mkdir()  # says nothing
    assert caches(tmp_path) == (("L1", 48 << 10), ("L2", 2 << 20))
    assert caches(tmp_path / "nowhere") == ()
    assert line_bytes(tmp_path) == 128 and line_bytes(tmp_path / "nowhere") == 64


def test_the_smallest_cache_that_holds_it() -> None:
    sizes = (1, 32 << 10, (32 << 10) + 1, 1 << 20, (1 << 20) + 1)
    assert [level_of(n, LEVELS) for n in sizes] == ["L1", "L1", "L2", "L2", "memory"]
    assert level_of(1, ()) is None
