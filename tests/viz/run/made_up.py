"""A run that no machine made: the same numbers everywhere, with all that a page can show."""

from __future__ import annotations

from random import Random

from workbench.viz.schema.run import (
    RunError,
    RunGaps,
    RunHelp,
    RunKernel,
    RunLane,
    RunMemory,
    RunRecord,
    RunShare,
    RunSpans,
)

KINDS = ["kernel", "part", "realize", "schedule", "compile"]
CAUSES = ["launch", "compile"]


def made_up(
    titles: list[str], rounds: int = 5, slower: float = 1.0, seed: int = 0, places: bool = True
) -> RunRecord:
    """Return a run of some kernels; the first one is `slower`. Kernel i is of module net.i."""
    random = Random(seed)
    kernels = [_kernel(i, title, places) for i, title in enumerate(titles)]
    spans, gaps = RunSpans([], [], [], [], [], []), RunGaps([], [], [], [])
    memory = RunMemory(["RAM"], [4096], [], [], [], [], [], 0, 0)
    starts, now = [], 0
    for _ in range(rounds):
        starts.append(now)
        rows = []
        at = now + 1_000
        for i, kernel in enumerate(kernels):
            length = int((2_000 + 1_000 * i) * (slower if i == 0 else 1) + random.randrange(20))
            rows.append((at, length, 1, 0, 0, i))
            _add(gaps, at + length, 500, 1, i % 2)
            _add(memory, at, at + length + 3_000, 1024 * (i + 1), 0, i)
            kernel.launches += 1
            kernel.total_ns += length
            kernel.median_ns = float(kernel.total_ns // kernel.launches)
            at += length + 500
        rows += [(now, at - now, 0, 0, 2, len(titles)), (now + 100, 800, 0, 1, 3, -1)]
        for row in sorted(rows):
            _add(spans, *row)
        now = at
    total = sum(kernel.total_ns for kernel in kernels)
    for kernel in kernels:
        kernel.share = kernel.total_ns / total
        kernel.low_ns, kernel.high_ns = kernel.median_ns - 10, kernel.median_ns + 10
        kernel.ratio = kernel.median_ns / 1_500
    memory.peak_bytes = 4096 + 1024 * sum(range(len(titles) + 1))
    lanes = [RunLane("MainThread", "python", "", 0), RunLane("CPU", "device", "CPU", 0)]
    help_row = RunHelp(0, 'UPCAST("g0", 4)', 1_000.0, kernels[0].median_ns, 1_000.0, True)
    return RunRecord(
        title=f"of {len(titles)} kernels", machine="a machine, 2 cores", length_ns=now,
        rounds=starts, kinds=KINDS, causes=CAUSES, names=[*titles, "a round"], kernels=kernels,
        lanes=lanes, spans=spans, gaps=gaps, memory=memory,
        phases=[RunShare("kernels", total, total / now, len(spans.kind))],
        modules=[], by_kind=[], help=[help_row], errors=[RunError(1, "it was stopped")], error="",
        notices=["a clock went back by 3 ns"],
    )  # fmt: skip


def _kernel(place: int, title: str, has_place: bool) -> RunKernel:
    return RunKernel(
        key=f"{place:x}", name=f"r_{place}", title=title, kind=title.split(" ")[0], device="CPU",
        opts="", module=f"net.{place}", line="In [1], line 1", phase="",
        place=place if has_place else None, flops=1e6, bytes=2048.0, predicted_ns=1_500.0,
        bound="memory", why="2048 bytes at 1 GB/s",
    )  # fmt: skip


def _add(columns: RunSpans | RunGaps | RunMemory, *row: int) -> None:
    lists = [getattr(columns, name) for name in columns.__struct_fields__]
    tables = [column for column in lists if isinstance(column, list)][-len(row) :]
    if isinstance(columns, RunMemory):
        tables = [
            columns.start_ns, columns.end_ns, columns.bytes, columns.memory, columns.label,
        ]  # fmt: skip
    for column, value in zip(tables, row, strict=True):
        column.append(value)
