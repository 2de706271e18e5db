"""Random tensors: threefry's published answers, tinygrad's draws, and the distributions."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from tests.support import LONG
from tests.tensor.agree import assert_agrees
from tests.tensor.creation.draws import CLOSE, EXACT, HALF, RECORD, SEEDS, Call, checksum
from workbench.base.context import Context
from workbench.base.dtypes import dtypes
from workbench.base.errors import DTypeError, ShapeError
from workbench.ir.meaning.threefry import threefry_of_integers, threefry_word
from workbench.ir.node.ops import Ops
from workbench.tensor import Tensor
from workbench.tensor.creation.random import _stream, counting_words, words_at

pytestmark = pytest.mark.usefixtures("device")

# Counter, key and answer: the known-answer vectors of the Random123 library, 20 rounds.
KNOWN = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]
N = 20_000


def test_known_answers() -> None:
    counters, keys, answers = (np.array(rows, np.uint32) for rows in zip(*KNOWN, strict=True))
    (a, b), (c, d) = ((Tensor(column).uop for column in x.T) for x in (counters, keys))
    for second, want in enumerate(answers.T):
        word = a.alu(Ops.THREEFRY, b, c, d, a.like(second))
        assert_agrees(Tensor(word), want)
        arrays = (counters.T, keys.T, np.uint32([[second]] * len(KNOWN)).T)
        np.testing.assert_array_equal(threefry_word(*np.concatenate(arrays)), want)
    for counter, key, answer in KNOWN:
        assert threefry_of_integers(counter, key) == answer


def test_draws_in_a_row_are_those_of_tinygrad(device: str) -> None:
    """All are drawn. Outside of the long profile a few are computed, others for each seed."""
    record, every = json.loads(RECORD.read_text()), 1 if LONG else 20
    for place in range(0, len(SEEDS), 1 if LONG or device == "LLVM" else 5):
        row = record[str(SEEDS[place])]
        for i, draw in _some(EXACT, SEEDS[place], slice(place % every, None, every)):
            assert checksum(draw.numpy()) == row["exact"][i], EXACT[i]
        calls = CLOSE + HALF
        for i, draw in _some(calls, SEEDS[place], slice(place % every, None, every)):
            step = 2.0**-draw.dtype.fraction_bits
            np.testing.assert_allclose(
                draw.float().numpy(),
                row["close"][i],
                rtol=step if draw.dtype.is_low_precision else 0,
                atol=1e-6,
                err_msg=str(calls[i]),
            )


def _some(calls: list[Call], seed: int, part: slice) -> list[tuple[int, Tensor]]:
    """Return a part of the draws in a row after `seed`, with their numbers."""
    Tensor.manual_seed(seed)
    draws = [getattr(Tensor, name)(*shape, **args) for name, shape, args in calls]
    return list(enumerate(draws))[part]


def test_the_first_device_has_the_same_draws_whatever_its_name(device: str) -> None:
    other = "PYTHON" if device == "LLVM" else "LLVM"
    Tensor.manual_seed(7)
    devices = [device, other, device, other]
    draws = [Tensor.rand(n, device=d) for n, d in zip((3, 3, 3, 2), devices, strict=True)]
    assert [draw.device for draw in draws] == devices
    # recorded in tinygrad 0.14, of PYTHON and PYTHON:1
    want = [
        [0.43449473, 0.04727066, 0.00908458], [0.93748546, 0.06944227, 0.90079296],
        [0.94945586, 0.38704228, 0.96563745], [0.16311932, 0.57275784],
    ]  # fmt: skip
    for draw, numbers in zip(draws, want, strict=True):
        np.testing.assert_allclose(draw.numpy(), numbers, atol=1e-8)


def test_where_the_number_of_a_word_has_more_than_32_bits(device: str) -> None:
    Tensor.manual_seed(1337)
    last = Tensor.rand(2**32 + 9, contiguous=False)[-4:]
    words = np.array([2868191503, 221711548, 1111311281, 2756218656])
    assert_agrees(last, ((words >> 9) * 2.0**-23).astype(np.float32))
    _stream.restart(1337)
    _stream.take(device, 2**32 - 3)
    for count, first in ((10, 0.66776276), (3, 0.08399439)):
        assert Tensor.rand(count)[0].item() == np.float32(first)


def test_read_twice_it_is_the_same_and_the_next_one_differs() -> None:
    for stored in (True, False):
        a, b = (Tensor.rand(100, contiguous=stored) for _ in range(2))
        first = a.numpy()
        assert_agrees(a * 2, first * 2)
        assert (b.numpy() != first).any()


def test_one_kernel_serves_all_calls() -> None:
    a, b = Tensor.rand(9, 5), Tensor.rand(9, 5)
    kernels = [[item.kernel for item in t.schedule() if item.kernel is not None] for t in (a, b)]
    assert len(kernels[0]) == 1
    assert kernels[0] == kernels[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform(dtype: str) -> None:
    Tensor.manual_seed(1)
    x = np.sort(Tensor.uniform(N, low=-3.0, high=5.0, dtype=dtype).numpy())
    assert x.dtype == dtype
    assert -3 <= x[0] < -2.99
    assert 4.99 < x[-1] < 5
    assert _distance(x, (x + 3) / 8) < 2 / math.sqrt(N)


def test_normal() -> None:
    Tensor.manual_seed(1)
    x = np.sort(Tensor.normal(N, mean=4.0, std=0.5).numpy())
    assert np.isfinite(x).all()
    assert _distance(x, [_normal_below((v - 4) / 0.5) for v in x]) < 2 / math.sqrt(N)
    # neighbours are independent
    z = Tensor.randn(N).numpy()
    assert abs((z[1:] * z[:-1]).mean()) < 4 / math.sqrt(N)
    assert Tensor.normal(3, mean=2, std=0).tolist() == [2] * 3


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


# fmt: off
RANGES = [
    (0, 1025, "int32"), (0, 1 << 16, "uint16"), (-(1 << 15), 1 << 15, "int16"),
    (0, 2**24 + 5, "int32"), (-(2**31), 2**31, "int32"), (0, 2**32, "uint32"),
    (0, 2**33 + 1, "int64"), (-5, 2**40, "int64"), (-(2**63), 2**63, "int64"),
    (0, 3 << 62, "uint64"), (0, 2**64, "uint64"),
]
# fmt: on


@pytest.mark.parametrize(("low", "high", "dtype"), RANGES)
def test_integers_of_wide_ranges(low: int, high: int, dtype: str) -> None:
    """All parts of the range come equally often, and so do all remainders; few numbers come twice.
    The value is exact: words of the stream after the binary point, times the width."""
    Tensor.manual_seed(5)
    x = Tensor.randint(N, low=low, high=high, dtype=dtype).numpy()
    assert x.dtype == dtype
    above, width = [int(v) - low for v in x], high - low
    assert 0 <= min(above) and max(above) < width
    for parts, numbers in (
        (64, [64 * v // width for v in above]),
        (8, [v % 8 for v in above]),
        (3, [v % 3 for v in above]),
    ):
        counts = np.bincount(numbers, minlength=parts)
        spread = ((counts - N / parts) ** 2 / (N / parts)).sum()
        assert spread < parts + 5 * math.sqrt(2 * parts)
    different = width * -math.expm1(-N / width)
    assert abs(len(set(above)) - different) < 6 * math.sqrt(N - different + 1) + 1


@pytest.mark.parametrize("width", [1025, 10**6, 2**32 - 1, 2**32 + 1, 3 << 62])
def test_a_wide_integer_is_its_words_times_the_width(width: int) -> None:
    count, each = 50, 2 if width <= 2**32 else 3
    Tensor.manual_seed(9)
    words = Tensor.randint(count * each, high=2**32, dtype="uint32")
    assert words.numpy().any()
    Tensor.manual_seed(9)
    keys = Tensor(np.array(_stream.take(words.device, count * each), np.uint32).ravel())
    place = counting_words(count * each, count * each)
    raw = Tensor(words_at(keys.uop, place, count * each)).numpy().reshape(count, each)
    Tensor.manual_seed(9)
    drawn = Tensor.randint(count, high=width, dtype="uint64").tolist()
    for number, row in zip(drawn, raw.tolist(), strict=True):
        fraction = sum(word << 32 * i for i, word in enumerate(row))
        assert number == fraction * width >> 32 * each


def test_float64_has_all_its_bits() -> None:
    Tensor.manual_seed(1)
    x = Tensor.uniform(N, low=0.0, high=1.0, dtype="float64").numpy()
    assert (x * 2.0**23 % 1 != 0).mean() > 0.99


def test_like() -> None:
    t = Tensor(np.ones((3, 4)))
    for sample in (t.rand_like(), t.randn_like(), t.rand_like(contiguous=False)):
        assert (sample.shape, sample.dtype, sample.device) == (t.shape, t.dtype, t.device)
    assert t.rand_like(dtype="float32").dtype is dtypes.float32
    assert t.randn_like(device="PYTHON").device == "PYTHON"
    assert Tensor.rand((2, 3)).shape == Tensor.rand(2, 3).shape == (2, 3)
    for name in ("rand", "scaled_uniform", "kaiming_uniform", "kaiming_normal"):
        assert getattr(Tensor, name)().shape == ()
        assert getattr(Tensor, name)(3, 0).tolist() == [[]] * 3


def test_dropout() -> None:
    values = [0.3, 1.7, -2.9, 5.1, 0.77, 3.3]
    t = Tensor(values)
    assert t.dropout() is t
    with Context(TRAINING=1):
        # recorded in tinygrad 0.14
        for p, kept in ((0.5, "000001"), (0.1, "001101"), (0.3, "000101")):
            Tensor.manual_seed(7)
            want = np.array(values, np.float32) * np.array([*map(int, kept)])
            assert_agrees(t.dropout(p), (want / (1 - p)).astype(np.float32), 1)
        assert t.dropout(0) is t
        assert t.dropout(1).tolist() == [0] * 6
        assert t.half().dropout(0.3).dtype is dtypes.float16
        dropped = Tensor.ones(N).dropout(0.3).numpy()
        assert abs((dropped == 0).mean() - 0.3) < 0.02
        assert abs(dropped.mean() - 1) < 0.03


def test_the_dtype_of_dropout_does_not_depend_on_the_probability() -> None:
    """PyTorch refuses the same."""
    for dtype in (dtypes.int32, dtypes.uint8, dtypes.bool):
        t = Tensor.ones(4, dtype=dtype)
        assert t.dropout(0.5).dtype is dtype
        with Context(TRAINING=1):
            assert t.dropout(0).dtype is t.dropout(1.0).dtype is dtype
            with pytest.raises(DTypeError, match="the quotients are fractions"):
                t.dropout(0.5)


def test_refusals() -> None:
    for name in ("rand", "randn", "uniform", "normal", "glorot_uniform"):
        with pytest.raises(DTypeError, match="int32 is not a float type"):
            getattr(Tensor, name)(3, dtype="int32")
    for low, high in ((2, 2), (3, 2), (-math.inf, 0), (math.nan, 1), (-3e38, 3e38)):
        with pytest.raises(ShapeError, match="low must be below high"):
            Tensor.uniform(3, low=low, high=high)
    for std in (-1, math.nan):
        with pytest.raises(ShapeError, match="a deviation is 0 or more"):
            Tensor.normal(3, std=std)
    for p in (-0.1, 1.5, math.nan):
        with pytest.raises(ShapeError, match="a number from 0 to 1"):
            Tensor([1.0]).dropout(p)
    with pytest.raises(ShapeError, match="counts its outputs"):
        Tensor.glorot_uniform()
    with pytest.raises(ShapeError, match="there is none"):
        Tensor.randint(3, low=5, high=5)
    with pytest.raises(DTypeError, match="does not hold them all"):
        Tensor.randint(3, high=300, dtype="int8")
    with pytest.raises(DTypeError, match="does not hold them all"):
        Tensor.randint(3, dtype="float32")
    with pytest.raises(ShapeError, match="is not a size"):
        Tensor.rand(-1)
    with pytest.raises(DTypeError):
        Tensor.manual_seed(2**64)


def test_a_refused_draw_takes_no_words() -> None:
    before = _stream.position
    for arguments in ({"dtype": "int32"}, {"device": "NOWHERE"}):
        with pytest.raises(Exception, match="float type|NOWHERE"):
            Tensor.rand(3, **arguments)
    assert _stream.position == before
