"""Random expressions of floats, and what has to hold exactly of each: one value of a program has
one rounding, in whichever kernel and however often it is computed.

`python -m tests.agreement.one_rounding LLVM 0 1000` (device, first seed, how many) checks as many
as one likes; a failure names its seed, and prints a script that fails.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from workbench import Context, Tensor

Array = Any
Node = tuple[Any, ...]
"""(kind, *operands): a leaf is (name,) or (constant,)."""
NUMPY = {"bfloat16": ml_dtypes.bfloat16}
DTYPES = ("float32", "float32", "float64", "float16", "bfloat16")
SHAPES = ((1,), (33,), (8, 16), (5, 7), (3, 4, 8), (64,), (2, 100))


@dataclass(frozen=True)
class Kind:
    """An operation: how many operands it has, its source, and its meaning in numpy: None where
    numpy's is rounded otherwise."""

    arity: int
    source: str
    numpy: Callable[..., Array] | None = None


# fmt: off
ARITHMETIC = {
    "add":     Kind(2, "({} + {})", np.add),
    "sub":     Kind(2, "({} - {})", np.subtract),
    "mul":     Kind(2, "({} * {})", np.multiply),
    "div":     Kind(2, "({} / {})", np.divide),
    "neg":     Kind(1, "(-{})", np.negative),
    "square":  Kind(1, "{}.square()", np.square),
    "sqrt":    Kind(1, "{}.abs().sqrt()", lambda a: np.sqrt(np.abs(a))),
    "most":    Kind(2, "{}.maximum({})", np.maximum),
    "choice":  Kind(3, "({} > {}).where({}, 0.5)",
                    lambda a, b, c: np.where(a > b, c, np.asarray(0.5, c.dtype))),
}
FUNCTIONS = {
    "exp":     Kind(1, "{}.minimum(8.0).exp()"),
    "sin":     Kind(1, "{}.sin()"),
    "tanh":    Kind(1, "{}.tanh()"),
    "log":     Kind(1, "({}.abs() + 0.1).log()"),
    "power":   Kind(1, "({}.abs() + 0.1).minimum(9.0).pow(2.5)"),
    "inverse": Kind(1, "({}.abs() + 0.1).reciprocal()"),
    "narrow":  Kind(1, "{0}.cast('float16').cast({0}.dtype)"),
    "floor":   Kind(1, "{}.floor()"),
}
SUMS = {
    "dot":     Kind(2, "({} * {}).sum(-1, keepdim=True)"),
    "outer":   Kind(2, "({}.unsqueeze(-1) * {}.unsqueeze(-2)).sum(-1)"),
    "mean":    Kind(1, "{}.mean(-1, keepdim=True)"),
    "softmax": Kind(1, "{}.softmax(-1)"),
    "var":     Kind(1, "{}.var(-1, keepdim=True, correction=0)"),
    "prefix":  Kind(1, "{}.cumsum(-1)"),
}
# fmt: on
KINDS = {**ARITHMETIC, **FUNCTIONS, **SUMS}


def tree(rng: random.Random, depth: int, kinds: list[str]) -> Node:
    """Return a random expression; products, and sums with them, are what it has most of."""
    if depth == 0:
        return (rng.choice("abcd"),) if rng.random() < 0.9 else (rng.choice((0.1, 3.0)),)
    common = rng.random() < 0.5
    kind = rng.choice(["mul", "add", "sub"]) if common else rng.choice(kinds)
    parts = [tree(rng, rng.randrange(depth), kinds) for _ in range(KINDS[kind].arity)]
    for i, part in enumerate(parts):  # a number stands on the right of an operator
        if isinstance(part[0], float) and (i == 0 or len(parts) > 2):
            parts[i] = ("a",)
    return (kind, *parts)


def product(rng: random.Random, kinds: list[str]) -> Node:
    """Return an expression of which a product is the last step: what a reader may fuse."""
    left = tree(rng, rng.choice((0, 0, 1, 2)), kinds)
    return ("mul", ("a",) if isinstance(left[0], float) else left, ("b",))


def source_of(node: Node, cut: Callable[[], bool] = lambda: False) -> str:
    """Return the expression as Python; where `cut` says so, a value is stored by itself."""
    if len(node) == 1:
        return str(node[0])
    source = KINDS[node[0]].source.format(*[source_of(n, cut) for n in node[1:]])
    return f"{source}.contiguous()" if cut() else source


