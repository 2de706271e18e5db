"""A run on the emulator as text: the program of a work-item, and below each line its cost, in the
words of the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from workbench.base.errors import plural
from workbench.emulator.accesses import AccessCount
from workbench.emulator.trace import Trace
from workbench.ir.nest.accesses import name_of
from workbench.ir.node.ops import Ops
from workbench.ir.text.program import ProgramLine, program_lines

QUIET = "no race, nothing unwritten that is used, nothing out of bounds"


def run_text(trace: Trace) -> str:
    """Return a run: what all of it cost, its program with what each line cost, its findings."""
    lines = str(trace).splitlines()
    if not trace.is_whole:
        lines.append("these counts are of one group alone: the launch is too large")
    if not trace.findings:
        lines.append(QUIET)
    for line in program_lines(trace.linear):
        indent = "  " * (line.depth + 1)
        lines.append(f"{indent}{line.text}")
        costs = Counter(_costs(trace, line))
        for words, times in costs.items():
            repeats = f", {times} times" if times > 1 else ""
            lines.append(f"{indent}    {words}{repeats}")
    return "\n".join([*lines, *map(trace.with_lines, trace.inefficiencies)])


def _costs(trace: Trace, line: ProgramLine) -> Iterator[str]:
    """Yield what a line cost, all work-items together."""
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
