"""Values of a model held against those of its framework, output by output or node by node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from workbench.execution.buffers import Array
from workbench.ir.meaning.closeness import errors, greatest, tolerance
from workbench.tensor.tensor import Tensor


class ModelValue(NamedTuple):
    """A value of a graph: its `name`, `where` it is made in the source, and what the framework has
    for it."""

    name: str
    where: str
    ours: Tensor
    theirs: Array


@dataclass(frozen=True, slots=True)
class ValueCheck:
    """The largest error of a value, and the largest that rounding explains."""

    name: str
    where: str
    max_abs_error: float
    limit: float

    @property
    def ok(self) -> bool:
        return self.max_abs_error <= self.limit

    def __str__(self) -> str:
        state = "equal" if self.ok else "differs"
        place = f" ({self.where})" if self.where and not self.ok else ""
        rounding = f"rounding explains up to {self.limit:.3g}"
        return (
            f"{self.name}: {state}, the largest difference is {self.max_abs_error:.3g}"
            f" ({rounding}){place}"
        )


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """The comparison of a model with its framework: a row for each output, and the first value in
    the order of the graph that differs, if that was asked for and there is one."""

    outputs: tuple[ValueCheck, ...]
    first_wrong: ValueCheck | None = None

    @property
    def ok(self) -> bool:
        return all(each.ok for each in self.outputs)

    def __str__(self) -> str:
        lines = [str(each) for each in self.outputs]
        if self.first_wrong is not None:
            lines.append(f"the first value that differs: {self.first_wrong}")
        return "\n".join(lines)

    __repr__ = __str__


def compared(value: ModelValue) -> ValueCheck:
    """Compare one value."""
    actual = np.asarray(value.ours.numpy())
    if actual.shape != value.theirs.shape:
        return ValueCheck(value.name, value.where, np.inf, 0.0)
    error = float(errors(actual, value.theirs).max(initial=0.0))
    # of the tensor's own dtype: numpy has bfloat16 as float32
    limit = tolerance(value.ours.dtype) * greatest(value.theirs)
    return ValueCheck(value.name, value.where, error, limit)


def first_wrong(values: Iterable[ModelValue]) -> ValueCheck | None:
    """Return the first of `values` that differs; None if there is none."""
    checks = (compared(value) for value in values)
    return next((check for check in checks if not check.ok), None)
