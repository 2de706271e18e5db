"""Programs in fresh processes with an empty cache: the time to a first result.

As after an install, their bytecode is kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from workbench.base.errors import WorkbenchError
from workbench.bench.peers import Peer

TIMEOUT_S = 120
_PROGRAM = """
import json, os, sys, time
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
start = time.perf_counter()
{imports}
times = [time.perf_counter() - start]
{setup}
for work in {works!r}:
    code = compile(work, "work", "exec")
    start = time.perf_counter()
    exec(code)
    times.append(time.perf_counter() - start)
print(json.dumps(times), file=answers)
"""


@dataclass(frozen=True, slots=True)
class FreshProcess:
    """A program of one library: `imports` are timed, then each of `works`; `setup` is not."""

    peer: Peer
    imports: str
    setup: str = ""
    works: tuple[str, ...] = ()


class Processes:
    """Runs programs, each in a process and with a cache folder of its own."""

    def __init__(self, threads: int, bytecode: str):
        self._threads, self._bytecode = threads, bytecode

    def run(self, program: FreshProcess) -> list[float]:
        """Return the seconds that the imports and each of the works took.

        Errors: WorkbenchError with the last line that the program said.
        """
        text = _PROGRAM.format(imports=program.imports, setup=program.setup, works=program.works)
        with tempfile.TemporaryDirectory(prefix="workbench-bench-") as cache:
            environment = program.peer.environment(self._threads, cache)
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            environment["PYTHONPYCACHEPREFIX"] = self._bytecode
            try:
                process = subprocess.run(
                    [sys.executable, "-c", text],
                    env=environment, capture_output=True, text=True, timeout=TIMEOUT_S,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise WorkbenchError(
                    f"{program.peer.name} failed", f"no answer in {TIMEOUT_S} s"
                ) from None
        if process.returncode:
            lines = process.stderr.strip().split(os.linesep)
            raise WorkbenchError(f"{program.peer.name} failed", lines[-1])
        times: list[float] = json.loads(process.stdout)
        return times
