"""The benchmark of training: steps in all libraries in turn, their memory, and the report.

Sections: The memory of steps of training; Steps of training in all libraries, in turn, in one
run; Steps of training as text.
"""

from __future__ import annotations

import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import import_module
from typing import Any
from unittest.mock import patch

from workbench.backends.device import Device
from workbench.backends.memory import Block, Buffer, BufferPool, Lease, size_class
from workbench.base.child_process import NO_LIMIT_S
from workbench.base.errors import WorkbenchError
from workbench.bench.models import MODELS, WIDE_MODELS, BenchModel, Step, step_of
from workbench.bench.peers import OURS, PEERS, Peer, PeerProcess
from workbench.bench.report import geometric_mean
from workbench.execution import replay
from workbench.execution.memory_plan import MemoryPlan, plan_memory
from workbench.measure.timing import in_turn

# --------------------------------------------------------------------------------------------------
# The memory of steps of training: what tensors hold, without the code of the libraries.
#
# Ours is what the device's pool has given out, and what the plan of a replay predicts. torch's is
# what its profiler saw allocated, less what it saw freed.

STEPS = 5
"""Steps of a measurement: two that are planned anew, then replays."""


def memory_of(library: str, model: BenchModel) -> dict[str, int]:
    """Return bytes by name: "held" after the steps, and the "peak" of the last one (torch: of all).
    Ours has also the peak of the "first" step, and the "planned" one of a replay: the bytes of its
    inputs and state, and the peak of its plan. {} for other libraries."""
    if library == "torch":
        return _of_torch(model)
    return _of_workbench(model) if library == "workbench" else {}


def _of_torch(model: BenchModel) -> dict[str, int]:
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


def _of_workbench(model: BenchModel) -> dict[str, int]:
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
    """Return the most bytes of `pool` that are in use during a step."""
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


# --------------------------------------------------------------------------------------------------
# Steps of training in all libraries, in turn, in one run.

TRAINERS = ("torch", "torch.compile", "tinygrad")
"""The libraries other than ours, by their names in `PEERS`."""
DEVICES = {"tinygrad": ("CPU:LLVM", "CPU")}
"""The values of DEV to try, in order: tinygrad compiles faster by libLLVM than by clang."""
SAMPLES = (7, 60)
"""Least and most samples."""
WARM = 3
"""Steps between the first and the timed ones: a TinyJit captures its function in the second."""


@dataclass(frozen=True, slots=True)
class TrainingMeasurement:
    """A library on a model. The loss is that of the third step. Units: memory in bytes."""

    first_s: float
    loss: float
    kernels: int | None
    samples_s: tuple[float, ...]
    memory: Mapping[str, int]

    @property
    def median_s(self) -> float:
        """Return the median of a step, in seconds."""
        return statistics.median(self.samples_s)

    @property
    def least_s(self) -> float:
        """Return the least of a step, in seconds."""
        return min(self.samples_s)


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A model: measurements by library, ours first; a sentence for each library without one."""

    model: str
    measurements: Mapping[str, TrainingMeasurement]
    absent: Sequence[str] = field(default_factory=tuple)

    def ratio(self, peer: str, other: str = OURS.name) -> float | None:
        """Return `other`'s time of a step divided by `peer`'s: the median of this ratio over the
        rounds, each of which samples every library once. None if a library has no measurement."""
        if peer not in self.measurements or other not in self.measurements:
            return None
        pairs = zip(
            self.measurements[other].samples_s, self.measurements[peer].samples_s, strict=True
        )
        return statistics.median(a / b for a, b in pairs)

    def ratio_of_least(self, peer: str) -> float | None:
        """Return our least time over a peer's; None as in `ratio`."""
        if peer not in self.measurements or OURS.name not in self.measurements:
            return None
        return self.measurements[OURS.name].least_s / self.measurements[peer].least_s


def peers_named(names: Iterable[str] | None) -> list[Peer]:
    """Return the libraries to compare with: those of TRAINERS among `names` (None: all).

    Errors: WorkbenchError for another name.
    """
    unknown = sorted(set(names or ()) - set(TRAINERS))
    if unknown:
        raise WorkbenchError(
            f"{', '.join(unknown)} trains no models here",
            "the libraries that do are " + ", ".join(TRAINERS),
        )
    return [PEERS[n] for n in TRAINERS if names is None or n in names]


