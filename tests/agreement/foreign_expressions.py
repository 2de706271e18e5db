"""Random expressions as lines of Python, each beside its value in numpy.

It knows the public API and what it promises, and nothing of the other generators here: what
those leave out is not left out here for the same reason. A float goes with a bound of its
error, 0 where all that it comes from is exact; only exact values are compared, rounded or
made integers.

    python -m tests.agreement.foreign_expressions LLVM 0 1000     # device, first seed, how many
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import inf, nan

from tests.agreement.bounded_values import (
    BITS,
    INTS,
    MOST_ELEMENTS,
    Array,
    NoOperand,
    Value,
    held,
    joined,
    promoted,
    step,
)
from workbench import Context, Tensor

COMMON = ["float32"] * 8 + ["int32"] * 6 + ["bool"] * 3 + ["int64"] * 2 + [*INTS, *BITS]


class Program:
    """Lines that were run, and the values that their names must have."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.env: dict[str, Any] = {"np": np, "Tensor": Tensor, "nan": nan, "inf": inf}
        self.lines: list[str] = []
        self.pool: list[Value] = []
        self.special = self.below(3) == 0
        self.dtypes = COMMON if self.below(3) else ["bool", *INTS, *BITS]
        self.sizes = [1, 2, 3, 4, 5, 6, 7, 9] if self.below(3) else [1, 2, 3, 8, 16, 17, 33, 64]
        with np.errstate(all="ignore"):
            for _ in range(1 + self.below(3)):
                self.leaf()
            self.root, ops = self.pool[-1], 0
            for _ in range(60):
                kept = len(self.lines), len(self.pool)
                try:
                    self.root, ops = getattr(self, self.pick(OPS))(), ops + 1
                except NoOperand:
                    del self.lines[kept[0] :], self.pool[kept[1] :]
                if ops == 9:
                    break

    def below(self, n: int) -> int:
        return int(self.rng.integers(n))

    def pick(self, choices: Any) -> Any:
        return choices[self.below(len(choices))]

    def value(self, fits: Callable[[Value], bool] = lambda x: True) -> Value:
        """Return a value; the newest as often as all others, so that ops build on each other."""
        found = [x for x in self.pool if fits(x)]
        if not found:
            raise NoOperand
        return found[-1] if self.below(2) else self.pick(found)

    def emit(self, text: str, dtype: str, v: Any, e: Any = 0.0) -> Value:
        if np.size(v) > MOST_ELEMENTS:
            raise NoOperand
        x = Value.of(f"t{len(self.lines)}", dtype, v, e)
        self.lines.append(f"{x.name} = {text}")
        exec(self.lines[-1], self.env)
        t = self.env[x.name]
        assert t.dtype.name == dtype and t.shape == x.v.shape, (t.dtype, t.shape, *self.lines)
        self.pool.append(x)
        return x

    def leaf(self, shape: tuple[int, ...] | None = None, dtype: str = "") -> Value:
        dtype = dtype or self.pick(self.dtypes)
        if shape is not None and np.prod(shape) > MOST_ELEMENTS:
            raise NoOperand
        while shape is None:
            sizes = [*self.sizes, *[0] * (self.below(6) == 0)]
            axes = self.pick([0, 1, 2, 2, 3, 3, 4])
            drawn = tuple(self.pick(sizes) for _ in range(axes))
            shape = drawn if np.prod(drawn) <= 120 else None
        n, rare = int(np.prod(shape)), self.rng.random(shape) < 0.15 * self.special
        if self.below(8) == 0 and n < 100 and dtype != "bool":
            v = np.arange(n).reshape(shape)
            return self.emit(f"Tensor.arange({n}, dtype={dtype!r}).reshape({shape})", dtype, v)
        if dtype == "bool":
            v = self.rng.random(shape) < 0.5
        elif dtype in BITS:
            v = self.rng.integers(-12, 13, shape) / self.pick([1.0, 2.0, 4.0])
            v = np.where(rare, self.rng.choice([nan, inf, -inf, 0.0, 2.0**14], shape), v)
        else:
            ends = np.iinfo(dtype)
            v = self.rng.integers(-9 if ends.min else 0, 10, shape).astype(dtype)
            edges = np.array([ends.min, ends.max, 0, ends.max // 2 + 1], dtype)
            v = np.where(rare, self.rng.choice(edges, shape), v)
        stored = "float32" if dtype == "bfloat16" else dtype
        text = f"Tensor(np.array({v.ravel().tolist()}, {stored!r}).reshape({shape}))"
        return self.emit(text + ".cast('bfloat16')" * (dtype == "bfloat16"), dtype, v)

    def pair(self, fits: Callable[[Value], bool] = lambda x: True) -> tuple[Value, Value]:
        x = self.value(fits)
        others = [y for y in self.pool if y is not x and fits(y) and joined(x.v.shape, y.v.shape)]
        if others and self.below(3):
            y = self.pick(others)
        else:
            shape = tuple(self.pick([1, n, n]) for n in x.v.shape)[self.below(2) :]
            y = self.leaf(shape, self.pick([x.dtype, x.dtype, self.pick(self.dtypes)]))
            if not fits(y) or not joined(x.v.shape, y.v.shape):
                raise NoOperand
        return (x, y) if self.below(2) else (y, x)

    def movement(self) -> Value:
        x = self.value()
        shape, axes, text = x.v.shape, x.v.ndim, ""
        if not axes:
            return self.emit(
                f"{x.name}.expand(3, 2)", x.dtype, *(np.full((3, 2), a) for a in (x.v, x.e))
            )
        a, k, pads, fill = self.below(axes), self.below(11), [], 0
        n, q = shape[a], self.below(9) - 4
        order = tuple(int(i) for i in self.rng.permutation(axes))
        if k < 2:
            halves = (x.v.size // 2, 2) if x.v.size % 2 == 0 else (x.v.size, 1)
            text = f"reshape({self.pick([(x.v.size,), halves, halves[::-1], (1, *shape[::-1])])})"
        elif k == 2:
            text = f"permute({order})" if self.below(2) else f"repeat_interleave(2, {a})"
        elif k == 3:
            pads = [(self.below(3), self.below(3)) for _ in shape]
            fill = self.pick([0, 0, 1, 3]) if x.dtype != "bool" else 0
            text = f"pad({pads}, value={fill})"
        elif k == 4:
            text = f"expand({tuple(self.pick([2, 3]) if m == 1 else m for m in shape)})"
        elif k == 5:
            text = f"{self.pick(['tril', 'triu'])}({q})" if axes > 1 else f"roll({q}, 0)"
        elif k == 6 and n:
            text = f"[{':, ' * a}{[self.below(2 * n) - n for _ in range(1 + self.below(5))]}]"
        elif k == 7:
            text = f"flip({order[: 1 + self.below(axes)]})"
        else:
            ends = [f"{self.pick(['', -2, 0, 1])}:{self.pick(['', n, -1, 3])}" for n in shape]
            text = f"[{', '.join(f'{end}:{self.pick([1, 1, 2, -1, -2, 3])}' for end in ends)}]"
        written = x.name + ("" if text[0] == "[" else ".") + text

        def lower(by: int) -> Array:
            return np.tri(*shape[-2:], by, dtype=bool)

        def moved(array: Array, gap: float) -> Array:
            none = array.dtype.type(0)
            verbs = {
                "reshape": array.reshape, "permute": array.transpose,
                "repeat_interleave": lambda times, axis: np.repeat(array, times, axis),
                "pad": lambda by, value: np.pad(array, by, constant_values=gap),
                "expand": lambda to: np.broadcast_to(array, to),
                "tril": lambda by: np.where(lower(by), array, none),
                "triu": lambda by: np.where(lower(by - 1), none, array),
                "roll": lambda by, axis: np.roll(array, by, axis),
                "flip": lambda by: np.flip(array, by),
            }  # fmt: skip
            return np.asarray(eval("array" * (text[0] == "[") + text, {"array": array, **verbs}))

        return self.emit(written, x.dtype, moved(x.v, fill), moved(x.e, 0))

    def joining(self) -> Value:
        x, y = self.pair(lambda q: q.v.ndim > 0)
        if x.dtype != y.dtype or x.v.shape != y.v.shape:
            raise NoOperand
        a, verb = self.below(x.v.ndim), self.pick(["cat", "stack"])
        join = np.concatenate if verb == "cat" else np.stack
        v, e = join([x.v, y.v, x.v], axis=a), join([x.e, y.e, x.e], axis=a)
        return self.emit(f"{x.name}.{verb}({y.name}, {x.name}, dim={a})", x.dtype, v, e)

    def arithmetic(self) -> Value:
        x, y = self.pair()
        dtype, op = (promoted(x.dtype, y.dtype), self.pick(["+", "-", "*", "maximum", "minimum"]))
        if dtype == "bool" and op == "-":
            raise NoOperand
        a, b = x.cast(dtype), y.cast(dtype)
        e = np.maximum(a.e, b.e) if len(op) > 1 else a.e + b.e
        if op == "*":
            e = np.where(e == 0, 0.0, abs(a.v) * b.e + abs(b.v) * a.e + a.e * b.e)
        text = f"{x.name}.{op}({y.name})" if len(op) > 1 else f"{x.name} {op} {y.name}"
        ufunc = {"+": np.add, "-": np.subtract, "*": np.multiply}.get(op) or getattr(np, op)
        v = ufunc(a.v, b.v)
        if dtype in BITS and op in "+-":
            e = np.where(held(v, dtype), e, e + step(dtype) * (abs(a.v) + abs(b.v)))
        return self.emit(text, dtype, v, e)

    def integers(self) -> Value:
        """Division floors, by zero it is 0; a shift out of range is 0."""
        op = self.pick(["//", "%", "//", "%", "&", "|", "^", "<<", ">>"])
        x, y = self.pair(lambda q: q.dtype in INTS)
        dtype = promoted(x.dtype, y.dtype)
        if dtype in BITS or (op in ("<<", ">>") and x.dtype != y.dtype):
            raise NoOperand
        a, b = x.v.astype(dtype), y.v.astype(dtype)
        ufuncs = {"//": np.floor_divide, "%": np.mod, "&": np.bitwise_and, "|": np.bitwise_or}
        ufuncs |= {"^": np.bitwise_xor, "<<": np.left_shift, ">>": np.right_shift}
        fits = b != 0 if op in ("//", "%") else np.full(b.shape, True)
        if op in ("<<", ">>"):
            fits = (b >= 0) & (b < 8 * b.dtype.itemsize)
        v = np.where(fits, ufuncs[op](a, np.where(fits, b, b.dtype.type(1))), b.dtype.type(0))
        return self.emit(f"{x.name} {op} {y.name}", dtype, v)

    def comparison(self) -> Value:
        x, y = self.pair(lambda q: q.exact())
        a, b = (q.cast(promoted(x.dtype, y.dtype)) for q in (x, y))
        if not (a.exact() and b.exact()):
            raise NoOperand
        op = self.pick(["<", "<=", ">", ">=", "==", "!="])
        return self.emit(f"{x.name} {op} {y.name}", "bool", eval(f"a.v {op} b.v"))

    def choice(self) -> Value:
        m, (x, y) = self.value(lambda q: q.dtype == "bool"), self.pair()
        if not joined(m.v.shape, np.broadcast_shapes(x.v.shape, y.v.shape)):
            raise NoOperand
        dtype = promoted(x.dtype, y.dtype)
        a, b = x.cast(dtype), y.cast(dtype)
        v, e = np.where(m.v, a.v, b.v), np.where(m.v, a.e, b.e)
        return self.emit(f"{m.name}.where({x.name}, {y.name})", dtype, v, e)

    def unary(self) -> Value:
        x = self.value(lambda q: q.dtype != "bool")
        verb = self.pick(["abs", "square", "sign", "floor", "round", "exp", "tanh", "sin"])
        if not x.is_float and verb in ("floor", "round", "exp", "tanh", "sin"):
            verb = "bitwise_not"
        f = {"round": np.rint, "bitwise_not": np.invert}.get(verb) or getattr(np, verb)
        if verb in ("sign", "floor", "round") and not x.exact():
            raise NoOperand
        v, e = f(x.v).astype(x.v.dtype), x.e
        if verb in ("square", "exp", "tanh", "sin") and x.is_float:
            if verb != "square" and (abs(x.v) > 30).any():
                raise NoOperand
            e = 1.5 * np.maximum(abs(f(x.v + x.e) - v), abs(f(x.v - x.e) - v))
            if verb != "square" or not x.exact():
                e = e + 6 * step(x.dtype) * (abs(v) + (verb != "exp"))
            e = np.where(x.e == inf, inf, e)
        return self.emit(f"{x.name}.{verb}()", x.dtype, v, e)

    def casting(self) -> Value:
        x, dtype = self.value(), self.pick(self.dtypes)
        y = x.cast(dtype)
        return self.emit(f"{x.name}.cast({dtype!r})", dtype, y.v, y.e)

    def reduction(self) -> Value:
        x = self.value(lambda q: q.v.ndim > 0)
        verb = self.pick(
            ["sum", "sum", "cumsum", "max", "min", "prod", "any", "all", "argmax", "sort"]
        )
        a, kept = self.below(x.v.ndim), bool(self.below(2))
        total = {"uint64": "uint64"}.get(x.dtype, x.dtype if x.is_float else "int64")
        if verb in ("sum", "cumsum"):
            v, f = x.v.astype("float64" if x.is_float else total), getattr(np, verb)
            e, finite = f(x.e, axis=a), np.where(np.isfinite(x.v), x.v, 0)
            if x.is_float and (abs(finite).sum() > 2**14 or (finite * 64 % 1).any()):
                width = "float64" if x.dtype == "float64" else "float32"
                e = e + (x.v.shape[a] + 1) * step(width) * f(abs(finite), axis=a)
            return self.emit(f"{x.name}.{verb}({a})", total, f(v, axis=a), e)
        if verb == "prod":
            if x.is_float:
                raise NoOperand
            return self.emit(f"{x.name}.prod({a})", total, x.v.astype(total).prod(axis=a))
        if (
            verb not in ("any", "all")
            and x.v.size == 0
            or not (x.exact() or verb in ("max", "min"))
        ):
            raise NoOperand
        if verb == "sort":
            if np.isnan(x.v.astype(float)).any() or x.v.shape[a] > 9:
                raise NoOperand
            return self.emit(f"{x.name}.sort({a})[0]", x.dtype, np.sort(x.v, axis=a))
        text = f"{x.name}.{verb}({a}, keepdim={kept})"
        if verb in ("max", "min"):
            v = getattr(x.v, verb)(axis=a, keepdims=kept)
            return self.emit(text, x.dtype, v, x.e.max(axis=a, keepdims=kept))
        dtype, truth = ("int32", x.v) if verb == "argmax" else ("bool", x.v != 0)
        return self.emit(text, dtype, getattr(truth, verb)(axis=a, keepdims=kept))

    def product(self) -> Value:
        x = self.value(lambda q: q.v.ndim > 0 and q.v.size > 0 and not q.is_float)
        if x.dtype == "bool":
            raise NoOperand
        y = self.leaf((x.v.shape[-1], self.pick([1, 2, 3, 5, 8])), x.dtype)
        return self.emit(f"{x.name} @ {y.name}", x.dtype, x.v @ y.v)

    def write(self) -> Value:
        """Write to memory of which a view is there, and an expression on its old value."""
        x = self.value(lambda q: q.v.ndim > 0 and q.v.size > 0 and q.dtype != "bool")
        w = self.emit(x.name + ".clone()" + self.pick(["", ".realize()"]), x.dtype, x.v, x.e)
        view = self.emit(f"{w.name}[::-1]", x.dtype, w.v[::-1], w.e[::-1])
        old = self.emit(f"{w.name} + {w.name}", x.dtype, w.v + w.v, w.e * 2)
        part = self.pick(["1:", "::2", "::-1", ":2"])
        at = eval(f"np.s_[{part}]")
        self.lines.append(f"{w.name}[{part}] = {old.name}[{part}].flip(0)")
        exec(self.lines[-1], self.env)
        w.v[at], w.e[at] = old.v[at][::-1].copy(), old.e[at][::-1].copy()
        view.v, view.e = w.v[::-1], w.e[::-1]
        return self.pick([w, view, old])


OPS = ["movement"] * 7 + ["reduction"] * 5 + ["arithmetic"] * 5 + ["integers", "unary"] * 2
OPS += ["comparison", "choice", "casting", "joining", "product", "write"]


def differences(device: str, seeds: range, at_once: int = 40) -> list[str]:
    """Return a program to paste, and what is wrong, for each seed that gives a wrong answer."""
    found = []
    for first in range(seeds.start, seeds.stop, at_once):
        with Context(DEV=device, NOOPT=first // at_once % 2):
            group = range(first, min(first + at_once, seeds.stop))
            programs = {seed: Program(seed) for seed in group}
            Tensor.realize(*(p.env[p.root.name] for p in programs.values()))
            for seed, p in programs.items():
                wrong = p.root.difference(p.env[p.root.name].numpy())
                if wrong:
                    head = "import numpy as np\nfrom numpy import inf, nan\n"
                    head += "from workbench import Tensor"
                    body = "\n".join([*p.lines, f"print({p.root.name}.numpy())"])
                    found.append(f"# seed {seed} on {device}\n{head}\n{body}\n# {wrong}\n")
    return found


if __name__ == "__main__":
    device, first, how_many = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    wrong = differences(device, range(first, first + how_many))
    print(
        *wrong, f"{device}: {how_many} expressions from seed {first}, {len(wrong)} wrong", sep="\n"
    )
