"""Transactions of random accesses, counted once more with sets, byte by byte."""

from __future__ import annotations

import numpy as np

from tests.support import count
from workbench.ir.nest.transactions import bank_passes, sectors, words_at_once


def test_random_accesses() -> None:
    dice = np.random.default_rng(4)
    for _ in range(count(3000)):
        lanes, nbytes = (int(dice.choice(n)) for n in ((16, 32, 64), (1, 2, 4, 8, 12, 16, 64)))
        shape = int(dice.integers(1, 4)), lanes
        first = dice.integers(0, dice.choice([20, 3000]), shape) * nbytes
        active = dice.random(shape) < dice.choice([0.2, 0.9, 1])
        for row, mask, moved, least in zip(
            first, active, *sectors(first, active, nbytes), strict=True
        ):
            starts = {*row[mask].tolist()}
            touched = {b // 32 for a in starts for b in range(a, a + nbytes)}
            assert (moved, least) == (len(touched), -(-len(starts) * nbytes // 32))
        counted = iter(bank_passes(*words_at_once(first, active, nbytes)))
        together = max(1, min(lanes, 32) // max(1, nbytes // 4))
        for row, mask in zip(first, active, strict=True):
            for at in range(0, lanes, together):
                part = row[at : at + together][mask[at : at + together]]
                words = {b // 4 for a in part.tolist() for b in range(a, a + nbytes)}
                banks = [sum(w % 32 == bank for w in words) for bank in range(32)]
                assert next(counted) == max(banks)
        assert next(counted, None) is None
