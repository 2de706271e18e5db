"""Einsum, interpolation, and tensors made of numbers."""

from __future__ import annotations

from typing import Any

from tests.peers import torch
from tests.tensor.cases.case import ALL, FLOATS, Case, case
from workbench.tensor import Tensor

functional = torch.nn.functional

EINSUMS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("i->", [(5,)]),
    ("ij->ji", [(2, 3)]),
    ("ij->j", [(2, 3)]),
    ("ii->i", [(4, 4)]),
    ("ii->", [(4, 4)]),
    ("iij->ji", [(3, 3, 2)]),
    ("ii", [(3, 3)]),
    ("ba", [(2, 3)]),
    ("i,j->ij", [(3,), (4,)]),
    ("i,i->", [(5,), (5,)]),
    ("ij,jk->ik", [(2, 3), (3, 4)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("kj,ik->ji", [(3, 4), (2, 3)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]),
    ("...ij,jk", [(2, 1, 3, 4), (4, 2)]),
    ("i...,i...->...", [(3, 2, 4), (3, 4)]),
    ("...i->...", [(2, 3)]),
    ("...", [(2, 3)]),
    ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("i,ij,j->", [(3,), (3, 4), (4,)]),
    ("ij,kj,lj->ikl", [(2, 5), (3, 5), (4, 5)]),
    ("ij,j->i", [(3, 1), (4,)]),
    ("a b , b c -> a c", [(2, 3), (3, 2)]),
    ("ijk,ilm,njm,nlk,abc->", [(2,) * 3] * 5),
    ("iji,jk->ki", [(3, 2, 3), (2, 4)]),
    ("ij,ij->ij", [(2, 3), (2, 3)]),
    ("zAb,bA->Az", [(2, 3, 4), (4, 3)]),
]


def einsum(formula: str, shapes: list[tuple[int, ...]]) -> Case:
    """Return the row of an einsum."""
    return case(
        "einsum",
        lambda *x: Tensor.einsum(formula, *x),
        *shapes,
        torch=lambda *x: torch.einsum(formula, *x),
        dtypes=(*FLOATS, "int32"),
        ulps=16,
    )


def interpolated(
    size: tuple[int, ...],
    shape: tuple[int, ...],
    mode: str,
    aligned: bool,
    dtypes: tuple[str, ...] = ("float32", "float64"),
) -> Case:
    """Return the row of an interpolation; PyTorch's linear mode has a name by the axes."""
    name = {"linear": ("linear", "bilinear", "trilinear")[len(size) - 1]}.get(mode, mode)
    corners = aligned if mode == "linear" else None
    return case(
        "interpolate",
        lambda x: x.interpolate(size, mode, aligned),
        shape,
        torch=lambda x: functional.interpolate(x, size=size, mode=name, align_corners=corners),
        dtypes=dtypes,
        ulps=64,
    )


def created(name: str, call: Any, theirs: Any, *dtypes: str) -> Case:
    """Return the row of a tensor made of numbers."""
    return case(name, call, torch=theirs, dtypes=dtypes or ("float32",), has_gradient=False)


CASES = [
    *(einsum(*row) for row in EINSUMS),
    *(
        interpolated(size, (2, 3, 5, 7), mode, aligned)
        for size in ((10, 14), (3, 4), (5, 9), (1, 1), (13, 2))
        for mode, aligned in (
            ("linear", False),
            ("linear", True),
            ("nearest", False),
            ("nearest-exact", False),
        )
    ),
    *(
        interpolated((size,), (1, 2, 6), mode, False)
        for size in (1, 4, 6, 15)
        for mode in ("linear", "nearest", "nearest-exact")
    ),
    # Places that are whole numbers but for a rounding.
    *(
        interpolated((size,), (1, 1, length), "linear", aligned, (dtype,))
        for dtype in ("float64", "float32")
        for length, size in ((3, 7), (3, 21), (5, 9), (6, 14), (7, 11), (10, 21))
        for aligned in (False, True)
    ),
    interpolated((3, 4, 5), (1, 1, 4, 3, 2), "linear", True),
    interpolated((2, 2, 5), (1, 1, 4, 3, 2), "nearest", False),
    *(
        created("arange", lambda a=a: Tensor.arange(*a), lambda a=a: torch.arange(*a))
        for a in ((5,), (2, 9), (2, 9, 3), (9, 2, -2), (0.5, 3), (0, 1, 0.25), (5, 5))
    ),
    *(
        created("linspace", lambda a=a: Tensor.linspace(*a), lambda a=a: torch.linspace(*a))
        for a in ((0, 10, 5), (-1, 1, 5), (3, 3, 4), (5, -2, 1), (0, 1, 0))
    ),
    created(
        "linspace",
        lambda: Tensor.linspace(0, 10, 4, dtype="int32"),
        lambda: torch.linspace(0, 10, 4, dtype=torch.int32),
    ),
    *(
        created("eye", lambda a=a: Tensor.eye(*a), lambda a=a: torch.eye(*a))
        for a in ((3,), (2, 4), (4, 2), (0, 3))
    ),
    created("full", lambda: Tensor.full((2, 3), 4), lambda: torch.full((2, 3), 4)),
    created("full", lambda: Tensor.full((2,), True), lambda: torch.full((2,), True)),
    *(
        case(
            "full_like",
            lambda x: x.full_like(3),
            (2, 3),
            dtypes=ALL,
            has_gradient=False,
            torch=lambda x: torch.full_like(x, 3),
        )
        for _ in (0,)
    ),
    case(
        "const_like",
        lambda x: x.const_like(3),
        (2, 3),
        dtypes=ALL,
        has_gradient=False,
        torch=lambda x: torch.full_like(x, 3),
    ),
    case(
        "zeros_like",
        lambda x: x.zeros_like(),
        (2, 3),
        dtypes=ALL,
        has_gradient=False,
        torch=torch.zeros_like,
    ),
    case(
        "zeros_like",
        lambda x: x.zeros_like(dtype="int32"),
        (2, 3),
        has_gradient=False,
        torch=lambda x: torch.zeros_like(x, dtype=torch.int32),
    ),
    case(
        "ones_like",
        lambda x: x.ones_like(),
        (2, 3),
        dtypes=ALL,
        has_gradient=False,
        torch=torch.ones_like,
    ),
    case(
        "short",
        lambda x: x.short(),
        (2, 3),
        dtypes=("float32", "int32", "bool"),
        has_gradient=False,
    ),
    case(
        "usum", lambda x, y, z: x.usum(y, z), (2, 3), (3,), (2, 1), torch=lambda x, y, z: x + y + z
    ),
    case(
        "uprod",
        lambda x, y, z: x.uprod(y, z),
        (2, 3),
        (3,),
        (2, 1),
        torch=lambda x, y, z: x * y * z,
    ),
    case(
        "sequential",
        lambda x: x.sequential([lambda t: t * 2, lambda t: t.exp()]),
        (2, 3),
        torch=lambda x: (x * 2).exp(),
    ),
]
