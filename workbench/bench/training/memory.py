"""The memory of steps of training: what tensors hold, without the code of the libraries.

Ours is what the device's pool has given out, and what the plan of a replay predicts. torch's is the
sum of all that its profiler saw allocated and freed.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any
from unittest.mock import patch

from workbench.backends.buffer import Buffer
from workbench.backends.device import Device
from workbench.backends.memory import Block, BufferPool, Lease, size_class
from workbench.bench.training.models import Model
from workbench.bench.training.steps import Step, step_of
from workbench.execution import replay
from workbench.execution.memory_plan import MemoryPlan, plan_memory

STEPS = 5
"""Two that are planned anew, and replays."""


def memory_of(library: str, model: Model) -> dict[str, int]:
    """Return, in bytes, what is held after steps, as "held", and at most in a step, as "peak". For
    ours also the peak of the "first" step, and what is "planned" for a replay: its inputs and
    state, and what its plan adds at most."""
    if library == "torch":
        return _of_torch(model)
    return _of_workbench(model) if library == "workbench" else {}


def _of_torch(model: Model) -> dict[str, int]:
    profiler = import_module("torch.profiler")
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        step, _ = step_of("torch", model)
        for _ in range(STEPS):
            step()
    events: list[Any] = [
        e for e in profile.profiler.kineto_results.events() if e.name() == "[memory]"
    ]
    size = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        size += event.nbytes()
        peak = max(peak, size)
    return {"held": size, "peak": peak}


def _of_workbench(model: Model) -> dict[str, int]:
    pool = Device[Device.DEFAULT].memory.pool
    gc.collect()
    before = pool.used_bytes
    step, _ = step_of("workbench", model)
    planned_bytes: list[int] = []
    blocks: dict[Lease, int] = {}
    run = replay.Replay.__call__

    def planned(*arguments: Any, **more: Any) -> MemoryPlan:
        plan = plan_memory(*arguments, **more)
        planned_bytes.append(plan.peak_bytes)
        return plan

    def watched(self: replay.Replay, memory: Sequence[Buffer], *more: Any) -> list[Buffer]:
        blocks.update({b.owner: size_class(b.owner.nbytes) for b in memory})
        return run(self, memory, *more)

    with (
        patch.object(replay, "plan_memory", planned),
        patch.object(replay.Replay, "__call__", watched),
    ):
        for number in range(STEPS):
            blocks.clear()
            peak = _peak(pool, step)
            if not number:
                first = peak
    state = sum(blocks.values())
    blocks.clear()
    gc.collect()
    return {
        "first": first - before,
        "held": pool.used_bytes - before,
        "peak": peak - before,
        "planned": state + planned_bytes[-1],
    }


def _peak(pool: BufferPool, step: Step) -> int:
    """Return the most bytes that `pool` has given out during a step."""
    acquire: Callable[[BufferPool, int], Block] = BufferPool.acquire
    most = pool.used_bytes

    def watched(self: BufferPool, nbytes: int) -> Block:
        nonlocal most
        block = acquire(self, nbytes)
        if self is pool:
            most = max(most, self.used_bytes)
        return block

    with patch.object(BufferPool, "acquire", watched):
        step()
    return most