def meaning(node: Node, arrays: dict[str, Array]) -> Array:
    """Return what numpy computes; each step is rounded to the dtype."""
    if len(node) == 1:
        kind = arrays["a"].dtype.type
        return arrays[node[0]] if node[0] in arrays else kind(node[0])
    numpy = KINDS[node[0]].numpy
    assert numpy is not None
    with np.errstate(all="ignore"):
        result = numpy(*[meaning(n, arrays) for n in node[1:]])
    return np.asarray(result, arrays["a"].dtype)


def kinds_in(node: Node) -> set[str]:
    """Return the operations of an expression."""
    return {node[0]}.union(*map(kinds_in, node[1:])) if len(node) > 1 else set()


# What holds of every x without NaN or infinity, as Python. `flat` is x.flatten(), `stored` the
# value that a kernel of its own has written.
DIFFERENCES = (
    "((x - x.max()) == 0).any()",
    "((x - x.min()) == 0).any()",
    "((x - x.max()) <= 0).all()",
    "((x - x.max(-1, keepdim=True)).max(-1) == 0).all()",
    "((x - stored) == 0).all()",
    "((x - x.clone()) == 0).all()",
    "((x + x) == (stored + x)).all()",
    "((x - x.sort(-1)[0].contiguous()).sum(-1).abs() <= x.abs().sum(-1) * 0.01).all()",
    "((x - x.max()).exp().max() == 1).all()",
    "((x.pad(((1, 1),) * x.ndim).max() - x) >= 0).all()",
    "((x.transpose(0, -1).contiguous().transpose(0, -1) - x) == 0).all()",
    "((x.flip(0).contiguous().flip(0) - x) == 0).all()",
    "((x.cat(x + 0, dim=0).max(0) - x.max(0)) == 0).all()",
    "(((x - stored.floor()) >= 0) & ((x - stored.floor()) <= 1)).all()",
)
DECISIONS = (
    "(x >= stored).all() & (x <= stored).all()",
    "(((x - x.floor()) >= 0) & ((x - x.floor()) <= 1)).all()",
    "(x.trunc() == stored.trunc()).all()",
    "(x.round() == stored.round()).all()",
    "(x.cast('int64') == stored.cast('int64')).all()",
    "((x.cast('float16') == stored.cast('float16')) | x.cast('float16').isnan()).all()",
    "(x.bitcast(bits) == stored.bitcast(bits)).all()",
    "flat[int(flat.argmax().item())] == x.max()",
    "flat[int(flat.argmin().item())] == x.min()",
    "flat.sort()[0][-1] == x.max()",
    "(flat.sort()[0] == flat[flat.sort()[1]]).all()",
    "(flat.argsort() == stored.flatten().argsort()).all()",
    "(flat.topk(1)[0] == x.max()).all()",
    "(flat.cummax(0)[0][-1] == x.max()).all()",
    "(flat.cummax(0)[0] >= flat).all()",
    "((x > y) == ~(x <= y)).all()",
    "((x == x.max()).sum() == (stored == stored.max()).sum()).all()",
    "(x.clip(-1, 1) == stored.clip(-1, 1)).all()",
    "((x % 1.0) == (stored % 1.0)).all()",
    "((x // 0.5) == (stored // 0.5)).all()",
    "(x.sign() == stored.sign()).all()",
    "(flat.unsqueeze(1) <= flat).sum(1).max() == x.numel()",
)


@dataclass(frozen=True)
class Case:
    """A seed's expression with its operands, and how it is to be stored in between."""

    seed: int
    device: str
    dtype: str
    shape: tuple[int, ...]
    node: Node
    cut: str

    @property
    def arrays(self) -> dict[str, Array]:
        """The operands: numbers of several sizes."""
        rng = np.random.default_rng(self.seed)
        sizes = dict(zip("abcd", (7.0, 3.0, 0.3, 50.0), strict=True))
        dtype = NUMPY.get(self.dtype, self.dtype)
        return {
            name: (rng.standard_normal(self.shape) * size).astype(dtype)
            for name, size in sizes.items()
        }

    def script(self, claim: str) -> str:
        """Return a program that fails while the claim does not hold."""
        return "\n".join(
            [
                "from workbench import Context",
                "from tests.agreement.one_rounding import case, values",
                f"each = case({self.seed}, {self.device!r})",
                f"with Context(DEV={self.device!r}):",
                f"    names = values(each)  # x = {source_of(self.node)}",
                f"    assert eval({claim!r}, names).item()",
            ]
        )


