"""Elements chosen by an index or a mask, and put where one says."""

from __future__ import annotations

import numpy as np

from tests.peers import torch
from tests.tensor.cases.case import ALL, FLOATS, INTS, Operand, case, index, mask, values
from workbench.tensor import Tensor

NAN, INF = float("nan"), float("inf")
EDGES = values(3.0, NAN, -INF, 0.0, -0.0, INF, 1e-40, NAN, -1.0, 3.0)


def permutations(rows: int, count: int, size: int) -> Operand:
    """Return `count` different positions of an axis of `size` for each row."""
    return Operand(
        lambda rng, _: np.stack([rng.permutation(size)[:count] for _ in range(rows)]).astype(
            np.int32
        ),
        True,
    )


CASES = [
    *(
        case("gather", lambda x, i, d=dim: x.gather(d, i), (4, 5), index(shape, count), dtypes=ALL)
        for dim, shape, count in ((0, (2, 5), 4), (1, (4, 9), 5), (-1, (2, 3), 5), (0, (0, 5), 4))
    ),
    case("gather", lambda x, i: x.gather(1, i), (2, 3, 4), index((2, 6, 4), 3)),
    case("gather", lambda x, i: x.gather(0, i), (), index((), 1)),
    *(
        case("__getitem__", lambda x, i: x[i], (5, 3), index(shape, 5, -5), dtypes=ALL)
        for shape in ((4,), (2, 3), ())
    ),
    case("__getitem__", lambda x, i: x[:, i], (5, 3), index((4,), 3)),
    case("__getitem__", lambda x, i, j: x[i, j], (5, 3), index((4,), 5), index((4,), 3)),
    case("__getitem__", lambda x, i, j: x[i, :, j], (5, 2, 3), index((4,), 5), index((2, 1), 3)),
    case("__getitem__", lambda x, m: x[m], (3, 4), mask((3, 4)), dtypes=ALL, has_gradient=False),
    case("__getitem__", lambda x, m: x[m], (3, 4), mask((3,)), has_gradient=False),
    case("__getitem__", lambda x, m: x[1:, m], (3, 4), mask((4,)), has_gradient=False),
    case("__getitem__", lambda x: x[True], (3, 4)),
    case("__getitem__", lambda x: x[False], (3, 4), has_gradient=False),
    case(
        "one_hot",
        lambda i: i.one_hot(5),
        index((3, 4), 5),
        has_gradient=False,
        torch=lambda i: torch.nn.functional.one_hot(i, 5),
    ),
    # scatter
    *(
        case(
            "scatter",
            lambda x, i, s: x.scatter(1, i, s),
            (3, 6),
            permutations(3, 4, 6),
            shape,
            dtypes=ALL,
        )
        for shape in ((3, 4), (5, 6))
    ),
    case("scatter", lambda x, i, s: x.scatter(0, i, s), (5, 4), index((1, 3), 5), (2, 4)),
    case("scatter", lambda x, i: x.scatter(1, i, 2.5), (3, 6), index((3, 4), 6), dtypes=FLOATS),
    case(
        "scatter",
        lambda x, i: x.scatter(1, i, 3, reduce="add"),
        (3, 6),
        index((2, 4), 6),
        dtypes=FLOATS + INTS,
    ),
    case(
        "scatter",
        lambda x, i: x.scatter(1, i, 3, reduce="multiply"),
        (3, 6),
        index((2, 4), 6),
        dtypes=FLOATS,
        ulps=8,
    ),
    case("scatter", lambda x, i, s: x.scatter(0, i, s), (4,), index((0,), 4), (0,)),
    case("scatter", lambda x, i, s: x.scatter(0, i, s), (), index((), 1), ()),
    *(
        case(
            "scatter_reduce",
            lambda x, i, s, r=reduce, w=with_self: x.scatter_reduce(1, i, s, r, include_self=w),
            (3, 6),
            index((3, 8), 6),
            (3, 8),
            dtypes=(*FLOATS, *INTS[:2]),
            ulps=16,
        )
        for reduce in ("sum", "prod", "mean", "amax", "amin")
        for with_self in (True, False)
    ),
    *(
        case(
            "scatter_reduce",
            lambda x, i, s, r=reduce: x.scatter_reduce(0, i, s, r),
            (6, 2, 3),
            index((9, 1, 3), 6),
            (9, 2, 3),
            ulps=16,
        )
        for reduce in ("sum", "amax")
    ),
    # order
    *(
        case(
            "sort",
            lambda x, d=dim, r=reverse: x.sort(d, descending=r),
            shape,
            dtypes=ALL,
            torch=lambda x, d=dim, r=reverse: torch.sort(x, dim=d, descending=r, stable=True),
        )
        for shape, dim in (
            ((9,), -1),
            ((4, 7), 0),
            ((2, 3, 5), 1),
            ((1,), 0),
            ((2, 0), 1),
            ((), -1),
        )
        for reverse in (False, True)
    ),
    *(
        case(
            "sort",
            lambda x, r=reverse: x.sort(descending=r),
            EDGES,
            dtypes=FLOATS,
            has_gradient=False,
            torch=lambda x, r=reverse: torch.sort(x, descending=r, stable=True),
        )
        for reverse in (False, True)
    ),
    case(
        "sort",
        lambda x: x.sort(),
        (2, 300),
        dtypes=("int8",),
        has_gradient=False,
        torch=lambda x: torch.sort(x, stable=True),
    ),
    *(
        case(
            "argsort",
            lambda x, d=dim, r=reverse: x.argsort(d, r),
            (5, 6),
            dtypes=ALL,
            has_gradient=False,
            torch=lambda x, d=dim, r=reverse: torch.argsort(x, dim=d, descending=r, stable=True),
        )
        for dim in (0, -1)
        for reverse in (False, True)
    ),
    *(
        case("topk", lambda x, k=k, d=dim, b=largest: x.topk(k, d, b), (6, 40))
        for k, dim in ((1, 1), (5, 1), (6, 0), (40, -1))
        for largest in (True, False)
    ),
    case("topk", lambda x: x.topk(4), (2, 700)),
    # masks
    case(
        "masked_select",
        lambda x, m: x.masked_select(m),
        (3, 4),
        mask((3, 4)),
        dtypes=ALL,
        has_gradient=False,
    ),
    case("masked_select", lambda x, m: x.masked_select(m), (3, 4), mask((4,)), has_gradient=False),
    case(
        "masked_select",
        lambda x, m: x.masked_select(m, size=15, fill_value=-1),
        (3, 4),
        mask((3, 4)),
        has_gradient=False,
        torch=lambda x, m: torch.nn.functional.pad(x[m], (0, 15 - int(m.sum())), value=-1),
    ),
    case(
        "masked_select",
        lambda x, m: x.masked_select(m, size=2),
        (3, 4),
        mask((3, 4)),
        has_gradient=False,
        torch=lambda x, m: x[m][:2],
    ),
    case(
        "masked_select", lambda x, m: x.masked_select(m), (1200,), mask((1200,)), has_gradient=False
    ),
    *(
        case("nonzero", lambda m: m.nonzero(), mask(shape), has_gradient=False, torch=torch.nonzero)
        for shape in ((5,), (3, 4), (2, 3, 2), (0, 3), (1100,))
    ),
    case(
        "nonzero",
        lambda x: x.nonzero(),
        (3, 4),
        dtypes=("int8", "float32", "bool"),
        has_gradient=False,
    ),
    case(
        "nonzero",
        lambda m: m.nonzero(size=20, fill_value=-1),
        mask((3, 4)),
        has_gradient=False,
        torch=lambda m: torch.nn.functional.pad(
            m.nonzero(), (0, 0, 0, 20 - int(m.sum())), value=-1
        ),
    ),
    case(
        "where",
        lambda m, x, y: m.where(x, y),
        mask((3, 4)),
        (3, 4),
        (4,),
        dtypes=ALL,
        torch=torch.where,
    ),
    # comparison for rounding
    *(
        case(
            "isclose",
            lambda x, y, n=nan: x.isclose(y, equal_nan=n),
            EDGES,
            values(*[3.0, NAN, -INF, 1e-9, 0.0, 2.0, 0.0, 1.0, -1.000001, 3.1]),
            dtypes=("float32", "float64"),
            has_gradient=False,
        )
        for nan in (False, True)
    ),
    case(
        "isclose",
        lambda x, y: x.isclose(y, rtol=0.5, atol=1.0),
        (3, 4),
        (3, 4),
        dtypes=("int32", "float16"),
        has_gradient=False,
    ),
    case(
        "allclose",
        lambda x: x.allclose(x),
        (3, 4),
        has_gradient=False,
        torch=lambda x: torch.tensor(torch.allclose(x, x)),
    ),
    case(
        "allclose",
        lambda x, y: x.allclose(y, atol=9.0),
        (3, 4),
        (3, 4),
        has_gradient=False,
        torch=lambda x, y: torch.tensor(torch.allclose(x, y, atol=9.0)),
    ),
    case("sort", lambda x: Tensor.sort(x, 0), (3,), torch=lambda x: torch.sort(x, 0)),
]
