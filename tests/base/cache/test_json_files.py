"""JSON files of the cache: whole or not there, whatever happens to the disk, or beside us."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.backends.disk import fill_disk
from workbench.base import cache as json_files
from workbench.base.cache import read_json, update_json, write_json

FOLDER = "kept"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "workbench" / FOLDER


def test_what_is_written_comes_back_and_is_the_users_alone(home: Path) -> None:
    assert read_json(FOLDER, "a.json", dict) is None
    write_json(FOLDER, "a.json", {"seconds": [1, None, "x"]})
    assert read_json(FOLDER, "a.json", dict) == {"seconds": [1, None, "x"]}
    assert (home.stat().st_mode | (home / "a.json").stat().st_mode) & 0o077 == 0


@pytest.mark.parametrize("warning", ["{ damaged", "", "\udcff", "[" * 100_000, "huge"])
def test_what_is_damaged_is_a_warning_and_written_anew(home: Path, warning: str) -> None:
    write_json(FOLDER, "a.json", 1)
    data = b"1" * (json_files.MOST_BYTES + 1) if warning == "huge" else os.fsencode(warning)
    (home / "a.json").write_bytes(data)
    with pytest.warns(RuntimeWarning, match="a.json cannot be read.*going on without"):
        assert read_json(FOLDER, "a.json", int) is None
    assert (home / "a.json").read_bytes() == data, "looking deletes nothing"
    update_json(FOLDER, "a.json", int, lambda current: 2 if current is None else 3)
    assert read_json(FOLDER, "a.json", int) == 2


def test_another_type_is_as_good_as_damaged(home: Path) -> None:
    write_json(FOLDER, "a.json", {"one": 1})
    with pytest.warns(RuntimeWarning, match="Expected `int`, got `str` - at `key`"):
        assert read_json(FOLDER, "a.json", dict[int, int]) is None
    assert read_json(FOLDER, "a.json", dict[str, int]) == {"one": 1}


def test_what_the_disk_does_not_hand_out_is_not_lost(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where too many files are open: a moment later it can be read, and all is there."""
    write_json(FOLDER, "a.json", 1)

    def failing(*_: object, **__: object) -> str:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "read_text", failing)
        with pytest.warns(RuntimeWarning, match="Too many open files"):
            assert read_json(FOLDER, "a.json", int) is None
        with pytest.warns(RuntimeWarning, match="it stays as it is"):
            update_json(FOLDER, "a.json", int, lambda current: 2)
    assert read_json(FOLDER, "a.json", int) == 1
    update_json(FOLDER, "a.json", int, lambda current: 1 + (current or 0))
    assert read_json(FOLDER, "a.json", int) == 2


@pytest.mark.parametrize("failing", ["open", "write", "replace"])
def test_a_full_disk_is_a_warning(
    home: Path, failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_json(FOLDER, "a.json", "before")
    with monkeypatch.context() as broken:
        fill_disk(broken, failing)
        with pytest.warns(RuntimeWarning, match="No space left.*going on without"):
            write_json(FOLDER, "a.json", "after")
    assert read_json(FOLDER, "a.json", str) == "before"
    assert [p.name for p in home.iterdir()] == ["a.json"], "no half of a file stays"


def test_the_oldest_go(home: Path) -> None:
    for number in range(6):
        write_json(FOLDER, f"{number}.json", number, most_files=4)
        os.utime(home / f"{number}.json", (number, number))
    assert sorted(p.name for p in home.iterdir()) == [f"{n}.json" for n in range(2, 6)]


BUSY = """
    import sys
    from workbench.base.cache import read_json, write_json
    for turn in range(300):
        name = f"{(turn * 7 + int(sys.argv[1])) % 5}.json"
        write_json("kept", name, {"turn": turn, "text": "x" * 5000}, most_files=3)
        found = read_json("kept", name, dict)
        assert found is None or len(found["text"]) == 5000
"""


def test_processes_that_write_at_once_do_not_disturb_each_other(home: Path) -> None:
    """Each deletes what another may be about to look at; a warning is an error there."""
    busy = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(BUSY), str(number)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    errors = [process.communicate(timeout=250)[1] for process in busy]
    assert [process.returncode for process in busy] == [0, 0, 0], errors
    assert len(list(home.iterdir())) <= 5 and not list(home.glob(".new-*"))


COMPILES = """
    import numpy as np
    from workbench import Tensor
    from workbench.backends.native import object_cache
    object_cache._LIMIT_BYTES, object_cache._WRITES_BETWEEN_TRIMS = 20_000, 2
    for n in range(1, 25):
        a = np.arange(64, dtype=np.float32)
        assert np.array_equal((Tensor(a) * 3 + n).numpy(), a * 3 + n)
"""


def test_processes_that_compile_the_same_at_once_are_right(tmp_path: Path) -> None:
    """The cache of machine code, so small that each trims what the others have written."""
    busy = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(COMPILES)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    errors = [process.communicate(timeout=250)[1] for process in busy]
    assert [process.returncode for process in busy] == [0, 0], errors
    assert list((tmp_path / "workbench" / "objects").iterdir()), "it was written"
