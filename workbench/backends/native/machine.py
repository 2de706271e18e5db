"""This machine: its processor, caches and features, its microarchitecture, and its matrix
instructions.

Sections: This machine as the operating system describes it; Microarchitectures by LLVM's name of
the processor; Matrix instructions of processors, as tensor cores of one lane that holds whole
tiles.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Container, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from workbench.base.dtypes import dtypes
from workbench.base.target import TYPICAL_CACHES, TYPICAL_WAYS, Caches, Starts, Ways
from workbench.base.tensor_cores import Fragment, TensorCore

# --------------------------------------------------------------------------------------------------
# This machine as the operating system describes it: its processor, and the sizes of its caches.

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
CPUINFO = Path("/proc/cpuinfo")
MEMORY = "memory"
ARCH_PRCTL = 158
"""The number of the system call arch_prctl on x86-64."""
REQUEST_PERMISSION = 0x1023
TILE_DATA = 18
"""The part of a thread's state that AMX needs."""
CPU_WITHOUT = "CPU_WITHOUT"
"""The environment variable with features of the processor that code must not use, as beginnings of
LLVM's names: with "avx512" kernels are compiled as for a processor without AVX-512."""
MISCOMPILED = "gfni"
"""Features that no code uses, as in CPU_WITHOUT. With GFNI, LLVM 22 shifts a vector of bytes by
GF(2) products. If it finds late that a shift is by 0, the result is wrong: -9 >> 0 is -120."""
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@cache
def caches(folder: Path = CACHES) -> Caches:
    """Return the data caches that core 0 sees; () if the system does not describe them."""
    sizes: dict[str, int] = {}
    for level, size in _described(folder, "size"):
        amount = re.fullmatch(r"(\d+)([KMG]?)", size)
        if amount:
            sizes[level] = int(amount[1]) * _UNITS[amount[2]]
    return tuple(sorted(sizes.items(), key=lambda level: level[1]))


@cache
def cache_ways(folder: Path = CACHES) -> Ways:
    """Return the number of lines in a set of each data cache of core 0; a common processor's if the
    system does not describe them."""
    described = _described(folder, "ways_of_associativity")
    ways = {level: int(text) for level, text in described if text.isdigit() and int(text)}
    return tuple((dict(TYPICAL_WAYS) | ways).items())


def _described(folder: Path, part: str) -> list[tuple[str, str]]:
    """Return (level, text) of each data cache; the text is one `part` of its description."""
    rows: list[tuple[str, str]] = []
    for index in sorted(folder.glob("index*")):
        try:
            level, kind, text = (
                (index / name).read_text().strip() for name in ("level", "type", part)
            )
        except OSError:
            continue
        if kind in ("Data", "Unified"):
            rows.append((f"L{level}", text))
    return rows


def features_in_use(features: str, without: str) -> str:
    """Return LLVM's list of a processor's features, with features turned off that begin with a word
    in `without`. They stand last, since a feature turns on the features that it requires.

    >>> features_in_use("+avx,+avx512f,-amx-tile,+fma", "avx512 fma")
    '+avx,-amx-tile,-avx512f,-fma'
    """
    prefixes = tuple(without.replace(",", " ").split())
    listed = features.split(",")
    off = [word for word in listed if prefixes and word[1:].startswith(prefixes)]
    others = [word for word in listed if word not in off]
    return ",".join([*others, *(f"-{word[1:]}" for word in off)])


def features_left_out() -> str:
    """Return the beginnings of the names of features that code must not use, as one text."""
    return f"{MISCOMPILED} {os.environ.get(CPU_WITHOUT, '')}"


@cache
def permits_amx() -> bool:
    """Return whether this process may use AMX. On Linux this requests its large registers, for all
    threads and forked processes of this one (Linux, "Using XSTATE features in user space
    applications")."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    system_call = ctypes.CDLL(None).syscall
    return int(system_call(ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA)) == 0


def known_caches() -> Caches:
    """Return the caches of core 0; a common processor's if the system does not describe them."""
    return caches() or TYPICAL_CACHES


def line_bytes(folder: Path = CACHES, otherwise: int = 64) -> int:
    """Return the bytes of a line of the first cache; `otherwise` if the system does not say."""
    try:
        text = (folder / "index0" / "coherency_line_size").read_text().strip()
    except OSError:
        return otherwise
    return int(text) if text.isdigit() and int(text) else otherwise


def level_of(size_bytes: int, levels: Sequence[tuple[str, int]]) -> str | None:
    """Return the name of the smallest cache that holds `size_bytes`, "memory" if none does, None if
    no cache is known.

    >>> level_of(40_000, (("L1", 32 << 10), ("L2", 1 << 20)))
    'L2'
    """
    if not levels:
        return None
    return next((name for name, size in levels if size_bytes <= size), MEMORY)


@cache
def cpu() -> str:
    """Return the name of the processor."""
    try:
        named = re.search(r"^model name\s*:\s*(.+)$", CPUINFO.read_text(), re.MULTILINE)
    except OSError:
        named = None
    return named[1].strip() if named else platform.processor() or platform.machine()


