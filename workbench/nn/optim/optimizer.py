"""The base of optimisers: the parameters, the learning rate, and the step as one computation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from itertools import accumulate, pairwise

from workbench.base.context import TRAINING
from workbench.base.dtypes import dtypes, promote
from workbench.base.errors import OptimizerError
from workbench.tensor.operands.arguments import flag, number, short
from workbench.tensor.operands.refuse import where
from workbench.tensor.tensor import Tensor


class Optimizer:
    """Parameters that are changed by their gradients.

    `params` are the tensors of a model; those whose `requires_grad` is False are computed with a
    step, but not changed, and the others require a gradient from here on. `lr` is a tensor, of one
    element: `optimizer.lr.assign([0.1])` changes it, inside a TinyJit too. State is on `device`, or
    that of the first parameter; with `fused`, all parameters are computed as one vector.

    Dtypes: steps, state and `lr` are float32, or float64 if a parameter is, whatever the default.
    Errors: OptimizerError for no parameters, or a learning rate below 0.
    """

    def __init__(
        self, params: Sequence[Tensor], lr: float, device: str | None = None, fused: bool = False
    ):
        name, tensors = type(self).__name__, _unique(params)
        rate = not_negative(lr, f"{name}: lr")
        self.params = [t for t in tensors if t.requires_grad is not False]
        self.buffers = [t for t in tensors if t.requires_grad is False]
        if not self.params:
            because = "it has no parameters: tensors whose requires_grad is not False"
            raise OptimizerError(f"cannot make {name}", because, "", where())
        for param in self.params:
            param.requires_grad = True
        self.device = device or self.params[0].device
        self.fused = flag(fused, f"{name}: fused")
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
        first, *others = self.schedule_step()
        first.realize(*others)

    def schedule_step(self) -> list[Tensor]:
        """Make the parameters, and the state, what they are after a step, and return them: nothing
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
            # A step may be larger than a low-precision float holds.
            after = (before.cast(step.dtype) - step).cast(param.dtype)
            param.assign(after.to(param.device))
        return [*self._state(), *self.params, *self.buffers]

    def _step(self, params: list[Tensor], grads: list[Tensor]) -> list[Tensor]:
        """Return what is subtracted of each parameter; writes the state."""
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
        """Return state that is 0, for each parameter."""
        shapes = [(self._places[-1][1],)] if self.fused else [p.shape for p in self.params]
        zeros = partial(Tensor.zeros, device=self.device, dtype=self.dtype)
        return [buffer(zeros(*shape)) for shape in shapes]

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
                raise OptimizerError("cannot make OptimizerGroup", because, "", where())
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


def buffer(tensor: Tensor) -> Tensor:
    """Return a tensor as one that gradients do not change."""
    tensor.requires_grad = False
    return tensor


def not_negative(value: float, name: str) -> float:
    """Return a number. Errors: OptimizerError for one below 0, or not a number."""
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
