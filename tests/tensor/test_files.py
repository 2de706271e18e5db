"""Files as tensors: what is read, what is written, and what a file cannot do."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench import Context, Tensor, dtypes
from workbench.backends.mapped_file import FileMemory
from workbench.base.errors import DeviceError, DTypeError, FileError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of the bytes 0 to 63."""
    file = tmp_path / "data.bin"
    file.write_bytes(bytes(range(64)))
    return file


def test_a_path_is_a_tensor_of_its_bytes(path: Path) -> None:
    tensor = Tensor(path)
    assert (tensor.dtype, tensor.shape) == (dtypes.uint8, (64,))
    assert tensor.device == f"DISK:{path}"
    assert tensor.tolist() == list(range(64))
    assert Tensor(path, dtype=dtypes.int32).tolist() == np.fromfile(path, "i4").tolist()
    assert Tensor(path, dtype=dtypes.int64)[1:3].tolist() == np.fromfile(path, "i8")[1:3].tolist()
    path.write_bytes(b"")
    assert Tensor(path).tolist() == []


PIECES: list[tuple[Callable[[Any], Any], bool]] = [
    (lambda t: t[3:7], True),
    (lambda t: t[5], True),
    (lambda t: t[-2:], True),
    (lambda t: t[10:50][3:9], True),
    (lambda t: t.reshape(8, 8)[2:4], True),
    (lambda t: t.reshape(8, 8)[2, 3:5], True),
    (lambda t: t.reshape(2, 4, 8)[1, 2], True),
    (lambda t: t[4:4], True),
    (lambda t: t[::8], False),
    (lambda t: t.reshape(8, 8)[:, 1], False),
    (lambda t: t[16:32].reshape(4, 4).T, False),
]
"""A part of a file, and whether its elements are neighbours."""


@pytest.mark.parametrize(("part", "is_piece"), PIECES)
@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_a_part_of_a_file_is_numpy_s(path: Path, part: Any, is_piece: bool, device: str) -> None:
    array = np.fromfile(path, np.uint8)
    view = part(Tensor(path))
    want = part(array)
    taken = view.to(device)
    assert taken.device == device or not want.size
    np.testing.assert_array_equal(taken.numpy(), want)
    if is_piece:
        np.testing.assert_array_equal(view.numpy(), want)
        return
    with pytest.raises(FileError, match="not contiguous"):
        view.numpy()


def test_no_more_is_read_than_is_needed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    read = FileMemory.copy_out

    def noted(self: Any, handle: Any, offset: int, data: Any) -> None:
        sizes.append(data.size)
        read(self, handle, offset, data)

    monkeypatch.setattr(FileMemory, "copy_out", noted)
    tensor = Tensor(path)
    tensor[8:16].bitcast(dtypes.float32).to(None).realize()
    tensor[3:5].tolist()
    tensor[16:32].reshape(4, 4).transpose(0, 1).to(None).realize()
    assert sizes == [8, 2, 16]


@pytest.mark.parametrize("start", [0, 4, 3])
def test_bytes_are_read_as_any_dtype(path: Path, start: int) -> None:
    array = np.fromfile(path, np.uint8)[start : start + 16]
    piece = Tensor(path)[start : start + 16]
    for name in ("float32", "int64", "uint16", "bool", "int8"):
        dtype = dtypes.named(name)
        want = array.copy().view(dtype.numpy)
        if name == "bool":
            continue
        np.testing.assert_array_equal(piece.bitcast(dtype).numpy(), want)
        np.testing.assert_array_equal(piece.bitcast(dtype).to(None).numpy(), want)
    rows = piece.reshape(2, 8).bitcast(dtypes.int32)
    assert rows.shape == (2, 2) and rows.bitcast("uint8").tolist() == piece.reshape(2, 8).tolist()
    with pytest.raises(DTypeError, match="16 bytes.*|has 7 bytes"):
        Tensor(path)[:7].bitcast(dtypes.int32)


def test_a_value_that_was_taken_stays(path: Path) -> None:
    tensor = Tensor(path)
    before = tensor[:4].to(None)
    doubled = before * 2
    tensor[:2] = 9
    assert before.tolist() == [0, 1, 2, 3] and doubled.tolist() == [0, 2, 4, 6]
    assert tensor[:4].tolist() == [9, 9, 2, 3]


WRITES: list[Callable[[Any], Any]] = [
    lambda t: t.__setitem__(slice(2, 4), [100, 101]),
    lambda t: t.__setitem__(0, 5),
    lambda t: t.__setitem__(slice(None), 7),
    lambda t: t[8:12].__setitem__(slice(1, 3), np.array([1, 2], np.uint8)),
    lambda t: t.reshape(8, 8).__setitem__((3, slice(2, 5)), np.arange(3, dtype=np.uint8)),
    lambda t: t.reshape(8, 8).__setitem__(1, np.arange(8, dtype=np.uint8) * 2),
]


