"""Children of this process: whatever one does, its parent goes on, and nothing stays behind."""

from __future__ import annotations

import io
import os
import random
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from threading import Thread

import pytest

from tests.support import LONG, PATIENCE_S, ROOT, count, eventually
from tests.tools.interrupts import is_interrupted, places
from tests.tools.processes import children, in_fork, is_alive
from workbench.base.child_process import (
    PIPE_BYTES,
    ChildProcess,
    Ending,
    LastingProcess,
    receive,
    send,
)
from workbench.base.function_process import FunctionProcess, FunctionProcessEnded

IS_LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it reads /proc")
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
ECHO = """
from workbench.base.child_process import Parent
parent = Parent()
for head, blobs in parent:
    parent.send(head, blobs)
"""
QUICK_ECHO = """
pipes = sys.stdin.buffer, sys.stdout.buffer
while size := pipes[0].read(8):
    pipes[1].write(size + pipes[0].read(int.from_bytes(size, 'little')))
    pipes[1].flush()
"""
"""It imports nothing of the package."""
HALF = "os.write(1, struct.pack('<Q', 100) + b'{')"
HANGS = "time.sleep(1000)"


def started(*statements: str) -> ChildProcess:
    lines = "import os, signal, struct, sys, time", *statements
    return ChildProcess(["-c", "\n".join(lines)])


@pytest.fixture
def echo() -> Iterator[ChildProcess]:
    child = started(ECHO)
    yield child
    child.end()
    assert not is_alive(child.pid)


def test_messages_come_as_they_were_sent(echo: ChildProcess) -> None:
    draw = random.Random(1)
    sizes = 0, 1, 100, PIPE_BYTES - 1, PIPE_BYTES, 3 * PIPE_BYTES + 1
    for _ in range(count(200)):
        head = {"text": draw.choice(["", "naïve\n", "x" * draw.choice(sizes)])}
        blobs = [draw.randbytes(draw.choice(sizes)) for _ in range(draw.randrange(4))]
        echo.send(head, blobs)
        assert echo.receive(PATIENCE_S) == (head, blobs)


def test_messages_may_come_in_pieces() -> None:
    """Of any sizes, as pipes have it; several may be in one."""
    draw = random.Random(2)
    sizes = 0, 1, 7, 300, 2 * PIPE_BYTES
    for _ in range(count(200)):
        stream, sent = io.BytesIO(), []
        for number in range(draw.randrange(5)):
            blobs = [draw.randbytes(draw.choice(sizes)) for _ in range(2)]
            sent.append(({"number": number}, blobs))
            send(stream, *sent[-1])  # type: ignore[arg-type]
        stream.seek(0)

        def read(memory: memoryview) -> int:
            return stream.readinto(memory[: draw.randint(1, len(memory))])  # noqa: B023

        assert [receive(read) for _ in sent] == sent
        with pytest.raises(EOFError):
            receive(read)


@pytest.mark.parametrize(
    ("statement", "ending", "signal_name"),
    [
        ("pass", (0, ""), ""),
        ("sys.exit('there is no such thing')", (1, "there is no such thing"), ""),
        ("os.kill(os.getpid(), signal.SIGSEGV)", (-signal.SIGSEGV, ""), "SIGSEGV"),
        ("os.kill(os.getpid(), 40)", (-40, ""), "signal 40"),
        ("print('a\\n\\nb ', file=sys.stderr); os._exit(3)", (3, "b"), ""),
        ("print('x' * 99999, file=sys.stderr); 1 / 0", (1, "by zero"), ""),
    ],
)
@pytest.mark.parametrize("begin", ["", HALF])
def test_one_that_dies_at_the_start_or_in_a_message(
    begin: str, statement: str, ending: tuple[int, str], signal_name: str
) -> None:
    child = started(begin, statement)
    child.send({"do": "this"}, [bytes(10 * PIPE_BYTES)])  # nobody reads it
    for _ in range(2):
        with pytest.raises(EOFError):
            child.receive(PATIENCE_S)
    end = child.end(PATIENCE_S)
    assert (end.status, end.signal) == (ending[0], signal_name)
    assert end.last_line.endswith(ending[1]) and len(end.words) <= 2000
    assert child.end() == end and not child.is_running


