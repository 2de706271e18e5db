"""The bytes that a run moves from each level of a GPU's memory."""

from __future__ import annotations

from itertools import pairwise

import pytest

from workbench import Tensor, explore
from workbench.backends.device import Device
from workbench.cost.gpu.gpu_cost import GpuCost, gpu_cost
from workbench.cost.gpu.memory_traffic import kept_share, level_speeds
from workbench.ir.opt.heuristic.default_opts import heuristic

GPUS = [
    name for name in Device.machine_names()
    if Device[name].target.has_groups and Device[name].target.hardware
]  # fmt: skip


def add(machine: str, nbytes: int) -> GpuCost:
    """Return the cost of a sum of two arrays, of some bytes with the result."""
    target = Device[machine].target
    a, b = (Tensor.empty(nbytes // 12 // 1024 * 1024) for _ in range(2))
    plain = explore(a + b).kernels[0].ast
    return gpu_cost(heuristic(plain, target)[0], target, plain)


def test_the_share_that_a_cache_keeps_is_that_of_a_simulated_one() -> None:
    """Lines touched in turns, in a cache that replaces them at random."""
    import random

    dice = random.Random(0)
    for ratio in (1.05, 1.3, 2.0):
        lines = 512
        cache, at = dict[int, int](), list[int]()
        hits = total = 0
        for turn in range(30):
            for line in range(round(lines * ratio)):
                total += turn >= 15
                if line in cache:
                    hits += turn >= 15
                elif len(at) < lines:
                    cache[line] = len(at)
                    at.append(line)
                else:
                    place = dice.randrange(lines)
                    del cache[at[place]]
                    cache[line], at[place] = place, line
        share = kept_share(round(lines * ratio), lines)
        assert hits / total == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("machine", GPUS)
def test_a_cache_that_is_too_small_is_a_slope(machine: str) -> None:
    """A hundredth more bytes takes at most a few hundredths more time, at any size."""
    last = Device[machine].target.last_cache_bytes
    sizes = [round(last * (0.9 + 0.01 * step)) for step in range(60)]
    seconds = [add(machine, size).predicted_s for size in sizes]
    assert all(a < b * 1.001 < a * 1.06 for a, b in pairwise(seconds))
    large = add(machine, 16 * last)
    assert large.bytes_from["memory"] == pytest.approx(16 * last, rel=0.01)


@pytest.mark.parametrize("machine", GPUS)
def test_each_level_has_a_speed_and_a_source(machine: str) -> None:
    target = Device[machine].target
    assert target.hardware is not None
    speeds = level_speeds(target.hardware)
    assert [*speeds] == [*(name for name, _ in target.caches), "memory"]
    assert [*speeds.values()] == sorted(speeds.values(), reverse=True)
    assert target.hardware.sources


def test_the_third_cache_of_a_machine_has_its_own_speed() -> None:
    """200 MiB fit there, and move at the 17.2 TB/s that AMD publishes."""
    result = add("HIP:MI300X", 200 << 20)
    assert result.limit == "L3" and result.bytes_from["memory"] == 0
    moved = result.bytes_from["L3"]
    assert result.seconds["L3"] == pytest.approx(moved / 17.2e12)
