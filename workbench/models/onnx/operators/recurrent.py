"""Recurrent networks: LSTM, GRU and RNN, their steps unrolled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.base.dtypes import dtypes
from workbench.base.errors import ModelError
from workbench.models.onnx.operators import elementwise
from workbench.models.onnx.table import row
from workbench.tensor.tensor import Tensor

MOST_STEPS = 10_000
"""The maximal number of steps that are unrolled."""
Activation = Callable[[Tensor], Tensor]
Step = Callable[[Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]
"""The states after a step, for its inputs' products with the weights and the states before. The
first state is the output."""

DEFAULTS: dict[str, tuple[float, float]] = {
    "Affine": (1.0, 0.0),
    "Elu": (1.0, 0.0),
    "HardSigmoid": (0.2, 0.5),
    "LeakyRelu": (0.01, 0.0),
    "ScaledTanh": (1.0, 1.0),
    "ThresholdedRelu": (1.0, 0.0),
}
"""The parameters alpha and beta of activations that have them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The attributes that all recurrent networks have."""

    activations: Sequence[str] = ()
    activation_alpha: Sequence[float] = ()
    activation_beta: Sequence[float] = ()
    clip: float = 0.0
    direction: str = "forward"
    hidden_size: int = 0
    layout: int = 0

    @property
    def directions(self) -> tuple[bool, ...]:
        """Whether each direction goes backwards."""
        kinds = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
        if self.direction not in kinds:
            raise ModelError("cannot run a network", f"there is no direction {self.direction!r}")
        return kinds[self.direction]

    def functions(self, direction: int, count: int) -> list[Activation]:
        """Return the activations of a direction."""
        alphas, betas = iter(self.activation_alpha), iter(self.activation_beta)
        functions = []
        for name in self.activations:
            alpha, beta = DEFAULTS.get(name, (0.0, 0.0))
            if name in DEFAULTS:
                alpha = next(alphas, alpha)
                beta = next(betas, beta) if beta or name == "Affine" else beta
            functions.append(_activation(name, alpha, beta))
        return functions[direction * count :][:count]

    def clipped(self, x: Tensor) -> Tensor:
        return x.clamp(-self.clip, self.clip) if self.clip else x


def _activation(name: str, alpha: float, beta: float) -> Activation:
    functions: dict[str, Activation] = {
        "Affine": lambda x: x * alpha + beta,
        "Elu": lambda x: elementwise.elu(x, alpha=alpha).cast(x.dtype),
        "HardSigmoid": lambda x: elementwise.hard_sigmoid(x, alpha=alpha, beta=beta),
        "LeakyRelu": lambda x: elementwise.leaky_relu(x, alpha=alpha),
        "Relu": lambda x: x.relu(),
        "ScaledTanh": lambda x: (x * beta).tanh() * alpha,
        "Sigmoid": lambda x: x.sigmoid(),
        "Softplus": lambda x: elementwise.softplus(x).cast(x.dtype),
        "Softsign": lambda x: x / (x.abs() + 1),
        "Tanh": lambda x: x.tanh(),
        "ThresholdedRelu": lambda x: elementwise.thresholded_relu(x, alpha=alpha),
    }
    if name not in functions:
        raise ModelError("cannot run a network", f"there is no activation {name!r}")
    return functions[name]


@row("RNN", since=7, shared=Settings)
def rnn(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    initial_h: Tensor | None = None,
    *,
    activations: Sequence[str] = ("Tanh", "Tanh"),
    **options: Any,
) -> Any:
    settings = Settings(activations, **options)

    def step_of(place: int) -> tuple[Any, Step]:
        (f,) = settings.functions(place, 1)

        def step(products: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return (f(settings.clipped(products + states[0] @ r[place].T)),)

        return _biases(b, place), step

    return _run(settings, x, w, r.shape[-1], lengths, (initial_h,), step_of)


@row("GRU", since=7, shared=Settings)
def gru(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    initial_h: Tensor | None = None,
    *,
    activations: Sequence[str] = ("Sigmoid", "Tanh", "Sigmoid", "Tanh"),
    linear_before_reset: int = 0,
    **options: Any,
) -> Any:
    settings = Settings(activations, **options)
    size = r.shape[-1]

    def step_of(place: int) -> tuple[Any, Step]:
        f, g = settings.functions(place, 2)
        gates, candidate = r[place][: 2 * size].T, r[place][2 * size :].T
        zeros = Tensor.zeros(6 * size, dtype=x.dtype)
        bias = zeros if b is None else b[place]
        # The bias of the candidate's state is inside of the reset if that is after the product.
        inner = bias[5 * size :]
        outer = bias[: 2 * size] + bias[3 * size : 5 * size]
        rest = (
            bias[2 * size : 3 * size] if linear_before_reset else bias[2 * size : 3 * size] + inner
        )

        def step(products: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            (h,) = states
            both = f(settings.clipped(products[:, : 2 * size] + h @ gates))
            update, reset = both[:, :size], both[:, size:]
            if linear_before_reset:
                recurrent = reset * (h @ candidate + inner)
            else:
                recurrent = (reset * h) @ candidate
            new = g(settings.clipped(products[:, 2 * size :] + recurrent))
            return (new + update * (h - new),)

        return outer.cat(rest), step

    return _run(settings, x, w, size, lengths, (initial_h,), step_of)


@row("LSTM", since=7, shared=Settings)
def lstm(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    initial_h: Tensor | None = None,
    initial_c: Tensor | None = None,
    p: Tensor | None = None,
    *,
    activations: Sequence[str] = ("Sigmoid", "Tanh", "Tanh", "Sigmoid", "Tanh", "Tanh"),
    input_forget: int = 0,
    **options: Any,
) -> Any:
    settings = Settings(activations, **options)
    size = r.shape[-1]

    def step_of(place: int) -> tuple[Any, Step]:
        f, g, h_of = settings.functions(place, 3)
        recurrent = r[place].T

        def peep(gate: int, c: Tensor) -> Tensor | int:
            return 0 if p is None else p[place][gate * size : (gate + 1) * size] * c

        def step(products: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            h, c = states
            gates = products + h @ recurrent
            i, o, forget, new = (gates[:, n * size : (n + 1) * size] for n in range(4))
            forget = f(settings.clipped(forget + peep(2, c)))
            enter = 1 - forget if input_forget else f(settings.clipped(i + peep(0, c)))
            c = forget * c + enter * g(settings.clipped(new))
            return f(settings.clipped(o + peep(1, c))) * h_of(settings.clipped(c)), c

        return _biases(b, place), step

    return _run(settings, x, w, size, lengths, (initial_h, initial_c), step_of)


def _biases(b: Tensor | None, place: int) -> Tensor | int:
    """Return the sum of the biases of the input and of the state."""
    if b is None:
        return 0
    half = b.shape[-1] // 2
    return b[place][:half] + b[place][half:]


def _run(
    settings: Settings,
    x: Tensor,
    w: Tensor,
    size: int,
    lengths: Tensor | None,
    initial: Sequence[Tensor | None],
    step_of: Callable[[int], tuple[Any, Step]],
) -> tuple[Tensor, ...]:
    """Return the outputs of all steps, and the last states."""
    if settings.layout:
        x = x.transpose(0, 1)
        initial = [t if t is None else t.transpose(0, 1) for t in initial]
    steps, batch = x.shape[:2]
    needed = (len(settings.directions), batch, size)
    for state in initial:
        if state is not None and state.shape != needed:
            because = f"a first state has shape {state.shape}, and the inputs' is {needed}"
            raise ModelError("cannot run a network", because, "the batch of x in each state")
    if not 0 < steps <= MOST_STEPS:
        raise ModelError("cannot run a network", f"{steps:,} steps are not 1 to {MOST_STEPS:,}")
    outputs, ends = [], []
    for place, is_reverse in enumerate(settings.directions):
        bias, step = step_of(place)
        products = x @ w[place].T + bias
        zeros = Tensor.zeros(batch, size, dtype=x.dtype)
        states = tuple(zeros if t is None else t[place] for t in initial)
        made: list[Tensor] = [zeros] * steps
        for time in range(steps)[::-1] if is_reverse else range(steps):
            new = step(products[time], states)
            made[time] = new[0]
            if lengths is not None:  # a sequence that has ended keeps its state
                goes_on = (lengths.cast(dtypes.int64) > time).unsqueeze(1)
                made[time] = goes_on.where(new[0], 0)
                new = tuple(goes_on.where(n, old) for n, old in zip(new, states, strict=True))
            states = new
        outputs.append(made[0].stack(*made[1:], dim=0))
        ends.append(states)
    y = outputs[0].stack(*outputs[1:], dim=1)
    last = [each[0].stack(*each[1:], dim=0) for each in zip(*ends, strict=True)]
    if settings.layout:
        y = y.permute((2, 0, 1, 3))
        last = [each.transpose(0, 1) for each in last]
    return (y, *last)
