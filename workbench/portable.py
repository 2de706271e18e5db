"""Graphs as values that can be pickled, with the contents of their memory.

A BUFFER names memory of its process: in another process the same name is other memory, or none. So
a node cannot be pickled, but a Portable can. It is a list of nodes, each after its sources, since
pickle cannot handle deeply nested graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.backends.native.host_memory import HOST
from workbench.base.dtypes import DType
from workbench.execution.buffers import Array, buffer_on, host_buffer, read
from workbench.execution.memory_plan import with_computed
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.pickles import pickled


@pickled
@dataclass(frozen=True, slots=True)
class Node:
    """A node; `sources` are the positions of its sources in the list."""

    op: Ops
    dtype: DType
    sources: tuple[int, ...]
    arg: Any

    def restored(self, nodes: Sequence[UOp]) -> UOp:
        """Return the node as a UOp; `nodes` has its sources."""
        return UOp(self.op, self.dtype, tuple(nodes[n] for n in self.sources), self.arg)


@pickled
@dataclass(frozen=True, slots=True)
class PickledMemory:
    """The contents of a BUFFER, with its device, dtype and shape."""

    device: str
    dtype: DType
    shape: Shape
    values: Array

    def restored(self, nodes: Sequence[UOp]) -> UOp:
        """Return a new BUFFER with the same contents in this process.

        Errors: DeviceError for a device that is not available in this process.
        """
        if self.device == HOST:
            return host_buffer(self.values.reshape(self.shape))
        device = Device.canonical(self.device)
        return buffer_on(Buffer.of(device, self.dtype, self.values), self.shape)


@pickled
@dataclass(frozen=True, slots=True)
class Portable:
    """A graph and its data; `roots` are the positions of its roots in the list."""

    nodes: tuple[Node | PickledMemory, ...]
    roots: tuple[int, ...]

    def restored(self) -> list[UOp]:
        """Return the roots as nodes of this process, on new memory."""
        nodes: list[UOp] = []
        for node in self.nodes:
            nodes.append(node.restored(nodes))
        return [nodes[n] for n in self.roots]


def portable(*roots: UOp) -> Portable:
    """Return graphs with the present contents of their memory, and without DETACH, which refers to
    a leaf of this process. Computed values are stored as memory, since memory that they were
    computed from may have been overwritten.

    Errors: JitError while a function is captured: each replay would have the same contents.
    """
    places: dict[UOp, int] = {}
    nodes: list[Node | PickledMemory] = []
    roots = with_computed(UOp.sink(*roots)).src
    for node in list(UOp.sink(*roots).toposort())[:-1]:
        places[node] = len(nodes)
        sources = tuple(places[source] for source in node.src)
        nodes.append(
            PickledMemory(node.device, node.dtype, node.buffer_shape, read(node))
            if node.op is Ops.BUFFER
            else Node(node.op, node.dtype, sources, node.arg)
        )
    return Portable(tuple(nodes), tuple(places[root] for root in roots))
