"""Random programs that ask for gradients through the results of captured functions.

A program has leaves (`a`, `b` and the weights of `linear`), other tensors (`c`), state (`s`, `m.h`)
and a function of them and of two arguments, which is called four times. After each call it asks for
gradients. It is run three times: without TinyJit, which is the oracle; with it; and without it, but
with all that a call computed detached (its arguments, too, unless they lead to leaves), which shows
whether a gradient flows through the call.
`python -m tests.tensor.jit.gradient_programs 2000 7 LLVM` runs 2,000 from seed 7.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

from workbench import Tensor, TinyJit, nn
from workbench.base.errors import GradientError, JitError, WorkbenchError

CALLS = 4
LEAVES = ("a", "b", "linear.weight")
CLOSURES = ("a", "b", "c", "s", "m.h")

# --------------------------------------------------------------------------------------------------
# Random programs, as text.


def program(random: Random) -> str:
    """Return the text of a program, which calls `ask` with a loss and the names of targets."""
    inside, results = _function(random, ("x", "y", *CLOSURES), random.randint(2, 6), True)
    nested, of_nested = _function(random, ("p", "a", "c"), random.randint(1, 2), False)
    lines = [
        "a, b, c = leaf(1.1, 0.7, 1.3), leaf(0.9, 1.2, 0.6), plain(0.8, 1.4, 1.0)",
        "s, m, linear = plain(1, 1, 1), N(h=plain(0.5, 0.6, 0.7)), layer()",
        "def g(p):",
        *[f"    {line}" for line in nested],
        f"    return {of_nested[-1]}",
        "def f(x, y):",
        *[f"    {line}" for line in inside],
        f"    return {_structure(random, results)}",
        "call, other = jit(f), jit(g)",
    ]
    argument, second = _argument(random), _second_argument(random)
    is_free = random.random() < 0.1
    after = _after(random)
    for number in range(CALLS):
        v = 1 + number / 8
        lines += [f"x = {argument.format(v)}", f"y = {second}"]
        lines += ["with no_grad():", "    r = call(x, y)"] if is_free else ["r = call(x, y)"]
        lines += ["t = [x, y, a, b, c, s, m.h, *floats(r)]", *after]
    return "\n".join(lines)


def _argument(random: Random) -> str:
    return random.choice(("leaf({0}, 1, 0.5)", "leaf({0}, 1, 0.5)", "plain({0}, 1, 0.5)", "a"))


def _second_argument(random: Random) -> str:
    return random.choice(
        ("a * 2", "c * 2", "x.flip(0)", "x.sin()", "(a * b).realize()", "x", "b", "x.detach()",
         "a.reshape(3, 1).reshape(3)", "linear(a)", "m.h", "other(a)", "x * 1.5 + a")
    )  # fmt: skip


def _function(
    random: Random, names: tuple[str, ...], count: int, has_state: bool
) -> tuple[list[str], list[str]]:
    """Return the lines of a function's body, and the names of the tensors that it makes."""
    lines, made = ["u0 = " + _expression(random, names)], ["u0"]
    for number in range(1, count):
        pool = [*names, *made, made[-1], made[-1]]
        one, other = random.choice(pool), random.choice(pool)
        if has_state and random.random() < 0.25:
            lines.append(_effect(random, one))
            continue
        if random.random() < 0.15:
            own = f"u{number}"
            lines += [f"{own} = {one}.clone()", random.choice((f"{own} += {other}",
                      f"{own}[0] = {other}[1]", f"{own}.assign({other} * {one})"))]  # fmt: skip
        elif random.random() < 0.15:
            lines += ["with no_grad():", f"    u{number} = {_expression(random, pool)}"]
        else:
            lines.append(f"u{number} = {_expression(random, pool, has_state)}")
        made.append(f"u{number}")
    return lines, made


def _expression(random: Random, names: Any, calls: bool = False) -> str:
    one, other = random.choice(names), random.choice(names)
    return random.choice(
        (f"{one} * {other}", f"{one} * {other}", f"{one} + {other}", f"{one}.sin()",
         f"{one}.tanh() * {other}", f"{one}.detach() * {other}", f"linear({one})",
         f"mask.where({one}, {other})", f"({one} * {other}).sum() * {one}",
         f"({one} * {other}).realize()", f"{one}.contiguous() * {one}",
         f"{one}.flip(0)", f"{one}[[2, 0, 1]]", f"rounded({one}) * {other}",
         f"({one} * {other} * {one}).sum().gradient({one})[0]",
         *([f"g({one})", f"other({one})"] if calls else []))
    )  # fmt: skip


