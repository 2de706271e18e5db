"""`torch.compile(module, backend="workbench")`: graphs that PyTorch captures, as kernels.

AOTAutograd makes graphs of ATen operators of the forward and of the backward pass. Operators with a
row are computed here; all others run in PyTorch between them, also those that draw random numbers,
so that these are PyTorch's. The first call for arguments of certain shapes runs node by node: then
the sizes are known, and which rows refuse their arguments. Later calls run functions of as many
nodes as possible, each captured and replayed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from workbench.base.context import Context
from workbench.base.errors import JitError, WorkbenchError, require, short
from workbench.base.files import Unpicklable
from workbench.counters import LOG
from workbench.models.torch.nodes import (
    NodeCalls,
    is_random,
    load_rows,
    operator_name,
    operator_of,
    refusal_of,
)
from workbench.models.torch.values import from_torch, handed_over, is_dtype
from workbench.tensor.jit.tinyjit import TinyJit
from workbench.tensor.tensor import Tensor

Compiled = Callable[..., Any]


MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "reduce-overhead": {},  # graphs are captured and replayed in any mode
    "max-autotune": {"BEAM": 2},
    "max-autotune-no-cudagraphs": {"BEAM": 2},
}
"""The settings that modes of torch.compile stand for."""


def compile_graph(
    module: Any, inputs: Sequence[Any], *, mode: str = "default", options: Any = None
) -> Compiled:
    """Return a captured graph as a function of tensors: PyTorch calls this backend by its name.

    `options` are settings of this package, {"BEAM": 4}, and `mode` is a mode of torch.compile.
    Errors: WorkbenchError for another mode, and for a setting that does not exist or cannot have
    that value.
    """
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import make_boxed_func
    from torch.nn.attention import SDPBackend, sdpa_kernel

    load_rows()
    settings = _settings(mode, {} if options is None else options)
    boxed: Any = make_boxed_func

    def compiled(graph: Any, _: Sequence[Any]) -> Any:
        return boxed(CompiledGraph(graph, settings))

    with sdpa_kernel(SDPBackend.MATH):  # attention in operators that have rows, backwards too
        backend: Any = aot_autograd(fw_compiler=compiled, decompositions=_decompositions())
        function: Compiled = backend(module, list(inputs))
    return function


def _settings(mode: object, options: object) -> dict[str, Any]:
    """Return the settings under which a graph runs, after checking them."""
    if not isinstance(mode, str) or mode not in MODES:
        because = f"the backend workbench has the modes {', '.join(MODES)}"
        raise WorkbenchError(f"there is no mode {short(mode)}", because, 'mode="max-autotune"')
    given = require(options, dict, "torch.compile: options", 'options={"BEAM": 4}')
    settings = {**MODES[mode], **given}
    with Context(**settings):
        return settings


@cache
def _decompositions() -> dict[Any, Any]:
    """Return PyTorch's decompositions into core operators, without those that draw numbers in
    another order than the operator."""
    import torch

    table: Any = torch.export.default_decompositions()
    return {op: function for op, function in table.items() if not is_random(op)}


class CompiledGraph:
    """A graph of ATen operators as a function of PyTorch's tensors and numbers."""

    def __init__(self, module: Any, settings: Mapping[str, Any]):
        self._module, self._calls, self._shared = module, NodeCalls(), SharedTensors()
        self._settings = settings
        self._plans: dict[object, GraphPlan] = {}
        names = sorted(
            {str(operator_of(node)) for node in module.graph.nodes if refusal_of_call(node)}
        )
        if names:
            LOG.warning("torch.compile: these operators run in PyTorch: %s", ", ".join(names))

    def __call__(self, *arguments: Any) -> list[Any]:
        key = tuple((a.dtype, a.shape) if hasattr(a, "shape") else a for a in arguments)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = GraphPlan(self._module, self._calls)
        with Context(**self._settings):
            return plan(arguments, GraphValues(self._shared))


class SharedTensors:
    """Tensors on the memory of PyTorch's, made once while these live: parameters are arguments of
    every call."""

    def __init__(self) -> None:
        from torch.utils.weak import WeakTensorKeyDictionary

        self._tensors: Any = WeakTensorKeyDictionary()

    def __call__(self, value: Any) -> Any:
        """Return a value of PyTorch's as one of ours."""
        if not hasattr(value, "data_ptr"):
            return value
        place = value.data_ptr(), value.shape, value.stride()
        entry = self._tensors.get(value)
        if entry is None or entry[0] != place:  # it may have got other memory
            tensor = from_torch(value.contiguous())
            if not value.is_contiguous():
                return tensor  # a copy, which does not see what is written later
            entry = self._tensors[value] = place, tensor
        return entry[1]


