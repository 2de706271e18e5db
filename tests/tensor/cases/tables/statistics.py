"""Reductions, running reductions, statistics and normalisation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.peers import torch
from tests.tensor.cases.case import ALL, FLOATS, INTS, Case, case, uniform, values

F = torch.nn.functional
INF, NAN = float("inf"), float("nan")
HARD = values([1e4, -INF, 3.0, 3.0], [-INF, -INF, -INF, -INF], [INF, 1.0, -INF, INF],
              [0.0, NAN, 2.0, 3.0])  # fmt: skip
HUGE = values([9e4, 8.9e4, -9e4], [-9e4, -9e4, -9e4], [88.0, 89.0, 104.0])
WIDE = ("float32", "float64")
AXES: list[Any] = [0, -1, (0, 2), None]

Call = Callable[..., Any]


def statistic(name: str, theirs: Call, ulps: float = 8) -> list[Case]:
    """Return rows of a method (axis, keepdim, correction)."""
    return [
        case(
            name,
            lambda x, a=axis, k=keepdim, c=correction: getattr(x, name)(a, k, c),
            (3, 4, 5),
            torch=lambda x, a=axis, k=keepdim, c=correction: theirs(
                x, dim=a, keepdim=k, correction=c
            ),
            dtypes=FLOATS,
            ulps=ulps,
        )
        for axis in AXES
        for keepdim, correction in ((False, 1), (True, 0))
    ]


def running(name: str, theirs: Call, dtypes: tuple[str, ...], ulps: float = 8) -> list[Case]:
    """Return rows of a method (axis), up to axes that are cut into blocks."""
    return [
        case(
            name,
            lambda x, a=axis: getattr(x, name)(a),
            operand,
            torch=lambda x, a=axis: theirs(x, a),
            dtypes=dtypes,
            ulps=ulps,
        )
        for operand, axis in [
            ((3, 4), 0), ((3, 4), -1), ((2, 70), 1), ((300,), 0), ((0, 3), 0), ((), 0),
        ]
    ]  # fmt: skip


def along(name: str, theirs: Call, *operands: Any, **options: Any) -> list[Case]:
    """Return rows of a method (axis) along the last one."""
    return [
        case(name, lambda x: getattr(x, name)(-1), x, torch=partial(theirs, dim=-1),
             **{"dtypes": FLOATS, **options})
        for x in operands
    ]  # fmt: skip


# fmt: off
CASES = [
    *statistic("var", torch.var),
    *statistic("std", torch.std),
    *statistic("var_mean", torch.var_mean),
    *statistic("std_mean", torch.std_mean),
    case("var_mean", lambda x: x.var_mean(1, correction=0), (3, 1),
         torch=lambda x: torch.var_mean(x, 1, correction=0)),
    *running("cumsum", torch.cumsum, (*WIDE, *INTS, "bool"), 32),
    *running("cummax", lambda x, a: torch.cummax(x, a), (*FLOATS, *INTS), 0),
    *running("cummin", lambda x, a: torch.cummin(x, a), (*FLOATS, *INTS), 0),
    *running("logcumsumexp", torch.logcumsumexp, FLOATS),
    case("cumprod", lambda x: x.cumprod(1), (3, 4), dtypes=ALL),
    case("cummax", lambda x: x.cummax(1), HARD, dtypes=FLOATS, ulps=0, has_gradient=False),
    case("cummin", lambda x: x.cummin(1), HARD, dtypes=FLOATS, ulps=0, has_gradient=False),
    *(case("logcumsumexp", lambda x: x.logcumsumexp(1), x, dtypes=WIDE) for x in (HARD, HUGE)),
    *(case("logsumexp", lambda x, a=axis: x.logsumexp(a), (3, 4, 5), dtypes=FLOATS)
      for axis in (0, -1, (0, 2))),
    *(case("logsumexp", lambda x: x.logsumexp(1), x, dtypes=WIDE) for x in (HARD, HUGE)),
    *along("softmax", torch.softmax, (3, 4), (2, 0)),
    *along("softmax", torch.softmax, HUGE, dtypes=WIDE),
    *along("softmin", F.softmin, (3, 4), (2, 3, 40)),
    *along("softmin", F.softmin, HUGE, dtypes=WIDE),
    *along("log_softmax", torch.log_softmax, (3, 4), ulps=8),
    *along("log_softmax", torch.log_softmax, HUGE, dtypes=WIDE, ulps=8),
    case("softmin", lambda x: x.softmin(0, dtype="float64"), (3, 4),
         torch=lambda x: F.softmin(x, 0, dtype=torch.float64)),
    *(case(name, lambda x, n=name, a=axis, k=keepdim: getattr(x, n)(a, k), (3, 4, 5),
           dtypes=(*FLOATS, *INTS))
      for name in ("argmax", "argmin")
      for axis, keepdim in ((0, False), (-1, True), (None, False))),
    *(case(name, lambda x, n=name: getattr(x, n)(1), values([3, 1, 3, 1], [0, 0, 0, 0]),
           dtypes=INTS) for name in ("argmax", "argmin")),
    *(case(name, lambda x, n=name: getattr(x, n)(1), HARD, dtypes=FLOATS)
      for name in ("argmax", "argmin")),
    case("prod", lambda x: x.prod(), (3, 4), dtypes=ALL),
    *(case("sum", lambda x, a=axis: x.sum(a), (3, 4, 5), dtypes=ALL, ulps=32) for axis in AXES),
    case("prod", lambda x: x.prod(1, keepdim=True, dtype="float64"), (3, 4),
         torch=lambda x: x.prod(1, keepdim=True, dtype=torch.float64), dtypes=("int32", "float32")),
    *(case("normalize", lambda x, p=p, d=dim: x.normalize(p, d), (3, 4, 5),
           torch=lambda x, p=p, d=dim: F.normalize(x, p, d), dtypes=FLOATS, ulps=16)
      for p, dim in ((2.0, 1), (1, 0), (3.5, -1), (INF, 1), (2, -2))),
    case("normalize", lambda x: x.normalize(0, 1), values([0, 2, 0, 3], [0, 0, 0, 0]),
         torch=lambda x: F.normalize(x, 0, 1)),
    case("normalize", lambda x: x.normalize(), values([0, 0, 0], [1e-20, 1e-20, 0]),
         torch=F.normalize),
    *(case("layernorm", lambda x, a=axes: x.layernorm(a), (3, 4, 5),
           torch=lambda x, s=shape: F.layer_norm(x, s), dtypes=FLOATS, ulps=16)
      for axes, shape in ((-1, (5,)), ((1, 2), (4, 5)))),
    case("layernorm", lambda x: x.layernorm(eps=0.5), (3, 4),
         torch=lambda x: F.layer_norm(x, (4,), eps=0.5), dtypes=FLOATS, ulps=16),
    case("batchnorm", lambda x, m, v: x.batchnorm(None, None, m, (v + 1e-5).rsqrt()), (2, 3, 4),
         (3,), uniform((3,), 0.5, 2), torch=lambda x, m, v: F.batch_norm(x, m, v), dtypes=WIDE,
         ulps=16, has_gradient=False),
    case("batchnorm", lambda x, w, b, m, v: x.batchnorm(w, b, m, (v + 1e-5).rsqrt()),
         (2, 3, 4, 2), (3,), (3,), (3,), uniform((3,), 0.5, 2),
         torch=lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b), dtypes=WIDE, ulps=16,
         has_gradient=False),
    case("batchnorm", lambda x, w, m: x.batchnorm(w, None, m, w, axis=-1), (2, 3, 4), (4,), (4,),
         torch=lambda x, w, m: (x - m) * w * w, dtypes=WIDE),
]
# fmt: on
