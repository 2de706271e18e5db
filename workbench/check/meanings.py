"""Meanings of kernels: the values of the user's graph, before any rewrite, that they must compute.

A wrong rule changes what a kernel computes, not the values that it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.base.interrupts import once
from workbench.base.trace import PassRecord
from workbench.check.answer import Reference, ReferencePart
from workbench.execution.buffers import Array
from workbench.ir.meaning.interpret import interpret_tensors
from workbench.ir.meaning.sampled import SampledElements, TooManyPositions, largest_size
from workbench.ir.meaning.values import cast_array
from workbench.ir.node.ops import MOVEMENT, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import replacements
from workbench.ir.schedule.by_hand import CHOOSE
from workbench.ir.schedule.plan import ScheduleItem, base
from workbench.ir.schedule.schedule import SIMPLIFY_TENSOR, SPLIT_REDUCTIONS

MOST_ELEMENTS = 1 << 24
"""Most elements of all values of a graph that is computed in full; of a larger one, a part is.
Values that are only moved are no work, but none of them may have more elements, either."""
MOST_OPERAND_ELEMENTS = 1 << 22
"""Most elements that the sampled elements are computed from."""
SAMPLES = (4096, 512, 64, 8, 1)
"""Numbers of sampled elements of an output; the first that is not too much work is taken."""
OF_EXPRESSION = "what the expression means before any rule, by the reference interpreter"
TRUSTED = "gradients are what the rule of {} says, and that it is a derivative is not checked"
OF_RULE = "the value that a rule made, which stands for none of the expression"
Memory = Callable[[UOp], Array]
"""Returns what a BUFFER contains."""


class Meanings:
    """The values of the user's graph that stored values stand for, by the `records` of the
    scheduler's passes, which rewrote `roots` to `outputs`. `trusted` names the user's gradient
    rules: gradients are taken to be what these return. Values that were computed earlier are
    BUFFERs in `roots`, and expressions in `whole`."""

    def __init__(
        self,
        records: Sequence[PassRecord],
        outputs: Sequence[UOp],
        trusted: Sequence[str] = (),
        whole: Sequence[UOp] = (),
    ) -> None:
        names = (SIMPLIFY_TENSOR.name, SPLIT_REDUCTIONS.name, CHOOSE.name)
        firsts = [next((r for r in records if r.name == name), None) for name in names]
        self._passes = [record for record in firsts if record is not None]
        self.roots: tuple[UOp, ...] = self._passes[0].before.src
        self.outputs = tuple(outputs)
        self._trusted = tuple(trusted)
        self.whole = tuple(whole)

    @property
    def against(self) -> str:
        """What a result of the expression is compared with, in words."""
        if not self._trusted:
            return OF_EXPRESSION
        return f"{OF_EXPRESSION}; {TRUSTED.format(', '.join(self._trusted))}"

    def of_result(self, node: UOp) -> tuple[UOp, ...]:
        """Return the values of the user's graph that a stored value must equal, () if there are
        none: the results of the expression among its meanings, else those of `of_operand`."""
        roots = {base(root) for root in self.roots}
        values = self._meanings.get(node, ())
        return tuple(v for v in values if v in roots) or self.of_operand(node)

    def of_operand(self, node: UOp) -> tuple[UOp, ...]:
        """Return the values of the user's graph that a stored value stands for as an operand: only
        itself, if it is one of them."""
        values = self._meanings.get(node, ())
        return (node,) if node in values else values

    @once
    def _meanings(self) -> Mapping[UOp, tuple[UOp, ...]]:
        """The values of the user's graph that each simplified value stands for."""
        images = dict(zip(self.roots, self.outputs, strict=True))
        if not any(each.dropped for each in self._passes):  # else inner values are unknown
            graph = self._passes[0].before
            inner = {n: n for n in graph.toposort() if n is not graph}
            for each in self._passes:
                replaced = replacements(each.before, each.matches)
                inner = {n: replaced[i] for n, i in inner.items() if i in replaced}
            images |= inner
        meanings: dict[UOp, dict[UOp, None]] = {}
        for node, image in images.items():
            value, meaning = base(image), base(node)
            if value.size == meaning.size and value.dtype is meaning.dtype:
                meanings.setdefault(value, {}).setdefault(meaning)
        return {value: tuple(nodes) for value, nodes in meanings.items()}


@dataclass(frozen=True, slots=True)
class ReferenceComparison:
    """How a kernel is checked: against `reference`, on `inputs` by BUFFER ({}: on what the kernels
    before it computed). `is_inner`: an output of it stands for no value of the user's graph, so the
    results of the whole expression must be right, too."""

    inputs: Mapping[UOp, Array]
    reference: Reference
    is_inner: bool


