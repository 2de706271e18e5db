"""Caches as the system tells them, which of them holds how much, and features turned off."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.backends.native.jit import is_x86
from workbench.backends.native.machine import (
    CPU_WITHOUT,
    cache_ways,
    caches,
    features_in_use,
    level_of,
    line_bytes,
)
from workbench.base.target import TYPICAL_WAYS

LEVELS = (("L1", 32 << 10), ("L2", 1 << 20))


def test_data_caches_by_level(tmp_path: Path) -> None:
    rows = {
        "index0": ("1", "Data", "48K", "12"),
        "index1": ("1", "Instruction", "32K", "8"),
        "index2": ("2", "Unified", "2M", "16"),
        "index3": ("3", "Unified", "odd", "0"),
    }
    for name, values in rows.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "coherency_line_size").write_text("128\n")
        parts = ("level", "type", "size", "ways_of_associativity")
        for part, value in zip(parts, values, strict=True):
            (tmp_path / name / part).write_text(value + "\n")
    (tmp_path / "index4").mkdir()  # says nothing
    assert caches(tmp_path) == (("L1", 48 << 10), ("L2", 2 << 20))
    assert caches(tmp_path / "nowhere") == ()
    assert cache_ways(tmp_path) == (("L1", 12), ("L2", 16), ("L3", 16))
    assert cache_ways(tmp_path / "nowhere") == TYPICAL_WAYS
    assert line_bytes(tmp_path) == 128 and line_bytes(tmp_path / "nowhere") == 64


def test_the_smallest_cache_that_holds_it() -> None:
    sizes = (1, 32 << 10, (32 << 10) + 1, 1 << 20, (1 << 20) + 1)
    assert [level_of(n, LEVELS) for n in sizes] == ["L1", "L1", "L2", "L2", "memory"]
    assert level_of(1, ()) is None


def test_features_that_are_turned_off_stand_last() -> None:
    every = "+avx,+avx2,-amx-tile,+avx512f,+vaes,+fma"
    assert features_in_use(every, "") == every
    assert features_in_use(every, "avx512") == "+avx,+avx2,-amx-tile,+vaes,+fma,-avx512f"
    none = "-amx-tile,+vaes,-avx,-avx2,-avx512f,-fma"
    assert features_in_use(every, "avx,fma") == features_in_use(every, "avx fma") == none


OLDER = """
import numpy as np
from workbench import Device, Tensor, explore
x = np.arange(33 * 65).reshape(33, 65).astype(np.float32) % 7 - 3
for device in ("LLVM", *(["C"] if Device.available("C") else [])):
    product = Tensor(x, device=device) @ Tensor(x.T.copy(), device=device)
    assert np.array_equal(product.numpy(), x @ x.T)
    half = Tensor(x, device=device).cast("float16") / 8
    assert np.array_equal(half.numpy(), (x / 8).astype(np.float16))
    kernel = explore(product + 1, device=device).kernels[-1].optimized()
    print(Device[device].target.vector_bytes, kernel.compile(device).assembly)
"""


@pytest.mark.parametrize(
    ("without", "vector_bytes", "absent"), [("avx512", 32, "%zmm"), ("avx fma f16c", 16, "%ymm")]
)
def test_an_older_processor(without: str, vector_bytes: int, absent: str) -> None:
    """Kernels as on a processor without AVX-512, and without AVX: on this one they run, too."""
    script = [sys.executable, "-c", OLDER]
    environment = os.environ | {CPU_WITHOUT: without}
    run = subprocess.run(script, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert absent not in run.stdout and "ret" in run.stdout
    if is_x86():
        widths = [int(row.split()[0]) for row in run.stdout.splitlines() if row[:1].isdigit()]
        assert widths and max(widths) <= vector_bytes
