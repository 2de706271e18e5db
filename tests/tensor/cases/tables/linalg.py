"""Decompositions of matrices, which torch's signs, or products, are compared with."""

from __future__ import annotations

from typing import Any

from tests.peers import torch
from tests.tensor.cases.case import case, values

WIDE = ("float32", "float64")
SHAPES: Any = [(3, 3), (5, 3), (3, 5), (1, 1), (4, 1), (1, 4), (2, 3, 4)]
SINGULAR = values([1.0, 1.0, 2.0], [1.0, 1.0, 2.0], [0.0, 0.0, 0.0], [2.0, 2.0, 4.0])
ZERO = values([0.0, 0.0], [0.0, 0.0])
HUGE = values([2e18, -1e19], [3e18, 1e-3])


def decomposed(x: Any) -> tuple[Any, ...]:
    """Return what of our singular values and vectors does not depend on their signs."""
    u, s, v = x.svd()
    u.realize(s, v)
    return s, again(u, s, v), square(u), square(v)


def known(x: Any) -> tuple[Any, ...]:
    """Return the same, as it must be, by torch."""
    u, s, v = torch.linalg.svd(x)
    return s, x, square(u), square(v)


def again(u: Any, s: Any, v: Any) -> Any:
    """Return the matrix that a singular value decomposition is of."""
    count = s.shape[-1]
    return (u[..., :count] * s.unsqueeze(-2)) @ v[..., :count, :]


def square(x: Any) -> Any:
    """Return x^T x, the unit matrix if the columns are orthogonal and of length 1."""
    return x.transpose(-1, -2) @ x


def polynomial(x: Any, *params: float) -> Any:
    """Return one step of Newton and Schulz, as powers of X X^T."""
    x = x / (x.square().sum((-2, -1), keepdim=True).sqrt() + 1e-7)
    powers = [x]
    for _ in params[1:]:
        powers.append(x @ x.transpose(-1, -2) @ powers[-1])
    return sum(p * power for p, power in zip(params, powers, strict=True))


# fmt: off
CASES = [
    *(case("qr", lambda x: x.qr(), x, torch=lambda x: torch.linalg.qr(x, "complete"), dtypes=WIDE,
           ulps=16, has_gradient=x in ((3, 3), (3, 5), (2, 3, 4))) for x in (*SHAPES, ZERO, HUGE)),
    *(case("qr", lambda x: (x.qr()[0] @ x.qr()[1], square(x.qr()[0])), x,
           torch=lambda x: (x, square(torch.linalg.qr(x, "complete")[0])), dtypes=WIDE, ulps=16)
      for x in (SINGULAR,)),
    *(case("svd", decomposed, x, torch=known, dtypes=WIDE, ulps=32, has_gradient=False)
      for x in (*SHAPES, SINGULAR, ZERO, HUGE)),
    *(case("svd", lambda x: again(*x.svd(full_matrices=False)), x, torch=lambda x: x, dtypes=WIDE,
           ulps=32, has_gradient=False) for x in ((5, 3), (3, 5))),
    *(case("newton_schulz", lambda x, p=params: x.newton_schulz(1, p), x,
           torch=lambda x, p=params: polynomial(x, *p), dtypes=WIDE, ulps=32)
      for params in ((2, -1.5, 0.5), (1.5, -0.5), (0.25,)) for x in ((3, 4), (5, 2), (2, 3, 3))),
    case("newton_schulz", lambda x: x.newton_schulz(20, (1.5, -0.5)),
         values([3.0, 1.0], [1.0, 2.0]),
         torch=lambda x: torch.eye(2, dtype=x.dtype), dtypes=WIDE, ulps=32),
]
# fmt: on
