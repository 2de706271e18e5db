"""A function over arrays as a source of `load_model`: it runs over expressions at each call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from workbench.models.check import ModelValue
from workbench.models.function import arguments_of, name_of, outputs_of, over_tensors, results_of
from workbench.models.model import BoundInputs, ModelResults, OperatorUse, Port
from workbench.models.numpy_array import own_copy
from workbench.tensor.tensor import Tensor
from workbench.tensor.variable_operators import changed, tensors, with_tensors


class FunctionSource:
    """A Python function over arrays. It has no parameters: arrays of its closure are constants."""

    state: Mapping[str, Tensor] = {}
    parameter_names: Sequence[str] = ()

    def __init__(self, function: Callable[..., Any]):
        self._function = function
        self.name = name_of(function)

    def bound(self, arguments: tuple[object, ...], options: Mapping[str, object]) -> BoundInputs:
        """Return the arguments with Tensors in place of arrays. What is no array is a part of the
        key, as the function may decide by it."""
        given = over_tensors(list(arguments)), over_tensors(dict(options))
        arguments_of(self._called(given[1]), self.name, given[0])
        key = repr(changed(given, _described))
        return BoundInputs(tuple(tensors(given)), key, given)

    def graph(self, call: BoundInputs) -> FunctionGraph:
        return FunctionGraph(self, call.arguments)

    def _called(self, options: Mapping[str, object]) -> Callable[..., Any]:
        """Return the function with its arguments by keyword."""
        if not options:
            return self._function
        called: Any = partial(self._function, **options)
        called.__name__ = self.name
        return called  # type: ignore[no-any-return]


class FunctionGraph:
    """A function for arguments of certain shapes."""

    operators: tuple[OperatorUse, ...] = ()
    is_replayable = False

    def __init__(self, source: FunctionSource, arguments: Any):
        self._source = source
        self._arguments = arguments
        self._result: Any = None
        self.inputs: tuple[Port, ...] = ()
        self.outputs: tuple[Port, ...] = ()

    def run(self, inputs: Sequence[Tensor]) -> ModelResults:
        """Return the expressions of what the function computes. What it writes to its arguments is
        written to copies."""
        given, options = with_tensors(self._arguments, map(own_copy, inputs))
        results = results_of(self._source._called(options), given)
        self._result = results.result
        names = [name or f"output {place}" for place, name in enumerate(results.output_names)]
        self.outputs = tuple(map(_port, names, results.outputs))
        keys = [name for name, _ in results.inputs]
        keys += [name for name, value in options.items() if isinstance(value, Tensor)]
        self.inputs = tuple(map(_port, keys, inputs))
        return ModelResults(results.outputs, {})

    def structured(self, outputs: Sequence[Tensor]) -> Any:
        """Return what the function returned, of plain Tensors."""
        return changed(self._result, lambda x: Tensor(x) if isinstance(x, Tensor) else x)

    def node_values(self, inputs: Sequence[Tensor]) -> Iterator[ModelValue]:
        """Yield each output beside what the function makes of arrays."""
        arrays = (each.numpy().copy() for each in inputs)
        given, options = changed(self._arguments, lambda x: next(arrays) if _is_tensor(x) else x)
        wanted = self._source._called(options)(*given)
        results = zip(self.outputs, outputs_of(self._result), outputs_of(wanted), strict=True)
        for port, ours, theirs in results:
            yield ModelValue(port.name, self._source.name, ours, np.asarray(theirs))


def _port(name: str, tensor: Tensor) -> Port:
    return Port(name, tensor.shape, tensor.dtype)


def _is_tensor(value: object) -> bool:
    return isinstance(value, Tensor)


def _described(leaf: Any) -> Any:
    return (leaf.shape, leaf.dtype) if isinstance(leaf, Tensor) else leaf
