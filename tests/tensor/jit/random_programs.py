"""Random programs of a captured function and its state, which bind names to other memory.

A program has a model of tensors under attributes, in a list and in a dict; the function reads,
writes and binds them, and so does what runs between its calls. The oracle is the same program
without TinyJit, on objects of its own. `python -m tests.tensor.jit.random_programs 2000 7 LLVM`
runs 2,000 from seed 7; with one argument more, those that bind views.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

from workbench import Tensor, TinyJit
from workbench.base.errors import JitError

CALLS = 7
PLACES = ("m.a", "m.b", "m.l[0]", "m.l[1]", "m.d['k']")


def program_of_views(random: Random) -> str:
    """Return the text of a program whose function also binds views, of a list among its arguments,
    too; something is done between its first two calls as well."""
    places = (*PLACES, "l[0]", "l[1]")
    lines = [
        f"m = N(a={_fresh(random)}, b={_fresh(random)})",
        f"m.l = [{_fresh(random)}, {_fresh(random)}]",
        f"m.d = {{'k': {_fresh(random)}}}",
        f"l = [{_fresh(random)}, {_fresh(random)}]",
        "base = t(1, 2, 3, 4)",
        "def f(x, l):",
        f"    {_view(random, places)}",
        *[
            f"    {random.choice((_view, _inner))(random, places)}"
            for _ in range(random.randint(0, 2))
        ],
        f"    return {_returned(random, places)}",
        "call = jit(f)",
    ]
    for number in range(CALLS):
        if number:
            lines += [
                random.choice((_outer(random, places), "r[0] = 9"))
                for _ in range(random.choice((0, 0, 1, 2)))
            ]
        lines.append(f"r = call(t({number}, 2), l)")
        if random.randrange(2):
            reads = random.sample(places, random.randint(0, 3))
            lines.append(f"seen.append([v.tolist() for v in ({', '.join(['r', *reads])},)])")
    lines.append(f"seen.append([v.tolist() for v in ({', '.join(places)})])")
    return "\n".join(lines)


def program(random: Random) -> str:
    """Return the text of a program, which appends what it reads to `seen`."""
    lines = [
        f"m = N(a={_fresh(random)}, b={_fresh(random)})",
        f"m.l = [{_fresh(random)}, {_fresh(random)}]",
        f"m.d = {{'k': {_fresh(random)}}}",
        "base = t(1, 2, 3, 4)",
        "def f(x):",
        *[f"    {_inner(random)}" for _ in range(random.randint(1, 3))],
        f"    return {random.choice(PLACES)} * {random.choice(PLACES)} + x",
        "call = jit(f)",
    ]
    for number in range(CALLS):
        if number > 1:
            lines += [_outer(random) for _ in range(random.choice((0, 1, 1, 2)))]
        lines.append(f"r = call(t({number}, 2))")
        reads = random.sample(PLACES, random.randint(0, 3))
        lines.append(f"seen.append([v.tolist() for v in ({', '.join(['r', *reads])},)])")
    lines.append(f"seen.append([v.tolist() for v in ({', '.join(PLACES)})])")
    return "\n".join(lines)


def _fresh(random: Random) -> str:
    a, b = random.randint(-2, 3), random.randint(-2, 3)
    return random.choice(
        (f"t({a}, {b})", f"t({a}, {b}) + 1", "zeros(2)", "ones(2)", f"t(0, {a}, {b})[1:]")
    )


def _inner(random: Random, places: Sequence[str] = PLACES) -> str:
    one, other = random.choice(places), random.choice(places)
    return random.choice(
        (
            f"{one} += x",
            f"{one}.assign({other} + x)",
            f"{one}.assign({other})",
            f"{one}[0] = {other}[1]",
            f"{one} = {one} + x",
            f"{one} = {other} * 2",
            f"{one} = {other}",
            f"{one}, {other} = {other}, {one}",
            f"x = x + {one}",
        )
    )


def _view(random: Random, places: Sequence[str]) -> str:
    one, other = random.choice(places), random.choice(places)
    return random.choice(
        (
            f"{one} = {one}.flip(0)",
            f"{one} = {other}.flip(0)",
            f"{one} = {other}[::1]",
            f"{one} = base[{random.randint(0, 2)}:][:2]",
            f"{one} = {other}.reshape(1, 2)[0]",
        )
    )


def _returned(random: Random, places: Sequence[str]) -> str:
    one, other = random.choice(places), random.choice(places)
    return random.choice((f"{one} * {other} + x", one, f"{one}.flip(0)"))


def _outer(random: Random, places: Sequence[str] = PLACES) -> str:
    one, other = random.choice(places), random.choice(places)
    return random.choice(
        (
            f"{one} = {_fresh(random)}",
            f"{one} = {other}",
            f"{one}, {other} = {other}, {one}",
            f"{one} = copy.copy({other})",
            f"{one} = copy.deepcopy({other})",
            f"{one} = {other}.clone()",
            f"{one} = base[{random.randint(0, 2)}:][:2]",
            f"{one} = {other}.reshape(1, 2).reshape(2)",
            f"{one}.replace({_fresh(random)})",
            f"{one}.assign({other})",
            f"{one} += {random.randint(1, 3)}",
            f"{one}[1] = {random.randint(1, 3)}",
            "base += 1",
            "base = t(4, 3, 2, 1)",
            "m.l = m.l[::-1]",
            "m.l = [*m.l]",
            "m.d = dict(m.d)",
            "m.d = copy.deepcopy(m.d)",
            "m.a, m.l[0] = m.l[0], m.a",
            f"{one}.realize()",
            f"{one} = r",
        )
    )


def run(text: str, jit: Any, device: str) -> list[Any]:
    """Run a program on a device; return what it read."""

    def tensor(*values: int) -> Tensor:
        return Tensor(np.int32(values), device=device).realize()

    seen: list[Any] = []
    names = {
        "N": SimpleNamespace, "t": tensor, "copy": copy, "jit": jit, "seen": seen,
        "zeros": lambda n: Tensor.zeros(n, dtype="int32", device=device),
        "ones": lambda n: Tensor.ones(n, dtype="int32", device=device),
        "__name__": "program",
    }  # fmt: skip
    exec(text, names)
    return seen


def outcome(text: str, device: str) -> str:
    """Return "right", "refused" (a JitError), or what is wrong."""
    expected = run(text, lambda function: function, device)
    try:
        actual = run(text, TinyJit, device)
    except JitError:
        return "refused"
    except Exception as error:  # any other error is a fault
        return f"{type(error).__name__}: {error}"
    return "right" if actual == expected else f"{actual} instead of {expected}"


def main(count: int, seed: int, device: str, views: str = "") -> None:
    """Run programs, and print the first that are wrong."""
    outcomes: dict[str, int] = {}
    kind_of_program = program_of_views if views else program
    for number in range(seed, seed + count):
        text = kind_of_program(Random(number))
        result = outcome(text, device)
        kind = result if result in ("right", "refused") else "wrong"
        outcomes[kind] = outcomes.get(kind, 0) + 1
        if kind == "wrong" and outcomes[kind] <= 3:
            print(f"seed {number}\n{text}\n{result}\n")
    print(f"{device}, seeds {seed} to {seed + count - 1}: {outcomes}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
