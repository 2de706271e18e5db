"""Later readers of memory: graphs, and values that are registered as a Reader."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Protocol
from weakref import WeakSet

from workbench.execution.values import noted_results, without_detach
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.schedule import base


class Reader(Protocol):
    """A value that reads BUFFERs at any later time."""

    def buffers_read(self) -> Iterable[UOp]:
        """Return the BUFFERs whose contents it may still need."""


_readers: WeakSet[Reader] = WeakSet()


def read_by(reader: Reader) -> None:
    """Do not overwrite what `reader` needs, as long as it lives."""
    _readers.add(reader)


def read_later(nodes: Iterable[UOp], computed: Container[UOp]) -> set[UOp]:
    """Return the nodes of these graphs, without DETACH, down to those that are `computed`, and the
    BUFFERs that they have in memory, or that a Reader needs."""
    root = UOp.sink(*without_detach([*nodes]))
    read = set(root.toposort(lambda node: node not in computed))
    read.update(map(base, noted_results(read)))
    read.update(b for reader in [*_readers] for b in reader.buffers_read())
    return read
