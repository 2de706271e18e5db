"""Random tensor expressions, each as a program that a person can paste.

One generator for all agreement tests. A case is a list of lines; every line makes a tensor
`t3` and the same value `n3` in numpy. Values stay small and comparisons are made on whole
numbers only, so that rounding cannot flip an answer. On float16 and bfloat16 numpy computes
each line in float32 and rounds once, where a tensor may round several times.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

SMALL = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The low-precision floats, and the step from 1 to the next one."""
SIZES = (1, 1, 2, 3, 4, 5, 7, 8, 13)


@dataclass
class Case:
    """A random expression. `seed` makes it again; `script()` is what to paste."""

    seed: int
    lines: list[str] = field(default_factory=list)
    arrays: dict[str, Any] = field(default_factory=dict)
    exact: set[str] = field(default_factory=set)

    def script(self, device: str = "LLVM") -> str:
        last = len(self.arrays) - 1
        body = "\n".join(f"    {line}" for line in self.lines)
        return (
            "import numpy as np\nfrom ml_dtypes import bfloat16\n"
            "from workbench import Context, Tensor, dtypes\n"
            f"rng = np.random.default_rng({self.seed})\n"
            f'with Context(DEV="{device}"):\n{body}\n'
            f"    np.testing.assert_allclose(t{last}.numpy(), n{last}, atol={self.tolerance():.1e})"
        )

    def tolerance(self) -> float:
        """Return what an element may be off: each step may lose a few units in the last place
        of the greatest number on the way, in the coarsest type on the way."""
        floats = [a for a in self.arrays.values() if _kind(a) == "f" and a.size]
        greatest = max((float(np.abs(a).max()) for a in floats), default=1.0)
        steps = [4 * SMALL[a.dtype.name] for a in floats if a.dtype.name in SMALL]
        return max([3e-5, *steps]) * max(1.0, greatest)

    def run(self, device: str) -> tuple[Any, np.ndarray[Any, Any]]:
        """Return (the last tensor, the last numpy value), not realised."""
        return self.run_lines(device)[-1]

    def run_lines(self, device: str) -> list[tuple[Any, np.ndarray[Any, Any]]]:
        """Return the tensor and the numpy value of each line, not realised."""
        from workbench import Context, Tensor, dtypes

        env: dict[str, Any] = {"np": np, "Tensor": Tensor, "dtypes": dtypes}
        env["bfloat16"] = ml_dtypes.bfloat16
        env["rng"] = np.random.default_rng(self.seed)
        with Context(DEV=device), np.errstate(all="ignore"):
            for line in self.lines:
                exec(line, env)
        return [(env[f"t{number}"], env[f"n{number}"]) for number in range(len(self.arrays))]


def case(seed: int, steps: int = 0) -> Case:
    """Return the random expression of `seed`."""
    pick = random.Random(seed)
    expression = Case(seed)
    env: dict[str, Any] = {"np": np, "rng": np.random.default_rng(seed)}
    env["bfloat16"] = ml_dtypes.bfloat16
    for _ in range(pick.randint(1, 3)):
        _leaf(expression, env, pick)
    for _ in range(steps or pick.randint(2, 9)):
        for _attempt in range(20):
            if _step(expression, env, pick):
                break
    last = f"t{len(expression.arrays) - 1}"
    if expression.arrays[last].dtype.name == "bfloat16":  # numpy cannot compare it
        _unary_widened(expression, env, last)
    return expression


def add(expression: Case, env: dict[str, Any], tensor: str, array: str, exact: bool) -> None:
    """Add a line: `tensor` and `array` are the expressions of its two sides."""
    name = f"t{len(expression.arrays)}"
    twin = name.replace("t", "n", 1)
    env_line = f"{twin} = np.asarray({array})"
    with np.errstate(all="ignore"):
        exec(env_line, env)
    expression.lines.append(f"{env_line}; {name} = {tensor}")
    expression.arrays[name] = env[twin]
    if exact:
        expression.exact.add(name)


