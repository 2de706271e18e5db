"""Random reads and writes through indexes, beside what numpy makes of them.

    python -m tests.tensor.movement.index_programs --kind write --device LLVM --seeds 0:1000

compares as many as one likes, prints a script that fails for each wrong one, and how many were
refused, by reason. A program of writes has one to three of them, to a tensor or a view of it, and
then reads the whole. What numpy refuses must be refused, and write nothing.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from typing import Any

import numpy as np

from tests.tensor.agree import Array
from tests.tensor.movement.indexes import index, positions, shape_of
from workbench.base.context import Context
from workbench.base.errors import WorkbenchError
from workbench.tensor import Tensor

VIEWS = ["x", "x", "x", "x[::-1]", "x[1:]", "x[None]", "x.transpose(0, -1)", "x.reshape(-1)"]
"""What is written to, of a tensor `x`."""

_VALUES = re.compile(r"[(\[].*?[)\]](?=$| )|\[.*…|-?\d+")
"""Shapes, lists and numbers in the first line of a refusal, which a reason has none of."""


class Difference(Exception):
    """What a tensor has is not what numpy has."""


class Program:
    """A tensor of seeded shape on a device, the numbers that it should hold, and lines so far."""

    def __init__(self, seed: int, refusals: Counter[str]):
        self.rng = random.Random(seed)
        self.shape = shape_of(self.rng)
        self.refusals = refusals
        size = int(np.prod(self.shape))
        self.dtype = self.rng.choice(("float32", "float32", "int32"))
        self.numbers = np.arange(size).astype(self.dtype)
        self.names: dict[str, Any] = {"np": np, "Tensor": Tensor}
        self.lines: list[str] = []
        text = f"np.arange({size}, dtype=np.{self.dtype}).reshape({self.shape})"
        self.run(f"x = Tensor({text}){self.rng.choice(('.realize()', ''))}")

    def run(self, line: str) -> None:
        self.lines.append(line)
        exec(line, self.names)

    def entries(self, shape: tuple[int, ...]) -> str:
        """Return an index of a tensor of `shape`, as Python."""
        return f"({''.join(entry + ', ' for entry in index(self.rng, shape))})"

    def attempt(self, line: str, is_right: bool) -> bool:
        """Run a line, and return whether it was not refused: it must be unless it `is_right`."""
        try:
            self.run(line)
        except WorkbenchError as error:
            reason = _VALUES.sub("..", str(error).split("\n")[0])
            self.refusals[("" if is_right else "as numpy: ") + reason] += 1
            return False
        if not is_right:
            raise Difference("numpy refuses this")
        return True

    def check(self, name: str, want: Array) -> None:
        """Compare a tensor, by its name, with an array."""
        have = self.names[name].numpy()
        same = have.shape == want.shape and have.dtype == want.dtype
        if not same or not np.array_equal(have, want):
            raise Difference(f"{name} is {have!r}, and numpy has {want!r}")


def read(program: Program) -> None:
    """Read a tensor through one index."""
    entries = program.entries(program.shape)
    try:
        at = positions(program.shape, eval(entries, program.names))
    except IndexError:
        program.attempt(f"x[{entries}].numpy()", False)
        return
    if program.attempt(f"result = x[{entries}]", True):
        program.check("result", _at(program.numbers, at))


def write(program: Program) -> None:
    """Write to a view of a tensor, up to three times, and read all."""
    view = program.rng.choice(VIEWS if program.shape else ["x", "x[None]"])
    program.run(f"view = {view}")
    numbers = np.arange(program.numbers.size).reshape(program.shape)
    places = eval(view.replace("transpose", "swapaxes"), {"x": numbers})
    for _ in range(program.rng.randint(1, 3)):
        before = program.numbers.copy()
        if program.rng.random() < 0.3:
            program.run("old = x + 0")
        _write(program, places)
        if "old" in program.names:
            program.check("old", before.reshape(program.shape))
            del program.names["old"]
    program.check("x", program.numbers.reshape(program.shape))


def _write(program: Program, places: Array) -> None:
    """Write once to the elements that `places` has the positions of."""
    entries = program.entries(places.shape)
    try:
        at = _at(places, positions(places.shape, eval(entries, program.names)), -1)
    except IndexError:
        program.attempt(f"view[{entries}] = 1", False)
        return
    now = _at(program.numbers, at)
    value, array = _value(program, entries, now, _at(program.numbers, places))
    sign = program.rng.choice(["=", "=", "=", "+=", "-=", "*="])
    sign = "=" if value.startswith("[") else sign  # a list has no operators
    try:
        array = _aligned(array, at.shape)
    except ValueError:
        program.attempt(f"view[{entries}] {sign} {value}", False)
        return
    if not program.attempt(f"view[{entries}] {sign} {value}", True):
        return
    if sign != "=":
        array = {"+": now + array, "-": now - array, "*": now * array}[sign[0]]
    for place, number in zip(at.ravel(), array.ravel(), strict=True):
        if place >= 0:  # of equal places the last number counts
            program.numbers[place] = number


def _value(program: Program, entries: str, now: Array, whole: Array) -> tuple[str, Any]:
    """Return what is written, as Python, and as an array. `now` is what the index has, `whole` what
    the view has."""
    rng = program.rng
    kind = rng.choice("number array array tensor tensor list own own".split())
    if kind == "number":
        number = rng.choice((7, -3, True, 0))
        return str(number), np.asarray(number, program.dtype)
    if kind == "own":
        own = [(f"view[{entries}] * 2 + 1", now * 2 + 1)]
        if whole.size:
            own.append(("view.max()", whole.max()))
        if now.ndim:
            own.append((f"view[{entries}].flip(0)", now[::-1]))
        return rng.choice(own)
    shape = _near(rng, now.shape)
    dtype = program.dtype if kind != "tensor" else rng.choice(("int32", program.dtype))
    start = rng.randint(-9, 9)
    array = np.arange(start, start + int(np.prod(shape))).astype(dtype).reshape(shape)
    if kind == "list":
        text = str(array.tolist())
        return text, np.array(eval(text), dtype)
    text = f"np.arange({start}, {start + array.size}, dtype=np.{dtype}).reshape({shape})"
    return text if kind == "array" else f"Tensor({text})", array


def _near(rng: random.Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape that fits `shape`, but for one in ten."""
    near = [n if rng.random() < 0.8 else 1 for n in shape]
    near = near[rng.choice((0, 0, 0, 1)) :]
    if rng.random() < 0.1:
        near.insert(rng.randint(0, len(near)), rng.choice((1, 1, 2, 3)))
    return tuple(near)


