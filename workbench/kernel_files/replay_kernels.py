"""Replays of kernel files: each kernel is compiled again, checked, and compared with its row.

print(replay_kernels(KernelFile.read("net.jsonl")))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from workbench.backends.device import Device
from workbench.base.errors import DeviceError, KernelOptError, VerifyError, WorkbenchError, plural
from workbench.base.installation import version
from workbench.base.terminal import Printed
from workbench.base.trace import unobserved
from workbench.ir.meaning.sampled import TooManyPositions
from workbench.ir.verify.tensor import refuse_endless
from workbench.kernel.inputs import Seeded, written
from workbench.kernel.kernel import Kernel
from workbench.kernel_files.capture_kernels import source_hash
from workbench.kernel_files.kernel_file import CapturedKernel, KernelFile
from workbench.pipeline import stages
from workbench.search.tuning_file import machine_of, opts_of, opts_text

Outcome = Literal["right", "WRONG", "fails", "refused", "not here"]
"""What a replay finds: `fails` where it does not compile or run, `refused` where the row is not a
kernel that may be run, `not here` where the device cannot run it on this machine."""
BAD: frozenset[Outcome] = frozenset({"WRONG", "fails"})


@dataclass(frozen=True, slots=True, repr=False)
class KernelReplay(Printed):
    """The replay of a row: its outcome, `why` in words, and what `changes` since it was written."""

    row: CapturedKernel
    outcome: Outcome
    why: str = ""
    changes: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether the kernel is right, with the opts of its row."""
        return self.outcome == "right"

    def __str__(self) -> str:
        name = f"{self.row.program}: {self.row.kernel}" if self.row.program else self.row.kernel
        why = f": {self.why}" if self.why else ""
        lines = [f"{name} on {self.row.device}  {self.outcome}{why}"]
        return "\n".join([*lines, *(f"    {change}" for change in self.changes)])


@dataclass(frozen=True, slots=True, repr=False)
class KernelReplays(Printed):
    """The replays of a file, in its order. They print with those that are right and as they were
    left out."""

    replays: tuple[KernelReplay, ...]
    complaint: str = ""

    @property
    def is_good(self) -> bool:
        """Whether no kernel is wrong or fails, and at least one is right."""
        outcomes = {each.outcome for each in self.replays}
        return "right" in outcomes and not outcomes & BAD

    def __str__(self) -> str:
        lines = [str(each) for each in self.replays if each.changes or not each.is_good]
        counts = Counter(each.outcome for each in self.replays)
        changed = sum(bool(each.changes) for each in self.replays)
        words = [f"{n} {outcome}" for outcome, n in counts.most_common()]
        head = f"{plural(len(self.replays), 'kernel')}: {', '.join(words) or 'none'}"
        lines.append(f"{head}; {changed or 'none'} changed")
        return "\n".join([*lines, *filter(None, [self.complaint])])


def replay_kernels(file: KernelFile, device: str = "") -> KernelReplays:
    """Return the replays of all kernels of a file. `device` is the one to run them on ("": that of
    each row)."""
    rows = file.kernels.values()
    return KernelReplays(tuple([replay_kernel(row, device) for row in rows]), file.complaint)


def replay_kernel(row: CapturedKernel, device: str = "") -> KernelReplay:
    """Return the replay of a row: its kernel with its opts, run on random data and compared with
    the reference interpreter, and what changed since the row was written. Source text in a row is
    never run, nor is a kernel that would not end."""
    name = device or row.device
    try:
        name = Device.canonical(name)
        Device.runner(name) if Device[name].is_elsewhere else Device[name].require_available()
    except DeviceError as error:
        return KernelReplay(row, "not here", f"{error.what}: {error.because}")
    try:
        plain = _kernel(row, name)
    except WorkbenchError as error:
        return KernelReplay(row, "refused", f"{error.what}: {error.because}")
    with unobserved():
        return _checked(row, plain, name)


def _kernel(row: CapturedKernel, device: str) -> Kernel:
    """Return the kernel of a row without opts. Errors: ParseError; VerifyError for one that is not
    run."""
    graph = row.graph()
    if graph.code is not None:
        because = f"its {graph.code.language} came with a file, and may be a stranger's"
        raise VerifyError("it is written as source text", because)
    refuse_endless(graph)
    shapes = tuple((param.length,) for param in written(graph))
    return Kernel(graph, graph, Seeded(device=device), shapes, title=row.kernel)


def _checked(row: CapturedKernel, plain: Kernel, device: str) -> KernelReplay:
    """Return the replay of a kernel that may be run."""
    changes: list[str] = []
    try:
        kernel = _with_opts(row, plain, changes)
        result = kernel.check(device)
    except (WorkbenchError, TooManyPositions) as error:
        what = error.what if isinstance(error, WorkbenchError) else str(error)
        because = getattr(error, "because", "")
        return KernelReplay(row, "fails", f"{what}: {because}".rstrip(": "), tuple(changes))
    if device == row.device:
        changes += _changes(row, plain, kernel, device)
    outcome: Outcome = "right" if result.ok else "WRONG"
    return KernelReplay(row, outcome, "" if result.ok else result.summary, tuple(changes))


def _with_opts(row: CapturedKernel, plain: Kernel, changes: list[str]) -> Kernel:
    """Return the kernel with the opts of its row; add those that are not legal any more to
    `changes`. Where the row has none, return it with the default opts."""
    if row.opts is None:
        changes.append("its opts are not known: it has the default opts")
        return plain.optimized()
    kernel = plain
    for opt in opts_of(row.opts):
        try:
            kernel = kernel.apply(opt)
        except KernelOptError as error:
            changes.append(f"{opt} is not legal: {error.because}")
    return kernel


def _changes(row: CapturedKernel, plain: Kernel, kernel: Kernel, device: str) -> Iterator[str]:
    """Yield what is not as in the row: the default opts, and the source on an equal machine."""
    if row.origin == "default" and row.opts is not None:
        default = plain.optimized()
        if opts_text(default.applied_opts) != row.opts:
            yield f"default opts  {row.opts or 'none'}"
            yield f"           -> {opts_text(default.applied_opts) or 'none'}"
            own = [f"{step.name}: {step.why}" for step in default.steps]
            yield from (f"because {step}" for step in own if step not in row.steps)
    is_of_machine = Device[device].is_elsewhere or row.machine == machine_of(device)
    if row.source and is_of_machine:
        source = stages(kernel.ast, device, upto="source").source.text
        if source_hash(source) != row.source:
            lines = len(source.splitlines())
            by = "" if row.version == version() else f", by version {row.version}"
            yield f"source differs: {lines} lines, and {row.source_lines} when written{by}"
