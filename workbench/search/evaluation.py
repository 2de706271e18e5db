"""Measurement of the candidates of a search: in the worker process, or on an executor.

In the worker a candidate runs on the kernel's own data, which are sent once. On an executor, which
may use other machines, it runs on seeded random data that are generated there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from workbench.backends.contract import require_room
from workbench.backends.memory import Buffer
from workbench.base.errors import WorkbenchError
from workbench.check.answer import CheckResult
from workbench.ir.node.uop import UOp
from workbench.ir.text.printer import to_text
from workbench.kernel.run import CheckRun
from workbench.measure.timing import Samples
from workbench.pipeline import build
from workbench.search.moves import Measured, Patience, SearchStopped
from workbench.worker.benchmark import BenchmarkSettings
from workbench.worker.candidate import row_of
from workbench.worker.client import TaskStopped, Worker
from workbench.worker.workers import benchmark_text

QUICK = (0.06, 9)
"""Seconds and samples for the first measurement of a candidate."""
THOROUGH = (0.2, 20)
"""Seconds and samples for a candidate that is measured again."""
START_S = 20.0
"""Seconds that a process may take to start."""
COMPILE_S = 10.0
"""Seconds that a candidate may take to compile."""
MARGIN_S = 2.0
"""Seconds after the search's end for which a worker's answer is awaited."""
LATE_S = 0.5
"""Seconds after the search's end for which an executor's answer is awaited."""
FOREVER = 1e9
START_SHARE = 0.35
"""Share of the budget that each start may take, even if another start has taken much of it: without
a timed candidate a search is useless."""
Array = np.ndarray[Any, Any]
Row = dict[str, Any]
Clock = Callable[[], float]
"""A function that returns seconds since some moment."""


@dataclass(slots=True)
class Answers:
    """The verdicts on the results of candidates: each is compared, once, with the meaning of the
    expression. `check` returns the CheckRun of the kernel, `outputs` the results of a candidate in
    it."""

    check: Callable[[], CheckRun]
    outputs: Callable[[UOp, CheckRun], Sequence[Array]]
    verdicts: dict[UOp, CheckResult] = field(default_factory=dict)
    _run: CheckRun | None = None

    def problem(self, candidate: UOp) -> str:
        """Return what is wrong with the result of a candidate; "" if it is right."""
        try:
            if candidate not in self.verdicts:
                self._run = self._run or self.check()
                answer = self.outputs(candidate, self._run)
                self.verdicts[candidate] = self._run.verdict(answer)
        except WorkbenchError as error:
            return f"{error.what}: {error.because}"
        verdict = self.verdicts[candidate]
        return "" if verdict.ok else str(verdict)

    def words(self, candidate: UOp) -> str:
        """Return the verdict on a candidate as text; "" if its result was not compared."""
        return str(self.verdicts.get(candidate, ""))


@dataclass(slots=True)
class _Measuring:
    """The base of both ways to measure: the kernel, the end of the search by its clock, the limit
    of one run in seconds, and the digests of measured programs."""

    kernel: UOp
    device: str
    ends_at: float
    most_s: float
    rules_off: tuple[str, ...] = ()
    clock: Clock = time.monotonic
    digests: list[str] = field(default_factory=list)
    start_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.start_s = START_SHARE * (self.ends_at - self.clock())

    def row(self, kernel: UOp) -> Row:
        """Return a kernel as plain data for another process."""
        return row_of(kernel, self.device, self.rules_off)

    def settings(self, patience: Patience | None, thorough: bool) -> BenchmarkSettings:
        """Return the limits of a measurement. A `thorough` one repeats programs that were measured
        before."""
        budget_s, samples = THOROUGH if thorough else QUICK
        left_s = max(0.2, self.ends_at - self.clock())
        digests = () if thorough else tuple(self.digests)
        if patience is not None:
            limit_s, hopeless = (min(patience.first_s, self.most_s, left_s), patience.ratio)
        else:
            limit_s, hopeless = left_s if thorough else max(0.2, self.start_s), FOREVER
        return BenchmarkSettings(budget_s, samples, limit_s, hopeless, digests, left_s)

    def read(self, answer: Row) -> Measured:
        """Return the measurement of a candidate from an answer."""
        if "error" in answer:
            error = answer["error"]
            words = filter(None, (error["what"], error["because"]))
            return Measured(error=": ".join(words))
        if "same" in answer:
            return Measured(same=answer["same"])
        self.digests.append(answer["digest"])
        if "over" in answer:
            text = f"given up: its first run took over {answer['over']:.3g} s"
            return Measured(digest=answer["digest"], error=text)
        # The least time is that of the least disturbed run; where other programs had the cores in
        # all runs but one, it is the median time for which it had them.
        samples, others = (
            Samples(tuple(answer[name]), shares=tuple(answer.get(shares, ())))
            for name, shares in (("samples", "shares"), ("against", "against_shares"))
        )
        return Measured(
            samples.min_s,
            samples.min_s / others.min_s,
            answer["digest"],
            spread=samples.spread,
            is_sure=samples.had is None and others.had is None,
        )


@dataclass(slots=True)
class OnWorker(_Measuring):
    """Measures in a worker process. `data` returns the kernel's buffers by slot, and `key` is their
    name in the worker. `stop` is called before each task, and at each progress report of one: the
    worker can only be stopped while it has a task."""

    worker: Worker = field(default_factory=Worker)
    data: Callable[[], Sequence[Buffer]] = tuple
    key: str = "search"
    stop: Callable[[], bool] = lambda: False

    def __call__(
        self, against: UOp, kernels: Sequence[UOp], patience: Patience | None, thorough: bool
    ) -> Iterator[Measured]:
        for kernel in kernels:
            yield self._one(against, kernel, self.settings(patience, thorough))

    def _one(self, against: UOp, kernel: UOp, rules: BenchmarkSettings) -> Measured:
        quiet_s = rules.limit_s + COMPILE_S + rules.budget_s
        if self.worker.pid is None:
            quiet_s += START_S
        else:  # no longer than the search
            left_s = self.ends_at - self.clock()
            quiet_s = max(1.0, min(quiet_s, max(left_s, rules.limit_s) + MARGIN_S))
        task = {
            "do": "benchmark", "data": self.key, "kernel": self.row(kernel),
            "against": self.row(against), "rules": asdict(rules),
        }  # fmt: skip
        try:
            answer = self._ask(task, self.data, quiet_s)
        except WorkbenchError as error:  # the next task starts a new process
            return Measured(error=f"{error.what}: {error.because}")
        return self.read(answer)

    def outputs(self, candidate: UOp, check: CheckRun) -> list[Array]:
        """Return the results of a candidate in a check. Errors: those of a worker."""
        slots = self.kernel.outputs
        task = {
            "do": "check", "data": f"{self.key} check", "outputs": slots,
            "kernel": row_of(candidate, self.device, self.rules_off),
        }  # fmt: skip
        reply = self._ask(task, lambda: check.buffers, START_S + COMPILE_S)
        if reply["problem"]:
            because = "it writes to other memory"
            raise WorkbenchError(f"the program {reply['problem']}", because)
        return [
            np.frombuffer(blob, check.buffers[slot].dtype.numpy)
            for slot, blob in zip(slots, reply["blobs"], strict=True)
        ]

    def _ask(self, task: Row, data: Callable[[], Sequence[Buffer]], quiet_s: float) -> Row:
        """Return the worker's answer to a task on `data`. Errors: SearchStopped; those of a
        worker."""
        if self.stop():
            raise SearchStopped
        slots = self.kernel.outputs
        try:
            self.worker.hold(
                task["data"], lambda: [(b, slot in slots) for slot, b in enumerate(data())]
            )
            return self.worker.ask(task, self._stop_if_asked, quiet_s)
        except TaskStopped:
            raise SearchStopped from None

    def _stop_if_asked(self, progress: Row) -> None:
        if self.stop():
            self.worker.stop()


@dataclass(slots=True)
class OnExecutor(_Measuring):
    """Measures on any `concurrent.futures.Executor`, several candidates at a time. Results to check
    are computed in this process, which knows the meaning of the expression."""

    executor: Executor | None = None

    def outputs(self, candidate: UOp, check: CheckRun) -> list[Array]:
        """Return the results of a candidate in a check. Errors: WorkbenchError."""
        program = build(candidate, self.device).program
        require_room(program)
        outputs = [check.buffers[slot] for slot in self.kernel.outputs]
        for buffer in outputs:
            buffer.copy_in(np.zeros(buffer.nbytes, np.uint8))
        program(check.buffers)
        return [buffer.to_numpy() for buffer in outputs]

    def __call__(
        self, against: UOp, kernels: Sequence[UOp], patience: Patience | None, thorough: bool
    ) -> Iterator[Measured]:
        rules = self.settings(patience, thorough)
        shared = {"kernel": to_text(self.kernel), "against": self.row(against)}
        tasks = [
            json.dumps(shared | {"candidate": self.row(kernel), "rules": asdict(rules)})
            for kernel in kernels
        ]
        pending = [self._submit(task) for task in tasks]
        late = self.clock() + rules.limit_s + COMPILE_S + rules.budget_s + START_S
        late = min(late, self.ends_at + LATE_S)  # no longer than the search
        try:
            for future in pending:
                yield self._answer(future, late)
        finally:
            for future in pending:
                future.cancel()

    def _submit(self, task: str) -> Future[str]:
        assert self.executor is not None
        try:
            return self.executor.submit(benchmark_text, task)
        except Exception as error:  # the executor is shut down, or broken
            failed: Future[str] = Future()
            failed.set_exception(error)
            return failed

    def _answer(self, future: Future[str], late: float) -> Measured:
        try:
            waits_s = max(0.0, late - self.clock())
            text = future.result(timeout=waits_s)
            return self.read(json.loads(text))
        except TimeoutError:
            waited = f"in {waits_s:.3g} s" if waits_s else "before the time was over"
            return Measured(error=f"no answer came from the executor {waited}")
        except Exception as error:  # any error of a user's executor
            return Measured(error=f"the executor failed: {type(error).__name__}: {error}")
