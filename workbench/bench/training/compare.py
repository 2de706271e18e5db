"""Steps of training in all libraries, in turn, in one run."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from workbench.base.child_process import LONGEST_S
from workbench.base.errors import WorkbenchError
from workbench.bench.peers import OURS, PEERS, Peer
from workbench.bench.training.memory import memory_of
from workbench.bench.training.models import MODELS, WIDE_MODELS, Model
from workbench.bench.training.steps import step_of
from workbench.bench.worker import PeerProcess
from workbench.measure.timing import in_turn

TRAINERS = ("torch", "torch.compile", "tinygrad")
"""The libraries beside ours, by their names in `PEERS`."""
DEVICES = {"tinygrad": ("CPU:LLVM", "CPU")}
"""The values of DEV to try, the first that works: that by libLLVM compiles faster than by clang."""
SAMPLES = (7, 60)
"""Least and most samples."""
WARM = 3
"""Steps before any is timed, beside the first: a TinyJit captures its function in the second."""


@dataclass(frozen=True, slots=True)
class TrainingMeasurement:
    """A library on a model. The loss is that of the third step; memory in bytes."""

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
    """A model: measurements by library, ours first; a sentence for each library without any."""

    model: str
    measurements: Mapping[str, TrainingMeasurement]
    absent: Sequence[str] = field(default_factory=tuple)

    def ratio(self, peer: str, other: str = OURS.name) -> float | None:
        """Return a step of `other` over that of a peer, the median over the rounds: samples of one
        round were taken one after the other. None where a library has no measurement."""
        if peer not in self.measurements or other not in self.measurements:
            return None
        pairs = zip(
            self.measurements[other].samples_s, self.measurements[peer].samples_s, strict=True
        )
        return statistics.median(a / b for a, b in pairs)

    def ratio_of_least(self, peer: str) -> float | None:
        """Return our least time over a peer's."""
        if peer not in self.measurements or OURS.name not in self.measurements:
            return None
        return self.measurements[OURS.name].least_s / self.measurements[peer].least_s


def peers_named(names: Iterable[str] | None) -> list[Peer]:
    """Return the libraries to compare with: those of TRAINERS among `names`, or all.

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
    models: Iterable[Model], peers: Sequence[Peer], threads: int, budget_s: float
) -> Iterator[TrainingRow]:
    """Yield a row for each model.

    Units: `budget_s` seconds of sampling for each library; compiling comes on top.
    """
    for model in models:
        with tempfile.TemporaryDirectory(
            prefix="workbench-bench-", ignore_cleanup_errors=True
        ) as cache:
            yield _row(model, [OURS, *peers], threads, cache, budget_s)


def _row(
    model: Model, libraries: Sequence[Peer], threads: int, cache: str, budget_s: float
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
            name: partial(worker.ask, LONGEST_S, _step_seconds, name, model.name)
            for name, worker in workers.items()
        }
        samples = in_turn(samplers, budget_s * len(workers), *SAMPLES)
    measurements = {
        name: TrainingMeasurement(samples_s=samples[name], memory=memory[name], **firsts[name])
        for name in workers
    }
    return TrainingRow(model.name, measurements, absent)


def _started(
    peer: Peer, model: Model, threads: int, cache: str
) -> tuple[PeerProcess, dict[str, Any]]:
    """Return a process that has taken its first steps, and what it says of them.

    Errors: WorkbenchError where it cannot on any device.
    """
    if not peer.is_installed:
        raise WorkbenchError(f"{peer.name} is not installed")
    *others, last = DEVICES.get(peer.name, ("",))
    for device in (*others, last):
        worker = PeerProcess(peer, threads, cache, device)
        try:
            return worker, worker.ask(LONGEST_S, _first_steps, peer.name, model.name)
        except WorkbenchError:
            worker.close()
            if device == last:
                raise
    raise AssertionError("there is a last device")


def _absence(peer: Peer, error: WorkbenchError) -> str:
    if not peer.is_installed:
        return peer.absence
    return f"{peer.name} cannot run here: {error.because} ({peer.how_to_get})"


def _memory(peer: Peer, model: Model, threads: int, cache: str) -> dict[str, int]:
    """Return what `memory_of` says, asked of a process of its own; nothing where it fails."""
    with PeerProcess(peer, threads, cache) as worker:
        try:
            return worker.ask(LONGEST_S, _training_memory, peer.name, model.name)
        except WorkbenchError:
            return {}


# What follows runs in the process of a library.


def _first_steps(library: str, model: str) -> dict[str, Any]:
    """Return the seconds of the first step, the loss of a later one, and the number of kernels."""
    return _trained(library, model)[1]


def _step_seconds(library: str, model: str) -> float:
    """Return how long a step takes, after the first ones."""
    step, _ = _trained(library, model)
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def _training_memory(library: str, model: str) -> dict[str, int]:
    """Return what `memory_of` says of a model."""
    return memory_of(library, (MODELS | WIDE_MODELS)[model])


@lru_cache(maxsize=1)
def _trained(library: str, model: str) -> tuple[Callable[[], float], dict[str, Any]]:
    step, kernels = step_of(library, (MODELS | WIDE_MODELS)[model])
    start = time.perf_counter()
    step()
    first_s = time.perf_counter() - start
    losses = [step() for _ in range(WARM)]
    return step, {"first_s": first_s, "loss": losses[1], "kernels": kernels()}
