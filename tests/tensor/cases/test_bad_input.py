"""Bad calls of the methods that move, index, join, create, sort and select: what the error says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support import by_rows
from workbench.base.errors import AxisError, DTypeError, ShapeError, WorkbenchError
from workbench.tensor import Tensor

A = Tensor(np.ones((3, 4), np.float32))
V = Tensor(np.ones(5, np.float32))
I = Tensor([[0, 1], [2, 0], [1, 1]])  # noqa: E741 - the table reads better with short names
S = Tensor(1.5)
E = Tensor(np.ones((0, 3), np.float32))
MASK = Tensor([True, False, True])

ROWS: list[tuple[Callable[[], object], type[WorkbenchError], str]] = [
    (
        lambda: A + V,
        ShapeError,
        "cannot add: shapes (3, 4) and (5,) do not broadcast\n"
        "  because  axis 1 has 4 and 5, and only size 1 is repeated to fit",
    ),
    # joining and creating
    (lambda: Tensor.stack((A, A), A), DTypeError, "cannot stack a list and 1 more"),  # type: ignore[arg-type]
    (lambda: Tensor.cat([A], A), DTypeError, "try      Tensor.cat(*tensors, ..)"),  # type: ignore[arg-type]
    (
        lambda: Tensor.linspace(0, 1, 3, dtype="bool"),
        DTypeError,
        "linspace: dtype=bool does not fit",
    ),
    (lambda: A.full_like("a"), DTypeError, "full_like: fill_value: 'a' does not fit"),  # type: ignore[arg-type]
    (lambda: A.empty_like(dtype="float3"), DTypeError, "no tensor has the element type float3"),
    (lambda: V.meshgrid(A), ShapeError, "cannot make a grid of a tensor of shape (3, 4)"),
    (lambda: V.meshgrid(V, indexing="yx"), DTypeError, "there is no indexing 'yx'"),
    # moving
    (lambda: A.roll(1, (0, 1)), ShapeError, "because  there are 1 shifts and 2 axes"),
    (lambda: A.roll((1, 2)), ShapeError, "without dims there is one number"),
    (lambda: A.roll(1.5, 0), DTypeError, "roll: shifts: 1.5 does not fit"),
    (lambda: A.roll(1, 2), AxisError, "roll: axis=2 is out of range"),
    (lambda: A.unfold(1, 5, 1), ShapeError, "cannot unfold axis 1 of shape (3, 4) in windows of 5"),
    (lambda: A.unfold(1, 2, 0), ShapeError, "unfold: step = 0 is too small"),
    (lambda: A.diag(), ShapeError, "try      .diagonal() for the diagonal of a matrix"),
    (lambda: S.diag(), ShapeError, "cannot make a diagonal matrix of shape ()"),
    (lambda: V.diagonal(dim2=0), AxisError, "shape (5,) has no diagonal"),
    (lambda: A.diagonal(0, 1, -1), AxisError, "diagonal: dim1=1 and dim2=-1 are the same axis"),
    (lambda: V.tril(), AxisError, "cannot tril shape (5,)"),
    (lambda: A.triu(0.5), DTypeError, "triu: diagonal: 0.5 does not fit"),  # type: ignore[arg-type]
    (lambda: V.mT, AxisError, "shape (5,) has no matrices to transpose"),
    (lambda: A.pad_to(2, 4), ShapeError, "because  axis 0 has 3 elements already"),
    (lambda: A.pad_to(5), ShapeError, "for each of the 2 axes"),
    (lambda: A.shrink_to(3, -1), ShapeError, "it takes a size, 0 or more, or None"),
    (lambda: A.shrink_to(9, 4), ShapeError, "cannot shrink axis 0"),
    (lambda: A.pad((1, 1), mode="mirror"), DTypeError, "there is no mode 'mirror'"),
    (
        lambda: A.pad((4, 0), mode="reflect"),
        ShapeError,
        "cannot pad axis 1 of shape (3, 4) by (4, 0) with mode='reflect'\n"
        "  because  the elements come from the axis, which has 3 of them to copy",
    ),
    (lambda: A.pad((5, 0), mode="circular"), ShapeError, "which has 4 of them to copy"),
    (lambda: E.pad((0, 0, 1, 0), mode="replicate"), ShapeError, "which has 0 of them to copy"),
    # formulas
    (
        lambda: Tensor.einsum("ij,jk->ik", A, A),
        ShapeError,
        "cannot einsum 'ij,jk->ik'\n  because  j has the sizes 4 and 3",
    ),
    (lambda: Tensor.einsum("ij,jk", A), ShapeError, "it has 2 terms, and there are 1 operands"),
    (lambda: Tensor.einsum("ijk->i", A), ShapeError, "'ijk' names 3 axes, and shape (3, 4) has 2"),
    (lambda: Tensor.einsum("ij->ik", A), ShapeError, "k of the result is in no operand"),
    (lambda: Tensor.einsum("ij->ii", A), ShapeError, "i stands twice in the result"),
    (lambda: Tensor.einsum("ii", A), ShapeError, "i has the sizes 3 and 4 in one term"),
    (lambda: Tensor.einsum("i1->i", A), ShapeError, "'i1' must be letters, with ... once"),
    (lambda: Tensor.einsum("i->j->k", A), ShapeError, "it has two arrows"),
    (
        lambda: Tensor.einsum("...ij,...jk", Tensor.ones(2, 3, 4), Tensor.ones(3, 4, 5)),
        ShapeError,
        "an axis of ... has the sizes 2 and 3",
    ),
    (lambda: Tensor.einsum("i", 3), DTypeError, "cannot einsum int 3"),  # type: ignore[arg-type]
    (lambda: A.rearrange("a b"), ShapeError, "it has 0 arrows, and must have one"),
    (lambda: A.rearrange("a b c -> a b c"), ShapeError, "it names 3 axes, and the tensor has 2"),
    (lambda: A.rearrange("a b -> a"), ShapeError, "b stands on one side alone"),
    (lambda: A.rearrange("a a -> a"), ShapeError, "a stands twice on one side"),
    (
        lambda: A.rearrange("a (b c) -> a b c"),
        ShapeError,
        "the sizes of b and c are unknown\n  try      b=2, or its size",
    ),
    (
        lambda: A.rearrange("a (b c) -> a b c", b=3),
        ShapeError,
        "axis 1 of shape (3, 4) has 4 elements, and (b c) has 3 times as many",
    ),
    (lambda: A.rearrange("a b -> b a", c=3), ShapeError, "it has no axis 'c'"),
    (lambda: A.rearrange("(a b -> b a"), ShapeError, "a parenthesis is open at the end"),
    (lambda: A.rearrange("a ((b)) -> a b"), ShapeError, "parentheses must come in pairs"),
    (lambda: A.rearrange("a b! -> a b"), ShapeError, "'!' is not the name of an axis"),
    (
        lambda: A.rearrange("a 1 -> a"),
        ShapeError,
        "axis 1 of shape (3, 4) has 4 elements, and (1) has 1",
    ),
    (
        lambda: A.interpolate((2, 2, 2)),
        ShapeError,
        "it takes a size, 1 or more, for each of the last axes",
    ),
    (lambda: A.interpolate((0,)), ShapeError, "cannot interpolate shape (3, 4) to (0,)"),
    (lambda: A.interpolate((2,), mode="bilinear"), DTypeError, "there is no mode 'bilinear'"),
    (
        lambda: A.interpolate((2,), "nearest", True),
        DTypeError,
        "only elements that are weighed can keep the corners",
    ),
    # indexing
    (
        lambda: A[MASK, MASK],
        ShapeError,
        "cannot index shape (3, 4) with a mask of shape (3,)\n"
        "  because  axis 1 has 4 elements, and the mask 3 there",
    ),
    (lambda: A[[True, False]], ShapeError, "axis 0 has 3 elements, and the mask 2 there"),
    (lambda: A[MASK, None, 0, 0], AxisError, "there are 3 of them and 2 axes"),
    (lambda: A[[0, 3]], AxisError, "index 3 is out of range for axis 0"),
    (
        lambda: A.gather(1, [[0, 4], [0, 0], [0, 0]]),
        AxisError,
        "index 4 is out of range for axis 1",
    ),  # type: ignore[arg-type]
    (lambda: A.gather(0, Tensor([0])), ShapeError, "they have equally many axes"),
    (lambda: A.scatter(1, I, A, reduce="sum"), DTypeError, "there is no reduce 'sum'"),
    (
        lambda: A.scatter(1, I, Tensor([[1, 2]] * 3)),
        DTypeError,
        "cannot scatter int32 into float32",
    ),
    (lambda: A.scatter(1, I, Tensor([[1.0]])), ShapeError, "the index is larger than the source"),
    (lambda: A.scatter(1, I, V), ShapeError, "they have 2, 2 and 1 axes"),
    (lambda: A.scatter(1, A, 1.0), DTypeError, "cannot index a tensor with a tensor of float32"),
    (
        lambda: A.scatter(0, Tensor([[0] * 9]), 1.0),
        ShapeError,
        "only axis 0 of the index may be longer",
    ),
    (lambda: A.scatter(1, np.array([[9]]), 1.0), AxisError, "index 9 is out of range for axis 1"),  # type: ignore[arg-type]
    (lambda: A.scatter_reduce(1, I, A, "max"), DTypeError, "there is no reduce 'max'"),
    (lambda: I.scatter(1, I % 2, 2**40), DTypeError, "int32 does not hold the number"),
    # sorting and selecting
    (
        lambda: A.topk(5),
        ShapeError,
        "cannot take the 5 largest values along axis 1 of shape (3, 4)\n"
        "  because  the axis has 4 elements\n  try      topk(4, -1)",
    ),
    (lambda: A.topk(-1), ShapeError, "topk: k = -1 is too small"),
    (lambda: A.sort(2), AxisError, "sort: axis=2 is out of range"),
    (lambda: A.argsort(descending="yes"), DTypeError, "argsort: descending: 'yes' does not fit"),  # type: ignore[arg-type]
    (lambda: A.masked_fill(A, 0), DTypeError, "masked_fill: a mask of float32 does not fit"),
    (
        lambda: A.masked_select(MASK),
        ShapeError,
        "cannot select by a mask from: shapes (3,) and (3, 4) do not broadcast",
    ),
    (lambda: A.nonzero(size=-1), ShapeError, "nonzero: size = -1 is too small"),
    (lambda: A.isclose(A, rtol=-1), DTypeError, "a tolerance is 0 or more"),
    (lambda: A.isclose(V), ShapeError, "cannot compare: shapes (3, 4) and (5,)"),
    (lambda: A.sequential([abs, 3]), DTypeError, "sequential: 3 cannot be called"),  # type: ignore[list-item]
    (lambda: A.keccak("md5"), DTypeError, "cannot keccak with cfg='md5'"),
    (lambda: S.keccak(), ShapeError, "cannot keccak a tensor without axes"),
]


@by_rows(("action", "kind", "words"), ROWS, ids=range(len(ROWS)))
def test_a_bad_call_is_refused_in_words(
    action: Callable[[], object], kind: type[WorkbenchError], words: str
) -> None:
    with pytest.raises(kind) as caught:
        action()
    assert words in str(caught.value)
    assert "test_bad_input.py, line" in caught.value.where