# --------------------------------------------------------------------------------------------------
# Microarchitectures by LLVM's name of the processor: the latency of a multiply-add, and the
# throughput by its width.
#
# Opts are chosen by these figures, which are the same in every session; predicted costs use
# measured speeds (`measure/speeds.py`). Sources: A. Fog, Instruction tables, 2024; uops.info; Arm,
# Software Optimization Guides of the cores named here; AMD and Intel, optimization manuals, 2024.


class MultiplyAdd(NamedTuple):
    """`fma_cycles` and `fma_starts` of a Target."""

    cycles: int = 4
    starts: Starts = ()


_TWO_OF_16 = MultiplyAdd(4, ((16, 2), (32, 1)))
_TWO_OF_32 = MultiplyAdd(4, ((32, 2), (64, 1)))
_TWO_OF_64 = MultiplyAdd(4, ((64, 2),))
_FOUR_OF_16 = MultiplyAdd(4, ((16, 4), (32, 2)))
MULTIPLY_ADDS: dict[str, MultiplyAdd] = {
    "znver1": MultiplyAdd(5, ((16, 2), (32, 1))),
    "znver2": MultiplyAdd(5, ((32, 2),)),
    "znver3": MultiplyAdd(4, ((32, 2),)),
    "znver4": _TWO_OF_32,
    "znver5": _TWO_OF_64,
    "haswell": MultiplyAdd(5, ((32, 2),)),
    "broadwell": MultiplyAdd(5, ((32, 2),)),
    "skylake": MultiplyAdd(4, ((32, 2),)),
    "alderlake": _TWO_OF_32,
    "raptorlake": _TWO_OF_32,
    "meteorlake": _TWO_OF_32,
    "arrowlake": _TWO_OF_32,
    "icelake-client": _TWO_OF_32,
    "tigerlake": _TWO_OF_32,
    "rocketlake": _TWO_OF_32,
    "skylake-avx512": _TWO_OF_64,
    "cascadelake": _TWO_OF_64,
    "cooperlake": _TWO_OF_64,
    "icelake-server": _TWO_OF_64,
    "sapphirerapids": _TWO_OF_64,
    "emeraldrapids": _TWO_OF_64,
    "graniterapids": _TWO_OF_64,
    "gracemont": MultiplyAdd(6, ((16, 2), (32, 1))),
    "sierraforest": MultiplyAdd(6, ((16, 2), (32, 1))),
    "cortex-a53": MultiplyAdd(8, ((16, 1),)),
    "cortex-a55": MultiplyAdd(4, ((16, 1),)),
    "cortex-a76": _TWO_OF_16,
    "neoverse-n1": _TWO_OF_16,
    "neoverse-n2": _TWO_OF_16,
    "neoverse-v1": _FOUR_OF_16,
    "neoverse-v2": _FOUR_OF_16,
    "apple-m1": _FOUR_OF_16,
    "apple-m2": _FOUR_OF_16,
    "apple-m3": _FOUR_OF_16,
    "apple-m4": _FOUR_OF_16,
    "spacemit-x60": MultiplyAdd(4, ((32, 1),)),
}


def multiply_add(processor: str) -> MultiplyAdd:
    """Return the figures of a processor by LLVM's name of it; common ones if it is not known."""
    return MULTIPLY_ADDS.get(processor, MultiplyAdd())


# --------------------------------------------------------------------------------------------------
# Matrix instructions of processors, as tensor cores of one lane that holds whole tiles.
#
# Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, VDPBF16PS and
# TDPBF16PS (pairs of steps stand side by side, and B has the pairs of a column one after the
# other); Arm Architecture Reference Manual for A-profile, BFMMLA (2 x 4 by 4 x 2, B by columns).


def _core(m: int, n: int, k: int, a: str, b: str, c: str, name: str) -> TensorCore:
    fragments = Fragment("", a), Fragment("", b), Fragment("", c)
    return TensorCore(m, n, k, dtypes.bfloat16, dtypes.float32, 1, *fragments, name)


BFMMLA = _core(2, 2, 4, "k0 k1 m0", "k0 k1 n0", "n0 m0", "bfmmla")
DPBF16PS = _core(4, 16, 2, "k0 m0 m1", "k0 n0 n1 n2 n3", "n0 n1 n2 n3 m0 m1", "dpbf16ps")
TDPBF16PS = _core(
    16, 16, 32, "k0 k1 k2 k3 k4 m0 m1 m2 m3", "k0 n0 n1 n2 n3 k1 k2 k3 k4",
    "n0 n1 n2 n3 m0 m1 m2 m3", "tdpbf16ps",
)  # fmt: skip
X86 = {"amx-bf16": TDPBF16PS, "avx512bf16": DPBF16PS}
ARM = {"bf16": BFMMLA}
"""Tensor cores by LLVM's name of the feature that they need, the preferred ones first."""


def tensor_cores(features: Container[str]) -> tuple[TensorCore, ...]:
    """Return the tensor cores of a processor with these features, the preferred first."""
    return tuple(core for name, core in {**X86, **ARM}.items() if name in features)


def absence(family: str) -> str:
    """Return why a processor of a family ("x86_64") with none of these features has no tensor
    cores."""
    if family in ("x86_64", "amd64"):
        return "its processor has neither AMX-BF16 nor AVX512_BF16"
    if family in ("aarch64", "arm64"):
        return "its processor does not have BF16 (bfmmla)"
    return f"no compiler here has a product of matrices for {family}"
