"""An exported program of PyTorch, run over Tensors: one row of the table for each node."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

from workbench.base.dtypes import DType
from workbench.models.check import ModelValue
from workbench.models.model import ModelResults, OperatorUse, Port, counted
from workbench.models.torch.nodes import (
    STRIDES_OF_A_VIEW,
    NodeCalls,
    cannot_compute,
    is_random,
    load_rows,
    operator_name,
    refusal_of,
    where,
)
from workbench.models.torch.values import dtype_of, from_torch, to_torch
from workbench.tensor.tensor import Tensor


class ExportedGraph:
    """A graph of ATen operators, with the `state` of its module."""

    is_replayable = True

    def __init__(self, exported: Any, state: Mapping[str, Tensor]):
        load_rows()
        self._exported, self._state = exported, state
        self._nodes = list(exported.graph.nodes)
        self._signature = exported.graph_signature
        self._calls = NodeCalls()

    @cached_property
    def inputs(self) -> tuple[Port, ...]:
        names = set(self._signature.user_inputs)
        return tuple(_port(node) for node in self._nodes if node.name in names and _is_tensor(node))

    @cached_property
    def outputs(self) -> tuple[Port, ...]:
        nodes = {node.name: node for node in self._nodes}
        names = [n for n in self._signature.user_outputs if n in nodes]
        return tuple(_port(nodes[name]) for name in names)

    @cached_property
    def operators(self) -> tuple[OperatorUse, ...]:
        calls = [
            n for n in self._nodes if n.op == "call_function" and n.target is not operator.getitem
        ]
        return counted((operator_name(n), where(n), refusal_of(n)) for n in calls)

    def refuse_strides(self) -> None:
        """Raise ModelError if an operator reads memory by strides: inputs are views of memory whose
        other elements are not there."""
        for node in self._nodes:
            if node.op == "call_function" and operator_name(node) == "as_strided":
                raise cannot_compute(node, STRIDES_OF_A_VIEW)

    def run(self, inputs: Sequence[Tensor]) -> ModelResults:
        """Return the expressions of the outputs for `inputs`.

        Errors: ModelError for an operator that cannot be computed here, with its module and line.
        """
        values = self._computed(inputs)
        spec = self._signature
        written = {to: values[name] for name, to in spec.buffers_to_mutate.items()}
        outputs = tuple(values[name] for name in spec.user_outputs if name in values)
        return ModelResults(outputs, written)

    def node_values(self, inputs: Sequence[Tensor]) -> Iterator[ModelValue]:
        """Yield what each node makes of `inputs`, with what PyTorch's operators make of them; then
        the values that are written to the module's state, by their names there. What is drawn at
        random, such as masks of dropout, is PyTorch's on both sides."""
        import torch

        given = iter(inputs)
        placed = [self._placed(n, given) for n in self._nodes if n.op == "placeholder"]
        arguments = [to_torch(v) if isinstance(v, Tensor) else v for v in placed]
        module = self._exported.graph_module
        interpreter: Any = torch.fx.Interpreter(module, garbage_collect_values=False)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            interpreter.run(*arguments)
        theirs = {node.name: value for node, value in interpreter.env.items()}
        drawn = {
            node.name: _ours(theirs[node.name]) for node in self._nodes if is_random(node.target)
        }
        values = self._computed(inputs, drawn)
        made: dict[str, ModelValue] = {}
        for node in self._nodes:
            value = values.get(node.name)
            if node.op == "call_function" and isinstance(value, Tensor):
                maker = node.args[0] if node.target is operator.getitem else node
                place = f"{where(node)}: {operator_name(maker)}"
                array = from_torch(theirs[node.name]).numpy()
                made[node.name] = ModelValue(node.name, place, value, array)
                yield made[node.name]
        for name, state in self._signature.buffers_to_mutate.items():
            if name in made:
                yield made[name]._replace(name=state)

    def _computed(
        self, inputs: Sequence[Tensor], drawn: Mapping[str, Any] = MappingProxyType({})
    ) -> dict[str, Any]:
        """Return the values of nodes; those that are `drawn` are not computed."""
        values: dict[str, Any] = dict(drawn)
        given = iter(inputs)
        for node in self._nodes:
            if node.op == "placeholder":
                values[node.name] = self._placed(node, given)
            elif node.op == "call_function" and node.name not in drawn:
                values[node.name] = self._calls(node, values.__getitem__)
        return values

    def structured(self, outputs: Sequence[Tensor]) -> Any:
        """Return the outputs in the structure that the module returns."""
        from torch.utils import _pytree

        leaves = iter(outputs)
        kinds = self._exported.graph_signature.output_specs
        each = [s for s in kinds if s.kind.name == "USER_OUTPUT"]
        filled = [
            next(leaves) if hasattr(s.arg, "name") and s.arg.name else s.arg.value for s in each
        ]
        return _pytree.tree_unflatten(filled, self._exported.call_spec.out_spec)

    def _placed(self, node: Any, given: Iterator[Tensor]) -> Any:
        spec = self._signature
        for table in (spec.inputs_to_parameters, spec.inputs_to_buffers):
            if node.name in table:
                return self._state[table[node.name]]
        constants = spec.inputs_to_lifted_tensor_constants
        if node.name in constants:
            return self._state[constants[node.name]]
        if node.name in spec.input_tokens:  # the order of effects: no value
            return None
        return next(given) if _is_tensor(node) else node.meta.get("val")


def _ours(value: Any) -> Any:
    """Return a result of PyTorch's as Tensors."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_ours, value))
    return None if value is None else from_torch(value)


def _is_tensor(node: Any) -> bool:
    return hasattr(node.meta.get("val"), "dtype")


def _port(node: Any) -> Port:
    value = node.meta["val"]
    return Port(node.name, tuple(int(n) for n in value.shape), _dtype(value))


def _dtype(value: Any) -> DType:
    return dtype_of(value.dtype)
