"""Compilers in a process of their own."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import PATIENCE_S, ROOT, eventually
from tests.tools.processes import is_alive
from workbench.backends.compilers.child import LIMIT_S, MEMORY_GIB, CompilerProcess, run_compiler
from workbench.base import function_process
from workbench.base.child_process import ChildProcess
from workbench.base.errors import CompileError, DeviceError, WorkbenchError
from workbench.worker.client import QUIET_S


def double(number: int) -> int:
    print("what a compiler prints is not an answer")
    return 2 * number


def abort() -> None:
    print("LLVM ERROR: Cannot select: t5: i32", file=sys.stderr, flush=True)
    os.abort()


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def end_by(name: str) -> None:
    os.kill(os.getpid(), getattr(signal, name))
    time.sleep(60)


def raise_memory_error() -> None:
    raise MemoryError


def abort_for_memory() -> None:
    print("LLVM ERROR: out of memory", file=sys.stderr, flush=True)
    os.abort()


def refuse() -> None:
    raise CompileError("nvrtc", "x is undefined", line=7)


def miss() -> None:
    raise DeviceError("there is no compiler", "nobody installed it", "pip install it")


def fail() -> None:
    raise ZeroDivisionError("by nothing")


def hang() -> None:
    time.sleep(60)


def say_at_the_end(path: str) -> None:
    atexit.register(Path(path).write_text, "the end")


@pytest.fixture
def process() -> Iterator[CompilerProcess]:
    compilers = CompilerProcess()
    yield compilers
    compilers.end()


def test_one_process_answers_many_requests(process: CompilerProcess) -> None:
    pids = {process.call(30, os.getpid) for _ in range(3)}
    assert len(pids) == 1 and os.getpid() not in pids
    assert [process.call(30, double, n) for n in (1, 2)] == [2, 4]
    assert process.call(30, double, number=5) == 10


def test_one_that_aborts_is_an_error_and_is_replaced(process: CompilerProcess) -> None:
    before = process.call(30, os.getpid)
    with pytest.raises(CompileError, match="ended its process.*Cannot select"):
        process.call(30, abort)
    assert process.call(30, os.getpid) != before


def test_one_that_crashes_without_a_word_is_an_error(process: CompilerProcess) -> None:
    with pytest.raises(CompileError, match="it said nothing, and ended by SIGSEGV"):
        process.call(30, crash)


def test_one_that_was_killed_before_is_replaced(
    process: CompilerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not the fault of the next request, even where nobody has noticed yet."""
    before = process.call(30, os.getpid)
    current = process._lasting.current
    assert current is not None
    os.kill(before, signal.SIGKILL)
    os.waitid(os.P_PID, before, os.WEXITED | os.WNOWAIT)
    runs = ChildProcess.is_running.fget
    assert runs is not None
    seems = property(lambda child: child is current or runs(child))
    monkeypatch.setattr(ChildProcess, "is_running", seems)
    assert process.call(30, double, 4) == 8
    assert process.call(30, os.getpid) != before


def test_one_that_does_not_start_is_no_error_of_the_text(
    process: CompilerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(DeviceError, match="does not start") as silent:
        process.call(30, double, 4)
    assert silent.value.because == "it said nothing, and ended with status 1"
    monkeypatch.undo()
    monkeypatch.setattr(function_process, "COMMAND", ("-m", "workbench_that_is_missing"))
    with pytest.raises(DeviceError, match="does not start") as missing:
        process.call(30, double, 4)
    assert "No module named workbench_that_is_missing" in missing.value.because
    assert "python -P -m workbench_that_is_missing" in missing.value.hint


def test_it_imports_the_package_from_where_this_process_does(tmp_path: Path) -> None:
    """Where that is a path that only this process has."""
    script = f"""
import sys; sys.path.insert(0, {str(ROOT)!r})
from workbench.backends.compilers.child import in_child
import os
print(in_child(os.getpid) != os.getpid())
"""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert run.stdout == "True\n", run.stderr


@pytest.mark.parametrize(
    ("name", "because", "hint"),
    [
        ("SIGKILL", "by SIGKILL, by the system, as it does when memory", "much memory"),
        ("SIGTERM", "from outside, by SIGTERM", "the text is not at fault"),
        ("SIGHUP", "from outside, by SIGHUP", "the text is not at fault"),
        ("SIGSEGV", "it said nothing, and ended by SIGSEGV", "other opts"),
        ("SIGFPE", "it said nothing, and ended by SIGFPE", "other opts"),
    ],
)
def test_what_a_signal_says(name: str, because: str, hint: str, process: CompilerProcess) -> None:
    with pytest.raises(CompileError) as error:
        process.call(30, end_by, name)
    assert because in error.value.because and hint in error.value.hint
    assert process.call(30, double, 4) == 8


def test_memory_that_runs_out_is_said(process: CompilerProcess) -> None:
    for function in (raise_memory_error, abort_for_memory):
        with pytest.raises(CompileError, match="its memory ran out") as error:
            process.call(30, function)
        assert "memory" in error.value.hint


@pytest.mark.parametrize(
    ("body", "because", "hint"),
    [
        ("kill -KILL $$", "by SIGKILL", "much memory"),
        ("exit 137", "by SIGKILL", "much memory"),
        ("kill -TERM $$", "from outside, by SIGTERM", "not at fault"),
        ("kill -SEGV $$", "ended by SIGSEGV", "other opts"),
        ("echo LLVM ERROR: out of memory >&2; exit 1", "memory ran out", "memory"),
        ("exec sleep 60", "it took more than 0.5 s", "other opts"),
    ],
)
def test_how_a_program_ends(body: str, because: str, hint: str, tmp_path: Path) -> None:
    script = tmp_path / "compiler"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o700)
    with pytest.raises(CompileError) as error:
        run_compiler("c", [str(script)], 0.5)
    assert because in error.value.because and hint in error.value.hint


