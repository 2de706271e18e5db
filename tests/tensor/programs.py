"""Random programs of assignments, views, values, reads and TinyJits, beside the same in numpy.

    python -m tests.tensor.programs --device LLVM --seeds 0:1000

holds as many as one likes against numpy, and prints for each wrong one a script that fails, and
how many were refused, by reason.
A program is a list of Python lines over `t[n]` (tensors) and `a[n]` (arrays); views of arrays are
views, as those of tensors are, and values are copies.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable
from copy import copy, deepcopy
from pickle import dumps, loads
from typing import Any

import numpy as np

from workbench import Context, Tensor, TinyJit
from workbench.base.errors import WorkbenchError

SHAPES = [(4,), (2, 3), (3, 3), (1, 4), (2, 1, 3), (6,)]
LINES_MOST = 14


class _Ignored:
    """What a program's results are compared with while it is made: nothing."""

    def pop(self, place: int) -> int:
        return place


def _ignore(*_: object) -> None:
    """Compare nothing: the program is being made."""


class Program:
    """Lines for both sides: each is (text for tensors, text for arrays)."""

    shapes_at_first, dtype = SHAPES, "int32"
    operators: tuple[str, ...] = ("+=", "-=", "*=", "|=", "^=")

    def __init__(self, seed: int, device: str):
        self.device = device
        self.random = random.Random(seed)
        self.lines: list[tuple[str, str]] = []
        self.shapes: list[tuple[int, ...]] = []
        self.arrays: list[Any] = []
        """What the arrays are, to know shapes and which views numpy can make."""
        for _ in range(self.random.randint(2, 3)):
            self._start()
        steps = self._steps()
        for _ in range(self.random.randint(4, LINES_MOST)):
            self.random.choice(steps)()

    def _steps(self) -> list[Callable[[], None]]:
        return [
            self._value, self._view, self._view, self._operator, self._operator, self._assign,
            self._item, self._item, self._realize, self._read, self._call, self._bind,
            self._delete,
        ]  # fmt: skip

    def _add(self, tensor: str, array: str) -> None:
        self.lines.append((tensor, array))
        exec(
            array,
            {"a": self.arrays, "np": np, "results": _Ignored(), "Tensor": id, "same": _ignore},
        )

    def _pick(self) -> int:
        return self.random.choice([n for n, array in enumerate(self.arrays) if array is not None])

    def _like(self, x: int) -> int | None:
        """Return the place of an array that fits beside array `x`."""
        fits = [
            n
            for n, array in enumerate(self.arrays)
            if array is not None and array.shape == self.arrays[x].shape
        ]
        return self.random.choice(fits) if fits else None

    def _start(self) -> None:
        shape, low = (self.random.choice(self.shapes_at_first), self.random.randint(-5, 5))
        size = int(np.prod(shape))
        text = f"np.arange({low}, {low + size}, dtype=np.{self.dtype}).reshape({shape})"
        end = self.random.choice([".realize()", ".realize()", ""])
        self._add(f"t.append(Tensor({text}){end})", f"a.append({text})")

    def _value(self) -> None:
        x = self._pick()
        y = self._like(x)
        form = self.random.choice(
            ["{x} * 2", "{x} + {y}", "{x} - {y}.sum()", "{x} + {x}.max(0)", "{x}.sum(0) + {y}"]
        )
        copies = "{x}.copy()" if self.random.random() < 0.1 else form
        tensors = "{x}.clone()" if copies != form else form
        self._both("append", tensors, copies, x, y)

    def _both(self, how: str, tensor: str, array: str, x: int, y: int | None) -> None:
        other = x if y is None else y
        self._append(
            f"({tensor.format(x=f't[{x}]', y=f't[{other}]')}).cast('{self.dtype}')",
            f"np.asarray({array.format(x=f'a[{x}]', y=f'a[{other}]')}, np.{self.dtype})",
            x,
        )

    def _append(self, tensor: str, array: str, x: int) -> None:
        """Add a tensor that is made of tensor `x`."""
        self._add(f"t.append({tensor})", f"a.append({array})")

    def _view(self) -> None:
        x = self._pick()
        array = self.arrays[x]
        index = self._basic(array.shape)
        flat = (array.size,)
        options = [f"[{index}]", f"[{index}]", f".reshape({flat})"]
        if array.ndim > 1:
            options.append(f".transpose({', '.join(map(str, range(array.ndim)[::-1]))})")
        form = self.random.choice(options)
        result = eval(f"x{form}", {"x": array})
        if not np.shares_memory(result, array) or not result.size:
            return  # numpy copies here, where a tensor is a view
        tensor = form.replace(".transpose(", ".permute(")
        self._append(f"t[{x}]{tensor}", f"a[{x}]{form}", x)

    def _basic(self, shape: tuple[int, ...]) -> str:
        parts = []
        for size in shape:
            start, stop = sorted(self.random.sample(range(size + 1), 2)) if size > 1 else (0, 1)
            step = self.random.choice(["", "", ":2", ":-1"])
            parts.append(f"{start}:{stop}{step}" if step != ":-1" else "::-1")
        return ", ".join(parts)

    def _operator(self) -> None:
        x = self._pick()
        y = self._like(x)
        sign = self.random.choice(self.operators)
        if y is None or self.random.random() < 0.4:
            number = self.random.randint(-2, 3)
            self._add(f"t[{x}] {sign} {number}", f"a[{x}] {sign} {number}")
        else:
            self._add(f"t[{x}] {sign} t[{y}]", f"a[{x}] {sign} a[{y}].copy()")

    def _assign(self) -> None:
        x = self._pick()
        y = self._like(x)
        if y is None or self.random.random() < 0.2:
            self._add(f"t[{x}].assign(7)", f"a[{x}][...] = 7")
        else:
            form = self.random.choice(["{}", "{} + 1", "{} * {}.sum()"])
            self._add(
                f"t[{x}].assign(({form.format(*[f't[{y}]'] * 2)}).cast('{self.dtype}'))",
                f"a[{x}][...] = ({form.format(*[f'a[{y}]'] * 2)}).copy()",
            )

    def _item(self) -> None:
        x = self._pick()
        array = self.arrays[x]
        if not array.ndim or not array.size:
            return
        size = array.shape[0]
        index = self.random.choice([
            self._basic(array.shape), self._basic(array.shape), str(self.random.randrange(size)),
            str([self.random.randrange(-size, size) for _ in range(2)]),
        ])  # fmt: skip
        value = self.random.choice(["5", "{x}.max()", "{x} > 0"])
        if value == "{x} > 0":
            self._add(f"t[{x}][t[{x}] > 0] = 9", f"a[{x}][a[{x}] > 0] = 9")
            return
        self._add(
            f"t[{x}][{index}] = {value.format(x=f't[{x}]')}",
            f"a[{x}][{index}] = {value.format(x=f'a[{x}]')}",
        )

    def _realize(self) -> None:
        some = {self._pick() for _ in range(self.random.randint(1, 3))}
        first, *more = some
        self._add(f"t[{first}].realize({', '.join(f't[{n}]' for n in more)})", "pass")

    def _read(self) -> None:
        x = self._pick()
        self._add(f"same(t[{x}], a[{x}])", "pass")

    def _delete(self) -> None:
        if sum(array is not None for array in self.arrays) > 2:
            x = self._pick()
            self._add(f"t[{x}] = None", f"a[{x}] = None")

    def _call(self) -> None:
        """Three calls of a TinyJit that reads and writes a tensor that is no argument."""
        x = self._pick()
        y = self._like(x)
        if y is None:
            return
        form = self.random.choice([
            ("state += x", "state += x.copy()"),
            ("state.assign(state * 2 + x)", "state[...] = state * 2 + x"),
            ("state[0] = x[0]", "state[0] = x[0]"), ("x += state", "x += state.copy()"),
            ("x = x * 2", "x = x * 2"),
            ("state.assign(x)", "state[...] = x"),
        ])  # fmt: skip
        value = self.random.choice(
            [
                ("state.sum()", "state.sum()"),
                (
                    "((state * 2).contiguous() - state.sum(0)).contiguous()",
                    "(state * 2 - state.sum(0))",
                ),
            ]
        )
        between = self.random.choice(["", f"t[{x}] += 1", f"t[{y}].assign(3)"])
        again = between.replace("t[", "a[").replace(".assign(3)", "[...] = 3")
        lines = [f"    results.append(call(t[{y}]).numpy())"]
        arrays = [f"    same(Tensor(results.pop(0)), fn(a[{y}]))"]
        lines += [f"    {between}"] if between else []
        arrays += [f"    {again}"] if between else []
        self._add(
            f"def fn(x, state=t[{x}]):\n    {form[0]}\n    return {value[0]} + x\n"
            f"call = TinyJit(fn)\nresults = []\nfor _ in range(4):\n" + "\n".join(lines),
            f"def fn(x, state=a[{x}]):\n    {form[1]}\n    return {value[1]} + x\n"
            f"for _ in range(4):\n" + "\n".join(arrays),
        )

    def _bind(self) -> None:
        """Four calls of a TinyJit that binds an item of a list anew, whose result is written to."""
        x = self._pick()
        y = self._like(x)
        if y is None:
            return
        form = self.random.choice(["h[0] + x", "h[1]", "x", "h[0] * 2 + h[1]"])
        other = self.random.choice(["h[0]", "h[0] - x", "h[1] + 1"])
        result = self.random.choice(["x", "h[0]", "h[1]", "x + 1", "x.reshape(-1)"])
        array = self.arrays[y]
        if not np.shares_memory(array, array.reshape(-1)):
            result = "x"  # numpy copies here, where a tensor is a view
        write = self.random.choice(["pass", "r += 1", f"{{}}[{x}] += 1", f"{{}}[{y}][...] = 2"])
        swap = self.random.random() < 0.3
        body = "h[0], h[1] = h[1], h[0]" if swap else f"h[0], h[1] = {form}, {other}"
        texts = []
        for name, jit in (("t", "TinyJit"), ("a", "")):
            lines = [
                f"h = [{name}[{x}], {name}[{y}] + 1]",
                f"def fn(x, h=h):\n    {body}\n    return {result}",
                f"call = {jit}(fn)",
                f"for _ in range(4):\n    r = call({name}[{y}])\n    {write.format(name)}",
                f"{name}.append(h[0])\n{name}.append(r)",
            ]
            texts.append("\n".join(lines))
        self._add(*texts)