def _leaf(expression: Case, env: dict[str, Any], pick: random.Random) -> None:
    shape = tuple(pick.choice(SIZES) for _ in range(pick.randint(1, 3)))
    kind = pick.choice(("float",) * 6 + ("int", "int", "bool", "bool", "half", "bfloat16"))
    array = {
        "float": f"rng.standard_normal({shape}).astype(np.float32)",
        "int": f"rng.integers(-9, 10, {shape}).astype(np.int32)",
        "bool": f"rng.integers(0, 2, {shape}).astype(bool)",
        "half": f"rng.standard_normal({shape}).astype(np.float16)",
        "bfloat16": f"rng.standard_normal({shape}).astype(bfloat16)",
    }[kind]
    twin = f"n{len(expression.arrays)}"
    add(expression, env, f"Tensor({twin})", array, kind in ("int", "bool"))


def _step(expression: Case, env: dict[str, Any], pick: random.Random) -> bool:
    """Add one operation on what there is; False if the dice made one that does not apply."""
    from tests.agreement.expressions_indexed import STEPS

    name = pick.choice(list(expression.arrays)[-3:])
    return pick.choice(_STEPS + STEPS)(expression, env, pick, name)


def _unary(expression: Case, env: dict[str, Any], pick: random.Random, name: str) -> bool:
    a, n = expression.arrays[name], wide(expression, name)
    exact = name in expression.exact
    if a.dtype.kind == "b":
        forms = [(f"~{name}", f"~{n}"), (f"{name}.int()", f"{n}.astype(np.int32)")]
    elif a.dtype.kind == "i":
        forms = [
            (f"-{name}", f"-{n}"),
            (f"{name}.abs()", f"np.abs({n})"),
            (f"{name} // 3", f"{n} // 3"),
            (f"{name} % 4", f"{n} % 4"),
            (f"({name} < 2)", f"({n} < 2)"),
            (f"{name}.float()", f"{n}.astype(np.float32)"),
        ]
    else:
        forms = [
            (f"-{name}", f"-{n}"),
            (f"{name}.relu()", f"np.maximum({n}, 0)"),
            # not near 0, where a rounding error of 1e-8 becomes one of 1e-4
            (f"({name}.abs() + 1).sqrt()", f"np.sqrt(np.abs({n}) + np.float32(1))"),
            (f"{name}.clip(-3, 3).exp()", f"np.exp(np.clip({n}, -3, 3))"),
            (f"({name}.abs() + 1).log()", f"np.log(np.abs({n}) + np.float32(1))"),
            (f"{name}.sigmoid()", f"1 / (1 + np.exp(-{n}))"),
            (f"{name}.tanh()", f"np.tanh({n})"),
            (f"{name} * 0.5 - 1.0", f"{n} * np.float32(0.5) - np.float32(1)"),
            (
                f"{name}.clip(-9, 9).trunc().int()",
                f"np.trunc(np.clip({n}, -9, 9)).astype(np.int32)",
            ),
        ]
        if not exact:
            forms.pop()  # rounding could move a value across an integer
        if a.dtype.name in SMALL:
            # A root is steep at 0, where all digits may be lost.
            forms = [f for f in forms if "sqrt" not in f[0] and ".exp" not in f[0]]
            forms.append((f"{name}.clip(-1, 1).exp()", f"np.exp(np.clip({n}, -1, 1))"))
            return _narrowed(expression, env, name, *pick.choice(forms))
        if float(np.abs(a).max(initial=0)) < 1e3:
            forms += [(f"{name}.half()", f"{n}.astype(np.float16)")]
            forms += [(f"{name}.bfloat16()", f"{n}.astype(bfloat16)")]
    tensor, array = pick.choice(forms)
    add(expression, env, tensor, array, exact)
    return True


def _unary_widened(expression: Case, env: dict[str, Any], name: str) -> None:
    add(expression, env, f"{name}.float()", wide(expression, name), False)


def _kind(a: Any) -> str:
    """Return numpy's letter for the kind of a dtype; bfloat16 is a float, too."""
    return "f" if a.dtype.name in SMALL else str(a.dtype.kind)


