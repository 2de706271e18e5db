"""An exported program of PyTorch, run over Tensors: one row of the table for each node."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

from workbench.base.dtypes import DType
from workbench.base.errors import ModelError
from workbench.base.source import Attribution, NamedModule, attributed, frame_at
from workbench.models.model import ModelResults, OperatorUse, Port, counted
from workbench.models.torch.table import REFUSED, ROWS
from workbench.models.torch.values import dtype_of
from workbench.tensor.tensor import Tensor

FAMILIES = (
    *("backward", "creation", "elementwise", "indexing", "movement", "normalization", "pooling"),
    *("products", "reductions"),
)
"""The files of rows."""


def load_rows() -> None:
    """Fill the table."""
    for family in FAMILIES:
        import_module(f"workbench.models.torch.operators.{family}")


class ExportedGraph:
    """A graph of ATen operators, with the `state` of its module."""

    def __init__(self, exported: Any, state: Mapping[str, Tensor]):
        load_rows()
        self._exported, self._state = exported, state
        self._nodes = list(exported.graph.nodes)
        self._signature = exported.graph_signature
        self._modules: dict[str, NamedModule] = {}

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
        return counted((_name(n), _where(n), _refusal(n)) for n in calls)

    def run(self, inputs: Sequence[Tensor]) -> ModelResults:
        """Return the expressions of the outputs for `inputs`.

        Errors: ModelError for an operator that cannot be computed here, with its module and line.
        """
        values: dict[str, Any] = {}
        given = iter(inputs)
        for node in self._nodes:
            if node.op == "placeholder":
                values[node.name] = self._placed(node, given)
            elif node.op == "call_function":
                values[node.name] = self._called(node, values)
            elif node.op == "output":
                break
        spec = self._signature
        written = {to: values[name] for name, to in spec.buffers_to_mutate.items()}
        outputs = tuple(values[name] for name in spec.user_outputs if name in values)
        return ModelResults(outputs, written)

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
        return next(given) if _is_tensor(node) else node.meta.get("val")

    def _called(self, node: Any, values: Mapping[str, Any]) -> Any:
        arguments = [_value(a, values) for a in node.args]
        if node.target is operator.getitem:
            return arguments[0][arguments[1]]
        name = _name(node)
        if reason := _refusal(node):
            raise ModelError(f"cannot compute {name} of the module", reason, where=_where(node))
        options = {key: _value(a, values) for key, a in node.kwargs.items()}
        with attributed(self._attribution(node, name)):
            result = ROWS[name](*arguments, **options)
            return _as_declared(result, node.meta.get("val"), name)

    def _attribution(self, node: Any, name: str) -> Attribution:
        path = _path(node)
        module = self._modules.setdefault(path, NamedModule(path))
        calls = tuple(frame_at(*frame) for frame in _frames(node)[::-1])
        return Attribution(calls, lambda: module, name.partition(".")[0])


def _as_declared(result: Any, declared: Any, name: str) -> Any:
    """Return what a row made, in the dtypes that the program declares for it."""
    if isinstance(result, tuple):
        pairs = zip(result, declared, strict=False)
        return tuple(None if r is None else _as_declared(r, d, name) for r, d in pairs)
    if declared is None:
        return result
    kind, shape = dtype_of(declared.dtype), tuple(declared.shape)
    if result.shape != shape and 0 not in shape:  # ATen leaves out what nobody reads
        raise AssertionError(f"{name} has shape {result.shape}, and {shape} is declared")
    return result if result.dtype is kind else result.cast(kind)


def _value(argument: Any, values: Mapping[str, Any]) -> Any:
    import torch

    if isinstance(argument, torch.fx.Node):
        return values[argument.name]
    if isinstance(argument, (list, tuple)):
        return [_value(a, values) for a in argument]
    if isinstance(argument, torch.dtype):
        return dtype_of(argument)
    return argument


def _name(node: Any) -> str:
    target = node.target
    name = getattr(target, "__name__", str(target))
    return str(name).removesuffix(".default")


def _refusal(node: Any) -> str:
    name = _name(node)
    if getattr(node.target, "namespace", "aten") != "aten":
        return f"{node.target} is no operator of ATen"
    if name in ROWS:
        return ""
    return REFUSED.get(name, "there is no row for it in the table of operators")


def _is_tensor(node: Any) -> bool:
    return hasattr(node.meta.get("val"), "dtype")


def _port(node: Any) -> Port:
    value = node.meta["val"]
    return Port(node.name, tuple(int(n) for n in value.shape), _dtype(value))


def _dtype(value: Any) -> DType:
    return dtype_of(value.dtype)


def _path(node: Any) -> str:
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    return re.sub(r"^L\['self'\]\.?", "", stack[-1][0]) if stack else ""


_FRAME = re.compile(r'File "(.*)", line (\d+), in (.*)')


def _frames(node: Any) -> list[tuple[str, int, str]]:
    """Return (file, line, function) of the frames of the module's code, outermost first, without
    PyTorch's own."""
    import torch

    own = torch.__file__.rpartition("__init__")[0]
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    return [(file, int(line), name) for file, line, name in frames if not file.startswith(own)]


def _where(node: Any) -> str:
    """Return the module and line of a node, in words."""
    frames = _frames(node)
    line = f"{frames[-1][0]}, line {frames[-1][1]}" if frames else ""
    return ": ".join(filter(None, (_path(node), line)))
