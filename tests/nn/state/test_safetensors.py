"""Safetensors files: round trips, memory, and what is refused."""

from __future__ import annotations

import json
import os
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from tests.tensor.agree import numbers
from workbench import Context, Tensor, TinyJit, dtypes, nn
from workbench.base.errors import FileError, WorkbenchError
from workbench.execution.buffers import memory_of
from workbench.execution.memory_plan import value_in_memory
from workbench.nn.state import (
    get_state_dict,
    load_state_dict,
    safe_load,
    safe_load_metadata,
    safe_save,
)

NAMES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 fp8e4m3 fp8e5m2"
NAMES += " float16 bfloat16 float32 float64"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "weights.safetensors"


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_what_is_saved_is_loaded(path: Path, device: str) -> None:
    rng = np.random.default_rng(0)
    with Context(DEV=device):
        kinds = [dtypes.named(name) for name in NAMES.split()]
        state = {
            d.name: Tensor(rng.integers(0, 2 if d.is_bool else 99, (3, 5))).cast(d) for d in kinds
        }
        state |= {"scalar": Tensor(3.5), "empty": Tensor.zeros(0, 2), "": Tensor([1])}
        state["transposed"] = Tensor(numbers((3, 4))).transpose()
        safe_save(state, path, {"made by": "a test"})
        loaded = safe_load(path)
        assert loaded.keys() == state.keys() and len(state) >= 16
        for name, tensor in loaded.items():
            assert (tensor.dtype, tensor.shape) == (state[name].dtype, state[name].shape)
            assert tensor.device == device or not tensor.numel()
            np.testing.assert_array_equal(tensor.numpy(), state[name].numpy())
        assert safe_load_metadata(path)[2]["__metadata__"] == {"made by": "a test"}
        in_memory = safe_load(Tensor(np.fromfile(path, np.uint8)))
        np.testing.assert_array_equal(in_memory["float16"].numpy(), loaded["float16"].numpy())


def test_pytorch_reads_what_we_write_and_we_what_it_writes(path: Path) -> None:
    theirs = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3))
    ours = [nn.Conv2d(2, 3, 3), nn.BatchNorm(3)]
    from safetensors.torch import load_file, save_file

    save_file(theirs.state_dict(), path)
    load_state_dict(ours, safe_load(path), verbose=False)
    for name, value in theirs.state_dict().items():
        np.testing.assert_array_equal(get_state_dict(ours)[name].numpy(), value.numpy())
    ours = [nn.Conv2d(2, 3, 3), nn.BatchNorm(3)]
    safe_save(get_state_dict(ours), path)
    theirs.load_state_dict(load_file(path))
    for name, value in theirs.state_dict().items():
        np.testing.assert_array_equal(get_state_dict(ours)[name].numpy(), value.numpy())


def test_a_tensor_uses_the_pages_of_the_file(path: Path) -> None:
    safe_save({"a": Tensor(numbers((64, 64))), "b": Tensor([1, 2, 3])}, path)
    loaded = safe_load(path)["a"]
    memory = memory_of(loaded.uop)
    assert memory.is_adopted
    np.testing.assert_allclose(
        (loaded @ loaded).numpy(), (lambda a: a @ a)(numbers((64, 64))), 1e-4
    )
    before = path.read_bytes()
    model = {"a": Tensor.zeros(64, 64), "b": Tensor.zeros(3)}
    load_state_dict(model, safe_load(path), verbose=False)
    assert memory_of(value_in_memory(model["a"].uop)).is_adopted
    model["a"].assign(model["a"] * 0 + 7).realize()
    model["b"] += 1
    assert model["a"].max().item() == 7.0 and model["b"].tolist() == [2, 3, 4]
    assert path.read_bytes() == before
    np.testing.assert_array_equal(loaded.numpy(), numbers((64, 64)))
    assert not memory_of(Tensor([1]).realize().uop).is_adopted


def test_a_layer_in_the_pages_of_a_file_is_trained(path: Path) -> None:
    source = nn.Linear(3, 2)
    safe_save(get_state_dict(source), path)
    before, sums = path.read_bytes(), []
    for state in (safe_load(path), get_state_dict(source)):
        layer = nn.Linear(3, 2)
        load_state_dict(layer, state, verbose=False)
        optimizer = nn.optim.SGD([layer.weight], 0.1)

        @TinyJit
        def step(x: Tensor, layer: Any = layer, optimizer: Any = optimizer) -> Tensor:
            optimizer.zero_grad()
            loss = layer(x).square().sum()
            loss.backward()
            return loss.realize(*optimizer.schedule_step())  # type: ignore[no-any-return]

        with Tensor.train():
            losses = [step(Tensor.ones(1, 3).contiguous().realize()).item() for _ in range(4)]
        sums.append([*losses, layer.weight.sum().item()])
    np.testing.assert_allclose(sums[0], sums[1], rtol=1e-5)
    assert path.read_bytes() == before and sums[0][3] < sums[0][0]


