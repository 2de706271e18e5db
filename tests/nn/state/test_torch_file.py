"""PyTorch's files: what torch.save writes is loaded, and what would run code is refused."""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from tests.support import by_rows
from workbench import Context, Tensor, dtypes, nn
from workbench.base.errors import FileError
from workbench.execution.buffers import memory_of
from workbench.ir.schedule.schedule import base
from workbench.nn.state import get_state_dict, load_state_dict, torch_load

FORMATS = [True, False]
"""An archive, and the pickles in a row of before PyTorch 1.6."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "weights.pth"


def save(value: Any, path: Path, is_archive: bool = True) -> None:
    torch.save(value, path, _use_new_zipfile_serialization=is_archive)


def network() -> Any:
    layers = (torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.Linear(4, 5))
    return torch.nn.Sequential(*layers)


@pytest.mark.parametrize("is_archive", FORMATS)
def test_a_state_dict_of_pytorch_is_loaded(path: Path, is_archive: bool) -> None:
    theirs = network()
    save(theirs.state_dict(), path, is_archive)
    ours = [nn.Conv2d(2, 3, 3), nn.BatchNorm(3), nn.Linear(4, 5)]
    load_state_dict(ours, torch_load(path), verbose=False)
    for name, value in theirs.state_dict().items():
        np.testing.assert_array_equal(get_state_dict(ours)[name].numpy(), value.numpy())
    in_memory = torch_load(Tensor(np.fromfile(path, np.uint8)))
    assert list(in_memory) == list(theirs.state_dict())


@pytest.mark.parametrize("is_archive", FORMATS)
def test_tensors_of_every_kind_are_loaded(path: Path, is_archive: bool) -> None:
    numbers = torch.arange(24)
    tensors = {
        name: numbers.reshape(4, 6).to(getattr(torch, name))
        for name in "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()
    }
    if is_archive:
        tensors |= {
            n: numbers.to(getattr(torch, n))
            for n in ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2")
        }
    tensors |= {
        "parameter": torch.nn.Parameter(torch.ones(2, 3)),
        "scalar": torch.tensor(3.5),
        "empty": torch.zeros(0, 3),
        "transposed": numbers.reshape(4, 6).T,
        "piece": numbers[5:9],
        "steps": numbers.reshape(4, 6)[1:, ::2],
        "repeated": numbers[:3, None].expand(3, 1 << 20),
        "channels last": torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last),
    }
    save(tensors, path, is_archive)
    loaded = torch_load(path)
    assert loaded.keys() == tensors.keys()
    for name, value in tensors.items():
        assert loaded[name].shape == tuple(value.shape), name
        theirs = str(value.dtype).removeprefix("torch.")
        fp8 = {"float8_e4m3fn": "fp8e4m3", "float8_e5m2": "fp8e5m2"}
        assert str(loaded[name].dtype) == fp8.get(theirs, theirs)
        if name == "repeated":
            value, loaded[name] = value[:, :3], loaded[name][:, :3]
        want = value.detach()
        want = want.float() if want.dtype.is_floating_point else want
        np.testing.assert_array_equal(loaded[name].numpy(), want.numpy())


@pytest.mark.parametrize("is_archive", FORMATS)
def test_a_checkpoint_keeps_its_structure(path: Path, is_archive: bool) -> None:
    checkpoint = {
        "epoch": 3,
        "best": (0.5, None, True, -(2**80)),
        "names": ["a", "β"],
        "bytes": {b"a": {"b", "c"}, 1.5: ()},
        "model": OrderedDict(w=torch.ones(2)),
        "size": torch.Size([2, 3]),
        "device": torch.device("cpu"),
        "dtype": torch.float16,
    }
    save(checkpoint, path, is_archive)
    loaded = torch_load(path)
    assert loaded.pop("model")["w"].tolist() == [1.0, 1.0]
    want = {k: v for k, v in checkpoint.items() if k != "model"}
    want |= {"size": (2, 3), "device": "cpu", "dtype": dtypes.float16}
    assert loaded == want


def test_views_of_a_storage_are_views_of_one_memory(path: Path) -> None:
    weight = torch.arange(6.0)
    save({"a": weight, "b": weight.reshape(2, 3), "c": weight[2:5]}, path)
    loaded = torch_load(path)
    nodes = {base(t.uop) for t in loaded.values()}
    assert len(nodes) <= 2
    memory = memory_of(base(loaded["a"].uop))
    assert memory.is_adopted and loaded["c"].tolist() == [2.0, 3.0, 4.0]


def test_a_device_without_this_process_s_memory_gets_a_copy(path: Path) -> None:
    save({"a": torch.arange(5)}, path)
    with Context(DEV="PYTHON"):
        loaded = torch_load(path)["a"]
        assert loaded.device == "PYTHON" and loaded.tolist() == [0, 1, 2, 3, 4]


class Attack:
    """What pickles as a call of a function."""

    def __init__(self, call: tuple[Any, ...]):
        self.call = call

    def __reduce__(self) -> Any:
        return self.call


def attacks(target: Path) -> list[tuple[str, Any]]:
    """Return values whose pickles would write a file, and the name that is refused."""
    code = f"open({str(target)!r}, 'w')"
    return [
        ("posix.system", Attack((os.system, (f"touch {target}",)))),
        ("builtins.eval|__builtin__.eval", Attack((eval, (code,)))),
        ("builtins.open|io.open", Attack((open, (str(target), "w")))),
        ("torch.load|torch.serialization.load", Attack((torch.load, (str(target),)))),
        ("builtins.getattr|__builtin__.getattr", Attack((getattr, ("text", "format")))),
        ("Linear", torch.nn.Linear(2, 2)),
        ("Path", Path("x")),
    ]


@pytest.mark.parametrize("number", range(7))
@pytest.mark.parametrize("is_archive", FORMATS)
def test_code_is_not_executed(path: Path, is_archive: bool, number: int) -> None:
    target = path.parent / "written"
    name, value = attacks(target)[number]
    save({"a": torch.ones(2), "b": value}, path, is_archive)
    with pytest.raises(FileError, match="refused to load a file that needs") as error:
        torch_load(path)
    assert any(part in str(error.value) for part in name.split("|"))
    assert "nothing in a file is executed" in str(error.value)
    assert not target.exists()


def archive(pickled: bytes, members: dict[str, bytes] | None = None) -> bytes:
    """Return an archive with a pickle of our own."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        target.writestr("x/data.pkl", pickled)
        for name, data in (members or {"x/data/0": bytes(16)}).items():
            target.writestr(name, data)
    return file.getvalue()


