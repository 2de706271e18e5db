"""Adam, AdamW and LAMB: steps scaled by averages of the gradients and of their squares."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.base.dtypes import dtypes
from workbench.nn.optim.optimizer import Optimizer, buffer, not_negative
from workbench.nn.optim.sgd import norm
from workbench.tensor.operands.arguments import flag
from workbench.tensor.tensor import Tensor


class LAMB(Optimizer):
    """Adam, whose step is scaled for each parameter by |parameter| / |step|; with `adam` it is not.

    `b1` and `b2` are the shares of the past in the averages of gradients, `m`, and of their
    squares, `v`; `b1_t` and `b2_t` are their powers, by which the averages are corrected.

    Source: You and others 2019, "Large batch optimization for deep learning".
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        adam: bool = False,
        device: str | None = None,
        fused: bool = False,
    ):
        super().__init__(params, lr, device, fused)
        self.b1, self.b2 = not_negative(b1, "b1"), not_negative(b2, "b2")
        self.eps, self.wd = eps, not_negative(weight_decay, "weight_decay")
        self.adam = flag(adam, "adam")
        # In float32, 1 - b2_t would have three digits less at the first step.
        ones = [Tensor.ones(1, dtype=dtypes.float64, device=self.device) for _ in "12"]
        self.b1_t, self.b2_t = map(buffer, ones)
        self.m, self.v = self._zeros(), self._zeros()

    def _state(self) -> list[Tensor]:
        return [self.b1_t, self.b2_t, *self.m, *self.v]

    def _step(self, params: list[Tensor], grads: list[Tensor]) -> list[Tensor]:
        self.b1_t.assign(self.b1_t * self.b1)
        self.b2_t.assign(self.b2_t * self.b2)
        return super()._step(params, grads)

    def _of(self, place: int, param: Tensor, grad: Tensor) -> Tensor:
        mean, square = self.m[place], self.v[place]
        mean.assign(self.b1 * mean + (1 - self.b1) * grad)
        square.assign(self.b2 * square + (1 - self.b2) * grad * grad)
        spread = (square / (1 - self.b2_t).cast(self.dtype)).sqrt() + self.eps
        step = mean / (1 - self.b1_t).cast(self.dtype) / spread
        step = step + self.wd * param if self.wd else step
        if self.adam:
            return self.lr * step
        size, length = norm(param), norm(step)
        trust = ((size > 0) & (length > 0)).where(size / length, 1.0)
        return self.lr * trust * step


def AdamW(
    params: Sequence[Tensor],
    lr: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.01,
    device: str | None = None,
    fused: bool = False,
) -> LAMB:
    """Return Adam with a step more, lr * weight_decay * parameter.

    Source: Loshchilov and Hutter 2017, "Decoupled weight decay regularization".
    """
    return LAMB(params, lr, b1, b2, eps, weight_decay, True, device, fused)


def Adam(
    params: Sequence[Tensor],
    lr: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    device: str | None = None,
    fused: bool = False,
) -> LAMB:
    """Return the optimiser whose steps are lr * mean / (sqrt(mean of squares) + eps).

    Source: Kingma and Ba 2014, "Adam: a method for stochastic optimization".
    """
    return LAMB(params, lr, b1, b2, eps, 0.0, True, device, fused)
