"""SGD, LARS (the step scaled for each parameter) and Muon (the step made orthogonal).

Adam, AdamW and LAMB: steps scaled by averages of the gradients and of their squares.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.base.dtypes import dtypes
from workbench.base.errors import OptimizerError
from workbench.nn.optim.optimizer import Optimizer, buffer, not_negative
from workbench.tensor.operands.arguments import flag, whole
from workbench.tensor.operands.refuse import where
from workbench.tensor.tensor import Tensor

_COEFFICIENTS = (3.4445, -4.775, 2.0315)
"""Of the polynomial of Newton and Schulz that Muon iterates."""


class LARS(Optimizer):
    """SGD with a learning rate of its own for each parameter.

    The gradient is scaled by `tcoef` * |parameter| / (|gradient| + `weight_decay` * |parameter|),
    or by 1 where `tcoef` is 0. `classic`: the momentum adds up steps, not gradients, so that it
    remembers past learning rates. `pre_wd`: `weight_decay` times the parameter is added to the
    gradient, else to the step. `ns_steps` and `ns_coefficients` are Muon's.

    Source: You, Gitman and Ginsburg 2017, "Large batch training of convolutional networks".
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        momentum: float = 0.9,
        weight_decay: float = 1e-4,
        ns_steps: int = 0,
        ns_coefficients: Sequence[float] | None = None,
        nesterov: bool = False,
        classic: bool = True,
        pre_wd: bool = True,
        tcoef: float = 0.001,
        device: str | None = None,
        fused: bool = False,
    ):
        super().__init__(params, lr, device, fused)
        self.momentum = not_negative(momentum, "momentum")
        self.wd = not_negative(weight_decay, "weight_decay")
        self.ns_steps = whole(ns_steps, "ns_steps", 0)
        self.ns_coefficients = None if ns_coefficients is None else tuple(ns_coefficients)
        self.nesterov, self.classic = (flag(nesterov, "nesterov"), flag(classic, "classic"))
        self.pre_wd = flag(pre_wd, "pre_wd")
        self.tcoef = not_negative(tcoef, "tcoef")
        self.b = self._zeros() if self.momentum else []

    def _state(self) -> list[Tensor]:
        return self.b

    def _of(self, place: int, param: Tensor, grad: Tensor) -> Tensor:
        rate = self.lr * self._trust(param, grad) if self.tcoef else self.lr
        step = grad + self.wd * param if self.pre_wd and self.wd else grad
        step = step * rate if self.classic else step
        if self.momentum:
            velocity = self.b[place]
            velocity.assign(self.momentum * velocity + step)
            step = step + self.momentum * velocity if self.nesterov else velocity
        if self.ns_coefficients is not None:
            matrix = step.reshape(step.shape[0], -1)
            matrix = matrix.newton_schulz(self.ns_steps, self.ns_coefficients)
            step = matrix.reshape(step.shape)
        step = step if self.classic else step * rate
        return step if self.pre_wd or not self.wd else step + self.wd * self.lr * param

    def _trust(self, param: Tensor, grad: Tensor) -> Tensor:
        """Return the factor of a parameter; 1 where it, or its gradient, is 0."""
        size, slope = norm(param), norm(grad)
        ratio = self.tcoef * size / (slope + self.wd * size)
        return ((size > 0) & (slope > 0)).where(ratio, 1.0)


def SGD(
    params: Sequence[Tensor],
    lr: float = 0.001,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
    classic: bool = False,
    device: str | None = None,
    fused: bool = False,
) -> LARS:
    """Return the optimiser parameter -= lr * (gradient + weight_decay * parameter), with momentum.

    Source: Polyak 1964; Nesterov 1983.
    """
    return LARS(
        params, lr, momentum, weight_decay, 0, None, nesterov, classic,
        pre_wd=True, tcoef=0.0, device=device, fused=fused,
    )  # fmt: skip


def Muon(
    params: Sequence[Tensor],
    lr: float = 0.001,
    momentum: float = 0.95,
    weight_decay: float = 0.1,
    ns_steps: int = 5,
    ns_coefficients: Sequence[float] = _COEFFICIENTS,
    nesterov: bool = True,
    device: str | None = None,
    fused: bool = False,
) -> LARS:
    """Return the optimiser whose steps are SGD's, as matrices made nearly orthogonal.

    Shapes: parameters have two axes or more; all but the first are the columns.
    Errors: OptimizerError for parameters of fewer axes, or `fused`.
    Source: Jordan and others 2024, "Muon: an optimizer for hidden layers in neural networks".
    """
    if flag(fused, "Muon: fused"):
        because = "it needs each parameter as a matrix of its own"
        raise OptimizerError("Muon cannot be fused", because, "fused=False", where())
    optimizer = LARS(
        params, lr, momentum, weight_decay, ns_steps, ns_coefficients, nesterov,
        classic=False, pre_wd=False, tcoef=0.0, device=device,
    )  # fmt: skip
    for param in optimizer.params:
        if param.ndim < 2:
            raise OptimizerError(
                f"Muon cannot change a parameter of shape {param.shape}",
                "its steps are matrices, and a parameter must have two axes or more",
                "AdamW for the others, and an OptimizerGroup",
                where(),
            )
    return optimizer


def norm(tensor: Tensor) -> Tensor:
    """Return the square root of the sum of squares."""
    return tensor.square().sum().sqrt()


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