def _effect(random: Random, one: str) -> str:
    return random.choice(
        (f"s.assign(s * 0.5 + {one})", f"s.assign((s * 0.5 + {one}).detach())",
         "s.assign(s + 0.25)", f"m.h = m.h * 0.5 + {one}", f"m.h = {one}.detach()",
         f"m.h = {one} * 0.5",
         "a.assign((a * 0.9).detach())", f"b.assign(({one} * 0.5).detach())",
         f"({one} * a).sum().backward()", "s[0] = 0.5", f"s[1] = {one}[2]")
    )  # fmt: skip


def _structure(random: Random, made: list[str]) -> str:
    one, other = random.choice((*made, "x", "a", "s")), random.choice(made)
    last = made[-1]
    return random.choice(
        (last, last, last, f"({last}, {one})", f"[{one}, {other}, {last}]",
         f"{{'k': {last}, 'l': [{other}]}}", f"({last}.argmax(), {other})", f"{last}.flip(0)",
         f"({last} > {other}, {last})", f"{last}.detach()", "x.flip(0)", f"({last}, {last})")
    )  # fmt: skip


def _after(random: Random) -> list[str]:
    """Return the lines after a call: what is made of its result, and the question."""
    lines = []
    for _ in range(random.choice((0, 0, 1, 2))):
        lines.append(
            random.choice(
                ("t.append(t[-1] * t[{}])", "t.append(t[-1].detach())", "t[-1].realize()",
                 "t.append(other(t[{}]))", "t += floats(call(t[{}], y))",
                 "t.append((t[-1] * t[{}]).realize())", "unrelated(t[{}])",
                 "a.assign((a + 0.125).detach())", "x.assign((x * 0.5).detach())",
                 "c.assign(c * 0.5)", "t.append(linear(t[-1]))", "t.append(rounded(t[-1]))")
            ).format(random.randrange(7))
        )  # fmt: skip
    chosen = [random.choice(("t[-1]", "t[-1]", f"t[{random.randrange(8)}]"))]
    chosen += [f"t[{random.randrange(-2, 8)}]" for _ in range(random.randint(0, 2))]
    loss = random.choice((" * ", " + ", " * ")).join(chosen)
    names = random.sample(("x", "y", "a", "b", "c", "s", "m.h", "linear.weight"), 3)
    lines.append(f"ask(lambda: ({loss}).sum(), dict({_targets(names)}))")
    return lines


def _targets(names: list[str]) -> str:
    return ", ".join(f"{name.replace('.', '_')}={name}" for name in names)


# --------------------------------------------------------------------------------------------------
# A run of a program, and what it was answered.

Answer = tuple[str, Any]
"""What was asked, and the gradients, "unconnected", "refused" or "overwritten"."""


@dataclass
class Run:
    """A run of a program on `device`; `jit` makes its functions. With `is_cut`, what a call of one
    computes is detached. `asked` has the answers, `names` those of the program."""

    device: str
    jit: Callable[[Any], Any]
    is_cut: bool = False
    asked: list[Answer] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    _depth: int = 0

    def __call__(self, text: str) -> list[Answer]:
        self.names = {
            "N": SimpleNamespace, "jit": self._function, "ask": self._ask,
            "no_grad": Tensor.no_grad, "unrelated": self._capture_another,
            "leaf": lambda *v: self._tensor(v, True), "plain": lambda *v: self._tensor(v, None),
            "mask": Tensor([True, False, True], device=self.device), "layer": self._layer,
            "floats": floats, "__name__": "program",
            "rounded": lambda t: (t * 4).cast("int32").cast("float32") / 4 + 0.5,
        }  # fmt: skip
        exec(text, self.names)
        return self.asked

    def _tensor(self, values: Any, requires_grad: bool | None) -> Tensor:
        array = np.float32(values)
        return Tensor(array, device=self.device, requires_grad=requires_grad).realize()

    def _layer(self) -> Any:
        layer = nn.Linear(3, 3)
        weight = np.linspace(0.2, 0.9, 9, dtype=np.float32).reshape(3, 3)
        layer.weight = self._tensor(weight, True)
        layer.bias = self._tensor((0.1, 0.2, 0.3), True)
        return layer

    def _function(self, function: Any) -> Any:
        if not self.is_cut:
            return self.jit(function)

        def call(*args: Any) -> Any:
            if self._depth:  # one in another: the outer one's results are cut
                return function(*args)
            known = {id(t) for t in (*args, *[eval(name, self.names) for name in CLOSURES])}
            self._depth += 1
            try:
                result = function(*args)
            finally:
                self._depth -= 1
            computed = [t for t in args if t.requires_grad is None]
            for tensor in (eval("s", self.names), eval("m.h", self.names), *computed):
                tensor.replace(tensor.detach())
            return _detached(result, known)

        return call

    def _capture_another(self, x: Tensor) -> None:
        function = self.jit(lambda v: v + 1)
        for _ in range(2):
            function(x.detach())

    def _ask(self, loss: Callable[[], Tensor], targets: dict[str, Tensor]) -> None:
        for name, target in targets.items():
            self.asked.append((name, answer(lambda t=target: loss().gradient(t)[0].numpy())))  # type: ignore[misc]
        leaves = {n: eval(n, self.names) for n in (*LEAVES, "x", "linear.bias")}

        def backward() -> list[Any]:
            loss().backward()
            return [None if t.grad is None else t.grad.numpy() for t in leaves.values()]

        for leaf in leaves.values():
            leaf.grad = None
        self.asked.append(("backward", answer(backward)))
        for leaf in leaves.values():
            leaf.grad = None


