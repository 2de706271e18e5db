"""What an everyday expression is: a name, its inputs, and how either library says it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.ir.meaning.closeness import STEPS

Make = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """An expression: `ours(*inputs)` on Tensors and `theirs(*inputs)` on torch's. An input is a
    shape, a type after it where it is not float32, or -N for whole numbers below N.
    `steps` says how long its sums are, for the tolerance of its answer."""

    name: str
    inputs: tuple[tuple[Any, ...], ...]
    ours: Make
    theirs: Make
    steps: int = STEPS


def case(name: str, inputs: Any, ours: Make, theirs: Make | None = None) -> Case:
    return Case(name, tuple(inputs), ours, theirs or ours)


def by(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def over(name: str, axes: tuple[int, ...]) -> Make:
    return lambda x: getattr(x, name)(axes)


def at(make: Make, axis: int) -> Make:
    return lambda x: make(x, axis)


def counting(n: int) -> Any:
    from workbench import Tensor

    return Tensor.arange(n)