def case(seed: int, device: str) -> Case:
    """Return the case of a seed."""
    rng = random.Random(seed)
    kinds = list(ARITHMETIC)
    if seed % 3:
        kinds += FUNCTIONS
    if seed % 3 == 2:
        kinds += SUMS
    dtype = rng.choice(DTYPES if device != "OPENCL" else DTYPES[:4])
    node = product(rng, kinds) if rng.random() < 0.6 else tree(rng, 3, kinds)
    if len(node) == 1:
        node = ("mul", ("a",), ("b",))
    cut = source_of(node, lambda: rng.random() < 0.4)
    return Case(seed, device, dtype, rng.choice(SHAPES), node, cut)


def values(each: Case) -> dict[str, Any]:
    """Return the names that claims read. Call it where the device is the default one."""
    names: dict[str, Any] = {name: Tensor(data) for name, data in each.arrays.items()}
    x = names["x"] = _full(eval(source_of(each.node), names), each.shape)
    names["y"] = (names["a"] * names["c"]).expand(*each.shape)
    names["flat"], names["stored"] = x.flatten(), x.contiguous()
    names["bits"] = f"int{8 * x.dtype.itemsize}"
    return names


def _full(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    return value.expand(*shape)


def failures(each: Case) -> tuple[int, list[str]]:
    """Return (how many claims were checked, a report of each that does not hold)."""
    rng, wrong, checked = random.Random(each.seed + 1), list[str](), 0
    with Context(DEV=each.device):
        x = values(each)["x"].numpy()
        numbers = np.asarray(x, np.float64)
        kinds = kinds_in(each.node)
        if kinds <= ARITHMETIC.keys():
            want = np.broadcast_to(meaning(each.node, each.arrays), each.shape)
            checked += 1
            if not _same(x, want):
                wrong.append(_report(each, "it is what numpy computes", x, want))
        if not kinds & SUMS.keys():
            checked += 2
            cut = _full(eval(each.cut, values(each)), each.shape).numpy()
            if not _same(cut, x):
                wrong.append(_report(each, f"it is {each.cut}", cut, x))
            with Context(NOOPT=1):
                plain = values(each)["x"].numpy()
            if not _same(plain, x):
                wrong.append(_report(each, "it is the same without opts", plain, x))
        if np.isfinite(numbers).all() and np.abs(numbers).max() < 2.0**62:
            for claim in (*rng.sample(DIFFERENCES, 2), *rng.sample(DECISIONS, 2)):
                checked += 1
                names = values(each)  # anew: what was computed once is memory
                if not eval(claim, names).all().item():
                    wrong.append(
                        f"seed {each.seed} on {each.device}, {each.dtype}{each.shape}:"
                        f" {claim}\n{each.script(claim)}"
                    )
    return checked, wrong


def _same(actual: Array, want: Array) -> bool:
    """Whether two arrays have the same numbers; NaN are alike, and zeros of either sign."""
    return bool(np.array_equal(_wide(actual), _wide(want), equal_nan=True))


def _wide(array: Array) -> Array:
    return np.asarray(array, np.float64)


def _report(each: Case, claim: str, actual: Array, want: Array) -> str:
    different = np.argmax(np.ravel(_wide(actual) != _wide(want)))
    pair = np.ravel(actual)[different], np.ravel(want)[different]
    return (
        f"seed {each.seed} on {each.device}, {each.dtype}{each.shape}: {claim}, at {different}:"
        f" {pair}\nfailures(case({each.seed}, {each.device!r}))  # {source_of(each.node)}"
    )


def main(device: str, first: int, how_many: int) -> int:
    """Check so many seeds, print what fails, and return how many did."""
    total, wrong = 0, list[str]()
    for seed in range(first, first + how_many):
        checked, reports = failures(case(seed, device))
        total, wrong = total + checked, wrong + reports
        print("".join(f"{report}\n\n" for report in reports), end="", flush=True)
    seeds = f"seeds {first} to {first + how_many - 1}"
    print(f"{device}: {total} claims of {seeds}, {len(wrong)} wrong")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
