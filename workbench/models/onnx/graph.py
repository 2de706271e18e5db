"""A graph of ONNX, run over Tensors: one row of the table for each node.

Shapes are numbers here: a graph is read for inputs of certain shapes. So the result of a `Shape` is
known, and what is computed from it; conditions and trip counts that are known choose a branch and
repeat a body. An operator without a row is computed as its function, where ONNX defines one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from workbench.base.dtypes import DType
from workbench.base.errors import ModelError, WorkbenchError
from workbench.base.source import Attribution, NamedModule, attributed
from workbench.models.check import ModelValue
from workbench.models.model import ModelResults, OperatorUse, Port, counted
from workbench.models.onnx.file import (
    Body,
    Function,
    ModelFile,
    OnnxNode,
    cannot_compute,
    inner_bodies,
)
from workbench.models.onnx.folding import MOST_ELEMENTS, MOST_RESULTS, OF_SHAPES, Folding
from workbench.models.onnx.functions import (
    declared_dtypes,
    is_function,
    schema_defaults,
    schema_function,
)
from workbench.models.onnx.reference import reference_values
from workbench.models.onnx.table import REFUSED, OperatorRow, row_of
from workbench.models.onnx.values import Array, Value
from workbench.models.onnx.visits import Visits
from workbench.tensor.tensor import Tensor

CONTROL = frozenset({"If", "Loop", "Scan"})
_UNFIT = (
    *(ArithmeticError, AssertionError, AttributeError, IndexError, KeyError, MemoryError),
    *(TypeError, ValueError),
)
"""Errors of Python's and numpy's for inputs and attributes that a row is not for."""


class OnnxGraph:
    """The graph of a file for inputs of certain shapes; `known` are inputs whose values are part of
    that, by name."""

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
        self._evaluation.begin()
        self._evaluation.evaluate(self._file.body.nodes, scope, {})
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

    def begin(self) -> None:
        """Begin a run of the model's graph."""
        self._visits = Visits()

    def refusal(self, node: OnnxNode) -> str:
        """Return why an operator cannot be computed here; "" if it can."""
        is_control = not node.domain and node.operator in (CONTROL | OF_SHAPES | {"Constant"})
        if node in self._computed or is_control:
            return ""
        if row_of(node.domain, node.operator, node.opset) or is_function(node):
            return ""
        if node.domain:
            return f"{node.domain} is not ONNX's domain, and there is no row for it in the table"
        return REFUSED.get(node.operator, "there is no row for it in the table of operators")

    def evaluate(
        self, nodes: Sequence[OnnxNode], scope: GraphScope, attributes: Mapping[str, Any]
    ) -> None:
        """Compute nodes in a scope. `attributes` are those of the function that they are in.

        Errors: ModelError for a node that cannot be computed.
        """
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
    ) -> Sequence[Value | None]:
        own = {
            **node.attributes,
            **{n: attributes[of] for n, of in node.references.items() if of in attributes},
        }
        try:
            return self._results(node, own, [scope[name] for name in node.inputs], scope)
        except WorkbenchError as error:
            if isinstance(error, ModelError) and error.where:  # a node within this one
                raise
            because = f"{error.what}: {error.because}" if error.because else error.what
            raise cannot_compute(node, because, error.hint) from error
        except _UNFIT as error:
            raise cannot_compute(node, f"its inputs or attributes do not fit: {error}") from error

    def _results(
        self,
        node: OnnxNode,
        attributes: Mapping[str, Any],
        inputs: Sequence[Value | None],
        scope: GraphScope,
    ) -> Sequence[Value | None]:
        if function := self._functions.get((node.domain, node.operator)):
            return self._called(node, function, attributes, inputs)
        if not node.domain and node.operator in CONTROL:
            return self._controlled(node, attributes, inputs, scope)
        if not node.domain and node.operator in OF_SHAPES:
            assert inputs[0] is not None
            return [Value(shape_of(node.operator, inputs[0], attributes))]
        if not node.domain and node.operator == "CastLike" and _is_float(inputs):
            assert inputs[0] is not None and inputs[0].known is not None and inputs[1] is not None
            return [Value(inputs[0].known.astype(inputs[1].dtype.numpy))]
        arrays = [None if each is None else each.known for each in inputs]
        if all(a is not None or v is None for a, v in zip(arrays, inputs, strict=True)):
            folded = self._folding.folded(node, attributes, arrays)
            if folded is not None:
                return [Value(each) for each in folded]
        found = row_of(node.domain, node.operator, node.opset)
        if found is None:
            return self._expanded(node, attributes, inputs)
        with self._attributed(node):
            result = self._row(node, found, attributes, inputs)
        listed = result if isinstance(result, tuple) else (result,)
        kinds = declared_dtypes(node, inputs)
        return [
            _value(each, kinds[min(place, len(kinds) - 1)] if kinds else None)
            for place, each in enumerate(listed)
        ]

    def _row(
        self,
        node: OnnxNode,
        found: OperatorRow,
        attributes: Mapping[str, Any],
        inputs: Sequence[Value | None],
    ) -> Any:
        options = dict(attributes)
        if more := options.keys() - found.keywords:
            raise cannot_compute(node, f"there is no attribute {min(more)!r} here")
        if "count" in found.keywords:
            options["count"] = len(node.outputs)
        arguments: list[Any] = []
        for place, value in enumerate(inputs):
            if value is not None and found.needs(place):
                if value.known is None:
                    because = f"its input {node.inputs[place]!r} must be known before it runs"
                    raise cannot_compute(
                        node, f"{because}, and it depends on the values of tensors"
                    )
                arguments.append(value.known)
            else:
                arguments.append(None if value is None else value.tensor)
        return found.function(*arguments, **options)

    def _called(
        self,
        node: OnnxNode,
        function: Function,
        attributes: Mapping[str, Any],
        inputs: Sequence[Value | None],
    ) -> Sequence[Value | None]:
        """Return the outputs of a function that is called with inputs and attributes."""
        body = function.body
        if len(inputs) > len(body.inputs):
            raise cannot_compute(
                node, f"it takes {len(body.inputs)} inputs, and {len(inputs)} are given"
            )
        rest = [None] * (len(body.inputs) - len(inputs))
        scope = GraphScope(dict(zip(body.inputs, [*inputs, *rest], strict=True)))
        self.evaluate(body.nodes, scope, {**function.defaults, **attributes})
        return [scope[name] for name in body.outputs]

    def _expanded(
        self, node: OnnxNode, attributes: Mapping[str, Any], inputs: Sequence[Value | None]
    ) -> Sequence[Value | None]:
        """Return the outputs of an operator by the function that defines it in ONNX."""
        if not is_function(node):
            raise cannot_compute(node, self.refusal(node))
        attributes = {**schema_defaults(node), **attributes}
        types = tuple(None if v is None else (v.dtype, v.tensor.shape) for v in inputs)
        key = node, types, repr(attributes) if node.references else ""
        if key not in self._defined:
            self._defined[key] = schema_function(node, attributes, types)
        with self._attributed(node):
            return self._called(node, self._defined[key], attributes, inputs)

    def _controlled(
        self,
        node: OnnxNode,
        attributes: Mapping[str, Any],
        inputs: Sequence[Value | None],
        scope: GraphScope,
    ) -> Sequence[Value | None]:
        if node.operator == "If":
            branch = "then_branch" if _known_bool(node, inputs[0]) else "else_branch"
            return self._body(node, attributes[branch], [], scope)
        if node.operator == "Loop":
            return self._looped(node, attributes["body"], inputs, scope)
        return self._scanned(node, attributes, inputs, scope)

    def _body(
        self, node: OnnxNode, body: Body, inputs: Sequence[Value | None], outer: GraphScope
    ) -> list[Value | None]:
        if len(inputs) != len(body.inputs):
            raise cannot_compute(
                node, f"its graph takes {len(body.inputs)} inputs, not {len(inputs)}"
            )
        self._visits.add(node)
        values: dict[str, Value | None] = {n: Value(a) for n, a in body.constants.items()}
        values.update(zip(body.inputs, inputs, strict=True))
        scope = GraphScope(values, outer)
        self.evaluate(body.nodes, scope, {})
        return [scope[name] for name in body.outputs]

    def _looped(
        self, node: OnnxNode, body: Body, inputs: Sequence[Value | None], scope: GraphScope
    ) -> list[Value | None]:
        most = None if inputs[0] is None else _known_int(node, inputs[0])
        goes_on = True if inputs[1] is None else _known_bool(node, inputs[1])
        carried, count = list(inputs[2:]), 0
        gathered: list[list[Value]] = [[] for _ in body.outputs[1 + len(carried) :]]
        while goes_on and (most is None or count < most):
            lead = [Value(np.array(count, np.int64)), Value(np.array(True))]
            condition, *results = self._body(node, body, [*lead, *carried], scope)
            goes_on = _known_bool(node, condition)
            carried = results[: len(carried)]
            for each, value in zip(gathered, results[len(carried) :], strict=True):
                assert value is not None
                each.append(value)
            count += 1
        return [*carried, *(_stacked(node, each, 0) for each in gathered)]

    def _scanned(
        self,
        node: OnnxNode,
        attributes: Mapping[str, Any],
        inputs: Sequence[Value | None],
        scope: GraphScope,
    ) -> list[Value | None]:
        if node.opset < 9:
            raise cannot_compute(
                node, "a scan of opset 8 is not built here", "a model of opset 9 or later"
            )
        body, count = attributes["body"], attributes["num_scan_inputs"]
        first = len(inputs) - count
        state = list(inputs[:first])
        sequences = [value.tensor for value in inputs[first:] if value is not None]
        axes = attributes.get("scan_input_axes", (0,) * count)
        backwards = attributes.get("scan_input_directions", (0,) * count)
        lengths = {t.shape[a] for t, a in zip(sequences, axes, strict=True)}
        if len(lengths) != 1 or 0 in lengths:
            raise cannot_compute(
                node, f"its sequences must have one length, and have {sorted(lengths)}"
            )
        outs = len(body.outputs) - first
        out_axes = attributes.get("scan_output_axes", (0,) * outs)
        out_backwards = attributes.get("scan_output_directions", (0,) * outs)
        gathered: list[list[Value]] = [[] for _ in range(outs)]
        (length,) = lengths
        for step in range(length):
            elements: list[Value | None] = []
            for sequence, axis, backward in zip(sequences, axes, backwards, strict=True):
                place = length - 1 - step if backward else step
                index = (slice(None),) * (axis % sequence.ndim) + (place,)
                elements.append(Value(None, sequence[index]))
            results = self._body(node, body, [*state, *elements], scope)
            state = results[:first]
            for each, value in zip(gathered, results[first:], strict=True):
                assert value is not None
                each.append(value)
        ends = [
            _stacked(node, each[::-1] if backward else each, axis)
            for each, axis, backward in zip(gathered, out_axes, out_backwards, strict=True)
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


def shape_of(operator: str, value: Value, attributes: Mapping[str, Any]) -> Array:
    """Return what the operators Shape and Size return."""
    shape = value.tensor.shape if value.known is None else value.known.shape
    if operator == "Size":
        return np.array(np.prod(shape, dtype=np.int64), np.int64)
    return np.array(shape[slice(attributes.get("start", 0), attributes.get("end"))], np.int64)


def _is_float(inputs: Sequence[Value | None]) -> bool:
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


def _stacked(node: OnnxNode, values: Sequence[Value], axis: int) -> Value:
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
