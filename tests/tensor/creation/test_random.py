"""Random tensors: threefry's published answers, and the distributions that come of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.tensor.agree import assert_agrees
from workbench.base.context import Context
from workbench.base.dtypes import dtypes
from workbench.base.errors import DTypeError, ShapeError
from workbench.tensor import Tensor
from workbench.tensor.creation.random import _stream
from workbench.tensor.creation.threefry import threefry2x32

pytestmark = pytest.mark.usefixtures("device")

# Counter, key and answer: the known-answer vectors of the Random123 library, 20 rounds.
KNOWN = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]
N = 20_000


def test_known_answers() -> None:
    counters, keys, answers = (
        np.array(rows, np.uint32) for rows in zip(*KNOWN, strict=True)
    )
    words = [Tensor(column).uop for column in (*counters.T, *keys.T)]
    for word, want in zip(threefry2x32(*words), answers.T, strict=True):
        assert_agrees(Tensor(word), want)


def test_known_answers_of_constants() -> None:
    for counter, key, answer in KNOWN:
        words = [Tensor([n], dtype="uint32").uop for n in (*counter, *key)]
        actual = [Tensor(word).item() for word in threefry2x32(*words)]
        assert actual == list(answer)


def _python_threefry(counter: int, seed: int) -> tuple[int, int]:
    """Return threefry2x32-20 of 64-bit numbers, in Python's integers."""
    full = 0xFFFFFFFF
    x, y = counter & full, counter >> 32
    keys = [seed & full, seed >> 32]
    keys.append(keys[0] ^ keys[1] ^ 0x1BD11BDA)
    x, y = (x + keys[0]) & full, (y + keys[1]) & full
    for step in range(20):
        by = (13, 15, 26, 6, 17, 29, 16, 24)[step % 8]
        x = (x + y) & full
        y = ((y << by | y >> (32 - by)) & full) ^ x
        if step % 4 == 3:
            turn = step // 4 + 1
            x = (x + keys[turn % 3]) & full
            y = (y + keys[(turn + 1) % 3] + turn) & full
    return x, y


@pytest.mark.parametrize("seed", [0, 1, 2**32 + 5, 2**64 - 1])
@pytest.mark.parametrize("first", [0, 1000, 2**32 - 3, 2**40])
def test_rand_is_threefry_of_the_position(seed: int, first: int) -> None:
    Tensor.manual_seed(seed)
    _stream.take(first)
    words = [_python_threefry(first + i, seed) for i in range(7)]
    want = np.array([x >> 8 for x, _ in words]) * 2.0**-24
    assert_agrees(Tensor.rand(7), want.astype(np.float32))
    _stream.restart(seed)
    _stream.take(first)
    want = np.array([(x << 21 | y >> 11) * 2.0**-53 for x, y in words])
    assert_agrees(Tensor.rand(7, dtype="float64"), want)


def test_the_same_on_every_device_and_after_the_same_seed() -> None:
    draws = {}
    for name in ("LLVM", "PYTHON"):
        with Context(DEV=name):
            Tensor.manual_seed(42)
            draws[name] = [
                Tensor.rand(5, 7), Tensor.randint(33, high=100), Tensor.rand(3, dtype="float64"),
                Tensor.uniform(4, high=8.0),
            ]  # fmt: skip
            assert all(t.device == name for t in draws[name])
    for a, b in zip(draws["LLVM"], draws["PYTHON"], strict=True):
        assert_agrees(a, b.numpy())
    for name in draws:
        Tensor.manual_seed(42)
        normal = Tensor.randn(1000, device=name).numpy()
        draws[name] = normal
    np.testing.assert_allclose(draws["LLVM"], draws["PYTHON"], rtol=1e-5, atol=1e-6)


def test_draws_do_not_depend_on_how_they_are_cut() -> None:
    Tensor.manual_seed(3)
    whole = Tensor.rand(5, 4)
    Tensor.manual_seed(3)
    parts = [Tensor.rand(7), Tensor.rand(0, 3), Tensor.rand(()), Tensor.rand(2, 6)]
    flat = np.concatenate([p.numpy().reshape(-1) for p in parts])
    assert_agrees(whole.reshape(-1), flat)


