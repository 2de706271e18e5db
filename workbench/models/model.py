"""`Model`: a network from outside, as a callable over arrays, with its names for everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from workbench.base.dtypes import DType
from workbench.base.errors import plural
from workbench.models.check import ModelCheck, ModelValue, compared, first_wrong
from workbench.models.replays import GraphCalls
from workbench.tensor.tensor import Tensor

UNWRITTEN = "workbench has no function for this operator"
"""Why an operator is refused that no table names."""


class Port(NamedTuple):
    """An input, an output or a parameter of a model."""

    name: str
    shape: tuple[int, ...]
    dtype: DType

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape)}"


@dataclass(frozen=True, slots=True)
class OperatorUse:
    """How often a model uses an operator of its framework, and where first. `refused` says why it
    cannot be computed here; "" if it can."""

    name: str
    count: int
    where: str
    refused: str = ""


class ModelResults(NamedTuple):
    """What a run of a graph makes: its `outputs`, the values that it writes to the model's state,
    by name (running means in training), and other values that the user has names for (`named`)."""

    outputs: tuple[Tensor, ...]
    written: Mapping[str, Tensor]
    named: Mapping[str, Tensor] = MappingProxyType({})


class TracedModel(NamedTuple):
    """A graph, the tensors of its inputs, and the expressions of all that it computes. `constant`
    are the names of inputs whose values it depends on, as those of a shape."""

    graph: Graph
    inputs: tuple[Tensor, ...]
    results: ModelResults
    constant: frozenset[str]


class Graph(Protocol):
    """A model for inputs of certain shapes."""

    @property
    def inputs(self) -> tuple[Port, ...]: ...
    @property
    def outputs(self) -> tuple[Port, ...]: ...
    @property
    def operators(self) -> tuple[OperatorUse, ...]: ...
    @property
    def is_replayable(self) -> bool:
        """Whether each run computes the same of its inputs and the state: a function may not."""
        ...

    def run(self, inputs: Sequence[Tensor]) -> ModelResults:
        """Return the expressions of what the model computes; nothing is computed."""
        ...

    def structured(self, outputs: Sequence[Tensor]) -> Any:
        """Return the outputs in the structure of the source: a tensor, a tuple, a dict."""
        ...

    def node_values(self, inputs: Sequence[Tensor]) -> Iterator[ModelValue]:
        """Yield what each node makes of `inputs`, with what the framework makes of them."""
        ...


class ModelSource(Protocol):
    """A network as its framework has it, with the tensors of its state by their names there."""

    @property
    def name(self) -> str: ...
    @property
    def state(self) -> Mapping[str, Tensor]: ...
    @property
    def parameter_names(self) -> Sequence[str]: ...

    def bound(self, arguments: tuple[object, ...], options: Mapping[str, object]) -> BoundInputs:
        """Return arguments as the source takes them."""
        ...

    def graph(self, call: BoundInputs) -> Graph: ...


class BoundInputs(NamedTuple):
    """The arguments of a call: `tensors` in order, and a `key` that is equal for calls that one
    graph serves. `constant` are the names of inputs whose values are a part of the key."""

    tensors: tuple[Tensor, ...]
    key: object
    arguments: Any
    constant: frozenset[str] = frozenset()


MOST_CAPTURED = 8
"""Most captures of a model, each for inputs of certain shapes: they hold memory for its values."""


class Model:
    """A network from outside: a callable over arrays of numpy and torch, and Tensors.

    It returns Tensors (one, or the structure that the source returns). A graph is read from the
    source for each set of shapes. Those of its first call are computed when their values are read;
    later calls are captured and replayed, as by TinyJit, and compute at once. Their kernels read
    the parameters that there are at the call. Where a gradient may flow, and with JIT=0, every call
    returns expressions.

    Values that the source writes to its state, such as running means, are written in the memory
    that it shares with the source.
    """

    def __init__(self, source: ModelSource):
        self._source = source
        self._graphs: dict[object, Graph] = {}
        self._calls: dict[object, GraphCalls] = {}
        """By inputs: of shapes, dtypes and devices. The latest is last."""
        self._latest: Graph | None = None

    def __call__(self, *arguments: object, **options: object) -> Any:
        call = self._source.bound(arguments, options)
        graph = self._latest = self._graph(call)
        if not graph.is_replayable:
            return graph.structured(graph.run(call.tensors).outputs)
        key = call.key, tuple(tensor.device for tensor in call.tensors)
        calls = self._calls.pop(key, None) or GraphCalls(graph.run, self._source.state)
        self._calls[key] = calls
        if len(self._calls) > MOST_CAPTURED:
            self._calls.pop(next(iter(self._calls)), None)
        return graph.structured(calls(call.tensors))

    @property
    def file(self) -> str:
        """The path of the file that the source was read from; "" for a source in memory."""
        return getattr(self._source, "path", "")

    def traced(self, arguments: tuple[object, ...], options: Mapping[str, object]) -> TracedModel:
        """Return the graph for these arguments, and the expressions of all that it computes."""
        call = self._source.bound(arguments, options)
        graph = self._latest = self._graph(call)
        return TracedModel(graph, call.tensors, graph.run(call.tensors), call.constant)

    def _graph(self, call: BoundInputs) -> Graph:
        graph = self._graphs.get(call.key)
        if graph is None:
            graph = self._graphs[call.key] = self._source.graph(call)
        return graph

    def check(self, *arguments: object, bisect: bool = False, **options: object) -> ModelCheck:
        """Return a comparison of each output, and of what a call would write to the source's state,
        with what the framework computes. With `bisect` it has the first value of the graph that
        differs, too: its module, operator and line.

        The graph is computed again; nothing is written to the source's state. Random numbers, such
        as masks of dropout, are those of PyTorch on both sides.
        """
        graph, tensors, results, _ = self.traced(arguments, options)
        values = {value.name: value for value in graph.node_values(tensors)}
        names = [*(port.name for port in graph.outputs), *results.written]
        checks = tuple(compared(values[name]) for name in names if name in values)
        is_wrong = not all(each.ok for each in checks)
        return ModelCheck(checks, first_wrong(values.values()) if bisect and is_wrong else None)

    @property
    def inputs(self) -> tuple[Port, ...]:
        """The inputs of the latest call, or of the examples; () before there is one."""
        return () if self._latest is None else self._latest.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The outputs of the latest call, or of the examples; () before there is one."""
        return () if self._latest is None else self._latest.outputs

    @property
    def operators(self) -> tuple[OperatorUse, ...]:
        """The operators of the framework that the model uses, refused ones first."""
        return () if self._latest is None else self._latest.operators

    @property
    def parameters(self) -> tuple[Port, ...]:
        """The trained parameters, by the names that the source has for them."""
        state = self._source.state
        return tuple(Port(n, state[n].shape, state[n].dtype) for n in self._source.parameter_names)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the parameters and buffers by name, on the memory of the source where the device
        can share it."""
        return dict(self._source.state)

    def __repr__(self) -> str:
        state, names = self._source.state, self._source.parameter_names
        elements = sum(state[n].numel() for n in names)
        parameters = plural(len(names), "parameter")
        lines = [f"Model of {self._source.name}: {parameters}, {elements:,} elements"]
        for label, ports in (("in", self.inputs), ("out", self.outputs)):
            lines += [f"  {label:4}{port}" for port in ports]
        for use in self.operators:
            refused = f"  refused: {use.refused} ({use.where})" if use.refused else ""
            lines.append(f"  {use.count:4} x {use.name}{refused}")
        return "\n".join(lines)


def counted(uses: Iterable[tuple[str, str, str]]) -> tuple[OperatorUse, ...]:
    """Return a row for each operator, refused ones first, then the most frequent, of its uses
    (name, where, why it is refused)."""
    listed = list(uses)
    counts = Counter(name for name, _, _ in listed)
    first = {name: (where, refused) for name, where, refused in reversed(listed)}
    rows = [OperatorUse(name, n, *first[name]) for name, n in counts.most_common()]
    return tuple(sorted(rows, key=lambda row: not row.refused))
