"""Memory that tensors share with numpy and torch, by DLPack, and by address."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from workbench import Tensor, dtypes
from workbench.base.errors import DTypeError, WorkbenchError


def test_an_array_that_is_shared_is_seen_from_both_sides() -> None:
    array = np.arange(4, dtype=np.float32)
    t = Tensor.from_numpy(array, share=True)
    array[0] = 10
    assert t.tolist() == [10, 1, 2, 3]
    t += 1
    t.realize()
    assert array.tolist() == [11, 2, 3, 4]
    old = t * 1  # needs the old value, so the new one is copied to where it was
    t[1:3] = 7
    assert t.tolist() == [11, 7, 7, 4] and array.tolist() == [11, 7, 7, 4]
    assert old.tolist() == [11, 2, 3, 4]
    t.assign(Tensor.ones(4))
    assert t.tolist() == [1] * 4 and array.tolist() == [1] * 4
    t.assign(t.flip(0) + Tensor([1.0, 2.0, 3.0, 4.0]))
    t.realize()
    assert array.tolist() == [2, 3, 4, 5]


def test_without_share_it_is_a_copy() -> None:
    array = np.arange(4)
    t = Tensor.from_numpy(array)
    array[0] = 9
    assert t.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "float16"])
def test_dlpack_both_ways_without_a_copy(dtype: str) -> None:
    t = (Tensor.arange(6).cast(dtype) + 1).reshape(2, 3).realize()
    there = torch.from_dlpack(t)
    assert there.shape == (2, 3) and str(there.dtype) == f"torch.{dtype}"
    t += 1
    t.realize()
    np.testing.assert_array_equal(there.numpy(), t.numpy())
    source = torch.arange(3, dtype=getattr(torch, dtype))
    here = Tensor.from_dlpack(source)
    source[1] = 5
    assert here.tolist() == [0, 5, 2]
    assert np.from_dlpack(t).tolist() == t.tolist()


def test_shared_memory_outlives_its_tensor() -> None:
    there = torch.from_dlpack((Tensor.ones(1000) * 3).contiguous())
    more = [Tensor.full((1000,), n).contiguous().realize() for n in range(8)]
    assert float(there.sum()) == 3000 and len(more) == 8


def test_a_constant_in_another_dtype_is_copied() -> None:
    for zeros in (Tensor.zeros(2, 3), Tensor.zeros(2, 3).realize()):
        array = np.from_dlpack(zeros.bitcast("int32"))
        np.testing.assert_array_equal(array, np.zeros((2, 3), np.int32))
        with pytest.raises(BufferError):
            zeros.bitcast("int32").__dlpack__(copy=False)


def test_an_address_is_read_and_written() -> None:
    array = np.arange(6, dtype=np.int32)
    t = Tensor.from_blob(array.ctypes.data, (2, 3), dtype=dtypes.int32)
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]]
    t[0] = 9
    t.realize()
    assert array.tolist() == [9, 9, 9, 3, 4, 5]


def test_data_is_read_without_a_copy() -> None:
    t = Tensor.arange(4).contiguous()
    view = t.data()
    assert view.readonly and view.tolist() == [0, 1, 2, 3] and view.format == "i"
    assert Tensor.full((2, 2), 1.5).data().tolist() == [[1.5, 1.5], [1.5, 1.5]]


def test_on_another_device_it_is_a_copy() -> None:
    t = Tensor([[1.0, 2.0]])
    assert torch.from_dlpack(t.T).tolist() == [[1.0], [2.0]]


def test_what_cannot_be_shared_is_refused_in_words() -> None:
    wide = np.zeros((4, 4), np.float32)
    for work, message in [
        (lambda: Tensor.from_numpy(wide[:, ::2], share=True), "do not lie there in order"),
        (lambda: Tensor.from_numpy([1.0]), "it must be a numpy array"),
        (lambda: Tensor.from_dlpack([1.0]), "does not have __dlpack__"),
        (lambda: Tensor.from_blob(0, (2,)), "must be a multiple of 4 above 0"),
        (lambda: Tensor.from_blob(4097, (2,)), "must be a multiple of 4 above 0"),
        (lambda: Tensor.from_blob(4096, (2,)), "cannot be read"),
        (lambda: Tensor.from_blob(wide.ctypes.data, (1 << 40,)), "cannot be read"),
        (lambda: Tensor.from_blob("a", (2,)), "from_blob: ptr"),
    ]:  # fmt: skip
        with pytest.raises(WorkbenchError) as error:
            work()
        assert message in str(error.value)
    with pytest.raises(BufferError):
        Tensor([1.0]).cast(dtypes.bfloat16).__dlpack__()
    with pytest.raises(BufferError):
        Tensor([1.0]).__dlpack__(dl_device=(2, 0))


@pytest.mark.parametrize("is_computed", [True, False])
def test_a_view_is_shared_where_the_whole_of_it_lies(is_computed: bool) -> None:
    whole = Tensor([1, 2, 3, 4])
    if is_computed:
        whole.realize()
    view = whole[1:3]
    array = np.from_dlpack(view)
    text = view.data()
    whole[1] = 9
    whole.realize()
    assert array.tolist() == text.tolist() == view.tolist() == [9, 3]
    view += 1
    assert whole.realize().tolist() == [1, 10, 4, 4] and array.tolist() == [10, 4]


def test_axes_in_another_order_are_shared() -> None:
    theirs = torch.arange(24.0).reshape(2, 3, 4)
    ours = Tensor.from_dlpack(theirs.permute(2, 0, 1))
    assert ours.shape == (4, 2, 3)
    np.testing.assert_array_equal(ours.numpy(), theirs.permute(2, 0, 1).numpy())
    ours[1] = 7.0
    ours.realize()
    assert (theirs[:, :, 1] == 7.0).all() and theirs[0, 0, 0] == 0.0
    view = Tensor.from_dlpack(torch.arange(6.0))[1:3]
    assert view.tolist() == [1.0, 2.0]


def test_elements_that_lie_apart_are_copied() -> None:
    theirs = torch.arange(12.0).reshape(3, 4)
    for part in (theirs[:, ::2], theirs[:1].expand(3, 4)):
        ours = Tensor.from_dlpack(part)
        np.testing.assert_array_equal(ours.numpy(), part.numpy())
        ours += 1.0
        ours.realize()
    assert theirs.flatten().tolist() == [float(n) for n in range(12)]


def test_a_view_of_shared_memory_that_was_read_is_still_one() -> None:
    array = np.arange(4, dtype=np.float32)
    view = Tensor.from_numpy(array, share=True)[1:3]
    assert view.tolist() == [1.0, 2.0]
    view += 10.0
    view.realize()
    assert array.tolist() == [0.0, 11.0, 12.0, 3.0]


SHARED_VIEWS = {
    "whole": lambda x: x,
    "slice": lambda x: x[1:3],
    "steps": lambda x: x[::2],
    "flipped": lambda x: x[::-1],
    "shaped": lambda x: x.reshape(2, 2),
    "moved": lambda x: x.reshape(2, 2).T,
}


@pytest.mark.parametrize("name", [*SHARED_VIEWS, "bits", "bytes"])
@pytest.mark.parametrize("how", ["from_numpy", "from_dlpack", "dlpack"])
def test_a_view_sees_what_the_other_side_writes(name: str, how: str) -> None:
    """Whether it was read or written before or not; so does all that is computed later."""
    ours: Any = Tensor([0, 1, 2, 3]).realize()
    if how == "dlpack":
        array = torch.from_dlpack(ours).numpy()
    else:
        array = np.arange(4, dtype=np.int32)
        ours = (
            Tensor.from_numpy(array, share=True)
            if how == "from_numpy"
            else Tensor.from_dlpack(array)
        )
    bits = {"bits": "uint32", "bytes": "uint8"}
    if name in bits:
        view, theirs = ours.bitcast(bits[name])[1:], array.view(bits[name])[1:]
    else:
        view, theirs = SHARED_VIEWS[name](ours), SHARED_VIEWS[name](array)
    for round_ in range(3):
        stays = [(view + 0).realize(), view.clone().realize(), ours.clone().realize()]
        values = [theirs.copy(), theirs.copy(), array.copy()]
        array += 10
        assert view.tolist() == theirs.tolist() and ours.tolist() == array.tolist()
        assert (view + 1).tolist() == (theirs + 1).tolist()
        view += 1
        view[:1] = round_
        view.realize()
        assert view.tolist() == theirs.tolist() and ours.tolist() == array.tolist()
        array[-1] = 7
        assert view.tolist() == theirs.tolist() and ours.tolist() == array.tolist()
        for tensor, want in zip(stays, values, strict=True):
            assert tensor.tolist() == want.tolist()


@pytest.mark.parametrize("is_computed", [True, False])
def test_a_copy_of_shared_memory_is_not_shared(is_computed: bool) -> None:
    array = np.arange(4, dtype=np.int32)
    ours = Tensor.from_numpy(array, share=True)
    copies = [ours.clone(), ours[1:].clone(), copy(ours), ours + 0, deepcopy(ours)]
    before = [c.numpy() if is_computed else None for c in copies]
    ours += 1
    for each in copies:
        each += 1
    for each in copies:
        each.realize()
    ours.realize()
    assert array.tolist() == [1, 2, 3, 4]
    array[:] = 0
    assert [c.tolist() for c in copies][:2] == [[1, 2, 3, 4], [2, 3, 4]]
    assert all(c.tolist() == [1, 2, 3, 4] for c in copies[2:]) and before


def test_what_another_library_gets_is_no_other_tensor_s() -> None:
    x = Tensor([1, 2]).realize()
    clone, double = x.clone().realize(), (x * 2).realize()
    theirs = torch.from_dlpack(x)
    theirs[0] = 9
    clone += 1
    assert clone.tolist() == [2, 3] and double.tolist() == [2, 4]
    assert x.tolist() == [9, 2] == theirs.tolist()


def test_a_value_is_not_taken_for_that_of_older_contents() -> None:
    """An expression that is kept for its gradient, beside the same one of new contents."""
    array, w = np.ones(2, np.float32), Tensor([2.0, 3.0], requires_grad=True)
    x = Tensor.from_numpy(array, share=True)
    first = x * w
    assert first.tolist() == [2, 3]
    array[:] = 10
    second = x * w
    assert second.tolist() == [20, 30] and first.tolist() == [2, 3]
    second.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [10, 10]


def test_a_shared_leaf_has_its_gradient() -> None:
    array = np.ones(2, np.float32)
    w = Tensor.from_numpy(array, share=True).requires_grad_()
    loss = (w * w).sum()
    assert loss.item() == 2
    array[0] = 3
    again = (w * w).sum()
    assert again.item() == 10
    again.backward()
    assert w.grad is not None and w.grad.tolist() == [6, 2]
    with Tensor.train():
        w.assign(w.detach() - w.grad).realize()
    assert array.tolist() == [-3, -1]


def test_what_is_written_with_a_gradient_is_seen() -> None:
    array, w = np.ones(2, np.float32), Tensor([2.0, 3.0], requires_grad=True)
    x = Tensor.from_numpy(array, share=True)
    for want in ([3.0, 4.0], [5.0, 7.0]):
        x += w
        x.realize()
        assert array.tolist() == want == x.tolist()
    x.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [2, 2]


def test_a_view_of_shared_memory_prints_that_it_is_one() -> None:
    t = Tensor.from_numpy(np.arange(4, dtype=np.float32), share=True)
    view = t[1:3]
    assert repr(t) == f"<Tensor float32 (4,) on {t.device}>"
    for _ in range(2):
        assert repr(view) == f"<Tensor float32 (2,) on {t.device}, a view of shared memory>"
        view.realize()
    t += 1
    assert "not computed" in repr(view)
    t.realize()
    assert repr(view) == f"<Tensor float32 (2,) on {t.device}, a view of shared memory>"


def test_a_foreign_tensor_is_named_by_its_module() -> None:
    """Both are called Tensor."""
    for add in (lambda x, y: x + y, lambda x, y: y + x):
        with pytest.raises(
            DTypeError, match=r"(?s)a tensor and torch\.Tensor.*Tensor\(\.\.\) of the torch"
        ):
            add(Tensor.ones(3), torch.ones(3))