@pytest.mark.parametrize("write", WRITES)
def test_what_is_written_is_in_the_file(path: Path, write: Any) -> None:
    want = np.fromfile(path, np.uint8)
    write(want)
    tensor = Tensor(path)
    write(tensor)
    np.testing.assert_array_equal(np.fromfile(path, np.uint8), want)
    np.testing.assert_array_equal(tensor.numpy(), want)


def test_a_view_of_other_dtype_is_assigned(path: Path) -> None:
    values = np.array([1.5, -2.0], np.float32)
    Tensor(path)[5:13].bitcast(dtypes.float32).assign(Tensor(values) * 2)
    assert path.read_bytes()[5:13] == (values * 2).tobytes()
    Tensor(path)[:4].bitcast("bfloat16").assign(Tensor([1.5, 2.5], dtype="bfloat16"))
    assert Tensor(path)[:4].bitcast("bfloat16").to(None).tolist() == [1.5, 2.5]


def test_a_file_is_made_and_made_longer(tmp_path: Path) -> None:
    file = tmp_path / "new.bin"
    tensor = Tensor.empty(4, 2, dtype="float32", device=f"disk:{file}")
    assert file.stat().st_size == 32
    tensor.assign(Tensor.arange(8).reshape(4, 2).float())
    assert np.fromfile(file, np.float32).tolist() == list(range(8))
    assert Tensor.empty(2, dtype="float32", device=f"DISK:{file}").tolist() == [0, 1]
    Tensor.empty(10, dtype="float32", device=f"disk:{file}")
    assert np.fromfile(file, np.float32).tolist() == [*range(8), 0, 0]
    copy = tmp_path / "copy.bin"
    saved = Tensor.arange(5).to(f"disk:{copy}")
    assert saved.device == f"DISK:{copy}" and np.fromfile(copy, np.int32).tolist() == list(range(5))
    assert (Tensor(file, device="PYTHON")[4:5].tolist(), Tensor(file, device="PYTHON").device) == (
        [0],
        "PYTHON",
    )


def test_a_file_on_another_file_is_copied(path: Path) -> None:
    copy = Tensor(path)[10:20].to(f"disk:{path}2")
    assert copy.tolist() == list(range(10, 20)) == list(Path(f"{path}2").read_bytes())


def test_what_a_file_cannot_do_is_said(path: Path) -> None:
    tensor = Tensor(path)
    with pytest.raises(FileError, match="cannot compute ADD in a file") as error:
        (tensor + 1).realize()
    assert '.to("' in str(error.value)
    with pytest.raises(FileError, match="cannot compute CAST"):
        tensor[:2].cast(dtypes.float32).schedule()
    with pytest.raises(FileError, match="cannot compute ADD"):
        tensor[:2] += 1
    with pytest.raises(FileError, match="not contiguous"):
        tensor[::2] = 1
    with pytest.raises(DeviceError, match="cannot combine"):
        tensor[:2] + Tensor([1, 2])
    with pytest.raises(FileError, match="No such file"):
        Tensor(path.parent / "missing")
    with pytest.raises(FileError, match="directory"):
        Tensor(path.parent)
    os.mkfifo(path.parent / "pipe")
    with pytest.raises(FileError, match="a pipe or a device"):  # and does not wait for it
        Tensor(path.parent / "pipe")
    with pytest.raises(FileError, match="cannot open"):
        Tensor.empty(4, device=f"disk:{path}/inside")
    assert path.read_bytes() == bytes(range(64))


def test_a_file_that_became_shorter_is_said(path: Path) -> None:
    tensor = Tensor(path)
    os.truncate(path, 10)
    assert tensor[:10].tolist() == list(range(10))
    for read in (lambda: tensor[5:20].numpy(), lambda: tensor[5:20].to(None)):
        with pytest.raises(FileError, match="had 64 bytes when it was opened, and ends at 10"):
            read()


def test_a_file_for_reading_only_is_not_written(path: Path) -> None:
    path.chmod(0o400)
    tensor = Tensor(path)
    if os.access(path, os.W_OK):
        pytest.skip("this user may write every file")
    with pytest.raises(FileError, match="may not be written"):
        tensor[0] = 1
    assert tensor[0].item() == 0


def test_a_file_is_closed_with_its_last_tensor(path: Path) -> None:
    folder = Path("/proc/self/fd")
    if not folder.exists():
        pytest.skip("this system does not list open files")

    def count() -> int:
        links = [os.readlink(link) for link in folder.iterdir() if link.is_symlink()]
        return links.count(str(path))

    tensor = Tensor(path)[4:8].bitcast(dtypes.int32)
    assert count() == 1
    assert tensor.numel() == 1
    del tensor
    assert count() == 0


def test_a_file_is_not_pickled(path: Path) -> None:
    content = pickle.dumps(Tensor(path)[:4].to(None))
    assert pickle.loads(content).tolist() == [0, 1, 2, 3]


def test_a_file_is_read_into_a_computation(path: Path) -> None:
    with Context(DEV="PYTHON"):
        weights = Tensor(path)[:16].reshape(4, 4).to(None).cast("float32")
        array = np.arange(16, dtype=np.float32).reshape(4, 4)
        np.testing.assert_array_equal((weights @ weights).numpy(), array @ array)
