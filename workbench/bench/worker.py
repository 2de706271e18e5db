"""A process for each library, and the questions it answers.

    python -m workbench.bench.worker NAME     started by Worker, never by hand

Questions and answers are pickled tuples on the standard streams; what a library prints goes to
stderr. A library that crashes or hangs loses only its own measurements.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any

from workbench.base.errors import WorkbenchError
from workbench.bench.peers import OURS, PEERS, Peer
from workbench.bench.suite import ENTRIES, Array
from workbench.measure.timing import measure

ANSWER_WITHIN_S = 180.0
ENDED = ("error", "its process ended")


class WorkerError(WorkbenchError):
    """The library `name` did not answer, or answered with an error."""

    def __init__(self, name: str, because: str):
        super().__init__(f"{name} failed", because)
        self.name = name


class PeerProcess:
    """A running process of one library; close it, or use it in a `with` block."""

    def __init__(self, peer: Peer, threads: int, cache: str):
        self.peer = peer
        self._output = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "workbench.bench.worker", peer.name],
            env=peer.environment(threads, cache),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
        )
        self._answers: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> PeerProcess:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def prepare(self, entry: str, smoke: bool) -> tuple[Array, float]:
        """Return the result of an entry, and the seconds until it was there the first time.

        Errors: WorkerError, with what the library said; so for all other questions.
        """
        result, first_s = self._ask("prepare", entry, smoke)
        return result, first_s

    def sample(self, budget_s: float) -> float:
        """Return the warm seconds of one run of the prepared entry: the least of a few.

        Other processes interrupt a library of many threads more often than one of few. The least
        time is that of an undisturbed run.
        """
        return float(self._ask("sample", budget_s))

    def peak(self, threads: int) -> float:
        """Return the GFLOP/s of multiply-adds in registers on `threads` threads, now."""
        return float(self._ask("peak", threads))

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._output):
            if stream is not None:
                stream.close()

    def _ask(self, *question: Any) -> Any:
        assert self._process.stdin is not None
        try:
            pickle.dump(question, self._process.stdin)
            self._process.stdin.flush()
            kind, answer = self._answers.get(timeout=ANSWER_WITHIN_S)
        except queue.Empty:
            kind, answer = "error", f"no answer in {ANSWER_WITHIN_S:.0f} s"
        except OSError:
            kind, answer = ENDED
        if (kind, answer) == ENDED:
            answer += self._last_words()
        if kind == "error":
            raise WorkerError(self.peer.name, answer)
        return answer

    def _listen(self) -> None:
        assert self._process.stdout is not None
        try:
            while True:
                self._answers.put(pickle.load(self._process.stdout))
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            self._answers.put(ENDED)

    def _last_words(self) -> str:
        """Return the last line that the process wrote to stderr before it ended."""
        self._process.wait()
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").split("\n")
        words = [line.strip() for line in lines if line.strip()]
        return f": {words[-1]}" if words else ""


class _PeerServer:
    """The other side: holds what was prepared, and answers."""

    def __init__(self, peer: Peer):
        self._peer = peer
        self._run: Callable[[], object] = lambda: None

    def prepare(self, name: str, smoke: bool) -> tuple[Array, float]:
        entry = next(e for e in ENTRIES if e.name == name)
        arrays = entry.arrays(smoke)
        start = time.perf_counter()
        self._run, fetch = self._peer.prepare(entry, arrays)
        self._run()
        first_s = time.perf_counter() - start
        return fetch(), first_s

    def sample(self, budget_s: float) -> float:
        return measure(self._run, budget_s).min_s

    def peak(self, threads: int) -> float:
        from workbench.measure.peak import run_peak

        loop = run_peak()

        def timed(_: int) -> float:
            return loop.gflops(measure(loop.run, budget_s=0.01, samples=5).min_s)

        with ThreadPoolExecutor(threads) as pool:
            return sum(pool.map(timed, range(threads)))


def main(name: str) -> None:
    """Answer questions about the library `name` until there are no more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    server = _PeerServer(OURS if name == OURS.name else PEERS[name])
    while True:
        try:
            verb, *arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = ("answer", getattr(server, verb)(*arguments))
        except Exception as error:
            answer = ("error", f"{type(error).__name__}: {error}".split("\n")[0])
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