def tensor_pickle(
    offset: int = 0,
    size: Any = (4,),
    stride: Any = (1,),
    count: int = 4,
    key: Any = "0",
    kind: str = "FloatStorage",
) -> bytes:
    """Return the pickle of a tensor that says this of itself."""
    body = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + b"("
    body += _value("storage") + f"ctorch\n{kind}\n".encode()
    body += _value(key) + _value("cpu") + _value(count) + b"tQ"
    body += _value(offset) + _value(size) + _value(stride) + b"\x89}tR."
    return body


def _value(value: Any) -> bytes:
    """Return the instructions that push a value."""
    return pickle.dumps(value, 2)[2:-1]


BAD_TENSORS: list[tuple[str, dict[str, Any]]] = [
    ("beyond its storage", {"size": (5,)}),
    ("beyond its storage by its offset", {"offset": 1}),
    ("beyond its storage by its stride", {"size": (3,), "stride": (2,)}),
    ("a negative stride", {"stride": (-1,), "offset": 3}),
    ("a negative offset", {"offset": -1}),
    ("a negative size", {"size": (-4,)}),
    ("two negative sizes", {"size": (-2, -2), "stride": (1, 1)}),
    ("no size that a machine has", {"size": (2**40, 2**40), "stride": (0, 0)}),
    ("an empty one that is too large", {"size": (0, 2**62, 4), "stride": (1, 1, 1)}),
    ("an empty one beyond the end", {"size": (0,), "offset": 5}),
    ("fewer strides than sizes", {"size": (2, 2), "stride": (1,)}),
    ("a size that is a list", {"size": [4]}),
    ("a size that is a float", {"size": (4.0,)}),
    ("a size that is a bool", {"size": (True,)}),
    ("a storage larger than its bytes", {"count": 5, "size": (5,)}),
    ("a storage of no size", {"count": -1}),
    ("a storage larger than a machine", {"count": 2**70}),
    ("a storage that is missing", {"key": "1"}),
    ("a storage that is a way out", {"key": "../data.pkl"}),
    ("a storage by number", {"key": 0}),
    ("a type that we lack", {"kind": "ComplexFloatStorage"}),
    ("more axes than we have", {"size": (1,) * 65, "stride": (1,) * 65}),
]


def test_a_tensor_of_our_own_pickle_is_loaded(path: Path) -> None:
    data = {"x/data/0": struct.pack("<4f", 1, 2, 3, 4)}
    path.write_bytes(archive(tensor_pickle(offset=1, size=(3,)), data))
    assert torch_load(path).tolist() == [2.0, 3.0, 4.0]


@pytest.mark.parametrize(("name", "fields"), BAD_TENSORS, ids=[r[0] for r in BAD_TENSORS])
def test_a_tensor_that_lies_is_refused(path: Path, name: str, fields: Any) -> None:
    path.write_bytes(archive(tensor_pickle(**fields)))
    with pytest.raises(FileError):
        torch_load(path)


