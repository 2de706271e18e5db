"""Occupancy, against NVIDIA's calculator."""

from __future__ import annotations

import pytest

from tests.support import by_rows
from workbench.backends.device import Device
from workbench.base.errors import DeviceError
from workbench.base.target import Target
from workbench.cost.gpu.gpu_cost import GroupUse, occupancy

TARGETS = {80: "CUDA:A100", 89: "CUDA:RTX 4090", 90: "CUDA:H100"}
LIMITS = ("work-items", "registers", "shared memory", "work-groups")
# What cuda_occupancy.h (NVIDIA, CUDA Toolkit 13.0) gives for twelve groups on three architectures:
# of (work-items, registers, bytes of shared memory) the groups of a multiprocessor, and those that
# each of LIMITS allows.
# fmt: off
CALCULATED = {
    (256, 32, 0): {80: (8, 8, 8, 164, 32), 89: (6, 6, 8, 100, 24), 90: (8, 8, 8, 228, 32)},
    (256, 40, 8192): {80: (6, 8, 6, 18, 32), 89: (6, 6, 6, 11, 24), 90: (6, 8, 6, 25, 32)},
    (1024, 64, 0): {80: (1, 2, 1, 164, 32), 89: (1, 1, 1, 100, 24), 90: (1, 2, 1, 228, 32)},
    (128, 255, 0): {80: (2, 16, 2, 164, 32), 89: (2, 12, 2, 100, 24), 90: (2, 16, 2, 228, 32)},
    (96, 37, 3000): {80: (16, 21, 16, 41, 32), 89: (16, 16, 16, 25, 24), 90: (16, 21, 16, 57, 32)},
    (32, 24, 0): {80: (32, 64, 84, 164, 32), 89: (24, 48, 84, 100, 24), 90: (32, 64, 84, 228, 32)},
    (512, 128, 49152): {80: (1, 4, 1, 3, 32), 89: (1, 3, 1, 2, 24), 90: (1, 4, 1, 4, 32)},
    (256, 72, 20000): {80: (3, 8, 3, 7, 32), 89: (3, 6, 3, 4, 24), 90: (3, 8, 3, 11, 32)},
    (64, 64, 16384): {80: (9, 32, 16, 9, 32), 89: (5, 24, 16, 5, 24), 90: (13, 32, 16, 13, 32)},
    (1024, 33, 0): {80: (1, 2, 1, 164, 32), 89: (1, 1, 1, 100, 24), 90: (1, 2, 1, 228, 32)},
    (192, 80, 0): {80: (4, 10, 4, 164, 32), 89: (4, 8, 4, 100, 24), 90: (4, 10, 4, 228, 32)},
    (320, 48, 12288): {80: (4, 6, 4, 12, 32), 89: (4, 4, 4, 7, 24), 90: (4, 6, 4, 17, 32)},
}
# fmt: on


@by_rows("group", CALCULATED)
@by_rows("architecture", TARGETS)
def test_what_nvidias_calculator_says(group: tuple[int, int, int], architecture: int) -> None:
    groups, *limits = CALCULATED[group][architecture]
    target = Device[TARGETS[architecture]].target
    result = occupancy(target, GroupUse(*group))
    assert result.groups == groups
    assert [result.limits[name] for name in LIMITS] == limits
    assert result.limits[result.limit] == groups and result.limit in str(result)
    assert result.warps == groups * -(-group[0] // 32)


def test_text() -> None:
    result = occupancy(Device["CUDA:A100"].target, GroupUse(256, 72, 20000))
    assert str(result) == (
        "38%: a unit holds 24 of 64 warps, 3 work-groups; limited by registers, 72 of each"
        " work-item"
    )


def test_waves_of_another_maker() -> None:
    """CDNA 3: 512 registers of 64 lanes in each of four parts, in blocks of 8; 8 waves a part."""
    target = Device["HIP:MI300X"].target
    waves = {
        registers: occupancy(target, GroupUse(64, registers, 0)).limits["registers"]
        for registers in (64, 65, 128, 129, 256, 512)
    }
    assert waves == {64: 32, 65: 28, 128: 16, 129: 12, 256: 8, 512: 4}
    assert occupancy(target, GroupUse(256, 64, 0)).share == 1.0
    shared = occupancy(target, GroupUse(256, 32, 20 << 10))
    assert (shared.groups, shared.limit) == (3, "shared memory")


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (GroupUse(1024, 128, 0), "1,024 work-items of 128 registers.*65,536"),
        (GroupUse(32, 256, 0), "256 registers"),
        (GroupUse(256, 32, 1 << 20), "1,048,576 bytes of shared memory.*167,936"),
        (GroupUse(4096, 16, 0), "4,096 work-items, and a unit holds 2,048"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_numbers(use: GroupUse, says: str) -> None:
    with pytest.raises(DeviceError, match=f"(?s)too large for CUDA:A100.*{says}"):
        occupancy(Device["CUDA:A100"].target, use)


def test_a_machine_without_figures_has_none() -> None:
    with pytest.raises(DeviceError, match="its figures are not known"):
        occupancy(Target("GPU", group_items=256), GroupUse(32, 32, 0))
    with pytest.raises(DeviceError, match="no work-groups"):
        occupancy(Device["LLVM:Graviton4"].target, GroupUse(32, 32, 0))
