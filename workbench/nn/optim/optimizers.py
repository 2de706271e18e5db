"""Optimisers: their base, groups, SGD, LARS, Muon, Adam, AdamW and LAMB.

Sections: The base of optimisers; SGD, LARS (the step scaled for each parameter) and Muon (the
step made orthogonal); Adam, AdamW and LAMB.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from itertools import accumulate, pairwise

from workbench.base.context import TRAINING
from workbench.base.dtypes import dtypes, promote
from workbench.base.errors import OptimizerError
from workbench.pickles import pickled
from workbench.tensor.lazily import refuse_to_compute
from workbench.tensor.operands.arguments import flag, number, short, where, whole
from workbench.tensor.tensor import Tensor

# --------------------------------------------------------------------------------------------------
# The base of optimisers: the parameters, the learning rate, and the step as one computation.


@pickled
class Optimizer:
    """Parameters that are changed by their gradients.

    `params` are the tensors of a model. Those whose `requires_grad` is False are realized with a
    step, but not changed; the others require a gradient from here on. `lr` is a tensor of one
    element: `optimizer.lr.assign([0.1])` changes it, inside a TinyJit too. State is on `device`, or
    that of the first parameter; with `fused`, all parameters are computed as one vector.

    Dtypes: steps, `lr`, and state of parameters are float32, or float64 if a parameter is.
    Errors: OptimizerError for no parameters, other values, and a learning rate below 0 or NaN.
    """

    def __init__(
        self, params: Sequence[Tensor], lr: float, device: str | None = None, fused: bool = False
    ):
        tensors, rate = _unique(params), not_negative(lr, "lr")
        self.params = [t for t in tensors if t.requires_grad is not False]
        self.buffers = [t for t in tensors if t.requires_grad is False]
        if not self.params:
            because = "it has no parameters: tensors whose requires_grad is not False"
            hint = "nn.state.get_parameters(model)"
            raise OptimizerError("cannot make an optimiser", because, hint, where())
        for param in self.params:
            param.requires_grad = True
        self.device = device or self.params[0].device
        self.fused = flag(fused, "fused")
        self.dtype = reduce(promote, [p.dtype for p in self.params], dtypes.float32)
        self.lr = Tensor([rate], device=self.device, dtype=self.dtype)
        sizes = [param.numel() for param in self.params]
        self._places = list(pairwise(accumulate(sizes, initial=0)))

    def zero_grad(self) -> None:
        """Forget the gradients of the parameters."""
        for param in self.params:
            param.grad = None

    def step(self) -> None:
        """Change the parameters by their gradients.

        Errors: OptimizerError outside of training, and for parameters without a gradient.
        """
        hint = "explore(loss, *optimiser.schedule_step())"
        refuse_to_compute("a step of an optimiser is computed", hint=hint)  # before it writes
        first, *others = self.schedule_step()
        first.realize(*others)

    def schedule_step(self) -> list[Tensor]:
        """Assign the values after a step to the parameters and the state, and return these: nothing
        is computed before they are realized."""
        gradients = self._gradients()
        params = [param.detach().to(self.device) for param in self.params]
        if self.fused:
            flat = [Tensor.cat(*[t.flatten() for t in each]) for each in (params, gradients)]
            (whole,) = self._step(flat[:1], flat[1:])
            steps = [
                whole[start:stop].reshape(param.shape)
                for (start, stop), param in zip(self._places, params, strict=True)
            ]
        else:
            steps = self._step(params, gradients)
        for param, before, step in zip(self.params, params, steps, strict=True):
            # A low-precision float may not hold a step: only the difference is cast to it.
            after = (before.cast(step.dtype) - step).cast(param.dtype)
            param.assign(after.to(param.device))
        return [*self._state(), *self.params, *self.buffers]

    def _step(self, params: list[Tensor], grads: list[Tensor]) -> list[Tensor]:
        """Return what is subtracted from each parameter; writes the state."""
        return [
            self._of(place, param.cast(self.dtype), grad.cast(self.dtype))
            for place, (param, grad) in enumerate(zip(params, grads, strict=True))
        ]

    def _of(self, place: int, param: Tensor, grad: Tensor) -> Tensor:
        """Return the step of one parameter; writes its state."""
        raise NotImplementedError

    def _state(self) -> list[Tensor]:
        raise NotImplementedError

    def _zeros(self) -> list[Tensor]:
        """Return state of zeros, for each parameter."""
        shapes = [(self._places[-1][1],)] if self.fused else [p.shape for p in self.params]
        zeros = partial(Tensor.zeros, device=self.device, dtype=self.dtype)
        return [zeros(*shape).requires_grad_(False) for shape in shapes]

    def _gradients(self) -> list[Tensor]:
        if not TRAINING.value:
            raise OptimizerError(
                "cannot step outside of training",
                "the setting TRAINING is 0, so that layers compute what they do in use",
                "with Tensor.train(): around the step, or Context(TRAINING=1)",
                where(),
            )
        without = [
            f"number {place} of shape {param.shape}"
            for place, param in enumerate(self.params)
            if param.grad is None
        ]
        if without:
            raise OptimizerError(
                f"{len(without)} of {len(self.params)} parameters have no gradient",
                f"first {without[0]}: backward() finds those that the loss depends on",
                "loss.backward() before step(), or an optimiser of the others",
                where(),
            )
        return [p.grad.to(self.device) for p in self.params if p.grad is not None]


class OptimizerGroup(Optimizer):
    """Several optimisers as one; `group[0]` is the first."""

    def __init__(self, *optimizers: Optimizer):
        for each in optimizers:
            if not isinstance(each, Optimizer):
                because = f"they must be optimisers, and one is {type(each).__name__}"
                hint = "OptimizerGroup(SGD(a), Adam(b))"
                raise OptimizerError("cannot make OptimizerGroup", because, hint, where())
        self.optimizers = optimizers
        self.params = [param for each in optimizers for param in each.params]
        self.buffers = [tensor for each in optimizers for tensor in each.buffers]

    def __getitem__(self, place: int) -> Optimizer:
        return self.optimizers[place]

    def zero_grad(self) -> None:
        for each in self.optimizers:
            each.zero_grad()

    def schedule_step(self) -> list[Tensor]:
        return [t for each in self.optimizers for t in each.schedule_step()]


def not_negative(value: float, name: str) -> float:
    """Return a float. Errors: OptimizerError below 0 and for NaN, else those of `number`."""
    result = float(number(value, name))
    if not result >= 0:
        raise OptimizerError(f"{name} = {result:g}", "it must be 0 or more", "", where())
    return result


def _unique(params: Sequence[Tensor]) -> list[Tensor]:
    try:
        if isinstance(params, Tensor):
            raise TypeError("a tensor is not a list of tensors")
        tensors = list({id(param): param for param in params}.values())
    except TypeError:
        because = f"params is a list of tensors, and this is {type(params).__name__}"
        hint = "nn.state.get_parameters(model)"
        raise OptimizerError(f"cannot optimise {short(params)}", because, hint, where()) from None
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            because = f"parameters are tensors, and this is {type(tensor).__name__}"
            hint = "nn.state.get_parameters(model)"
            raise OptimizerError(f"cannot optimise {short(tensor)}", because, hint, where())
    return tensors


# --------------------------------------------------------------------------------------------------
# SGD, LARS (the step scaled for each parameter) and Muon (the step made orthogonal).

_COEFFICIENTS = (3.4445, -4.775, 2.0315)
"""The coefficients of the Newton-Schulz polynomial that Muon iterates."""


class LARS(Optimizer):
    """SGD with a learning rate of its own for each parameter.

    The learning rate is scaled by `tcoef` * |parameter| / (|gradient| + `weight_decay` *
    |parameter|), or by 1 where `tcoef` or a norm is 0. `classic`: the momentum adds up steps, not
    gradients, so that it includes past learning rates. `pre_wd`: `weight_decay` * parameter is
    added to the gradient, else, times `lr`, to the step. `ns_steps`, `ns_coefficients`: of Muon.

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
        """Return the factor of the learning rate; 1 where the parameter or gradient is 0."""
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
    """Return the optimiser with steps lr * (gradient + weight_decay * parameter), and momentum.

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
    """Return the optimiser whose steps are SGD's, made nearly orthogonal as matrices.

    Shapes: parameters have two axes or more; those after the first are the columns.
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


