"""What each pass of LLVM's code generator changes.

LLVM prints that to stderr, for a whole process and for good: so it does in a process of its own.

    python -m workbench.backends.llvm.machine_passes < kernel.ll      started by `machine_passes`
"""

from __future__ import annotations

import re
import subprocess
import sys
from typing import NamedTuple

from workbench.backends.native import jit
from workbench.base.errors import DeviceError

_DUMP = re.compile(r"^\*\*\* IR Dump After (.*) \((\S*)\) on \S+ \*\*\*$", re.MULTILINE)
_NOISE = re.compile(r"^(; predecessors: .*|\s*|# End machine code .*)$")
LIMIT_S = 60.0


class MachinePass(NamedTuple):
    """A pass that changed something: its short name, its title, and the program after it."""

    name: str
    title: str
    lines: list[str]


def machine_passes(text: str) -> list[MachinePass]:
    """Return the passes of the code generator that change LLVM IR on its way to machine code.

    Errors: DeviceError where this LLVM does not say it.
    """
    command = [sys.executable, "-P", "-m", __name__]
    try:
        process = subprocess.run(
            command, input=text, capture_output=True, encoding="utf-8", timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        because = f"it took more than {LIMIT_S:g} s"
        raise DeviceError("LLVM's passes cannot be shown", because) from None
    if process.returncode:
        last = process.stderr.strip().split("\n")[-1]
        raise DeviceError("LLVM's passes cannot be shown", last)
    return passes_of(process.stderr)


def passes_of(dump: str) -> list[MachinePass]:
    """Return the passes that LLVM printed, but for those that changed only what it knows of the
    program, and no line."""
    parts = _DUMP.split(dump)
    named = zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    passes: list[MachinePass] = []
    for title, name, text in named:
        lines = _program(text)
        if not passes or passes[-1].lines != lines:
            passes.append(MachinePass(name or title, title, lines))
    return passes


def _program(text: str) -> list[str]:
    """Return the blocks of a printed function, without what stands before the first."""
    lines = text.split("\n")
    first = next((n for n, line in enumerate(lines) if line.startswith("bb.")), 0)
    return [line.rstrip() for line in lines[first:] if not _NOISE.match(line)]


if __name__ == "__main__":
    jit.print_changes()
    jit.compile_assembly(sys.stdin.read())
