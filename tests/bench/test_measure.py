"""Measuring in turn, and the latencies on small graphs."""

from __future__ import annotations

import math
from collections.abc import Callable

from workbench.bench.quick import Latency, run
from workbench.bench.report import latency
from workbench.measure.timing import in_turn


def test_every_other_round_goes_backwards() -> None:
    order: list[str] = []

    def sampler(name: str) -> Callable[[], int]:
        def sample() -> int:
            order.append(name)
            return len(order)

        return sample

    samplers = {name: sampler(name) for name in "abc"}
    samples = in_turn(samplers, budget_s=0.0, least=3, most=9, settle_s=0.0)
    assert "".join(order) == "abccbaabc"  # no time is left after the least rounds
    assert samples == {"a": (1, 6, 7), "b": (2, 5, 8), "c": (3, 4, 9)}
    order.clear()
    in_turn(samplers, budget_s=60.0, least=1, most=2, settle_s=0.0)
    assert "".join(order) == "abccba"


def test_every_latency_is_measured() -> None:
    latencies = list(run(repeats=1, graphs=(20, 60, 120), with_peer=False))
    assert all(isinstance(line, Latency) for line in latencies)
    lines = {line.what.strip(): line for line in latencies if isinstance(line, Latency)}
    assert all(line.peer_figure is None for line in lines.values())
    beyond = lines.pop("a replayed call, but its kernels")  # less than nothing, by chance
    assert math.isfinite(beyond.figure)
    assert all(line.figure > 0 for line in lines.values())
    budgets = {what: line.budget for what, line in lines.items()}
    assert budgets["first elementwise, after import"] == 0.11
    assert budgets["first matmul 512, device open"] == 0.1
    assert budgets["apply UPCAST to new source"] == 0.03
    assert budgets["recording every pass, over not"] == 1.15
    assert budgets["import workbench, over import numpy"] == 1.7
    assert budgets["growth when the UOps double"] == 2.2
    assert "schedule 120 UOps" in lines


def test_a_latency_as_text() -> None:
    line = Latency("first result", 0.2, 0.05, "s", 0.1, 0.4)
    assert latency(line, is_busy=False).split() == (
        "first result 200 ms +- 5% <= 100 ms OVER tinygrad 400 ms 0.50x".split()
    )
    assert "(busy)" in latency(line, is_busy=True)
    ratio = Latency("recording", 1.2, 0.0, "x", 1.15)
    assert latency(ratio, is_busy=True).endswith("<= 1.15 x  OVER")
