"""Lazy tensors of tinygrad as sources: their expressions, on their own memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.base.errors import ModelError, kind_of
from workbench.base.variables import variables
from workbench.models.model import BoundInputs
from workbench.models.tinygrad.graph import TinygradGraph
from workbench.models.tinygrad.values import base_of, buffers_below, computed_buffer, memory_of
from workbench.tensor.tensor import Tensor


class TinygradSource:
    """The expression that a tinygrad Tensor stands for when it is read. It has no inputs: what
    tinygrad has computed before is its state. Arguments of a call are more tinygrad Tensors, which
    are computed with it (gradients, the updates of an optimiser).

    Nothing is written to tinygrad's memory: a tensor that is assigned to has the value that the
    memory will have. Such memory is copied, so that the value is the same after tinygrad writes it.
    """

    name = "a tinygrad Tensor"

    def __init__(self, source: Any):
        self._node = source.uop
        self._names: dict[str, Any] = {}
        for name, tensor in variables(type(source)):
            self._names.setdefault(name, tensor.uop)
        self._memory: dict[Any, Tensor] = {}
        self._copied: set[Any] = set()
        self._state_names: dict[Any, str] = {}
        self.state: dict[str, Tensor] = {}
        self._take([self._node])

    @property
    def parameter_names(self) -> Sequence[str]:
        return [name for name, tensor in self.state.items() if tensor.dtype.is_float]

    def bound(self, arguments: tuple[object, ...], options: Mapping[str, object]) -> BoundInputs:
        """Return the nodes of the tensors that are computed together.

        Errors: ModelError for an argument that is not a tinygrad Tensor.
        """
        from tinygrad import Tensor as TinygradTensor

        for value in (*arguments, *options.values()):
            if not isinstance(value, TinygradTensor):
                what = f"a tinygrad Tensor is not called with {kind_of(value)}"
                because = "it has no inputs; with more tinygrad Tensors it is computed with these"
                raise ModelError(what, because, "explore(t) alone")
        more: Any = (*arguments, *options.values())
        nodes = tuple(dict.fromkeys([self._node, *(tensor.uop for tensor in more)]))
        return BoundInputs((), nodes, nodes)

    def graph(self, call: BoundInputs) -> TinygradGraph:
        nodes = call.arguments
        self._take(nodes)
        names = {node: name for name, node in reversed(self._names.items())}
        places = {node: f"output{place or ''}" for place, node in enumerate(nodes)}
        roots = {names.get(node, places[node]): node for node in nodes}
        return TinygradGraph(roots, self._memory, self._names)

    def _take(self, nodes: Sequence[Any]) -> None:
        """Enter the buffers below nodes that tinygrad has computed."""
        names = {base_of(node): name for name, node in reversed(self._names.items())}
        for node, is_written in buffers_below(nodes).items():
            buffer = computed_buffer(node)
            is_entered = node in (self._copied if is_written else self._memory)
            if buffer is None or is_entered:
                continue
            name = self._state_names.setdefault(node, names.get(node, f"buffer{len(self.state)}"))
            self._memory[node] = self.state[name] = memory_of(buffer, copied=is_written)
            if is_written:
                self._copied.add(node)
