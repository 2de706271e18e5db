"""Real files with bytes changed, cut out, doubled and cut off: each is loaded, or refused in words.

What is loaded is read, so that a tensor outside of its file would show.
"""

from __future__ import annotations

import json
import random
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from tests.support import count
from workbench import Tensor
from workbench.base.errors import DeviceError, FileError
from workbench.nn.state import safe_load, safe_save, tar_extract, torch_load

Loader = Callable[[Path], Any]


def sources(path: Path) -> list[tuple[Loader, bytes]]:
    """Return the loader and the content of a file of each format."""
    state = {
        "weight": torch.arange(12.0).reshape(3, 4).T,
        "piece": torch.arange(12)[2:7],
        "bias": torch.ones(3).half(),
        "epoch": 3,
    }
    files = []
    for is_archive in (True, False):
        torch.save(state, path, _use_new_zipfile_serialization=is_archive)
        files.append((torch_load, path.read_bytes()))
    safe_save({"a": Tensor([[1.0, 2.0]]), "b": Tensor([1, 2, 3])}, path, {"k": "v"})
    files.append((safe_load, path.read_bytes()))
    with tarfile.open(path, "w") as archive:
        archive.add(__file__)
        archive.add(path.parent)
    return [*files, (tar_extract, path.read_bytes())]


def changed(content: bytes, rng: random.Random) -> bytes:
    """Return a file with a few random changes."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(data))
        stop = min(len(data), start + rng.randint(1, 9))
        match rng.randrange(6):
            case 0:
                data[start] ^= 1 << rng.randrange(8)
            case 1:
                data[start:stop] = rng.randbytes(stop - start)
            case 2:
                del data[start:stop]
            case 3:
                data[start:start] = data[start:stop]
            case 4:
                data[start:stop] = bytes([rng.choice((0, 0x7F, 0xFF))]) * (stop - start)
            case 5 if rng.random() < 0.2:
                del data[max(1, start) :]
    return bytes(data)


STRANGE: list[Any] = [
    None, True, -1, 0, 1, 4, 8, 1.5, "F33", "F64", "", [], [1, 2], [0] * 70, {}, 2**32, 2**62,
    2**63, 2**64, 10**30, float("nan"), "\ud800",
]  # fmt: skip


def changed_header(content: bytes, rng: random.Random) -> bytes:
    """Return a safetensors file whose header says other things of its tensors."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    for _ in range(rng.choice((1, 1, 2))):
        holder, key = header, rng.choice(list(header))
        while isinstance(holder[key], dict | list) and holder[key]:
            inner = holder[key]
            if rng.random() < 0.2:
                break
            places = list(inner) if isinstance(inner, dict) else range(len(inner))
            holder, key = inner, rng.choice(places)
        match rng.randrange(6):
            case 0 if len(holder) > 1:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder["more"] = rng.choice(STRANGE)
            case 2 if type(holder[key]) is int:
                holder[key] += rng.choice((-4, -1, 1, 4, 8))
            case _:
                holder[key] = rng.choice(STRANGE)
    text = json.dumps(header).encode()
    lie = rng.choice((0, 0, 0, 0, 1, 8, 2**31, 2**62))
    return (len(text) + lie).to_bytes(8, "little") + text + content[8 + length :]


def test_a_changed_header_is_loaded_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    _, content = sources(path)[2]
    rng = random.Random("headers")
    outcomes = {"loaded": 0, "refused": 0}
    for _ in range(count(5000)):
        path.write_bytes(changed_header(content, rng))
        try:
            for tensor in safe_load(path).values():
                read(tensor)
            outcomes["loaded"] += 1
        except FileError as error:
            assert error.because and len(str(error)) < 1000
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 0, outcomes


@pytest.mark.parametrize("number", range(4), ids=["archive", "pickles", "safetensors", "tar"])
def test_a_changed_file_is_loaded_or_refused(tmp_path: Path, number: int) -> None:
    path = tmp_path / "file"
    load, content = sources(path)[number]
    rng = random.Random(number)
    outcomes = {"loaded": 0, "refused": 0}
    for _ in range(count(2000)):
        path.write_bytes(changed(content, rng))
        try:
            value = load(path)
        except FileError as error:
            assert str(error)
            outcomes["refused"] += 1
            continue
        outcomes["loaded"] += 1
        for tensor in value.values() if isinstance(value, dict) else ():
            if isinstance(tensor, Tensor) and tensor.numel() < 1000:
                read(tensor)
    assert min(outcomes.values()) > 0, outcomes


def read(tensor: Tensor) -> None:
    try:
        assert isinstance(tensor.numpy(), np.ndarray)
    except DeviceError as error:
        assert "cannot allocate" in str(error)
