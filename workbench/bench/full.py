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


class PeerProcesses:
    """A process per library; one that failed is started again for the next entry."""

    def __init__(self, threads: int, cache: str):
        self._threads, self._cache = threads, cache
        self._workers: dict[str, PeerProcess] = {}

    def __getitem__(self, peer: Peer) -> PeerProcess:
        if peer.name not in self._workers:
            self._workers[peer.name] = PeerProcess(peer, self._threads, self._cache)
        return self._workers[peer.name]

    def end(self, peer: Peer) -> None:
        """End the process of a library."""
        self._workers.pop(peer.name).close()

    def close(self) -> None:
        """End all of them."""
        for worker in self._workers.values():
            worker.close()


@contextmanager
def peer_processes(threads: int) -> Iterator[PeerProcesses]:
    """Yield PeerProcesses with an empty cache, which is deleted at the end."""
    with tempfile.TemporaryDirectory(
        prefix="workbench-bench-", ignore_cleanup_errors=True
    ) as cache:
        processes = PeerProcesses(threads, cache)
        try:
            yield processes
        finally:
            processes.close()


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
    inputs are tiny, and only the answers are tested.
    """
    where = machine()  # as long as nothing runs here, the load is that of other processes
    with peer_processes(threads) as processes:
        present, absent = _present(list(peers), processes)
        rows = []
        for entry in entries:
            rows.append(_row(entry, [OURS, *present], processes, threads, budget_s, smoke))
            on_row(rows[-1])
    versions = {peer.name: peer.version for peer in (OURS, *present)}
    return Report(where, versions, tuple(absent), threads, tuple(rows))


def _present(peers: list[Peer], processes: PeerProcesses) -> tuple[list[Peer], list[str]]:
    """Return the peers that can add numbers here, and a sentence for each that cannot."""
    processes[OURS].prepare(ENTRIES[0].name, smoke=True)  # loaded, like the others below
    present, absent = [], []
    for peer in peers:
        if not peer.is_installed:
            absent.append(peer.absence)
            continue
        try:
            processes[peer].prepare(ENTRIES[0].name, smoke=True)
            present.append(peer)
        except WorkerError as error:
            processes.end(peer)
            absent.append(f"{peer.name} cannot run here: {error.because} ({peer.how_to_get})")
    return present, absent


def _row(
    entry: Entry,
    peers: list[Peer],
    processes: PeerProcesses,
    threads: int,
    budget_s: float,
    smoke: bool,
) -> ReportRow:
    arrays = entry.arrays(smoke)
    expected = entry.expected(arrays)
    by_library = {peer.name: _prepared(entry, peer, processes, expected, smoke) for peer in peers}
    samples_by_name = _sampled(by_library, peers, processes, threads, budget_s, smoke)
    peak = max(samples_by_name.pop(PEAK))
    for name, samples in samples_by_name.items():
        by_library[name] = Figure(RIGHT, "", by_library[name].first_s, samples)
    return ReportRow(
        entry.name, entry.operations(smoke), entry.bytes(arrays, expected), peak, by_library
    )


def _sampled(
    by_library: dict[str, Figure],
    peers: list[Peer],
    processes: PeerProcesses,
    threads: int,
    budget_s: float,
    smoke: bool,
) -> dict[str, tuple[float, ...]]:
    """Return samples of each library whose answer is right, and of the peak.

    A library that fails while it is timed gets a Figure of the failure; the others are sampled
    again.
    """
    right = [peer for peer in peers if by_library[peer.name].state == RIGHT]
    samplers = {p.name: partial(processes[p].sample, SAMPLE_S) for p in right}
    samplers[PEAK] = partial(processes[OURS].peak, threads)
    try:
        return in_turn(samplers, budget_s, *((1, 1) if smoke else (3, 25)))
    except WorkerError as error:
        lost = next(peer for peer in peers if peer.name == error.name)
        if by_library[lost.name].state != RIGHT:  # it is the peak that cannot be measured
            raise
        processes.end(lost)
        by_library[lost.name] = Figure(FAILED, error.because)
        return _sampled(by_library, peers, processes, threads, budget_s, smoke)


def _prepared(
    entry: Entry, peer: Peer, processes: PeerProcesses, expected: Array, smoke: bool
) -> Figure:
    """Return a Figure without samples: whether the library's answer is numpy's."""
    try:
        answer, first_s = processes[peer].prepare(entry.name, smoke)
    except WorkerError as error:
        processes.end(peer)
        return Figure(FAILED, error.because)
    problem = fault(answer, expected)
    return Figure(RIGHT if problem is None else WRONG, problem or "", first_s)