def wide(expression: Case, name: str) -> str:
    """Return how numpy reads a value to compute with it: low-precision floats as float32."""
    twin = name.replace("t", "n", 1)
    small = expression.arrays[name].dtype.name in SMALL
    return f"{twin}.astype(np.float32)" if small else twin


def _narrowed(expression: Case, env: dict[str, Any], name: str, tensor: str, array: str) -> bool:
    """Add a step on low-precision floats, computed wide and rounded; False if that is infinite."""
    kind = expression.arrays[name].dtype
    if kind.name in SMALL:
        with np.errstate(all="ignore"):
            value = np.asarray(eval(array, env)).astype(kind)
        if not np.isfinite(value).all():
            return False
        array = f"({array}).astype({name.replace('t', 'n', 1)}.dtype)"
    add(expression, env, tensor, array, False)
    return True


def _binary(expression: Case, env: dict[str, Any], pick: random.Random, name: str) -> bool:
    a = expression.arrays[name]
    fits = [o for o, b in expression.arrays.items() if b.dtype == a.dtype and _broadcasts(a, b)]
    other = pick.choice(fits)
    n, m = wide(expression, name), wide(expression, other)
    exact = name in expression.exact and other in expression.exact
    if a.dtype.kind == "b":
        forms = [(f"{name} {o} {other}", f"{n} {o} {m}") for o in "&|^"]
    elif a.dtype.kind == "i":
        if float(np.abs(a).max(initial=0)) > 1e4:
            return False
        forms = [(f"{name} {o} {other}", f"{n} {o} {m}") for o in ("+", "-", "*", "<", "==", ">=")]
        forms.append((f"{name}.maximum({other})", f"np.maximum({n}, {m})"))
    else:
        forms = [(f"{name} {o} {other}", f"{n} {o} {m}") for o in "+-*"]
        forms.append((f"{name} / ({other}.abs() + 1)", f"{n} / (np.abs({m}) + np.float32(1))"))
        forms.append((f"{name}.maximum({other})", f"np.maximum({n}, {m})"))
        if float(np.abs(a).max(initial=0)) > 1e3:
            return False
        if a.dtype.name in SMALL:
            return _narrowed(expression, env, name, *pick.choice(forms))
    tensor, array = pick.choice(forms)
    add(expression, env, tensor, array, exact)
    return True


def _where(expression: Case, env: dict[str, Any], pick: random.Random, name: str) -> bool:
    a = expression.arrays[name]
    conditions = [
        o for o, b in expression.arrays.items() if b.dtype.kind == "b" and _broadcasts(a, b)
    ]
    if not conditions or a.dtype.kind == "b":
        return False
    c = pick.choice(conditions)
    n, m = name.replace("t", "n", 1), c.replace("t", "n", 1)
    array = f"np.where({m}, {n}, {n}.dtype.type(2))"
    add(
        expression,
        env,
        f"{c}.where({name}, 2)",
        array,
        name in expression.exact and c in expression.exact,
    )
    return True


def _move(expression: Case, env: dict[str, Any], pick: random.Random, name: str) -> bool:
    a, n = expression.arrays[name], name.replace("t", "n", 1)
    if a.ndim == 0:
        return False
    kind = pick.choice(("permute", "reshape", "pad", "shrink", "flip", "expand", "slice", "merge"))
    exact = name in expression.exact
    if kind == "permute":
        order = tuple(pick.sample(range(a.ndim), a.ndim))
        add(expression, env, f"{name}.permute({order})", f"{n}.transpose({order})", exact)
    elif kind in ("reshape", "merge"):
        shape = (-1,) if kind == "merge" else _split(a.shape, pick)
        add(expression, env, f"{name}.reshape({shape})", f"{n}.reshape({shape})", exact)
    elif kind == "pad":
        if a.size > 2000:
            return False
        sides = tuple((pick.randint(0, 2), pick.randint(0, 2)) for _ in a.shape)
        add(expression, env, f"{name}.pad({sides})", f"np.pad({n}, {sides})", exact)
    elif kind == "shrink":
        box = tuple(_interval(s, pick) for s in a.shape)
        cut = ", ".join(f"{lo}:{hi}" for lo, hi in box)
        add(expression, env, f"{name}.shrink({box})", f"{n}[{cut}]", exact)
    elif kind == "flip":
        axis = pick.randrange(a.ndim)
        add(expression, env, f"{name}.flip({axis})", f"np.flip({n}, {axis})", exact)
    elif kind == "expand":
        if a.size > 500:
            return False
        shape = (pick.choice((2, 3)), *a.shape)
        add(expression, env, f"{name}.expand({shape})", f"np.broadcast_to({n}, {shape})", exact)
    else:
        cut = ", ".join(pick.choice((":", "::2", "::-1", "1:", ":-1")) for _ in a.shape)
        if 0 in env[n][tuple(eval(f"np.s_[{cut},]", {"np": np}))].shape:
            return False
        add(expression, env, f"{name}[{cut}]", f"{n}[{cut}]", exact)
    return True


