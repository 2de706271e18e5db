"""Nodes whose inputs are known, computed while the graph is read: the arithmetic of shapes.

The reference evaluator of the onnx package computes them. They are operators on few elements, whose
results are small, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench.models.onnx.file import Body, Function, OnnxNode, inner_bodies
from workbench.models.onnx.functions import plain_function
from workbench.models.onnx.protos import node_proto
from workbench.models.onnx.table import row_of
from workbench.models.onnx.values import Array
from workbench.models.onnx.visits import Visits

MOST_ELEMENTS = 4096
"""The maximal number of elements of a node's known inputs: shapes and indices have fewer."""
MOST_RESULTS = 1 << 20
"""The maximal number of elements of a folded result."""
MOST_FOLDED = 1 << 24
"""The maximal number of elements that are kept of all inputs and results."""

ELEMENTWISE = frozenset(
    {
        *("Abs", "Add", "And", "BitShift", "Cast", "CastLike", "Ceil", "Div", "Equal", "Floor"),
        *("Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Max", "Mean", "Min"),
        *(
            "Mod",
            "Mul",
            "Neg",
            "Not",
            "Or",
            "Pow",
            "Reciprocal",
            "Relu",
            "Round",
            "Sign",
            "Sqrt",
            "Sub",
        ),
        *("Sum", "Where", "Xor"),
    }
)
MOVEMENT = frozenset(
    {
        *("ArgMax", "ArgMin", "Compress", "Concat", "CumSum", "Flatten", "Gather"),
        *("GatherElements", "GatherND", "NonZero", "ReduceMax", "ReduceMean", "ReduceMin"),
        *("ReduceProd", "ReduceSum", "Reshape", "ScatterElements", "ScatterND", "Shape", "Size"),
        *("Slice", "Split", "Squeeze", "TopK", "Transpose", "Trilu", "Unique", "Unsqueeze"),
    }
)
"""Operators whose results have at most the product of their inputs' numbers of elements."""
GROWING = frozenset({"ConstantOfShape", "Expand", "Range", "Tile"})
"""Operators whose results have as many elements as the values of an input say."""
FOLDED = ELEMENTWISE | MOVEMENT | GROWING
OF_SHAPES = frozenset({"Shape", "Size"})
"""Operators whose result is known where the shape of the input is."""


class Folding:
    """Folded results, which are computed once for equal inputs."""

    def __init__(self) -> None:
        self._results: dict[Any, tuple[Array, ...] | None] = {}
        self._elements = 0

    def folded(
        self, node: OnnxNode, attributes: Mapping[str, Any], inputs: Sequence[Array | None]
    ) -> tuple[Array, ...] | None:
        """Return the results of a node for known inputs; None if it is not to be folded."""
        given = [each for each in inputs if each is not None]
        if node.domain or node.operator not in FOLDED or node.references or not given:
            return None
        if sum(each.size for each in given) > MOST_ELEMENTS or self._elements > MOST_FOLDED:
            return None
        if not 0 <= _most_results(node.operator, inputs) <= MOST_RESULTS:
            return None
        key = (
            node,
            *((str(a.dtype), a.shape, a.tobytes()) if a is not None else 0 for a in inputs),
        )
        if key not in self._results:
            results = self._results[key] = _evaluated(node, inputs)
            self._elements += sum(each.size for each in (*given, *(results or ())))
        return self._results[key]


def _most_results(operator: str, inputs: Sequence[Array | None]) -> float:
    """Return the number of elements that a result has at most; -1 if its inputs do not fit."""
    given = [each for each in inputs if each is not None]
    try:
        if operator in ELEMENTWISE:
            return math.prod(np.broadcast_shapes(*(each.shape for each in given)))
        if operator == "ConstantOfShape":
            return math.prod(map(int, given[0].flat))
        if operator == "Expand":
            shape = tuple(map(int, given[1].flat))
            return math.prod(np.broadcast_shapes(given[0].shape, shape))
        if operator == "Tile":
            return given[0].size * math.prod(map(int, given[1].flat))
        if operator == "Range":
            start, limit, step = (each.item() for each in given)
            return max(0.0, float((limit - start) / step))
        return math.prod(max(1, each.size) for each in given[:2])
    except (ArithmeticError, IndexError, ValueError):
        return -1