@IS_LINUX
@pytest.mark.parametrize("begin", ["pass", HALF, "print('says this', file=sys.stderr)"])
def test_one_that_is_late(begin: str) -> None:
    """What we end did not end by a signal of somebody else's."""
    child = started(begin, HANGS)
    with pytest.raises(TimeoutError):
        child.receive(0.05)
    assert child.is_running
    assert child.end().status == 0 and not is_alive(child.pid)


@pytest.mark.parametrize(
    ("bytes_sent", "complaint"),
    [
        (b"hello, I am a module that prints\n", "b'hello, I'"),
        (struct.pack("<Q", 3) + b"{]}", "Expecting property name"),
        (struct.pack("<Q", 2) + b"[]", "message: []"),
        (struct.pack("<Q", 1) + b"\xff", "invalid start byte"),
    ],
)
def test_one_that_sends_no_message(bytes_sent: bytes, complaint: str) -> None:
    child = started(f"os.write(1, {bytes_sent!r})", HANGS)
    with pytest.raises(EOFError):
        child.receive(PATIENCE_S)
    end = child.end(PATIENCE_S)
    assert end.status == 0 and "it sent what is not a message: " in end.last_line
    assert complaint in end.last_line


@IS_LINUX
def test_what_it_started_ends_with_it() -> None:
    child = started(
        "import subprocess",
        "from workbench.base.child_process import Parent",
        "parent = Parent()",
        "parent.send({'pid': subprocess.Popen(['sleep', '1000']).pid})",
        HANGS,
    )
    pid = child.receive(PATIENCE_S)[0]["pid"]
    assert is_alive(pid)
    child.end()
    eventually(lambda: not is_alive(pid))


@IS_LINUX
@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), signal.SIGSEGV)"])
def test_its_end_is_seen_where_what_it_left_has_its_pipes(end: str) -> None:
    send = "from workbench.base.child_process import Parent; Parent().send({'pid': pid})"
    child = started("pid = os.fork()", f"if pid: {send}; {end}", HANGS)
    pid = child.receive(PATIENCE_S)[0]["pid"]
    with pytest.raises(EOFError):
        child.receive(PATIENCE_S)
    assert is_alive(pid) and child.end().status in (3, -signal.SIGSEGV)
    eventually(lambda: not is_alive(pid))


def during(work: Callable[[], object], action: Callable[[], object]) -> None:
    """Do work in a thread, and the action beside it."""
    thread = Thread(target=work)
    thread.start()
    action()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


def test_another_thread_may_interject_a_message_or_end_it(echo: ChildProcess) -> None:
    echo.interject({"kind": "before"})
    assert echo.receive() == ({"kind": "before"}, [])
    received: list[object] = []
    during(
        lambda: received.append(echo.receive()),
        lambda: (eventually(echo._reading.locked), echo.interject({"kind": "stop"})),
    )
    assert received == [({"kind": "stop"}, [])]
    for _ in range(PIPE_BYTES + 10):
        echo._wake()  # it does not wait for somebody to listen
    echo.send({"kind": "answer"})
    assert echo.receive() == ({"kind": "answer"}, [])

    def waits() -> None:
        with pytest.raises(EOFError):
            echo.receive()
        received.append("ended")

    during(waits, lambda: (eventually(echo._reading.locked), echo.end()))
    assert received[-1] == "ended"


def double(number: int) -> int:
    return 2 * number


def die(by: int) -> None:
    os.kill(os.getpid(), by)


def press() -> None:
    """Ctrl-C for who waits for this."""
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(PATIENCE_S)


@pytest.fixture
def functions() -> Iterator[FunctionProcess]:
    process = FunctionProcess()
    yield process
    process.end()


