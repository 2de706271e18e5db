"""The libraries that are timed: how each is set up, called and waited for.

Every library runs in a process of its own. In one process they would disturb each other: by thread
pools that keep spinning for a while, LLVMs of different versions, settings of the same name (DEV).
All may use the same number of threads, which the environment of each process sets.

What is timed is a call from inputs to a new result in memory: of a TinyJit for workbench and
tinygrad, of the compiled function for jax and torch.compile. A column of its own has the time of
workbench's kernels without the call.

Sections: The libraries that are timed; Programs in fresh processes with an empty cache; A
process for each library, and the questions it answers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any, ParamSpec, TypeVar

import numpy as np

from workbench.base.errors import WorkbenchError
from workbench.base.function_process import FunctionFailed, FunctionProcess, FunctionProcessEnded
from workbench.base.installation import version
from workbench.bench.suite import ENTRIES, Array, Arrays, Entry
from workbench.measure.timing import measure

# --------------------------------------------------------------------------------------------------
# The libraries that are timed.

Run = Callable[[], object]
Prepared = tuple[Run, Callable[[], Array]]
"""A call that does the work once and returns when it is done; and one that returns the result."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A library: `prepare(entry, arrays)` returns what to time. `how_to_get` installs it."""

    name: str
    package: str
    how_to_get: str
    prepare: Callable[[Entry, Arrays], Prepared]
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def is_installed(self) -> bool:
        """Whether its package can be imported here."""
        return find_spec(self.package) is not None

    @property
    def version(self) -> str:
        return version() if self.package == OURS.package else metadata.version(self.package)

    @property
    def absence(self) -> str:
        """A sentence that says that it is missing, and how to get it."""
        return f"{self.name} is not installed, so it is left out: {self.how_to_get}"

    def environment(self, threads: int, cache: str) -> dict[str, str]:
        """Return the variables of its process: `threads` threads, and a cache of its own."""
        names = ("OMP", "OPENBLAS", "MKL", "VECLIB")
        pools = {f"{name}_NUM_THREADS": str(threads) for name in names}
        caches = {"XDG_CACHE_HOME": cache, "TORCHINDUCTOR_CACHE_DIR": cache}
        own = {"DEV": "", "NPROC": str(threads)} | pools | caches | dict(self.settings)
        return dict(os.environ) | own


def captured(entry: Entry, arrays: Arrays) -> tuple[Any, tuple[Any, ...]]:
    """Return a TinyJit that has captured the kernels of an entry, and the inputs of its calls."""
    from workbench import Tensor, TinyJit

    call = TinyJit(entry.tensor)
    inputs = tuple(Tensor(a).realize() for a in arrays)
    for _ in range(2):  # it runs plainly, then is captured
        call(*inputs)
    return call, inputs


def _workbench(entry: Entry, arrays: Arrays) -> Prepared:
    from workbench.backends.device import Device

    call, inputs = captured(entry, arrays)
    device = Device[Device.DEFAULT]

    def run() -> None:
        call(*inputs)
        device.synchronize()  # a device may queue kernels

    return run, lambda: call(*inputs).numpy()


def _kernels_alone(entry: Entry, arrays: Arrays) -> Prepared:
    call, inputs = captured(entry, arrays)
    result = call(*inputs)  # the launches write to its memory
    return call.launch, lambda: result.numpy()


def _numpy(entry: Entry, arrays: Arrays) -> Prepared:
    def run() -> object:
        return entry.array(np, *arrays)

    return run, lambda: np.asarray(run())


def _torch(entry: Entry, arrays: Arrays, is_compiled: bool = False) -> Prepared:
    torch = import_module("torch")
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    torch.set_grad_enabled(False)
    tensors = [torch.from_numpy(a) for a in arrays]

    def work(*inputs: Any) -> Any:
        return entry.torch(torch, *inputs)

    call = torch.compile(work) if is_compiled else work
    return lambda: call(*tensors), lambda: call(*tensors).numpy()


def _torch_compiled(entry: Entry, arrays: Arrays) -> Prepared:
    return _torch(entry, arrays, is_compiled=True)


def _jax(entry: Entry, arrays: Arrays) -> Prepared:
    jax = import_module("jax")
    inputs = [jax.numpy.asarray(a) for a in arrays]
    call = jax.jit(lambda *xs: entry.array(jax.numpy, *xs))
    return (lambda: call(*inputs).block_until_ready(), lambda: np.asarray(call(*inputs)))


def _tinygrad(entry: Entry, arrays: Arrays) -> Prepared:
    tinygrad = import_module("tinygrad")
    tensors = [tinygrad.Tensor(a).realize() for a in arrays]
    call = tinygrad.TinyJit(lambda *xs: entry.tensor(*xs).realize())
    device = tinygrad.Device[tinygrad.Device.DEFAULT]

    def run() -> None:
        call(*tensors)
        device.synchronize()

    for _ in range(3):  # it runs plainly, then records, then replays
        run()
    return run, lambda: call(*tensors).numpy()


OURS = Peer("workbench", "workbench", "pip install -e . in a checkout", _workbench)
KERNELS_ALONE = "kernels alone"
PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(KERNELS_ALONE, "workbench", OURS.how_to_get, _kernels_alone),
        Peer("numpy", "numpy", "pip install numpy", _numpy),
        Peer("torch", "torch", "pip install torch", _torch),
        Peer("torch.compile", "torch", "pip install torch", _torch_compiled),
        Peer("jax", "jax", "pip install jax", _jax),
        Peer(
            "tinygrad",
            "tinygrad",
            "pip install tinygrad; it needs clang and libLLVM 15 or newer too",
            _tinygrad,
            (("DEV", "CPU:LLVM"),),
        ),
    )
}
"""The libraries that workbench is compared with, in the order of the table's columns."""


# --------------------------------------------------------------------------------------------------
# Programs in fresh processes with an empty cache: the time to a first result.
#
# Their bytecode is kept, as after an install.

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

        Errors: WorkbenchError with the last line that the program printed, or after TIMEOUT_S.
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


# --------------------------------------------------------------------------------------------------
# A process for each library, and the questions it answers.
#
# What a library prints goes to stderr. A library that crashes or hangs loses only its own
# measurements.

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

        Errors: WorkerError, with the reason; also for the other calls.
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
        """Return the result of a function, called in the library's process. Errors: WorkerError."""
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
    """Return a run of an entry, the function that fetches its result, and the seconds of the first
    run with its preparation."""
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
