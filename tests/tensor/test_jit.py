"""TinyJit: replays agree with numpy, results stay, and what cannot be captured is refused."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
import pytest

from workbench import Device, GlobalCounters, Tensor, TinyJit, replay
from workbench.backends.native.host_memory import host_memory
from workbench.base.errors import JitError
from workbench.base.trace import observe

Array = np.ndarray[Any, Any]
SHAPES = [(1,), (7,), (3, 5), (4, 1, 6), (16, 16), (2, 3, 4, 5), (33, 65), (1000,)]
WEIGHT = np.float32(np.linspace(-1, 1, 5))


class Pair(NamedTuple):
    low: Any
    high: Any


def numbers(shape: Any, seed: int, dtype: Any = np.float32) -> Array:
    values = np.random.default_rng(seed).standard_normal(shape) * 4
    return values.astype(dtype)


def held(array: Array, device: str | None = None) -> Tensor:
    return Tensor(array, device=device).realize()


# fmt: off
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    # name: of tensors, of arrays; each of two inputs of one shape
    "one kernel": (lambda a, b: a * b + 1, lambda a, b: a * b + 1),
    "two kernels": (lambda a, b: ((a + b).contiguous() * 2), lambda a, b: (a + b) * 2),
    "a reduction": (lambda a, b: (a * b).sum(), lambda a, b: (a * b).sum()),
    "an input unused": (lambda a, b: a + 2, lambda a, b: a + 2),
    "a view of a result": (
        lambda a, b: (a - b).reshape(-1).flip(0), lambda a, b: (a - b).reshape(-1)[::-1]),
    "realised inside": (
        lambda a, b: (a + b).realize() * b, lambda a, b: (a + b) * b),
    "a piece of a value": (
        lambda a, b: (a + b).reshape(-1).contiguous()[: a.numel() // 2 + 1].realize() + 1,
        lambda a, b: (a + b).reshape(-1)[: a.size // 2 + 1] + 1),
    "constants inside": (
        lambda a, b: a * Tensor.full(a.shape, 3.0) + Tensor.ones(1),
        lambda a, b: a * np.float32(3) + 1),
    "data inside": (
        lambda a, b: a.reshape(-1, 1) * Tensor(WEIGHT), lambda a, b: a.reshape(-1, 1) * WEIGHT),
}
# fmt: on


@pytest.mark.parametrize("name", FUNCTIONS)
def test_replays_agree_with_numpy(name: str, device: str) -> None:
    function, oracle = FUNCTIONS[name]
    for shape in SHAPES:
        call, results = TinyJit(function), []
        for seed in range(0, 10, 2):
            a, b = numbers(shape, seed), numbers(shape, seed + 1)
            results.append((call(held(a), held(b)), oracle(a, b)))
        assert call.count >= 1
        for actual, expected in results:  # the earlier ones are what they were
            np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_a_replay_runs_no_python_and_schedules_nothing() -> None:
    ran = []

    def function(x: Tensor) -> Tensor:
        ran.append(1)
        return ((x + 1).contiguous() * 2).contiguous() - x

    call = TinyJit(function)
    for n in range(5):
        assert call(held(np.full(3, n, np.float32))).tolist() == [n + 2.0] * 3
    assert len(ran) == 2 and call.count == 3
    x = held(np.ones(3, np.float32))
    before = GlobalCounters.kernel_count
    call(x)
    assert GlobalCounters.kernel_count == before + 3, "replays are counted"
    call.reset()
    call(x)
    assert len(ran) == 3 and call.count == 0


def test_results_are_the_users_own() -> None:
    call = TinyJit(lambda x: x * 2)
    inputs = [held(np.full(4, n, np.float32)) for n in range(6)]
    first = [call(x) for x in inputs]
    later = [f + 1 for f in first]  # reads them after the others were made
    assert [f.tolist()[0] for f in first] == [0, 2, 4, 6, 8, 10]
    assert [f.tolist()[0] for f in later] == [1, 3, 5, 7, 9, 11]
    again = call(first[-1])  # a result as an input
    assert again.tolist() == [20.0] * 4 and call(again).tolist() == [40.0] * 4


def test_views_and_constants_are_inputs_too() -> None:
    call = TinyJit(lambda x: x + 1)
    base = held(np.arange(12, dtype=np.float32))
    forms = [
        base[2:5], base[7:10], base.reshape(4, 3)[1], base.reshape(4, 3).permute(1, 0)[:, 2][:3],
        Tensor.full((3,), 5.0), Tensor([1.0, 2.0, 3.0]), base[:3] * 2,
    ]  # fmt: skip
    for form in (*forms, *forms):
        expected = form.numpy() + 1
        np.testing.assert_array_equal(call(form).numpy(), expected)


def test_a_view_of_an_input_is_one_of_the_new_input() -> None:
    call = TinyJit(lambda x: (x.reshape(2, 3), x[1:3].realize(), x * 2, Tensor(3.0)))
    for n in range(4):
        x = held(np.arange(6, dtype=np.float32) + n)
        whole, piece, double, three = call(x)
        np.testing.assert_array_equal(whole.numpy(), x.numpy().reshape(2, 3))
        np.testing.assert_array_equal(piece.numpy(), x.numpy()[1:3])
        np.testing.assert_array_equal(double.numpy(), x.numpy() * 2)
        assert three.item() == 3.0


def test_one_buffer_may_be_two_inputs() -> None:
    call = TinyJit(lambda a, b: a * 10 + b)
    x, y = held(np.float32([1, 2])), held(np.float32([3, 4]))
    for a, b in ((x, x), (x, x), (x, y), (y, x), (y, y)):
        np.testing.assert_array_equal(call(a, b).numpy(), a.numpy() * 10 + b.numpy())


def test_what_was_computed_before_is_no_constant() -> None:
    """The capture must not take a value of its input that somebody has computed already."""
    x, y = held(np.float32([1, 2])), held(np.float32([5, 6]))
    base = (x + 1).realize()
    also = x + 1
    also.realize()
    call = TinyJit(lambda v: (v + 1) * 2)
    for _ in range(2):
        assert call(x).tolist() == [4.0, 6.0]
    assert call(y).tolist() == [12.0, 14.0]
    assert base.tolist() == also.tolist() == [2.0, 3.0]


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


@pytest.mark.parametrize("is_computed", [True, False])
def test_what_outlives_the_function_stays_as_it_was(is_computed: bool) -> None:
    """Replays use memory of their own for values on the way: nobody else reads it."""
    outside: list[Tensor] = []

    @TinyJit
    def function(x: Tensor) -> Tensor:
        first = (x + 1).contiguous()
        outside.append(first.realize() if is_computed else first * 1.5)
        for _ in range(4):
            first = (first * 2).contiguous().realize()
        return first

    for n in range(4):
        assert (
            function(held(np.full(3, n, np.float32))).tolist() == [16.0 * (n + 1)] * 3
        )
    scale = 1.0 if is_computed else 1.5
    assert [t.tolist() for t in outside] == [[scale] * 3, [2 * scale] * 3]


def test_nests_names_and_other_arguments() -> None:
    def function(pair: Any, scale: int, *, more: dict[str, Tensor]) -> Any:
        total = pair[0] + pair[1] * scale + more["x"]
        return Pair([total, total * 2], {"first": pair[0] - 1, "why": "because"})

    call = TinyJit(function)
    for n in range(4):
        a, b, c = (held(np.float32([n, i])) for i in range(3))
        actual = call([a, b], 3, more={"x": c})
        expected = a.numpy() + b.numpy() * 3 + c.numpy()
        np.testing.assert_array_equal(actual.low[0].numpy(), expected)
        np.testing.assert_array_equal(actual.low[1].numpy(), expected * 2)
        np.testing.assert_array_equal(actual.high["first"].numpy(), a.numpy() - 1)
        assert actual.high["why"] == "because" and isinstance(actual, Pair)
    for wrong in (
        lambda: call([a, b], 4, more={"x": c}),
        lambda: call((a, b), 3, more={"x": c}),
        lambda: call([a], 3, more={"x": c}),
        lambda: call([a, b], 3, more={"y": c}),
        lambda: call([a, b], a, more={"x": c}),
    ):
        with pytest.raises(JitError, match="called otherwise") as caught:
            wrong()
        assert caught.value.because and caught.value.hint


NAN = float("nan")
# fmt: off
PLAIN: dict[str, tuple[Any, Any, bool]] = {
    # what it is captured with, what it is replayed with, and whether that is the same
    "nan": (NAN, float("nan"), True),
    "nan of numpy": (np.float32(NAN), np.float32(NAN), True),
    "nan in a nest": ({"a": [NAN, 2]}, {"a": [float("nan"), 2]}, True),
    "complex nan": (complex(0, NAN), complex(0, NAN), True),
    "nan, then a number": (NAN, 1.0, False),
    "a number, then nan": (1.0, NAN, False),
    "equal": (1.5, 1.5, True),
    "minus zero": (-0.0, -0.0, True),
    "zero, then minus zero": (0.0, -0.0, False),
    "minus zero, then zero": (-0.0, 0.0, False),
    "minus zero of numpy": (np.float32(0), np.float32(-0.0), False),
    "complex minus zero": (complex(1, 0.0), complex(1, -0.0), False),
    "an integer zero": (0, 0, True),
    "another type": (1, 1.0, False),
}
# fmt: on


@pytest.mark.parametrize("name", PLAIN)
def test_a_float_is_the_same_as_a_constant_is(name: str) -> None:
    captured, argument, is_same = PLAIN[name]
    call = TinyJit(lambda x, value: x + 1)
    for _ in range(3):
        call(held(np.float32([2])), captured)
    if is_same:
        assert call(held(np.float32([3])), argument).item() == 4
        return
    with pytest.raises(JitError, match="called otherwise"):
        call(held(np.float32([3])), argument)


def test_a_replay_has_the_nan_or_the_zero_that_was_captured() -> None:
    for value in (NAN, -0.0, 0.0):
        call = TinyJit(lambda x, value: x * value)
        results = [call(held(np.float32([2, -3])), value).numpy() for _ in range(4)]
        expected = np.float32([2, -3]) * np.float32(value)
        for actual in results:
            np.testing.assert_array_equal(actual, expected)
            assert np.signbit(actual).tolist() == np.signbit(expected).tolist()


def test_what_does_not_fit_is_told() -> None:
    call = TinyJit(lambda x: x + 1)
    for _ in range(3):
        call(held(np.zeros((2, 3), np.float32)))
    wrong = {
        r"its shape was \(2, 3\).* is \(3, 2\)": held(np.zeros((3, 2), np.float32)),
        "its dtype was float32.* is int32": held(np.zeros((2, 3), np.int32)),
        "its device was LLVM.* is PYTHON": held(np.zeros((2, 3), np.float32), "PYTHON"),
    }
    for message, tensor in wrong.items():
        with pytest.raises(JitError, match=message):
            call(tensor)
    assert call(held(np.ones((2, 3), np.float32))).numpy().sum() == 12


# fmt: off
REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "no kernel": (lambda x: x.reshape(2, 3), ()),
    "cannot read values": (lambda x: x + (x.sum()).item(), ()),
    "a numpy array": (lambda x, y: x + Tensor(y), (np.ones(6, np.float32),)),
}
# fmt: on


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_captured_is_refused(message: str) -> None:
    function, more = REFUSED[message]
    call = TinyJit(function)
    x = held(np.ones(6, np.float32))
    call(x, *more)
    for _ in range(2):
        with pytest.raises(JitError) as caught:
            call(x, *more)
        assert message in str(caught.value)
    with pytest.raises(JitError, match="two calls"):
        call.launch()


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


def test_a_function_that_fails_can_be_called_again() -> None:
    fails = [False, True, False, False]

    def function(x: Tensor) -> Tensor:
        if fails.pop(0):
            raise KeyError("mine")
        return x + 1

    call = TinyJit(function)
    call(Tensor([1.0]))
    with pytest.raises(KeyError, match="mine"):
        call(Tensor([1.0]))
    assert [call(Tensor([n])).item() for n in (1.0, 2.0)] == [2.0, 3.0]


def test_as_a_method_it_captures_for_each_object() -> None:
    class Layer:
        def __init__(self, weight: float):
            self.weight = held(np.full(3, weight, np.float32))

        @TinyJit
        def __call__(self, x: Tensor) -> Tensor:
            """Scale."""
            return x * self.weight

    layers = [Layer(2.0), Layer(3.0)]
    for n in range(4):
        x = held(np.full(3, n, np.float32))
        assert [layer(x).tolist()[0] for layer in layers] == [2.0 * n, 3.0 * n]
    assert Layer.__call__.__doc__ == "Scale."


def test_equal_objects_capture_each_for_itself_and_are_let_go() -> None:
    @dataclass
    class Scale:  # equal where the names are, and so without a hash
        name: str
        weight: Tensor = field(compare=False)

        @TinyJit
        def __call__(self, x: Tensor) -> Tensor:
            return x * self.weight

    scales = [Scale("same", held(np.float32([w]))) for w in (2.0, 3.0)]
    for n in range(4):
        x = held(np.float32([n]))
        assert [scale(x).item() for scale in scales] == [2.0 * n, 3.0 * n]
    watched = ref(scales[0])
    del scales
    gc.collect()
    assert watched() is None


def test_an_object_that_cannot_be_watched_is_refused() -> None:
    class Slotted:
        __slots__ = ()
        double = TinyJit(lambda self, x: x * 2)

    with pytest.raises(JitError, match="__weakref__"):
        Slotted().double(held(np.float32([1])))


def test_an_interrupt_while_memory_moves_is_made_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call = TinyJit(lambda x: x + 1)
    x, y = held(np.float32([1])), held(np.float32([5]))
    for _ in range(3):
        call(x)

    def interrupted(uses: object, memory: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(replay, "_move", interrupted)
        call(y)
    assert [call(y).item(), call(x).item()] == [6.0, 2.0]


def test_one_in_another_is_captured_with_it() -> None:
    inner = TinyJit(lambda x: x + 1)
    outer = TinyJit(lambda x: inner(x) * 2)
    for n in range(5):
        assert outer(held(np.float32([n]))).item() == 2.0 * (n + 1)
    assert outer.count >= 1


def test_between_devices() -> None:
    call = TinyJit(lambda x: (x + 1).to("PYTHON") * 2)
    for n in range(4):
        actual = call(held(np.full(3, n, np.float32), "LLVM"))
        assert actual.device == "PYTHON" and actual.tolist() == [2.0 * n + 2] * 3


def test_the_launches_alone_run_on_the_memory_of_the_last_call() -> None:
    call = TinyJit(lambda x: (x + 1).contiguous() * 2)
    for n in range(4):
        result = call(held(np.float32([n])))
    before = GlobalCounters.kernel_count
    call.launch()
    assert result.item() == 8.0 and GlobalCounters.kernel_count == before


def test_memory_does_not_grow() -> None:
    call = TinyJit(lambda x: (x * 2).contiguous() + 1)
    x = held(np.ones(1 << 16, np.float32))
    for _ in range(3):
        call(x)
    gc.collect()
    before = host_memory.pool.used_bytes
    for _ in range(50):
        call(x)
    gc.collect()
    assert host_memory.pool.used_bytes <= before


@pytest.mark.skipif(not Device.available("LLVM"), reason="needs LLVM")
def test_a_replay_costs_little_beyond_its_launches() -> None:
    """Nothing is planned, rewritten or compiled: no pass runs."""
    x = held(np.ones(64, np.float32))

    def work(v: Tensor) -> Tensor:
        return (v * 2).contiguous() + 1

    call = TinyJit(work)
    for _ in range(3):
        call(x)
    with observe() as planned:
        work(x).realize()
    with observe() as replayed:
        call(x)
    assert planned.records and not replayed.records


def test_values_on_the_way_share_memory() -> None:
    """However long the chain: the input, two values on the way, and the result."""

    @TinyJit
    def chain(x: Tensor) -> Tensor:
        for _ in range(8):
            x = (x + 1).contiguous()
        return x

    x = Tensor(np.zeros(1 << 18, np.float32)).realize()
    gc.collect()
    before, size = host_memory.pool.used_bytes, x.nbytes()
    for number in range(5):
        y = chain(x + number)
        np.testing.assert_array_equal(y.numpy(), np.full(1 << 18, 8 + number))
    del y
    gc.collect()
    assert (
        host_memory.pool.used_bytes - before <= 5 * size
    )  # it was 9, the last input and result with them


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
