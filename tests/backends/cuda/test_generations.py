"""The figures of GPUs that are here: what a driver says, a machine's row, a generation's rates."""

from __future__ import annotations

import pytest

from workbench.backends.cuda.cuda_machines import ADA, AMPERE, MACHINES, hardware_here, tensor_cores
from workbench.base.target import Hardware

GIB = 1 << 30


@pytest.mark.parametrize(
    ("name", "machine"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"), ("NVIDIA H200", "H200"),
        ("NVIDIA A100-SXM4-40GB", "A100"), ("NVIDIA GeForce RTX 4090", "RTX 4090"),
    ],
)  # fmt: skip
def test_a_row_of_the_table_is_taken_by_name(name: str, machine: str) -> None:
    row = MACHINES[machine].hardware
    assert row is not None
    memory = int(row.memory_bytes * 0.98)
    here = hardware_here(name, row.arch, row.units, row.clock_hz, memory, 1.0)
    assert (here.name, here.about, here.memory_bytes) == (machine, row.about, memory)
    assert here.peaks == row.peaks and here.tensor_peaks == row.tensor_peaks
    assert here.bandwidths == row.bandwidths, "not what the clock of memory gives"


def test_another_clock_changes_all_rates_but_those_of_memory() -> None:
    row = MACHINES["A100"].hardware
    assert row is not None
    half = row.clock_hz / 2
    arguments = "NVIDIA A100-SXM4-40GB", row.arch, row.units, half, row.memory_bytes, 0
    here = hardware_here(*arguments)
    assert here.peak("float32") == row.peak("float32") / 2
    assert here.tensor_peak("tf32") == row.tensor_peak("tf32") / 2
    assert here.bandwidth("L2") == row.bandwidth("L2") / 2
    assert here.bandwidth("DRAM") == row.bandwidth("DRAM")


# name, arch, units, clock, bytes of memory, bytes per second; published float32, float16 of tensor
# cores with accumulators of float32: GA102 whitepaper (RTX 3090), T4 data sheet, H100 data sheet
@pytest.mark.parametrize(
    ("gpu", "float32", "tensor_float16"),
    [
        (("NVIDIA GeForce RTX 3090", "sm_86", 82, 1.695e9, 24 * GIB, 936e9), 35.6e12, 71e12),
        (("Tesla T4", "sm_75", 40, 1.59e9, 15 * GIB, 320e9), 8.1e12, 65e12),
        (("NVIDIA H100 PCIe", "sm_90", 114, 1.755e9, 80 * GIB, 2.04e12), 51.2e12, 756e12),
    ],
    ids=lambda v: v[0] if isinstance(v, tuple) else "",
)  # fmt: skip
def test_an_unknown_gpu_has_its_generations_rates(
    gpu: tuple[str, str, int, float, int, float], float32: float, tensor_float16: float
) -> None:
    here = hardware_here(*gpu)
    assert isinstance(here, Hardware) and here.about == gpu[0]
    assert here.peak("float32") == pytest.approx(float32, rel=0.01)
    assert here.tensor_peak("float16") == pytest.approx(tensor_float16, rel=0.03)
    assert here.bandwidth("DRAM") == gpu[-1]


def test_a_part_of_a_gpu_is_not_the_whole_one() -> None:
    name = "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
    here = hardware_here(name, "sm_90", 16, 1.98e9, 10 * GIB, 3.35e12 / 8)
    assert here.name == "H100 80GB HBM3 MIG 1g.10gb" and here.units == 16
    assert here.bandwidth("DRAM") == 3.35e12 / 8


def test_a_generation_that_is_in_no_table_is_the_last_one_before_it() -> None:
    new = hardware_here("NVIDIA B200", "sm_100", 148, 1.965e9, 180 * GIB, 8e12)
    assert new.unit_shared_bytes == 228 << 10
    assert tensor_cores("sm_100") == tensor_cores("sm_120a") == ADA
    assert tensor_cores("sm_86") == AMPERE and not tensor_cores("sm_70")
