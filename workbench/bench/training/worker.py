"""A process that trains a model in one library, and answers how long a step took.

    python -m workbench.bench.training.worker LIBRARY MODEL time|memory

started by `LibraryProcess`, never by hand. Each line of input is a question, each line of output an
answer in JSON; what a library prints goes to stderr.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

from workbench.base.errors import WorkbenchError
from workbench.bench.peers import Peer

WARM = 3
"""Steps before any is timed, beside the first: a TinyJit captures its function in the second."""


class LibraryProcess:
    """A library in a process of its own, which takes a step when it is asked.

    Errors: WorkbenchError, with the last line that it said, where the process has ended.
    """

    def __init__(
        self, peer: Peer, model: str, what: str, threads: int, cache: str, device: str
    ):
        self._peer, self._errors = peer, tempfile.TemporaryFile()
        environment = peer.environment(threads, cache)
        if device:
            environment["DEV"] = device
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, peer.name, model, what],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            text=True, env=environment,
        )  # fmt: skip

    def ask(self) -> Any:
        """Return the answer to the next question."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None
        line = self._process.stdout.readline()
        if not line:
            raise self._ended()
        return json.loads(line)

    def seconds(self) -> float:
        """Return how long a step took."""
        return float(self.ask())

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                stream.close()

    def _ended(self) -> WorkbenchError:
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        words = [line.strip() for line in lines if line.strip()]
        return WorkbenchError(
            f"{self._peer.name} failed", words[-1] if words else "its process ended"
        )


def main(library: str, name: str, what: str) -> None:
    """Answer a first time about the first step, or about memory, then with seconds of a step."""
    from workbench.bench.training.memory import memory_of
    from workbench.bench.training.models import MODELS, WIDE_MODELS
    from workbench.bench.training.steps import step_of

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    model = (MODELS | WIDE_MODELS)[name]

    def answer(value: Any) -> None:
        print(json.dumps(value), file=answers, flush=True)

    if what == "memory":
        sys.stdin.readline()
        answer(memory_of(library, model))
        return
    step, kernels = step_of(library, model)
    sys.stdin.readline()
    start = time.perf_counter()
    step()
    first_s = time.perf_counter() - start
    losses = [step() for _ in range(WARM)]
    answer({"first_s": first_s, "loss": losses[1], "kernels": kernels()})
    while sys.stdin.readline():
        start = time.perf_counter()
        step()
        answer(time.perf_counter() - start)


if __name__ == "__main__":
    main(*sys.argv[1:])