def test_a_program_that_is_missing() -> None:
    with pytest.raises(CompileError, match="does not start") as error:
        run_compiler("c", ["/no/such/compiler"], 1)
    assert "workbench doctor" in error.value.hint


def test_one_that_hangs_is_ended(process: CompilerProcess) -> None:
    before = process.call(30, os.getpid)
    with pytest.raises(CompileError, match=r"more than 0\.2 s"):
        process.call(0.2, hang)
    assert process.call(30, os.getpid) != before
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)


def test_errors_come_back_as_they_are(process: CompilerProcess) -> None:
    with pytest.raises(CompileError) as refused:
        process.call(30, refuse)
    assert (refused.value.stage, refused.value.line) == ("nvrtc", 7)
    with pytest.raises(DeviceError) as missing:
        process.call(30, miss)
    assert missing.value.hint == "pip install it"
    with pytest.raises(WorkbenchError, match="ZeroDivisionError: by nothing"):
        process.call(30, fail)


_SCRIPT = """
import sys
from tests.backends.compilers.test_child import say_at_the_end
from workbench.backends.compilers.child import in_child
from workbench.base import child_process
child_process.ENDS_WITHIN_S = 100.0
in_child(say_at_the_end, sys.argv[1])
"""


def test_it_ends_by_itself_with_the_one_that_started_it(tmp_path: Path) -> None:
    """So that it deletes its files."""
    words = tmp_path / "words"
    script = [sys.executable, "-W", "error", "-c", _SCRIPT, str(words)]
    run = subprocess.run(script, capture_output=True, text=True)
    assert not run.returncode and not run.stderr, run.stderr
    assert words.read_text() == "the end"


def test_a_compiler_is_late_before_its_worker_is() -> None:
    assert LIMIT_S < QUIET_S


def test_a_text_may_have_words_of_memory(tmp_path: Path) -> None:
    """Compilers quote it, say what it asks them to say, and what they warn of is no end."""
    script, quoted = tmp_path / "compiler", "    4 | x = ; // out of memory"
    said = "k.c:4:2: error: #error out of memory"
    for line, status in ((quoted, 1), (said, 1), ("warning: out of memory is a word", 0)):
        script.write_text(f"#!/bin/sh\necho '{line}' >&2\nexit {status}\n")
        script.chmod(0o700)
        assert run_compiler("c", [str(script)], 30).returncode == status


IS_LINUX = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="it reads /proc, and limits of memory"
)


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    """A compiler's driver that starts an endless program, and waits for it."""
    script = tmp_path / "driver"
    script.write_text(
        f"#!/bin/sh\nsleep 1000 &\necho $! > {tmp_path}/new\n"
        f"mv {tmp_path}/new {tmp_path}/pid\nwait\n"
    )
    script.chmod(0o700)
    return script


def pid_of_child(driver: Path) -> int:
    """Return the endless program, once it runs."""
    path = driver.with_name("pid")
    eventually(path.exists)
    return int(path.read_text())


@IS_LINUX
@pytest.mark.parametrize("end", [subprocess.TimeoutExpired("cc", 1), KeyboardInterrupt])
def test_what_a_driver_started_ends_with_its_call(
    end: BaseException, driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = []

    def interrupt(*_: object) -> None:
        pids.append(pid_of_child(driver))
        assert is_alive(pids[0])
        raise end

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupt)
    with pytest.raises((CompileError, KeyboardInterrupt)):
        run_compiler("c", [str(driver)], 1)
    eventually(lambda: not is_alive(pids[0]))


_CALL = """
import sys
from workbench.backends.compilers.child import run_compiler
run_compiler("c", sys.argv[1:], 1000)
"""


@IS_LINUX
def test_what_a_driver_started_ends_with_its_caller(driver: Path) -> None:
    """Even if that is killed, and so can end nothing itself."""
    command = [sys.executable, "-c", _CALL, str(driver)]
    with subprocess.Popen(command, cwd=ROOT) as caller:
        pid = pid_of_child(driver)
        assert is_alive(pid)
        caller.kill()
    eventually(lambda: not is_alive(pid))


@IS_LINUX
def test_a_program_gets_so_much_memory(tmp_path: Path) -> None:
    """What it only reserves does not count: compilers reserve more than they use."""
    script = tmp_path / "compiler"
    for protection in ("PROT_READ", "PROT_READ | mmap.PROT_WRITE"):
        flags = f"mmap.MAP_PRIVATE, mmap.{protection}"
        script.write_text(
            f"#!{sys.executable}\nimport mmap\nmmap.mmap(-1, {MEMORY_GIB << 30}, {flags})\n"
        )
        script.chmod(0o700)
        if protection == "PROT_READ":
            assert run_compiler("c", [str(script)], PATIENCE_S).returncode == 0
    with pytest.raises(CompileError, match="its memory ran out") as error:
        run_compiler("c", [str(script)], PATIENCE_S)
    assert "a shorter text" in error.value.hint
