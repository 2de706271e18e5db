"""Compilers in a process of their own."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench.backends.compilers.child import CompilerProcess
from workbench.base.errors import CompileError, DeviceError, WorkbenchError


def double(number: int) -> int:
    print("what a compiler prints is not an answer")
    return 2 * number


def abort() -> None:
    print("LLVM ERROR: Cannot select: t5: i32", file=sys.stderr, flush=True)
    os.abort()


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


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
    old = process._process
    assert old is not None
    os.kill(before, signal.SIGKILL)
    old.wait()
    monkeypatch.setattr(old, "poll", lambda: None)
    assert process.call(30, double, 4) == 8
    assert process.call(30, os.getpid) != before


def test_one_that_is_killed_in_a_row_is_an_error(
    process: CompilerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(CompileError, match="it ended its process: it said nothing"):
        process.call(30, double, 4)


def test_one_that_hangs_is_ended(process: CompilerProcess) -> None:
    before = process.call(30, os.getpid)
    with pytest.raises(CompileError, match=r"more than 0\.2 s"):
        process.call(0.2, hang)
    assert process.call(30, os.getpid) != before
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_has_a_process_of_its_own(process: CompilerProcess) -> None:
    mine = process.call(30, os.getpid)
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fork beside threads
        fork = os.fork()
    if not fork:
        answer = 0
        try:
            answer = process.call(30, os.getpid)
        finally:
            os.write(writing, str(answer).encode())
            process.end()
            os._exit(0)
    os.waitpid(fork, 0)
    theirs = int(os.read(reading, 100))
    assert theirs not in (0, mine) and process.call(30, os.getpid) == mine


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
from workbench.backends.compilers import child
child.ENDS_WITHIN_S = 100.0
child.in_child(say_at_the_end, sys.argv[1])
"""


def test_it_ends_by_itself_with_the_one_that_started_it(tmp_path: Path) -> None:
    """So that it deletes its files."""
    words = tmp_path / "words"
    script = [sys.executable, "-W", "error", "-c", _SCRIPT, str(words)]
    run = subprocess.run(script, capture_output=True, text=True)
    assert not run.returncode and not run.stderr, run.stderr
    assert words.read_text() == "the end"
