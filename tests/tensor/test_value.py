"""A tensor as a Python value: what it says of itself without computing, and its identity."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import numpy as np
import pytest

from workbench import nn
from workbench.base.dtypes import dtypes
from workbench.base.errors import CopyError, ShapeError
from workbench.execution.memory_plan import without_detach
from workbench.tensor import Tensor


def test_queries_compute_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("computed")

    monkeypatch.setattr("workbench.tensor.tensor.realize", refuse)
    t = Tensor(np.ones((3, 4))) + 1
    assert t.shape == (3, 4)
    assert t.ndim == 2
    assert t.numel() == 12
    assert t.size() == (3, 4)
    assert t.size(-1) == 4
    assert t.dtype is dtypes.float64
    assert t.element_size() == 8
    assert t.nbytes() == 96
    assert t.is_floating_point()
    assert len(t) == 3
    assert repr(t) == f"<Tensor float64 (3, 4) on {t.device}, ADD not computed>"
    assert t.T[0].sum().relu().shape == ()


def test_repr_of_what_is_computed() -> None:
    t = (Tensor([1, 2]) + 1).realize()
    assert repr(t) == f"<Tensor int32 (2,) on {t.device}>"
    assert repr(Tensor(3)) == f"<Tensor int32 () on {t.device}>"


def test_numpy_asks_for_a_dtype_and_a_copy() -> None:
    t = Tensor([1.5, 2.5])
    for copied in (True, None):
        array = t.__array__(np.dtype("float64"), copy=copied)
        assert (array.dtype, array.tolist()) == (np.float64, [1.5, 2.5])
    assert np.array(t, np.int32).tolist() == [1, 2]
    np.asarray(t)[:] = 0
    assert t.tolist() == [1.5, 2.5]


@pytest.mark.parametrize("dtype", [None, "float64"])
def test_numpy_is_told_that_it_would_copy(dtype: str | None) -> None:
    """As numpy 2 asks for an array without a copy."""
    t = Tensor([1.0, 2.0]) + 1
    with pytest.raises(ValueError, match="without a copy") as caught:
        t.__array__(dtype, copy=False)
    assert type(caught.value) is CopyError
    assert "test_value.py, line" in caught.value.where
    assert "not computed" in repr(t), "what is refused computes nothing"


def test_hash_is_identity() -> None:
    a, b = Tensor([1]), Tensor([1])
    assert len({a, b, a}) == 2
    assert {a: 1}[a] == 1
    assert copy.copy(a).uop is a.uop


def test_equal_expressions_are_one_value() -> None:
    """Two tensors are two targets of a gradient, but what they have in common is computed once."""
    x = Tensor([1.0, 2.0]).realize()
    for a, b in [(x + 1, x + 1), ((x * x).sum(), x.square().sum())]:
        assert a.uop is not b.uop
        assert len(set(without_detach([a.uop, b.uop]))) == 1
        assert len((a.contiguous() * 2 + b.contiguous().sin()).schedule()) == 2


def test_operators_in_place_write() -> None:
    a = Tensor([1, 2])
    b, value = a, a + 0
    a += 1
    assert a.tolist() == b.tolist() == [2, 3]
    assert value.tolist() == [1, 2]


@pytest.mark.parametrize("requires_grad", [True, False, None])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_on_another_device_it_has_its_dtype_and_gradient(
    dtype: str, requires_grad: bool | None
) -> None:
    for source, target in itertools.product(("LLVM", "PYTHON"), repeat=2):
        x = Tensor([1.0, 2.0], device=source, dtype=dtype, requires_grad=requires_grad)
        x.grad = None if requires_grad is None else Tensor([3.0, 4.0], device=source)
        y = x.to(target)
        assert (y.device, str(y.dtype), y.requires_grad) == (target, dtype, requires_grad)
        if x.grad is None:
            assert y.grad is None
            continue
        assert y.grad is not None and y.grad.device == target
        assert y.grad.tolist() == [3.0, 4.0]
        if requires_grad:
            assert (y * y).sum().gradient(x)[0].tolist() == [2.0, 4.0]


def test_a_tensor_with_a_gradient_prints(capsys: pytest.CaptureFixture[str]) -> None:
    a, b = (Tensor([n, 2.0], requires_grad=True) for n in (1.0, 3.0))
    print((a + b).mean().backward())
    print(a, a.grad)
    text = capsys.readouterr().out
    assert text.count("<Tensor float32") == 3 and "not computed" in text


def test_requires_grad_is_kept() -> None:
    assert Tensor([1.0], requires_grad=True).requires_grad is True
    assert Tensor([1.0]).requires_grad is None


def test_a_long_chain_of_operations() -> None:
    t = Tensor([0.0, 1.0])
    for _ in range(3000):
        t = t + 1
    assert t.shape == (2,)
    assert t.dtype is dtypes.float32


def test_a_copy_of_a_leaf_is_a_leaf_of_its_own() -> None:
    for make in (lambda: Tensor([1.0, 2.0]), lambda: Tensor([1.0, 2.0]).realize() * 1):
        leaf = make().detach().requires_grad_()
        (leaf * 2).sum().backward()
        for use in (copy.copy, copy.deepcopy):
            other = use(leaf)
            assert other.is_leaf and other.requires_grad
            assert (other.grad is None) is (use is copy.copy)
            (other * other).sum().backward()
            extra = 2.0 if use is copy.deepcopy else 0.0
            assert other.grad is not None and leaf.grad is not None
            assert other.grad.tolist() == [2 + extra, 4 + extra]
            assert leaf.grad.tolist() == [2, 2]
            with Tensor.no_grad():
                other -= other.grad
            assert leaf.tolist() == [1, 2] and other.tolist() == [-1 - extra, -2 - extra]


def test_training_goes_on_in_a_deep_copy() -> None:
    def step(model: nn.Linear, optimizer: nn.optim.Adam) -> list[float]:
        with Tensor.train():
            optimizer.zero_grad()
            loss = model(Tensor([[1.0, 2.0, 3.0]])).square().sum()
            loss.backward()
            optimizer.step()
        return [loss.item(), *model.bias.tolist()]

    model = nn.Linear(3, 2)
    optimizer = nn.optim.Adam([model.weight, model.bias], lr=0.1)
    step(model, optimizer)
    two = copy.deepcopy((model, optimizer))
    assert step(*two) == step(model, optimizer)
    assert step(*two) == step(model, optimizer)


def test_one_element_as_a_number() -> None:
    x = Tensor([2.5]) + 1
    assert (float(x), int(x), math.floor(x)) == (3.5, 3, 3)
    assert (f"{x:.2f}", f"{Tensor(7):03d}") == ("3.50", "007") and f"{x}" == repr(x)
    for convert in (float, int, "{:.2f}".format):
        with pytest.raises(ShapeError, match="no single value"):
            convert(Tensor([1.0, 2.0]))
