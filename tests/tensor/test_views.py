"""Views: which methods return one, and what is written to it and read from it, both ways."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from itertools import product
from pickle import dumps, loads
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from tests.support import LONG, by_rows
from workbench import Tensor, dtypes
from workbench.base.errors import ShapeError

VIEWS: dict[str, Callable[[Any], Any]] = {
    "item": lambda x: x[0],
    "slice": lambda x: x[1:, ::2],
    "new axis": lambda x: x[:, None],
    "permute": lambda x: x.permute(1, 0),
    "T": lambda x: x.T,
    "transpose": lambda x: x.transpose(0, 1),
    "reshape": lambda x: x.reshape(2, 8),
    "view": lambda x: x.view(8, 2),
    "flatten": lambda x: x.flatten(),
    "unflatten": lambda x: x.unflatten(0, (2, 2)),
    "squeeze": lambda x: x.unsqueeze(1).squeeze(1),
    "detach": lambda x: x.detach(),
    "chunk": lambda x: x.chunk(2)[1],
    "split": lambda x: x.split(3)[0],
    "view of view": lambda x: x[1:].T[::2, 1:].unsqueeze(0)[0],
    "row": lambda x: list(x)[2],
    "diagonal": lambda x: x.diagonal(),
    "part of a diagonal": lambda x: x.diagonal(1, 1, 0)[1:],
    "windows": lambda x: x.unfold(1, 2, 2),
    "windows apart": lambda x: x.unfold(0, 1, 3),
    "windows of rows": lambda x: x[1:].unfold(0, 2, 2)[0],
}
BITS: dict[str, Callable[[Any], Any]] = {
    "same width": lambda x: x.view(x.uint32),
    "narrower": lambda x: x.view(x.int16),
    "bytes": lambda x: x.view(x.uint8),
    "wider": lambda x: x.view(x.int64),
    "there and back": lambda x: x.view(x.int16).view(x.int32),
    "bytes joined": lambda x: x.view(x.uint8).view(x.int64),
    "slice of bits": lambda x: x.view(x.uint8)[1:, 1::3],
    "bits of a slice": lambda x: x[1:].view(x.int16),
    "bits of a row": lambda x: x[2].view(x.uint8)[5:],
    "flipped bits": lambda x: x.view(x.int64)[::-1],
    "bits of bits": lambda x: x.view(x.int64)[1:].view(x.int16)[:, ::2],
}


class _Array:
    """A numpy array whose `view` takes the same dtypes as a tensor's bitcast."""

    def __init__(self, value: Any):
        self.value = value

    def __getattr__(self, name: str) -> Any:
        return name

    def __getitem__(self, index: Any) -> _Array:
        return type(self)(self.value[index])

    def view(self, dtype: str) -> _Array:
        return type(self)(self.value.view(dtype))


class _Tensor(_Array):
    def view(self, dtype: str) -> _Tensor:
        return type(self)(self.value.bitcast(dtype))


WRITES: dict[str, Callable[[Any], Any]] = {
    "item": lambda x: x.__setitem__(0, 7),
    "last": lambda x: x.__setitem__((..., -1), 5),
    "add": lambda x: x.__iadd__(3),
    "twice": lambda x: (x.__iadd__(1), x.__setitem__(slice(1, None), 4)),
}

ALL = [(name, *flags) for name in VIEWS for flags in product((True, False), repeat=2)]
SOME_VIEWS = ALL if LONG else ALL[::3]
BOTH = [*product(BITS, (True, False))]
SOME_BITS = BOTH if LONG else [(name, n % 2 == 0) for n, name in enumerate(BITS)]
"""In a short run each view is in one of its ways, or two."""


