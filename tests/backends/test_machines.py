"""The table of machines: their figures fit each other, and each has its sources."""

from __future__ import annotations

import re

import pytest

from workbench.backends.device import Device
from workbench.base.target import Hardware

NAMES = [n for n in Device.machine_names() if Device[n].target.hardware is not None]
WITH_GROUPS = [name for name in NAMES if Device[name].target.has_groups]
# of what a lane does of each dtype per cycle, as a share of float32
RATES = {
    "float64": (1 / 64, 1 / 2), "float16": (1, 2, 4), "bfloat16": (1 / 2, 1, 2, 4),
    "int32": (1 / 2, 1),
}  # fmt: skip


def hardware(name: str) -> Hardware:
    """Return the figures of a machine."""
    found = Device[name].target.hardware
    assert found is not None
    return found


def test_there_are_machines_of_all_kinds() -> None:
    assert len(NAMES) >= 10
    assert len(WITH_GROUPS) >= 6 and len(WITH_GROUPS) < len(NAMES)
    assert len({name.partition(":")[0] for name in WITH_GROUPS}) >= 4


@pytest.mark.parametrize("name", NAMES)
def test_the_peak_is_that_of_the_lanes_at_the_clock(name: str) -> None:
    machine = hardware(name)
    lanes = machine.units * machine.lanes
    peak = machine.peak("float32")
    assert peak == pytest.approx(lanes * 2 * machine.clock_hz, rel=0.02)
    for dtype, value in machine.peaks:
        shares = RATES.get(dtype, (1,))
        assert any(value == pytest.approx(peak * s, rel=0.02) for s in shares), dtype


@pytest.mark.parametrize("name", NAMES)
def test_tensor_cores_are_faster_by_a_power_of_two(name: str) -> None:
    machine = hardware(name)
    for dtype, value in machine.tensor_peaks:
        per_cycle = value / machine.units / machine.clock_hz
        # a clock that is a little lower than the greatest one is common there
        powers = [per_cycle / 2**n for n in range(6, 14)]
        assert any(0.9 <= p <= 1.01 for p in powers), (dtype, per_cycle)


@pytest.mark.parametrize("name", NAMES)
def test_memory_is_slower_the_further_it_is_away(name: str) -> None:
    machine, target = hardware(name), Device[name].target
    sizes = [size for _, size in target.caches]
    assert sizes == sorted(sizes)
    assert machine.memory_bytes > sizes[-1]
    order = ["shared", "L1", "L2", "L3", "DRAM"]
    speeds = [machine.bandwidth(level) for level in order if machine.bandwidth(level)]
    assert speeds == sorted(speeds, reverse=True) and machine.bandwidth("DRAM")
    floats = machine.peak("float32") / (machine.bandwidth("DRAM") / 4)
    assert 5 < floats < 400, "operations for each float from memory"


@pytest.mark.parametrize("name", WITH_GROUPS)
def test_the_limits_of_a_unit_hold_a_group(name: str) -> None:
    machine, target = hardware(name), Device[name].target
    assert target.shared_bytes + machine.group_shared_bytes <= machine.unit_shared_bytes
    assert target.cores == machine.units
    assert target.warp_lanes in (16, 32, 64)
    if machine.unit_items:
        assert machine.unit_items >= target.group_items
        assert machine.unit_items % (machine.partitions * target.warp_lanes) == 0
    if machine.unit_registers:
        part = machine.unit_registers // machine.partitions
        assert part % machine.register_block == 0
        assert machine.item_registers * target.warp_lanes <= part


@pytest.mark.parametrize("name", NAMES)
def test_each_has_documents_with_their_years(name: str) -> None:
    machine = hardware(name)
    assert machine.sources and machine.about and machine.arch
    for source in machine.sources:
        assert re.search(r"\b20[0-2]\d\b", source) and len(source) > 15
    assert name.endswith(f":{machine.name}")