def floats(result: Any) -> list[Tensor]:
    """Return the tensors of floats in a result, in order."""
    if isinstance(result, dict):
        return floats([*result.values()])
    if isinstance(result, list | tuple):
        return [t for part in result for t in floats(part)]
    return [result] if result.dtype.is_float else []


def _detached(result: Any, known: set[int]) -> Any:
    if isinstance(result, dict):
        return {key: _detached(part, known) for key, part in result.items()}
    if isinstance(result, list | tuple):
        return type(result)(_detached(part, known) for part in result)
    return result if id(result) in known or not result.dtype.is_float else result.detach()


def answer(ask: Callable[[], Any]) -> Any:
    """Return the gradients, or the kind of the refusal."""
    try:
        return ask()
    except GradientError as error:
        text = str(error)
        if "TinyJit" in text or "computed before" in text:
            return "refused"
        if "does not depend on it" in text or "depends on none" in text:
            return "unconnected"
        raise
    except WorkbenchError as error:
        if "an old value" in str(error):
            return "overwritten"
        raise


# --------------------------------------------------------------------------------------------------
# The comparison of runs.


def outcome(text: str, device: str, counts: Counter[str]) -> str:
    """Return what is wrong; "" if nothing is. `counts` are the answers by kind."""
    try:
        expected = Run(device, lambda function: function)(text)
        cut = Run(device, lambda function: function, is_cut=True)(text)
    except GradientError:
        counts["no program"] += 1  # the function itself asks for a gradient that it cannot have
        return ""
    try:
        actual = Run(device, TinyJit)(text)
    except (JitError, GradientError) as error:  # in the function, of state that was computed
        counts[type(error).__name__] += 1
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    per_call = len(expected) // CALLS
    for number, asked in enumerate(zip(expected, actual, cut, strict=True)):
        (name, right), (_, mine), (_, constant) = asked
        where = f"call {number // per_call}, {name}: "
        if same(mine, right):
            counts["equal" if not isinstance(mine, str) else mine] += 1
            counts["equal through a call"] += not isinstance(mine, str) and not same(
                right, constant
            )
        elif isinstance(mine, str) and mine == "overwritten":
            counts[mine] += 1  # a call computes: where it writes, old values may be gone
        elif isinstance(mine, str) and mine == "refused":
            if same(right, constant) and not isinstance(right, str):
                return f"{where}refused, but no gradient flows through the call: {right}"
            is_other = same(right, constant)  # an error both ways, with another reason
            counts["refused, and unconnected" if is_other else "refused for a reason"] += 1
        elif isinstance(right, str) and right == "refused":
            counts["refused without TinyJit alone"] += 1
            if not same(mine, constant):
                return f"{where}{mine}, refused without TinyJit"
        else:
            return f"{where}{mine} instead of {right}"
    return ""


def same(one: Any, other: Any) -> bool:
    if one is None or other is None or isinstance(one, str) or isinstance(other, str):
        return isinstance(one, type(other)) and (one is None or one == other)
    if isinstance(one, list):
        return all(map(same, one, other))
    return bool(np.allclose(one, other, rtol=1e-4, atol=1e-5))


def main(count: int, seed: int, device: str) -> None:
    """Run programs, and print the first that are wrong."""
    counts: Counter[str] = Counter()
    for number in range(seed, seed + count):
        text = program(Random(number))
        result = outcome(text, device, counts)
        if result:
            counts["WRONG"] += 1
            kind = result.split(": ", 1)[1][:12]
            counts[f"WRONG {kind}"] += 1
            if counts["WRONG"] <= 4:
                print(f"seed {number}\n{text}\n{result}\n")
    print(f"{device}, seeds {seed} to {seed + count - 1}: {dict(counts)}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