class GraphValues:
    """The values of a call, by the names of their nodes. A tensor is PyTorch's or one of ours, and
    is turned into the other where a node needs that."""

    def __init__(self, shared: SharedTensors):
        self._shared = shared
        self._ours: dict[str, Any] = {}
        self._theirs: dict[str, Any] = {}

    def put(self, name: str, value: Any) -> None:
        (self._ours if _holds_ours(value) else self._theirs)[name] = value

    def ours(self, name: str) -> Any:
        if name not in self._ours:
            self._ours[name] = _changed(self._theirs[name], self._shared)
        return self._ours[name]

    def theirs(self, name: str) -> Any:
        if name not in self._theirs:
            self._theirs[name] = _changed(self._ours[name], _from_ours)
        return self._theirs[name]

    def compute(self, names: Iterable[str]) -> None:
        """Compute tensors in one schedule: one by one, each would compute again what it shares with
        the others."""
        values = [self._ours[name] for name in names if name in self._ours]
        parts = [part for v in values for part in (v if isinstance(v, tuple) else (v,))]
        tensors = [part for part in parts if isinstance(part, Tensor)]
        if tensors:
            tensors[0].realize(*tensors[1:])


class GraphPlan:
    """A graph for arguments of certain shapes: the steps that compute it, once they are known."""

    def __init__(self, module: Any, calls: NodeCalls):
        self._module, self._calls = module, calls
        self._nodes = list(module.graph.nodes)
        self._inputs = [n.name for n in self._nodes if n.op == "placeholder"]
        self._computed = [n for n in self._nodes if n.op == "call_function"]
        self._results = self._nodes[-1].args[0]
        self._returned = {_viewed(node).name for node in self._results if hasattr(node, "name")}
        self._foreign = {n.name for n in self._computed if _is_foreign(n)}
        self._numbers: dict[str, Any] = {}
        self._depends_on_values = any(map(_reads_values, self._computed))
        self._steps: list[Callable[[GraphValues], None]] | None = None

    def __call__(self, arguments: Sequence[Any], values: GraphValues) -> list[Any]:
        import torch

        for name, argument in zip(self._inputs, arguments, strict=True):
            values.put(name, argument)
        for node in self._nodes:
            if node.op == "get_attr":
                values.put(node.name, operator.attrgetter(node.target)(self._module))
        with torch.no_grad():
            if self._steps is None:
                self._run_nodes(values)
                values.compute(self._returned)
                if not self._depends_on_values:
                    self._steps = list(self._grouped())
            else:
                for name, number in self._numbers.items():
                    values.put(name, number)
                for step in self._steps:
                    step(values)
            results = GraphResults(self._inputs, values)
            return [results.of(node) for node in self._results]

    def _run_nodes(self, values: GraphValues) -> None:
        """Compute one node after the other, and note the numbers, and rows that refuse."""
        for node in self._computed:
            if _is_number(node):
                self._numbers[node.name] = _computed_in_pytorch(node, values)
                values.put(node.name, self._numbers[node.name])
            elif not self._is_foreign(node):
                try:
                    values.put(node.name, self._calls(node, values.ours))
                    continue
                except WorkbenchError as error:
                    name = operator_name(node)
                    LOG.warning("torch.compile: %s runs in PyTorch: %s", name, error.because)
                    self._foreign.add(node.name)
            if self._is_foreign(node):
                values.put(node.name, _computed_in_pytorch(node, values))

    def _is_foreign(self, node: Any) -> bool:
        if node.target is operator.getitem:  # a part of a result is where that is
            return self._is_foreign(node.args[0])
        return node.name in self._foreign

    def _grouped(self) -> Iterator[Callable[[GraphValues], None]]:
        """Yield steps: nodes that are computed here together, and between them those of PyTorch,
        in the order of the graph: random numbers are drawn in that order."""
        stages: dict[str, int] = {}
        latest = 0
        tensors = [node for node in self._computed if not _is_number(node)]
        for node in tensors:
            sources = [n for n in node.all_input_nodes if n.name in stages]
            if self._is_foreign(node):
                latest = stages[node.name] = max([latest, *(stages[n.name] for n in sources)])
            else:
                after = (stages[n.name] + self._is_foreign(n) for n in sources)
                stages[node.name] = max(after, default=0)
        for stage in range(max(stages.values(), default=-1) + 1):
            group = [node for node in tensors if stages[node.name] == stage]
            ours = [node for node in group if not self._is_foreign(node)]
            if ours:
                yield KernelStep(NodeGroup(ours, self._numbers, self._calls, self._returned))
            yield from (PyTorchStep(node) for node in group if self._is_foreign(node))


