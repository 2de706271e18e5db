"""The reference interpreter: the value of a graph of the tensor or kernel level, by numpy.

It follows the definition of each level, and uses no code of lowering, so the results of every
device are compared with it. With `widen=True` it computes floats in float64: the oracle of `check`.
Source of the idea: definitional interpreters (Reynolds 1972).

Sections: The steps in which the interpreter computes a kernel, in windows that bound its memory;
The reference interpreter of kernels; The reference interpreter.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.base.errors import VerifyError
from workbench.ir.meaning.closeness import grain_of, is_rounding_otherwise, rounded_sum
from workbench.ir.meaning.evaluate import Array, array_dtype, constant, elementwise, reduce
from workbench.ir.meaning.values import cast_array
from workbench.ir.node.ops import ELEMENTWISE, Ops
from workbench.ir.node.uop import KernelInfo, UOp, closed
from workbench.ir.text.program import to_expr
from workbench.ir.verify.tensor import custom_kernel

# --------------------------------------------------------------------------------------------------
# The steps in which the interpreter computes a kernel, in windows that bound its memory.
#
# A step computes the value of one node. If a value is too large, all are computed in windows of the
# outermost ranges of the result. A product that is summed is never in memory as a whole.

ELEMENTS_AT_ONCE = 1 << 21
"""Most elements of one value; with all values that are live beside it, about 2**24."""
Windows = Mapping[UOp, tuple[int, int]]
"""The part of each range that is computed at a time: (first, end); ranges left out are whole."""


class InterpreterStep(NamedTuple):
    """A node and the nodes whose values it reads. For a sum of a product over ranges that both
    factors have, `product` is the MUL, which is never in memory as a whole; else None."""

    node: UOp
    inputs: tuple[UOp, ...]
    product: UOp | None


def steps_of(store: UOp) -> list[InterpreterStep]:
    """Return the steps of a STORE, each after those whose values it reads."""
    nodes = store.toposort(lambda n: n.op is not Ops.AFTER)
    uses = Counter(s for n in nodes for s in n.src)
    contracted = {n.src[0]: n for n in nodes if _contracts(n, uses)}
    steps = []
    for node in nodes:
        if node in contracted or node.op in (Ops.PARAM, Ops.AFTER):
            continue
        if contracted.get(node.src[0] if node.src else node) is node:
            steps.append(InterpreterStep(node, (*node.src[0].src, *node.src[1:]), node.src[0]))
        else:
            steps.append(InterpreterStep(node, node.src, None))
    return steps


def _contracts(node: UOp, uses: Counter[UOp]) -> bool:
    if node.op is not Ops.REDUCE or node.arg is not Ops.ADD or not node.dtype.is_float:
        return False
    factors = node.src[0]
    if factors.op is not Ops.MUL or uses[factors] > 1 or len(node.src) == 1:
        return False
    return all(f.ranges.issuperset(node.src[1:]) for f in factors.src)


def windows_of(
    end: UOp, steps: list[InterpreterStep], rank: Mapping[UOp, int]
) -> Iterator[Windows]:
    """Yield windows of the ranges of `end`, so small that no value has more than ELEMENTS_AT_ONCE
    elements, as far as the free ranges allow. `rank` orders the ranges."""
    inner = {r for s in steps if s.node.op in (Ops.REDUCE, Ops.STAGE) for r in closed(s.node)}
    free = sorted(set(end.src[1:]) - inner, key=lambda r: rank[r])
    widths: dict[UOp, int] = {}
    while True:
        elements, node = max(
            ((_elements(s.node, widths), s.node) for s in steps), key=lambda pair: pair[0]
        )
        axis = next((r for r in free if r in node.ranges and r not in widths), None)
        if elements <= ELEMENTS_AT_ONCE or axis is None:
            break
        widths[axis] = max(1, axis.extent * ELEMENTS_AT_ONCE // elements)
    parts = [
        [(r, (lo, min(lo + width, r.extent))) for lo in range(0, r.extent, width)]
        for r, width in widths.items()
    ]
    return (dict(part) for part in product(*parts))


def _elements(node: UOp, widths: Mapping[UOp, int]) -> int:
    own = math.prod(node.memory_shape) if node.op is Ops.STAGE else 1
    return own * math.prod([widths.get(r, r.extent) for r in node.ranges])


# --------------------------------------------------------------------------------------------------
# The reference interpreter of kernels: each value is an array with one axis per open range.
#
# A RANGE is 0 .. n-1 along its own axis. REDUCE combines axes; STAGE scatters into an array of its
# shape, which INDEX reads back; STORE scatters into a parameter. Lanes are ranges like any other,
# and the loop order does not matter. The section above says what the steps are.


def interpret_kernel(sink: UOp, arrays: Sequence[Array], widen: bool = False) -> list[Array]:
    """Return the written parameters, by slot, after running a kernel on `arrays`.

    Elements that the kernel does not write keep their input; `arrays` are not changed.
    Errors: VerifyError for an index out of range, for an array that is missing or does not fit, and
    for a kernel in another language.
    """
    if sink.code is not None:
        raise VerifyError(
            f"the reference interpreter cannot run the kernel {sink.arg.name}",
            f"it is written in {sink.code.language}: nothing else says what it computes",
        )
    nodes = sink.toposort()
    ends = [n for n in nodes if n.op is Ops.END]
    inputs = {n.slot: _memory(n, arrays, widen) for n in nodes if n.op is Ops.PARAM}
    outputs = {slot: inputs[slot].copy() for slot in sink.outputs}
    machine = _Machine(_ranks(sink, nodes), inputs, outputs, widen)
    for end in ends:
        steps = steps_of(end.store)
        for windows in windows_of(end, steps, machine.rank):
            machine.run(steps, windows)
    return [outputs[slot].reshape(np.shape(arrays[slot])) for slot in outputs]


def _memory(param: UOp, arrays: Sequence[Array], widen: bool) -> Array:
    slot, size = param.slot, param.length
    if slot >= len(arrays):
        raise VerifyError(f"no array was given for parameter {slot}")
    array = np.asarray(arrays[slot])
    if array.size != size or array.dtype != param.dtype.numpy:
        raise VerifyError(
            f"an array of {array.size} {array.dtype} was given for parameter {slot}",
            f"it holds {size} {param.dtype}",
        )
    return array.reshape(-1).astype(array_dtype(param.dtype, widen), copy=False)


def _ranks(sink: UOp, nodes: Iterable[UOp]) -> dict[UOp, int]:
    """Return the position of each range among the axes of arrays: loops in order, then lanes."""
    order = sink.arg.order if isinstance(sink.arg, KernelInfo) else ()
    place = {name: i for i, name in enumerate(order)}
    ranges = [n for n in nodes if n.op is Ops.RANGE]
    ranges.sort(key=lambda r: place.get(r.axis_name, len(place)))
    return {r: i for i, r in enumerate(ranges)}


class _Value(NamedTuple):
    """An array with one axis for each range of `axes`, of that range's size, or of size 1 where the
    value does not vary. A STAGE's own dimensions follow. Where an index may be INVALID, `valid` is
    True for the valid elements."""

    array: Array
    axes: tuple[UOp, ...]
    valid: Array | None = None

    def along(self, axes: Sequence[UOp]) -> Array:
        """Return the array with axes of size 1 added, to broadcast along `axes`."""
        return _along(self.array, self.axes, axes)

    def valid_along(self, axes: Sequence[UOp]) -> Array | None:
        return None if self.valid is None else _along(self.valid, self.axes, axes)


def _along(array: Array, axes: tuple[UOp, ...], target_axes: Sequence[UOp]) -> Array:
    sizes = dict(zip(axes, array.shape, strict=True))
    return array.reshape([sizes.get(r, 1) for r in target_axes])


class _Machine:
    """Runs the STOREs of one kernel, which write to `outputs`."""

    def __init__(
        self,
        rank: Mapping[UOp, int],
        inputs: Mapping[int, Array],
        outputs: Mapping[int, Array],
        widen: bool,
    ):
        self.rank, self.inputs, self.outputs, self.widen = rank, inputs, outputs, widen
        self.values: dict[UOp, _Value] = {}
        self.windows: Windows = {}

    def run(self, steps: list[InterpreterStep], windows: Windows) -> None:
        """Run the steps of one STORE for the parts of ranges in `windows`."""
        self.values, self.windows = {}, windows
        uses = Counter(s for step in steps for s in step.inputs)
        for step in steps:
            if step.node.op is Ops.STORE:
                self._store(step.node)
            else:
                self.values[step.node] = self._value(step)
            for source in step.inputs:
                uses[source] -= 1
                if not uses[source]:
                    self.values.pop(source, None)

    def _value(self, step: InterpreterStep) -> _Value:
        node = step.node
        if node.op is Ops.CONST:
            return _Value(constant(node, self.widen), ())
        if node.op is Ops.RANGE:
            return _Value(np.arange(*self.windows.get(node, (0, node.extent))), (node,))
        if node.op is Ops.INVALID:
            return _Value(np.array(0), (), np.array(False))
        if node.op is Ops.INDEX:
            return self._index(node)
        if node.op is Ops.LOAD:
            return self._load(node)
        if node.op is Ops.STAGE:
            return self._stage(node)
        if node.op is Ops.REDUCE:
            return self._reduce(node) if step.product is None else self._contract(step)
        sources = [self.values[s] for s in node.src]
        axes = self._union(*[s.axes for s in sources])
        if node.op is Ops.WHERE and sources[2].valid is not None:
            return self._gate(sources, axes)
        if node.op not in ELEMENTWISE:
            raise VerifyError(f"{node.op.name} is not an op of kernel-level values")
        return _Value(elementwise(node, [s.along(axes) for s in sources], self.widen), axes)

    def _union(self, *axes: Iterable[UOp]) -> tuple[UOp, ...]:
        return tuple(sorted(set().union(*axes), key=lambda r: self.rank[r]))

    def _size(self, axis: UOp) -> int:
        low, high = self.windows.get(axis, (0, axis.extent))
        return high - low

    def _full(self, value: _Value, axes: Sequence[UOp], full: Iterable[UOp]) -> Array:
        """Return the array along `axes`, broadcast to the whole size of those in `full`."""
        array, whole = value.along(axes), set(full)
        sizes = zip(axes, array.shape, strict=True)
        return np.broadcast_to(array, [self._size(r) if r in whole else n for r, n in sizes])

    def _gate(self, sources: list[_Value], axes: tuple[UOp, ...]) -> _Value:
        condition, index, _ = sources
        valid, inner = condition.along(axes), index.valid_along(axes)
        if inner is not None:
            valid = valid & inner
        array, valid = np.broadcast_arrays(index.along(axes), valid)
        return _Value(array, axes, valid)

    # memory

    def _index(self, node: UOp) -> _Value:
        """Return a position in a parameter, or the elements of a STAGE."""
        target = node.param
        indexes = [self.values[i] for i in node.indexes]
        axes = self._union(*[i.axes for i in indexes])
        flat = self._position(node, node.indexes, target.memory_shape, axes)
        if target.op is not Ops.STAGE:
            return flat
        stage = self.values[target]
        axes = self._union(stage.axes, axes)
        rows = [
            np.arange(n).reshape([n if r is axis else 1 for r in axes])
            for axis, n in zip(stage.axes, stage.array.shape[: len(stage.axes)], strict=True)
        ]
        cells = stage.array.reshape(
            *stage.array.shape[: len(stage.axes)], math.prod(target.memory_shape)
        )
        read = _read(cells, (*rows, flat.along(axes)), flat.valid_along(axes))
        return _Value(read, axes)

    def _position(
        self, node: UOp, indexes: Sequence[UOp], shape: Sequence[int], axes: Sequence[UOp]
    ) -> _Value:
        """Return the row-major position in `shape`, 0 where invalid. Errors: VerifyError for a
        valid index that is out of range."""
        flat: Array = np.zeros([1] * len(axes), np.int64)
        valid: Array | None = None
        for index, size in zip(indexes, shape, strict=True):
            value = self.values[index]
            array, own = value.along(axes), value.valid_along(axes)
            if own is not None:
                array = np.where(own, array, 0)
                valid = own if valid is None else valid & own
                inside = ~own | ((array >= 0) & (array < size))
            else:
                inside = (array >= 0) & (array < size)
            if not inside.all():
                bad = np.broadcast_to(array, inside.shape)[~inside].flat[0]
                raise VerifyError(
                    f"the index {to_expr(index)} is {bad}",
                    f"{to_expr(node)} has positions 0 to {size - 1} there",
                )
            flat = flat * size + array
        if valid is not None:
            flat = np.where(valid, flat, 0)
            valid = np.broadcast_to(valid, flat.shape)
        return _Value(flat, tuple(axes), valid)

    def _load(self, node: UOp) -> _Value:
        place, param = self.values[node.place], node.place.param
        if param.op is Ops.STAGE:
            return place
        is_after = node.place.memory.op is Ops.AFTER
        written = is_after and param.slot in self.outputs
        memory = (self.outputs if written else self.inputs)[param.slot]
        return _Value(_read(memory, (place.array,), place.valid), place.axes)

    def _store(self, node: UOp) -> None:
        place, value = self.values[node.place], self.values[node.value]
        axes = self._union(place.axes, value.axes)
        memory = self.outputs[node.place.param.slot]
        where, what = np.broadcast_arrays(place.along(axes), value.along(axes))
        valid = place.valid_along(axes)
        if valid is None:
            memory[where] = what
        else:
            valid = np.broadcast_to(valid, where.shape)
            memory[where[valid]] = what[valid]

    # ops that close ranges

    def _reduce(self, node: UOp) -> _Value:
        value, closes = self.values[node.src[0]], node.src[1:]
        axes = self._union(value.axes, closes)
        array = self._full(value, axes, closes)
        places = tuple(i for i, r in enumerate(axes) if r in closes)
        result = reduce(node.arg, array, places, node.dtype, keepdims=False)
        return _Value(result, tuple(r for r in axes if r not in closes))

    def _contract(self, step: InterpreterStep) -> _Value:
        """Sum a product over ranges of both factors by `einsum`, without the product in memory."""
        factors, closes = [self.values[s] for s in step.inputs[:2]], step.node.src[1:]
        axes = self._union(*[f.axes for f in factors])
        number = {r: i for i, r in enumerate(axes)}
        operands: list[object] = []
        for factor in factors:
            operands += [self._full(factor, factor.axes, factor.axes)]
            operands += [[number[r] for r in factor.axes]]
        output_axes = tuple(r for r in axes if r not in closes)
        output = [number[r] for r in output_axes]
        with np.errstate(all="ignore"):
            total = np.asarray(np.einsum(*operands, output, optimize=True))  # type: ignore[call-overload]
        if is_rounding_otherwise() and step.node.dtype.is_float:
            arrays = operands[::2]

            def combine(of: Callable[[Array], Array]) -> Array:
                operands[::2] = [of(np.asarray(a, np.float64)) for a in arrays]
                return np.asarray(np.einsum(*operands, output, optimize=True))  # type: ignore[call-overload]

            count = math.prod(self._size(r) for r in closes)
            grain = np.asarray(math.prod(grain_of(np.asarray(a)) for a in arrays))
            total = rounded_sum(total, combine, count, grain, step.node.dtype)
        return _Value(total, output_axes)

    def _stage(self, node: UOp) -> _Value:
        value, shape = self.values[node.src[0]], node.memory_shape
        own = self._union(closed(node))
        free = tuple(r for r in value.axes if r not in own)
        place = self._position(node, node.src[1:], shape, own)
        axes = self._union(value.axes, own)
        array = self._full(value, axes, own).transpose([axes.index(r) for r in (*free, *own)])
        rows = array.shape[: len(free)]
        cells = np.zeros((*rows, math.prod(shape)), array.dtype)
        where = self._full(_Value(place.array, own), own, own).reshape(-1)
        what = array.reshape(*rows, where.size)
        if place.valid is not None:
            valid = self._full(_Value(place.valid, own), own, own).reshape(-1)
            where, what = where[valid], what[..., valid]
        cells[..., where] = what
        return _Value(cells.reshape(*rows, *shape), free)


def _read(memory: Array, where: tuple[Array, ...], valid: Array | None) -> Array:
    """Return the elements at `where`; elements that are not `valid` are 0, and not accessed."""
    if valid is None:
        return np.asarray(memory[where])
    shape = np.broadcast_shapes(valid.shape, *[w.shape for w in where])
    result = np.zeros(shape, memory.dtype)
    valid = np.broadcast_to(valid, shape)
    result[valid] = memory[tuple([np.broadcast_to(w, shape)[valid] for w in where])]
    return result


# --------------------------------------------------------------------------------------------------
# The reference interpreter.

__all__ = ["interpret_kernel", "interpret_tensor", "interpret_tensors"]


def interpret_tensor(root: UOp, buffers: Mapping[UOp, Array], widen: bool = False) -> Array:
    """Return the value of a tensor-level graph; `buffers` has the content of each BUFFER."""
    return interpret_tensors([root], buffers, widen)[0]


def interpret_tensors(
    roots: Sequence[UOp], buffers: Mapping[UOp, Array], widen: bool = False
) -> list[Array]:
    """Return the values of several roots; shared nodes are computed once. Errors: VerifyError for
    an op of another level, and for a BUFFER whose array is missing or does not fit."""
    values: dict[UOp, Array] = {}
    for root in roots:
        for node in root.toposort(lambda n: n not in values):
            if node not in values:
                values[node] = _tensor_value(node, values, buffers, widen)
    return [np.array(values[root]) for root in roots]


def _tensor_value(
    node: UOp, values: Mapping[UOp, Array], buffers: Mapping[UOp, Array], widen: bool
) -> Array:
    if node.op is Ops.CONST:
        return constant(node, widen)
    if node.op is Ops.BUFFER:
        return _buffer_value(node, buffers, widen)
    if node.op is Ops.IOTA:
        numbers = cast_array(np.arange(node.arg), dtypes.int64, node.dtype)
        return np.asarray(numbers, array_dtype(node.dtype, widen))
    sources = [values[s] for s in node.src]
    if node.op in ELEMENTWISE:
        return elementwise(node, sources, widen)
    if node.op is Ops.CUSTOM:
        return custom_value(node, sources, widen)
    move = _MOVES.get(node.op)
    if move is None:
        raise VerifyError(f"{node.op.name} is not an op of tensor-level values")
    return move(node, sources[0])


def _buffer_value(node: UOp, buffers: Mapping[UOp, Array], widen: bool) -> Array:
    array = buffers.get(node)
    if array is None:
        raise VerifyError(f"no array was given for {node!r}")
    if array.dtype != node.dtype.numpy or array.shape != node.shape:
        raise VerifyError(
            f"an array {array.dtype}{list(array.shape)} was given for {node!r}",
            f"it holds {node.dtype}{list(node.shape)}",
        )
    return array.astype(array_dtype(node.dtype, widen), copy=False)


def custom_value(node: UOp, sources: Sequence[Array], widen: bool) -> Array:
    """Return the value of a CUSTOM node: the output of a user's kernel on the operands."""
    kernel = custom_kernel(node.kernel_text)
    params = {n.slot: n for n in kernel.toposort() if n.op is Ops.PARAM}
    arrays = [np.zeros(params[slot].length, params[slot].dtype.numpy) for slot in kernel.outputs]
    operands = zip(sources, node.src, strict=True)
    arrays += [a.astype(s.dtype.numpy).reshape(-1) for a, s in operands]
    result = interpret_kernel(kernel, arrays, widen)[node.output]
    return result.reshape(node.shape)


def _pad(node: UOp, value: Array) -> Array:
    result = np.zeros(node.shape, value.dtype)
    result[tuple(slice(b, b + n) for n, (b, _) in zip(value.shape, node.arg, strict=True))] = value
    return result


_MOVES: dict[Ops, Callable[[UOp, Array], Array]] = {
    Ops.RESHAPE: lambda node, value: value.reshape(node.arg),
    Ops.PERMUTE: lambda node, value: value.transpose(node.arg),
    Ops.EXPAND: lambda node, value: np.broadcast_to(value, node.arg),
    Ops.SHRINK: lambda node, value: value[tuple(slice(lo, hi) for lo, hi in node.arg)],
    Ops.PAD: _pad,
    Ops.FLIP: lambda node, value: np.flip(value, node.arg),
    Ops.REDUCE_AXIS: lambda node, value: reduce(
        node.combines, value, node.reduced_axes, node.dtype, keepdims=True
    ),
    Ops.CONTIGUOUS: lambda node, value: value,
    Ops.COPY: lambda node, value: value,
    Ops.DETACH: lambda node, value: value,
}
