"""The capture of kernels: all that run in a block, written to a kernel file.

with capture_kernels("net.jsonl"):
    net(x).numpy()
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict

from workbench.backends.device import Device
from workbench.base.cache import key_of
from workbench.base.context import Context
from workbench.base.errors import WorkbenchError
from workbench.base.files import writable_path
from workbench.base.installation import version
from workbench.base.source import user_line
from workbench.base.trace import PassRecord, observe, unobserved
from workbench.cost.default_opts import default_opts
from workbench.counters import CountedKernel, counting_kernels
from workbench.ir.lower.launch import barriers
from workbench.ir.nest.estimates import count
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import Opt, axes
from workbench.ir.text.printer import to_text
from workbench.kernel_files.kernel_file import KERNEL_FILE, CapturedKernel, KernelFile
from workbench.pipeline import stages
from workbench.search.realization import ChosenOpts, choose_opts
from workbench.search.tuning_file import machine_of, opts_text


@contextmanager
def capture_kernels(path: str | os.PathLike[str], program: str = "") -> Iterator[None]:
    """Write the kernels that run in the block, in all threads, to the file `path`: a line of JSON
    a kernel, with its IR before opts, its opts, its device, and how often it ran. `program` names
    what ran. If the block raises, or Ctrl-C ends it, the file has what ran before.

        with workbench.capture_kernels("net.jsonl"):
            net(x).numpy()

    `workbench kernels replay net.jsonl` compiles and checks them again, on any commit.

    Errors: WorkbenchError where nothing can be written at `path`, or another file is there, before
    the block runs.
    """
    path = writable_path(path, KERNEL_FILE)
    chosen: dict[CountedKernel, tuple[ChosenOpts | None, str]] = {}

    def note(kernel: CountedKernel) -> None:
        chosen[kernel] = _chosen(kernel), str(user_line() or "")

    with counting_kernels(note) as runs:
        try:
            yield
        finally:
            captured = {key: runs[key] for key in chosen}
            rows = [
                kernel_row(key, chosen[key][0], program, launches, chosen[key][1])
                for key, launches in captured.items()
            ]
            KernelFile.of(rows).write(path)


def kernel_row(
    kernel: CountedKernel,
    chosen: ChosenOpts | None,
    program: str = "",
    launches: int = 0,
    line: str = "",
) -> CapturedKernel:
    """Return the row of a kernel. `chosen` are the opts that it has; None: they are not known."""
    plain, tuned, device = kernel
    source, counts, records = _compiled(plain, tuned, chosen, device)
    steps: list[str] = []
    if chosen is not None and chosen.origin == "default":
        with unobserved():
            default = default_opts(plain, Device[device].target)
        steps = [f"{step.name}: {step.why}" for step in default.steps]
    return CapturedKernel(
        kernel=tuned.arg.name,
        program=program,
        device=device,
        machine=machine_of(device),
        version=version(),
        axes=" ".join(f"{axis.name}={axis.size}" for axis in axes(plain)),
        opts=None if chosen is None else opts_text(chosen.opts),
        origin="none" if chosen is None else chosen.origin,
        launches=launches,
        line=line,
        source=source_hash(source),
        source_lines=len(source.splitlines()),
        counts=counts,
        steps=steps,
        rules=fired_rules(records),
        ir=to_text(plain),
    )


def source_hash(source: str) -> str:
    """Return the hash of a source as a row has it; "" for ""."""
    return key_of(source)[:32] if source else ""


def fired_rules(records: Iterable[PassRecord]) -> dict[str, int]:
    """Return how often each rule fired in each pass, by `pass: rule`."""
    pairs = ((record.name, match.rule) for record in records for match in record.matches)
    return dict(Counter(f"{name}: {rule!r}" for name, rule in pairs if not isinstance(rule, Opt)))


def _chosen(kernel: CountedKernel) -> ChosenOpts | None:
    """Return the opts with which a kernel has just run; None where it ran with others than it has
    in this context, as in a replay that was captured in another one."""
    plain, tuned, device = kernel
    with unobserved():
        chosen = choose_opts(plain, device)
        if chosen.kernel is not tuned:
            with Context(BEAM=0, NOOPT=int(tuned is plain), TUNING="none"):
                chosen = choose_opts(plain, device)
    return chosen if chosen.kernel is tuned else None


def _compiled(
    plain: UOp, tuned: UOp, chosen: ChosenOpts | None, device: str
) -> tuple[str, dict[str, int], list[PassRecord]]:
    """Return the source of a kernel, the counts of its program, and the records of the passes that
    led there, as far as it can be compiled again."""
    begin, opts = (tuned, ()) if chosen is None else (plain, chosen.opts)
    source, counts = "", {}
    with observe() as watching, suppress(WorkbenchError):
        reached = stages(begin, device, upto="source", opts=opts)
        source = reached.source.text
    records = list(watching.records)
    if source and plain.code is None:
        target = Device[device].target
        with unobserved():
            all_counts = count(reached.linear, barriers(tuned, target), target.has_groups)
        counts = {name: n for name, n in asdict(all_counts).items() if n}
    return source, counts, records
