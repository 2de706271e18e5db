"""keccak and hash against the standard library's."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from tests.support import LONG
from workbench.base.context import Context
from workbench.tensor import Tensor

KECCAK = {
    "sha3_224": lambda message: hashlib.sha3_224(message).digest(),
    "sha3_256": lambda message: hashlib.sha3_256(message).digest(),
    "shake_128": lambda message: hashlib.shake_128(message).digest(16),
}


def text(message: bytes) -> Tensor:
    """Return a message as a tensor of its bytes."""
    return Tensor(np.frombuffer(message, np.uint8))


MESSAGES = [(cfg, n) for cfg in KECCAK for n in (0, 3, 135, 136, 137, 168)]
"""A message of 135 bytes ends in one byte that is two marks, one of 136 needs a block more."""


@pytest.mark.parametrize(
    ("cfg", "length"),
    MESSAGES if LONG else [("shake_128", 0), ("sha3_256", 135), ("sha3_256", 136)],
)
def test_bytes_of_every_length(cfg: str, length: int) -> None:
    message = bytes(i * 37 % 251 for i in range(length))
    with Context(DEV="PYTHON" if length == 0 else "LLVM"):
        have = text(message).keccak(cfg)
    assert bytes(have.numpy()) == KECCAK[cfg](message)


def test_rows_of_any_dtype_are_hashed_each() -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    have = Tensor(x).keccak().numpy()
    assert have.shape == (2, 3, 32)
    assert bytes(have[1, 2]) == hashlib.sha3_256(x[1, 2].tobytes()).digest()
    assert bytes(Tensor([1, 2**40]).keccak((136, 6)).numpy()) == (
        hashlib.sha3_256(np.array([1, 2**40]).tobytes()).digest()
    )


@pytest.mark.skipif(not LONG, reason="1 MiB is 1,200 rounds, a minute to schedule")
def test_a_hash_is_of_leaves_of_a_chunk() -> None:
    message = b"Hello World!"
    chunk = message.ljust(1 << 20, b"\0")
    leaves = [chunk[i : i + 4096] for i in range(0, len(chunk), 4096)]
    digests = b"".join(map(KECCAK["shake_128"], leaves))
    assert bytes(text(message).hash().numpy()) == KECCAK["shake_128"](digests)
