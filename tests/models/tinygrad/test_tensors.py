"""Tensors of tinygrad as models: their memory, names and writes; functions, variables, refusals."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.peers import tinygrad
from tests.support import by_rows
from workbench import ModelError, explore, load_model
from workbench.base.errors import DTypeError
from workbench.models.tinygrad.table import ROWS

T = tinygrad.Tensor
Variable = tinygrad.Variable
nn = tinygrad.nn


def arange(*shape: int) -> Any:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return T(values).contiguous().realize()


def test_computed_memory_is_shared_and_has_the_users_names() -> None:
    x, weight = arange(2, 3), arange(3, 4)
    model = load_model((x @ weight).relu())
    assert [*model.state_dict()] == ["x", "weight"]
    before = model().numpy()
    x.assign(x * 2).realize()
    np.testing.assert_array_equal(model().numpy(), 2 * before)
    assert model.inputs == () and [str(port) for port in model.parameters] == [
        "x: float32[6]",
        "weight: float32[12]",
    ]


def test_memory_stays_while_a_result_needs_it() -> None:
    x = arange(1000)
    result = load_model(x + 1)()
    del x
    gc.collect()
    others = [arange(1000) * 0 for _ in range(10)]
    assert result.numpy()[-1] == 1000 and others


def test_a_tensor_stays_lazy() -> None:
    y = (arange(3) + 1).sin()
    node = y.uop
    model = load_model(y)
    assert model.check(bisect=True).ok and y.uop is node


def test_a_layer_has_the_path_of_its_object() -> None:
    class Net:
        def __init__(self) -> None:
            self.first = nn.Linear(3, 4)
            self.rest = [nn.Linear(4, 4)]

    net = Net()
    T.realize(*nn.state.get_parameters(net))
    hidden = net.first(arange(2, 3))
    model = load_model(net.rest[0](hidden))
    named = {"net.first.weight", "net.first.bias", "net.rest[0].weight", "net.rest[0].bias"}
    assert named < {*model.state_dict()}


def test_kernels_have_tinygrads_methods_and_the_users_names() -> None:
    x, w = arange(4, 8), arange(8, 8)
    hidden = (x @ w).gelu().contiguous()
    loss = (hidden @ w).softmax().sum()
    (gradient,) = loss.gradient(w)
    ex = explore(loss, gradient)
    paths = [kernel.modules[0].path for kernel in ex.kernels]
    assert paths[0] == "matmul" and "matmul backward" in paths
    names = {name for kernel in ex.kernels for name in kernel.names}
    assert {"x", "w", "hidden", "loss", "gradient"} <= names


def test_a_tensor_of_constants_alone_is_explored() -> None:
    assert load_model(T.full((2, 3), 7))().tolist() == [[7, 7, 7], [7, 7, 7]]
    scalar = load_model(T(2.5) * 2)()
    assert scalar.item() == 5 and str(scalar.dtype) == "float32"


def test_several_tensors_are_computed_together() -> None:
    layer = nn.Linear(3, 2)
    optimizer = nn.optim.Adam(nn.state.get_parameters(layer), lr=0.01)
    with tinygrad.helpers.Context(TRAINING=1):
        loss = layer(arange(4, 3)).square().mean().backward()
        updates = optimizer.schedule_step()
    values = load_model(loss)(*updates)
    theirs = [tensor.numpy() for tensor in (loss, *updates)]  # it writes its parameters
    for ours, expected in zip(values, theirs, strict=True):
        np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_numbers_stay_in_the_dtype_of_tensors() -> None:
    (kernel,) = explore(arange(8) * 0.1 + 3).kernels
    assert "float64" not in {str(node.dtype) for node in kernel.ast.toposort()}


# --------------------------------------------------------------------------------------------------
# Writes: what memory will hold. It is tinygrad that writes it.


def assign_slices(z: Any) -> None:
    z[1:3] = 1
    z[2:, 1] = 5
    z[0] = z[1] * 2


def assign_strided(z: Any) -> None:
    z[1:3, ::2] = arange(2, 3)


def assign_transposed(z: Any) -> None:
    z.T[1:3] = 2


def assign_flipped(z: Any) -> None:
    z.flip(0)[:2] = 9


def assign_bits(z: Any) -> None:
    z.bitcast("int32")[1:2] = 1


def assign_at_indices(z: Any) -> None:
    z[T([1, 3])] = T([7.0, 8, 9, 10, 11])


def add_to_it(z: Any) -> None:
    z += 1
    z *= z.T.sum()


def cache_of_a_variable(z: Any) -> Any:
    at = Variable("at", 0, 3).bind(2)
    z[at : at + 1].assign(arange(1, 5) - 9)
    return z[: at + 1].sum(0)


WRITES = [
    *(assign_slices, assign_strided, assign_transposed, assign_flipped, assign_bits),
    *(assign_at_indices, add_to_it, cache_of_a_variable),
]


@by_rows("change", WRITES, ids=lambda change: change.__name__)
def test_a_write_gives_what_memory_will_hold(change: Callable[[Any], Any]) -> None:
    z = arange(4, 5)
    result = change(z)
    result = z if result is None else result
    model = load_model(result)
    ours = model().numpy()
    theirs = result.numpy()
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(model().numpy(), theirs)  # tinygrad wrote the memory since


# --------------------------------------------------------------------------------------------------
# Functions, variables, devices and files.


@tinygrad.function
def layer(a: Any, w: Any) -> Any:
    return (a @ w).tanh()


@tinygrad.function
def two(a: Any) -> Any:
    return a.sum(0), a.max(1)


def test_a_function_is_computed_for_each_of_its_calls() -> None:
    x, w, other = arange(2, 3) / 9, arange(3, 3) / 9, arange(3, 3) / 5
    y = layer(layer(x, w), other) + two(x)[0]
    (gradient,) = y.sum().gradient(w)
    for tensor in (y, gradient):
        ours = load_model(tensor)()
        np.testing.assert_allclose(ours.numpy(), tensor.numpy(), rtol=1e-5)
    assert explore(layer(x, w)).kernels[0].modules[0].path == "layer"


def test_a_bound_variable_has_its_value() -> None:
    x, n = arange(5, 2), Variable("n", 1, 5).bind(3)
    for tensor in (x[:n].sum(0), x[n] * T(n)):
        assert load_model(tensor)().tolist() == tensor.tolist()


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "values.bin"
    np.arange(8, dtype=np.float32).tofile(file)
    values = T(file)[4:12].bitcast("float32").to("PYTHON") * 2
    assert load_model(values)().tolist() == [2, 4]


def test_copies_to_several_devices_are_one_value() -> None:
    x = arange(3)
    copies = x.shard(("PYTHON:1", "PYTHON:2"))
    assert load_model(copies * 2)().tolist() == [0, 2, 4]
    copies.realize()
    assert load_model(copies * 2)().tolist() == [0, 2, 4]


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: arange(4).shard(("PYTHON:1", "PYTHON:2"), axis=0) + 1, "UNSHARD(.|\n)*devices"),
    (lambda: arange(4)[: Variable("n", 1, 4)].sum(), "variable n has no value(.|\n)*n.bind"),
    (lambda: T(Variable("n", 1, 4)) + arange(4), "variable n has no value(.|\n)*n.bind"),
    (lambda: (arange(4) + 1).callify(), "CALL(.|\n)*before it is scheduled"),
    (lambda: T.invalids(3) + 1, "Invalid"),
]


@by_rows(("make", "words"), REFUSED)
def test_what_has_no_value_here_is_refused_in_words(make: Callable[[], Any], words: str) -> None:
    for read in (explore, lambda tensor: load_model(tensor)()):
        with pytest.raises(ModelError, match=words):
            read(make())


def test_a_dtype_without_a_peer_is_refused() -> None:
    with pytest.raises(DTypeError, match="fp8e4m3fnuz"):
        explore(arange(3).cast("fp8e4m3fnuz"))


def test_an_argument_is_another_tensor() -> None:
    with pytest.raises(ModelError, match="has no inputs"):
        explore(arange(3) + 1, np.ones(3))


def test_a_function_of_tinygrads_tensors_is_explored_by_its_result() -> None:
    with pytest.raises(ModelError, match=r"returned a tinygrad(.|\n)*explore\(y\)"):
        explore(lambda t: t + 1, arange(3))


def test_check_names_the_first_op_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    x = arange(4, 4)
    y = (x @ x * 0.01).sin().sum()
    wrong = ROWS["REDUCE"]._replace(function=lambda node, x: x.sum(tuple(range(node.arg[1]))) * 2)
    monkeypatch.setitem(ROWS, "REDUCE", wrong)
    check = load_model(y).check(bisect=True)
    assert not check.ok and check.first_wrong is not None
    assert check.first_wrong.where == "REDUCE of matmul"


def test_a_model_lists_its_ops_with_those_that_are_refused() -> None:
    tensor = arange(4).shard(("PYTHON:1", "PYTHON:2"), axis=0) + 1
    model = load_model(tensor)
    with pytest.raises(ModelError):
        model()
    refused = [use for use in model.operators if use.refused]
    assert [use.name for use in refused] == ["UNSHARD"] and "UNSHARD  refused" in str(model)
