"""The first wrong rewrite of an exploration: of the scheduler's passes, then of one kernel's.

The reference is the user's expression, computed by the reference interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError
from workbench.base.trace import PassRecord, unobserved
from workbench.check.bisect import FirstWrongRewrite, first_wrong
from workbench.check.node_values import MOST_ELEMENTS, memory_below
from workbench.check.oracle import KernelOracle, StateReference, check_size
from workbench.check.reference import reduce_steps
from workbench.ir.meaning.interpret import interpret_tensors
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.item import ScheduleItem
from workbench.kernel.kernel import Kernel
from workbench.viz.model.provenance import scheduled

Array = np.ndarray[Any, Any]


def bisected(
    records: Sequence[PassRecord], items: Sequence[ScheduleItem], kernel: Kernel, at: int
) -> FirstWrongRewrite | None:
    """Return the first opt or rewrite after which the value that kernel number `at` computes is
    wrong, or None. `records` and `items` are the scheduler's; `kernel` may have opts.

    Errors: WorkbenchError where tensors or kernel are too large to be computed repeatedly.
    """
    item = [i for i in items if i.kernel is not None][at]
    check_size(kernel.original)
    steps = list(scheduled(records))[at].records
    graphs = [r for r in steps if r.parent is None and _is_of_tensors(r.after)]
    with unobserved():
        wrong_rewrite = first_wrong(graphs, _TensorOracle(graphs[0].before))
        if wrong_rewrite is not None:
            return wrong_rewrite
        draft_item = next(i for r in steps for i in _items(r.after) if i.nodes == item.nodes)
        memory, cuts = _memory(items, item)
    oracle = _oracle(draft_item, memory, cuts, kernel)
    if oracle(draft_item.kernel):
        rangeify = next(r for r in steps if draft_item in _items(r.after))
        problem = str(oracle(draft_item.kernel))
        return FirstWrongRewrite(
            rangeify.name,
            0,
            0,
            None,
            draft_item.nodes[0],
            draft_item.kernel,
            problem,
            ("pass decide",),
        )
    final = _oracle(item, memory, cuts, kernel)
    simplified, *merged = [r for r in steps if _is_kernel(r.before)]
    for passes, checked in (
        ([simplified], oracle),
        (merged, final),
        (kernel.observed(kernel.device), final),
    ):
        wrong_rewrite = first_wrong(passes, checked)
        if wrong_rewrite is not None:
            return wrong_rewrite
    return None


def _items(state: Any) -> tuple[ScheduleItem, ...]:
    is_schedule = isinstance(state, tuple) and state
    return state if is_schedule and isinstance(state[0], ScheduleItem) else ()


def _is_of_tensors(state: Any) -> bool:
    return isinstance(state, UOp) and state.op is Ops.SINK and state.arg is None


def _is_kernel(state: Any) -> bool:
    return isinstance(state, UOp) and state.op is Ops.SINK and state.arg is not None


def _memory(
    items: Sequence[ScheduleItem], last: ScheduleItem
) -> tuple[dict[UOp, Array], list[UOp]]:
    """Return the contents of the BUFFERs when `last` runs, by interpreting the items before it, and
    what it computes of them."""
    memory: dict[UOp, Array] = {}
    stored: dict[UOp, UOp] = {}
    for item in items:
        cuts = [node.substitute(stored) for node in item.nodes]
        below = UOp.sink(*cuts).toposort()
        memory |= memory_below({n: None for n in below if n not in memory})
        if item is last:
            return memory, cuts
        values = interpret_tensors(cuts, memory)
        for node, buffer, value in zip(item.nodes, item.outputs, values, strict=True):
            memory[buffer] = value.reshape(node.shape)
        stored |= zip(item.nodes, item.outputs, strict=True)
    raise AssertionError


def _oracle(
    item: ScheduleItem, memory: dict[UOp, Array], cuts: Sequence[UOp], kernel: Kernel
) -> KernelOracle:
    """Return what checks the states of an item's kernel, whose outputs are to be `cuts`."""
    assert item.kernel is not None

    def compute(widen: bool) -> list[Array]:
        return [a.reshape(-1) for a in interpret_tensors(cuts, memory, widen)]

    reference = StateReference(item.slots, compute, reduce_steps(item.kernel))
    sizes = dict(zip(item.slots, item.nodes, strict=True))
    inputs = [
        np.zeros(sizes[slot].size, sizes[slot].dtype.numpy)
        if slot in sizes
        else memory[buffer].reshape(-1)
        for slot, buffer in enumerate(item.buffers)
    ]
    return KernelOracle(reference, inputs, Device[kernel.device].target)


class _TensorOracle:
    """Checks the states of a graph of tensors: the values of all its outputs."""

    def __init__(self, graph: UOp):
        nodes = graph.toposort()
        elements = sum(n.size for n in nodes if n.op is not Ops.SINK)
        if elements > MOST_ELEMENTS:
            because = f"its tensors have {elements:,} elements"
            hint = "the same on smaller shapes"
            raise WorkbenchError("this expression is too large to bisect", because, hint)
        self.memory = memory_below(nodes)
        sums = [n for n in nodes if n.op is Ops.REDUCE_AXIS and n.size]
        steps = max((n.src[0].size // n.size for n in sums), default=1)
        self.shapes = [n.shape for n in graph.src]
        self.reference = StateReference(
            range(len(graph.src)),
            lambda widen: self._full(interpret_tensors(graph.src, self.memory, widen)),
            steps,
        )

    def __call__(self, state: Any) -> str | None:
        if not _is_of_tensors(state):
            return None
        try:
            nodes = state.toposort()
            memory = self.memory | memory_below({n: None for n in nodes if n not in self.memory})
            actual_arrays = interpret_tensors(state.src, memory)
            return self.reference.problem(dict(enumerate(self._full(actual_arrays))))
        except Exception as error:  # any error: the state before had none
            return f"it fails: {error}"

    def _full(self, arrays: Sequence[Array]) -> list[Array]:
        pairs = zip(arrays, self.shapes, strict=True)
        return [np.broadcast_to(a, shape) for a, shape in pairs]
