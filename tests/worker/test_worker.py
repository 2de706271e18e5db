"""The worker process: whatever a program does, the parent goes on and nothing stays behind."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest

from tests.support import PATIENCE_S, ROOT, eventually
from tests.tools.processes import children, is_alive
from tests.viz.support import array, matmul
from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError
from workbench.kernel.kernel import Kernel
from workbench.measure.timing import TRIES
from workbench.viz import explore
from workbench.worker import client
from workbench.worker.client import TaskStopped, Worker, WorkerEnded
from workbench.worker.server import WorkerServer
from workbench.worker.workers import LocalWorker

NEEDS_C = pytest.mark.skipif(not Device.available("C"), reason="no C compiler")


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker() as instance:
        yield instance
    assert instance.pid is None


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return matmul().kernels[0]


def hold(worker: Worker, kernel: Kernel, key: str = "data") -> str:
    def make() -> list[Any]:
        written = kernel.original.outputs
        buffers = kernel.data.buffers(kernel.original, "LLVM")
        return [(b, slot in written) for slot, b in enumerate(buffers)]

    worker.hold(key, make)
    return key


def sent(kernel: Kernel, source: str | None = None, device: str = "LLVM") -> Any:
    return {
        "ast": kernel.to_text(), "device": device, "source": source, "rules_off": [],
    }  # fmt: skip


def check(
    worker: Worker,
    kernel: Kernel,
    source: str,
    progress: client.Progress | None = None,
    silent_s: float | None = None,
) -> Any:
    task = {
        "do": "check", "data": hold(worker, kernel), "kernel": sent(kernel, source, "C"),
        "original": kernel.to_text(), "silent_s": silent_s,
    }  # fmt: skip
    return worker.ask(task, progress, quiet_s=PATIENCE_S)


def measured(worker: Worker, *forms: Any, kernel: Kernel, cold: bool = False) -> Any:
    task = {
        "do": "measure", "data": hold(worker, kernel), "kernels": list(forms),
        "cold": cold, "budget_s": PATIENCE_S, "samples": 8,
    }  # fmt: skip
    return worker.ask(task, quiet_s=PATIENCE_S)["kernels"]


def inside(kernel: Kernel, statement: str) -> str:
    """Return the C of a kernel with a statement before all others."""
    text = kernel.compile("C").source
    body = text.index("{", text.index(f"void {kernel.name}(")) + 1
    return f"{text[:body]}\n{statement}\n{text[body:]}"


def test_kernels_are_timed_in_turns(worker: Worker, kernel: Kernel) -> None:
    forms = [sent(kernel), sent(kernel.optimized()), sent(kernel, device="PYTHON")]
    rows = measured(worker, *forms, kernel=kernel, cold=True)
    for row in rows:
        assert 1 <= len(row["samples"]) <= 8 * TRIES and min(row["samples"]) > 0
        assert row["cold"]
    assert [row["threads"] for row in rows] == [1, 1, 1]


def test_one_that_fails_does_not_stop_the_others(worker: Worker, kernel: Kernel) -> None:
    bad = sent(kernel, "define void @nonsense(")
    rows = measured(worker, bad, sent(kernel), kernel=kernel)
    assert rows[0]["error"]["what"].startswith("cannot compile")
    assert rows[1]["samples"] and "error" not in rows[1]


@NEEDS_C
def test_edited_source_is_checked(worker: Worker, kernel: Kernel) -> None:
    good = check(worker, kernel, inside(kernel, "// the same"))
    assert good["ok"] and good["text"].startswith("right")
    wrong = check(worker, kernel, inside(kernel, "return;"))
    assert not wrong["ok"] and wrong["text"].startswith("WRONG")
    with pytest.raises(WorkbenchError, match="cannot compile"):
        check(worker, kernel, inside(kernel, "not C at all"))
    for statement, says in (
        ("p0[24] = 1;", "writes outside of buffer p0"),
        ("p0[-1] = 1;", "writes outside of buffer p0"),
        ("((float *)p1)[0] = 99;", "changes buffer p1, an input"),
        ("p1 = p1 + 600;", "the program reads outside of buffer p1"),
        ("p1 = p1 - 100;", "the program reads outside of buffer p1"),
        ("p0[24] = p1[600];", "writes outside of buffer p0"),  # what stands there, too: NaN
    ):
        source = kernel.compile("C").source
        begin = source.index("for (long g0")
        bad = check(worker, kernel, source[:begin] + statement + source[begin:])
        assert not bad["ok"] and says in bad["text"]


@NEEDS_C
def test_an_answer_that_depends_on_memory_outside_is_wrong(worker: Worker, kernel: Kernel) -> None:
    """Also where it is right beside the first contents of that memory, which are no numbers."""
    source = kernel.compile("C").source
    end = source.rindex("}")
    by_chance = source[:end] + "if (p1[600] == 0.0f) p0[0] = 7;" + source[end:]
    verdict = check(worker, kernel, by_chance)
    assert not verdict["ok"]
    assert verdict["text"] == "WRONG: the program reads outside of buffer p1"


@NEEDS_C
def test_the_line_of_an_access_outside_is_named(worker: Worker, kernel: Kernel) -> None:
    """Of single elements, of lanes, and in an index; it is that of the edited text."""
    source = kernel.compile("C").source
    begin = source.index("for (long g0")
    line = source.count("\n", 0, begin) + 2
    lanes = "typedef float pair __attribute__((vector_size(8), aligned(4), may_alias));"

    def where(text: str) -> Any:
        task = {"do": "where", "data": hold(worker, kernel), "kernel": sent(kernel, text, "C")}
        return worker.ask(task)["where"]

    for statement, says in (
        ("p0[24] = 1;", "p0[24]"),
        ("p0[-1] = p1[0]; // p1[", "p0[-1]"),
        ("p0[(long)p1[0] * 0 + 25] = 1;", "p0[25]"),
        ("*(pair *)&p0[23] = (pair){1, 2};", "p0[23]"),
        ("p0[1L << 40] = 1;", f"p0[{1 << 40}]"),
    ):
        text = f"{source[:begin]}{lanes}\n{statement}\n{source[begin:]}"
        assert where(text) == f"line {line}: {says} is outside of its 24 elements"
    last = source.count("\n", 0, source.index("p1[", begin)) + 2
    moved = f"{source[:begin]}p1 = p1 + 600;\n{source[begin:]}"
    assert where(moved).startswith(f"line {last}: p1[600] is outside")
    assert where(source) == ""
    end = "const float *a = &p0[24], *b = (const float *)&p0[24]; if (p1 == a || p1 == b) return;"
    assert where(f"{source[:begin]}{end}\n{source[begin:]}") == "", "no access"
    with pytest.raises(WorkerEnded):
        where(inside(kernel, "*(volatile int *)8 = 1;"))


@NEEDS_C
def test_a_crash_is_told_and_the_next_task_works(worker: Worker, kernel: Kernel) -> None:
    with pytest.raises(WorkerEnded) as caught:
        check(worker, kernel, inside(kernel, "*(volatile int *)8 = 1;"))
    assert "SIGSEGV" in caught.value.because
    assert caught.value.hint == "look for an index outside its buffer"
    with pytest.raises(WorkerEnded, match="SIGABRT") as caught:
        check(worker, kernel, inside(kernel, "extern void abort(void); abort();"))
    assert caught.value.hint == "", "there are many reasons"
    assert check(worker, kernel, inside(kernel, ""))["ok"]


@NEEDS_C
@pytest.mark.parametrize(
    ("name", "what", "because", "hint"),
    [
        ("SIGBUS", "the program crashed", "ended by SIGBUS", "outside its buffer"),
        ("SIGKILL", "the program was killed", "when memory runs out", "much memory"),
    ],
)
def test_what_a_signal_says(
    worker: Worker, kernel: Kernel, name: str, what: str, because: str, hint: str
) -> None:
    """A program that is killed is not to blame for an index."""
    raised = f"extern int raise(int); raise({getattr(signal, name):d});"
    with pytest.raises(WorkerEnded) as caught:
        check(worker, kernel, inside(kernel, raised))
    assert caught.value.what == what and name in caught.value.because
    assert because in caught.value.because and hint in caught.value.hint


@NEEDS_C
def test_an_endless_loop_is_ended(worker: Worker, kernel: Kernel) -> None:
    check(worker, kernel, inside(kernel, ""))
    pid = worker.pid
    with pytest.raises(WorkerEnded, match="did not end"):
        endless = "for (volatile int i = 0;; i++) {}"
        check(worker, kernel, inside(kernel, endless), silent_s=0.1)
    assert pid not in children(os.getpid())


@NEEDS_C
def test_stop_ends_what_does_not_listen(worker: Worker, kernel: Kernel) -> None:
    check(worker, kernel, inside(kernel, ""))
    endless = inside(kernel, "for (volatile int i = 0;; i++) {}")
    is_running = Event()
    stopped: list[TaskStopped] = []

    def heard(report: Any) -> None:
        if report["text"] == "running":
            is_running.set()

    def task() -> None:
        try:
            check(worker, kernel, endless, heard)
        except TaskStopped as error:
            stopped.append(error)

    during(task, is_running, worker.stop)
    assert stopped
    assert check(worker, kernel, inside(kernel, ""))["ok"]


def test_stop_leaves_a_worker_that_listens(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "STOPS_WITHIN_S", PATIENCE_S)
    kernel = explore(array(99, 99) @ array(99, 99)).kernels[0]
    measured(worker, sent(kernel), kernel=kernel)
    pid = worker.pid
    task = {
        "do": "measure", "data": "data", "kernels": [sent(kernel)] * 2, "cold": False,
        "budget_s": PATIENCE_S, "samples": 10_000,
    }  # fmt: skip
    replies, is_timing = [], Event()

    def heard(report: Any) -> None:
        if report["text"] == "timing, warm":
            is_timing.set()

    during(lambda: replies.append(worker.ask(task, heard, PATIENCE_S)), is_timing, worker.stop)
    assert worker.pid == pid, "the same process"
    assert len(replies[0]["kernels"]) == 2, "what was measured is returned"


def during(task: Callable[[], object], event: Event, action: Callable[[], object]) -> None:
    """Do a task in a thread, and when the event comes the action; both end."""
    thread = Thread(target=task)
    thread.start()
    assert event.wait(PATIENCE_S)
    action()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def kill(pid: int) -> None:
    """Kill a process, and wait until all its threads are gone; who started it hears of it."""
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def test_a_worker_that_is_killed_is_started_again(worker: Worker, kernel: Kernel) -> None:
    measured(worker, sent(kernel), kernel=kernel)
    first = worker.pid
    assert first is not None
    kill(first)
    assert measured(worker, sent(kernel), kernel=kernel)[0]["samples"]
    assert worker.pid != first


def test_data_that_are_lost_are_no_fault_of_the_task(worker: Worker, kernel: Kernel) -> None:
    """As where memory runs out while they are sent: no other process has them."""
    worker.hold("data", list)
    assert worker.pid is not None
    kill(worker.pid)
    task = {"do": "check", "data": "data", "kernel": sent(kernel)}
    with pytest.raises(WorkerEnded, match="was killed"):
        worker.ask(task)


def test_a_task_whose_worker_is_closed_was_stopped(worker: Worker, kernel: Kernel) -> None:
    task = {"do": "check", "data": hold(worker, kernel), "kernel": sent(kernel)}
    process = worker._lasting.current
    assert process is not None
    worker.close()
    with pytest.raises(TaskStopped):  # while it waits for the answer
        worker._wait(process, 1, None, PATIENCE_S)
    with pytest.raises(TaskStopped):  # before it asks
        worker.ask(task)
    assert worker.pid is None, "none was started for it"


def test_only_a_run_is_said_to_be_silent(kernel: Kernel) -> None:
    """A process may start, and a form compile, however busy the machine is."""
    reports: list[Any] = []
    server = WorkerServer(reports.append, lambda: False)
    buffers = kernel.data.buffers(kernel.original, "LLVM")
    blobs = [bytearray(b.array.view(np.uint8).tobytes()) for b in buffers]
    server.hold("data", [(b.dtype.name, b.size) for b in buffers], blobs)
    about = {"data": "data", "silent_s": 3.0}
    server.check(about | {"kernel": sent(kernel), "original": kernel.to_text()})
    server.measure(
        about | {"kernels": [sent(kernel)], "cold": False, "budget_s": PATIENCE_S,
                 "samples": 1},
    )  # fmt: skip
    limits = {t["text"]: t["silent_s"] for t in reports}
    assert {text for text, s in limits.items() if s == 3.0} == {"running", "first run"}
    assert limits["compiling"] is None and limits["timing, warm"] is None


def test_interrupts_are_not_for_it(worker: Worker, kernel: Kernel) -> None:
    measured(worker, sent(kernel), kernel=kernel)
    pid = worker.pid
    assert pid is not None
    os.kill(pid, signal.SIGINT)  # it is there before the next task is
    measured(worker, sent(kernel), kernel=kernel)
    assert worker.pid == pid
    assert os.getpgid(pid) != os.getpgid(0), "Ctrl-C in a terminal does not reach it"
    assert os.getpriority(os.PRIO_PROCESS, pid) > os.getpriority(os.PRIO_PROCESS, 0)


PARENT = """
import sys, time
sys.modules["__main__"].marker = 1
open("ran.txt", "a").write("main ")
sys.path.insert(0, {root!r})
from tests.worker.test_worker import Worker, hold, matmul, measured, sent
kernel = matmul().kernels[0]
worker = Worker()
measured(worker, sent(kernel), kernel=kernel)
print(worker.pid, flush=True)
time.sleep(600)
"""


def test_it_dies_with_its_parent_and_imports_nothing_of_it(tmp_path: Any) -> None:
    (tmp_path / "script.py").write_text(PARENT.format(root=str(ROOT)))
    for name in ("numpy", "random", "workbench"):
        shadow = f"open({str(tmp_path / 'shadowed.txt')!r}, 'w')"
        (tmp_path / f"{name}_shadow.py").write_text(shadow)
    (tmp_path / "queue.py").write_text(shadow)  # a worker in this folder must not see it
    starts = textwrap.dedent("""
        import sys; sys.path.remove(sys.path[0])
        exec(compile(open("script.py").read(), "script.py", "exec"))
    """)
    parent = subprocess.Popen(
        [sys.executable, "-c", starts], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    try:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert children(parent.pid) == {pid}
        ended = os.pidfd_open(pid)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
    try:  # also where nobody asks how it ended, and so its number stays
        assert select.select([ended], [], [], PATIENCE_S)[0], "it lives"
    finally:
        os.close(ended)
    assert (tmp_path / "ran.txt").read_text() == "main "
    assert not (tmp_path / "shadowed.txt").exists()


def test_data_comes_as_it_was_sent(worker: Worker) -> None:
    from workbench.tensor.tensor import Tensor

    for dtype in ("fp8e4m3", "float16", "bfloat16", "int8", "bool", "float64"):
        values = Tensor(np.arange(24) % 2, device="LLVM").cast(dtype)
        values = values.contiguous().realize()
        kernel = explore(values + values).kernels[0]
        task = {
            "do": "check", "data": hold(worker, kernel, dtype), "kernel": sent(kernel),
            "original": kernel.to_text(),
        }  # fmt: skip
        assert worker.ask(task, quiet_s=PATIENCE_S)["ok"], dtype


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it reads /proc")
def test_a_compiler_ends_with_its_worker(
    worker: Worker, kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the programs that it started."""
    compiler, pids = tmp_path / "cc", tmp_path / "pids"
    compiler.write_text(
        f"""#!/bin/sh
case "$*" in *--version*) echo 1; exit;; esac
sleep 1000 & echo $$ $! > {tmp_path}/new; mv {tmp_path}/new {pids}; wait
"""
    )
    compiler.chmod(0o700)
    monkeypatch.setenv("CC", str(compiler))
    worker.start()
    task = {"do": "compile", "kernel": sent(kernel, "void kernel(void) {}\n", "C")}

    def ask() -> None:
        with pytest.raises((TaskStopped, WorkerEnded)):
            worker.ask(task, quiet_s=PATIENCE_S)

    thread = Thread(target=ask)
    thread.start()
    eventually(pids.exists)
    numbers = [int(word) for word in pids.read_text().split()]
    assert len(numbers) == 2 and all(is_alive(pid) for pid in numbers)
    worker.close()
    thread.join(PATIENCE_S)
    eventually(lambda: not any(is_alive(pid) for pid in numbers))


@pytest.mark.parametrize("make", [Worker, LocalWorker])
def test_the_oldest_data_are_dropped(
    make: Callable[[], Worker], kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "DATA_BYTES", 1)
    with make() as worker:
        for key in ("a", "b"):
            hold(worker, kernel, key)
        task = {"do": "check", "kernel": sent(kernel), "original": kernel.to_text()}
        assert worker.ask(task | {"data": "b"})["ok"]
        with pytest.raises((WorkbenchError, KeyError)):
            worker.ask(task | {"data": "a"})
        worker.drop("b")
        with pytest.raises((WorkbenchError, KeyError)):
            worker.ask(task | {"data": "b"})
