"""This machine's bandwidth for distant cache lines, as in reading a column of a matrix.

A loop reads one line of each row, then the next line of each row. No step continues where the one
before ended. If the distance of the rows is a multiple of the size of a cache's way, all lines fall
into a few sets of the cache.
"""

from __future__ import annotations

from functools import lru_cache
from string import Template

from workbench.backends.device import Device
from workbench.backends.program.launch import LaunchShape
from workbench.backends.program.text import Source
from workbench.base.dtypes import dtypes
from workbench.measure.bandwidth import Walk, working_memory
from workbench.measure.timing import measure

_AT_ONCE = 4
"""Rows in a step. Each has its own accumulator, so that none waits for another."""
_LEAST_RUN = 1 << 20
"""Least bytes that one run reads, so that the time of its launch is negligible."""
_BUDGET_S = 0.01


def far_bandwidth(size_bytes: int, row_bytes: int) -> float:
    """Return the bandwidth of one thread that reads `size_bytes`, a line of each row in turn; rows
    are `row_bytes` apart.

    Units: bytes per second. Errors: DeviceError without llvmlite.
    """
    walked = far_walk(size_bytes, row_bytes)
    return walked.bytes / measure(walked.run, budget_s=_BUDGET_S).min_s


@lru_cache
def far_walk(size_bytes: int, row_bytes: int) -> Walk:
    """Return the Walk that `far_bandwidth` measures."""
    line = Device.processor.target.line_bytes
    steps = max(1, size_bytes // row_bytes // _AT_ONCE)
    lines = row_bytes // line
    walked = steps * _AT_ONCE * lines * line
    passes = max(1, _LEAST_RUN // walked)
    data = working_memory(steps * _AT_ONCE * row_bytes)
    text = _source(steps, lines, line, row_bytes)
    shape = LaunchShape.on_processor(passes, 1)
    source = Source("far_lines", "LLVM IR", text, ((dtypes.uint8, data.size),), launch=shape)
    return Walk(Device.processor.load(source).bind([data]), walked * passes)


_WALK = Template("""define void @far_lines(ptr %args, i64 %lo, i64 %hi) {
entry:
  %p0 = load ptr, ptr %args, align 8
  br label %pass
pass:
  %i = phi i64 [ %lo, %entry ], [ %i.next, %walked ]
$outer
  br label %line
line:
  %k = phi i64 [ 0, %pass ], [ %k.next, %column ]
$middle
  %column.at = mul i64 %k, $line
  br label %step
step:
  %j = phi i64 [ 0, %line ], [ %j.next, %step ]
$inner
  %row.at = mul i64 %j, $stride
  %at = add i64 %row.at, %column.at
$loads
  %j.next = add i64 %j, 1
  %more = icmp slt i64 %j.next, $steps
  br i1 %more, label %step, label %column
column:
  %k.next = add i64 %k, 1
  %further = icmp slt i64 %k.next, $lines
  br i1 %further, label %line, label %walked
walked:
  %i.next = add i64 %i, 1
  %again = icmp slt i64 %i.next, %hi
  br i1 %again, label %pass, label %done
done:
$used
  ret void
}
""")
_OUTER = "  %o$n = phi <4 x i32> [ zeroinitializer, %entry ], [ %y$n, %walked ]"
_MIDDLE = "  %m$n = phi <4 x i32> [ %o$n, %pass ], [ %y$n, %column ]"
_INNER = "  %x$n = phi <4 x i32> [ %m$n, %line ], [ %y$n, %step ]"
_LOAD = """  %f$n = add i64 %at, $offset
  %a$n = getelementptr i8, ptr %p0, i64 %f$n
  %v$n = load <4 x i32>, ptr %a$n, align 4
  %y$n = or <4 x i32> %x$n, %v$n"""
_USED = "  store <4 x i32> %y$n, ptr %p0, align 4"
"""A use of the loaded values; without it a compiler removes the loads."""


def _source(steps: int, lines: int, line_bytes: int, row_bytes: int) -> str:
    def each(text: str) -> str:
        template = Template(text)
        return "\n".join(template.substitute(n=n, offset=n * row_bytes) for n in range(_AT_ONCE))

    return _WALK.substitute(
        outer=each(_OUTER),
        middle=each(_MIDDLE),
        inner=each(_INNER),
        loads=each(_LOAD),
        used=each(_USED),
        steps=steps,
        lines=lines,
        line=line_bytes,
        stride=_AT_ONCE * row_bytes,
    )