def comparison_of(
    meanings: Meanings, items: Sequence[ScheduleItem], number: int, leaf: Memory, computed: Memory
) -> ReferenceComparison:
    """Return how the kernel of item `number` is checked. `leaf` returns the data of the user's
    tensors, `computed` the results of earlier items. Errors: TooManyPositions."""
    item = items[number]
    values = {b: n for each in items for b, n in zip(each.outputs, each.nodes, strict=True)}
    outputs = [meanings.of_result(node) for node in item.nodes]
    is_inner = not all(outputs)
    if is_inner:
        outputs = [(node,) for node in item.nodes]
    targets = [(place, v) for place, nodes in enumerate(outputs) for v in nodes]
    read = {b: values[b] for b in item.inputs if b in values}
    operands = {b: meanings.of_operand(n) or (n,) for b, n in read.items()}
    inputs, how = _operands({b: nodes[0] for b, nodes in operands.items()}, leaf)
    contents = inputs or {b: computed(b).reshape(b.shape) for b in read}
    results = {value for _, value in targets}
    cuts = {
        value: UOp(Ops.RESHAPE, b.dtype, (b,), value.shape)
        for b, nodes in operands.items()
        for value in (*nodes, read[b])
        if value not in results
    }
    graphs = [(place, value.substitute(cuts)) for place, value in targets]
    has_producers = any(i.kernel is not None for i in items if read.keys() & {*i.outputs})
    against = (OF_RULE if is_inner else meanings.against) + (how if has_producers else "")
    return ReferenceComparison(inputs, _reference(graphs, contents, leaf, against), is_inner)


def whole_reference(meanings: Meanings, roots: Sequence[UOp], leaf: Memory) -> Reference:
    """Return the reference of all results of an expression, its `roots`."""
    return _reference(list(enumerate(roots)), {}, leaf, meanings.against)


def _operands(operands: Mapping[UOp, UOp], leaf: Memory) -> tuple[dict[UOp, Array], str]:
    """Return the contents of BUFFERs that earlier kernels write, computed by the reference from
    `operands`, and words for this; no contents where this is too much work."""
    if not operands:
        return {}, ""
    graph = UOp.sink(*operands.values()).toposort()
    if _work(graph) > MOST_ELEMENTS or largest_size([*operands.values()]) > MOST_ELEMENTS:
        return {}, ", on what the kernels before it computed"
    memory = {n: leaf(n).reshape(n.shape) for n in graph if n.op is Ops.BUFFER}
    arrays = interpret_tensors(list(operands.values()), memory, widen=True)
    contents = {}
    for (buffer, node), array in zip(operands.items(), arrays, strict=True):
        own = dtypes.from_numpy(array.dtype)
        full = np.broadcast_to(cast_array(array, own, buffer.dtype), node.shape)
        contents[buffer] = np.array(full, buffer.dtype.numpy).reshape(buffer.shape)
    return contents, ", as are its inputs"


def _reference(
    targets: Sequence[tuple[int, UOp]], contents: Mapping[UOp, Array], leaf: Memory, against: str
) -> Reference:
    """Return the reference of `targets`, output numbers with tensor-level values. `contents` has
    the data of BUFFERs that kernels write, `leaf` that of others. Errors: TooManyPositions."""
    nodes = [node for _, node in targets]
    graph = UOp.sink(*nodes).toposort()
    buffers = [n for n in graph if n.op is Ops.BUFFER]
    inputs = [contents[b] if b in contents else leaf(b).reshape(b.shape) for b in buffers]
    sums = [n for n in graph if n.op is Ops.REDUCE_AXIS and n.size]
    steps = max((n.src[0].size // n.size for n in sums), default=1)

    def all_elements(inputs: Sequence[Array], widen: bool) -> list[Array]:
        memory = dict(zip(buffers, inputs, strict=True))
        arrays = interpret_tensors(nodes, memory, widen)
        pairs = zip(arrays, nodes, strict=True)
        return [np.broadcast_to(a, n.shape).reshape(-1) for a, n in pairs]

    if _work(graph) <= MOST_ELEMENTS and largest_size(nodes) <= MOST_ELEMENTS:
        whole: list[tuple[int, Any]] = [(place, slice(None)) for place, _ in targets]
        part = ReferencePart(whole, inputs, all_elements, steps, _work(graph))
        return Reference(lambda: [part], against)
    samples, positions = _samples(nodes)

    def some(inputs: Sequence[Array], widen: bool) -> list[Array]:
        return samples.values(dict(zip(buffers, inputs, strict=True)), widen)

    places = list(zip([place for place, _ in targets], positions, strict=True))
    part = ReferencePart(places, inputs, some, steps, samples.work)
    return Reference(lambda: [part], against)


def _samples(nodes: Sequence[UOp]) -> tuple[SampledElements, list[Array]]:
    """Return elements of values, the first, the last and random ones (fixed seed), as many as are
    not too much work, and their positions.

    Errors: TooManyPositions where a single element is too much work.
    """
    for count in SAMPLES:
        generator = np.random.default_rng(0)
        positions = [
            np.unique([0, n.size - 1, *generator.integers(0, n.size, count)][:count]) for n in nodes
        ]
        try:
            samples = list(zip(nodes, positions, strict=True))
            return SampledElements(samples, MOST_OPERAND_ELEMENTS), positions
        except TooManyPositions:
            if count == SAMPLES[-1]:
                raise
    raise AssertionError


def _work(graph: Mapping[UOp, None]) -> int:
    """Return the number of elements of all values that are computed."""
    return sum(n.size for n in graph if n.op not in MOVEMENT and n.op is not Ops.SINK)