def _evaluated(node: OnnxNode, inputs: Sequence[Array | None]) -> tuple[Array, ...] | None:
    """Return what the reference evaluator computes; None if it cannot."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    names = [name for name in dict.fromkeys(node.inputs) if name]
    outputs = [name for name in node.outputs if name]
    opsets = [helper.make_opsetid("", node.opset)]
    function = helper.make_function(
        "workbench", "folded", names, outputs, [node_proto(node)], opsets
    )
    feeds = {name: a for name, a in zip(node.inputs, inputs, strict=True) if a is not None}
    try:
        with np.errstate(all="ignore"):
            results = iter(ReferenceEvaluator(function).run(None, feeds, attributes={}))
        made = tuple(np.asarray(next(results)) if name else np.empty(0) for name in node.outputs)
    except Exception:  # of many classes: then the operator's row computes it, or refuses it
        return None
    return None if any(each.dtype.kind in "OSU" for each in made) else made


class Needs:
    """Which names of graphs must be known while they are read: shapes, axes, conditions, and what
    those are computed from. What is found for a function is kept."""

    def __init__(self, functions: Mapping[tuple[str, str], Function]):
        self._functions = functions
        self._found: dict[tuple[Function, frozenset[str]], set[str]] = {}
        self._visits = Visits()

    def names(self, body: Body, results: Iterable[str] = ()) -> set[str]:
        """Return the names that must be known for a graph, also of the graphs around it. `results`
        are names that must be known for other reasons."""
        needed = set(results)
        with self._visits.inside():
            for node in reversed(body.nodes):
                self._visits.add(node)
                if node.operator in OF_SHAPES and not node.domain:
                    continue
                needed |= self._of_node(node, needed)
                is_folded = not node.domain and node.operator in FOLDED
                if is_folded and not needed.isdisjoint(node.outputs):
                    needed.update(node.inputs)
        needed.discard("")
        return needed

    def _of_node(self, node: OnnxNode, needed: set[str]) -> set[str]:
        """Return the names that must be known for a node itself."""
        found = row_of(node.domain, node.operator, node.opset)
        function = self._functions.get((node.domain, node.operator))
        asked = [place for place, name in enumerate(node.outputs) if name in needed]
        if not node.domain and node.operator in REPEATED:
            inner = [self._around(node, body, asked) for body in inner_bodies(node)]
            return set(node.inputs[: REPEATED[node.operator]]).union(*inner)
        if function is None and found is None:
            function = plain_function(node)
        if function is not None:
            results = frozenset(function.body.outputs[place] for place in asked)
            key = function, results
            if key not in self._found:
                self._found[key] = self.names(function.body, results)
            pairs = zip(function.body.inputs, node.inputs, strict=False)
            return {name for formal, name in pairs if formal in self._found[key]}
        if found is None:
            return set()
        return {name for place, name in enumerate(node.inputs) if found.needs(place)}

    def _around(self, node: OnnxNode, body: Body, asked: Sequence[int]) -> set[str]:
        """Return the names outside of an inner graph that must be known for it."""
        is_loop = node.operator == "Loop"
        places = [place + is_loop for place in asked]
        results = {body.outputs[place] for place in places if place < len(body.outputs)}
        if is_loop:
            results |= set(body.outputs[:1])
        inner = self.names(body, results)
        while is_loop:
            # What must be known in an iteration must be known after the one before it.
            carried = zip(body.inputs[2:], body.outputs[1:], strict=False)
            more = {result for name, result in carried if name in inner} - results
            if not more:
                break
            results |= more
            inner = self.names(body, results)
        own = {*body.inputs, *body.constants, *(name for n in body.nodes for name in n.outputs)}
        pairs = zip(body.inputs, node.inputs, strict=False) if node.operator != "If" else ()
        return (inner - own) | {name for formal, name in pairs if formal in inner}


REPEATED = {"If": 1, "Loop": 2, "Scan": 0}
"""Operators with graphs, and how many of their first inputs must be known."""