def _aligned(array: Any, shape: tuple[int, ...]) -> Array:
    """Return an array broadcast as numpy does where it writes: axes of 1 in front are dropped.

    Errors: ValueError if it does not fit.
    """
    array = np.asarray(array)
    while array.ndim > len(shape) and array.shape[0] == 1:
        array = array[0]
    return np.broadcast_to(array, shape)


def _at(numbers: Array, places: Array, outside: int = 0) -> Array:
    """Return the elements at flat places; -1 is `outside`."""
    return np.append(numbers.ravel(), numbers.dtype.type(outside))[places]


KINDS = {"read": read, "write": write}


def run(kind: str, seed: int, device: str, refusals: Counter[str]) -> str:
    """Return "" where program `seed` agrees with numpy on a device, else a script that fails."""
    with Context(DEV=device):
        program = Program(seed, refusals)
        try:
            KINDS[kind](program)
        except (Difference, WorkbenchError) as error:
            return "\n".join(
                [
                    f"# {kind} {seed} on {device}: {error}",
                    "import numpy as np",
                    "from workbench import Device, Tensor",
                    f"Device.DEFAULT = {device!r}",
                    *program.lines,
                    "print(x.numpy())",
                ]
            )
    return ""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=list(KINDS), default="write")
    parser.add_argument("--device", default="LLVM")
    parser.add_argument("--seeds", default="0:1000")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    refusals = Counter[str]()
    wrong = 0
    for seed in range(first, last):
        text = run(options.kind, seed, options.device, refusals)
        if text:
            wrong += 1
            print(text, flush=True)
    print(f"{last - first} {options.kind}s on {options.device}, {wrong} wrong")
    print(f"{refusals.total()} refusals")
    for reason, n_times in refusals.most_common():
        print(f"{n_times:6} {reason}")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
