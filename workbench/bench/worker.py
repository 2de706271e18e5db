"""A process for each library, and the questions it answers.

What a library prints goes to stderr. A library that crashes or hangs loses only its own
measurements.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import ParamSpec, TypeVar

from workbench.base.errors import WorkbenchError
from workbench.base.function_process import FunctionFailed, FunctionProcess, FunctionProcessEnded
from workbench.bench.peers import OURS, PEERS, Peer
from workbench.bench.suite import ENTRIES, Array
from workbench.measure.timing import measure

ANSWER_WITHIN_S = 180.0
P = ParamSpec("P")
R = TypeVar("R")


class WorkerError(WorkbenchError):
    """The library `name` did not answer, or answered with an error."""

    def __init__(self, name: str, because: str):
        super().__init__(f"{name} failed", because)
        self.name = name


class PeerProcess:
    """The process of one library, on a `device` of its own if one is named; close it, or use it in
    a `with` block."""

    def __init__(self, peer: Peer, threads: int, cache: str, device: str = ""):
        self.peer = peer
        own = {"DEV": device} if device else {}
        self._process = FunctionProcess(peer.environment(threads, cache) | own)
        self._entry = "", False

    def __enter__(self) -> PeerProcess:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def prepare(self, entry: str, smoke: bool) -> tuple[Array, float]:
        """Return the result of an entry, and the seconds until it was there the first time.

        Errors: WorkerError, with what the library said; so for all other questions.
        """
        self._entry = entry, smoke
        return self.ask(ANSWER_WITHIN_S, _prepare, self.peer.name, *self._entry)

    def sample(self, budget_s: float) -> float:
        """Return the warm seconds of one run of the prepared entry: the least of a few.

        Other processes interrupt a library of many threads more often than one of few. The least
        time is that of an undisturbed run.
        """
        name = self.peer.name
        return self.ask(ANSWER_WITHIN_S, _sample, name, *self._entry, budget_s)

    def peak(self, threads: int) -> float:
        """Return the GFLOP/s of multiply-adds in registers on `threads` threads, now."""
        return self.ask(ANSWER_WITHIN_S, _peak, threads)

    def ask(self, limit_s: float, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what a function of a module returns in the library's process."""
        try:
            return self._process.call(limit_s, function, *args, **kwargs)
        except TimeoutError:
            because = f"no answer in {limit_s:.0f} s"
        except FunctionProcessEnded as end:
            words = end.ending.last_line
            because = f"its process ended{': ' if words else ''}{words}"
        except FunctionFailed as error:
            because = str(error)
        except WorkbenchError as error:
            because = f"{type(error).__name__}: {error}"
        raise WorkerError(self.peer.name, because.split("\n")[0])

    def close(self) -> None:
        """End the process."""
        self._process.end()


# What follows runs in the process of a library.


def _prepare(peer: str, entry: str, smoke: bool) -> tuple[Array, float]:
    _, fetch, first_s = _prepared(peer, entry, smoke)
    return fetch(), first_s


def _sample(peer: str, entry: str, smoke: bool, budget_s: float) -> float:
    return measure(_prepared(peer, entry, smoke)[0], budget_s).min_s


@lru_cache(maxsize=1)
def _prepared(
    name: str, entry_name: str, smoke: bool
) -> tuple[Callable[[], object], Callable[[], Array], float]:
    """Return what runs an entry, what fetches its result, and the seconds of the first run."""
    peer = OURS if name == OURS.name else PEERS[name]
    entry = next(e for e in ENTRIES if e.name == entry_name)
    arrays = entry.arrays(smoke)
    start = time.perf_counter()
    run, fetch = peer.prepare(entry, arrays)
    run()
    return run, fetch, time.perf_counter() - start


def _peak(threads: int) -> float:
    from workbench.measure.peak import run_peak

    loop = run_peak()

    def timed(_: int) -> float:
        return loop.gflops(measure(loop.run, budget_s=0.01, samples=5).min_s)

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(timed, range(threads)))