class GraphResults:
    """What a call returns, in PyTorch's tensors. A view is on the memory of what it views, and any
    other result has memory of its own, whatever was computed once: it may be written later."""

    def __init__(self, inputs: Sequence[str], values: GraphValues):
        self._values = values
        self._tensors = {name: values.theirs(name) for name in inputs}
        self._places = set(map(_place, self._tensors.values()))

    def of(self, node: Any) -> Any:
        if not hasattr(node, "name"):
            return node
        if node.name not in self._tensors:
            self._tensors[node.name] = self._made(node)
        return self._tensors[node.name]

    def _made(self, node: Any) -> Any:
        if _is_view(node):
            return _in_pytorch(node, self.of)
        value = _laid_out(self._values.theirs(node.name), node.meta.get("val"))
        place = _place(value)
        if place and place in self._places:
            return value.clone()
        self._places.add(place)
        return value


def _place(value: Any) -> int:
    """Return where the memory of a tensor begins; 0 for a number, a tensor without elements, and a
    sparse one, whose memory is that of its parts."""
    has_memory = hasattr(value, "untyped_storage") and not value.is_sparse
    return int(value.untyped_storage().data_ptr()) if has_memory else 0


def _is_view(node: Any) -> bool:
    """Whether a node's result is on the memory of its argument, in an order that is known."""
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return _is_view(node.args[0])
    returns = getattr(getattr(node.target, "_schema", None), "returns", ())
    if not any(each.alias_info is not None for each in returns):
        return False
    declared = node.args[0].meta["val"]
    return _strides_of(declared, declared.shape) is not None


def _viewed(node: Any) -> Any:
    """Return the node whose memory the result of a node is on."""
    while _is_view(node):
        node = node.args[0]
    return node


class NodeGroup(Unpicklable):
    """Nodes that are computed here together, as a function of Tensors."""

    __slots__ = ("_calls", "_nodes", "_numbers", "inputs", "outputs")

    def __init__(
        self,
        nodes: Sequence[Any],
        numbers: dict[str, Any],
        calls: NodeCalls,
        returned: Container[str],
    ):
        self._nodes, self._numbers, self._calls = nodes, numbers, calls
        own = {node.name for node in nodes}
        inputs = [n.name for node in nodes for n in node.all_input_nodes]
        self.inputs = [n for n in dict.fromkeys(inputs) if n not in own and n not in numbers]
        self.outputs = [
            node.name
            for node in nodes
            if node.name in returned
            or any(user.name not in own and user.op != "output" for user in node.users)
        ]

    def __call__(self, tensors: Sequence[Any]) -> list[Any]:
        values = {**self._numbers, **dict(zip(self.inputs, tensors, strict=True))}
        for node in self._nodes:
            values[node.name] = self._calls(node, values.__getitem__)
        return [values[name] for name in self.outputs]


class KernelStep:
    """Nodes that are computed here, as one capture."""

    def __init__(self, group: NodeGroup):
        self._group = group
        self._function: Callable[[Sequence[Any]], list[Any]] = TinyJit(group)

    def __call__(self, values: GraphValues) -> None:
        inputs = [values.ours(name) for name in self._group.inputs]
        try:
            results = self._function(inputs)
        except JitError:  # what cannot be replayed runs each time
            self._function = self._group
            results = self._function(inputs)
        for name, result in zip(self._group.outputs, results, strict=True):
            values.put(name, result)


@dataclass(frozen=True, slots=True)
class PyTorchStep:
    """A node that PyTorch computes."""

    node: Any

    def __call__(self, values: GraphValues) -> None:
        values.put(self.node.name, _computed_in_pytorch(self.node, values))


