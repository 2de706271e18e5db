"""Strides: the index of an element of a moved value in the original value, where it is linear."""

from __future__ import annotations

from typing import NamedTuple

from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape

LINEAR = frozenset({Ops.RESHAPE, Ops.PERMUTE, Ops.FLIP, Ops.SHRINK, Ops.EXPAND})
"""Movement without padding."""


class Strided(NamedTuple):
    """A moved value: element (i, j, ..) is element `start + i * strides[0] + j * strides[1] + ..`
    of the original value."""

    shape: Shape
    strides: tuple[int, ...]
    start: int = 0

    @property
    def merged(self) -> tuple[int, tuple[tuple[int, int], ...]]:
        """The start, and (size, stride) of the axes, neighbours merged where one stride walks both.
        Moved values for which it is equal have the same elements in the same order."""
        axes: list[tuple[int, int]] = []
        for size, stride in zip(self.shape, self.strides, strict=True):
            if size == 1:
                continue
            if axes and axes[-1][1] == size * stride:
                axes[-1] = axes[-1][0] * size, stride
            else:
                axes.append((size, stride))
        return self.start, tuple(axes)

    def moved(self, step: UOp) -> Strided | None:
        """Return this after the LINEAR movement op `step`; None where that is not linear."""
        shape, strides, start = self
        if step.op is Ops.PERMUTE:
            return Strided(step.shape, tuple(strides[a] for a in step.arg), start)
        if step.op is Ops.FLIP:
            signs = [-1 if a in step.arg else 1 for a in range(len(shape))]
            start += sum((shape[a] - 1) * strides[a] for a in step.arg)
            return Strided(
                shape, tuple(s * sign for s, sign in zip(strides, signs, strict=True)), start
            )
        if step.op is Ops.SHRINK:
            lows = [low for low, _ in step.arg]
            start += sum(low * s for low, s in zip(lows, strides, strict=True))
            return Strided(step.shape, strides, start)
        if step.op is Ops.EXPAND:
            new = len(step.shape) - len(shape)
            sizes = zip(shape, step.shape[new:], strides, strict=True)
            tail = tuple(s if n == wide else 0 for n, wide, s in sizes)
            return Strided(step.shape, (0,) * new + tail, start)
        return self._reshaped(step.shape)

    def _reshaped(self, shape: Shape) -> Strided | None:
        """Return this in another `shape`, of as many elements; None where that is not linear."""
        start, axes = self.merged
        left = list(axes)
        strides: list[int] = []
        for size in reversed(shape):
            if size == 1:
                strides.append(0)
                continue
            if not left or left[-1][0] % size:
                return None
            whole, stride = left.pop()
            strides.append(stride)
            if whole > size:
                left.append((whole // size, stride * size))
        return Strided(shape, tuple(reversed(strides)), start)


def whole(shape: Shape) -> Strided:
    """Return a value of `shape` that is not moved."""
    strides, stride = [], 1
    for size in reversed(shape):
        strides.append(stride)
        stride *= size
    return Strided(shape, tuple(reversed(strides)))


def same_elements(node: UOp) -> UOp | None:
    """Return the lowest value under LINEAR movement `node` that has the same elements in the same
    order; None if none has."""
    if not node.size:
        return None
    steps = [node]
    while steps[-1].src[0].op in LINEAR:
        steps.append(steps[-1].src[0])
    bottom = steps[-1].src[0]
    view = whole(bottom.shape)
    below = {view.merged: bottom}
    for step in reversed(steps):
        moved = view.moved(step)
        if moved is None:  # from here on, elements are counted in this value
            if step is node:
                return None
            view = whole(step.shape)
            below = {view.merged: step}
            continue
        view = moved
        if step is not node:
            below.setdefault(view.merged, step)
    return below.get(view.merged)
