"""Names of tensors in a captured function: programs give with TinyJit what they give without.

Arguments that are written, results that are views of arguments or of state, attributes and items
that are bound to other tensors, by the function and between its calls.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.support import count
from tests.tensor.jit.support import held
from workbench import Tensor, TinyJit
from workbench.base.errors import JitError

Jit = Callable[[Any], Any]
Program = Callable[[Jit], list[Any]]


def vector(*values: float) -> Tensor:
    return held(np.float32(values))


def assigned_alone(jit: Jit) -> list[Any]:
    c, seen = vector(0, 0), []
    call = jit(lambda x: c.assign(x))
    for n in range(5):
        x = vector(n, 1)
        call(x)
        x += 100
        seen.append((x.realize().tolist(), c.tolist()))
    return seen


def one_value_for_two(jit: Jit) -> list[Any]:
    c, d, seen = vector(0, 0), vector(0, 0), []

    def function(x: Tensor) -> None:
        y = x + 1
        c.assign(y)
        d.assign(y)

    call = jit(function)
    for n in range(5):
        call(vector(n, 1))
        c.assign(c + 5).realize()
        seen.append((c.tolist(), d.tolist()))
    return seen


def constant_assigned(jit: Jit) -> list[Any]:
    c, seen = vector(1, 1), []
    call = jit(lambda: [c.assign(0)] and None)
    for n in range(4):
        call()
        seen.append(c.tolist())
        c.assign(vector(n, n))
    return seen


def argument_written(jit: Jit) -> list[Any]:
    x = vector(1, 2)

    def function(x: Tensor) -> Tensor:
        x += 1
        return x * 2

    call = jit(function)
    return [(call(x).tolist(), x.tolist()) for _ in range(5)]


def argument_of_constants_written(jit: Jit) -> list[Any]:
    x, seen = vector(1, 2), []

    def function(x: Tensor) -> Tensor:
        x += 1
        return x.sum()

    call = jit(function)
    for _ in range(5):
        x.assign(3)
        seen.append((call(x).item(), x.tolist()))
    return seen


def local_memory_written(jit: Jit) -> list[Any]:
    def function(x: Tensor) -> Tensor:
        local = Tensor(np.float32([1, 2])).realize()
        y = (x + local).realize()
        local += 1
        local.realize()
        return y

    call = jit(function)
    return [call(vector(n, n)).tolist() for n in range(5)]


def values_that_leave_the_function(jit: Jit) -> list[Any]:
    outside: list[Tensor] = []

    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        local = (Tensor(np.float32([1, 2])) * 1).contiguous().realize()
        outside.append(local)
        return x + local, local

    call, seen = jit(function), []
    for n in range(5):
        total, local = call(vector(n, n))
        seen.append((total.tolist(), local.tolist()))
        for tensor in (local, *outside):
            tensor += 10
            tensor.realize()
    return seen


def result_that_is_state(jit: Jit) -> list[Any]:
    c = vector(1, 2)
    call, seen = jit(lambda x: (c.assign(c + x), c[:1], c.clone())), []
    for n in range(5):
        same, view, clone = call(vector(n, 1))
        view += 10
        clone += 1000
        same += 100
        seen.append([t.tolist() for t in (same, view, clone, c)])
    return seen


def two_views_of_one_result(jit: Jit) -> list[Any]:
    call, seen = jit(lambda x: [(y := (x + 1).realize()), y.reshape(2, 1), y]), []
    for n in range(5):
        y, column, again = call(vector(n, 1))
        column += 10
        seen.append((y.tolist(), column.tolist(), again is y))
    return seen


def hidden_state_of_a_view(jit: Jit) -> list[Any]:
    """The last step of all states, as a recurrent network keeps it."""
    cell = SimpleNamespace(h=Tensor.zeros(2))

    def step(x: Tensor) -> Tensor:
        states = (x.reshape(2, 1) + cell.h.reshape(1, 2)).realize()
        cell.h = states[1]
        return states

    call = jit(step)
    return [(call(vector(n, 1)).tolist(), cell.h.tolist()) for n in range(7)]


def weights_of_an_argument(jit: Jit) -> list[Any]:
    model = SimpleNamespace(layers=[SimpleNamespace(w=vector(1, 2)), vector(3, 4)])

    def step(model: Any, x: Tensor) -> Tensor:
        y: Tensor = (x * model.layers[0].w + model.layers[1]).sum()
        model.layers[0].w = model.layers[0].w - x
        model.layers[1] = model.layers[0].w * 2
        return y

    call = jit(step)
    return [call(model, vector(n, 1)).tolist() for n in range(6)]


def a_variable_of_the_enclosing_function(jit: Jit) -> list[Any]:
    total = vector(0, 0)

    def add(x: Tensor) -> None:
        nonlocal total
        total = total + x

    call, seen = jit(add), []
    for n in range(6):
        call(vector(n, 1))
        seen.append(total.tolist())
    return seen


def bound_between_calls(jit: Jit) -> list[Any]:
    model = SimpleNamespace(w=vector(1, 2), b=[vector(0, 1)])
    call, seen = jit(lambda x: x * model.w + model.b[0]), []
    for n in range(9):
        if n in (2, 4):
            model.w = vector(n, 7)
        if n == 6:
            model.b[0] = vector(5, 5) * 2
        seen.append(call(vector(n, 1)).tolist())
    return seen


PROGRAMS: list[Program] = [
    assigned_alone, one_value_for_two, constant_assigned, argument_written,
    argument_of_constants_written, local_memory_written, values_that_leave_the_function,
    result_that_is_state, two_views_of_one_result, hidden_state_of_a_view,
    weights_of_an_argument, a_variable_of_the_enclosing_function, bound_between_calls,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_gives_what_it_gives_without(program: Program) -> None:
    runs: list[int] = []

    def counted(function: Any) -> Any:
        def wrapper(*args: Any) -> Any:
            runs.append(1)
            return function(*args)

        return TinyJit(wrapper)

    assert program(counted) == program(lambda function: function)
    assert len(runs) <= 4 + (program is bound_between_calls), "most calls are replays"


FORMS = ["h[0] + x, h[0] - x", "h[1], h[0]", "x, h[0]", "h[0] * 2 + h[1], h[1] + 1"]
RESULTS = ["x", "h[0]", "h[1]", "x + 1", "x.reshape(-1)"]
WRITES = ["pass", "r += 1", "a += 1", "b[...] = 2", "h[0] = h[0] + 1"]


def test_items_that_are_bound_anew_agree_with_numpy() -> None:
    every = list(product(FORMS, RESULTS, WRITES))
    for form, result, write in Random(7).sample(every, min(count(100) * 3, len(every))):
        text = (
            f"def fn(x, h=h):\n    h[0], h[1] = {form}\n    return {result}\n"
            "call, seen = jit(fn), []\nfor _ in range(5):\n"
            f"    r = call(b)\n    {write}\n"
            "    seen.append([np.asarray(v.tolist()).tolist() for v in (r, *h, a, b)])"
        )
        seen = []
        for jit, tensor in ((TinyJit, held), (lambda fn: fn, np.array)):
            a, b = tensor(np.int32([1, 2])), tensor(np.int32([5, 7]))
            names = {"a": a, "b": b, "h": [a, b + 1], "jit": jit, "np": np}
            exec(text, names)
            seen.append(names["seen"])
        assert seen[0] == seen[1], text


def test_what_a_replay_could_not_tell_apart_is_refused() -> None:
    model = SimpleNamespace(w=vector(1, 2))
    model.same = model.w

    def bind(x: Tensor) -> Tensor:
        model.w = model.w - x
        return model.same * 1

    def replace(x: Tensor) -> Tensor:
        return model.w.replace(model.w + x) * 1

    for function, message in ((bind, "is also .*same"), (replace, "replace")):
        model.w = model.same
        call = TinyJit(function)
        call(vector(1, 1))
        model.w = model.same
        with pytest.raises(JitError, match=message):
            call(vector(1, 1))


def test_a_name_that_is_bound_to_a_view_of_what_it_stood_for() -> None:
    for reads in ((5,), (4,), (1, 3, 5), (0, 5), (3, 4)):
        model, seen = SimpleNamespace(d=vector(4, 5, 6)), []

        def reverse(x: Tensor, model: SimpleNamespace = model) -> Tensor:
            model.d = model.d.flip(0)
            return x + 1

        call = TinyJit(reverse)
        for n in range(6):
            call(vector(n, 2, 3))
            if n in reads:
                seen.append(model.d.tolist())
        assert seen == [[4, 5, 6] if n % 2 else [6, 5, 4] for n in reads]


def test_arguments_that_a_function_binds_are_the_callers_tensors() -> None:
    a, b = vector(1, 2), vector(3, 4)
    pair = [a, b]

    def swap(pair: list[Tensor]) -> Tensor:
        pair[0], pair[1] = pair[1], pair[0]
        return pair[0] + 1

    call = TinyJit(swap)
    for n in range(6):
        a[0] = n
        assert call(pair).tolist() == ([n + 1, 3] if n % 2 else [4, 5])
        assert pair[0] is (a if n % 2 else b) and pair[1] is (b if n % 2 else a)


def test_a_result_that_is_a_view_of_what_a_name_is_bound_to() -> None:
    model = SimpleNamespace(a=vector(0, 0))

    def add(x: Tensor) -> Tensor:
        model.a = model.a + x
        return model.a.flip(0)

    call, want = TinyJit(add), np.float32([0, 0])
    for n in range(6):
        result, want = call(vector(n, 1)), want + np.float32([n, 1])
        result[0] = want[1] = 9 * n
        model.a[1:] += 1
        want[1] += 1
        assert result.tolist() == [*want[::-1]] and model.a.tolist() == [*want]
    assert call.count


def test_a_view_of_a_constant_or_of_a_value_that_waits() -> None:
    for value in (Tensor.zeros(2), Tensor([1.0, 2.0]).realize() * 3):
        model, want = SimpleNamespace(a=vector(1, 2), b=vector(2, 3)), None

        def bind(x: Tensor, model: SimpleNamespace = model) -> Tensor:
            model.a = model.b.flip(0)
            return x + model.b

        call = TinyJit(bind)
        for n in range(5):
            if n == 1:
                model.b, want = value, value.numpy().copy()
            if n > 1:
                model.a[1] = want[0] = 3 * n
            result = call(vector(n, 1))
        assert result.tolist() == [4 + want[0], 1 + want[1]]
        assert model.b.tolist() == [*want] and model.a.tolist() == [*want[::-1]]


@pytest.mark.parametrize("returns", ["view", "itself"])
def test_a_constant_in_the_place_of_an_equal_one_is_another_tensor(returns: str) -> None:
    """Equal constants are one node: what sees a tensor's writes must not take another's."""
    seen: list[list[list[int]]] = []
    for jit in (TinyJit, lambda function: function):
        model = SimpleNamespace(k=Tensor.zeros(2, dtype="int32"))

        def step(x: Tensor, model: Any = model) -> tuple[Tensor, Tensor]:
            return x + 1, model.k.flip(0) if returns == "view" else model.k

        call: Any = jit(step)
        own = []
        for turn in range(6):
            if turn in (2, 4):
                model.k = Tensor.zeros(2, dtype="int32")
            _, result = call(held(np.array([turn], np.int32)))
            if turn > 1:  # until then it is a constant
                result[1] = turn + 1
            own.append([*model.k.tolist(), *result.tolist()])
        seen.append(own)
    assert seen[0] == seen[1]
