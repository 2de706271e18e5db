"""Casts and integer arithmetic where implementations differ, with the answers.

A Case is one operation on arrays of edge values. Its answer comes from numpy where numpy
defines one, and else from what the op table and base/dtypes.py say in words: floats saturate as
integers, integers wrap, nothing is divided by zero. `python -m tests.agreement.edge_cases` runs all
cases on all devices and prints them as a Markdown table.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.support import LONG
from workbench.backends.c import c_device as runtime_c
from workbench.backends.device import Device
from workbench.base.context import Context
from workbench.base.dtypes import DType, dtypes, saturate
from workbench.execution.buffers import memory_of
from workbench.execution.memory_plan import to_numpy, with_computed
from workbench.execution.realize import schedule
from workbench.ir.meaning.interpret import interpret_tensor
from workbench.ir.node.ops import Ops
from workbench.pipeline import build
from workbench.search.realization import tuned
from workbench.tensor import Tensor

Array = np.ndarray[Any, Any]

SIGNED = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)
UNSIGNED = (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)
INTEGERS = SIGNED + UNSIGNED
SMALL = (*dtypes.fp8s, dtypes.float16, dtypes.bfloat16)
FLOATS = (*SMALL, dtypes.float32, dtypes.float64)
ALL = (dtypes.bool, *INTEGERS, *FLOATS)
REFERENCE = "reference"


@dataclass(frozen=True)
class Case:
    """`operation` of tensors of `inputs`, which should be `want`, element by element."""

    name: str
    operation: Callable[..., Tensor]
    inputs: tuple[Array, ...]
    want: Array

    def on(self, device: str) -> Tensor:
        """Return the operation on `device`, not computed."""
        return self.operation(*(Tensor(a, device=device) for a in self.inputs))


def numbers(dtype: DType) -> Array:
    """Return the edge values that `dtype` has, each once."""
    if dtype.is_bool:
        return np.array([False, True])
    limits = [int(limit) for d in INTEGERS for limit in (d.min, d.max)]
    near = {n + step for n in (0, *limits) for step in (-1, 0, 1)}
    near |= {448, 449, 465, 480, 57344, 61439, 61440, 17, 19}
    near |= {2**24 + 1, 2**53 + 1, 2**60 + 2**36 + 1, 65504, 65519, 65520, 2049, 257}
    if dtype.is_int:
        whole_numbers = sorted(n for n in near if dtype.min <= n <= dtype.max)
        return np.array(whole_numbers, dtype.numpy)
    fractions = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, 0.1, 255.5, -128.5, 65519.99]
    tiny = [
        2.0**-n for n in (6, 7, 9, 10, 16, 17, 14, 15, 24, 25, 126, 133, 134, 149, 150, 1022, 1074)
    ]
    ties = [1.5 * 2.0**-25, 1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-30, 1 + 2.0**-8]
    ties += [1 + 2.0**-4, 1 + 3 * 2.0**-4, 1 + 2.0**-3, 1 + 3 * 2.0**-3, 1 + 2.0**-4 + 2.0**-30]
    ties += [1.5 * 2.0**-9, 1.5 * 2.0**-16, 2.5 * 2.0**-9, 448.5, 464.0, 464.5, 61439.5]
    ties += [1 + 2.0**-8 + 2.0**-40, 1 + 3 * 2.0**-8, 3.3e38, 3.39e38, 3.5e38, 1e300]
    special = [math.inf, -math.inf, math.nan]
    floats = [*map(float, sorted(near)), *fractions, *tiny, *ties, *special]
    floats += [-value for value in tiny + ties]
    whole_numbers = {np.float64(dtype.const(v)).tobytes(): dtype.const(v) for v in floats}
    return np.array(list(whole_numbers.values()), dtype.numpy)


def casts() -> Iterator[Case]:
    """Yield a Case for each pair of dtypes."""
    for source, result in itertools.permutations(ALL, 2):
        values = numbers(source)
        yield Case(
            f"{source} as {result}",
            lambda t, result=result: t.cast(result),
            (values,),
            converted(values, source, result),
        )


def converted(values: Array, source: DType, result: DType) -> Array:
    """Return what a cast means."""
    if source.is_float and result.is_int:
        return np.array([saturate(float(v), result) for v in values], result.numpy)
    with np.errstate(all="ignore"):
        if result is dtypes.fp8e4m3:  # ml_dtypes gives NaN for what is too large
            values = np.clip(values.astype(np.float32), -448, 448)
        return values.astype(result.numpy)


def bitcasts() -> Iterator[Case]:
    """Yield a Case for each pair of dtypes of one width. (A NaN keeps no bits in a cast, but
    does in a bitcast.)"""
    for source, result in itertools.permutations(ALL[1:], 2):
        if source.bits == result.bits:
            values = numbers(source)
            yield Case(
                f"bits of {source} as {result}",
                lambda t, result=result: t.bitcast(result),
                (values,),
                values.view(result.numpy),
            )


def wrap(value: int, dtype: DType) -> int:
    """Return the low bits of `value` as a `dtype`."""
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if value > dtype.max else value


def _shifted(a: int, b: int, dtype: DType, left: bool) -> int:
    if not 0 <= b < dtype.bits:
        return 0
    return a << b if left else a >> b


Meaning = Callable[[int, int, DType], int]
# fmt: off
BINARY: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Meaning]] = {
    "+":  (lambda a, b: a + b,  lambda a, b, d: a + b),
    "-":  (lambda a, b: a - b,  lambda a, b, d: a - b),
    "*":  (lambda a, b: a * b,  lambda a, b, d: a * b),
    "//": (lambda a, b: a // b, lambda a, b, d: a // b if b else 0),
    "%":  (lambda a, b: a % b,  lambda a, b, d: a % b if b else 0),
    "<<": (lambda a, b: a << b, lambda a, b, d: _shifted(a, b, d, True)),
    ">>": (lambda a, b: a >> b, lambda a, b, d: _shifted(a, b, d, False)),
    "maximum": (lambda a, b: a.maximum(b), lambda a, b, d: max(a, b)),
    "minimum": (lambda a, b: a.minimum(b), lambda a, b, d: min(a, b)),
}
UNARY: dict[str, tuple[Callable[[Tensor], Tensor], Meaning]] = {
    "-":   (lambda a: -a,      lambda a, b, d: -a),
    "~":   (lambda a: ~a,      lambda a, b, d: ~a),
    "abs": (lambda a: a.abs(), lambda a, b, d: abs(a)),
}
# fmt: on


def corners(dtype: DType) -> list[int]:
    """Return the integers of `dtype` at which arithmetic is likely to be wrong."""
    low, high, width = int(dtype.min), int(dtype.max), dtype.bits
    near = {low, low + 1, high - 1, high, high // 2, 0, 1, 2, 3, 7, width - 1, width}
    near |= {-1, -2, -3, -7, -width, width + 1, 1 << width // 2}
    return sorted(n for n in near if low <= n <= high)


def integers() -> Iterator[Case]:
    """Yield a Case for each operation on each integer dtype."""
    for dtype in INTEGERS:
        pairs = list(itertools.product(corners(dtype), repeat=2))
        left, right = np.array(pairs, dtype.numpy).T.copy()
        for name, (pair, meaning) in BINARY.items():
            want = [wrap(meaning(a, b, dtype), dtype) for a, b in pairs]
            answer = np.array(want, dtype.numpy)
            yield Case(f"{dtype} {name}", pair, (left, right), answer)
        single = np.array(corners(dtype), dtype.numpy)
        for name, (one, meaning) in UNARY.items():
            want = [wrap(meaning(a, 0, dtype), dtype) for a in corners(dtype)]
            answer = np.array(want, dtype.numpy)
            yield Case(f"{name} of {dtype}", one, (single,), answer)


QUICK = REFERENCE, "LLVM", "PYTHON"
"""Devices that compute all cases in a short run as well: the compilers of others take long."""


def drawn(cases: list[Case], seed: str, device: str, most: int) -> list[Case]:
    """Return the cases that a device computes: all, or the first and some others."""
    if LONG or device in QUICK or len(cases) <= most:
        return cases
    first, *others = cases
    return [first, *random.Random(seed).sample(others, most - 1)]


def computed(cases: Sequence[Case], device: str) -> list[Array]:
    """Return what `device` (or the reference interpreter) makes of the cases.

    The C compiler is called for many kernels at once.
    """
    if device == REFERENCE:
        return [interpreted(case.on("PYTHON")) for case in cases]
    with Context(DEV=device):
        tensors = [case.on(device) for case in cases]
        if device == "C":
            compile_together(tensors)
        tensors[0].realize(*tensors[1:])
        return [to_numpy(with_computed(t.uop)) for t in tensors]


def compile_together(tensors: Iterable[Tensor]) -> list[runtime_c.CProgram]:
    """Compile the kernels of `tensors` for C, many in one call of the compiler; return the
    programs, which must live until the tensors are computed."""
    items = schedule([t.uop for t in tensors])
    kernels = [tuned(item.kernel, "C") for item in items if item.kernel is not None]
    return runtime_c.compile_many([build(kernel, "C").source for kernel in kernels])


def interpreted(tensor: Tensor) -> Array:
    """Return what the reference interpreter makes of a tensor that is not computed."""
    buffers = [n for n in tensor.uop.toposort() if n.op is Ops.BUFFER]
    memory = {n: memory_of(n).array.reshape(n.shape) for n in buffers}
    return interpret_tensor(tensor.uop, memory)


def padded(case: Case, lanes: int = 16) -> Case:
    """Return the case with its values repeated to whole vectors."""

    def whole(a: Array) -> Array:
        return np.resize(a, -(-a.size // lanes) * lanes)

    inputs = tuple(whole(a) for a in case.inputs)
    return Case(case.name, case.operation, inputs, whole(case.want))


def same(actual: Array, want: Array) -> Array:
    """Return where two arrays agree: bit by bit, except that NaN is NaN."""
    if actual.dtype != want.dtype:
        return np.zeros(want.shape, bool)
    size = want.dtype.itemsize
    equal = actual.view(f"u{size}") == want.view(f"u{size}")
    if not dtypes.from_numpy(want.dtype).is_float:
        return np.asarray(equal)
    with np.errstate(all="ignore"):
        return np.asarray(equal | (np.isnan(actual) & np.isnan(want)))


def table(cases: Sequence[Case], devices: Sequence[str]) -> Iterator[str]:
    """Yield a Markdown row for each case: how many values, and where each device is wrong."""
    yield f"| case | values | {' | '.join(devices)} |"
    yield f"|---|---|{'---|' * len(devices)}"
    columns = [computed(cases, device) for device in devices]
    for case, *results in zip(cases, *columns, strict=True):
        cells = [_cell(case, actual) for actual in results]
        yield f"| {case.name} | {case.want.size} | {' | '.join(cells)} |"


def _cell(case: Case, actual: Array) -> str:
    wrong = np.flatnonzero(~same(actual, case.want))
    if not wrong.size:
        return "same"
    first = wrong[0]
    operands = ", ".join(str(a[first]) for a in case.inputs)
    return f"{wrong.size} differ: {operands} gives {actual[first]}, not {case.want[first]}"


def main() -> None:
    """Print all cases on all devices that are there."""
    devices = [REFERENCE, *(d for d in Device.names() if Device.available(d))]
    for make in (casts, bitcasts, integers):
        print(f"\n## {make.__name__}\n", *table(list(make()), devices), sep="\n")


if __name__ == "__main__":
    main()
