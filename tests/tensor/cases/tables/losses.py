"""Losses: labels and probabilities, reductions, weights, labels that are ignored."""

from __future__ import annotations

from typing import Any

from tests.peers import torch
from tests.tensor.cases.case import FLOATS, case, index, uniform, values

F = torch.nn.functional
INF = float("inf")
REDUCTIONS = ("mean", "sum", "none")
SHAPES: list[tuple[Any, Any]] = [((6, 5), (6,)), ((2, 5, 3), (2, 3)), ((2, 5, 3, 2), (2, 3, 2)),
                                 ((5,), ())]  # fmt: skip
HUGE = values([9e4, -9e4, 0.0], [-9e4, -9e4, -9e4], [100.0, 0.0, -100.0])
CERTAIN = values(0.0, 1.0, 0.0, 1.0, 1e-30, 0.5)


def last(logits: Any) -> Any:
    """Return the classes, torch's axis 1, from the last axis."""
    return logits.movedim(-1, 1) if logits.ndim > 1 else logits


# fmt: off
CASES = [
    *(case("cross_entropy", lambda x, y, r=how, s=share: x.cross_entropy(y, r, s), logits,
           index(labels, 5),
           torch=lambda x, y, r=how, s=share: F.cross_entropy(x, y, reduction=r, label_smoothing=s),
           dtypes=FLOATS, ulps=8)
      for logits, labels in SHAPES for how in REDUCTIONS for share in (0.0, 0.1)),
    *(case("cross_entropy", lambda x, y, r=how, s=share: x.cross_entropy(y.softmax(1), r, s),
           (6, 5), (6, 5),
           torch=lambda x, y, r=how, s=share: F.cross_entropy(
               x, y.softmax(1), reduction=r, label_smoothing=s),
           ulps=16)
      for how in REDUCTIONS for share in (0.0, 0.3)),
    case("cross_entropy", lambda x, y: x.cross_entropy(y, "none"), HUGE, index((3,), 3),
         torch=lambda x, y: F.cross_entropy(x, y, reduction="none")),
    case("cross_entropy", lambda x, y: x.cross_entropy(y, "none"), values([0.0, -INF, 1.0]),
         index((1,), 1), torch=lambda x, y: F.cross_entropy(x, y, reduction="none")),
    *(case("sparse_categorical_crossentropy",
           lambda x, y, r=how, i=ignored: x.sparse_categorical_crossentropy(y, i, 0.1, r), logits,
           index(labels, 5),
           torch=lambda x, y, r=how, i=ignored: F.cross_entropy(
               last(x), y, ignore_index=i, label_smoothing=0.1, reduction=r), ulps=8)
      for logits, labels in (((6, 5), (6,)), ((2, 3, 5), (2, 3)))
      for how in REDUCTIONS for ignored in (-1, 2)),
    case("sparse_categorical_crossentropy",
         lambda x, y: x.sparse_categorical_crossentropy(y - 1), (9, 5), index((9,), 5),
         torch=lambda x, y: F.cross_entropy(x, y - 1, ignore_index=-1), ulps=8),
    *(case("nll_loss", lambda x, y, w, r=how, i=ignored: x.nll_loss(y, w, i, r), logits,
           index(labels, 5), uniform((5,), 0.5, 2),
           torch=lambda x, y, w, r=how, i=ignored: F.nll_loss(
               x, y, w, ignore_index=-100 if i is None else i, reduction=r), ulps=8,
           has_gradient=False)
      for logits, labels in SHAPES for how in REDUCTIONS for ignored in (None, 3)),
    *(case("nll_loss", lambda x, y, r=how, i=ignored: x.nll_loss(y, None, i, r), logits,
           index(labels, 5), torch=lambda x, y, r=how, i=ignored: F.nll_loss(
               x, y, ignore_index=-100 if i is None else i, reduction=r))
      for logits, labels in SHAPES for how in REDUCTIONS for ignored in (None, 3)),
    case("nll_loss", lambda x, y: x.nll_loss(y), (6, 5), index((6,), 5), torch=F.nll_loss,
         dtypes=FLOATS),
    case("nll_loss", lambda x, y: x.nll_loss(y, ignore_index=1), (4, 5), index((4,), 2, 1),
         torch=lambda x, y: F.nll_loss(x, y, ignore_index=1)),
    *(case("binary_crossentropy", lambda x, y, r=how: x.binary_crossentropy(y, r),
           uniform((3, 4), 0.01, 0.99), uniform((3, 4), 0, 1),
           torch=lambda x, y, r=how: F.binary_cross_entropy(x, y, reduction=r),
           dtypes=("float32", "float64"), ulps=8)
      for how in REDUCTIONS),
    case("binary_crossentropy", lambda x, y: x.binary_crossentropy(y, "none"), CERTAIN,
         values(0.0, 1.0, 1.0, 0.0, 1.0, 0.25),
         torch=lambda x, y: F.binary_cross_entropy(x, y, reduction="none"), has_gradient=False),
    *(case("binary_crossentropy_logits",
           lambda x, y, w, r=how: x.binary_crossentropy_logits(y, r, w), (3, 4),
           uniform((3, 4), 0, 1), uniform((4,), 0.5, 2),
           torch=lambda x, y, w, r=how: F.binary_cross_entropy_with_logits(
               x, y, reduction=r, pos_weight=w), dtypes=FLOATS, ulps=8, has_gradient=False)
      for how in REDUCTIONS),
    *(case("binary_crossentropy_logits",
           lambda x, y, r=how: x.binary_crossentropy_logits(y, reduction=r),
           values(0.0, 300.0, -300.0, 300.0, -300.0, 1e-3), values(0.0, 0.0, 0.0, 1.0, 1.0, 0.5),
           torch=lambda x, y, r=how: F.binary_cross_entropy_with_logits(x, y, reduction=r))
      for how in REDUCTIONS),
]
# fmt: on
