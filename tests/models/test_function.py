"""`explore(f, a, b)`: a Python function over arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy import asarray

from tests.support import by_rows
from workbench import TinyJit, load_model, nn
from workbench.base.errors import ModelError, WorkbenchError
from workbench.models.function import over_tensors, results_of
from workbench.tensor.tensor import Tensor
from workbench.viz import explore

A = np.arange(12, dtype=np.float32).reshape(3, 4) / 7
W = np.arange(8, dtype=np.float32).reshape(4, 2) - 3


def softmax(scores: Any, temperature: float) -> Any:
    shifted = (scores - np.max(scores, axis=-1, keepdims=True)) / temperature
    weights = np.exp(shifted)
    return weights / np.sum(weights, axis=-1, keepdims=True)


def softmax_by_methods(x: Any) -> Any:
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def layer(x: Any, weight: Any) -> Any:
    return np.maximum(np.dot(x, weight), 0)


@dataclass
class Moments:
    mean: Any
    deviation: Any


@TinyJit
def doubled(x: Tensor) -> Tensor:
    return x * 2


def computed(x: Tensor) -> Tensor:
    return (x * 2).realize()


def test_numpy_code_becomes_kernels() -> None:
    ex = explore(softmax, A, 2.0)
    assert len(ex.kernels) == 1
    (result,) = ex.kernels[-1].run("LLVM")
    np.testing.assert_allclose(result, softmax(A, 2.0), rtol=1e-5)
    assert "np.exp" not in str(ex.kernels[0].ast)


def test_methods_of_arrays_are_numpys() -> None:
    ex = explore(softmax_by_methods, A)
    assert len(ex.kernels) == 1
    np.testing.assert_allclose(ex.run()[0], softmax_by_methods(A), rtol=1e-5)
    line = explore(lambda x: x - x.mean(), A).plan
    assert "mean" in str(line)


def test_inputs_have_the_names_of_the_parameters() -> None:
    assert [name for name, _ in results_of(layer, (A, W)).inputs] == ["x", "weight"]
    names = [
        name for name, _ in results_of(lambda p, *rest: p["w"] + rest[0], ({"w": A}, A)).inputs
    ]
    assert names == ["p['w']", "rest[0]"]
    shown = explore(layer, A, W).viewer.names.values()
    assert {name for names in shown for name in names} == {"x", "weight"}


@by_rows(
    ("function", "arguments", "count"),
    [
        (lambda x: [x + 1, (x * 2, {"a": x * 3})], (A,), 3),
        (lambda x: {"loss": np.mean(x)}, (A,), 1),
        (doubled, (A,), 1),
        (np.exp, (A,), 1),
        (nn.Linear(4, 2), (A,), 1),
        (lambda: Tensor([1.0]) + 1, (), 1),
        (layer, (Tensor(A), W), 1),
        (lambda x: (x, x.shape, 3, None, "mean"), (A,), 1),
        (lambda x: Moments(x.mean(), x.std()), (A,), 2),
    ],
    ids=("nested", "dict", "jit", "ufunc", "layer", "none", "tensor", "others", "dataclass"),
)
def test_what_a_function_may_be(
    function: Callable[..., Any], arguments: tuple[Any, ...], count: int
) -> None:
    outputs = results_of(function, arguments).outputs
    assert len(outputs) == count and all(isinstance(each, Tensor) for each in outputs)


def prepared(x: Any, y: Any) -> Any:
    x = np.asarray(x, dtype=np.float64)
    rows = np.array([x[0], y[:, 0]])
    copy = np.array(x)
    copy += 1
    np.asarray(y)[0] = 2
    return x, rows, copy, np.ascontiguousarray(y.T), np.asarray([1, 2]) * x[0, 0]


def test_arrays_are_made_of_tensors() -> None:
    makers = np.array, np.asarray
    outputs = results_of(prepared, (A, W)).outputs
    for got, wanted in zip(outputs, prepared(A, W.copy()), strict=True):
        assert got.numpy().dtype == wanted.dtype
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-6)
    with pytest.raises(WorkbenchError):
        results_of(lambda x: np.asarray(x).tolist(), (A,))
    assert (np.array, np.asarray) == makers and type(np.asarray(Tensor(A))) is np.ndarray


def test_variables_around_a_function_stay() -> None:
    weights, step = W.copy(), 0.5

    def trained(x: Any) -> Any:
        nonlocal weights
        weights = weights - step * x.T @ (x @ weights)
        return weights

    explore(trained, A)
    assert isinstance(weights, np.ndarray) and np.array_equal(weights, W)


def heat(u: Any, rate: float = 0.1, *, steps: int = 2) -> Any:
    for _ in range(steps):
        u[1:-1] += rate * (u[2:] - 2 * u[1:-1] + u[:-2])
    return {"u": u, "steps": steps, "parts": [u.max(), (u.sum(axis=0),)]}


def test_a_function_is_a_model() -> None:
    model, given = load_model(heat), A.copy()
    for values, options in ((given, {}), (given * 2, {"steps": 3}), (given, {"rate": 0.2})):
        got, wanted = model(values, **options), heat(values.copy(), **options)
        assert got["steps"] == wanted["steps"] and type(got["u"]) is Tensor
        np.testing.assert_allclose(got["u"].numpy(), wanted["u"], rtol=1e-5)
        np.testing.assert_allclose(got["parts"][1][0].numpy(), wanted["parts"][1][0], rtol=1e-5)
    assert np.array_equal(given, A)
    assert [str(port) for port in model.inputs] == ["u: float32[3, 4]"]
    assert [port.name for port in model.outputs] == ["u", "output 1", "output 2"]
    check = model.check(A)
    assert check.ok and len(check.outputs) == 3, str(check)
    np.testing.assert_allclose(explore(model, A).run()[0], heat(A.copy())["u"], rtol=1e-5)
    with pytest.raises(ModelError, match="cannot call heat with these inputs"):
        model(A, 0.1, 2)


def branch(x: Any) -> Any:
    if np.sum(x) > 0:
        return x
    return -x


@by_rows(
    ("function", "arguments", "words"),
    [
        (branch, (A,), "the truth of a Tensor decides what runs in branch"),
        (lambda x: np.unique(x), (A,), "the values decide the shape of its result"),
        (lambda x: np.nonzero(x), (A,), "np.nonzero needs the values of a Tensor"),
        (lambda x: np.where(x > 0), (A,), "np.where(condition) needs the values"),
        (lambda x: np.allclose(x, x), (A,), "which code may branch on"),
        (lambda x: asarray(x), (A,), "an array of numpy is made of a Tensor in the function"),
        (lambda x: float(np.sum(x)), (A,), "a number is made of a Tensor in the function"),
        (lambda x: np.linalg.inv(x), (A[:, :3],), "LAPACK computes it"),
        (computed, (A,), "a Tensor is computed in computed"),
        (lambda x: x.shape, (A,), "it returned a tuple without a Tensor"),
        (lambda x: (x, {1, 2}), (A,), "it returned a tuple with a set in it"),
        (lambda x: 3.0, (A,), "it returned a float"),
        (lambda x: (), (A,), "it returned a tuple without a Tensor"),
        (lambda x: np.ones(3), (A,), "it returned a numpy.ndarray"),
        (layer, (A,), "missing a required argument: 'weight'"),
        (layer, (A, W, W), "too many positional arguments"),
    ],
    ids=(
        *("branch", "unique", "nonzero", "where", "allclose", "array", "float", "inv", "realize"),
        *("shape", "set", "number", "empty", "ndarray", "few", "many"),
    ),
)
def test_what_is_refused(
    function: Callable[..., Any], arguments: tuple[Any, ...], words: str
) -> None:
    with pytest.raises(WorkbenchError) as refused:
        explore(function, *arguments)
    error = refused.value
    assert words in str(error) and error.hint
    if "explore runs" in error.because:
        assert "test_function.py, line" in error.where


def test_a_captured_function_may_realize_its_results() -> None:
    net = nn.Linear(4, 2)
    net.weight.realize(net.bias)
    forward = TinyJit(lambda x: net(x).softmax().realize())
    (kernel,) = explore(forward, A).kernels
    assert {"net.weight", "net.bias", "x"} <= {*kernel.names}
    with pytest.raises(WorkbenchError, match="a Tensor is computed"):
        explore(TinyJit(lambda x: net(x).sum().realize().item()), A)


def test_a_step_that_is_refused_leaves_the_parameters() -> None:
    net = nn.Linear(4, 2)
    optimiser, before = nn.optim.SGD(nn.state.get_parameters(net)), net.weight.tolist()

    @TinyJit
    def step(x: Tensor) -> Tensor:
        with Tensor.train():
            loss = net(x).square().mean().backward()
            optimiser.step()
        return loss.realize()

    with pytest.raises(WorkbenchError, match=r"(?s)a step of an optimiser.*schedule_step"):
        explore(step, A)
    assert net.weight.tolist() == before


def test_after_a_refusal_tensors_are_computed_again() -> None:
    with pytest.raises(WorkbenchError):
        explore(branch, A)
    assert (Tensor([1.0]) + 1).tolist() == [2.0]


def test_arguments_without_arrays_stay() -> None:
    options = {"axis": 0, "names": ["a", "b"], "pair": (1, None)}
    assert over_tensors(options) == options


def rows(x: Any) -> Any:
    out = np.zeros_like(x)
    for row in range(2):
        out[row] = np.mean(x, axis=0) * row
    return out


def test_kernels_of_what_is_written_by_index_have_their_lines() -> None:
    lines = {kernel.line.text.strip() for kernel in explore(rows, A).kernels if kernel.line}
    assert lines == {"out[row] = np.mean(x, axis=0) * row"}
    assert all(kernel.modules[0].path == "rows" for kernel in explore(rows, A).kernels)
