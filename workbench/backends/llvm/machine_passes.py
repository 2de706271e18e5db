"""The passes of LLVM's code generator, and the change that each makes: passes on LLVM IR
(loop-reduce, codegenprepare), instruction selection, and passes on machine instructions.

Once switched on, LLVM prints them to stderr for the rest of a process; so it runs in a process of
its own.

    python -m workbench.backends.llvm.machine_passes < kernel.ll      started by `machine_passes`
"""

from __future__ import annotations

import re
import subprocess
import sys
from typing import NamedTuple

from workbench.backends.native import jit
from workbench.base.child_process import python_environment
from workbench.base.errors import DeviceError

_DUMP = re.compile(
    r"^(?:# )?\*\*\* IR Dump After (.*) \((\S*)\) \*\*\*(?: \(loop: %(\S+)\))?.*$", re.MULTILINE
)
_NOISE = re.compile(r"^(; predecessors: .*|\s*|# End machine code .*)$")
_MARGIN = re.compile(r"^(?:\d+B)?\t|\s+; preds = .*$")
"""The numbers of instructions, which some passes print, and comments on predecessors."""
_SOURCE = "*** IR Dump After The program as LLVM reads it (source) ***"
LIMIT_S = 60.0


class MachinePass(NamedTuple):
    """A pass that changed something: its short name, its title, and the program after it."""

    name: str
    title: str
    lines: list[str]


def machine_passes(text: str) -> list[MachinePass]:
    """Return the passes of the code generator that change a program of LLVM IR on its way to
    machine code; the first item is the program itself, as "source".

    Errors: DeviceError if LLVM fails, or takes longer than LIMIT_S.
    """
    command = [sys.executable, "-P", "-m", __name__]
    try:
        process = subprocess.run(
            command, input=text, capture_output=True, encoding="utf-8", timeout=LIMIT_S,
            env=python_environment(),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        because = f"it took more than {LIMIT_S:g} s"
        raise DeviceError("LLVM's passes cannot be shown", because) from None
    if process.returncode:
        last = process.stderr.strip().split("\n")[-1]
        raise DeviceError("LLVM's passes cannot be shown", last)
    return passes_of(process.stderr)


def passes_of(dump: str) -> list[MachinePass]:
    """Return the source and the passes of a dump. Passes that changed no line, but only LLVM's
    knowledge of the program, are left out."""
    parts = _DUMP.split(dump)
    dumps = zip(parts[1::4], parts[2::4], parts[3::4], parts[4::4], strict=True)
    passes: list[MachinePass] = []
    for title, name, loop, text in dumps:
        lines = _program(text)
        if not passes or passes[-1].lines != lines:
            passes.append(
                MachinePass(name or title, f"{title}, loop {loop}" if loop else title, lines)
            )
    return passes


def _program(text: str) -> list[str]:
    """Return the lines of the functions in a module, or of the blocks in a machine function."""
    lines = [_MARGIN.sub("", line).rstrip() for line in text.split("\n")]
    inside: list[str] = []
    is_inside = False
    for line in lines:
        is_inside = is_inside or line.startswith(("define ", "bb."))
        if is_inside and not _NOISE.match(line):
            inside.append(line)
        if line == "}":
            is_inside = False
    return inside


if __name__ == "__main__":
    source = sys.stdin.read()
    print(_SOURCE, jit.as_read(source), sep="\n", file=sys.stderr, flush=True)
    jit.print_passes()
    jit.compile_assembly(source)
