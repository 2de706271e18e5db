"""The tasks of the worker process: timing kernels in turns, and checking them.

Candidates come as data (see `candidate.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice

import numpy as np

from workbench.backends.compilers.compilers import MachineCode
from workbench.backends.contract import require_code
from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.backends.native.host_memory import HOST
from workbench.backends.native.program import AsmLine
from workbench.base.dtypes import dtypes
from workbench.base.errors import DeviceError, WorkbenchError
from workbench.base.typed import plain
from workbench.check import answer as checking
from workbench.kernel.run import arrays
from workbench.measure.bandwidth import ROUNDS, cold_rounds
from workbench.measure.kernel_time import Calibration, calibration
from workbench.measure.speeds import earlier_speeds
from workbench.measure.timing import Samples, enough, no_garbage_collection, sample_of, timed_rounds
from workbench.worker.benchmark import SETTLED, BenchmarkSettings, is_settled, run_benchmark
from workbench.worker.candidate import KernelData, Run, bind, compiled
from workbench.worker.rows import Row, error_row, parsed
from workbench.worker.sandbox import SandboxedBuffer, judged

Report = Callable[[Row], None]
MOST_AGAIN_S = 0.5
"""Most seconds of a kernel that runs again, to find the buffer that it reads outside of."""


class StopRequest(Exception):
    """The parent has stopped the task."""


class WorkerServer:
    """The worker's side: it stores the data of kernels, and does tasks.

    `report` sends progress to the parent; `is_stopped` says whether the task was stopped.
    """

    def __init__(self, report: Report, is_stopped: Callable[[], bool]):
        self._report, self._is_stopped = report, is_stopped
        self._data: dict[str, KernelData] = {}

    # data

    def hold(
        self, key: str, slots: Sequence[tuple[str, int]], blobs: Sequence[bytearray | memoryview]
    ) -> None:
        """Store the buffers of a kernel, by slot; an empty blob is for an output of zeros."""
        buffers = []
        for (name, size), blob in zip(slots, blobs, strict=True):
            dtype = dtypes.named(name)
            zeros = np.zeros(0 if blob else size, dtype.numpy)
            values = np.frombuffer(blob, dtype.numpy) if blob else zeros
            buffers.append(Buffer.of(HOST, dtype, values))
        self._data[key] = KernelData(buffers)

    def drop(self, key: str) -> None:
        """Drop data."""
        self._data.pop(key, None)

    # tasks

    def do(self, task: Row) -> Row:
        """Return the result of a task, whose "do" is the name of the method that does it."""
        tasks = {
            "measure": self.measure,
            "check": self.check,
            "where": self.where,
            "compile": self.compile,
            "passes": self.passes,
            "benchmark": self.benchmark,
            "run": self.run,
        }
        return tasks[task["do"]](task)

    def measure(self, task: Row) -> Row:
        """Return samples of every kernel, warm and, if "cold" is true, cold, taken in turns.

        A kernel runs on its own "data", if it names some, else on those of the task. A kernel that
        fails has an error instead. "shares" are those of its cores that a kernel had in each sample
        (see `Samples`); timing goes on until each has as many undisturbed ones as "samples" says. A
        stopped task returns the samples so far. Two fields may be
        left out: "silent_s", the limit of a first run, and "settled": timing ends early if the
        error of each median is at most this share of it. Kernels on this machine's processor also
        get "busy", from one calibration for all of them, if the machine's speeds are known.
        """
        runs: dict[str, Run] = {}
        rows: list[Row] = [{} for _ in task["kernels"]]
        for place, kernel in enumerate(task["kernels"]):
            try:
                self._continue(place, len(rows), "compiling")
                key = kernel.get("data", task.get("data"))
                source, run = bind(kernel, self._data[key].on(kernel["device"]))
                rows[place]["threads"] = source.launch.threads
                self._continue(place, len(rows), "first run", task.get("silent_s"))
                start = time.perf_counter()
                first = sample_of(run)
                if time.perf_counter() - start < task["budget_s"]:
                    runs[str(place)] = run
                else:  # a slow kernel is not run again: its first run is the sample
                    rows[place] |= _row(Samples.of([first]), "samples", "shares")
            except StopRequest:
                return {"kernels": rows}
            except Exception as error:
                rows[place]["error"] = error_row(error)
        with no_garbage_collection(), suppress(StopRequest):
            self._warm(runs, rows, task, joint_calibration(task["kernels"], rows))
            if task["cold"]:
                self._cold(runs, rows)
        return {"kernels": rows}

    def _warm(
        self, runs: Mapping[str, Run], rows: list[Row], task: Row, calibrated: Calibration | None
    ) -> None:
        if not runs:
            return

        def before() -> None:
            self._go_on()
            if calibrated:
                calibrated.take()

        stop = time.perf_counter() + task["budget_s"]
        share = task.get("settled", SETTLED)
        for number, times in enumerate(timed_rounds(runs, before), 1):
            for name, samples in times.items():
                rows[int(name)] |= _row(samples, "samples", "shares")
                if calibrated and _is_here(task["kernels"][int(name)]):
                    rows[int(name)]["busy"] = calibrated.busy
            self._continue(min(number, task["samples"]), task["samples"], "timing, warm")
            is_over = time.perf_counter() > stop or enough(times, task["samples"])
            if is_over or all(is_settled(s, share) for s in times.values()):
                break

    def _cold(self, runs: Mapping[str, Run], rows: list[Row]) -> None:
        turns = islice(cold_rounds(runs, self._go_on), ROUNDS)
        self._continue(0, ROUNDS, "timing, cold")
        for number, times in enumerate(turns, 1):
            for name, samples in times.items():
                rows[int(name)] |= _row(samples, "cold", "cold_shares")
            self._continue(number, ROUNDS, "timing, cold")

    def benchmark(self, task: Row) -> Row:
        """Return the benchmark of one candidate against another (see `run_benchmark`)."""
        rules = BenchmarkSettings(**task["rules"] | {"digests": tuple(task["rules"]["digests"])})
        self._continue(0, 1, "benchmark")
        return run_benchmark(
            task["kernel"], task["against"], self._data[task["data"]], rules,
            lambda: self._continue(0, 1, "benchmark"),
            lambda seconds: self._continue(0, 1, "first run", seconds),
        )  # fmt: skip

    def run(self, task: Row) -> Row:
        """Run a kernel "times" times on its data; return the mean seconds of a run, and the bytes
        of its outputs as "blobs". "silent_s" limits all runs together, "names" name the arguments.

        Errors: WorkbenchError if it writes to other memory.
        """
        originals, slots = self._data[task["data"]].buffers, task["outputs"]
        device = Device.canonical(task["kernel"]["device"])
        guards = [SandboxedBuffer(b, device, slot in slots) for slot, b in enumerate(originals)]
        self._continue(0, 2, "compiling")
        _, run = bind(task["kernel"], [guard.buffer for guard in guards])
        self._continue(1, 2, "running", task["silent_s"])
        start = time.perf_counter()
        for _ in range(task["times"]):
            run()
        seconds = (time.perf_counter() - start) / task["times"]
        names = zip(task["names"], guards, strict=True)
        problems = [guard.spoilt(name) for name, guard in names]
        if any(problems):
            problem = " and ".join(filter(None, problems))
            because = "it is written by hand, and no check could show that before"
            raise WorkbenchError(f"it {problem}", because)
        blobs = [guards[slot].buffer.to_numpy().view(np.uint8).data for slot in slots]
        return {"seconds": seconds, "blobs": blobs}

    def check(self, task: Row) -> Row:
        """Return whether a kernel's answer is that of "original", the un-optimised kernel, which is
        interpreted. Without "original", return its "outputs" as "blobs", texts about what it writes
        to other memory ("problem") and reads there ("reads"; of edited source), and whether it may
        run again ("is_quick"). "silent_s", which may be left out, limits its run."""
        originals = self._data[task["data"]].buffers
        original = parsed(task["original"]) if "original" in task else None
        slots = task["outputs"] if original is None else original.outputs
        device = Device.canonical(task["kernel"]["device"])
        guards = [SandboxedBuffer(b, device, slot in slots) for slot, b in enumerate(originals)]
        buffers = [guard.buffer for guard in guards]
        self._continue(0, 3, "compiling")
        _, run = bind(task["kernel"], buffers)
        self._continue(1, 3, "running", task.get("silent_s"))
        begin = time.perf_counter()
        run()
        seconds = time.perf_counter() - begin
        self._continue(2, 3, "comparing with the reference interpreter")
        problem, reads = _spoilt(guards), ""
        is_edited = task["kernel"].get("source") is not None
        if is_edited and not problem and seconds < MOST_AGAIN_S:
            problem, reads = _run_again(run, guards, slots)
        if original is None:
            outputs = [buffers[slot].to_numpy().view(np.uint8).data for slot in slots]
            is_quick = seconds < MOST_AGAIN_S
            return {"problem": problem, "blobs": outputs, "reads": reads, "is_quick": is_quick}
        if problem:
            return {"ok": False, "text": f"WRONG: the program {problem}"}
        inputs = arrays(originals, slots)
        actual = [buffers[slot].to_numpy() for slot in slots]
        outcome = checking.check(original, slots, inputs, actual)
        ok, text = judged(bool(outcome.ok), str(outcome), reads)
        return {"ok": ok, "text": text}

    def where(self, task: Row) -> Row:
        """Return where a kernel accesses other memory than its own, in words ("": not known): its
        edited source runs again, with bounds checks. The fields are those of `check`."""
        kernel, buffers = task["kernel"], self._data[task["data"]].buffers
        device, sizes = Device.canonical(kernel["device"]), [b.size for b in buffers]
        checked = Device[device].bounds_checked(kernel["source"], sizes)
        if checked is None:
            return {"where": ""}
        guards = [SandboxedBuffer(b, device, is_output=False) for b in buffers]
        self._continue(0, 1, "looking for the line", task.get("silent_s"))
        with suppress(WorkbenchError):  # checks that do not compile, such as in another function
            _, run = bind({**kernel, "source": checked.text}, [guard.buffer for guard in guards])
            run()
        texts = []
        for slot, name in sorted(checked.names.items()):
            note = guards[slot].noted()
            if note is not None:
                line, index = note
                outside = f"is outside of its {sizes[slot]:,} elements"
                texts.append(f"line {line}: {name}[{index}] {outside}")
        return {"where": " and ".join(texts)}

    def compile(self, task: Row) -> Row:
        """Return the machine code of a kernel, which does not run: its lines, each with its line of
        the source; a device without machine code has none. "code" is the MachineCode, with its
        resources, for an NVIDIA GPU and for a machine that is not here, else None. Of edited IR,
        "source" is the text that it is rendered to; without a compiler it has no machine code."""
        self._continue(0, 1, "compiling", task.get("silent_s"))
        source, program = compiled(task["kernel"])
        is_ir = "ir" in task["kernel"]
        row: Row = {"assembly": [], "code": None, "source": source.text if is_ir else None}
        with suppress(*([DeviceError] if is_ir else [])):
            require_code(program)
            lines: Sequence[AsmLine] = getattr(program, "assembly_lines", ())
            code: MachineCode | None = getattr(program, "machine_code", None)
            row["assembly"] = [[line.text, line.source_line] for line in lines]
            row["code"] = None if code is None else plain(code)
        return row

    def passes(self, task: Row) -> Row:
        """Return the passes of a device's compiler that change a kernel: their names, their titles
        and the lines after each. Errors: DeviceError if the compiler does not list them."""
        self._continue(0, 1, "asking the compiler")
        _, program = compiled(task["kernel"])
        ask = getattr(program, "passes", None)
        if ask is None:
            device = task["kernel"]["device"]
            because = f"the compiler of {device} does not say them"
            raise DeviceError("there are no passes to show", because)
        return {"passes": [list(row) for row in ask()]}

    def _continue(self, step: int, total: int, text: str, silent_s: float | None = None) -> None:
        """Report progress, and the seconds until the next report, if they are known: the parent
        waits no longer. Errors: StopRequest."""
        message = {"done": step, "total": total, "text": text, "silent_s": silent_s}
        self._report(message)
        self._go_on()

    def _go_on(self) -> None:
        if self._is_stopped():
            raise StopRequest


def _row(samples: Samples, seconds: str, shares: str) -> Row:
    return {seconds: samples.samples_s, shares: samples.shares}


def _spoilt(guards: Sequence[SandboxedBuffer]) -> str:
    """Return a text about what a program wrote to other memory than its outputs; "" for nothing."""
    problems = [guard.spoilt(f"p{slot}") for slot, guard in enumerate(guards)]
    return " and ".join(filter(None, problems))


def _run_again(
    run: Run, guards: Sequence[SandboxedBuffer], outputs: Sequence[int]
) -> tuple[str, str]:
    """Return a text about what a kernel writes to other memory, and one about the buffers outside
    of which it reads: its outputs change with what stands there ("": nothing). Of a kernel whose
    outputs change by themselves that is not known."""
    before = [guards[slot].buffer.to_numpy().copy() for slot in outputs]
    problems = []

    def outputs_with(other: int | None) -> list[bytes]:
        for slot, guard in enumerate(guards):
            guard.renew(other_strips=slot == other)
        run()
        problems.append(_spoilt(guards))
        return [guards[slot].buffer.to_numpy().tobytes() for slot in outputs]

    first = outputs_with(None)
    is_steady = outputs_with(None) == first
    places = [s for s in range(len(guards)) if is_steady and outputs_with(s) != first]
    for slot, array in zip(outputs, before, strict=True):
        guards[slot].buffer.copy_in(array)
    buffers = " and ".join(f"buffer p{slot}" for slot in places)
    reads = f"the program reads outside of {buffers}" if places else ""
    return next(filter(None, problems), ""), reads


def joint_calibration(kernels: Sequence[Row], rows: Sequence[Row]) -> Calibration | None:
    """Return a calibration for a measurement, on as many threads as any of its kernels uses on this
    machine's processor; None without such a kernel, or if the machine's speeds are not known."""
    here = [
        r["threads"] for k, r in zip(kernels, rows, strict=True) if "threads" in r and _is_here(k)
    ]
    rest = earlier_speeds() if here else None
    return None if rest is None else calibration(rest, max(here))


def _is_here(kernel: Row) -> bool:
    return bool(Device[kernel["device"]].is_processor)
