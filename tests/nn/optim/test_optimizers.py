"""Optimisers over ten steps, against PyTorch's, or the papers' formulas in float64."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from tests.support import LONG
from workbench import Context, Tensor, dtypes, nn
from workbench.base.errors import DTypeError, OptimizerError
from workbench.nn import optim
from workbench.nn.state import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save

T = torch.optim
Array = np.ndarray[Any, Any]
SHAPES = [(4, 3), (3, 2, 2)]


def draws(shapes: list[tuple[int, ...]], steps: int, dtype: Any = np.float32) -> tuple[Any, Any]:
    """Return parameters, and their gradients at each step."""
    rng = np.random.default_rng(0)
    params = [rng.normal(size=s).astype(dtype) for s in shapes]
    return params, [[rng.normal(size=s).astype(dtype) for s in shapes] for _ in range(steps)]


def run(make: Callable[[Any], optim.Optimizer], params: Any, steps: Any) -> list[Array]:
    """Return the parameters after steps with these gradients."""
    tensors = [Tensor(p) for p in params]
    optimizer = make(tensors)
    with Tensor.train():
        for grads in steps:
            for tensor, grad in zip(tensors, grads, strict=True):
                tensor.grad = Tensor(grad)
            optimizer.step()
    return [t.numpy() for t in tensors]


def run_peer(make: Callable[[Any], Any], params: Any, steps: Any) -> list[Array]:
    tensors = [torch.nn.Parameter(torch.from_numpy(p.copy())) for p in params]
    optimizer = make(tensors)
    for grads in steps:
        for tensor, grad in zip(tensors, grads, strict=True):
            tensor.grad = torch.from_numpy(grad)
        optimizer.step()
    return [t.detach().numpy() for t in tensors]


ROWS: list[tuple[str, Callable[..., Any], Callable[[Any], Any]]] = [
    ("SGD", lambda p, **f: optim.SGD(p, 0.1, **f), lambda p: T.SGD(p, 0.1)),
    (
        "SGD with momentum and decay",
        lambda p, **f: optim.SGD(p, 0.1, 0.9, 0.01, **f),
        lambda p: T.SGD(p, 0.1, 0.9, weight_decay=0.01),
    ),
    (
        "SGD of Nesterov",
        lambda p, **f: optim.SGD(p, 0.1, momentum=0.8, weight_decay=0.1, nesterov=True, **f),
        lambda p: T.SGD(p, 0.1, 0.8, weight_decay=0.1, nesterov=True),
    ),
    ("Adam", lambda p, **f: optim.Adam(p, **f), lambda p: T.Adam(p)),
    (
        "Adam with other averages",
        lambda p, **f: optim.Adam(p, 0.1, 0.7, 0.8, 1e-3, **f),
        lambda p: T.Adam(p, 0.1, (0.7, 0.8), 1e-3),
    ),
    ("AdamW", lambda p, **f: optim.AdamW(p, **f), lambda p: T.AdamW(p)),
    (
        "AdamW with decay",
        lambda p, **f: optim.AdamW(p, 0.1, weight_decay=0.3, **f),
        lambda p: T.AdamW(p, 0.1, weight_decay=0.3),
    ),
]
"""Name, optimiser, PyTorch's."""


