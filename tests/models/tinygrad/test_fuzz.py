"""Random expressions of tinygrad, held against its own values.

A program is lines of Python. That of a seed is what `python -m tests.models.tinygrad.test_fuzz 7`
prints, with both values.
"""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from contextvars import copy_context
from random import Random
from typing import Any

import numpy as np

from tests.peers import tinygrad
from tests.support import count
from workbench import load_model
from workbench.models.check import ModelValue, compared

START = """
rng = np.random.default_rng({seed})
f0, f1 = (T(rng.uniform(-2, 2, shape).astype(np.float32)) for shape in ((3, 4), (4,)))
i0, i1 = (T(rng.integers(-9, 9, shape, np.int32)) for shape in ((3, 4), (3, 1)))
"""
ONE = {
    "f": ["x.sin()", "x.tanh()", "x.sigmoid()", "x.abs()", "-x", "x * 0.7 - 1", "x.relu()",
          "x.exp2()", "x.clip(-1, 1).exp()", "(x * 0.5).bfloat16().float()",
          "(x > 0.123).where(1.5, x)"],
    "i": ["x * 3 - 1", "x // 4", "x % 5", "x.abs()", "x & 6", "(x << 1) ^ 3", "x >> 1", "~x",
          "x.cast('int8').int()", "(x > 2).int()", "x.clip(-5, 5)", "x.cast('uint32').int()"],
}  # fmt: skip
TWO = {
    "f": ["x + y", "x - y", "x.sin() * y", "x.maximum(y)", "(x > 0.1).where(y, 0.5)",
          "x / (y.abs() + 1)"],
    "i": ["x + y", "x - y", "x.minimum(y)", "x // (y.abs() + 1)", "x % (y.abs() + 1)", "x | y"],
}  # fmt: skip
REDUCED = {
    "f": ["x.sum({a})", "x.mean({a})", "x.max({a})", "x.softmax({a})", "x.cumsum({a})",
          "x.std({a})"],
    "i": ["x.sum({a})", "x.min({a})", "x.cumsum({a})", "x.argmax({a})"],
}  # fmt: skip
MOVED = ["x.flip({a})", "x.unsqueeze({a})", "x.transpose({a}, -1)", "x.roll(1, {a})", "x[::2]",
         "x.cat(x, dim={a})", "x.flatten()", "x.repeat_interleave(2, {a})", "x[..., 0:1]", "x[-1]",
         "x.reshape(*x.shape[::-1])", "x.pad(((1, 0),) * x.ndim)", "x.contiguous()", "x.clone()",
         "x.pad((0, 2), value=7)", "x.expand(2, *x.shape)", "x[T([0, -1, 0])]",
         "x.tril()"]  # fmt: skip
WRITTEN = ["x.clone(); z[:1] = 3", "x.clone(); z += 1", "x.clone(); z[..., 1:] = x[..., :-1] * 2"]
MOST_ELEMENTS = 200


def program(seed: int) -> tuple[str, Any]:
    """Return the lines of a program, and the tensor that they make."""
    random, lines = Random(seed), [START.format(seed=seed).strip()]
    scope: dict[str, Any] = {"np": np, "T": tinygrad.Tensor}
    exec(lines[0], scope)
    shapes = {name: scope[name].shape for name in ("f0", "f1", "i0", "i1")}
    result = "f0"
    for place in range(2, 2 + random.randint(3, 9)):
        kind = random.choice("ffi")
        x = random.choice([name for name in shapes if name[0] == kind])
        name = f"{kind}{place}"
        line = f"{name} = {_expression(random, x, shapes, name)}"
        with suppress(IndexError, RuntimeError, ValueError):  # tinygrad refuses it
            # in a context of its own: a method that raises leaves its name to all later nodes
            copy_context().run(exec, line, scope)
        if name not in scope:
            continue
        if scope[name].numel() <= MOST_ELEMENTS and scope[name].ndim < 6:
            lines.append(line)
            shapes[name] = scope[name].shape
            result = name
    return "\n".join(lines), scope[result]


def _expression(random: Random, x: str, shapes: dict[str, Any], z: str) -> str:
    """Return the text of an operation on the tensor of a name; `z` is the name of its result."""
    kind, shape = x[0], shapes[x]
    families = [ONE[kind], TWO[kind]] + [REDUCED[kind], MOVED, MOVED, WRITTEN] * bool(shape)
    text = random.choice(random.choice(families))
    axis = random.randrange(len(shape)) if shape else 0
    fitting = [n for n, other in shapes.items() if n[0] == kind and _broadcasts(shape, other)]
    names = {"x": x, "y": random.choice(fitting), "z": z}
    return re.sub(r"\b[xyz]\b", lambda found: names[found[0]], text.format(a=axis))


def _broadcasts(one: Any, other: Any) -> bool:
    pairs = zip(one[::-1], other[::-1], strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


def wrong(seed: int) -> str:
    """Return the program of a seed and what differs; "" if nothing does."""
    text, tensor = program(seed)
    model = load_model(tensor)
    theirs = np.asarray(tensor.numpy())
    check = compared(ModelValue("the result", "", model(), theirs))
    return "" if check.ok else f"# seed {seed}\n{text}\n# {check}\n{model().numpy()}\n{theirs}"


def test_random_expressions_have_the_values_that_tinygrad_computes() -> None:
    reports = [wrong(seed) for seed in range(count(2000, 100))]
    assert not any(reports), "\n\n".join(filter(None, reports))


if __name__ == "__main__":
    for seed in map(int, sys.argv[1:]):
        print(program(seed)[0])
        print(wrong(seed) or "# equal")
