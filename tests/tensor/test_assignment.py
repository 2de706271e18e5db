"""Writing to tensors: aliases, hazards, what is written in place, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any

import numpy as np
import pytest

from tests.support import by_rows
from tests.tools.devices import device_params
from workbench import Context, GlobalCounters, Tensor, explore
from workbench.base.errors import AxisError, WorkbenchError
from workbench.execution.buffers import memory_of
from workbench.execution.memory_plan import with_computed
from workbench.ir.schedule.schedule import base


def held(values: Any, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.array(values, dtype)).realize()


def address(t: Tensor) -> int:
    return memory_of(base(with_computed(t.uop))).address


def kernels_of(work: Callable[[], object]) -> int:
    before = GlobalCounters.kernel_count
    work()
    return GlobalCounters.kernel_count - before


def test_every_view_sees_what_is_written() -> None:
    a = held(np.arange(6))
    views = [a.reshape(2, 3), a.reshape(2, 3).T, a[::-1], a[1:5:2], Tensor(a)]
    other, sum_before = a.clone(), a + 0
    a += 10
    expected = np.arange(6, dtype=np.float32) + 10
    whole = expected.reshape(2, 3)
    seen = [whole, whole.T, expected[::-1], expected[1:5:2], expected]
    for view, want in zip(views, seen, strict=True):
        np.testing.assert_array_equal(view.numpy(), want)
    assert other.tolist() == sum_before.tolist() == list(range(6))
    views[1].assign(0)
    assert a.tolist() == [0] * 6


def test_what_is_written_to_a_view_is_written_to_the_whole() -> None:
    a = held(np.zeros((3, 4)))
    reference = np.zeros((3, 4), np.float32)
    for index in (0, (slice(None), 1), (slice(None, None, 2), slice(3, 0, -1)), (..., -1)):
        a[index] += 1  # type: ignore[index]
        reference[index] += 1
        np.testing.assert_array_equal(a.numpy(), reference)


def test_it_is_written_in_place_unless_the_old_value_is_needed() -> None:
    a = held([1.0, 2.0])
    place = address(a)
    a += 1
    assert address(a.realize()) == place
    old = a * 2  # not computed: it needs the old value
    a += 1
    assert address(a.realize()) != place
    assert old.tolist() == [4.0, 6.0] and a.tolist() == [3.0, 4.0]


def test_a_transposed_read_of_what_is_written_is_right() -> None:
    n = np.arange(9, dtype=np.float32).reshape(3, 3)
    for add in (lambda t: t + t.T, lambda t: t + t.flip(0), lambda t: t + t.sum(0)):
        a = held(n)
        a.assign(add(a))
        np.testing.assert_array_equal(a.numpy(), np.array(add(Tensor(n)).numpy()))


def test_two_that_read_each_other_are_exchanged() -> None:
    """A cycle of writes after reads: one of the two gets other memory."""
    a, b = held([1.0, 2.0]), held([3.0, 4.0])
    old_a, old_b = a + 0, b + 0
    a.assign(old_b * 1)
    b.assign(old_a * 1)
    a.realize(b)
    assert a.tolist() == [3.0, 4.0] and b.tolist() == [1.0, 2.0]


def test_a_reader_of_the_old_value_runs_before_the_writer() -> None:
    a, b = held(np.ones((4, 4))), held(np.full((4, 4), 2.0))
    x, y = (a.sum(1, keepdim=True) + b), (b.sum(0, keepdim=True) + a)
    a.assign(x.contiguous())
    b.assign(y.contiguous())
    del x, y
    a.realize(b)
    np.testing.assert_array_equal(a.numpy(), np.full((4, 4), 6.0))
    np.testing.assert_array_equal(b.numpy(), np.full((4, 4), 9.0))


def test_equal_constants_are_no_aliases() -> None:
    a, b = Tensor.zeros(4), Tensor.zeros(4)
    c, d = Tensor.zeros(4).contiguous(), Tensor.zeros(4).contiguous()
    a.assign(Tensor.ones(4))
    c.realize(d)
    c.assign(Tensor.ones(4))
    assert b.tolist() == d.tolist() == [0] * 4 and a.tolist() == c.tolist() == [1] * 4


COPIES: dict[str, Callable[[Tensor], Tensor]] = {
    "clone": Tensor.clone, "copy": copy, "deepcopy": deepcopy,
    "equal expression": lambda x: x.reshape(-1).reshape(x.shape).clone(),
    "replaced": lambda x: Tensor.empty(*x.shape, dtype=x.dtype).replace(x),
    "piece": lambda x: x[:1].clone().realize(),
    "all of it": lambda x: x[:].clone(),
}  # fmt: skip


@by_rows("make", COPIES)
@by_rows("write", ["+= 1", ".assign([8])", "[:1] = 8"])
@by_rows("again", ["+= 1", ".assign([7, 9])", "[:1] = 3"])
@by_rows("read_first", ["c", "x", "both"])
def test_two_that_stand_for_one_version_are_written(
    make: str, write: str, again: str, read_first: str
) -> None:
    """Whichever is computed first may take the memory; the other one has its value all the same."""
    x = held([1, 2], np.int32)
    c = COPIES[make](x)
    array = np.array([1, 2], np.int32)
    a, b = array.copy(), array[: c.numel()].copy()
    for names, text in (({"t": c, "a": b}, write), ({"t": x, "a": a}, again)):
        exec(f"t{text}", names)
        exec(f"a{text.replace('.assign(', '[...] = (')}", names)
    if read_first == "both":
        x.realize(c)
    order = [(c, b), (x, a)] if read_first == "c" else [(x, a), (c, b)]
    for tensor, want in order * 2:
        assert tensor.tolist() == want.tolist()


@pytest.mark.parametrize("device", device_params("LLVM", "C", "PYTHON", "OPENCL"))
def test_memory_of_empty_is_written(device: str) -> None:
    with Context(DEV=device):
        item, whole, view, more = (Tensor.empty(3) for _ in range(4))
        item[0] = 1
        assert item.numpy()[0] == 1
        assert whole.assign([1.0, 2.0, 3.0]).tolist() == [1, 2, 3]
        part = view[1:]
        part.assign(0)
        assert part.tolist() == [0, 0] == view.tolist()[1:]
        more += 1
        assert more.numpy().shape == (3,)
        read = Tensor.empty(3)
        values = read.numpy()
        read *= 2
        np.testing.assert_array_equal(read.numpy(), values * 2)
        nothing = Tensor.empty(0, 3)
        nothing += 1
        nothing[:] = 2
        assert nothing.assign(1).tolist() == []


def test_many_writes_before_a_computation_are_one_kernel() -> None:
    a = held([0.0, 1.0])
    for _ in range(5):
        a += 1
    assert kernels_of(a.realize) == 1 and a.tolist() == [5.0, 6.0]


def test_an_exploration_keeps_what_it_reads() -> None:
    a = held([1.0, 2.0])
    kernel = explore(a * 3).kernels[0]
    a += 1
    a.realize()
    assert kernel.run()[0].tolist() == [3.0, 6.0]


def test_an_overwritten_value_is_refused_in_words() -> None:
    a = held([1.0, 2.0])
    node = a.uop
    a += 1
    a.realize()
    with pytest.raises(WorkbenchError, match="newer one was written over it"):
        memory_of(base(node))


INDEXES: dict[str, tuple[Any, Any]] = {
    "tensor": ([2, 0], [[10], [20]]),
    "repeated": ([1, 1, 0], [[1.0], [2.0], [3.0]]),
    "negative": ([-1], 5),
    "two": (([0, 2], [1, 3]), [7, 8]),
    "apart": (([0, 2], slice(1, 3)), [[1, 2], [3, 4]]),
    "second": ((slice(None), [3, 0]), [5, 6]),
    "mask": (np.arange(12).reshape(3, 4) % 3 == 0, -1),
    "rows by mask": (np.array([True, False, True]), [[1, 2, 3, 4], [5, 6, 7, 8]]),
    "a mask and a slice": ((np.array([True, False, True]), slice(0, 2)), 9),
    "none": (np.zeros(0, int), 3),
    "no element of a mask": (np.zeros((3, 4), bool), 3),
    "no element of a mask, no value": (np.zeros((3, 4), bool), np.zeros(0)),
    "no row of a mask, no rows": (np.zeros(3, bool), np.zeros((0, 4))),
}


@pytest.mark.parametrize("name", INDEXES)
@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_writes_through_indexes_agree_with_numpy(name: str, device: str) -> None:
    index, value = INDEXES[name]
    reference = np.arange(12, dtype=np.float32).reshape(3, 4)
    a = Tensor(reference, device=device).realize()
    reference[index] = value
    a[index] = value if isinstance(value, int) else Tensor(np.float32(value), device=device)
    np.testing.assert_array_equal(a.numpy(), reference)


@pytest.mark.parametrize("reverse", [True, False])
def test_a_piece_that_was_read_before_is_written_from_itself(reverse: bool) -> None:
    """It was computed as a window on the memory of the whole, which the kernel reads too."""
    a, reference = held(np.arange(6).reshape(2, 3)), np.arange(6.0).reshape(2, 3)
    piece, own = a[1:2, 0:2], reference[1:2, 0:2]
    assert piece.tolist() == own.tolist()
    piece.assign(piece.flip(1) if reverse else piece * piece.sum())
    own[...] = own[:, ::-1].copy() if reverse else own * own.sum()
    np.testing.assert_array_equal(a.numpy(), reference)


def test_an_address_that_is_combined_over_unrolled_lanes() -> None:
    """The last of two written elements is a maximum over both, and a part of an address."""
    numbers = np.arange(1, 11, dtype=np.float32).reshape(2, 1, 5)
    for row, total in ((3, 0), (2, 55)):  # row 3 is out of range
        a = held(np.zeros((4, 3, 5)))
        a[1:][Tensor([row, 0]).sum(), [[2], [-2]]] = numbers
        assert a.numpy().sum() == total


def test_an_index_tensor_outside_writes_nothing_or_is_refused() -> None:
    a, values = held([1.0, 2.0]), Tensor([7.0, 8.0])
    for known in (Tensor([5, 1]), Tensor([5, 1]).realize(), Tensor([1, -3]), Tensor([1, 5, 0])[:2]):
        with pytest.raises(IndexError, match="is out of range for axis 0 of shape"):
            a[known] = values
    with pytest.raises(AxisError, match="index 5 is out of range"):
        a[Tensor(5)] = 1
    a[Tensor([5, 0, 1])[1:]] = values  # what the 5 is cut from is not asked
    assert a.tolist() == [7.0, 8.0]
    a[Tensor([4, 0]) + 1] = values  # known only when it is computed
    assert a.tolist() == [7.0, 8.0]


REFUSED: dict[str, tuple[Callable[[Tensor], object], str]] = {
    "dtype": (lambda t: t.assign(Tensor([1, 2, 3])), "cannot assign int32 to a tensor of float32"),
    "shape": (lambda t: t.assign(Tensor([1.0, 2.0])), "cannot write shape (2,) to shape (3,)"),
    "device": (lambda t: t.assign(Tensor([1.0], device="PYTHON")), "on PYTHON to a tensor on LLVM"),
    "expanded": (lambda t: t.expand(2, 3).assign(0), "it repeats elements of shape (3,)"),
    "count": (lambda t: t.__setitem__(t > 1, Tensor([1.0, 2.0, 3.0])), "it is true at 2 places"),
    "mask": (lambda t: t.__setitem__(np.array([True]), 1), "with a mask of shape (1,)"),
    "mask beside": (lambda t: t.__setitem__((..., np.array([True])), 1), "a mask of shape (1,)"),
    "range": (lambda t: t.__setitem__(3, 1), "index 3 is out of range"),
    "promotes": (lambda t: Tensor([1]).__iadd__(0.5), "assign float32 to a tensor of int32"),
    "text": (lambda t: t.assign("a"), "cannot assign"),
    "replace": (lambda t: t.replace(Tensor([1.0])), "the other one has shape (1,)"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_and_writes_nothing(name: str) -> None:
    work, message = REFUSED[name]
    t = Tensor([1.0, 2.0, 3.0], device="LLVM").realize()
    with pytest.raises(WorkbenchError) as error:
        work(t)
    assert message in str(error.value)
    assert t.tolist() == [1.0, 2.0, 3.0]
