"""The state of a captured function: what it reads and writes that is no argument."""

from __future__ import annotations

import numpy as np

from tests.tensor.jit.support import held
from workbench import GlobalCounters, Tensor, TinyJit


def test_closed_over_tensors_are_read_at_each_replay() -> None:
    weight = held(np.float32([2, 3]))
    call = TinyJit(lambda x: x * (weight * weight + 1).contiguous())
    for n in range(6):
        x = held(np.float32([n, 1]))
        expected = x.numpy() * (weight.numpy() ** 2 + 1)
        np.testing.assert_array_equal(call(x).numpy(), expected)
        if n == 3:
            weight += 1
    assert call.count == 2


def test_a_tensor_that_is_replaced_is_read_as_it_is_then() -> None:
    weight, runs = held(np.int32([1, 2])), []

    def scaled(x: Tensor) -> Tensor:
        runs.append(1)
        return x * weight

    call, want = TinyJit(scaled), 1
    x = held(np.int32([1, 1]))
    for n in range(9):
        if n in (1, 4):
            want = n + 10
            weight.replace(Tensor([want, 2]).realize())
        if n == 6:
            want, _ = 5, held(np.int32([3])).replace(Tensor([7]))
            weight.replace(Tensor([want, 2]))  # not computed
        if n == 8:
            weight[0] = want = 9
        assert call(x).tolist() == [want, 2]
    assert len(runs) == 4  # twice, and after each that came later


def test_no_replay_leaves_the_gradient_of_the_capture() -> None:
    w = Tensor([1.0, 2.0], requires_grad=True)
    other = Tensor([1.0], requires_grad=True)
    (other * 3).sum().backward()

    @TinyJit
    def loss(x: Tensor) -> Tensor:
        value: Tensor = (w * w * x).sum()
        value.backward()
        return value

    for n, want in enumerate(([2.0, 4.0], [6.0, 12.0], None, None)):
        assert loss(held(np.float32(n + 1))).item() == 5 * (n + 1)
        assert (None if w.grad is None else w.grad.tolist()) == want
    (w * w).sum().backward()
    loss(held(np.float32(1)))
    assert w.grad is not None and w.grad.tolist() == [2, 4]  # it is the user's
    assert other.grad is not None and other.grad.tolist() == [3]


def test_one_memory_under_two_names_is_right_or_refused() -> None:
    """What is written by one name is read by the other: then nothing is captured or replayed."""

    def multiply(a: Tensor, b: Tensor) -> Tensor:
        a += 1
        return a * b

    call = TinyJit(multiply)
    for n in range(4):
        a, b = held(np.float32([n, 2])), held(np.float32([10, 20]))
        assert call(a, b).tolist() == [(n + 1) * 10, 60]
        both = held(np.float32([1, n]))
        assert call(both, both).tolist() == [4, (n + 1) ** 2]
    state = held(np.float32([3, 4]))
    add = TinyJit(lambda a: (state.assign(state + a), state + a)[1])
    for n in range(4):
        assert add(state).tolist() == [12 * 2**n, 16 * 2**n]


def test_state_that_is_a_copy_of_other_memory_stays_when_that_is_written() -> None:
    """The copy costs nothing, so a replay leaves two names on one memory."""
    kept, source = held([0.0, 0.0]), held([5.0, 6.0])
    of_input = held([0.0, 0.0])

    def step(x: Tensor) -> Tensor:
        kept.assign(source)
        of_input.assign(x)
        return x + source

    call = TinyJit(step)
    for n in range(5):
        x = (held([1.0, 2.0]) + n).flip(0)
        call(x)
        source += 1
        source.realize()
        assert kept.tolist() == [5.0 + n, 6.0 + n]
        of_input += 1
        of_input.realize()
        assert x.tolist() == [2.0 + n, 1.0 + n]


def test_what_depends_on_state_alone_runs_again_when_that_changed() -> None:
    weight, bias = held(np.float32([[1, 2], [3, 4]])), held(np.float32([1, 1]))
    other = held(np.float32([2, 2]))

    @TinyJit
    def layer(x: Tensor) -> Tensor:
        nonlocal other
        turned = weight.transpose(0, 1).contiguous()
        scaled = (bias * 2).contiguous()
        moved = (other * 3).contiguous()  # it is written at each call
        other += 1
        return (x @ turned + scaled + moved).contiguous() * 1

    for n in range(12):
        if n == 5:
            weight[0, 1] = 9
        if n == 7:
            weight = held(np.float32([[0, 1], [1, 0]]))
        if n == 9:
            bias += 1
        x, before = held(np.float32([[n, 1]])), GlobalCounters.kernel_count
        w, b, o = weight.numpy(), bias.numpy(), other.numpy()
        before = GlobalCounters.kernel_count
        y = layer(x)
        ran = GlobalCounters.kernel_count - before
        np.testing.assert_allclose(y.numpy(), x.numpy() @ w.T + b * 2 + o * 3)
        if n > 2 and n not in (5, 7, 8, 9):  # at 7 it is captured anew, at 8 it runs first
            assert ran == layer.count - 2


def test_no_more_is_left_than_the_state_has_bytes() -> None:
    """A weight of bytes that becomes floats would stay in memory as those."""
    weight = held(np.arange(64, dtype=np.uint8))
    call = TinyJit(lambda x: x * (weight.float() * 0.5).contiguous())
    for n in range(5):
        before = GlobalCounters.kernel_count
        actual = call(held(np.full(64, n, np.float32)))
        ran = GlobalCounters.kernel_count - before
        np.testing.assert_array_equal(actual.numpy(), np.arange(64) * 0.5 * n)
    assert ran == call.count == 2
