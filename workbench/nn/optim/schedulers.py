"""Learning-rate schedules: each `step()` counts a step and sets the optimiser's learning rate.

The count is a tensor, so that a TinyJit replays a step that includes it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.base.dtypes import dtypes
from workbench.base.errors import OptimizerError, require
from workbench.nn.optim.optimizers import Optimizer, OptimizerGroup, not_negative
from workbench.tensor.operands.arguments import short, where, whole
from workbench.tensor.tensor import Tensor


class LRScheduler:
    """The learning rate of an optimiser as a function of the number of steps, `epoch_counter`.

    Errors: OptimizerError for a group of optimisers, and for other values.
    """

    def __init__(self, optimizer: Optimizer):
        is_group = isinstance(optimizer, OptimizerGroup)
        if is_group or not isinstance(optimizer, Optimizer):
            raise OptimizerError(
                f"cannot make {type(self).__name__} for {short(optimizer)}",
                f"it must be one optimiser, and this is {type(optimizer).__name__}",
                "an optimiser of workbench.nn.optim; for a group, a scheduler for each of it",
                where(),
            )
        self.optimizer = optimizer
        self.base_lr = float(optimizer.lr.item())
        epoch = Tensor([0], device=optimizer.device, dtype=dtypes.int32)
        self.epoch_counter = epoch.requires_grad_(False)

    def get_lr(self) -> Tensor:
        """Return the learning rate after `epoch_counter` steps, in the dtype of `optimizer.lr`."""
        raise NotImplementedError

    def _count(self) -> Tensor:
        """Return `epoch_counter` in the dtype of the learning rate."""
        return self.epoch_counter.cast(self.optimizer.lr.dtype)

    def step(self) -> None:
        """Count a step, and set the learning rate."""
        first, *others = self.schedule_step()
        first.realize(*others)

    def schedule_step(self) -> list[Tensor]:
        """Assign the values of a step, and return these tensors: the caller realizes them, for
        example with a step of the optimiser."""
        self.epoch_counter.assign(self.epoch_counter + 1)
        self.optimizer.lr.assign(self.get_lr())
        return [self.epoch_counter, self.optimizer.lr]


class LRSchedulerGroup:
    """Several schedulers as one, for an OptimizerGroup."""

    def __init__(self, *schedulers: LRScheduler):
        for each in schedulers:
            require(each, LRScheduler, "LRSchedulerGroup", "a scheduler of workbench.nn.optim")
        self.schedulers = schedulers

    def step(self) -> None:
        """Count a step for each, and set their learning rates."""
        for scheduler in self.schedulers:
            scheduler.step()


class MultiStepLR(LRScheduler):
    """The learning rate is multiplied by `gamma` at each of `milestones`, numbers of steps."""

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1):
        super().__init__(optimizer)
        self.milestones = [whole(m, "MultiStepLR: milestones", 0) for m in milestones]
        self.gamma = not_negative(gamma, "MultiStepLR: gamma")

    def get_lr(self) -> Tensor:
        count = self._count()
        rate = count.full_like(self.base_lr)
        for milestone in self.milestones:
            rate = (count >= milestone).where(rate * self.gamma, rate)
        return rate


class CosineAnnealingLR(LRScheduler):
    """From the learning rate down to `eta_min` in `T_max` steps, as half a period of a cosine, and
    back up. Source: Loshchilov and Hutter 2016, "SGDR"."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0):
        super().__init__(optimizer)
        self.T_max = whole(T_max, "CosineAnnealingLR: T_max", 1)
        self.eta_min = not_negative(eta_min, "CosineAnnealingLR: eta_min")

    def get_lr(self) -> Tensor:
        angle = self._count() * (math.pi / self.T_max)
        share = (1 + angle.cos()) / 2
        return self.eta_min + (self.base_lr - self.eta_min) * share