def check(tensor: Tensor, view: Tensor, array: Any, want: Any, is_read: bool) -> None:
    """Write to the view and to the whole, and compare both with numpy's."""
    for name, write in WRITES.items():
        old_view, old = view + 0, tensor * 1
        before = want.copy(), array.copy()
        for both in ((view, want), (tensor, array)):
            for each in both:
                write(each)
            if is_read:
                np.testing.assert_array_equal(view.numpy(), want, err_msg=name)
        np.testing.assert_array_equal(tensor.numpy(), array, err_msg=name)
        np.testing.assert_array_equal(view.numpy(), want, err_msg=name)
        np.testing.assert_array_equal(old_view.numpy(), before[0], err_msg=name)
        np.testing.assert_array_equal(old.numpy(), before[1], err_msg=name)


@pytest.mark.usefixtures("device")
@by_rows("name, is_computed, is_read", SOME_VIEWS)
def test_what_is_a_view_in_pytorch_is_one(name: str, is_computed: bool, is_read: bool) -> None:
    array = np.arange(16, dtype=np.int32).reshape(4, 4)
    tensor = Tensor(array.copy()) if is_computed else Tensor(array - 1) + 1
    theirs = VIEWS[name](torch.from_numpy(array)).numpy()
    assert np.shares_memory(theirs, array)
    check(tensor, VIEWS[name](tensor), array, theirs, is_read)


@pytest.mark.usefixtures("device")
@by_rows("name, is_read", SOME_BITS)
def test_bits_as_another_dtype_are_a_view(name: str, is_read: bool) -> None:
    array = np.arange(-8, 8, dtype=np.int32).reshape(4, 4) * 77_777
    tensor = Tensor(array.copy())
    view, want = BITS[name](_Tensor(tensor)).value, BITS[name](_Array(array)).value
    assert np.shares_memory(want, array) and view.shape == want.shape
    check(tensor, view, array, want, is_read)


def test_bits_that_lie_apart_are_a_view_too() -> None:
    """Where numpy would copy: bytes are taken from each element, wherever it lies."""
    for move in (lambda x: x.T, lambda x: x[::-1, ::-1], lambda x: x[:, ::2]):
        array = np.arange(16, dtype=np.int32).reshape(4, 4)
        tensor = Tensor(array.copy())
        view = move(tensor).bitcast(dtypes.uint8)
        view[:, 1] = 3
        own = np.ascontiguousarray(move(array)).view(np.uint8)
        own[:, 1] = 3
        move(array)[...] = own.view(np.int32)
        assert tensor.tolist() == array.tolist() and view.tolist() == own.tolist()


def test_a_pickled_view_of_bits_is_one() -> None:
    for again in (deepcopy, lambda x: loads(dumps(x))):
        tensor = Tensor([1, 2, 3])
        pair = again([tensor, tensor.bitcast(dtypes.int16)[1:]])
        pair[1][1] = 9
        assert pair[0].tolist() == [1, 9, 3] and tensor.tolist() == [1, 2, 3]


def test_a_gradient_goes_the_way_that_it_had_where_bits_are_written() -> None:
    w = Tensor([1.0, 2.0], requires_grad=True)
    x = w * 3
    x.bitcast(dtypes.int32)[0] = 0
    (x * x).sum().backward()
    assert x.tolist() == [0.0, 6.0] and w.grad is not None
    assert w.grad.tolist() == [0.0, 36.0]


def test_what_is_repeated_is_read_and_not_written() -> None:
    tensor = Tensor([[1], [2]])
    wide = tensor.expand(2, 3)
    tensor += 1
    assert wide.tolist() == [[2, 2, 2], [3, 3, 3]]
    with pytest.raises(ShapeError, match="repeats elements"):
        wide[0] = 5
    with pytest.raises(ShapeError, match="repeats elements"):
        wide.bitcast(dtypes.uint32).assign(1)
    windows = Tensor([1, 2, 3]).unfold(0, 2, 1)
    with pytest.raises(ShapeError, match="repeats elements"):
        windows += 1
    assert windows.tolist() == [[1, 2], [2, 3]]
    wide[:0] = 5
    assert tensor.tolist() == [[2], [3]]