@pytest.mark.parametrize(("name", "make", "peer"), ROWS, ids=[r[0] for r in ROWS])
def test_ten_steps_are_pytorch_s(name: str, make: Any, peer: Any) -> None:
    params, steps = draws(SHAPES, 10)
    got = run(make, params, steps)
    for a, b in zip(got, run_peer(peer, params, steps), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", ["SGD of Nesterov", "AdamW with decay"])
def test_parameters_are_fused_to_one(name: str) -> None:
    params, steps = draws(SHAPES, 10)
    make, peer = next((make, peer) for row, make, peer in ROWS if row == name)
    got = run(lambda p: make(p, fused=True), params, steps)
    for a, b in zip(got, run_peer(peer, params, steps), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_low_precision_is_rounded_once(kind: str) -> None:
    """A step that a low-precision float does not hold leads to a parameter that it does."""
    params, steps = draws([(16,)], 10, np.float16)
    params = [np.tanh(p) * np.float16(30000) for p in params]
    rate = 5000.0
    got = run(lambda p: getattr(optim, kind)(p, rate), params, steps)
    assert got[0].dtype == np.float16
    want = run_peer(lambda p: getattr(T, kind)(p, rate), params, steps)
    np.testing.assert_allclose(got[0], want[0], rtol=2e-3, atol=40)


FLOATS = ("half", "bfloat16", "float64")
KINDS: dict[str, Callable[..., Any]] = {
    **{name: make for name, make, _ in ROWS},
    "LAMB": optim.LAMB, "LARS": optim.LARS, "Muon": optim.Muon,
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_a_default_float_changes_no_step(name: str) -> None:
    """Steps, state and rate have a dtype of their own: float32, or more for a float64."""
    for kind in (np.float16, np.float32, np.float64):
        params, steps = draws(SHAPES, 2, kind)
        want = run(KINDS[name], params, steps)
        for default in FLOATS:
            with Context(DEFAULT_FLOAT=default):
                got = run(KINDS[name], params, steps)
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a, b, default)
                assert a.dtype == kind, default


@pytest.mark.parametrize(("name", "make", "peer"), ROWS, ids=[r[0] for r in ROWS])
def test_parameters_of_float64_are_changed_in_float64(name: str, make: Any, peer: Any) -> None:
    params, steps = draws(SHAPES, 10, np.float64)
    got = run(make, params, steps)
    for a, b in zip(got, run_peer(peer, params, steps), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-14)


LEARNERS = ("SGD", "LARS", "Adam", "AdamW", "LAMB", "Muon")


@pytest.mark.parametrize(
    ("name", "default"), [*(product(LEARNERS, FLOATS) if LONG else zip(LEARNERS, cycle(FLOATS)))]
)
def test_a_model_of_the_default_float_learns(name: str, default: str) -> None:
    """Layers with running statistics, a loss and an optimiser, all made under a default."""
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(8, 4)), Tensor(rng.integers(0, 3, 8))
    losses = []
    with Context(DEFAULT_FLOAT=default), Tensor.train():
        Tensor.manual_seed(0)
        first, last = nn.Linear(4, 6, bias=False), nn.Linear(6, 3, bias=False)
        between = nn.BatchNorm(6)
        weights = [first.weight, last.weight]
        rate = 4.0 if name == "LARS" else 0.05
        optimizer = getattr(optim, name)(weights, lr=rate)
        for _ in range(4):
            optimizer.zero_grad()
            y = last(between(first(Tensor(x).cast(dtypes.default_float))).relu())
            loss = y.cross_entropy(labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        kinds = {t.dtype for t in (*weights, loss, between.running_var)}
        assert kinds == {dtypes.default_float} and losses[-1] < losses[0]
        assert np.isfinite(between.running_var.numpy()).all()


def norm(x: Array) -> Any:
    return np.sqrt((x * x).sum())


def lars(params: Any, steps: Any, classic: bool) -> list[Array]:
    """LARS by its paper; `classic`: momentum of steps."""
    rate, momentum, decay, trust = 0.5, 0.9, 0.01, 0.02
    values = [p.astype(np.float64) for p in params]
    velocity = [np.zeros_like(v) for v in values]
    for grads in steps:
        for n, grad in enumerate(grads):
            own = trust * norm(values[n]) / (norm(grad) + decay * norm(values[n]))
            step = grad + decay * values[n]
            scale = rate * own
            velocity[n] = momentum * velocity[n] + (scale * step if classic else step)
            values[n] = values[n] - (velocity[n] if classic else scale * velocity[n])
    return values


@pytest.mark.parametrize("classic", [True, False])
def test_lars_is_its_paper_s(classic: bool) -> None:
    params, steps = draws(SHAPES, 10)
    got = run(lambda p: optim.LARS(p, 0.5, 0.9, 0.01, classic=classic, tcoef=0.02), params, steps)
    for a, b in zip(got, lars(params, steps, classic), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_lamb_is_its_paper_s() -> None:
    params, steps = draws(SHAPES, 10)
    values = [p.astype(np.float64) for p in params]
    mean, square = ([np.zeros_like(v) for v in values] for _ in range(2))
    for t, grads in enumerate(steps, 1):
        for n, grad in enumerate(grads):
            mean[n] = 0.9 * mean[n] + 0.1 * grad
            square[n] = 0.999 * square[n] + 0.001 * grad.astype(np.float64) ** 2
            step = mean[n] / (1 - 0.9**t) / (np.sqrt(square[n] / (1 - 0.999**t)) + 1e-6)
            step = step + 0.1 * values[n]
            values[n] = values[n] - 0.02 * norm(values[n]) / norm(step) * step
    got = run(lambda p: optim.LAMB(p, 0.02, weight_decay=0.1), params, steps)
    for a, b in zip(got, values, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [optim.LAMB, optim.LARS])
def test_a_parameter_of_zeros_is_changed(kind: Any) -> None:
    zeros, ones = np.zeros(3, np.float32), np.ones(3, np.float32)
    (got,) = run(lambda p: kind(p, 0.1), [zeros], [[ones]])
    assert (got < 0).all()


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (6, 2, 2)])
def test_muon_makes_steps_orthogonal(shape: tuple[int, ...]) -> None:
    params, steps = draws([shape], 10)
    a, b, c = 3.4445, -4.775, 2.0315
    value = params[0].astype(np.float64)
    velocity = np.zeros_like(value)
    for (grad,) in steps:
        velocity = 0.95 * velocity + grad
        x = (grad + 0.95 * velocity).reshape(shape[0], -1)
        x = x / (norm(x) + 1e-7)
        wide = x.T if x.shape[0] > x.shape[1] else x
        for _ in range(5):
            square = wide @ wide.T
            wide = a * wide + (b * square + c * square @ square) @ wide
        x = wide.T if x.shape[0] > x.shape[1] else wide
        value = value - 0.02 * (x.reshape(shape) + 0.1 * value)
    (got,) = run(lambda p: optim.Muon(p, 0.02), params, steps)
    np.testing.assert_allclose(got, value, rtol=1e-4, atol=1e-4)


def test_muon_of_a_square_matrix_is_near_pytorch_s_in_bfloat16() -> None:
    params, steps = draws([(6, 6)], 10)
    (got,) = run(lambda p: optim.Muon(p, 0.02), params, steps)
    (want,) = run_peer(lambda p: T.Muon(p, 0.02, weight_decay=0.1), params, steps)
    np.testing.assert_allclose(got, want, atol=0.02)


def test_parameters_are_taken_once_and_buffers_left_alone() -> None:
    weight, state = Tensor([1.0, 2.0]), nn.BatchNorm(2)
    assert state.weight is not None and state.bias is not None
    assert weight.requires_grad is None
    optimizer = optim.SGD([weight, weight, *get_parameters(state)], 1.0)
    assert optimizer.params[0] is weight and len(optimizer.params) == 3
    assert weight.requires_grad is True
    assert {id(b) for b in optimizer.buffers} == {
        id(t) for t in (state.num_batches_tracked, state.running_mean, state.running_var)
    }
    with Tensor.train():
        (weight * 3 + state.weight + state.bias).sum().backward()
        optimizer.step()
    assert weight.tolist() == [-2.0, -1.0] and state.running_var.tolist() == [1.0, 1.0]
    optimizer.zero_grad()
    assert weight.grad is None


def test_a_step_is_computed_when_it_is_realized() -> None:
    weight = Tensor([1.0, 2.0])
    optimizer = optim.Adam([weight], 0.5)
    with Tensor.train():
        weight.grad = Tensor([1.0, -1.0])
        tensors = optimizer.schedule_step()
    assert tensors[-1] is weight
    assert [t.dtype for t in tensors[:2]] == [dtypes.float64] * 2
    tensors[0].realize(*tensors[1:])
    np.testing.assert_allclose(weight.numpy(), [0.5, 2.5], rtol=1e-5)


def test_a_step_is_few_kernels() -> None:
    layer = nn.Linear(24, 48)
    optimizer = optim.Adam(get_parameters(layer))
    with Tensor.train():
        layer(Tensor.ones(2, 24)).sum().backward()
        tensors = optimizer.schedule_step()
        items = tensors[0].schedule(*tensors[1:])
    assert sum(item.kernel is not None for item in items) <= 11


def test_a_rate_is_a_tensor_that_may_be_assigned() -> None:
    weight = Tensor([1.0])
    optimizer = optim.SGD([weight], 0.5)
    assert optimizer.lr.tolist() == [0.5]
    optimizer.lr.assign([0.25]).realize()
    with Tensor.train():
        weight.grad = Tensor([2.0])
        optimizer.step()
    assert weight.tolist() == [0.5]


def test_state_may_be_on_another_device() -> None:
    params, steps = draws([(4, 3)], 2)
    (want,) = run(lambda p: optim.AdamW(p, weight_decay=0.3), params, steps)
    weight = Tensor(params[0])
    optimizer = optim.AdamW([weight], weight_decay=0.3, device="PYTHON")
    with Tensor.train():
        for (grad,) in steps:
            weight.grad = Tensor(grad)
            optimizer.step()
    assert optimizer.m[0].device == "PYTHON" and weight.device != "PYTHON"
    np.testing.assert_allclose(weight.numpy(), want, rtol=1e-6)


def test_a_group_is_its_optimizers() -> None:
    a, b = Tensor([1.0]), Tensor([1.0])
    group = optim.OptimizerGroup(optim.SGD([a], 0.5), optim.SGD([b], 0.25))
    assert group.params == [a, b] and group[1].params == [b]
    with Tensor.train():
        (a + b).sum().backward()
        group.step()
    assert a.tolist() == [0.5] and b.tolist() == [0.75]
    group.zero_grad()
    assert a.grad is None and b.grad is None


def test_state_is_saved_and_taken_up_again(tmp_path: Path) -> None:
    params, steps = draws(SHAPES, 6)
    want = run(optim.Adam, params, steps)
    tensors = [Tensor(p) for p in params]
    optimizer = optim.Adam(tensors)
    with Tensor.train():
        for number, grads in enumerate(steps):
            if number == 3:
                safe_save(get_state_dict(optimizer), tmp_path / "optimizer.safetensors")
                tensors = [Tensor.zeros(*s) for s in SHAPES]
                optimizer = optim.Adam(tensors)
                load_state_dict(
                    optimizer, safe_load(tmp_path / "optimizer.safetensors"), verbose=False
                )
            for tensor, grad in zip(tensors, grads, strict=True):
                tensor.grad = Tensor(grad)
            optimizer.step()
    for a, b in zip(tensors, want, strict=True):
        np.testing.assert_array_equal(a.numpy(), b)


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: optim.SGD([]), "no parameters"),
    (lambda: optim.SGD([Tensor([1.0])], -1.0), "lr = -1"),
    (lambda: optim.SGD([Tensor([1.0])], float("nan")), "lr = nan"),
    (lambda: optim.SGD([Tensor([1.0])], momentum=-0.1), "momentum = -0.1"),
    (lambda: optim.SGD([Tensor([1.0])], -2.0), "^lr = -2"),
    (lambda: optim.Adam([Tensor([1.0])], b1=1.5), "b1 = 1.5"),
    (lambda: optim.AdamW([Tensor([1.0])], b2=1), "b2 = 1"),
    (lambda: optim.LAMB([Tensor([1.0])], weight_decay=-1), "weight_decay = -1"),
    (lambda: optim.Adam([3]), "parameters are tensors"),  # type: ignore[list-item]
    (lambda: optim.Muon([Tensor([1.0])]), "two axes or more"),
    (lambda: optim.OptimizerGroup([Tensor([1.0])]), "must be optimisers, and one is list"),  # type: ignore[arg-type]
    (lambda: optim.Muon([Tensor([[1.0]])], fused=True), "cannot be fused"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_what_an_optimizer_cannot_be_is_said(call: Any, words: str) -> None:
    with pytest.raises(OptimizerError, match=words):
        call()


def test_a_parameter_of_integers_is_refused() -> None:
    with pytest.raises(DTypeError, match="gradient"):
        optim.SGD([Tensor([1, 2])])


def test_a_step_needs_training_and_gradients() -> None:
    weight, other = Tensor([1.0]), Tensor([[2.0]])
    optimizer = optim.SGD([weight, other])
    weight.grad = Tensor([1.0])
    with pytest.raises(OptimizerError, match="outside of training"):
        optimizer.step()
    with Context(TRAINING=1), pytest.raises(OptimizerError) as error:
        optimizer.step()
    assert "1 of 2 parameters have no gradient" in str(error.value)
    assert r"number 1 of shape (1, 1)" in str(error.value)
    assert weight.tolist() == [1.0]
