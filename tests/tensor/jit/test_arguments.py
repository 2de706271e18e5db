"""The arguments of a captured function: views, nests, constants; what does not fit is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.tensor.jit.support import held
from workbench import Tensor, TinyJit
from workbench.base.errors import JitError
from workbench.tensor.variable_operators import tensors


class Pair(NamedTuple):
    low: Any
    high: Any


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


def test_a_result_that_no_kernel_computes_is_that_of_each_call() -> None:
    results = {
        "a view": lambda x: x.reshape(2, 3),
        "the argument": lambda x: x,
        "a copy": lambda x: x.clone(),
        "a constant": lambda x: x.zeros_like() + 3,
        "in a nest": lambda x: [x[2:5], {"whole": x * 1}],
    }
    for function in results.values():
        call: Any = TinyJit(function)
        for n in range(4):
            values = np.arange(6, dtype=np.float32) + n
            for actual, expected in zip(
                tensors(call(held(values))), tensors(function(held(values))), strict=True
            ):
                np.testing.assert_array_equal(actual.numpy(), expected.numpy())
        assert call.count == 0


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
    "a replay would do nothing": (lambda x: None, ()),
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
