"""PyTorch modules as sources: exported for the shapes of their inputs, on their own memory."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from workbench.base.errors import ModelError
from workbench.models.model import BoundInputs
from workbench.models.torch.export import decomposed, exported
from workbench.models.torch.graph import ExportedGraph
from workbench.models.torch.nodes import load_rows, name_of
from workbench.models.torch.table import WHOLE
from workbench.models.torch.values import from_torch, torch_dtype
from workbench.tensor.tensor import Tensor


class TorchSource:
    """A torch.nn.Module, or a program that torch.export.export returned."""

    def __init__(self, source: Any):
        import torch

        self._module: Any = source if isinstance(source, torch.nn.Module) else None
        self._program = None if self._module is not None else source
        self.name = type(source).__name__
        self.state: dict[str, Tensor] = {}
        self.parameter_names: Sequence[str] = ()
        if self._module is None:
            self._take(source.state_dict)
            self.parameter_names = list(source.graph_signature.parameters)
        else:
            self._take(dict(source.named_parameters(remove_duplicate=False)))
            self._take(dict(source.named_buffers(remove_duplicate=False)))
            self.parameter_names = [name for name, _ in source.named_parameters()]

    def bound(self, arguments: tuple[object, ...], options: Mapping[str, object]) -> BoundInputs:
        """Return the arguments with their tensors, in PyTorch's order of nested structures."""
        from torch.utils import _pytree

        given, structure = _pytree.tree_flatten((arguments, dict(options)))
        leaves = [_leaf(leaf) for leaf in given]
        tensors = tuple(leaf for leaf in leaves if isinstance(leaf, Tensor))
        key = tuple((t.shape, t.dtype) if isinstance(t, Tensor) else _constant(t) for t in leaves)
        has_views = any(map(_is_view, given))
        training = None if self._module is None else _modes(self._module)
        arguments = leaves, structure, has_views
        return BoundInputs(tensors, (key, str(structure), training, has_views), arguments)

    def graph(self, call: BoundInputs) -> ExportedGraph:
        """Return the graph for arguments like those of `call`.

        Errors: ModelError where PyTorch cannot export the module, or the arguments are not those of
        the exported program.
        """
        from torch.utils import _pytree

        leaves, structure, has_views = call.arguments
        examples = [_example(leaf) for leaf in leaves]
        arguments, options = _pytree.tree_unflatten(examples, structure)
        program = self._program
        if program is None:
            program = exported(self._module, arguments, options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are about PyTorch's own code
            _detach_without_gradients(program.graph)
            program = decomposed(program, _decompositions())
        self._take(program.constants)
        graph = ExportedGraph(program, self.state)
        self._check(graph, call)
        if has_views:
            graph.refuse_strides()
        return graph

    def _take(self, values: Mapping[str, Any]) -> None:
        """Add values to the state. Names of one tensor, as of tied weights, have one Tensor."""
        import torch

        shared: dict[int, Tensor] = {}
        for name, value in values.items():
            if isinstance(value, torch.Tensor) and name not in self.state:
                if id(value) not in shared:
                    shared[id(value)] = from_torch(value)
                self.state[name] = shared[id(value)]

    def _check(self, graph: ExportedGraph, call: BoundInputs) -> None:
        given = [(t.shape, t.dtype) for t in call.tensors]
        wanted = [(port.shape, port.dtype) for port in graph.inputs]
        if given != wanted:
            has = ", ".join(f"{t.dtype}{list(t.shape)}" for t in call.tensors) or "none"
            takes = ", ".join(map(str, graph.inputs)) or "no tensors"
            raise ModelError(f"{self.name} does not take these inputs: {has}", f"it takes {takes}")


def _leaf(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return from_torch(value)
    return Tensor(value) if isinstance(value, np.ndarray) else value


def _is_view(value: Any) -> bool:
    """Whether a tensor of PyTorch's is a part of its memory, or in another order there."""
    import torch

    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return False
    return not value.is_contiguous() or value.untyped_storage().nbytes() != value.nbytes


def _constant(value: Any) -> object:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return type(value), value


def _modes(module: Any) -> tuple[bool, ...]:
    return tuple(each.training for each in module.modules())


def _example(leaf: Any) -> Any:
    import torch

    if not isinstance(leaf, Tensor):
        return leaf
    return torch.zeros(leaf.shape, dtype=torch_dtype(leaf.dtype))


def _detach_without_gradients(graph: Any) -> None:
    """Detach the results of `torch.no_grad` blocks, which decompositions put in line."""
    import torch

    for node in list(graph.nodes):
        if node.target is torch.ops.higher_order.wrap_with_set_grad_enabled and not node.args[0]:
            for result in list(node.users):
                with graph.inserting_after(result):
                    detached = graph.call_function(torch.ops.aten.detach.default, (result,))
                detached.meta = dict(result.meta)
                result.replace_all_uses_with(detached, lambda user, own=detached: user is not own)


def _decompositions() -> Any:
    """Return PyTorch's decompositions into core operators, without those of operators that the
    table has whole: attention stays one, and a gradient ends where it is detached."""
    load_rows()
    return {op: f for op, f in _core_decompositions().items() if name_of(op) not in WHOLE}


@cache
def _core_decompositions() -> dict[Any, Any]:
    """Return PyTorch's table, which takes half a second to make."""
    import torch

    table: Any = torch.export.default_decompositions()
    return dict(table.items())
