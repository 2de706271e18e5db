"""The NVIDIA GPUs, as Targets.

Sources: the architecture whitepapers and data sheets named with each; what a generation shares is
in `generations.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.backends.cuda.generations import hardware, target
from workbench.base.target import Hardware, Target

_HOPPER_PAPER = "NVIDIA H100 Tensor Core GPU Architecture, whitepaper 2022, tables 1 to 4"
_HOPPER_L2 = "Chips and Cheese, Nvidia's H100: Funny L2, and Tons of Bandwidth, 2023"
_HOPPER_L2_SPEED = 5.7e12
"""Bytes per second of reads from the second cache as measured there: NVIDIA publishes none."""
_H100_CLOCK_HZ = 1.98e9
H100 = hardware(
    "H100",
    "NVIDIA H100 SXM5 80 GB (Hopper)",
    (_HOPPER_PAPER, _HOPPER_L2),
    "sm_90",
    units=132,
    clock_hz=_H100_CLOCK_HZ,
    dram=3.35e12,
    memory_bytes=80 << 30,
    l2=_HOPPER_L2_SPEED,
)
H200 = hardware(
    "H200",
    "NVIDIA H200 SXM 141 GB (Hopper)",
    (_HOPPER_PAPER, "NVIDIA H200 Tensor Core GPU, data sheet 2023", _HOPPER_L2),
    "sm_90",
    units=132,
    clock_hz=_H100_CLOCK_HZ,
    dram=4.8e12,
    memory_bytes=141 << 30,
    l2=_HOPPER_L2_SPEED,
)
A100 = hardware(
    "A100",
    "NVIDIA A100 SXM4 40 GB (Ampere)",
    ("NVIDIA A100 Tensor Core GPU Architecture, whitepaper 2020, tables 1 to 5",),
    "sm_80",
    units=108,
    clock_hz=1.41e9,
    dram=1.555e12,
    memory_bytes=40 << 30,
    l2=5120 * 1.41e9,
)
RTX_4090 = hardware(
    "RTX 4090",
    "NVIDIA GeForce RTX 4090 (Ada Lovelace)",
    ("NVIDIA Ada GPU Architecture, whitepaper 2022, appendix A",),
    "sm_89",
    units=128,
    clock_hz=2.52e9,
    dram=1.008e12,
    memory_bytes=24 << 30,
)
MACHINES: Mapping[str, Target] = {
    "H100": target("H100", H100, 50 << 20),
    "H200": target("H200", H200, 50 << 20),
    "A100": target("A100", A100, 40 << 20),
    "RTX 4090": target("RTX 4090", RTX_4090, 72 << 20),
}
"""By name."""


def hardware_here(
    gpu: str, arch: str, units: int, clock_hz: float, memory_bytes: int, dram: float
) -> Hardware:
    """Return the figures of a GPU that is here, by what its driver says: its name, such as "NVIDIA
    H100 80GB HBM3", and the speed of its memory in bytes per second. What is published of a machine
    holds where name, units and memory are the machine's; any other GPU has its generation's."""
    row = _machine_named(gpu)
    if row is not None and row.units == units and _near(row.memory_bytes, memory_bytes):
        l2 = row.bandwidth("L2") * clock_hz / row.clock_hz
        names = row.name, row.about, row.sources
        return hardware(*names, arch, units, clock_hz, row.bandwidth("DRAM"), memory_bytes, l2)
    sources = (f"the driver of the GPU, and its generation's ({arch})",)
    name = gpu.removeprefix("NVIDIA ")
    return hardware(name, gpu, sources, arch, units, clock_hz, dram, memory_bytes)


def _machine_named(gpu: str) -> Hardware | None:
    words = gpu.upper().replace("-", " ").split()
    for name, machine in MACHINES.items():
        parts = name.upper().split()
        if any(words[i : i + len(parts)] == parts for i in range(len(words))):
            return machine.hardware
    return None


def _near(published_bytes: int, memory_bytes: int) -> bool:
    """Return whether a GPU has the memory of its data sheet, of which its system takes a part."""
    return 0.9 < memory_bytes / published_bytes < 1.1