def same(tensor: Tensor, array: Any) -> None:
    """Compare a tensor with an array; numpy sums int32 in int64, which may be larger."""
    values = tensor.numpy()
    want = np.asarray(array).astype(values.dtype)
    is_exact = values.dtype.kind != "f"
    np.testing.assert_allclose(values, want, rtol=0 if is_exact else 1e-5)


def other_than(device: str) -> str:
    """Return the device that tensors are moved to and from."""
    return "LLVM" if device == "PYTHON" else "PYTHON"


def run(
    seed: int, device: str, refusals: Counter[str] | None = None, kind: type[Program] = Program
) -> str:
    """Return "" where program `seed` agrees with numpy on a device, else a script that fails."""
    program = kind(seed, device)
    tensors: list[Any] = []
    arrays: list[Any] = []
    names = {**NAMES, "t": tensors, "a": arrays, "s": []}
    names |= {"DEVICE": device, "OTHER": other_than(device)}
    try:
        with Context(DEV=device):
            for tensor_line, array_line in program.lines:
                exec(tensor_line, names)
                exec(array_line, names)
            for tensor, array in zip(tensors, arrays, strict=True):
                if tensor is not None:
                    same(tensor, array)
    except WorkbenchError as error:
        if refusals is None:
            return script(program.lines, device, seed, repr(error))
        refusals[str(error).split("\n")[0]] += 1
    except Exception as error:
        return script(program.lines, device, seed, repr(error))
    return ""