def compare(
    models: Iterable[BenchModel], peers: Sequence[Peer], threads: int, budget_s: float
) -> Iterator[TrainingRow]:
    """Yield a row for each model as soon as it is measured.

    Units: `budget_s` seconds of sampling for each library; compiling comes on top.
    """
    for model in models:
        with tempfile.TemporaryDirectory(
            prefix="workbench-bench-", ignore_cleanup_errors=True
        ) as cache:
            yield _row(model, [OURS, *peers], threads, cache, budget_s)


def _row(
    model: BenchModel, libraries: Sequence[Peer], threads: int, cache: str, budget_s: float
) -> TrainingRow:
    absent: list[str] = []
    with ExitStack() as stack:
        workers: dict[str, PeerProcess] = {}
        firsts: dict[str, dict[str, Any]] = {}
        memory: dict[str, dict[str, int]] = {}
        for peer in libraries:
            try:
                worker, first = _started(peer, model, threads, cache)
            except WorkbenchError as error:
                absent.append(_absence(peer, error))
                continue
            stack.callback(worker.close)
            workers[peer.name], firsts[peer.name] = worker, first
            memory[peer.name] = _memory(peer, model, threads, cache)
        samplers: dict[str, Callable[[], float]] = {
            name: partial(worker.ask, NO_LIMIT_S, _step_seconds, name, model.name)
            for name, worker in workers.items()
        }
        samples = in_turn(samplers, budget_s * len(workers), *SAMPLES)
    measurements = {
        name: TrainingMeasurement(samples_s=samples[name], memory=memory[name], **firsts[name])
        for name in workers
    }
    return TrainingRow(model.name, measurements, absent)


def _started(
    peer: Peer, model: BenchModel, threads: int, cache: str
) -> tuple[PeerProcess, dict[str, Any]]:
    """Return a process that has taken its first steps, and their part of the measurement.

    Errors: WorkbenchError where it is not installed, or fails on every device.
    """
    if not peer.is_installed:
        raise WorkbenchError(f"{peer.name} is not installed")
    *others, last = DEVICES.get(peer.name, ("",))
    for device in (*others, last):
        worker = PeerProcess(peer, threads, cache, device)
        try:
            return worker, worker.ask(NO_LIMIT_S, _first_steps, peer.name, model.name)
        except WorkbenchError:
            worker.close()
            if device == last:
                raise
    raise AssertionError("there is a last device")


def _absence(peer: Peer, error: WorkbenchError) -> str:
    if not peer.is_installed:
        return peer.absence
    return f"{peer.name} cannot run here: {error.because} ({peer.how_to_get})"


def _memory(peer: Peer, model: BenchModel, threads: int, cache: str) -> dict[str, int]:
    """Return the `memory_of` a model in a process of its own; {} where that fails."""
    with PeerProcess(peer, threads, cache) as worker:
        try:
            return worker.ask(NO_LIMIT_S, _training_memory, peer.name, model.name)
        except WorkbenchError:
            return {}


# What follows runs in the process of a library.


def _first_steps(library: str, model: str) -> dict[str, Any]:
    """Return the seconds of the first step, the loss of the third, and the number of kernels."""
    return _trained(library, model)[1]


def _step_seconds(library: str, model: str) -> float:
    """Return the seconds of a step, after the first ones."""
    step, _ = _trained(library, model)
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def _training_memory(library: str, model: str) -> dict[str, int]:
    """Return the `memory_of` a model, by its name."""
    return memory_of(library, (MODELS | WIDE_MODELS)[model])


@lru_cache(maxsize=1)
def _trained(library: str, model: str) -> tuple[Callable[[], float], dict[str, Any]]:
    step, kernels = step_of(library, (MODELS | WIDE_MODELS)[model])
    start = time.perf_counter()
    step()
    first_s = time.perf_counter() - start
    losses = [step() for _ in range(WARM)]
    return step, {"first_s": first_s, "loss": losses[1], "kernels": kernels()}


# --------------------------------------------------------------------------------------------------
# Steps of training as text: a line for each model and library, the means and the goals.

