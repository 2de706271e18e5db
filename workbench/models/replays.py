"""Calls of a model for inputs of certain shapes: later ones replay captured kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workbench.base.errors import JitError
from workbench.base.files import Unpicklable
from workbench.tensor.autograd.leaves import gradients_flow
from workbench.tensor.jit.tinyjit import TinyJit
from workbench.tensor.tensor import Tensor

Outputs = tuple[Tensor, ...]
Results = tuple[Outputs, dict[str, Tensor]]
"""The outputs of a graph, and what it writes to the state, by name."""


class GraphCalls:
    """The calls of a graph by its method `run`. It writes to the `state` of its model.

    The first call returns expressions. From the second on TinyJit runs the graph: it captures the
    third call, and replays later ones. Where a gradient may flow, and for a graph that cannot be
    captured, as one that computes nothing, each call returns expressions.
    """

    def __init__(self, run: Callable[[Sequence[Tensor]], Any], state: Mapping[str, Tensor]):
        self._run, self._state = _GraphRun(run), state
        self._jit: TinyJit[..., Results] | None = None
        self._is_first = True

    def __call__(self, inputs: Sequence[Tensor]) -> Outputs:
        """Return the outputs. What is written to the state is there when the call returns."""
        outputs, written = self._results(inputs)
        if written:
            states = [self._state[name].assign(value) for name, value in written.items()]
            states[0].realize(*states[1:], *outputs)
        return outputs

    def _results(self, inputs: Sequence[Tensor]) -> Results:
        if self._is_first:
            self._is_first, self._jit = False, TinyJit(self._run)
        elif self._jit is not None and not self._has_gradients(inputs):
            try:
                return self._jit(*inputs)
            except JitError:
                self._jit = None
        return self._run(*inputs)

    def _has_gradients(self, inputs: Sequence[Tensor]) -> bool:
        if not gradients_flow():
            return False
        return any(tensor.requires_grad for tensor in (*inputs, *self._state.values()))


class _GraphRun(Unpicklable):
    """A graph as a function without effects; a capture looks into nothing that it holds."""

    __slots__ = ("_run",)

    def __init__(self, run: Callable[[Sequence[Tensor]], Any]):
        self._run = run

    def __call__(self, *inputs: Tensor) -> Results:
        results = self._run(inputs)
        return results.outputs, dict(results.written)
