"""Reads of what is overwritten, in the shapes that schedulers get wrong: the value is always right.

Where tinygrad refuses ("cycle", "contiguous"), a value gets other memory here. Source of the
programs: tinygrad's tests of assign, with its numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support import by_rows
from workbench import GlobalCounters, Tensor

pytestmark = pytest.mark.usefixtures("device")

Programs = dict[str, Callable[[Any], list[Any]]]


class Both:
    """The same program for tensors and for arrays: `full` makes memory, `copy` an own value."""

    def __init__(self, is_array: bool):
        self.is_array = is_array

    def full(self, shape: tuple[int, ...], value: float) -> Any:
        if self.is_array:
            return np.full(shape, value, np.int32)
        return Tensor(np.full(shape, value, np.int32)).realize()

    def range(self, *shape: int) -> Any:
        array = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
        return array if self.is_array else Tensor(array).realize()

    def assign(self, target: Any, value: Any) -> Any:
        if not self.is_array:
            return target.assign(value.cast(target.dtype))
        target[...] = np.array(value)
        return target

    def value(self, x: Any) -> Any:
        """Return `x` as it is now: an expression of tensors is that by itself."""
        return np.array(x) if self.is_array else x * 1

    def stored(self, x: Any) -> Any:
        return np.array(x) if self.is_array else x.contiguous()


def diamond(m: Both) -> list[Any]:
    """a + the old a: 4, as in PyTorch."""
    a = m.full((4,), 1)
    old = m.value(a * 2)
    m.assign(a, m.full((4,), 2))
    return [a + old, a]


def stored_diamond(m: Both) -> list[Any]:
    a = m.full((4,), 1)
    old = m.stored(a * 3)
    m.assign(a, m.full((4,), 2))
    return [m.stored(a + old), a]


def crossed(m: Both) -> list[Any]:
    """Each is written from a value of the other, before and after."""
    a, b = m.full((4, 4), 2), m.full((4, 4), 3)
    c = m.value(b * 2)
    a += 1
    b += m.value(c[0])
    a += b
    return [a, b, c]


def double_sums(m: Both) -> list[Any]:
    """Two sums that feed two assigns, each of the other's old value: 128 and 608."""
    a, b = m.full((16, 16), 10), m.full((16, 16), 20)
    c, d = m.full((16,), 1), m.full((16,), 2)
    first, second = m.value((a - m.stored(d)).sum(1)), m.value((b - m.stored(c)).sum(1))
    m.assign(c, m.value(first * c))
    m.assign(d, m.value(second * d))
    return [c, d]


def permuted(m: Both) -> list[Any]:
    a, b = m.range(8, 8), m.full((8, 8), 1)
    m.assign(a, m.value(a.transpose(1, 0) + b))
    return [a]


def to_permuted(m: Both) -> list[Any]:
    a = m.range(8, 8)
    turned = a.transpose(1, 0)
    m.assign(turned, m.value(a * 3 + turned))
    return [a, turned]


def permuted_child_of_a_sum(m: Both) -> list[Any]:
    a = m.range(8, 8, 8)
    total = m.value(a.sum(1).reshape(1, 8, 8).transpose(1, 0, 2) if m.is_array
                    else a.sum(1).reshape(1, 8, 8).permute(1, 0, 2))  # fmt: skip
    m.assign(a, m.value(a + total))
    return [a]


def two_outputs_that_read_one(m: Both) -> list[Any]:
    a, b, c = m.range(8, 8, 8), m.full((8, 8), 1), m.range(8, 8)
    total, across = m.value(a.sum(1)), m.value(b.transpose(1, 0))
    m.assign(b, m.value(total + b))
    m.assign(c, m.value(total + across * 3))
    return [b, c]


def masked_then_permuted(m: Both) -> list[Any]:
    a, b = m.range(6, 6), m.full((6, 6), 2)
    part = a[:, :3]
    wide = np.pad(part, ((0, 0), (0, 3))) if m.is_array else part.pad(((0, 0), (0, 3)))
    m.assign(a, m.value(wide.transpose(1, 0) + b))
    return [a]


def shifted_by_one(m: Both) -> list[Any]:
    a = m.range(9)
    a[1:] = m.value(a[:-1])
    a[:-2] += m.value(a[2:])
    return [a]


def three_in_a_ring(m: Both) -> list[Any]:
    a, b, c = m.range(5), m.full((5,), 7), m.full((5,), 9)
    old = m.value(a), m.value(b), m.value(c)
    for target, source in ((a, old[1]), (b, old[2]), (c, old[0])):
        m.assign(target, source)
    return [a, b, c]


