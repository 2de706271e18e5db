"""More steps for random expressions: indexing by tensors, masks of positions, running sums,
joining, waves, and rows that are read several times."""

from __future__ import annotations

import random
from typing import Any

from tests.agreement.expressions import SMALL, Case, add, wide

Env = dict[str, Any]


def gather(expression: Case, env: Env, pick: random.Random, name: str) -> bool:
    """Elements at random positions of an axis; negative ones count from the end."""
    a, n = expression.arrays[name], name.replace("t", "n", 1)
    if a.ndim == 0 or a.size > 3000:
        return False
    axis = pick.randrange(a.ndim)
    length = a.shape[axis]
    dtype = pick.choice(("int32", "int64", "uint8")) if length < 256 else "int32"
    low = 0 if dtype == "uint8" else -length
    rows, columns = pick.choice((1, 2)), pick.choice((1, 2, 5))
    places = [[pick.randrange(low, length) for _ in range(columns)] for _ in range(rows)]
    cut = ":, " * axis
    index = f"Tensor({places}, dtype=dtypes.{dtype})"
    exact = name in expression.exact
    add(expression, env, f"{name}[{cut}{index}]", f"{n}[{cut}np.array({places})]", exact)
    return True


def triangle(expression: Case, env: Env, pick: random.Random, name: str) -> bool:
    """A mask made of positions, as causal attention has it; often summed afterwards."""
    a, n = expression.arrays[name], name.replace("t", "n", 1)
    if a.ndim < 2 or a.dtype.kind == "b":
        return False
    rows, columns = a.shape[-2:]
    sign, shift = pick.choice(("<", "<=", ">", "==")), pick.randint(-2, 2)
    mask = f"Tensor.arange({rows}).unsqueeze(1) {sign} Tensor.arange({columns}) + {shift}"
    array = f"np.arange({rows})[:, None] {sign} np.arange({columns}) + {shift}"
    exact = name in expression.exact
    tensor = f"({mask}).where({name}, 0)"
    add(expression, env, tensor, f"np.where({array}, {n}, {n}.dtype.type(0))", exact)
    return True


def one_of_each(expression: Case, env: Env, pick: random.Random, name: str) -> bool:
    """A sum over the positions that equal a number from memory, or are below it."""
    a, n = expression.arrays[name], name.replace("t", "n", 1)
    if a.dtype.name != "int32" or name not in expression.exact or a.size > 600:
        return False
    length, sign = pick.choice((3, 8, 13)), pick.choice(("eq", "lt", "ge"))
    word = {"eq": "==", "lt": ">", "ge": "<="}[sign]
    places = f"Tensor.arange({length}).{sign}({name}.unsqueeze(-1))"
    array = f"({n}[..., None] {word} np.arange({length})).sum(-1)"
    add(expression, env, f"{places}.sum(-1)", array, True)
    return True


def settled(expression: Case, env: Env, pick: random.Random, name: str) -> bool:
    """A running count of the positions that are beyond a small number from memory: most of them
    are beyond whatever it is."""
    a, n = expression.arrays[name], name.replace("t", "n", 1)
    if a.ndim == 0 or a.dtype.name != "int32" or name not in expression.exact:
        return False
    length, most, sign = a.shape[-1], pick.randint(0, 3), pick.choice(("<=", "!="))
    tensor = f"({name}.clip(0, {most}) {sign} Tensor.arange({length}))"
    array = f"(np.clip({n}, 0, {most}) {sign} np.arange({length}))"
    more = f"np.cumsum({array}, -1)"
    add(expression, env, f"{tensor}.cumsum(-1)", more, True)
    return True


def running(expression: Case, env: Env, pick: random.Random, name: str) -> bool:
    a, n = expression.arrays[name], name.replace("t", "n", 1)
    if a.ndim == 0 or a.dtype.kind == "b" or a.dtype.name in SMALL:
        return False
    axis = pick.randrange(a.ndim)
    summed = a.dtype if a.dtype.kind == "f" else "int64"
    array = f"np.cumsum({n}, {axis}, dtype=np.{summed})"
    add(expression, env, f"{name}.cumsum({axis})", array, name in expression.exact)
    return True


def joined(expression: Case, env: Env, pick: random.Random, name: str) -> bool:
    a, n = expression.arrays[name], name.replace("t", "n", 1)
    if a.ndim == 0 or a.size > 1000:
        return False
    axis, exact = pick.randrange(a.ndim), name in expression.exact
    if pick.random() < 0.5:
        tensor, array = (f"Tensor.stack({name}, {name}.flip({axis}), dim={axis})", "stack")
    else:
        tensor, array = f"{name}.cat({name}.flip({axis}), dim={axis})", "concatenate"
    add(expression, env, tensor, f"np.{array}([{n}, np.flip({n}, {axis})], axis={axis})", exact)
    return True


def wave(expression: Case, env: Env, pick: random.Random, name: str) -> bool:
    a, n = expression.arrays[name], wide(expression, name)
    if a.dtype.name != "float32":
        return False
    kind = pick.choice(("sin", "cos"))
    add(expression, env, f"{name}.clip(-9, 9).{kind}()", f"np.{kind}(np.clip({n}, -9, 9))", False)
    return True


def softmax(expression: Case, env: Env, pick: random.Random, name: str) -> bool:
    a, n = expression.arrays[name], name.replace("t", "n", 1)
    if a.ndim == 0 or a.dtype.name != "float32":
        return False
    axis = pick.randrange(a.ndim)
    power = f"np.exp({n} - {n}.max({axis}, keepdims=True))"
    add(
        expression,
        env,
        f"{name}.softmax({axis})",
        f"{power} / {power}.sum({axis}, keepdims=True)",
        False,
    )
    return True


def stored(expression: Case, env: Env, pick: random.Random, name: str) -> bool:
    add(
        expression, env, f"{name}.contiguous()", name.replace("t", "n", 1), name in expression.exact
    )
    return True


def nothing(expression: Case, env: Env, pick: random.Random, name: str) -> bool:
    """An axis without elements, summed away again: zeros."""
    a, n = expression.arrays[name], name.replace("t", "n", 1)
    if a.ndim == 0 or a.dtype.kind == "b" or a.dtype.name in SMALL or pick.random() < 0.7:
        return False
    cut = f"np.sum({n}[:0], 0, dtype={n}.dtype)"
    add(expression, env, f"{name}[:0].sum(0) + {name}", f"{cut} + {n}", name in expression.exact)
    return True


STEPS = (gather, triangle, one_of_each, settled, running, joined, wave, softmax, stored, nothing)
