"""This machine as the operating system describes it: its processor, and the sizes of its caches."""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from workbench.base.target import TYPICAL_CACHES, TYPICAL_WAYS, Caches, Ways

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
CPUINFO = Path("/proc/cpuinfo")
MEMORY = "memory"
ARCH_PRCTL = 158
"""The number of the system call (x86-64)."""
REQUEST_PERMISSION = 0x1023
TILE_DATA = 18
"""The part of a thread's state that AMX needs."""
CPU_WITHOUT = "CPU_WITHOUT"
"""The environment's variable with the processor's features that code must not use, by the words
with which LLVM's names of them begin: "avx512" has kernels as on a processor without AVX-512."""
MISCOMPILED = "gfni"
"""Features that no code uses, as words for CPU_WITHOUT. LLVM 22 shifts a vector of bytes by GF(2)
products, and one by 0, where it sees that late, has other bits: -9 >> 0 is -120."""
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@cache
def caches(folder: Path = CACHES) -> Caches:
    """Return the data caches that core 0 sees; () where the system does not say."""
    sizes: dict[str, int] = {}
    for level, size in _described(folder, "size"):
        amount = re.fullmatch(r"(\d+)([KMG]?)", size)
        if amount:
            sizes[level] = int(amount[1]) * _UNITS[amount[2]]
    return tuple(sorted(sizes.items(), key=lambda level: level[1]))


@cache
def cache_ways(folder: Path = CACHES) -> Ways:
    """Return how many lines a set of each data cache of core 0 holds; those of a common processor
    where the system does not say."""
    described = _described(folder, "ways_of_associativity")
    ways = {level: int(text) for level, text in described if text.isdigit() and int(text)}
    return tuple((dict(TYPICAL_WAYS) | ways).items())


def _described(folder: Path, part: str) -> list[tuple[str, str]]:
    """Return (level, text of a part of its description) of each data cache."""
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
    """Return LLVM's list of a processor's features with those turned off that begin with one of the
    words in `without`. They stand last, since a feature turns on what it is built on.

    >>> features_in_use("+avx,+avx512f,-amx-tile,+fma", "avx512 fma")
    '+avx,-amx-tile,-avx512f,-fma'
    """
    prefixes = tuple(without.replace(",", " ").split())
    listed = features.split(",")
    off = [word for word in listed if prefixes and word[1:].startswith(prefixes)]
    others = [word for word in listed if word not in off]
    return ",".join([*others, *(f"-{word[1:]}" for word in off)])


def features_left_out() -> str:
    """Return words with which the names of features begin that code must not use."""
    return f"{MISCOMPILED} {os.environ.get(CPU_WITHOUT, '')}"


@cache
def permits_amx() -> bool:
    """Return whether this process may use AMX: Linux has to be asked for its large registers, and
    threads and forked processes then have them, too (Linux, "Using XSTATE features in user space
    applications")."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    system_call = ctypes.CDLL(None).syscall
    return int(system_call(ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA)) == 0


def known_caches() -> Caches:
    """Return the caches of core 0; those of a common processor where the system does not say."""
    return caches() or TYPICAL_CACHES


def line_bytes(folder: Path = CACHES, otherwise: int = 64) -> int:
    """Return the bytes of a line of the first cache; `otherwise` where the system does not say."""
    try:
        text = (folder / "index0" / "coherency_line_size").read_text().strip()
    except OSError:
        return otherwise
    return int(text) if text.isdigit() and int(text) else otherwise


def level_of(size_bytes: int, levels: Sequence[tuple[str, int]]) -> str | None:
    """Return the smallest cache that holds that number of bytes, "memory" where none does, and None
    where no cache is known.

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
