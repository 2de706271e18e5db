"""The object cache: what comes back, and what is not trusted."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.backends.disk import fill_disk
from workbench import Tensor
from workbench.backends.native import jit, object_cache
from workbench.backends.native.jit import object_of
from workbench.base.cache import cache_folder, key_of, write_json
from workbench.execution.realize import schedule
from workbench.pipeline import build

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX owners and modes")
KEY = key_of("some", "text")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def entry(key: str = KEY) -> Path:
    return cache_folder() / "objects" / key


def test_what_is_put_comes_back() -> None:
    assert object_cache.get(KEY) is None
    object_cache.store_object(KEY, b"\x00code\n")
    assert object_cache.get(KEY) == b"\x00code\n"
    object_cache.store_object(KEY, b"other")
    assert object_cache.get(KEY) == b"other"
    assert [path.name for path in entry().parent.iterdir()] == [KEY]


@pytest.mark.parametrize("variable", ["", "here", "./here", "../here"])
@pytest.mark.parametrize("name", ["XDG_CACHE_HOME", "HOME"])
def test_no_cache_lies_in_the_folder_one_works_in(
    name: str, variable: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = home / "deeper" / "work"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    if name == "XDG_CACHE_HOME":
        monkeypatch.setenv("HOME", str(home / "own"))
    else:
        monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv(name, variable)
    if variable or name == "XDG_CACHE_HOME":  # an empty $HOME is the root folder's
        object_cache.store_object(KEY, b"code")
        write_json("some", "file.json", {})
    assert [path.name for path in (home / "deeper").rglob("*")] == ["work"]
    if name == "XDG_CACHE_HOME":
        assert object_cache.get(KEY) == b"code"
        assert cache_folder().is_relative_to(home / "own")


def test_keys_tell_parts_apart() -> None:
    assert key_of("ab", "c") != key_of("a", "bc")
    assert key_of("a") == key_of("a")


@posix
def test_only_the_user_can_read_it(home: Path) -> None:
    os.umask(os.umask(0))  # whatever the mask is, the modes below must hold
    object_cache.store_object(KEY, b"code")
    for path, mode in ((home / "workbench", 0o700), (entry().parent, 0o700)):
        assert stat.S_IMODE(path.stat().st_mode) == mode
    assert stat.S_IMODE(entry().stat().st_mode) == 0o600


@pytest.mark.parametrize("position", [0, 25, 60, 100, -1])
def test_a_changed_byte_is_noticed(position: int) -> None:
    object_cache.store_object(KEY, b"code" * 20)
    data = bytearray(entry().read_bytes())
    data[position] ^= 1
    entry().write_bytes(data)
    with pytest.warns(RuntimeWarning, match="damaged; compiling again"):
        assert object_cache.get(KEY) is None
    assert object_cache.get(KEY) is None  # it is gone, and not warned about twice


@pytest.mark.parametrize("length", [0, 10, 60])
def test_a_cut_file_is_noticed(length: int) -> None:
    object_cache.store_object(KEY, b"code" * 20)
    entry().write_bytes(entry().read_bytes()[:length])
    with pytest.warns(RuntimeWarning, match="damaged"):
        assert object_cache.get(KEY) is None


def test_an_entry_under_another_key_is_noticed() -> None:
    other = key_of("other")
    object_cache.store_object(other, b"code")
    entry(other).rename(entry())
    with pytest.warns(RuntimeWarning, match="damaged"):
        assert object_cache.get(KEY) is None


@posix
def test_what_others_may_write_is_not_used() -> None:
    object_cache.store_object(KEY, b"code")
    entry().chmod(0o666)
    with pytest.warns(RuntimeWarning, match="not yours alone"):
        assert object_cache.get(KEY) is None
    entry().chmod(0o600)
    entry().parent.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="not yours alone"):
        assert object_cache.get(KEY) is None
    with pytest.warns(RuntimeWarning, match="not yours alone"):
        object_cache.store_object(KEY, b"code")


@posix
@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs chown")
def test_what_others_own_is_not_used() -> None:
    object_cache.store_object(KEY, b"code")
    os.chown(entry(), 12345, -1)
    with pytest.warns(RuntimeWarning, match="not yours alone"):
        assert object_cache.get(KEY) is None


@posix
def test_a_link_is_not_followed(tmp_path: Path) -> None:
    object_cache.store_object(KEY, b"code")
    elsewhere = tmp_path / "elsewhere"
    entry().rename(elsewhere)
    entry().symlink_to(elsewhere)
    assert object_cache.get(KEY) is None


def test_a_cache_that_cannot_be_is_no_error(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "file" / "inside"))
    object_cache.store_object(KEY, b"code")
    assert object_cache.get(KEY) is None


@pytest.mark.parametrize("failing", ["open", "write", "replace"])
def test_a_full_disk_is_a_warning(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        fill_disk(broken, failing)
        with pytest.warns(RuntimeWarning, match="No space left.*going on without"):
            object_cache.store_object(KEY, b"code")
    assert object_cache.get(KEY) is None
    assert not list(entry().parent.iterdir())
    object_cache.store_object(KEY, b"code")
    assert object_cache.get(KEY) == b"code"


def test_ctrl_c_leaves_no_file_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """However early it comes: here when the system has just made the file."""
    real_open = os.open

    def pressed(*args: Any) -> int:
        os.close(real_open(*args))
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(os, "open", pressed)
        object_cache.store_object(KEY, b"code")
    assert not list(entry().parent.iterdir())


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB, which only root can make."""
    place = tmp_path / "tiny"
    place.mkdir()
    options = ["-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if not hasattr(os, "geteuid") or shutil.which("mount") is None:
        pytest.skip("there is no mount")
    if subprocess.run(["mount", *options], capture_output=True).returncode:
        pytest.skip("mounting is not allowed")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_disk_that_is_full_gives_right_answers(
    tiny_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tiny_disk))
    (tiny_disk / "filler").write_bytes(bytes(56 << 10))
    with pytest.warns(RuntimeWarning, match="No space left"):
        object_cache.store_object(KEY, bytes(32 << 10))
    assert object_cache.get(KEY) is None
    with contextlib.suppress(OSError), open(tiny_disk / "rest", "wb") as rest:
        while True:
            rest.write(bytes(4096))
            rest.flush()
    with pytest.warns(RuntimeWarning, match="No space left"):
        assert (Tensor([1, 2, 3]) * 3 + 12345).tolist() == [12348, 12351, 12354]


