"""The replay of a captured function: inputs are checked, kernels launched, results made."""

from __future__ import annotations

from typing import Any

from workbench.backends.buffer import Buffer
from workbench.base.errors import JitError
from workbench.execution.replay import Replay
from workbench.ir.node.uop import UOp
from workbench.tensor.creation.random import Keys
from workbench.tensor.jit.inputs import Kind, input_memory, input_node, kind_of
from workbench.tensor.jit.results import FreshTensor, filled, tensor_on
from workbench.tensor.jit.state import CapturedState, MemoryWritten, buffer_of
from workbench.tensor.nest import HOLE, same, tensors, without_tensors
from workbench.tensor.operands.arguments import short
from workbench.tensor.tensor import Tensor


class FunctionReplay:
    """A capture: the kinds of the inputs, the Replay, and the outline of the result."""

    def __init__(
        self,
        replay: Replay,
        kinds: list[Kind],
        others: Any,
        result: Any,
        name: str,
        state: CapturedState,
        written: dict[int, int],
        draws: list[Keys],
    ):
        self.replay, self._kinds, self._others = replay, kinds, others
        self._result, self._name = result, name
        self._state, self._written, self._draws = state, written, draws
        self._writes = MemoryWritten(state.memory_written(bool(written)), bool(written))
        is_flat = others == ((HOLE,) * len(kinds), {})
        self._flat = [Tensor] * len(kinds) if is_flat else None
        self._from_inputs = [
            (place, number)
            for place, _ in state.written
            if (number := replay.input_of(place)) >= 0
        ]
        self._inputs_before: list[UOp] = []
        self._memory: list[Buffer] = []

    def has_other_state(self) -> bool:
        """Whether a tensor of the state was replaced since the capture, or written where it was a
        known constant: then it gets memory, which the next capture reads."""
        changes = self._state.changed_constants()
        for memory in changes:
            buffer_of(memory)
        return bool(changes) or self._state.has_other_memory()

    def is_aliased(self, inputs: list[Tensor]) -> bool:
        """Whether inputs share memory with each other, or with state, and that is written."""
        return self._writes.is_aliased(inputs)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        inputs = self._inputs(args, kwargs)
        if [tensor.uop for tensor in inputs] != self._inputs_before:
            self._look(inputs)
        state = self._state.before(self._memory)
        sources = self._sources(inputs)
        keys = [draw.renew() for draw in self._draws]
        outputs = self.replay([*self._memory, *state, *keys])
        nodes = self._state.after(outputs, sources)
        for place, result in self._written.items():
            tensor = inputs[place]
            tensor.assign(tensor_on(outputs[result], tensor.shape, nodes)).realize()
        if isinstance(self._result, FreshTensor):
            return tensor_on(outputs[0], self._result.shape, nodes)
        return filled(self._result, iter(outputs), nodes)

    def _sources(self, inputs: list[Tensor]) -> dict[int, UOp]:
        """Return the BUFFERs of inputs and state that are written to other state as they are."""
        if not self._from_inputs:
            return {}
        nodes = [input_node(t) for t in inputs]
        nodes += [buffer_of(memory) for memory in self._state.read]
        return {place: nodes[n] for place, n in self._from_inputs if n < len(nodes)}

    def _look(self, inputs: list[Any]) -> None:
        """Check that inputs fit, and return their memory. A node has the same memory as long as it
        lives, so inputs of the last call need no second check."""
        memory: list[Buffer] = []
        for tensor, kind in zip(inputs, self._kinds, strict=True):
            buffer = input_memory(tensor)
            if (tensor.uop.shape, buffer.dtype, buffer.device) != kind:
                raise self._changed(len(memory), kind, kind_of(tensor))
            memory.append(buffer)
        self._memory, self._inputs_before = memory, [tensor.uop for tensor in inputs]

    def _inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        if not kwargs and [type(a) for a in args] == self._flat:
            return list(args)
        others = without_tensors((args, kwargs))
        if not same(others, self._others):
            raise JitError(
                f"{self._name} is called otherwise than when it was captured",
                f"then it was {_call(self._others)}, and now it is {_call(others)}",
                "the same arguments but for tensors, or .reset() to capture anew",
            )
        return list(tensors((args, kwargs)))

    def _changed(self, place: int, kind: Kind, actual: Kind) -> JitError:
        names = ("shape", "dtype", "device")
        changes = [
            f"its {name} was {was} when {self._name} was captured, and is {now}"
            for name, was, now in zip(names, kind, actual, strict=True)
            if was != now
        ]
        return JitError(
            f"input {place} of {self._name} does not fit",
            "; ".join(changes),
            "another TinyJit for it, or .reset() to capture anew",
        )


def _call(others: Any) -> str:
    """Return the arguments of a call as text."""
    args, kwargs = others
    parts = [short(a) for a in args] + [f"{k}={short(v)}" for k, v in kwargs.items()]
    return f"({', '.join(parts)})"
