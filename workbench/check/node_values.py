"""The values of one node on a kernel's data, computed by the reference interpreter.

A node of a kernel has a value for each position of its open axes, of which `at` fixes some; of too
many values, a part is computed. A node of the tensor level has a value for each element.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.base.errors import WorkbenchError, cut
from workbench.base.terminal import Printed
from workbench.check.answer import lane_steps
from workbench.check.value_summary import Summary, summary_of
from workbench.execution.buffers import memory_of
from workbench.ir.meaning.interpret import interpret_kernel, interpret_tensor
from workbench.ir.node import construct
from workbench.ir.node.exact_range import row_major
from workbench.ir.node.ops import OPS, Ops
from workbench.ir.node.uop import KernelInfo, UOp, invalid, split_gate
from workbench.ir.text.program import to_expr

Array = np.ndarray[Any, Any]
MOST_STEPS = 1 << 22
"""Lane-steps beyond which axes are fixed; 16 times as many for one node are refused."""
WITHOUT_VALUES = frozenset({Ops.PARAM, Ops.BLOCK, Ops.AFTER})
"""Ops without a value at a position."""
LEVELS_WITH_VALUES = frozenset("tk")
"""The levels of which the reference interpreter computes nodes: tensors and kernels."""
MOST_ELEMENTS = 1 << 25
"""Most elements of all tensors below a node of the tensor level together."""
NOTHING_STORED: Mapping[UOp, UOp] = MappingProxyType({})
LEAST_OF_HISTOGRAM = 16
"""Least number of values that are printed with their histogram."""


@dataclass(frozen=True, slots=True, repr=False)
class NodeValues(Printed):
    """The values of a node: `array` has an axis for each of `axes`. `at` has the positions of the
    fixed axes; `chosen` names those that no caller fixed: all values would be too many. `sizes` has
    the sizes of all axes. An index whose gate is closed is -1."""

    text: str
    dtype: str
    sizes: Mapping[str, int]
    axes: tuple[str, ...]
    at: Mapping[str, int]
    chosen: tuple[str, ...]
    array: Array

    def part(self, at: Mapping[str, int]) -> NodeValues:
        """Return the values at positions of its axes. Errors: WorkbenchError for another axis, and
        for a position out of range."""
        _check_positions(at, dict(zip(self.axes, self.array.shape, strict=True)))
        array = self.array[tuple(at.get(name, slice(None)) for name in self.axes)]
        axes = tuple(name for name in self.axes if name not in at)
        return replace(self, axes=axes, at={**self.at, **at}, array=np.array(array))

    @property
    def summary(self) -> Summary:
        """Counts of NaN, infinities and zeros; extremes, mean and histogram of finite values."""
        return summary_of(self.array)

    @property
    def nans(self) -> int:
        """The number of values that are NaN."""
        return self.summary.nans

    @property
    def infinite(self) -> int:
        """The number of values that are infinite."""
        return self.summary.infinite

    @property
    def min(self) -> float | None:
        """The least value that is not NaN; None where there is none."""
        return self._extreme(np.min)

    @property
    def max(self) -> float | None:
        """The greatest value that is not NaN; None where there is none."""
        return self._extreme(np.max)

    @property
    def mean(self) -> float | None:
        """The mean of the finite values; None where there is none."""
        return self.summary.mean

    def _extreme(self, pick: Any) -> float | None:
        numbers = self.array.reshape(-1)
        if dtypes.from_numpy(numbers.dtype).is_float:
            numbers = numbers.astype(np.float64)
            numbers = numbers[~np.isnan(numbers)]
        extreme: float | None = pick(numbers).item() if numbers.size else None
        return extreme

    @property
    def heading(self) -> str:
        """The node, its dtype, and the axes and positions of its values."""
        sizes = ", ".join(f"{n} in {s}" for n, s in zip(self.axes, self.array.shape, strict=True))
        places = ", ".join(f"{n}={p}" for n, p in self.at.items())
        where = " over ".join(w for w in (f"at {places}" if places else "", sizes) if w)
        if self.chosen:
            where += f" (all of {', '.join(self.chosen)} would be too many values)"
        return f"{self.text}  ({self.dtype}) {where}".rstrip()

    def __str__(self) -> str:
        summary = self.summary
        line = f"min {self.min}, max {self.max}"
        if summary.mean is not None and summary.size > 1:
            line += f", mean {summary.mean:.4g}"
        if dtypes.from_numpy(self.array.dtype).is_float:
            line += f", {summary.nans} of {summary.size:,} NaN"
        line += f", {summary.infinite} infinite" if summary.infinite else ""
        line += f", {summary.zeros:,} zeros" if summary.zeros else ""
        parts = [self.heading, line]
        if summary.histogram is not None and summary.size >= LEAST_OF_HISTOGRAM:
            parts.append(str(summary.histogram))
        array_text = np.array2string(self.array, precision=4, threshold=64, edgeitems=3)
        return "\n".join([*parts, array_text])


def values_in_kernel(
    node: UOp, at: Mapping[str, int], inputs: Sequence[Array], order: Sequence[str]
) -> NodeValues:
    """Return the values of a node of the kernel level. `inputs` are the kernel's arrays by slot,
    `at` positions by axis name, `order` the names of its loops, outermost first.

    Errors: WorkbenchError for a node without a value or of a lowered program, an axis that is not
    open at it, a position out of range, and too much work.
    """
    _check_node(node, "kernel.values")
    value = _value_of(node)
    nodes = value.toposort()
    # a function stands in a kernel until expand-functions
    own = (n for n in nodes if not ("k" in OPS[n.op].levels or OPS[n.op].is_function))
    other = next((n.op.name for n in own), None)
    if other is not None:
        because = f"{other} is an op of the lowered program, where values are in registers"
        hint = "the same value in a pass before statement-tree, or in kernel.ast"
        raise WorkbenchError(f"cannot interpret {node.op.name}", because, hint)
    place = {name: i for i, name in enumerate(order)}
    ranges = [n for n in nodes if n.op is Ops.RANGE]
    ranges.sort(key=lambda r: (place.get(r.axis_name, len(place)), r.axis_name))
    axes = [r for r in ranges if r in value.ranges]
    sizes = {r.axis_name: r.extent for r in axes}
    _check_positions(at, sizes)
    closed = {r for n in nodes if n.op is Ops.REDUCE for r in n.src[1:]}
    fixed = dict(at)
    kernel = _storing(value, axes, fixed, closed, len(inputs), ranges)
    for axis in axes:
        if lane_steps(kernel) <= MOST_STEPS:
            break
        if axis.axis_name not in fixed and axis not in closed:
            fixed[axis.axis_name] = 0
            kernel = _storing(value, axes, fixed, closed, len(inputs), ranges)
    if lane_steps(kernel) > 16 * MOST_STEPS:
        because = f"it takes {lane_steps(kernel):,} steps to interpret"
        raise WorkbenchError("too much work for one value", because, "a smaller shape")
    target = kernel.stores[0].place.param
    blank = np.zeros(target.length, target.dtype.numpy)
    result = interpret_kernel(kernel, [*inputs, blank])[-1]
    loops = [r for r in axes if r.axis_name not in fixed or r in closed]
    array = result.reshape([r.extent for r in loops])
    array = array[tuple(fixed.get(r.axis_name, slice(None)) for r in loops)]
    names = tuple(r.axis_name for r in axes if r.axis_name not in fixed)
    chosen = tuple(name for name in fixed if name not in at)
    return NodeValues(_text(node), str(value.dtype), sizes, names, fixed, chosen, array)


def values_of_tensor(
    node: UOp, at: Mapping[str, int], stored: Mapping[UOp, UOp] = NOTHING_STORED
) -> NodeValues:
    """Return the values of a node of the tensor level; its axes are named "0", "1", .. `stored` has
    the value of BUFFERs that only a run of the schedule writes.

    Errors: WorkbenchError as `values_in_kernel`, and where the tensors below it are too large.
    """
    _check_node(node, "ex.values")
    nodes = node.toposort()
    other = next((n.op.name for n in nodes if "t" not in OPS[n.op].levels), None)
    if other is not None:
        because = f"{other} is an op of kernels, and these are values of tensors"
        hint = "ex.kernels[0].values(node)"
        raise WorkbenchError(f"cannot interpret {node.op.name}", because, hint)
    sizes = {str(i): n for i, n in enumerate(node.shape)}
    _check_positions(at, sizes)
    fixed = {str(name): position for name, position in at.items()}
    written = {b: n for b, n in stored.items() if b in nodes}
    computed = node.substitute(
        {b: UOp(Ops.RESHAPE, n.dtype, (n,), b.shape) for b, n in written.items()}
    )
    nodes = computed.toposort()
    elements = sum(n.size for n in nodes)
    if elements > MOST_ELEMENTS:
        because = f"it and what it is computed from have {elements:,} elements"
        raise WorkbenchError("too much work for these values", because, "smaller shapes")
    array = interpret_tensor(computed, memory_below(nodes))
    array = np.broadcast_to(array, node.shape)
    array = array[tuple(fixed.get(name, slice(None)) for name in sizes)]
    names = tuple(name for name in sizes if name not in fixed)
    return NodeValues(_text(node), str(node.dtype), sizes, names, fixed, (), np.array(array))


def memory_below(nodes: Mapping[UOp, None]) -> dict[UOp, Array]:
    """Return the contents of the BUFFERs among `nodes`, in their shapes."""
    buffers = [n for n in nodes if n.op is Ops.BUFFER]
    return {n: memory_of(n).as_array().reshape(n.shape) for n in buffers}


def _check_node(node: object, call: str) -> None:
    if not isinstance(node, UOp):
        because = f"{type(node).__name__} is not a node of a graph"
        hint = f"{call}(node), with a node of a pass: its .before or .after"
        raise WorkbenchError("this has no values to look at", because, hint)


def _check_positions(at: object, sizes: Mapping[str, int]) -> None:
    hint = f"at={{{next(iter(sizes), '0')!r}: 0}}"
    if not isinstance(at, Mapping):
        because = f"{type(at).__name__} is not a dict from axes to positions"
        raise WorkbenchError("cannot read these positions", because, hint)
    listed = ", ".join(f"{n} in {s}" for n, s in sizes.items()) or "none"
    for axis, position in at.items():
        name = str(axis)
        if name not in sizes:
            what = f"{axis!r:.40} is not an axis of these values"
            raise WorkbenchError(what, f"the axes are {listed}", hint if sizes else "")
        if type(position) is not int or not 0 <= position < sizes[name]:
            what = f"there is no position {position!r:.40} along {name}"
            because = f"it goes from 0 to {sizes[name] - 1}"
            raise WorkbenchError(what, because, hint)


def value_source(node: UOp) -> UOp | None:
    """Return the node whose values are those of `node`: what an END, a STORE or a STAGE stores, the
    position of an INDEX into flat memory, else the node itself; None for a node without values."""
    if node.op is Ops.END:
        node = node.src[0]
    if node.op in (Ops.STAGE, Ops.STORE):
        node = node.src[0 if node.op is Ops.STAGE else 1]
    elif node.op is Ops.INDEX and node.src[0].op is not Ops.STAGE and len(node.src) == 2:
        node = node.src[1]
    is_none = node.dtype is dtypes.void or node.op in WITHOUT_VALUES
    return None if is_none else node


def is_lowered(op: Ops) -> bool:
    """Whether an op stands only in lowered programs, where values are in registers."""
    return LEVELS_WITH_VALUES.isdisjoint(OPS[op].levels)


def _value_of(node: UOp) -> UOp:
    """Return the value of a node to compute: an index as int64, -1 where its gate is closed."""
    source = value_source(node)
    if source is None:
        because = f"{node.op.name} is not computed from anything at a position"
        hint = "an elementwise op, a LOAD or a REDUCE"
        raise WorkbenchError(f"{node.op.name} has no values", because, hint)
    node = source
    if node.dtype is dtypes.index:
        index, gate = split_gate(node)
        if gate is not None:
            node = gate.where(index, index.like(-1))
        elif node is invalid():
            node = UOp.index(-1)
        return node.cast(dtypes.int64)
    return node


def _storing(
    value: UOp,
    axes: Sequence[UOp],
    fixed: Mapping[str, int],
    closed: set[UOp],
    slot: int,
    ranges: Sequence[UOp],
) -> UOp:
    """Return the kernel that stores `value` at every position of its axes in argument `slot`.
    A fixed axis is substituted, unless a reduction below runs over it, too (`closed`)."""
    changes = {
        r: UOp.index(fixed[r.axis_name]) for r in axes if r.axis_name in fixed and r not in closed
    }
    loops = [r for r in axes if r not in changes]
    shape = [r.extent for r in loops]
    target = construct.param(value.dtype, slot, math.prod(shape))
    place = construct.index(target, row_major(loops, shape))
    store = construct.store(place, value.substitute(changes))
    order = tuple(r.axis_name for r in ranges if r not in changes and not r.axis_kind.is_lane)
    return UOp.sink(construct.end(store, loops), arg=KernelInfo("values", order))


def _text(node: UOp) -> str:
    return cut(to_expr(node).rpartition("\n")[2], 80)
