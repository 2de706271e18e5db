"""Values that kernels read of each other, and those that the forward stores for the backward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workbench.base.source import SourceLine
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import ScheduleItem
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model.title import value_name
from workbench.viz.model.training.phases import BACKWARD, FORWARD
from workbench.viz.model.words import shape_text


class StoredRead(NamedTuple):
    """A value that kernel number `reader` reads, where kernel number `source` stored it."""

    source: int
    reader: int
    node: UOp

    @property
    def bytes(self) -> int:
        """The bytes of the whole value."""
        return self.node.size * self.node.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Activation:
    """A value that a kernel of the forward stores and kernels of the backward read: what it is
    called, the user's module that made it, and the line in it."""

    node: UOp
    name: str
    module: str
    line: SourceLine | None
    kernel: int
    readers: tuple[int, ...]
    bytes: int


def stored_reads(items: Sequence[ScheduleItem]) -> Iterator[StoredRead]:
    """Yield the values that kernels read of each other, a copy to another device as its source."""
    stored: dict[UOp, tuple[int, UOp]] = {}
    number = 0
    for item in items:
        sources = [stored[buffer] for buffer in item.inputs if buffer in stored]
        if item.kernel is None:
            stored |= dict(zip(item.outputs, sources, strict=False))
            continue
        for source, node in dict.fromkeys(sources):
            yield StoredRead(source, number, node)
        values = [(number, node) for node in item.nodes]
        stored |= dict(zip(item.outputs, values, strict=True))
        number += 1


def activations(ex: ScheduledTensors) -> list[Activation]:
    """Return the values that kernels of the forward store and kernels of the backward alone read,
    the largest first."""
    reads: dict[UOp, list[StoredRead]] = {}
    for read in stored_reads(ex.items):
        stored_by, read_by = (ex.kernels[k].phases for k in read[:2])
        is_for_backward = BACKWARD in read_by and FORWARD not in read_by
        if FORWARD in stored_by and is_for_backward:
            if ex.lines.phase(read.node) != BACKWARD:
                reads.setdefault(read.node, []).append(read)
    rows = [_activation(ex, some) for some in reads.values()]
    return sorted(rows, key=lambda row: (-row.bytes, row.kernel))


def _activation(ex: ScheduledTensors, reads: Sequence[StoredRead]) -> Activation:
    source, _, node = reads[0]
    kernel = ex.kernels[source]
    calls = ex.lines.modules(node) or kernel.modules
    line = ex.lines.nearest(node) or kernel.line
    named = ex.lines.name(node) or value_name(node, ex.lines.on)
    return Activation(
        node,
        f"{named} {shape_text(node.shape)}",
        str(calls[0]) if calls else "",
        line.inner[-1] if line is not None and line.inner else line,
        source,
        tuple(read.reader for read in reads),
        reads[0].bytes,
    )