BAD_PICKLES: list[tuple[str, bytes]] = [
    ("empty", b""),
    ("only a stop", b"."),
    ("no stop", b"\x80\x02]"),
    ("an unknown instruction", b"\x80\x02\xff."),
    ("nothing to append to", b"\x80\x02a."),
    ("a group without a beginning", b"\x80\x02]e."),
    ("a group as the value", b"\x80\x02(."),
    ("a memo without an entry", b"\x80\x02h\x05."),
    ("text that is longer than the file", b"\x80\x02X\xff\xff\xff\x7fabc."),
    ("bytes that are longer than a machine", b"\x80\x04\x8e" + b"\xff" * 7 + b"\x7f."),
    ("a byte array that is longer than a machine", b"\x80\x05\x96" + b"\xff" * 7 + b"\x7f."),
    ("text that is none", b"\x80\x02X\x01\x00\x00\x00\xff."),
    ("a number that is none", b"Ixyz\n."),
    ("a line without an end", b"cos"),
    ("a name without a dot", b"\x80\x04\x8c\x01a\x8c\x01b\x93."),
    ("a name that is not text", b"\x80\x04K\x01K\x02\x93."),
    ("a call of a number", b"\x80\x02K\x01)R."),
    ("a call of a dict", b"\x80\x02})R."),
    ("an instance", b"(S'ls'\nios\nsystem\n."),
    ("an object", b"(cos\nsystem\nS'ls'\no."),
    ("a new object", b"\x80\x02ccollections\nOrderedDict\n)\x81."),
    ("attributes of a list", b"\x80\x02]}b."),
    ("an extension", b"\x80\x02\x82\x01."),
    ("a list as a key", b"\x80\x02}]K\x01s."),
    ("a tuple as a key", b"\x80\x02}K\x01\x85K\x01s."),
    ("a key without a value", b"\x80\x02}(K\x01u."),
    ("a storage that is a number", b"\x80\x02K\x01Q."),
    ("an OrderedDict of numbers", b"\x80\x02ccollections\nOrderedDict\n]K\x01a\x85R."),
    ("a function as the size of a tensor", b"\x80\x02ctorch\nSize\nctorch\nSize\n\x85R."),
]


@by_rows(("name", "pickled"), BAD_PICKLES, ids=[r[0] for r in BAD_PICKLES])
def test_a_damaged_pickle_is_refused(path: Path, name: str, pickled: bytes) -> None:
    path.write_bytes(archive(pickled))
    with pytest.raises(FileError):
        torch_load(path)


def test_tuples_of_tuples_as_a_key_take_no_time(path: Path) -> None:
    """Its hash would take 2^200 steps."""
    nested = b")" + b"2\x86" * 200
    path.write_bytes(archive(b"\x80\x02}" + nested + b"K\x01s."))
    with pytest.raises(FileError, match="a key that is a tuple"):
        torch_load(path)


def test_a_compressed_or_damaged_archive_is_refused(path: Path) -> None:
    save({"a": torch.ones(8)}, path)
    whole = path.read_bytes()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("x/data.pkl", bytes(1 << 20))
    start = whole.index(b"PK\x03\x04", 4)
    contents = {
        "it is compressed or encrypted": file.getvalue(),
        "cannot read the archive": whole[: len(whole) - 100],
        f"at byte {start} is something else": whole[:start] + b"!" + whole[start + 1 :],
        "cannot find a pickle": archive(b"N.").replace(b"data.pkl", b"text.pkl"),
        "byte order": whole.replace(b"little", b"bigbig"),
    }
    for words, content in contents.items():
        path.write_bytes(content)
        with pytest.raises(FileError, match=words):
            torch_load(path)


def test_a_member_that_is_longer_than_the_archive_is_refused(path: Path) -> None:
    content = bytearray(archive(tensor_pickle()))
    place = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02") + 4)
    content[place + 20 : place + 28] = struct.pack("<2I", 1 << 20, 1 << 20)
    path.write_bytes(content)
    with pytest.raises(FileError, match="is cut off"):
        torch_load(path)


def test_a_row_of_pickles_that_lies_is_refused(path: Path) -> None:
    save({"a": torch.ones(8), "b": torch.zeros(2)}, path, is_archive=False)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(FileError):
            torch_load(path)
    count = struct.pack("<q", 8)
    assert whole.count(count) == 1
    for wrong in (7, -1, 1 << 40, 16):
        path.write_bytes(whole.replace(count, struct.pack("<q", wrong)))
        with pytest.raises(FileError, match=f"has {wrong} elements"):
            torch_load(path)


@pytest.mark.parametrize("content", [b"", b"x", b"\x80\x02K\x01.", b"ustar" * 200, bytes(600)])
def test_another_file_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(FileError):
        torch_load(path)
