"""The full benchmark: every entry on every library, in turn, in one run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from workbench.bench.peers import OURS, Peer, PeerProcess, WorkerError
from workbench.bench.report import FAILED, RIGHT, WRONG, Figure, Report, ReportRow, machine
from workbench.bench.suite import ENTRIES, Array, Entry, fault
from workbench.measure.timing import in_turn

SAMPLE_S = 0.03
PEAK = "peak"


class Crew:
    """A Worker per library; one that failed is started again for the next entry."""

    def __init__(self, threads: int, cache: str):
        self._threads, self._cache = threads, cache
        self._workers: dict[str, PeerProcess] = {}

    def __getitem__(self, peer: Peer) -> PeerProcess:
        if peer.name not in self._workers:
            self._workers[peer.name] = PeerProcess(peer, self._threads, self._cache)
        return self._workers[peer.name]

    def dismiss(self, peer: Peer) -> None:
        """End the process of a library."""
        self._workers.pop(peer.name).close()

    def close(self) -> None:
        """End all of them."""
        for worker in self._workers.values():
            worker.close()


@contextmanager
def crew(threads: int) -> Iterator[Crew]:
    """Yield a Crew whose caches are empty at first and gone in the end."""
    with tempfile.TemporaryDirectory(
        prefix="workbench-bench-", ignore_cleanup_errors=True
    ) as cache:
        workers = Crew(threads, cache)
        try:
            yield workers
        finally:
            workers.close()


def run(
    entries: Sequence[Entry],
    peers: Iterable[Peer],
    threads: int = 2,
    budget_s: float = 2.0,
    smoke: bool = False,
    on_row: Callable[[ReportRow], None] = lambda row: None,
) -> Report:
    """Return the Report of `entries`; `on_row` is called with each row as soon as it is known.

    Units: `budget_s` seconds of sampling for a row; compiling comes on top. With `smoke` the
    inputs are tiny, and only the answers mean something.
    """
    where = machine()  # the load is that of others as long as nothing runs
    with crew(threads) as workers:
        present, absent = _present(list(peers), workers)
        rows = []
        for entry in entries:
            rows.append(_row(entry, [OURS, *present], workers, threads, budget_s, smoke))
            on_row(rows[-1])
    versions = {peer.name: peer.version for peer in (OURS, *present)}
    return Report(where, versions, tuple(absent), threads, tuple(rows))


def _present(peers: list[Peer], workers: Crew) -> tuple[list[Peer], list[str]]:
    """Return the peers that can add numbers here, and a sentence for each that cannot."""
    workers[OURS].prepare(ENTRIES[0].name, smoke=True)  # loaded, like the others below
    present, absent = [], []
    for peer in peers:
        if not peer.is_installed:
            absent.append(peer.absence)
            continue
        try:
            workers[peer].prepare(ENTRIES[0].name, smoke=True)
            present.append(peer)
        except WorkerError as error:
            workers.dismiss(peer)
            absent.append(f"{peer.name} cannot run here: {error.because} ({peer.how_to_get})")
    return present, absent


def _row(
    entry: Entry, peers: list[Peer], workers: Crew, threads: int, budget_s: float, smoke: bool
) -> ReportRow:
    arrays = entry.arrays(smoke)
    expected = entry.expected(arrays)
    by_library = {peer.name: _prepared(entry, peer, workers, expected, smoke) for peer in peers}
    samples_by_name = _sampled(by_library, peers, workers, threads, budget_s, smoke)
    peak = max(samples_by_name.pop(PEAK))
    for name, samples in samples_by_name.items():
        by_library[name] = Figure(RIGHT, "", by_library[name].first_s, samples)
    return ReportRow(
        entry.name, entry.operations(), entry.bytes(arrays, expected), peak, by_library
    )


def _sampled(
    by_library: dict[str, Figure],
    peers: list[Peer],
    workers: Crew,
    threads: int,
    budget_s: float,
    smoke: bool,
) -> dict[str, tuple[float, ...]]:
    """Return samples of each library whose answer is right, and of the peak.

    A library that fails while it is timed gets a Figure that says so; the others start again.
    """
    right = [peer for peer in peers if by_library[peer.name].state == RIGHT]
    samplers = {p.name: partial(workers[p].sample, SAMPLE_S) for p in right}
    samplers[PEAK] = partial(workers[OURS].peak, threads)
    try:
        return in_turn(samplers, budget_s, *((1, 1) if smoke else (3, 25)))
    except WorkerError as error:
        lost = next(peer for peer in peers if peer.name == error.name)
        if by_library[lost.name].state != RIGHT:  # it is the peak that cannot be measured
            raise
        workers.dismiss(lost)
        by_library[lost.name] = Figure(FAILED, error.because)
        return _sampled(by_library, peers, workers, threads, budget_s, smoke)


def _prepared(entry: Entry, peer: Peer, workers: Crew, expected: Array, smoke: bool) -> Figure:
    """Return a Figure without samples: whether the library's answer is numpy's."""
    try:
        answer, first_s = workers[peer].prepare(entry.name, smoke)
    except WorkerError as error:
        workers.dismiss(peer)
        return Figure(FAILED, error.because)
    problem = fault(answer, expected)
    return Figure(RIGHT if problem is None else WRONG, problem or "", first_s)