def _past_share(value: float, name: str) -> float:
    """Return a share of the past. Errors: OptimizerError unless it is from 0 up to 1: with 1 an
    average never takes a gradient, and above it grows without end."""
    share = not_negative(value, name)
    if share >= 1:
        hint = f"{name}=0.9"
        raise OptimizerError(f"{name} = {share:g}", "it must be below 1", hint, where())
    return share


def norm(tensor: Tensor) -> Tensor:
    """Return the square root of the sum of squares."""
    return tensor.square().sum().sqrt()


# --------------------------------------------------------------------------------------------------
# Adam, AdamW and LAMB: steps scaled by averages of the gradients and of their squares.


class LAMB(Optimizer):
    """Adam with the step of each parameter scaled by |parameter| / |step|; `adam`: not scaled.

    `b1` and `b2` are the shares of the past in the averages `m` of gradients and `v` of their
    squares; `b1_t` and `b2_t`, b1 and b2 to the power of the steps, correct the averages.

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
        self.b1, self.b2 = _past_share(b1, "b1"), _past_share(b2, "b2")
        self.eps, self.wd = eps, not_negative(weight_decay, "weight_decay")
        self.adam = flag(adam, "adam")
        # float64: in float32, 1 - b2_t would have three digits less at the first step.
        ones = [Tensor.ones(1, dtype=dtypes.float64, device=self.device) for _ in "12"]
        self.b1_t, self.b2_t = (one.requires_grad_(False) for one in ones)
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
    """Return Adam with lr * weight_decay * parameter added to its step.

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
    """Return the optimiser with steps lr * mean / (sqrt(mean of squares) + eps), both corrected.

    Source: Kingma and Ba 2014, "Adam: a method for stochastic optimization".
    """
    return LAMB(params, lr, b1, b2, eps, 0.0, True, device, fused)
