"""A graph of ONNX for inputs of certain shapes: a model of it, by its inputs, outputs and nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from workbench.models.check import ModelValue
from workbench.models.model import ModelResults, OperatorUse, Port, counted
from workbench.models.onnx.evaluation import Evaluation, GraphScope
from workbench.models.onnx.file import Body, Function, ModelFile, inner_bodies
from workbench.models.onnx.reference import reference_values
from workbench.models.onnx.values import Array, Value
from workbench.tensor.tensor import Tensor


class OnnxGraph:
    """The graph of a file for inputs of certain shapes; `known` are inputs whose values are part of
    that, by name."""

    is_replayable = True

    def __init__(
        self,
        file: ModelFile,
        state: Mapping[str, Tensor],
        inputs: tuple[Port, ...],
        known: Mapping[str, Array],
    ):
        self.inputs = inputs
        self.outputs: tuple[Port, ...] = ()
        self._file, self._known = file, known
        self._constants: dict[str, Value] = {
            name: Value(array, state.get(name)) for name, array in file.body.constants.items()
        }
        self._evaluation = Evaluation(file.functions)

    @cached_property
    def operators(self) -> tuple[OperatorUse, ...]:
        return counted(self._uses(self._file.body, set()))

    def run(self, inputs: Sequence[Tensor]) -> ModelResults:
        """Return the expressions of the outputs for `inputs`.

        Errors: ModelError for a node that cannot be computed here, with its name.
        """
        scope = self._evaluated(inputs)
        names = self._file.body.outputs
        results = []
        for name in names:
            value = scope[name]
            assert value is not None
            results.append(value.tensor)
        self.outputs = tuple(
            Port(name, t.shape, t.dtype) for name, t in zip(names, results, strict=True)
        )
        return ModelResults(tuple(results), {})

    def node_values(self, inputs: Sequence[Tensor]) -> Iterator[ModelValue]:
        """Yield what each node makes of `inputs`, with what ONNX Runtime has for it."""
        arrays = {p.name: t.numpy() for p, t in zip(self.inputs, inputs, strict=True)}
        theirs = reference_values(self._file, arrays)
        scope = self._evaluated(inputs)
        for node in self._file.body.nodes:
            for name in filter(None, node.outputs):
                value = scope[name]
                if value is not None and name in theirs:
                    yield ModelValue(name, node.where, value.tensor, np.asarray(theirs[name]))

    def _evaluated(self, inputs: Sequence[Tensor]) -> GraphScope:
        values: dict[str, Value | None] = dict(self._constants)
        for port, tensor in zip(self.inputs, inputs, strict=True):
            values[port.name] = Value(self._known.get(port.name), tensor)
        scope = GraphScope(values)
        self._evaluation.run(self._file.body.nodes, scope)
        return scope

    def structured(self, outputs: Sequence[Tensor]) -> Any:
        """Return the one output, or a tuple of them."""
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _uses(self, body: Body, visited: set[Function]) -> Iterator[tuple[str, str, str]]:
        """Yield the nodes of a graph; those of a function once."""
        for node in body.nodes:
            function = self._file.functions.get((node.domain, node.operator))
            if function is None:
                yield node.full_name, node.where, self._evaluation.refusal(node)
            elif function not in visited:
                visited.add(function)
                yield from self._uses(function.body, visited)
            for inner in inner_bodies(node):
                yield from self._uses(inner, visited)
