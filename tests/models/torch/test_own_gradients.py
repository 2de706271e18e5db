"""Gradients of operators where functions end or bend, and of equal values: held against those that
PyTorch gives, of a module that is read by load_model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from tests.peers import torch
from workbench import load_model
from workbench.models.torch.values import from_torch, to_torch

F = torch.nn.functional
INF, NAN = math.inf, math.nan


def rows(*values: float) -> list[list[float]]:
    return [[*values], [1.0] * len(values)]


def norm_of(order: float) -> Callable[[Any], Any]:
    return lambda x: torch.linalg.vector_norm(x, order, dim=1)


def reduced(kind: str, include_self: bool = True) -> Callable[[Any, Any], Any]:
    """Return a reduction of two rows into one, and of the rows after them into another: by
    `scatter_reduce` with the first tensor, by `index_reduce` without it."""

    def function(x: Any, y: Any) -> Any:
        index = torch.arange(len(y)) // 2
        if include_self:
            places = index[:, None].expand_as(y)
            return x.scatter_reduce(0, places, y, kind)
        return x.index_reduce(0, index, y, kind, include_self=False)

    return function


REDUCTIONS = "prod", "mean", "amax", "amin"
SIGNS = [0.0, -0.0, 1.0, -1.0]
FAR = [0.0, 200.0, -200.0, 0.5]
EDGES = [0.0, 1.0, 0.5]
EQUAL = rows(1.0, 1.0, 1.0)
ORIGIN = rows(0.0, 0.0)
MISSING = [[NAN, NAN], [1.0, NAN], [3.0, 2.0]]
INFINITE = [[-INF, 1.0, 2.0], [1.0, -INF, 2.0], [-INF, -INF, -INF], [INF, 1.0, 2.0]]
MIXED = [[0.0, 0.0, 3.0], [0.0, 2.0, 3.0], [1.0, 2.0, 3.0]]

CASES: dict[str, tuple[Callable[..., Any], tuple[list[Any], ...]]] = {
    "std": (lambda x: x.std(1), (EQUAL,)),
    "std of all": (lambda x: x.std(correction=0), (EQUAL,)),
    "std_mean": (lambda x: torch.std_mean(x, 1)[0], (EQUAL,)),
    **{f"norm {order}": (norm_of(order), (MIXED,)) for order in (0.5, 1, 1.5, 2, 3, INF, -1, -INF)},
    "normalize": (F.normalize, (ORIGIN,)),
    "pairwise_distance": (lambda x, y: F.pairwise_distance(x, y, eps=0.0), (ORIGIN, ORIGIN)),
    "cdist": (torch.cdist, (EQUAL, EQUAL)),
    "cosine_similarity": (F.cosine_similarity, (ORIGIN, rows(1.0, 1.0))),
    "renorm": (lambda x: torch.renorm(x, 2, 0, 1.0), ([[0.0, 0.0], [3.0, 4.0]],)),
    "sinc": (torch.sinc, (EDGES,)),
    "xlogy": (torch.xlogy, ([0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 2.0, INF])),
    "xlogy of a number": (lambda x: torch.xlogy(x, 2.0), (EDGES,)),
    "xlog1py": (torch.special.xlog1py, ([0.0, 0.0, 1.0], [-1.0, 1.0, 2.0])),
    "kl_div": (lambda x, y: F.kl_div(x, y, reduction="sum"), ([1.0, 2.0], [0.0, 1.0])),
    "atan2": (torch.atan2, ([0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0])),
    "logit": (torch.logit, (EDGES,)),
    "logit with eps": (lambda x: torch.logit(x, 1e-3), (EDGES,)),
    "binary_cross_entropy": (F.binary_cross_entropy, ([0.0, 1.0, 0.5], [0.0, 1.0, 1.0])),
    "with logits": (F.binary_cross_entropy_with_logits, ([0.0, 100.0, -100.0], [0.0, 1.0, 1.0])),
    "prod": (lambda x: x.prod(1), (MIXED,)),
    "cumprod": (lambda x: x.cumprod(1), (MIXED,)),
    "pow": (torch.pow, ([0.0, 2.0, 0.0], [0.0, 2.0, 1.0])),
    "logsumexp": (lambda x: x.logsumexp(1), (rows(-INF, -INF),)),
    "softmax": (lambda x: x.softmax(1), (rows(-INF, 1.0),)),
    "layer_norm": (lambda x: F.layer_norm(x, (3,)), (EQUAL,)),
    "max": (lambda x: x.max(1)[0], (EQUAL,)),
    "min kept": (lambda x: x.min(0, keepdim=True)[0], (EQUAL,)),
    "amax": (lambda x: x.amax(1), (EQUAL,)),
    "median": (lambda x: x.median(1)[0], (EQUAL,)),
    "maximum": (torch.maximum, (EDGES, EDGES)),
    "fmax": (torch.fmax, ([1.0, 1.0, NAN], [1.0, NAN, 0.0])),
    "fmin": (torch.fmin, ([1.0, 1.0, NAN], [1.0, NAN, 0.0])),
    "clamp": (lambda x: x.clamp(0, 1), (SIGNS,)),
    "abs": (torch.abs, (SIGNS,)),
    "relu6": (F.relu6, ([0.0, 6.0, 1.0],)),
    "hardtanh": (F.hardtanh, (SIGNS,)),
    "hardswish": (F.hardswish, ([-3.0, 3.0, 0.0],)),
    "hardsigmoid": (F.hardsigmoid, ([-3.0, 3.0, 0.0],)),
    "softplus": (F.softplus, (FAR,)),
    "softplus, steep": (lambda x: F.softplus(x, 3.0, 2.0), ([0.0, 0.7, -4.0],)),
    "mish": (F.mish, ([0.0, 100.0, -20.0],)),
    "silu": (F.silu, (FAR,)),
    "elu": (F.elu, (FAR,)),
    "logsigmoid": (F.logsigmoid, (FAR,)),
    "softshrink": (F.softshrink, (EDGES,)),
    "hardshrink": (F.hardshrink, (EDGES,)),
    "threshold": (lambda x: F.threshold(x, 1.0, 2.0), (EDGES,)),
    "sqrt": (torch.sqrt, (EDGES,)),
    "log1p": (torch.log1p, ([0.0, -2.0, 1.0],)),
    "masked_fill": (lambda x: x.masked_fill(x <= 0, 1.0).log(), (EDGES,)),
    "nan_to_num": (torch.nan_to_num, ([NAN, INF, 1.0],)),
    "hypot": (torch.hypot, ([0.0, 0.0, 3.0], [0.0, -2.0, 4.0])),
    "entr": (torch.special.entr, ([0.0, 0.5, -1.0, NAN],)),
    "nansum": (lambda x: x.nansum(1), (MISSING,)),
    "nanmean": (lambda x: x.nanmean(1), (MISSING,)),
    "nanmedian": (lambda x: x.nanmedian(1)[0], (MISSING,)),
    "logcumsumexp": (lambda x: x.logcumsumexp(1), (INFINITE,)),
    "scatter_reduce": (reduced("amax"), (MIXED, MIXED)),
    **{f"index_reduce {kind}": (reduced(kind, False), (MIXED, MIXED)) for kind in REDUCTIONS},
    "masked_scatter": (lambda x, y: x.masked_scatter(y > 1, y), ([1.0, 2.0, 3.0], MIXED)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 2), ([MIXED],)),
    "adaptive_max_pool3d": (lambda x: F.adaptive_max_pool3d(x, 2), ([[MIXED, MIXED]],)),
    "diagonal_scatter": (lambda x, y: x.diagonal_scatter(y, 1), (MIXED, [5.0, 6.0])),
    "addbmm": (lambda x, y: torch.addbmm(x, y, y, beta=0.5, alpha=2), (MIXED, [MIXED, MIXED])),
}


class Network(torch.nn.Module):
    """All functions in one module, each with inputs of its own."""

    def forward(self, *inputs: Any) -> Any:
        given = iter(inputs)
        return tuple(
            function(*[next(given) for _ in values]) for function, values in CASES.values()
        )


def of_pytorch() -> tuple[list[Any], list[Any]]:
    inputs = [torch.tensor(v) for _, values in CASES.values() for v in values]
    given = [x.clone().requires_grad_() for x in inputs]
    results = Network()(*given)
    torch.autograd.backward(results, [torch.ones_like(r) for r in results])
    return [r.detach() for r in results], [x.grad for x in given]


@pytest.mark.filterwarnings("ignore:index_reduce")
def test_gradients_where_functions_bend_are_those_of_pytorch() -> None:
    values, gradients = of_pytorch()
    inputs = [torch.tensor(v) for _, own in CASES.values() for v in own]
    given = [from_torch(x).requires_grad_() for x in inputs]
    results = load_model(Network())(*given)
    first, *others = [r.sum() for r in results]
    sum(others, first).backward()
    names = [name for name, (_, own) in CASES.items() for _ in own]
    wrong = differences(dict(zip(CASES, results, strict=True)).items(), values)
    wrong += differences(
        [(f"gradient of {n}", x.grad) for n, x in zip(names, given, strict=True)], gradients
    )
    assert not wrong, "\n".join(wrong)


def differences(ours: Iterable[tuple[str, Any]], theirs: Sequence[Any]) -> list[str]:
    found = []
    for (name, tensor), other in zip(ours, theirs, strict=True):
        own = to_torch(tensor.detach())
        if not torch.allclose(own, other, 1e-4, 1e-5, equal_nan=True):
            found.append(f"{name}: {own.tolist()}, not {other.tolist()}")
    return found