def test_code_of_another_processor_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    expression = (Tensor([1, 2, 3], device="LLVM") * 7 + 54321).uop
    (kernel,) = [item.kernel for item in schedule([expression]) if item.kernel]
    text = build(kernel, "LLVM").source.text + "; on two machines\n"
    own = jit.host()
    for change in ({"cpu": "another"}, {"features": "+another"}, {"version": "another"}):
        other = dataclasses.replace(own, **change)
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(jit, "host", lambda other=other: other)
            elsewhere.setattr(jit, "compile_object", lambda text: b"its machine code")
            assert object_of(text) == b"its machine code"
            assert object_of(text) == b"its machine code"  # from the cache
    assert object_of(text) == jit.compile_object(text)


ONCE = """
import numpy as np
from workbench.backends.native import jit
compiled, compile_object = [], jit.compile_object
def noted(text):
    compiled.append(text)
    return compile_object(text)
jit.compile_object = noted
from workbench import Tensor
for n in range(3):
    a, b = (Tensor(np.full((300, 300), n, np.float32)) for _ in range(2))
    (a @ b + 1).relu().numpy()
print(len(compiled))
"""


def test_equal_kernels_compile_once_and_not_in_the_next_process(tmp_path: Path) -> None:
    """The code of the thread pool is kept like that of kernels."""
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    counts = [
        int(subprocess.check_output([sys.executable, "-c", ONCE], env=environment))
        for _ in range(2)
    ]
    assert 1 <= counts[0] <= 2 and counts[1] == 0


def test_trim_deletes_the_oldest() -> None:
    keys = [key_of(str(n)) for n in range(10)]
    for n, key in enumerate(keys):
        object_cache.store_object(key, b"x" * 1000)
        os.utime(entry(key), (n, n))
    object_cache.trim(1 << 20)
    assert object_cache.get(keys[0]) is not None
    object_cache.trim(8000)
    assert object_cache.get(keys[0]) is None and object_cache.get(keys[-1]) is not None
    assert sum(p.stat().st_size for p in entry().parent.iterdir()) <= 4000


def test_folder_of_each_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("LOCALAPPDATA", "local")
    ends = {"linux": ".cache", "darwin": "Caches", "win32": "local"}
    for platform, parent in ends.items():
        monkeypatch.setattr(sys, "platform", platform)
        assert cache_folder().name == "workbench"
        assert cache_folder().parent.name == parent
