"""A kernel on the emulator, as text: its run on a device with work-groups, and its costs.

Sections: A run on the emulator as text; A kernel on the emulator, as text.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from workbench.backends.program.launch import launch_shape
from workbench.base.errors import plural
from workbench.emulator.accesses import AccessCount
from workbench.emulator.emulate import seconds_for_steps, target_of
from workbench.emulator.steps import Trace
from workbench.ir.nest.accesses import name_of
from workbench.ir.node.ops import Ops
from workbench.ir.text.program import ProgramLine, program_lines
from workbench.kernel.kernel import Kernel
from workbench.pipeline import stages
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model.words import explained
from workbench.viz.page.panel import Panel, kernels_text
from workbench.viz.record.kernels import MOST_KERNELS, unasked_run

# --------------------------------------------------------------------------------------------------
# A run on the emulator as text: the program of a work-item, and below each line its cost, in the
# words of the page.

QUIET = "no race, nothing unwritten that is used, nothing out of bounds"


def run_text(trace: Trace) -> str:
    """Return a run as text: its costs, its program with the costs of each line, its findings."""
    lines = str(trace).splitlines()
    if not trace.is_whole:
        lines.append("these counts are of one group alone: the launch is too large")
    if not trace.findings:
        lines.append(QUIET)
    for line in trace.lines:
        indent = "  " * (line.depth + 1)
        lines.append(f"{indent}{line.text}")
        costs = Counter(_costs(trace, line))
        for words, times in costs.items():
            repeats = f", {times} times" if times > 1 else ""
            lines.append(f"{indent}    {words}{repeats}")
    return "\n".join([*lines, *map(trace.with_lines, trace.inefficiencies)])


def _costs(trace: Trace, line: ProgramLine) -> Iterator[str]:
    """Yield the costs of a line, of all work-items together."""
    for position in line.positions:
        count, node = trace.accesses.get(position), trace.linear[position]
        if count is not None:
            yield _access_words(name_of(node.place.param), count)
        if position in trace.shuffles:
            yield f"{plural(trace.shuffles[position], 'warp')} exchanged values"
    last = line.positions[-1]
    if trace.linear[last].op is Ops.WMMA and trace.executed.get(last):
        yield f"executed {plural(trace.executed[last], 'time')} by single work-items"
    if trace.divergent.get(last):
        warps = plural(trace.divergent[last], "warp")
        yield f"{warps} of which some go on, some not"
    if trace.barriers.get(last):
        yield f"{plural(trace.barriers[last], 'group')} waited"


def _access_words(memory: str, count: AccessCount) -> str:
    verb = "writes" if count.is_store else "reads"
    if count.space == "global":
        transactions = plural(count.transactions, "transaction")
        nbytes = f"{count.bytes_wanted:,} bytes wanted, {count.bytes_moved:,} moved"
        return f"{verb} {memory}: {transactions}, {nbytes}"
    conflicts = f"{count.conflicts:,} of them for conflicts" if count.conflicts else "no conflict"
    passes = plural(count.transactions, "pass")
    return f"{verb} {memory}: {passes} over the banks, {conflicts}"


# --------------------------------------------------------------------------------------------------
# A kernel on the emulator, as text.


def gpu_text(ex: ScheduledTensors, kernels: Sequence[tuple[int, Kernel]]) -> str:
    """Return the runs of the first kernels, and the programs of the others. As in the pane, a
    kernel without opts gets the default opts: without them, groups have one work-item."""
    first = {place for place, _ in kernels[:MOST_KERNELS]}

    def text_of(place: int, kernel: Kernel) -> str:
        return explained(lambda: _kernel_text(kernel, place in first))

    return kernels_text(ex, kernels, text_of)


def _kernel_text(kernel: Kernel, is_first: bool) -> str:
    opened = kernel if kernel.applied_opts else kernel.optimized()
    opts = ", ".join(map(str, opened.applied_opts)) or "no opts"
    names = [f"p{slot} is {name}" for slot, name in enumerate(opened.names) if name]
    head = f"{target_of(opened).device}, {opts}"
    lines = [head, *([", ".join(names)] if names else [])]
    trace = unasked_run(opened) if is_first and opened.has_data else None
    lines.append(_program(opened, is_first) if trace is None else run_text(trace))
    return "\n".join(lines)


def _program(kernel: Kernel, is_first: bool) -> str:
    """Return the program of a kernel that is not run, and the reason."""
    linear = stages(kernel.ast, target_of(kernel), "linear").linear
    launch = launch_shape(linear)
    groups = plural(math.prod(launch.grid), "group")
    items = plural(math.prod(launch.group), "work-item")
    if not kernel.has_data:
        why = "the data of its tensors are not here"
    elif is_first:
        seconds = plural(round(seconds_for_steps(kernel)), "second")
        why = f"a group alone would take about {seconds}"
    else:
        why = f"only the first {MOST_KERNELS} kernels are; emulate(kernel) runs this"
    lines = [f"{groups} of {items}", f"not run: {why}"]
    lines += ["  " * (x.depth + 1) + x.text for x in program_lines(linear)]
    return "\n".join(lines)


PANEL = Panel(pane="gpu", mode="gpu", text=gpu_text, has_steps=True)
