"""The expression of tensors at the time of `explore`, whatever is computed or written later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from workbench.backends.device import Device
from workbench.base.source import Derivation
from workbench.execution.readers import read_by
from workbench.execution.values import computed_below, results_of, value_in_memory, with_computed
from workbench.ir.gradient.occurrences import without_aliases
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.schedule import base
from workbench.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Expression:
    """The nodes of some tensors, their devices (None: any), and the lines that made them.

    `computed` has the memory of the values that had been computed: a plan reads those, and computes
    all others, also where they have been computed since. `written` are the derivations of those
    that were written.
    """

    nodes: tuple[UOp, ...]
    devices: tuple[str | None, ...]
    derivations: tuple[Derivation | None, ...]
    written: tuple[Derivation, ...]
    computed: Mapping[UOp, UOp]

    def __post_init__(self) -> None:
        read_by(self)

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> Expression:
        """Return the present expression of tensors."""
        nodes = without_aliases([t.uop for t in tensors])
        written = (t.derivation for t in tensors if t._memory and t._memory.is_written)
        return cls(
            nodes,
            tuple([t._device for t in tensors]),
            tuple([t.derivation for t in tensors]),
            tuple([derivation for derivation in written if derivation is not None]),
            computed_below(nodes),
        )

    def buffers_read(self) -> Iterator[UOp]:
        """Return the BUFFERs that it is computed from: none of them is written over."""
        graph = with_computed(UOp.sink(*self.nodes), self.computed).toposort()
        return (node for node in graph if node.op is Ops.BUFFER)

    def places_by_device(self) -> dict[str, list[int]]:
        """Return the places of the tensors on each device."""
        places: dict[str, list[int]] = {}
        for place, device in enumerate(self.devices):
            places.setdefault(device or Device.DEFAULT, []).append(place)
        return places

    def node_of(self, tensor: Tensor) -> UOp:
        """Return the node of this expression that a tensor stood for; its present one, if it is
        none of this."""
        graph = UOp.sink(*self.nodes).toposort()
        (node,) = without_aliases([tensor.uop])
        memory = value_in_memory(node)
        if node in graph or memory.op is not Ops.BUFFER:
            return node
        results = zip(graph, results_of(list(graph)), strict=True)
        same = [n for n, result in results if result and base(result) is memory]
        same.sort(key=lambda n: n.shape != tensor.shape)
        return same[0] if same else node
