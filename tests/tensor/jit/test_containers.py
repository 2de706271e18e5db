"""Containers that a captured function makes anew, `m.state = (h, c)`.

Programs give with TinyJit what they give without, and who kept an old container finds the old
tensors in it.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, UserDict, deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.support import LONG, by_rows
from tests.tensor.jit.support import held
from workbench import Tensor, TinyJit, nn
from workbench.base.errors import JitError

Jit = Callable[[Any], Any]


class Named(NamedTuple):
    h: Tensor
    c: Tensor


@dataclass
class Plain:
    h: Tensor
    c: Tensor


@dataclass(frozen=True)
class Frozen:
    h: Tensor
    c: Tensor


@dataclass(frozen=True, slots=True)
class FrozenSlots:
    h: Tensor
    c: Tensor


@dataclass(frozen=True)
class Nested:
    pair: tuple[Frozen, list[Tensor]]


def _by_item(container: Any) -> tuple[Tensor, Tensor]:
    return container[0], container[1]


def _by_key(container: Any) -> tuple[Tensor, Tensor]:
    return container["h"], container["c"]


def _by_name(container: Any) -> tuple[Tensor, Tensor]:
    return container.h, container.c


def _nested(container: Nested) -> tuple[Tensor, Tensor]:
    return container.pair[0].h, container.pair[1][0]


KINDS: dict[str, tuple[Callable[[Tensor, Tensor], Any], Callable[[Any], Any]]] = {
    "tuple": (lambda h, c: (h, c), _by_item),
    "list": (lambda h, c: [h, c], _by_item),
    "deque": (lambda h, c: deque([h, c]), _by_item),
    "dict": (lambda h, c: {"h": h, "c": c}, _by_key),
    "OrderedDict": (lambda h, c: OrderedDict(h=h, c=c), _by_key),
    "UserDict": (lambda h, c: UserDict(h=h, c=c), _by_key),
    "named tuple": (Named, _by_name),
    "dataclass": (Plain, _by_name),
    "frozen dataclass": (Frozen, _by_name),
    "frozen dataclass with slots": (FrozenSlots, _by_name),
    "namespace": (lambda h, c: SimpleNamespace(h=h, c=c), _by_name),
    "nested": (lambda h, c: Nested((Frozen(h, h), [c])), _nested),
}


def vector(*values: float) -> Tensor:
    return held(np.float32(values))


def same_with_jit(program: Callable[[Jit], Any]) -> None:
    assert program(TinyJit) == program(lambda function: function)


PLACES = ("attribute", "item", "variable", "argument")
IN_PLACES = [
    (kind, place)
    for n, kind in enumerate(KINDS)
    for m, place in enumerate(PLACES)
    if LONG or (n + m) % 2
]


@by_rows(("kind", "place"), IN_PLACES)
def test_a_container_is_replaced_by_one_of_its_kind(kind: str, place: str) -> None:
    make, parts = KINDS[kind]
    start = make(vector(1, 2), vector(3, 4))

    def program(jit: Jit) -> list[Any]:
        owner, box, variable = SimpleNamespace(state=start), [start], start

        def get() -> Any:
            return {"item": box[0], "variable": variable}.get(place, owner.state)

        def function(owner: Any, x: Tensor) -> Tensor:
            nonlocal variable
            h, c = parts(get())
            new = make(h + x, c * 2 + h)
            if place == "item":
                box[0] = new
            elif place == "variable":
                variable = new
            else:
                owner.state = new
            return parts(new)[1].sum()

        call = jit(function if place == "argument" else functools.partial(function, owner))
        seen, kept = [], []
        for n in range(7):
            kept.append(get())
            x = vector(n, 1)
            total = call(owner, x) if place == "argument" else call(x)
            seen.append(total.item())
            if n == 4:
                owner.state = box[0] = variable = make(vector(5, 6), Tensor.zeros(2))
        kept.append(get())
        return seen + [[t.tolist() for t in parts(container)] for container in kept]

    same_with_jit(program)


class Items(list[Tensor]):
    """A list of a class of its own."""


class Pair(tuple[Tensor, Tensor]):
    """A tuple of a class of its own."""


RESULTS = KINDS | {
    "list of a class": (lambda h, c: Items([h, c]), _by_item),
    "tuple of a class": (lambda h, c: Pair([h, c]), _by_item),
    "module": (lambda h, c: _with_parameters(nn.Linear(2, 2), h, c), lambda r: (r.weight, r.bias)),
    "one object twice": (lambda h, c: [SimpleNamespace(h=h, c=c)] * 2, lambda r: _by_name(r[1])),
}  # fmt: skip


def _with_parameters(layer: nn.Linear, h: Tensor, c: Tensor) -> nn.Linear:
    layer.weight, layer.bias = h, c
    return layer


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_of_any_kind_is_new_at_each_call(kind: str) -> None:
    make, parts = RESULTS[kind]

    def program(jit: Jit) -> list[Any]:
        state = vector(1, 1)

        def function(x: Tensor) -> Any:
            state.assign(state + x)
            return make(x * 2, state * 1)

        call = jit(function)
        results = [call(vector(n, 1)) for n in range(5)]
        return [(type(r), [t.tolist() for t in parts(r)], r is results[0]) for r in results]

    same_with_jit(program)


def test_arguments_and_state_in_a_result_are_themselves() -> None:
    def program(jit: Jit) -> list[Any]:
        w, m, seen = vector(1, 1), SimpleNamespace(h=vector(0, 1)), []

        def function(x: Tensor) -> Any:
            before = m.h
            m.h = m.h + x
            w.assign(w + x)
            return Plain(x, SimpleNamespace(before=before, w=w, new=x + 1))

        call = jit(function)
        for n in range(5):
            x, before = vector(n, 1), m.h
            r = call(x)
            seen.append((r.h is x, r.c.before is before, r.c.w is w, r.c.new.tolist()))
        return seen

    same_with_jit(program)


def test_results_that_there_were_before_are_themselves() -> None:
    def program(jit: Jit) -> list[Any]:
        m = SimpleNamespace(state=vector(1, 1))

        def function(x: Tensor) -> Any:
            m.state = m.state + x
            return m, {"m": m}

        call, seen = jit(function), []
        for n in range(5):
            first, others = call(vector(n, 1))
            seen.append((first is m, others["m"] is m, m.state.tolist()))
        return seen

    same_with_jit(program)


def test_a_result_that_cannot_be_made_anew_is_refused() -> None:
    for make in (lambda t: {t}, lambda t: lambda: t):
        call = TinyJit(lambda x, make=make: make(x * 2))
        call(vector(1, 1))
        with pytest.raises(JitError, match="which a replay cannot make anew"):
            call(vector(1, 1))


@pytest.mark.parametrize("kind", ["list of a class", "tuple of a class", *KINDS])
def test_an_argument_of_any_kind(kind: str) -> None:
    make, parts = RESULTS[kind]

    def program(jit: Jit) -> list[Any]:
        call = jit(lambda pair: parts(pair)[0] * 2 + parts(pair)[1])
        return [call(make(vector(n, 1), vector(1, n))).tolist() for n in range(5)]

    same_with_jit(program)


def test_the_state_of_an_lstm_is_a_tuple() -> None:
    Tensor.manual_seed(1)
    cell = nn.LSTMCell(3, 2)

    def program(jit: Jit) -> list[Any]:
        model = SimpleNamespace(state=(Tensor.zeros(1, 2), Tensor.zeros(1, 2)))

        def step(x: Tensor) -> Tensor:
            model.state = cell(x, model.state)
            return model.state[0].sum()

        call = jit(step)
        xs = [vector(n, 1, 2).reshape(1, 3) for n in range(6)]
        return [round(call(x).item(), 5) for x in xs]

    same_with_jit(program)


def two_names(jit: Jit) -> list[Any]:
    m = SimpleNamespace()
    m.a = m.b = (vector(1, 2),)

    def step(x: Tensor) -> Tensor:
        m.a = m.b = (m.a[0] + x,)
        return m.b[0].sum()

    call = jit(step)
    return [(call(vector(n, 1)).item(), m.a is m.b) for n in range(6)]


def moved(jit: Jit) -> list[Any]:
    m, seen = SimpleNamespace(a={"h": vector(1, 2)}, b={"h": vector(3, 4)}), []
    a, b = m.a, m.b

    def with_owner(m: Any) -> Any:  # a and b are no variables of it
        def step(x: Tensor) -> Tensor:
            m.a, m.b = m.b, m.a
            m.a["h"] = m.a["h"] + x
            return (m.a["h"] - m.b["h"]).sum()

        return step

    call = jit(with_owner(m))
    for n in range(7):
        seen.append((call(vector(n, 1)).item(), m.a is a, m.b is b))
    return [*seen, a["h"].tolist(), b["h"].tolist()]


def one_before(jit: Jit) -> list[Any]:
    m, seen = SimpleNamespace(state={"h": vector(1, 2)}, before=None), []

    def step(x: Tensor) -> Tensor:
        m.before = m.state
        m.state = {"h": m.state["h"] + x}
        return m.before["h"].sum()

    call = jit(step)
    for n in range(6):
        total = call(vector(n, 1)).item()
        seen.append((total, m.before["h"].tolist(), m.state["h"].tolist()))
    return seen


def another_module(jit: Jit) -> list[Any]:
    first = SimpleNamespace(w=vector(1, 2), inner=SimpleNamespace(b=vector(0, 1)))
    m = SimpleNamespace(net=first)

    def step(x: Tensor) -> Tensor:
        net = SimpleNamespace(w=m.net.w + x, inner=SimpleNamespace(b=m.net.inner.b * 2))
        m.net = net
        return (net.w * net.inner.b).sum()

    call = jit(step)
    seen = [call(vector(n, 1)).item() for n in range(6)]
    return [*seen, first.w.tolist(), first.inner.b.tolist(), m.net.w.tolist()]


def context_variable(jit: Jit) -> list[Any]:
    state: ContextVar[Tensor] = ContextVar("state")
    state.set(vector(1, 2))

    def step(x: Tensor) -> Tensor:
        state.set(state.get() + x)
        return state.get().sum()

    call = jit(step)
    return [call(vector(n, 1)).item() for n in range(6)]


@pytest.mark.parametrize(
    "program", [two_names, moved, one_before, another_module, context_variable]
)
def test_a_container_with_names(program: Callable[[Jit], Any]) -> None:
    same_with_jit(program)


def test_what_a_replay_cannot_put_in_place_is_refused() -> None:
    m = SimpleNamespace(f=functools.partial(Tensor.add, vector(1, 2)))

    def bind_function(x: Tensor) -> Tensor:
        m.f = functools.partial(Tensor.add, m.f(x))
        return m.f(x)

    call = TinyJit(bind_function)
    call(vector(1, 1))
    with pytest.raises(JitError, match="which a replay cannot do"):
        call(vector(1, 1))

    nets = [SimpleNamespace(w=vector(1, 2)), SimpleNamespace(w=vector(3, 4))]
    m = SimpleNamespace(nets=nets, now=nets[0], next=nets[1])

    def toggle(x: Tensor) -> Tensor:
        m.now, m.next = m.next, m.now
        return m.now.w * x

    call = TinyJit(toggle)
    call(vector(1, 1))
    with pytest.raises(JitError, match=r"binds \.now to another object with tensors"):
        call(vector(1, 1))
