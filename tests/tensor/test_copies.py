"""Copies of tensors, deep, pickled and to another device: what ties tensors ties their copies."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from workbench import Tensor, dtypes
from workbench.base.errors import GradientError


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


each_way = pytest.mark.parametrize("copied", [copy.deepcopy, pickled], ids=["deepcopy", "pickle"])


@each_way
@pytest.mark.parametrize("first", ["view", "whole"])
def test_views_stay_views(copied: Callable[[Any], Any], first: str) -> None:
    """As torch's do, pickled by torch.save; the copies have memory of their own."""
    theirs = torch.arange(6.0)
    ours = Tensor(np.arange(6, dtype=np.float32)).realize()
    results = []
    for whole, way in ((theirs, copy.deepcopy), (ours, copied)):
        view = whole[1:4].reshape(3, 1)
        whole[0] = 5.0  # both have a newer version by now
        pair = (view, whole) if first == "view" else (whole, view)
        two = way(pair)
        twin, base = two if first == "view" else two[::-1]
        base[2] = 99.0
        twin += 1.0
        results.append([t.tolist() for t in (base, twin, whole, view)])
    assert results[0] == results[1]


@each_way
@pytest.mark.parametrize("first", ["view", "leaf"])
def test_a_view_of_a_leaf_leads_to_the_copy(copied: Callable[[Any], Any], first: str) -> None:
    leaf = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    view = leaf[1:]
    with Tensor.no_grad():
        leaf += 1.0
    two = copied((view, leaf) if first == "view" else (leaf, view))
    twin, own = two if first == "view" else two[::-1]
    (twin * twin).sum().backward()
    assert own.requires_grad and own.grad.tolist() == [0.0, 6.0, 8.0]
    assert leaf.grad is None and view.tolist() == [3.0, 4.0]


@pytest.mark.parametrize("first", ["leaf", "result"])
def test_a_deep_copy_of_a_result_leads_to_the_copy_of_its_leaf(first: str) -> None:
    leaf = Tensor([1.0, 2.0], requires_grad=True)
    double = leaf * 2
    two = copy.deepcopy((leaf, double) if first == "leaf" else (double, leaf))
    own, twin = two if first == "leaf" else two[::-1]
    twin.sum().backward()
    assert own.grad.tolist() == [2.0, 2.0] and leaf.grad is None
    alone = copy.deepcopy(double)
    assert alone.tolist() == [2.0, 4.0]
    with pytest.raises(GradientError, match="has no tensor to find a gradient for"):
        alone.sum().backward()


def test_one_tensor_stays_one_and_gradients_are_copied() -> None:
    """Pickled it has no gradient, as in PyTorch."""
    weight = Tensor([1.0, 2.0], requires_grad=True)
    (weight * 3).sum().backward()
    one, two = copy.deepcopy([weight, weight])
    assert one is two and one.grad.tolist() == [3.0, 3.0]
    one.grad += 1.0
    assert weight.grad is not None and weight.grad.tolist() == [3.0, 3.0]
    assert pickled(weight).grad is None and pickled(weight).requires_grad


def test_to_moves_in_place() -> None:
    weight = Tensor([1.0, 2.0], device="LLVM", requires_grad=True)
    (weight * weight).sum().backward()
    view = weight[:1]
    assert weight.to_("PYTHON") is weight and weight.device == "PYTHON"
    assert weight.is_leaf and weight.grad is not None and weight.grad.device == "PYTHON"
    (weight * 3).sum().backward()
    assert weight.grad.tolist() == [5.0, 7.0] and view.device == "LLVM"
    assert weight.to_("PYTHON").tolist() == [1.0, 2.0]
    number = Tensor(3.0)
    assert number.to_("PYTHON") is number and number.item() == 3.0


def test_a_cast_to_the_same_dtype_is_the_tensor_itself() -> None:
    """As in tinygrad and PyTorch: what is written to it is written here."""
    t = Tensor([1.0, 2.0]).realize()
    same = t.float()
    same += 1.0
    assert same is t and t.tolist() == [2.0, 3.0] and t.cast(dtypes.float32) is t
    weak = Tensor(2.0)
    assert (weak.cast(dtypes.float32) + Tensor([1], dtype="half")).dtype is dtypes.float32
    assert (weak + Tensor([1], dtype="half")).dtype is dtypes.half


def test_copies_of_an_expression_and_what_is_made_of_it_belong_together() -> None:
    x = Tensor([1.0, 2.0]).realize() * 1.5
    y = x * x
    x2, y2 = copy.deepcopy((x, y))
    assert y2.sum().gradient(x2)[0].tolist() == [3, 6]
    assert y.sum().gradient(x)[0].tolist() == [3, 6]
    with pytest.raises(GradientError):
        y2.sum().gradient(x)
