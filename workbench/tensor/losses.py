"""Losses: binary, classification, and the reduction over samples.

Sections: Reductions of the losses of many samples; Binary losses; Classification losses.
"""

from __future__ import annotations

from typing import Self, TypeVar

from workbench.execution.memory_plan import values_at_hand
from workbench.ir.node.ops import Ops
from workbench.tensor.base import Base
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.operands.arguments import (
    axis_error,
    choice,
    dtype_error,
    number,
    shape_error,
    whole,
)
from workbench.tensor.operands.axes import iota

# --------------------------------------------------------------------------------------------------
# Reductions of the losses of many samples: the argument `reduction` of every loss.

T = TypeVar("T", bound=Base)


def reduction_of(reduction: str, what: str) -> str:
    """Return `reduction` if it is "mean", "sum" or "none". Errors: DTypeError for another value.

    `what` names the loss.
    """
    return choice(reduction, f"{what}: reduction", ("mean", "sum", "none"))


def reduced(losses: T, reduction: str, weights: T | None = None) -> T:
    """Return the mean or the sum of all losses, or for "none" the losses. A mean is divided by the
    sum of `weights`, by which the losses are multiplied already."""
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    return losses.mean() if weights is None else losses.sum() / weights.sum()


# --------------------------------------------------------------------------------------------------
# Binary losses: the negative logarithm of the probability of the true class of two.

LEAST_LOG = -100.0
"""Least logarithm: smaller ones count as this, so that a loss is finite, as in PyTorch."""


class BinaryLosses(Base):
    """binary_crossentropy, binary_crossentropy_logits.

    Shapes: `Y`, which has the probability of "true" for each element of self, broadcasts with it.
    `reduction` is "mean", "sum", or "none" for a loss of each element.
    Dtypes: integers and bools are taken as float32, and low-precision floats computed in float32.
    """

    __slots__ = ()

    def binary_crossentropy(self, Y: Self, reduction: str = "mean") -> Self:
        """Return -Y log(self) - (1 - Y) log(1 - self) of probabilities from 0 to 1, where a
        logarithm is at least -100."""
        how = reduction_of(reduction, "binary_crossentropy")
        chance, truth = self._wide(), self._lift(Y, "compare")._wide()
        yes, no = chance._bounded_log(), (1 - chance)._bounded_log()
        losses = (truth * yes + (1 - truth) * no).neg()
        return reduced(losses, how).cast(self._fraction())

    def binary_crossentropy_logits(
        self, Y: Self, reduction: str = "mean", pos_weight: Self | None = None
    ) -> Self:
        """Return `binary_crossentropy` of sigmoid(self), without its loss of precision.

        `pos_weight`, which broadcasts, is a factor of the losses of "true".
        Rewrite: -> (1 - Y) x + (1 + (pos_weight - 1) Y) log(1 + e ** -x)
        """
        how = reduction_of(reduction, "binary_crossentropy_logits")
        x, truth = self._wide(), self._lift(Y, "compare")._wide()
        losses = x.neg()._function(Ops.SOFTPLUS)
        if pos_weight is not None:
            factor = self._lift(pos_weight, "weigh")._wide()
            losses = losses * ((factor - 1) * truth + 1)
        losses = losses + (1 - truth) * x
        return reduced(losses, how).cast(self._fraction())

    def _bounded_log(self) -> Self:
        """Return the logarithm, at least `LEAST_LOG`, with the gradient 0 at 0."""
        is_zero = self.eq(0)
        logs = is_zero.where(1.0, self).log()
        return is_zero.where(LEAST_LOG, logs.maximum(LEAST_LOG))


# --------------------------------------------------------------------------------------------------
# Classification losses: the logarithm of the probability of the right class.


