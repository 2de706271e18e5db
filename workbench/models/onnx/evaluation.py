"""The nodes of ONNX graphs, computed over Tensors: one row of the table for each.

Shapes are numbers here: a graph is read for inputs of certain shapes. So the result of a `Shape` is
known, and what is computed from it; conditions and trip counts that are known choose a branch and
repeat a body. An operator without a row is computed as its function, where ONNX defines one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.base.dtypes import DType
from workbench.base.errors import ModelError, WorkbenchError
from workbench.base.source import Attribution, NamedModule, attributed
from workbench.models.model import UNWRITTEN
from workbench.models.onnx.file import Body, Function, OnnxNode, cannot_compute
from workbench.models.onnx.folding import MOST_ELEMENTS, MOST_RESULTS, OF_SHAPES, Folding
from workbench.models.onnx.functions import (
    declared_dtypes,
    is_function,
    schema_defaults,
    schema_function,
)
from workbench.models.onnx.table import REFUSED, OperatorRow, row_of
from workbench.models.onnx.values import Array, Value
from workbench.models.onnx.visits import Visits
from workbench.tensor.tensor import Tensor

CONTROL = frozenset({"If", "Loop", "Scan"})
Values = Sequence[Value | None]
_UNFIT = (
    *(ArithmeticError, AssertionError, AttributeError, IndexError, KeyError, MemoryError),
    *(TypeError, ValueError),
)
"""Errors of Python's and numpy's for inputs and attributes that a row is not for."""


class GraphScope:
    """The values of a graph by name; a name that it lacks is that of the graph around it."""

    def __init__(self, values: dict[str, Value | None], outer: GraphScope | None = None):
        self.values, self._outer = values, outer

    def __getitem__(self, name: str) -> Value | None:
        scope: GraphScope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope._outer
        if not name:
            return None
        raise KeyError(name)


@dataclass(frozen=True, eq=False, slots=True)
class NodeCall:
    """A node with its attributes, its inputs, and the names that its graphs see."""

    node: OnnxNode
    attributes: Mapping[str, Any]
    inputs: Values
    scope: GraphScope


class Evaluation:
    """Computes nodes one after the other: values that are known as arrays, others as tensors."""

    def __init__(self, functions: Mapping[tuple[str, str], Function]):
        self._functions = functions
        self._folding = Folding()
        self._modules: dict[str, NamedModule] = {}
        self._computed: set[OnnxNode] = set()
        self._defined: dict[Any, Function] = {}
        self._visits = Visits()
        self._is_attributed = False

    def run(self, nodes: Sequence[OnnxNode], scope: GraphScope) -> None:
        """Compute the nodes of the model's graph in a scope.

        Errors: ModelError for a node that cannot be computed.
        """
        self._visits = Visits()
        self._evaluate(nodes, scope, {})

    def refusal(self, node: OnnxNode) -> str:
        """Return why an operator cannot be computed here; "" if it can."""
        is_control = not node.domain and node.operator in (CONTROL | OF_SHAPES | {"Constant"})
        if node in self._computed or is_control:
            return ""
        if row_of(node.domain, node.operator, node.opset) or is_function(node):
            return ""
        if node.domain:
            return f"{node.domain} is not ONNX's domain, and {UNWRITTEN}"
        return REFUSED.get(node.operator, UNWRITTEN)

    def _evaluate(
        self, nodes: Sequence[OnnxNode], scope: GraphScope, attributes: Mapping[str, Any]
    ) -> None:
        """Compute nodes. `attributes` are those of the function that they are in."""
        with self._visits.inside():
            for node in nodes:
                self._visits.add(node)
                results = self._computed_results(node, scope, attributes)
                self._computed.add(node)
                for name, value in zip(node.outputs, results, strict=False):
                    if name:
                        scope.values[name] = value
                for name in filter(None, node.outputs[len(results) :]):
                    raise cannot_compute(node, f"its output {name!r} is not computed here")

    def _computed_results(
        self, node: OnnxNode, scope: GraphScope, attributes: Mapping[str, Any]
    ) -> Values:
        own = {
            **node.attributes,
            **{n: attributes[of] for n, of in node.references.items() if of in attributes},
        }
        try:
            return self._results(NodeCall(node, own, [scope[name] for name in node.inputs], scope))
        except WorkbenchError as error:
            if isinstance(error, ModelError) and error.where:  # a node within this one
                raise
            because = f"{error.what}: {error.because}" if error.because else error.what
            raise cannot_compute(node, because, error.hint) from error
        except _UNFIT as error:
            raise cannot_compute(node, f"its inputs or attributes do not fit: {error}") from error

    def _results(self, call: NodeCall) -> Values:
        node, inputs = call.node, call.inputs
        if function := self._functions.get((node.domain, node.operator)):
            return self._called(call, function)
        if not node.domain and node.operator in CONTROL:
            return self._controlled(call)
        if not node.domain and node.operator in OF_SHAPES:
            assert inputs[0] is not None
            return [Value(shape_of(node.operator, inputs[0], call.attributes))]
        if not node.domain and node.operator == "CastLike" and _is_float(inputs):
            assert inputs[0] is not None and inputs[0].known is not None and inputs[1] is not None
            return [Value(inputs[0].known.astype(inputs[1].dtype.numpy))]
        arrays = [None if each is None else each.known for each in inputs]
        if all(a is not None or v is None for a, v in zip(arrays, inputs, strict=True)):
            folded = self._folding.folded(node, call.attributes, arrays)
            if folded is not None:
                return [Value(each) for each in folded]
        found = row_of(node.domain, node.operator, node.opset)
        if found is None:
            return self._expanded(call)
        with self._attributed(node):
            result = _of_row(call, found)
        listed = result if isinstance(result, tuple) else (result,)
        kinds = declared_dtypes(node, inputs)
        return [
            _value(each, kinds[min(place, len(kinds) - 1)] if kinds else None)
            for place, each in enumerate(listed)
        ]

    def _called(self, call: NodeCall, function: Function) -> Values:
        """Return the outputs of a function that is called with inputs and attributes."""
        body = function.body
        if len(call.inputs) > len(body.inputs):
            because = f"it takes {len(body.inputs)} inputs, and {len(call.inputs)} are given"
            raise cannot_compute(call.node, because)
        rest = [None] * (len(body.inputs) - len(call.inputs))
        scope = GraphScope(dict(zip(body.inputs, [*call.inputs, *rest], strict=True)))
        self._evaluate(body.nodes, scope, {**function.defaults, **call.attributes})
        return [scope[name] for name in body.outputs]

    def _expanded(self, call: NodeCall) -> Values:
        """Return the outputs of an operator by the function that defines it in ONNX."""
        node = call.node
        if not is_function(node):
            raise cannot_compute(node, self.refusal(node))
        call = replace(call, attributes={**schema_defaults(node), **call.attributes})
        types = tuple(None if v is None else (v.dtype, v.tensor.shape) for v in call.inputs)
        key = node, types, repr(call.attributes) if node.references else ""
        if key not in self._defined:
            self._defined[key] = schema_function(node, call.attributes, types)
        with self._attributed(node):
            return self._called(call, self._defined[key])

    def _controlled(self, call: NodeCall) -> Values:
        if call.node.operator == "If":
            branch = "then_branch" if _known_bool(call.node, call.inputs[0]) else "else_branch"
            return self._body(call, call.attributes[branch], [])
        if call.node.operator == "Loop":
            return self._looped(call)
        return self._scanned_batch(call) if call.node.opset < 9 else self._scanned(call)

    def _body(self, call: NodeCall, body: Body, inputs: Values) -> list[Value | None]:
        """Return the outputs of a graph of a node, which sees the names around the node."""
        if len(inputs) != len(body.inputs):
            because = f"its graph takes {len(body.inputs)} inputs, not {len(inputs)}"
            raise cannot_compute(call.node, because)
        self._visits.add(call.node)
        values: dict[str, Value | None] = {n: Value(a) for n, a in body.constants.items()}
        values.update(zip(body.inputs, inputs, strict=True))
        scope = GraphScope(values, call.scope)
        self._evaluate(body.nodes, scope, {})
        return [scope[name] for name in body.outputs]

    def _looped(self, call: NodeCall) -> list[Value | None]:
        node, inputs, body = call.node, call.inputs, call.attributes["body"]
        most = None if inputs[0] is None else _known_int(node, inputs[0])
        goes_on = True if inputs[1] is None else _known_bool(node, inputs[1])
        carried, count = list(inputs[2:]), 0
        rows: list[list[Value | None]] = []
        while goes_on and (most is None or count < most):
            lead = [Value(np.array(count, np.int64)), Value(np.array(True))]
            condition, *results = self._body(call, body, [*lead, *carried])
            goes_on = _known_bool(node, condition)
            carried, more = results[: len(carried)], results[len(carried) :]
            rows.append(more)
            count += 1
        outs = len(body.outputs) - 1 - len(carried)
        return [*carried, *(_stacked(node, [row[n] for row in rows], 0) for n in range(outs))]

    def _scanned_batch(self, call: NodeCall) -> list[Value | None]:
        """Return the results of a scan of opset 8, whose inputs have an axis of a batch before."""
        node, (lengths, *rest) = call.node, call.inputs
        if lengths is not None:
            raise cannot_compute(node, "lengths of sequences are not built here")
        tensors = [value.tensor for value in rest if value is not None]
        names = {"directions": "scan_input_directions"}
        attributes = {names.get(name, name): value for name, value in call.attributes.items()}
        rows = []
        for place in range(tensors[0].shape[0]):
            inputs = [Value(None, tensor[place]) for tensor in tensors]
            rows.append(self._scanned(replace(call, inputs=inputs, attributes=attributes)))
        return [_stacked(node, results, 0) for results in zip(*rows, strict=True)]

    def _scanned(self, call: NodeCall) -> list[Value | None]:
        node, attributes = call.node, call.attributes
        body, count = attributes["body"], attributes["num_scan_inputs"]
        first = len(call.inputs) - count
        state = list(call.inputs[:first])
        sequences = [value.tensor for value in call.inputs[first:] if value is not None]
        axes = attributes.get("scan_input_axes", (0,) * count)
        backwards = attributes.get("scan_input_directions", (0,) * count)
        lengths = {t.shape[a] for t, a in zip(sequences, axes, strict=True)}
        if len(lengths) != 1 or 0 in lengths:
            because = f"its sequences must have one length, and have {sorted(lengths)}"
            raise cannot_compute(node, because)
        (length,) = lengths
        rows: list[list[Value | None]] = []
        for step in range(length):
            elements: list[Value | None] = []
            for sequence, axis, backward in zip(sequences, axes, backwards, strict=True):
                place = length - 1 - step if backward else step
                index = (slice(None),) * (axis % sequence.ndim) + (place,)
                elements.append(Value(None, sequence[index]))
            results = self._body(call, body, [*state, *elements])
            state = results[:first]
            rows.append(results[first:])
        outs = len(body.outputs) - first
        out_axes = attributes.get("scan_output_axes", (0,) * outs)
        out_backwards = attributes.get("scan_output_directions", (0,) * outs)
        ends = [
            _stacked(node, [row[n] for row in (rows[::-1] if out_backwards[n] else rows)], axis)
            for n, axis in enumerate(out_axes)
        ]
        return [*state, *ends]

    @contextmanager
    def _attributed(self, node: OnnxNode) -> Iterator[None]:
        """Attribute values to a node; those of the function that defines it, to it as well."""
        if self._is_attributed:
            yield
            return
        module = self._modules.setdefault(node.name, NamedModule(node.name))
        self._is_attributed = True
        try:
            with attributed(Attribution((), lambda: module, node.operator)):
                yield
        finally:
            self._is_attributed = False


def _of_row(call: NodeCall, found: OperatorRow) -> Any:
    """Return what the function of a row makes of the inputs and attributes of a node."""
    node = call.node
    options = dict(call.attributes)
    if more := options.keys() - found.keywords:
        raise cannot_compute(node, f"there is no attribute {min(more)!r} here")
    if "count" in found.keywords:
        options["count"] = len(node.outputs)
    arguments: list[Any] = []
    for place, value in enumerate(call.inputs):
        if value is not None and found.needs(place):
            if value.known is None:
                because = f"its input {node.inputs[place]!r} must be known before it runs"
                raise cannot_compute(node, f"{because}, and it depends on the values of tensors")
            arguments.append(value.known)
        else:
            arguments.append(None if value is None else value.tensor)
    return found.function(*arguments, **options)


def shape_of(operator: str, value: Value, attributes: Mapping[str, Any]) -> Array:
    """Return what the operators Shape and Size return."""
    shape = value.tensor.shape if value.known is None else value.known.shape
    if operator == "Size":
        return np.array(np.prod(shape, dtype=np.int64), np.int64)
    return np.array(shape[slice(attributes.get("start", 0), attributes.get("end"))], np.int64)


def _is_float(inputs: Values) -> bool:
    """Whether the first of two inputs is a known float, and the second one has such a dtype."""
    first, second = inputs
    if first is None or second is None or first.known is None or first.known.size > MOST_ELEMENTS:
        return False
    return all(v.dtype.is_float and v.dtype.itemsize > 1 for v in (first, second))


def _value(result: Any, kind: DType | None) -> Value | None:
    if result is None:
        return None
    if isinstance(result, Tensor):
        return Value(None, result if kind is None or result.dtype is kind else result.cast(kind))
    return Value(np.asarray(result))


def _stacked(node: OnnxNode, listed: Values, axis: int) -> Value:
    values = [value for value in listed if value is not None]
    if not values:
        raise cannot_compute(node, "it repeats its graph zero times, so a result has no shape")
    arrays = [value.known for value in values if value.known is not None]
    if len(arrays) == len(values) and sum(each.size for each in arrays) <= MOST_RESULTS:
        return Value(np.stack(arrays, axis))
    first, *rest = (value.tensor for value in values)
    return Value(None, first.stack(*rest, dim=axis))


def _known_bool(node: OnnxNode, value: Value | None) -> bool:
    return bool(_known(node, value, "its condition").item())


def _known_int(node: OnnxNode, value: Value | None) -> int:
    return int(_known(node, value, "the number of its repetitions").item())


def _known(node: OnnxNode, value: Value | None, what: str) -> Array:
    if value is None or value.known is None or value.known.size != 1:
        raise cannot_compute(
            node, f"{what} must be known before it runs, and depends on values of tensors"
        )
    return value.known
