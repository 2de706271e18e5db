"""Values at IPython's prompt, in a narrow window: whole, as text, in colour where rich is."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import PATIENCE_S, ROOT

pty = pytest.importorskip("pty", reason="there are terminals to play on POSIX only")
COLUMNS = 60
SESSION = """
import numpy as np
from workbench import Tensor, explore
x = Tensor(np.ones((64, 48), np.float32))
e = (x - x.max(axis=1, keepdim=True)).exp().contiguous()
y = e / e.sum(axis=1, keepdim=True)
ex = explore(y); k = ex.kernels[0]; k2 = k.optimized()
print("<ex>"); ex
print("<ex.loops>"); ex.loops
print("<ex.plan>"); ex.plan
print("<ex.passes>"); ex.passes
print("<ex.passes[2]>"); ex.passes[2]
print("<ex.decisions>"); ex.decisions
print("<ex.results>"); ex.results
print("<ex.code(k2)>"); ex.code(k2)
print("<show>"); explore(y, show="loops")
print("<search>"); k.search(budget_s=0.5, progress=False)
print("<compare>"); k.compare(k2)
print("<counts>"); k.counts
print("<kernel>"); k
print("<compiled>"); k.compile()
"""
WORDS = {
    "ex": ["2 kernels, 1 copy, on LLVM", "kernel 2: sum+div", "decisions", "passes"],
    "ex.loops": ["G g0 x64", "p0 out", "kernel 2: sum+div"],
    "ex.plan": ["it is a result that was asked for", "cost to store"],
    "ex.passes": ["simplify-tensor", "decisions", "merge-axes"],
    "ex.passes[2]": ["decide", "decisions"],
    "ex.decisions": ["stored", "contiguous() asks for it"],
    "ex.results": ["plain: no opts", "not timed"],
    "ex.code(k2)": ["for (", "#include <stdint.h>"],
    "show": ["G g0 x64", "kernel 2: sum+div"],
    "search": ["tried in", "best: number", "start: as given"],
    "compare": ["answers: equal", "bytes loaded", "--- this"],
    "counts": ["loads=", "bytes_stored="],
    "kernel": ["Kernel(max+exp", "G g0 x64"],
    "compiled": ["define void", "linearize"],
}
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def at_prompt(tmp_path: Path, *lines: str, is_terminal: bool = False) -> str:
    """Return what IPython prints when lines are typed."""
    ours, theirs = pty.openpty()
    command = [
        sys.executable, "-m", "IPython", "--no-banner", "--simple-prompt", "--colors=NoColor",
        "--no-confirm-exit",
    ]  # fmt: skip
    env = os.environ | {
        "IPYTHONDIR": str(tmp_path), "COLUMNS": str(COLUMNS), "TERM": "xterm",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
    }  # fmt: skip
    env.pop("NO_COLOR", None)
    with subprocess.Popen(
        command, cwd=ROOT, env=env, text=True, stdin=subprocess.PIPE,
        stdout=theirs if is_terminal else subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as shell:  # fmt: skip
        os.close(theirs)
        typed = "\n".join([*lines, SESSION, "exit()\n"])
        if not is_terminal:
            os.close(ours)
            return shell.communicate(typed, timeout=PATIENCE_S)[0]
        assert shell.stdin is not None
        shell.stdin.write(typed)
        shell.stdin.close()
        return _read(ours)


def _read(end: int) -> str:
    parts = []
    try:
        while part := os.read(end, 1 << 16):
            parts.append(part)
    except OSError:  # the other end is gone
        pass
    os.close(end)
    return b"".join(parts).decode().replace("\r\n", "\n")


def check(printed: str) -> None:
    plain = ESCAPE.sub("", printed)
    for name, words in WORDS.items():
        _, separator, rest = plain.partition(f"<{name}>\n")
        assert separator, name
        section = rest.partition("In [")[0]
        flat = " ".join(section.split())
        for word in words:
            assert word in flat, (name, word, section)
        assert max(map(len, section.split("\n"))) <= COLUMNS, (name, section)
        assert "UOp(" not in section and "<SINK" not in section and "\u2026" not in section, section


WITHOUT_RICH = "import sys; sys.modules['rich'] = None"


def test_where_no_terminal_is(tmp_path: Path) -> None:
    printed = at_prompt(tmp_path)
    assert "\x1b" not in printed
    check(printed)


def test_a_terminal_without_rich(tmp_path: Path) -> None:
    printed = at_prompt(tmp_path, WITHOUT_RICH, is_terminal=True)
    assert not ESCAPE.search(printed.partition("<ex>")[2])
    check(printed)


@pytest.mark.skipif(importlib.util.find_spec("rich") is None, reason="rich is not installed")
def test_a_terminal_with_rich(tmp_path: Path) -> None:
    printed = at_prompt(tmp_path, is_terminal=True)
    assert ESCAPE.search(printed.partition("<ex>")[2]), "in colour"
    check(printed)
