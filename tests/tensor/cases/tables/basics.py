"""Functions by their name in both, arithmetic, casts, and reductions to one value."""

from __future__ import annotations

from typing import Any

from tests.peers import torch
from tests.tensor.cases.case import Case, case, normal, uniform

WIDE = ("float32", "float64")
# fmt: off
RANGES = {
    "acos": (-0.9, 0.9), "acosh": (1.1, 3), "asin": (-0.9, 0.9), "asinh": (-3, 3),
    "atan": (-3, 3), "atanh": (-0.9, 0.9), "cos": (-4, 4), "cosh": (-3, 3), "exp": (-3, 3),
    "exp2": (-3, 3), "log": (0.2, 4), "log2": (0.2, 4), "sin": (-4, 4), "sinh": (-3, 3),
    "sqrt": (0.2, 4), "tan": (-1.2, 1.2), "ceil": (-3, 3), "floor": (-3, 3), "neg": (-3, 3),
}
SHAPES: Any = [(7,), (2, 3), (), (0, 3)]
# fmt: on


def named(name: str, shape: tuple[int, ...]) -> Case:
    low, high = RANGES[name]
    operand = uniform(shape, low, high)
    return case(name, lambda x: getattr(x, name)(), operand, dtypes=WIDE, ulps=8)


def paired(name: str, a: tuple[int, ...], b: tuple[int, ...]) -> Case:
    operands = uniform(a, 0.5, 2), uniform(b, 0.5, 2)
    return case(name, lambda x, y: getattr(x, name)(y), *operands, dtypes=WIDE, ulps=8)


def reduced(name: str, axis: int | tuple[int, ...], keepdim: bool) -> Case:
    theirs = {"max": torch.amax, "min": torch.amin}.get(name, getattr(torch, name))
    return case(
        name, lambda x: getattr(x, name)(axis, keepdim), normal((2, 3, 4)),
        torch=lambda x: theirs(x, axis, keepdim), dtypes=WIDE, ulps=8,
    )  # fmt: skip


CASTS = {"float": "float32", "double": "float64", "half": "float16"}
BROADCAST: Any = [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,))]

CASES = [
    *(named(name, shape) for name in RANGES for shape in SHAPES),
    *(paired(n, a, b) for n in ("add", "sub", "mul", "pow") for a, b in BROADCAST),
    *(
        reduced(name, axis, keepdim)
        for name in ("sum", "mean", "max", "min")
        for axis, keepdim in ((0, False), (-1, True), ((0, 2), False), ((0, 1, 2), True))
    ),
    *(case("clip", lambda x, b=bounds: x.clip(*b), (3, 4), dtypes=WIDE, ulps=0)
      for bounds in ((-0.5, 0.5), (None, 0.5), (-0.5, None))),
    *(case(name, lambda x, n=name: getattr(x, n)(), (3, 4), ulps=0) for name in CASTS),
    case("cast", lambda x: x.cast("float64").cast("float32") * x, (3,),
         torch=lambda x: x.double().float() * x),
    case("broadcast_to", lambda x: x.broadcast_to(2, 3), (1, 3)),
    case("contiguous", lambda x: x.contiguous() * x, (2, 3)),
    case("clone", lambda x: x.clone() * x, (2, 3)),
]  # fmt: skip
