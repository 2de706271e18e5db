"""Races in random sequences of accesses, against all pairs of accesses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tests.support import count
from workbench.emulator.cells import CellAccess, Cells, Conflict

GROUPS, ITEMS, CELLS, STEPS = 3, 3, 3, 12


class Access(NamedTuple):
    cell: int
    item: int
    epoch: int
    is_write: bool
    position: int

    @property
    def group(self) -> int:
        return self.item // ITEMS


def test_the_first_race_is_seen_and_no_other() -> None:
    outcomes = [0, 0]
    for seed in range(count(20_000)):
        rng = np.random.default_rng(seed)
        cells = Cells(CELLS, True, ITEMS)
        earlier: list[Access] = []
        epochs = np.zeros(GROUPS, int)
        for position in range(STEPS):
            epochs += rng.random(GROUPS) < 0.4  # each group has its own barriers
            step = _step(rng, epochs, position)
            conflict = _noted(cells, step)
            races = _races(earlier, step)
            assert (conflict is not None) == bool(races), (seed, position, races)
            if conflict is not None:
                _is_one_of(conflict, races)
                break
            earlier += step
        outcomes[conflict is not None] += 1
    assert min(outcomes) > sum(outcomes) // 50, outcomes


def _step(rng: np.random.Generator, epochs: np.ndarray, position: int) -> list[Access]:
    """Return what some work-items do at once: all read, or all write."""
    is_write = bool(rng.random() < 0.3)
    share = 0.15 if is_write else 0.4
    items = [i for i in range(GROUPS * ITEMS) if rng.random() < share]
    # a cell for each group, or any
    apart = rng.random() < 0.7
    return [
        Access(
            (item // ITEMS if apart else int(rng.integers(CELLS))),
            item,
            int(epochs[item // ITEMS]),
            is_write,
            position,
        )
        for item in items
    ]


def _noted(cells: Cells, step: list[Access]) -> Conflict | None:
    if not step:
        return None
    access = CellAccess(
        np.array([a.cell for a in step]),
        np.array([a.item for a in step]),
        np.array([a.epoch for a in step]),
        step[0].position,
    )
    return cells.write(access) if step[0].is_write else cells.read(access)[0]


def _races(earlier: list[Access], step: list[Access]) -> list[tuple[Access, Access]]:
    """Return all pairs of accesses that race."""
    pairs = [(a, b) for b in step for a in earlier]
    pairs += [(a, b) for i, b in enumerate(step) for a in step[:i]]
    return [
        (a, b)
        for a, b in pairs
        if a.cell == b.cell
        and a.item != b.item
        and (a.is_write or b.is_write)
        and (a.group != b.group or a.epoch == b.epoch)
    ]


def _is_one_of(conflict: Conflict, races: list[tuple[Access, Access]]) -> None:
    named = conflict.cell, *sorted(zip(conflict.items, conflict.positions, strict=True))
    listed = [(a.cell, *sorted([(a.item, a.position), (b.item, b.position)])) for a, b in races]
    assert named in listed