def test_read_twice_it_is_the_same_and_the_next_one_differs() -> None:
    a, b = Tensor.rand(100), Tensor.rand(100)
    first = a.numpy()
    assert_agrees(a * 2, first * 2)
    assert (b.numpy() != first).any()


def test_one_kernel_serves_all_calls() -> None:
    a, b = Tensor.rand(9, 5), Tensor.rand(9, 5)
    kernels = [
        [item.kernel for item in t.schedule() if item.kernel is not None]
        for t in (a, b)
    ]
    assert len(kernels[0]) == 1
    assert kernels[0] == kernels[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform(dtype: str) -> None:
    Tensor.manual_seed(1)
    x = np.sort(Tensor.rand(N, dtype=dtype).numpy())
    assert x.dtype == dtype
    assert 0 <= x[0] < 0.01
    assert 0.99 < x[-1] < 1
    assert _distance(x, x) < 2 / math.sqrt(N)
    y = np.sort(Tensor.uniform(N, low=-3.0, high=5.0, dtype=dtype).numpy())
    assert -3 <= y[0] < y[-1] < 5
    assert _distance(y, (y + 3) / 8) < 2 / math.sqrt(N)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal(dtype: str) -> None:
    Tensor.manual_seed(1)
    x = np.sort(Tensor.randn(N, dtype=dtype).numpy())
    assert x.dtype == dtype
    assert np.isfinite(x).all()
    assert _distance(x, [_normal_below(v) for v in x]) < 2 / math.sqrt(N)
    y = np.sort(Tensor.normal(N, mean=4.0, std=0.5, dtype=dtype).numpy())
    assert _distance(y, [_normal_below((v - 4) / 0.5) for v in y]) < 2 / math.sqrt(N)
    # neighbours are independent
    z = Tensor.randn(N, dtype=dtype).numpy()
    assert abs((z[1:] * z[:-1]).mean()) < 4 / math.sqrt(N)


def _distance(drawn: Any, below: Any) -> float:
    """Return the largest gap between the share drawn below each value and `below` (sorted)."""
    share = np.arange(1, len(drawn) + 1) / len(drawn)
    return float(np.abs(share - np.asarray(below, np.float64)).max())


def _normal_below(x: float) -> float:
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def test_integers() -> None:
    Tensor.manual_seed(1)
    x = Tensor.randint(N, low=-3, high=4).numpy()
    assert x.dtype == np.int32
    shares = np.bincount(x + 3, minlength=7) / N
    assert shares.shape == (7,)
    assert np.abs(shares - 1 / 7).max() < 0.02
    full = Tensor.randint(N, low=-(2**63), high=2**63, dtype="int64").numpy()
    assert abs((full > 0).mean() - 0.5) < 0.02
    assert full.min() < -(2**62)
    assert full.max() > 2**62
    byte = Tensor.randint(N, low=0, high=256, dtype=dtypes.uint8).numpy()
    assert set(byte.tolist()) == set(range(256))
    assert Tensor.randint(5, low=7, high=8).tolist() == [7] * 5


def test_like() -> None:
    t = Tensor(np.ones((3, 4)))
    for sample in (t.rand_like(), t.randn_like()):
        assert (sample.shape, sample.dtype, sample.device) == (
            t.shape,
            t.dtype,
            t.device,
        )
    assert t.rand_like(dtype="float32").dtype is dtypes.float32
    assert Tensor.rand((2, 3)).shape == Tensor.rand(2, 3).shape == (2, 3)
    assert Tensor.rand().shape == ()


def test_refusals() -> None:
    for name in ("rand", "randn", "uniform", "normal"):
        with pytest.raises(DTypeError, match="int32 is not a float type"):
            getattr(Tensor, name)(3, dtype="int32")
    with pytest.raises(ShapeError, match="there is none"):
        Tensor.randint(3, low=5, high=5)
    with pytest.raises(DTypeError, match="does not hold them all"):
        Tensor.randint(3, high=300, dtype="int8")
    with pytest.raises(DTypeError, match="does not hold them all"):
        Tensor.randint(3, dtype="float32")
    with pytest.raises(ShapeError, match="is not a size"):
        Tensor.rand(-1)
