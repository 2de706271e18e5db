"""The reference of an answer: right values of some elements, or all, of a kernel's outputs.

A kernel that comes without an expression is compared with itself before its opts: up to 2**24
lane-steps the whole kernel is interpreted, in float64; of a larger one output positions are sampled
with a fixed seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from workbench.check.nearness import References, rounded_otherwise
from workbench.execution.buffers import Array
from workbench.ir.meaning.interpret_kernel import interpret_kernel
from workbench.ir.nest.loops import statements
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

FULL_STEPS = 1 << 24
SAMPLES = 32
CLOSE_WORK = 1 << 18
"""Elements of all values that are computed with several roundings for each check."""
BEFORE_OPTS = "the kernel before its opts, which came without its expression"


@dataclass(frozen=True, slots=True)
class ReferencePart:
    """Elements that are compared together. `places` has, of each array that `compute` returns, the
    output and the elements of it. `compute(inputs, widen)` computes them, in float64 or in the
    dtypes of the expression; `steps` is the length of the longest reduction, `work` the number of
    elements of all values on the way."""

    places: Sequence[tuple[int, Any]]
    inputs: Sequence[Array]
    compute: Callable[[Sequence[Array], bool], list[Array]]
    steps: int
    work: int
    right: dict[bool, list[Array]] = field(default_factory=dict, compare=False)
    runs: list[list[Array]] = field(default_factory=list, compare=False)

    def values(self, widen: bool) -> list[Array]:
        """Return the right values for `inputs`, computed once: many answers may be compared."""
        if widen not in self.right:
            self.right[widen] = self.compute(self.inputs, widen)
        return self.right[widen]

    @property
    def is_close(self) -> bool:
        """Whether an element is compared by what it may lose, not by the greatest one."""
        return self.work <= CLOSE_WORK

    def others(self) -> list[list[Array]]:
        """Return the values with other roundings, in the dtypes of the expression."""
        if not self.runs:
            self.runs.extend(rounded_otherwise(lambda: self.compute(self.inputs, False)))
        return self.runs


@dataclass(frozen=True, slots=True)
class Reference:
    """The right values of outputs, in parts; `against` names what they are of."""

    parts: Callable[[], Iterable[ReferencePart]]
    against: str

    def outputs(self, sizes: Sequence[int]) -> list[References] | None:
        """Return the right values of outputs of `sizes`, flat, without other roundings; None where
        only some elements of one are compared."""
        right: dict[int, References] = {}
        for part in self.parts():
            wide, narrow = part.values(True), part.values(False)
            for number, (output, _) in enumerate(part.places):
                if wide[number].size != sizes[output]:
                    return None
                arrays = wide[number].reshape(-1), narrow[number].reshape(-1)
                right.setdefault(output, References(*arrays, (), part.steps))
        if len(right) < len(sizes):
            return None
        return [right[output] for output in range(len(sizes))]


def kernel_reference(
    kernel: UOp, slots: Sequence[int], inputs: Sequence[Array], against: str = ""
) -> Reference:
    """Return an un-optimised kernel as the reference of itself with opts; `inputs` holds an array
    per slot."""
    empty = blank(inputs, slots)

    @cache
    def parts() -> list[ReferencePart]:
        return list(each_part())

    def each_part() -> Iterator[ReferencePart]:
        for part in _sampled(kernel):
            masks = [np.asarray(m, bool) for m in interpret_kernel(_marked(part), empty)]

            def compute(
                inputs: Sequence[Array],
                widen: bool,
                part: UOp = part,
                masks: Sequence[Array] = masks,
            ) -> list[Array]:
                arrays = interpret_kernel(part, inputs, widen=widen)
                return [a[mask] for a, mask in zip(arrays, masks, strict=True)]

            places = list(enumerate(masks))
            yield ReferencePart(places, empty, compute, reduce_steps(part), lane_steps(part))

    return Reference(parts, against or BEFORE_OPTS)


def blank(inputs: Sequence[Array], slots: Sequence[int]) -> list[Array]:
    """Return the arrays of a kernel with zeros for its outputs: a run must not read the results of
    the run before."""
    return [np.zeros_like(a) if i in slots else a for i, a in enumerate(inputs)]


def reduce_steps(kernel: UOp) -> int:
    """Return the number of values that the longest reduction of a kernel combines."""
    steps = [
        math.prod(r.extent for r in n.src[1:]) for n in kernel.toposort() if n.op is Ops.REDUCE
    ]
    return max(steps, default=1)


def lane_steps(kernel: UOp) -> int:
    """Return the number of lane-steps of all statements of a kernel together."""
    kernel_statements = statements(kernel).values()
    return sum(
        math.prod(r.extent for r in (*s.nest, *s.lanes, *s.reduction_lanes))
        for s in kernel_statements
    )


def _sampled(kernel: UOp) -> Iterator[UOp]:
    """Yield the whole kernel, or, where it is too large, kernels with output axes fixed at sampled
    positions."""
    if lane_steps(kernel) <= FULL_STEPS:
        yield kernel
        return
    axes = list(dict.fromkeys(r for end in kernel.src for r in end.src[1:]))
    fixed: list[UOp] = []
    steps = lane_steps(kernel)
    for axis in axes:
        if steps <= FULL_STEPS // SAMPLES:
            break
        fixed.append(axis)
        steps //= axis.extent
    generator = np.random.default_rng(0)
    for _ in range(SAMPLES if fixed else 1):
        at = {axis: UOp.index(int(generator.integers(axis.extent))) for axis in fixed}
        yield kernel.substitute(at)


def _marked(kernel: UOp) -> UOp:
    """Return a kernel that writes 1 to each element that `kernel` writes."""
    changes = {}
    for end in kernel.src:
        store = end.store
        one = UOp.const(store.value.dtype.scalar, 1)
        changes[store] = construct.store(store.place, one)
    return kernel.substitute(changes)