TORCH = "torch"
TINYGRAD = "tinygrad"
MEAN_TO_TORCH = 1.0
WORST_TO_TORCH = 1.5
TO_TINYGRAD = 0.2
"""The greatest share of tinygrad's time that our step, and our first step, may take."""

HEADER = (
    f"{'model':12}{'library':15}{'first':>9}{'step':>11}{'least':>11}{'ours/it':>9}{'least':>7}"
    f"{'kernels':>9}{'held':>8}{'peak':>8}{'planned':>9}{'loss':>9}"
)
NOTE = (
    "first: the first step, compiling included; step: median; ours/it: our time divided by its"
    " (median over rounds; least times);\nheld, peak: MB of tensors between steps and at most"
    " (ours: the pool's; torch's: its profiler's); planned: the peak that the plan predicts"
)


def lines(row: TrainingRow) -> Iterator[str]:
    """Yield a line for each library."""
    for name, measurement in row.measurements.items():
        memory = "".join(
            _megabytes(measurement, key, width)
            for key, width in (("held", 8), ("peak", 8), ("planned", 9))
        )
        kernels = "" if measurement.kernels is None else str(measurement.kernels)
        median, least = measurement.median_s * 1e3, measurement.least_s * 1e3
        yield (
            f"{row.model:12}{name:15}{measurement.first_s:7.2f} s{median:8.2f} ms"
            f"{least:8.2f} ms{_ratio(row.ratio(name)):>9}"
            f"{_ratio(row.ratio_of_least(name)):>7}{kernels:>9}{memory}{measurement.loss:9.4f}"
        )


def summary(rows: Sequence[TrainingRow]) -> Iterator[str]:
    """Yield the geometric means, the goals if all rows have goals, and a sentence for each library
    that is absent."""
    peers = dict.fromkeys(n for row in rows for n in row.measurements if n != OURS.name)
    for peer in peers:
        pairs = [(row.ratio(peer), row.ratio_of_least(peer)) for row in rows]
        ratios = [r for r, _ in pairs if r is not None]
        least = [r for _, r in pairs if r is not None]
        yield (
            f"time over {peer}'s, geometric mean of {len(ratios)}: {geometric_mean(ratios):.2f};"
            f" of the least times: {geometric_mean(least):.2f}; worst {max(ratios):.2f}"
        )
    if all(row.model in MODELS for row in rows):
        yield from _goals(rows)
    yield from dict.fromkeys(sentence for row in rows for sentence in row.absent)


def _goals(rows: Sequence[TrainingRow]) -> Iterator[str]:
    to_torch = [r for row in rows if (r := row.ratio_of_least(TORCH)) is not None]
    if to_torch:
        mean, worst = geometric_mean(to_torch), max(to_torch)
        yield _goal("time of a step / torch's, geometric mean of least times", mean, MEAN_TO_TORCH)
        yield _goal("the worst of these", worst, WORST_TO_TORCH)
    steps = [r for row in rows if (r := row.ratio_of_least(TINYGRAD)) is not None]
    if steps:
        yield _goal("time of a step / tinygrad's, the worst", max(steps), TO_TINYGRAD)
        firsts = [
            row.measurements[OURS.name].first_s / row.measurements[TINYGRAD].first_s
            for row in rows
            if TINYGRAD in row.measurements
        ]
        yield _goal("time of the first step / tinygrad's, the worst", max(firsts), TO_TINYGRAD)
    peaks = [
        row.measurements[OURS.name].memory["peak"] / row.measurements[TORCH].memory["peak"]
        for row in rows
        if TORCH in row.measurements
        and row.measurements[TORCH].memory
        and row.measurements[OURS.name].memory
    ]
    if peaks:
        yield _goal("peak memory over torch's, the worst", max(peaks), 1.0)


def _goal(what: str, value: float, most: float) -> str:
    return f"{what}: {value:.2f}, <= {most:g}: {'within' if value <= most else 'OVER'}"


def _megabytes(measurement: TrainingMeasurement, key: str, width: int) -> str:
    size = measurement.memory.get(key)
    return f"{'' if size is None else f'{size / 1e6:.1f}':>{width}}"


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"