NAMES = {
    "np": np, "Tensor": Tensor, "TinyJit": TinyJit, "same": same, "copy": copy,
    "deepcopy": deepcopy, "dumps": dumps, "loads": loads,
}  # fmt: skip
"""What the lines of a program use."""


def script(lines: list[tuple[str, str]], device: str, seed: int, why: str) -> str:
    """Return the program as text to paste."""
    body = "\n".join(f"{tensor}\n{array}" for tensor, array in lines)
    return f"""# seed {seed} on {device}: {why}
from tests.tensor.programs import *
DEVICE, OTHER = {device!r}, {other_than(device)!r}
Device.DEFAULT = DEVICE
t, a, s = [], [], []
{body}
for x, y in zip(t, a):
    if x is not None: same(x, y)
"""


def main(kind: type[Program] = Program) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="LLVM")
    parser.add_argument("--seeds", default="0:1000")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    wrong, refusals = 0, Counter[str]()
    for seed in range(first, last):
        text = run(seed, options.device, refusals if kind is Program else None, kind)
        if text:
            wrong += 1
            print(text, flush=True)
    print(f"{last - first} programs on {options.device}, {wrong} wrong")
    print(f"{refusals.total()} refusals")
    for reason, n_programs in refusals.most_common():
        print(f"{n_programs:6} {reason}")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