def _reduce(expression: Case, env: dict[str, Any], pick: random.Random, name: str) -> bool:
    a, n = expression.arrays[name], wide(expression, name)
    if a.ndim == 0 or a.dtype.kind == "b":
        return False
    exact = name in expression.exact
    axes: Any = pick.choice([None, *range(a.ndim), tuple(range(pick.randint(1, a.ndim)))])
    keep = pick.random() < 0.5
    if a.dtype.kind == "i" and pick.random() < 0.3 and exact:
        axis = pick.randrange(a.ndim)
        kind = pick.choice(("argmin", "argmax"))
        array = f"{n}.{kind}({axis}).astype(np.int32)"
        add(expression, env, f"{name}.{kind}({axis})", array, True)
        return True
    kind = pick.choice(("sum", "max", "min", "mean") if _kind(a) == "f" else ("sum", "max"))
    small = a.dtype.name in SMALL
    summed = a.dtype if _kind(a) == "f" else "int64"
    cast = f", dtype=np.{summed}" if kind in ("sum", "mean") and not small else ""
    array = f"{n}.{kind}(axis={axes}, keepdims={keep}{cast})"
    tensor = f"{name}.{kind}(axis={axes}, keepdim={keep})"
    if small:
        return _narrowed(expression, env, name, tensor, array)
    add(expression, env, tensor, array, exact and kind != "mean")
    return True


def _centre(expression: Case, env: dict[str, Any], pick: random.Random, name: str) -> bool:
    """A value against its own reduction: two uses of one tensor at different indexes."""
    a, n = expression.arrays[name], wide(expression, name)
    if a.ndim == 0 or _kind(a) != "f":
        return False
    axis = pick.randrange(a.ndim)
    kind = pick.choice(("max", "mean", "sum"))
    array = f"{n} - {n}.{kind}(axis={axis}, keepdims=True)"
    tensor = f"{name} - {name}.{kind}(axis={axis}, keepdim=True)"
    return _narrowed(expression, env, name, tensor, array)


def _matmul(expression: Case, env: dict[str, Any], pick: random.Random, name: str) -> bool:
    a, n = expression.arrays[name], wide(expression, name)
    if a.ndim < 2 or _kind(a) != "f" or float(np.abs(a).max(initial=0)) > 100:
        return False
    tensor, array = f"{name} @ {name}.transpose(-1, -2)", f"{n} @ {n}.swapaxes(-1, -2)"
    return _narrowed(expression, env, name, tensor, array)


def _split(shape: tuple[int, ...], pick: random.Random) -> tuple[int, ...]:
    parts: list[int] = []
    for n in shape:
        divisors = [d for d in range(1, n + 1) if n % d == 0]
        d = pick.choice(divisors)
        parts += [d, n // d] if pick.random() < 0.5 else [n]
    return tuple(parts)


def _interval(n: int, pick: random.Random) -> tuple[int, int]:
    lo = pick.randrange(n)
    return lo, pick.randint(lo + 1, n)


def _broadcasts(a: Any, b: Any) -> bool:
    try:
        return int(np.prod(np.broadcast_shapes(a.shape, b.shape))) <= 20000
    except ValueError:
        return False


_STEPS = (_unary, _unary, _binary, _binary, _where, _move, _move, _move, _reduce, _centre, _matmul)