@FORKS
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_has_a_child_of_its_own(functions: FunctionProcess) -> None:
    mine = functions.call(PATIENCE_S, os.getpid)

    def theirs() -> bool:
        pid = functions.call(PATIENCE_S, os.getpid)
        functions.end()
        return pid not in (mine, os.getpid())

    in_fork(theirs)
    assert functions.call(PATIENCE_S, os.getpid) == mine


@FORKS
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_while_a_thread_waits() -> None:
    lasting = LastingProcess(lambda: started(ECHO))
    child = lasting.running()
    received: list[object] = []

    def theirs() -> bool:
        ended = child.end() == Ending(0, "") and not child.is_running
        own = lasting.running()
        own.send({"mine": 1})
        answer = own.receive(PATIENCE_S)
        lasting.end()
        return ended and answer == ({"mine": 1}, [])

    def fork() -> None:
        eventually(child._reading.locked)
        in_fork(theirs)
        child.send({"theirs": 2})

    during(lambda: received.append(child.receive()), fork)
    assert received == [({"theirs": 2}, [])] and lasting.running() is child
    lasting.end()


def test_after_ctrl_c_each_answer_is_that_of_its_request(functions: FunctionProcess) -> None:
    with pytest.raises(KeyboardInterrupt):
        functions.call(PATIENCE_S, press)
    assert functions.call(PATIENCE_S, double, 4) == 8

    lasting = LastingProcess(lambda: started(QUICK_ECHO))

    def talk(number: int) -> int:
        child = lasting.running()
        child.send({"number": number})
        return int(child.receive(PATIENCE_S)[0]["number"])

    def call(number: int) -> int:
        return lasting.converse(lambda: talk(number))

    def call_function(number: int) -> int:
        return functions.call(PATIENCE_S, double, number) // 2

    for work, step in ((call, 1 if LONG else 5), (call_function, 1 if LONG else 50)):
        for place in range(1, places(lambda: work(0)) + 1, step):  # noqa: B023
            is_interrupted(lambda: work(place), place)  # noqa: B023
            assert work(1000 + place) == 1000 + place
    lasting.end()


@IS_LINUX
def test_ctrl_c_while_it_starts_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    before = children(os.getpid())
    popen = subprocess.Popen

    def pressed(*args: object, **options: object) -> object:
        process = popen(*args, **options)  # type: ignore[call-overload]
        signal.raise_signal(signal.SIGINT)
        return process

    lasting = LastingProcess(lambda: started(ECHO))
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", pressed)
        with pytest.raises(KeyboardInterrupt):
            lasting.running()
    lasting.end()
    assert children(os.getpid()) <= before


def test_one_that_ended_is_replaced(functions: FunctionProcess) -> None:
    before = functions.call(PATIENCE_S, os.getpid)
    with pytest.raises(FunctionProcessEnded) as end:
        functions.call(PATIENCE_S, die, signal.SIGKILL)
    assert end.value.has_started and end.value.ending.signal == "SIGKILL"
    assert functions.call(PATIENCE_S, os.getpid) != before
    with pytest.raises(TimeoutError):
        functions.call(0.05, time.sleep, PATIENCE_S)
    assert functions.call(PATIENCE_S, double, 4) == 8


PARENT = """
import sys, threading, time
from tests.base.test_child_process import FunctionProcess, os
process = FunctionProcess()
print(process.call(1000, os.getpid), flush=True)
thread = threading.Thread(target=process.call, args=(1000, time.sleep, 1000), daemon=True)
thread.start()
while not process._lasting._turn.locked() or {how} is None:
    time.sleep(0.01)
"""


@IS_LINUX
@pytest.mark.parametrize("how", ["exit", "kill"])
def test_one_at_work_ends_with_its_parent(how: str) -> None:
    """Where that ends as Python does, it does not wait either."""
    text = PARENT.format(how="0" if how == "exit" else None)
    parent = subprocess.Popen(
        [sys.executable, "-c", text], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        ended = os.pidfd_open(pid)
        if how == "exit":
            parent.wait(PATIENCE_S)
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()  # type: ignore[union-attr]
    try:
        assert select.select([ended], [], [], PATIENCE_S)[0], "it lives"
    finally:
        os.close(ended)