def refusal_of_call(node: Any) -> str:
    """Return why the operator of a node is not computed here; "" if it is, or is not a tensor's."""
    if node.op != "call_function" or node.target is operator.getitem or _is_number(node):
        return ""
    if is_random(node.target):
        return "its numbers are PyTorch's"
    if operator_name(node) in _PLACES:
        return "it is about places in memory"
    return refusal_of(node)


_PLACES = frozenset({"as_strided"})
"""Operators of places in memory, which tensors have in PyTorch alone."""


def _is_foreign(node: Any) -> bool:
    if node.target is operator.getitem or _is_number(node):
        return False
    uses = [node, *node.all_input_nodes]
    return bool(refusal_of_call(node)) or not all(map(_is_known, uses))


def _is_known(node: Any) -> bool:
    """Whether the values of a node are tensors that there can be here, or numbers."""
    value = node.meta.get("val")
    tensors = value if isinstance(value, (list, tuple)) else [value]
    return all(is_dtype(t.dtype) and t.device.type == "cpu" for t in tensors if hasattr(t, "dtype"))


def _is_number(node: Any) -> bool:
    import torch

    kinds = int, float, torch.SymInt, torch.SymFloat, torch.SymBool
    return node.op == "call_function" and isinstance(node.meta.get("val"), kinds)


def _reads_values(node: Any) -> bool:
    """Whether sizes or numbers depend on the values of tensors: they differ from call to call."""
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    value = node.meta.get("val")
    return value is not None and bool(free_unbacked_symbols(value))


def _computed_in_pytorch(node: Any, values: GraphValues) -> Any:
    return _in_pytorch(node, lambda n: _laid_out(values.theirs(n.name), n.meta.get("val")))


def _in_pytorch(node: Any, value_of: Callable[[Any], Any]) -> Any:
    from torch.fx.node import map_arg

    arguments, options = map_arg(node.args, value_of), map_arg(node.kwargs, value_of)
    return node.target(*arguments, **options)


def _holds_ours(value: Any) -> bool:
    parts = value if isinstance(value, tuple) else (value,)
    return any(isinstance(part, Tensor) for part in parts)


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_changed(part, change) for part in value)
    return change(value)


def _from_ours(value: Any) -> Any:
    return handed_over(value) if isinstance(value, Tensor) else value


def _strides_of(declared: Any, shape: Sequence[Any]) -> Sequence[int] | None:
    """Return the strides that PyTorch expects of a tensor of a shape. Where sizes differ from call
    to call, they are those of dense memory with the axes in the order of the first call; None if
    that was not dense."""
    strides = declared.stride()
    if all(isinstance(n, int) for n in strides):
        return tuple(strides)
    first = [_at_first(n) for n in strides]
    sizes = [_at_first(n) for n in declared.shape]
    order = sorted(range(len(first)), key=lambda axis: (first[axis], sizes[axis]))
    if _dense(sizes, order) != first:
        return None
    return _dense(shape, order)


def _dense(shape: Sequence[Any], order: Sequence[int]) -> list[Any]:
    """Return the strides of dense memory; `order` has the axes, that of stride 1 first."""
    strides, size = [0] * len(shape), 1
    for axis in order:
        strides[axis] = size
        size *= shape[axis]
    return strides


def _at_first(number: Any) -> Any:
    """Return the value of a size in the first call."""
    return number if isinstance(number, int) else number.node.hint


def _laid_out(value: Any, declared: Any) -> Any:
    """Return a tensor with the strides that PyTorch expects: later views depend on them."""
    import torch

    if not (hasattr(declared, "stride") and hasattr(value, "stride")):  # None orders effects
        return value
    wanted = _strides_of(declared, value.shape)
    if wanted is None:
        return value
    pairs = list(zip(value.shape, value.stride(), wanted, strict=True))
    if all(mine == other for size, mine, other in pairs if size > 1):
        return value
    core = value
    for axis, (_, _, stride) in enumerate(pairs):  # one element stands for an expanded axis
        core = core.narrow(axis, 0, 1) if stride == 0 else core
    reach = sum((n - 1) * s for n, s in zip(core.shape, wanted, strict=True)) + 1
    if reach < core.numel():  # windows that overlap in memory
        return value
    return torch.empty_strided(core.shape, wanted, dtype=value.dtype).copy_(core).expand_as(value)