class OneCycleLR(LRScheduler):
    """From `max_lr` / `div_factor` up to `max_lr` in the first `pct_start` of `total_steps`, then
    down to `max_lr` / `div_factor` / `final_div_factor`, where it stays.

    `anneal_strategy` is "cos" or "linear". The optimiser gets the first learning rate at once.
    Source: Smith and Topin 2017, "Super-convergence".
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float,
        total_steps: int,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
    ):
        super().__init__(optimizer)
        if anneal_strategy not in ("cos", "linear"):
            because = f'it is "cos" or "linear", not {short(anneal_strategy)}'
            raise OptimizerError("OneCycleLR: anneal_strategy", because, "", where())
        if not 0 <= pct_start <= 1:
            because = f"it is a share, from 0 to 1, and not {short(pct_start)}"
            raise OptimizerError("OneCycleLR: pct_start", because, "0.3", where())
        steps = whole(total_steps, "OneCycleLR: total_steps", 2)
        self.max_lr = not_negative(max_lr, "OneCycleLR: max_lr")
        self.initial_lr = self.max_lr / div_factor
        self.min_lr = self.initial_lr / final_div_factor
        self.last_up, self.last = pct_start * steps - 1, steps - 1
        self.is_linear = anneal_strategy == "linear"
        optimizer.lr.assign(self.get_lr()).realize()

    def get_lr(self) -> Tensor:
        count = self._count()
        up = count / self.last_up if self.last_up else count
        down = (count - self.last_up) / (self.last - self.last_up)
        rising = self._between(self.initial_lr, self.max_lr, up.clamp(0.0, 1.0))
        falling = self._between(self.max_lr, self.min_lr, down.clamp(0.0, 1.0))
        return (count <= self.last_up).where(rising, falling)

    def _between(self, start: float, stop: float, share: Tensor) -> Tensor:
        if not self.is_linear:
            share = (1 - (share * math.pi).cos()) / 2
        return start + (stop - start) * share


class ReduceLROnPlateau(LRScheduler):
    """The learning rate is multiplied by `factor` whenever a metric has not become better for more
    than `patience` steps. Better is lower (`mode` "min") or higher ("max") than the best one by
    more than `threshold`, which is a share of that ("rel") or a difference ("abs").

    `step(metric)` needs the value of the metric, so call it outside of a TinyJit.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
    ):
        super().__init__(optimizer)
        for name, value, words in (
            ("mode", mode, ("min", "max")),
            ("threshold_mode", threshold_mode, ("rel", "abs")),
        ):
            if value not in words:
                because = f'it is "{words[0]}" or "{words[1]}", not {short(value)}'
                raise OptimizerError(f"ReduceLROnPlateau: {name}", because, "", where())
        self.mode, self.threshold_mode = mode, threshold_mode
        self.factor = not_negative(factor, "ReduceLROnPlateau: factor")
        self.threshold = not_negative(threshold, "ReduceLROnPlateau: threshold")
        self.patience = whole(patience, "ReduceLROnPlateau: patience", 0)
        self.best = math.inf if mode == "min" else -math.inf
        self.bad_epochs = 0

    def step(self, metric: float | Tensor = math.nan) -> None:
        """Count a step, after which the metric has this value."""
        value = float(metric.item() if isinstance(metric, Tensor) else metric)
        if self._is_better(value):
            self.best, self.bad_epochs = value, 0
        else:
            self.bad_epochs += 1
        self.epoch_counter.assign(self.epoch_counter + 1).realize()
        if self.bad_epochs > self.patience:
            self.bad_epochs = 0
            self.optimizer.lr.assign(self.optimizer.lr * self.factor).realize()

    def _is_better(self, value: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        if math.isinf(self.best):
            return sign * value < sign * self.best
        share = 1 - sign * self.threshold
        bound = self.best * share if self.threshold_mode == "rel" else self.best
        bound -= sign * self.threshold if self.threshold_mode == "abs" else 0.0
        return sign * value < sign * bound
