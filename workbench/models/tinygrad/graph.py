"""A graph of tinygrad's lazy tensors, run over Tensors: one row of the table for each node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from workbench.base.errors import ModelError
from workbench.base.source import Attribution, NamedModule, attributed
from workbench.models.check import ModelValue
from workbench.models.model import ModelResults, OperatorUse, Port, counted
from workbench.models.tinygrad.reference import reference_values
from workbench.models.tinygrad.table import ROWS, load_rows, operands_of, refusal_of
from workbench.models.tinygrad.values import dtype_of, is_variable, sizes_of, stored_dtype
from workbench.tensor.tensor import Tensor


class TinygradGraph:
    """The expressions of `roots`, nodes by the names of the outputs. `state` has the Tensors of
    buffers, and `names` the user's names of other nodes."""

    is_replayable = True

    def __init__(
        self, roots: Mapping[str, Any], state: Mapping[Any, Tensor], names: Mapping[str, Any]
    ):
        load_rows()
        self._roots, self._state, self._names = roots, state, names
        self._modules: dict[str, NamedModule] = {}

    inputs: tuple[Port, ...] = ()

    @cached_property
    def outputs(self) -> tuple[Port, ...]:
        return tuple(
            Port(name, sizes_of(node.shape), stored_dtype(node.dtype))
            for name, node in self._roots.items()
        )

    @cached_property
    def operators(self) -> tuple[OperatorUse, ...]:
        return counted(_uses([*self._roots.values()]))

    def run(self, inputs: Sequence[Tensor]) -> ModelResults:
        """Return the expressions of the outputs.

        Errors: ModelError for an op that cannot be computed here, with tinygrad's method.
        """
        values = self._computed([*self._roots.values()])
        outputs = [values[node].cast(stored_dtype(node.dtype)) for node in self._roots.values()]
        named = {name: values[node] for name, node in self._names.items() if node in values}
        return ModelResults(tuple(outputs), {}, named)

    def structured(self, outputs: Sequence[Tensor]) -> Any:
        """Return one Tensor, or a tuple of them."""
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def node_values(self, inputs: Sequence[Tensor]) -> Iterator[ModelValue]:
        """Yield what each node is here, with what tinygrad computes for it."""
        roots = [*self._roots.values()]
        values, calls = self._computed(roots), ordered_calls(roots)
        names = {node: name for name, node in self._roots.items()}
        compared = reference_values(calls, roots, self._state)
        for number, (call, theirs) in enumerate(compared):
            ours = values[call.node].cast(stored_dtype(call.node.dtype))
            place = " of ".join(filter(None, (call.node.op.name, call.method)))
            yield ModelValue(names.get(call.node, f"value {number}"), place, ours, theirs)

    def _computed(
        self, roots: Sequence[Any], arguments: Sequence[Tensor] = (), function: str = ""
    ) -> dict[Any, Any]:
        """Return the values of nodes, with the `arguments` of the function in which they are."""
        values: dict[Any, Any] = {}
        for call in ordered_calls(roots):
            with attributed(self._attribution(call, function)):
                operands = [values[each] for each in operands_of(call.node)]
                values[call.node] = self._value(call, operands, arguments)
        return values

    def _attribution(self, call: TinygradNode, function: str) -> Attribution:
        path = ".".join(filter(None, (function, call.method)))
        module = self._modules.setdefault(path, NamedModule(path))
        return Attribution((), lambda: module, call.node.op.name)

    def _value(
        self, call: TinygradNode, operands: Sequence[Any], arguments: Sequence[Tensor]
    ) -> Any:
        node = call.node
        if reason := refusal_of(node):
            raise _cannot_compute(call, reason)
        if node.op.name == "BUFFER":
            return self._memory(call)
        if node.op.name == "PARAM":
            return arguments[node.arg.slot]
        if node.op.name == "FUNCTION":
            return self._computed(node.src[:1], operands, node.arg.name or "")[node.src[0]]
        value = ROWS[node.op.name].function(node, *operands)
        if isinstance(value, Tensor) and value.shape != sizes_of(node.shape):
            raise AssertionError(f"{node.op.name} has shape {value.shape}, and it is {node.shape}")
        return value

    def _memory(self, call: TinygradNode) -> Tensor:
        node = call.node
        if node in self._state:
            return self._state[node]
        if is_variable(node):
            hint = f"{node.expr}.bind(3) in its place"
            raise _cannot_compute(call, f"the variable {node.expr} has no value", hint)
        return Tensor.empty(sizes_of(node.shape), dtype=dtype_of(node.dtype))


class TinygradNode(NamedTuple):
    """A node, and the method of tinygrad's that made it; "" if that is not recorded."""

    node: Any
    method: str


def ordered_calls(roots: Sequence[Any]) -> list[TinygradNode]:
    """Return the nodes whose values `roots` need, operands first. A node without a record of its
    method has that of a node which reads it."""
    order: dict[Any, None] = {}
    stack = [(root, False) for root in roots][::-1]
    while stack:
        node, is_ready = stack.pop()
        if is_ready:
            order[node] = None
        elif node not in order:
            stack.append((node, True))
            stack += [(operand, False) for operand in operands_of(node)]
    methods: dict[Any, str] = {}
    for node in reversed(order):
        method = _method(node) or methods.get(node, "")
        methods[node] = method
        for operand in operands_of(node):
            methods[operand] = methods.get(operand) or method
    return [TinygradNode(node, methods[node]) for node in order]


def _method(node: Any) -> str:
    """Return the name of the method that made a node, if tinygrad has a record of it."""
    if not node.metadata or node.op.name == "CONST":  # equal numbers of all methods are one node
        return ""
    record = node.metadata[0]
    name = str(record.name).strip("_")
    return f"{name} backward" if record.backward else name


def _uses(roots: Sequence[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (op, method, why it is refused) of the nodes that roots need, also in functions."""
    for node, method in ordered_calls(roots):
        yield node.op.name, method, refusal_of(node)
        if node.op.name == "FUNCTION":
            yield from _uses(node.src[:1])


def _cannot_compute(call: TinygradNode, reason: str, hint: str = "") -> ModelError:
    what = f"cannot compute {call.node.op.name} of a tinygrad Tensor"
    return ModelError(what, reason, hint, where=call.method and f"in the method {call.method}")
