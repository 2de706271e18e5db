"""Reductions of the losses of many samples: the argument `reduction` of every loss."""

from __future__ import annotations

from typing import TypeVar

from workbench.tensor.base import Base
from workbench.tensor.operands.arguments import text
from workbench.tensor.operands.refuse import dtype_error

T = TypeVar("T", bound=Base)


def reduction_of(reduction: str, what: str) -> str:
    """Return the word that `reduction` is. Errors: DTypeError for another.

    `what` names the loss.
    """
    word = text(reduction, f"{what}: reduction")
    if word not in ("mean", "sum", "none"):
        raise dtype_error(
            f"{what}: there is no reduction {word!r}", 'it is "mean", "sum" or "none"'
        )
    return word


def reduced(losses: T, reduction: str, weights: T | None = None) -> T:
    """Return the mean or the sum of all losses, or themselves; a mean is weighted by `weights`, by
    which the losses are multiplied already."""
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    return losses.mean() if weights is None else losses.sum() / weights.sum()
