"""The output of the setting DEBUG on stderr, by level (`base/context.py` has the table).

Level 2, the line for each kernel that runs, is in `counters.py`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

from workbench.backends.contract import DeviceInfo
from workbench.base.context import DEBUG
from workbench.base.errors import plural
from workbench.base.trace import PassRecord
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import axes
from workbench.ir.schedule.plan import ScheduleItem
from workbench.ir.text.program import to_expr

_ALL_PASSES = 7
"""The level that prints each pass, and needs its record."""


def debug_print(level: int, text: str) -> None:
    """Print `text` on stderr if DEBUG is at least `level`."""
    if DEBUG.value >= level:
        print(text, file=sys.stderr)


def needs_records() -> bool:
    """Whether DEBUG prints the passes of compilations, and so needs their records."""
    return bool(DEBUG.value >= _ALL_PASSES)


def prints_stages() -> bool:
    """Whether DEBUG prints stages of compilations before the source."""
    return bool(DEBUG.value >= 3)


def say_scheduled(items: Sequence[ScheduleItem], seconds: float) -> None:
    """Print the numbers of kernels and copies of a schedule, at level 1."""
    if DEBUG.value < 1 or not items:
        return
    kernels = sum(item.kernel is not None for item in items)
    copies = len(items) - kernels
    words = f"{plural(kernels, 'kernel')}, {plural(copies, 'copy')}"
    debug_print(1, f"schedule: {words}, {seconds * 1e3:.2f} ms")


def say_planned(plan: Any) -> None:
    """Print a memory plan with shared memory, at level 1; nothing for None."""
    if DEBUG.value >= 1 and plan is not None and plan.pieces:
        debug_print(1, f"memory: {plan}")


def say_compiled(
    info: DeviceInfo, kernel: UOp, stages: Any, records: Sequence[PassRecord] = ()
) -> None:
    """Print a compiled kernel: its device once (level 1), statement tree (3), opts and source (4),
    linear program (5), machine code (6), and passes (7). `stages` are those of `pipeline.py`."""
    if DEBUG.value >= 1:
        _say_device(info)
    if not prints_stages():
        return
    debug_print(3, f"{info.name} {kernel.arg.name}\n{to_expr(stages.tree)}")
    shape = " ".join(f"{a.name}={a.size}" for a in axes(kernel))
    debug_print(4, f"opts: {shape}\n{stages.source.text}")
    debug_print(5, to_expr(stages.linear))
    if DEBUG.value >= 6:
        code = getattr(stages.program, "assembly", None)
        debug_print(6, f"{info.name} has no machine code" if code is None else str(code))
    for record in records:
        debug_print(_ALL_PASSES, _line(record))


@cache
def _say_device(info: DeviceInfo) -> None:
    debug_print(1, f"device {info.name}: {info.about}")


def _line(record: PassRecord) -> str:
    fired = Counter(str(match.rule) for match in record.matches)
    rules = ", ".join(f"{name} {count}" for name, count in fired.most_common())
    return f"pass {record.name:24} {record.seconds * 1e3:8.2f} ms  {rules}"
