"""Multiply-adds by width: the figures that makers publish, and common ones for others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workbench.backends.llvm.llvm_machines import MACHINES
from workbench.backends.native.machine import MULTIPLY_ADDS, multiply_add
from workbench.base.target import Hardware, Target

# (LLVM's name, bytes of a register, in flight: scalars, registers of 32 bytes, whole ones), by the
# instruction tables that the module names: cycles times starts.
ROWS = [
    ("znver2", 32, 10, 10, 10),
    ("znver4", 64, 8, 8, 4),
    ("znver5", 64, 8, 8, 8),
    ("haswell", 32, 10, 10, 10),
    ("icelake-server", 64, 8, 8, 8),
    ("tigerlake", 64, 8, 8, 4),
    ("gracemont", 32, 12, 6, 6),
    ("neoverse-v1", 32, 16, 8, 8),
    ("a processor that nobody knows", 32, 8, 8, 8),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_how_many_are_under_way(row: tuple[str, int, int, int, int]) -> None:
    name, vector_bytes, *counts = row
    fma = multiply_add(name)
    target = Target("LLVM", vector_bytes=vector_bytes, fma_cycles=fma.cycles, fma_starts=fma.starts)
    widths = (4, 32, vector_bytes)
    assert [target.fmas_in_flight_of(n) for n in widths] == counts
    assert target.fmas_in_flight == counts[-1]


def test_a_table_is_in_order_and_wider_ones_are_never_quicker() -> None:
    for name, fma in MULTIPLY_ADDS.items():
        widths, starts = zip(*fma.starts, strict=True)
        assert list(widths) == sorted(widths), name
        assert list(starts) == sorted(starts, reverse=True), name


@pytest.mark.parametrize("name", MACHINES)
def test_published_lanes_are_those_of_the_table(name: str) -> None:
    """Two sources of one figure: the lanes that begin in a cycle, and the starts by width."""
    target = MACHINES[name]
    assert isinstance(target.hardware, Hardware)
    lanes = target.starts(target.vector_bytes) * target.vector_bytes / 4
    assert lanes == target.hardware.lanes
    without = replace(target, fma_starts=())
    assert without.fmas_in_flight == target.fmas_in_flight


def test_sets_of_a_cache() -> None:
    target = Target("LLVM", caches=(("L1", 48 << 10), ("L2", 1 << 20)), ways=(("L1", 12),))
    assert (target.cache_sets("L1"), target.cache_sets("L2")) == (64, 2048)
    assert target.cache_ways("L2") == 8, "of a common processor"