def test_a_file_is_replaced_under_what_is_mapped_from_it(path: Path) -> None:
    safe_save({"a": Tensor(numbers((50, 50)))}, path)
    loaded = safe_load(path)
    safe_save({"a": loaded["a"][:1] * 2}, path)
    np.testing.assert_array_equal(loaded["a"].numpy(), numbers((50, 50)))
    np.testing.assert_array_equal(safe_load(path)["a"].numpy(), numbers((50, 50))[:1] * 2)
    assert os.listdir(path.parent) == [path.name]


def test_elements_that_are_not_aligned_are_copied(path: Path) -> None:
    header = b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    path.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<2f", 1.5, 2.5))
    assert len(header) % 4
    assert safe_load(path)["a"].tolist() == [1.5, 2.5]


def row(start: Any, stop: Any, shape: Any = (1,), dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


HOSTILE: list[tuple[str, Any, bytes, str]] = [
    ("an empty object, and bytes that nobody needs", {}, b"1234", "4 bytes are of no tensor"),
    ("cut off", {"a": row(0, 4)}, b"123", "tensors have 4 bytes, and the file has 3 for them"),
    ("overlapping", {"a": row(0, 4), "b": row(2, 6)}, b"123456", "'b' begins inside of another"),
    ("a gap", {"a": row(0, 4), "b": row(8, 12)}, b"1" * 12, "before tensor 'b' are of none"),
    ("beyond the end", {"a": row(4, 8)}, b"1234567", "tensors have 8 bytes, and the file has 7"),
    ("backwards", {"a": row(4, 0)}, b"1234", "ends before it begins"),
    ("larger than its bytes", {"a": row(0, 4, (2,))}, b"1234", "4 bytes, which are not those of"),
    ("a negative size", {"a": row(0, 4, (-1,))}, b"1234", "Expected `int` >= 0"),
    ("a size that overflows", {"a": row(0, 4, (2**62, 4))}, b"1234", "4 bytes, which are not"),
    ("empty, and too large", {"a": row(0, 0, (0, 2**60, 2**60))}, b"", "bytes 0 to 0 of 0"),
    ("empty, of too many bytes", {"a": row(0, 0, (0, 3, 2**61))}, b"", "bytes 0 to 0 of 0"),
    ("too many axes", {"a": row(0, 4, (1,) * 65)}, b"1234", "it is of shape (1, 1, 1"),
    ("an unknown type", {"a": row(0, 4, dtype="F33")}, b"1234", "has the element type 'F33'"),
    ("a type that we lack", {"a": row(0, 8, dtype="C64")}, b"12345678", "the element type C64"),
    ("not a table", [1], b"", "Expected `object`, got `array`"),
    ("a row that is none", {"a": 3}, b"", "Expected `object`, got `int`"),
    ("places that are none", {"a": row("x", [], (1,))}, b"1234", "Expected `int`, got `str`"),
    ("metadata that is none", {"__metadata__": {"a": 3}}, b"", "Expected `str`, got `int`"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "header", "data", "words"), HOSTILE, ids=[r[0] for r in HOSTILE])
def test_a_header_that_lies_is_refused(
    path: Path, name: str, header: Any, data: bytes, words: str
) -> None:
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    for source in (path, Tensor(np.fromfile(path, np.uint8))):
        with pytest.raises(FileError, match="cannot load") as error:
            safe_load(source)
        assert words in str(error.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it has 0 bytes, and begins with 8"),
        (b"1234567", "it has 7 bytes"),
        (struct.pack("<Q", 2**63) + b"{}", "its header has 9,223,372,036,854,775,808 bytes"),
        (struct.pack("<Q", 3) + b"{}", "its header has 3 bytes, and the file has 2 for it"),
        (struct.pack("<Q", 100_000_001) + b"{}", "its header has 100,000,001 bytes, and the"),
        (struct.pack("<Q", 2) + b"{\xff", "its header is not text"),
        (struct.pack("<Q", 4) + b"nope", "its header is not JSON"),
        (struct.pack("<Q", 100_000) + b"[" * 100_000, "nested too deeply"),
    ],
)  # fmt: skip
def test_a_file_that_is_cut_off_or_of_another_kind_is_refused(
    path: Path, content: bytes, words: str
) -> None:
    path.write_bytes(content)
    with pytest.raises(FileError, match="cannot load") as error:
        safe_load(path)
    assert words in str(error.value)


def test_what_is_not_a_file_is_said(path: Path) -> None:
    with pytest.raises(FileError, match="No such file"):
        safe_load(path)
    with pytest.raises(FileError, match="directory"):
        safe_load(path.parent)
    with pytest.raises(FileError, match="a pipe or a device"):
        safe_load("/dev/zero")
    with pytest.raises(FileError, match="a path, or a tensor of uint8"):
        safe_load(Tensor([1.0]))
    with pytest.raises(FileError, match="must be a tensor"):
        safe_save({"a": 3}, path)  # type: ignore[dict-item]
    with pytest.raises(WorkbenchError, match="cannot write"):
        safe_save({"a": Tensor([1])}, path / "inside")
    assert not path.exists()


def test_a_missing_package_is_a_sentence(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    for call in (lambda: safe_load(path), lambda: safe_save({}, path)):
        with pytest.raises(WorkbenchError, match="pip install safetensors"):
            call()