class ClassLosses(Base):
    """cross_entropy, sparse_categorical_crossentropy, nll_loss.

    Shapes: the classes are one axis of self: axis 1 (axis 0 of a vector), and the last one in
    `sparse_categorical_crossentropy`; labels, integers, have the other axes. `reduction` is
    "mean", "sum", or "none" for a loss of each sample.
    Dtypes: integers and bools are taken as float32, and low-precision floats computed in float32.
    A label outside of the classes, unless it is ignored, is an AxisError; it has the loss NaN where
    the labels must be computed first.
    """

    __slots__ = ()

    def cross_entropy(self, Y: Self, reduction: str = "mean", label_smoothing: float = 0.0) -> Self:
        """Return minus the logarithm of the softmax of self at the labels `Y`.

        Shapes: a `Y` of self's shape has a probability for each class; the loss is then the sum of
        the logarithms, weighted by these. `label_smoothing` is the share of probability that is
        given to all classes equally.
        Errors: ShapeError for another shape, or a `label_smoothing` outside of 0 to 1; DTypeError
        for labels that are not integers, or another `reduction`.
        """
        how = reduction_of(reduction, "cross_entropy")
        share = _share(label_smoothing, "cross_entropy")
        targets, axis = self._lift(Y, "compare"), self._class_axis("cross_entropy")
        logs = self._wide().log_softmax(axis)
        if targets.shape != self.shape:
            return self._label_loss("cross_entropy", logs, targets, axis, how, share)
        goal = targets.cast(logs.dtype)
        if share:
            goal = goal * (1 - share) + share / self.shape[axis]
        losses = (logs * goal).sum(axis).neg()
        return reduced(losses, how).cast(self._fraction())

    def sparse_categorical_crossentropy(
        self, Y: Self, ignore_index: int = -1, label_smoothing: float = 0.0, reduction: str = "mean"
    ) -> Self:
        """Return minus the logarithm of the softmax of self along its last axis at the labels `Y`.

        A sample whose label is `ignore_index` has no loss, and does not count in a mean.
        Errors: as `cross_entropy`.
        """
        what = "sparse_categorical_crossentropy"
        how, share = reduction_of(reduction, what), _share(label_smoothing, what)
        ignored, labels = (whole(ignore_index, f"{what}: ignore_index"), self._lift(Y, "compare"))
        axis = self._class_axis(what, last=True)
        logs = self._wide().log_softmax(axis)
        return self._label_loss(what, logs, labels, axis, how, share, ignored)

    def nll_loss(
        self,
        Y: Self,
        weight: Self | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> Self:
        """Return minus self, which has logarithms of probabilities, at the labels `Y`.

        `weight` has a factor for each class; a mean is weighted by them. A sample whose label is
        `ignore_index` has no loss, and does not count in a mean.
        Errors: as `cross_entropy`, and ShapeError for a weight of another shape.
        """
        how, labels = reduction_of(reduction, "nll_loss"), self._lift(Y, "compare")
        ignored = None if ignore_index is None else whole(ignore_index, "nll_loss: ignore_index")
        axis, logs = self._class_axis("nll_loss"), self._wide()
        factors = None if weight is None else self._lift(weight, "weigh")
        return self._label_loss("nll_loss", logs, labels, axis, how, 0, ignored, factors)

    def _label_loss(
        self,
        what: str,
        logs: Self,
        labels: Self,
        axis: int,
        how: str,
        share: float = 0.0,
        ignored: int | None = None,
        factors: Self | None = None,
    ) -> Self:
        """Return the reduced loss of logarithms `logs` at `labels`."""
        _check_labels(what, self, labels, axis)
        count = self.shape[axis]
        _refuse_labels_outside(what, labels, count, ignored)
        column = (count,) + (1,) * (self.ndim - 1 - axis)
        is_label = labels.unsqueeze(axis).eq(self._with(reshaped(iota(count), column)))
        # Chosen, not multiplied: the logarithm of an impossible class is infinite.
        losses = is_label.where(logs, 0.0).sum(axis).neg()
        losses = (labels.ge(0) & labels.lt(count)).where(losses, float("nan"))
        if share:
            losses = losses * (1 - share) - logs.mean(axis) * share
        weights = None
        if factors is not None:
            _check_factors(what, factors, count)
            weights = is_label.where(factors.reshape(column), 0.0).sum(axis).cast(logs.dtype)
            losses = losses * weights
        if ignored is not None:
            is_counted = labels.ne(ignored)
            losses = is_counted.where(losses, 0.0)
            ones = is_counted.cast(logs.dtype)
            weights = ones if weights is None else is_counted.where(weights, 0.0)
        return reduced(losses, how, weights).cast(self._fraction())

    def _class_axis(self, what: str, last: bool = False) -> int:
        if not self.ndim:
            raise shape_error(
                f"{what}: a scalar has no classes",
                "the classes are an axis of the tensor",
                "a tensor of shape (samples, classes)",
            )
        return self.ndim - 1 if last else min(1, self.ndim - 1)


def _share(label_smoothing: float, what: str) -> float:
    share = number(label_smoothing, f"{what}: label_smoothing")
    if not 0 <= share <= 1:
        raise shape_error(f"{what}: label_smoothing = {share}", "it is a share, from 0 to 1", "0.1")
    return share


def _check_labels(what: str, logs: Base, labels: Base, axis: int) -> None:
    shape = logs.shape[:axis] + logs.shape[axis + 1 :]
    if labels.shape != shape:
        raise shape_error(
            f"{what}: labels of shape {labels.shape} do not fit shape {logs.shape}",
            f"there is a label for each sample, and the classes are axis {axis}",
            f"labels of shape {shape}",
        )
    if not labels.dtype.is_int:
        raise dtype_error(
            f"{what}: labels of {labels.dtype}",
            "a label is the number of a class, an integer",
            ".int() first"
            + (", or probabilities of the shape of the tensor" if what == "cross_entropy" else ""),
        )


def _refuse_labels_outside(what: str, labels: Base, count: int, ignored: int | None) -> None:
    """Raise AxisError for a label that no class has, in labels that need not be computed."""
    values = values_at_hand(labels.uop) if labels.numel() else None
    if values is None:
        return
    is_outside = (values < 0) | (values >= count)
    if ignored is not None:
        is_outside &= values != ignored
    if is_outside.any():
        label = int(values[is_outside][0])
        by_name = "nll_loss of log_softmax, " if what == "cross_entropy" else ""
        raise axis_error(
            f"{what}: label {label} is out of range",
            f"there are {count} classes, and labels count from 0",
            f"{by_name}ignore_index={label} if such samples have no class",
        )


def _check_factors(what: str, factors: Base, count: int) -> None:
    if factors.shape != (count,):
        raise shape_error(
            f"{what}: a weight of shape {factors.shape}",
            f"it has a factor for each of {count} classes",
            f"a weight of shape ({count},)",
        )