PROGRAMS = [
    diamond, stored_diamond, crossed, double_sums, permuted, to_permuted, permuted_child_of_a_sum,
    two_outputs_that_read_one, masked_then_permuted, shifted_by_one, three_in_a_ring,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_the_value_is_that_of_the_old_or_the_new(program: Callable[[Both], list[Any]]) -> None:
    """Computed all at once, one after the other, and from the last to the first."""
    wanted = program(Both(True))
    for order in ("together", "in order", "backwards"):
        results = program(Both(False))
        if order == "together":
            Tensor.realize(*results)
        for tensor in results[::-1] if order == "backwards" else results:
            tensor.realize()
        for tensor, want in zip(results, wanted, strict=True):
            np.testing.assert_array_equal(tensor.numpy(), want)


def three_of_a_sum(m: Both) -> list[Any]:
    total = m.value(m.range(32, 32).sum(1))
    targets = [m.full((32,), n) for n in (1, 2, 3)]
    return [m.assign(t, m.value(total + t)) for t in targets]


def one_across(m: Both) -> list[Any]:
    total = m.value(m.range(8, 8, 8).sum(1))
    b, c = m.range(8, 8), m.range(8, 8)
    across = m.stored(b.transpose(1, 0))
    return [m.assign(b, m.value(total + b)), m.assign(c, m.value(total + across))]


def masked_read_of_itself(m: Both) -> list[Any]:
    a = m.full((4, 4), 1)
    part, width = a[:, :2], ((0, 0), (0, 2))
    wide = np.pad(part, width, constant_values=2) if m.is_array else part.pad(width, value=2)
    return [m.assign(a, m.value(a + wide))]


COUNTED: list[tuple[int, Callable[[Both], list[Any]]]] = [
    (1, three_of_a_sum), (2, one_across), (1, masked_read_of_itself),
]  # fmt: skip
"""tinygrad's count of kernels, and the program."""


@pytest.mark.parametrize(("most", "program"), COUNTED, ids=lambda x: getattr(x, "__name__", ""))
def test_what_is_assigned_together_is_few_kernels(
    most: int, program: Callable[[Both], list[Any]]
) -> None:
    results, wanted = program(Both(False)), program(Both(True))
    before = GlobalCounters.kernel_count
    Tensor.realize(*results)
    assert GlobalCounters.kernel_count - before <= most
    for tensor, want in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), want)


# Operator -> dtype, the value to the right.
IN_PLACE: dict[str, tuple[str, Any]] = {
    "+=": ("float32", 2), "-=": ("float32", 0.5), "*=": ("float32", 3), "/=": ("float32", 4),
    "//=": ("float32", 2), "%=": ("float32", 3), "**=": ("float32", 2), "&=": ("int32", 6),
    "|=": ("int32", 8), "^=": ("int32", 5), "<<=": ("uint32", 3), ">>=": ("uint32", 1),
    "@=": ("float32", [[0, 1, 2], [1, 0, 0], [0, 2, 1]]),
}  # fmt: skip


@by_rows("operator", IN_PLACE)
def test_an_operator_writes_where_other_names_see_it(operator: str) -> None:
    dtype, right = IN_PLACE[operator]
    array = np.arange(1, 10).astype(dtype).reshape(3, 3)
    a = Tensor(array).realize()
    other, view, before = a, a.reshape(9)[::-1], a + 0
    names = {"a": a, "v": Tensor(right) if isinstance(right, list) else right}
    exec(f"a {operator} v", names)
    assert names["a"] is other
    want = {"x": array.copy(), "v": np.array(right, dtype) if operator == "@=" else right}
    exec(f"x = x {operator[:-1]} v", want)
    np.testing.assert_allclose(other.numpy(), want["x"], rtol=1e-6)
    np.testing.assert_allclose(view.numpy(), want["x"].reshape(9)[::-1], rtol=1e-6)
    np.testing.assert_array_equal(before.numpy(), array)


def test_a_piece_is_written_where_it_lies() -> None:
    whole = Tensor(np.arange(8, dtype=np.float32)).realize()
    piece = whole[2:5]
    before = GlobalCounters.kernel_count
    piece.assign(Tensor([9.0, 8.0, 7.0]).realize()).realize()
    assert GlobalCounters.kernel_count - before <= 1
    assert whole.tolist() == [0, 1, 9, 8, 7, 5, 6, 7] and piece.tolist() == [9, 8, 7]


def test_clones_are_two() -> None:
    a = Tensor([1, 2]).realize()
    one, two = a.clone(), a.clone()
    one.realize(two)
    before = GlobalCounters.kernel_count
    assert one.tolist() == two.tolist() == [1, 2]
    assert GlobalCounters.kernel_count == before, "a copy is made once"
    one += 5
    a.assign([0, 0])
    assert [t.tolist() for t in (a, one, two)] == [[0, 0], [6, 7], [1, 2]]


@by_rows("write", ["t -= t", "t.assign(t - 1)", "t += 1", "t[1] = 2"])
@by_rows("other", ["u += 1", "u[..., -1] += 2", "u[u > 0] = 9", "pass"])
def test_a_version_that_an_expression_reads_is_kept(write: str, other: str) -> None:
    """The expression was built of the version before that was computed: it has DETACHs in it."""
    names = {"t": Tensor(np.arange(-2, 2, dtype=np.float32).reshape(2, 2))}
    exec("t.realize(); t[0] = 5; u = t * 2; t.realize()", names)
    exec(f"{write}; {other}; t.realize()", names)
    want = np.array([[10, 10], [0, 2]], np.float32)
    array = {"u": want}
    exec(other, array)
    np.testing.assert_array_equal(names["u"].numpy(), array["u"])


@pytest.mark.parametrize("swaps", range(4))
def test_the_whole_of_a_view_that_waits_keeps_what_it_reads(swaps: int) -> None:
    """The view has the value that is computed; its memory has elements beside, of older values."""
    a, b = (Tensor(np.int32(v)).realize() for v in ([1, -1], [0, 1, 0]))
    b = b[1:]
    expected, others = np.int32([1, -1]), np.int32([1, 0])
    for _ in range(swaps):
        a, b, expected, others = b, a, others, expected
        a.assign(b)
        expected[:] = others
    a += 3
    expected += 3
    b.assign(a)
    assert b.tolist() == a.tolist() == expected.tolist()
