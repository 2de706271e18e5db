"""Transactions and conflicts, against counts that follow from the addresses: a sector is 32 bytes,
a bank 4 bytes wide, and there are 32 (NVIDIA, CUDA C++ Best Practices Guide, 10.2)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support import by_rows
from workbench.emulator.accesses import AccessCount, count_global, count_shared

LANES = np.arange(32)
ALL = np.ones((1, 32), bool)


def counted(
    first: np.ndarray, nbytes: int, space: str = "global", active: np.ndarray = ALL
) -> AccessCount:
    count = AccessCount(space, False)
    add = count_global if space == "global" else count_shared
    add(count, first[None, :], active, nbytes)
    return count


@pytest.mark.parametrize(
    "stride, offset, sectors",
    [(1, 0, 4), (1, 1, 5), (1, 8, 4), (2, 0, 8), (3, 0, 12), (8, 0, 32), (64, 0, 32), (0, 5, 1)],
)
def test_sectors_of_a_warp_that_reads_floats(stride: int, offset: int, sectors: int) -> None:
    count = counted((LANES * stride + offset) * 4, 4)
    assert (count.requests, count.transactions) == (1, sectors)
    assert (count.bytes_wanted, count.bytes_moved) == (128, sectors * 32)


def test_other_widths() -> None:
    assert counted(LANES, 1).transactions == 1, "32 bytes"
    assert counted(LANES * 2, 2).transactions == 2
    assert counted(LANES * 8, 8).transactions == 8
    assert counted(LANES * 16, 16).transactions == 16, "float4"
    assert counted(LANES[::-1] * 4, 4).transactions == 4, "the order does not matter"


def test_work_items_that_take_no_part() -> None:
    some = (LANES < 8)[None, :]
    count = counted(LANES * 4, 4, active=some)
    assert (count.transactions, count.bytes_wanted) == (1, 32)
    nobody = counted(LANES * 4, 4, active=~ALL)
    assert (nobody.requests, nobody.transactions, nobody.bytes_moved) == (0, 0, 0)


@by_rows("stride", [*range(1, 34), 64])
def test_conflicts_of_a_stride(stride: int) -> None:
    """Words `stride` apart meet in a bank as often as the greatest common divisor with 32."""
    count = counted(LANES * stride * 4, 4, "shared")
    ways = math.gcd(stride, 32)
    assert (count.transactions, count.conflicts) == (ways, ways - 1)


def test_one_word_is_read_by_all_at_once() -> None:
    assert counted(np.zeros(32, int), 4, "shared").conflicts == 0
    assert counted(LANES // 4, 1, "shared").conflicts == 0, "bytes of one word"
    halves = np.where(LANES < 16, 0, 32 * 4)
    assert counted(halves, 4, "shared").conflicts == 1, "two words of one bank"


def test_a_wide_access_is_done_in_parts() -> None:
    wide = counted(LANES * 16, 16, "shared")
    assert (wide.transactions, wide.conflicts) == (4, 0), "a quarter of the warp each"
    assert counted(LANES * 8, 8, "shared").transactions == 2
    assert counted(LANES * 32, 16, "shared").conflicts == 4, "every second float4"
