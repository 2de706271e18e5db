"""How exact the functions of a tensor are: units in the last place (ULP), as tables.

    python bench/ulp.py                          all functions and devices, in a minute or two
    python bench/ulp.py --functions sin,exp2     some of them
    python bench/ulp.py --full                   sweeps of all 2**32 numbers of float32 (an hour)

A result is measured against numpy in float64 (float32), or against mpmath where that is
installed and numpy's long double where it is not (float64). A cell is greatest / mean ULP; `at`
is the argument of the greatest. A result is "wrong" if it is NaN, infinite or finite where the
exact one is another of these.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from workbench import Context, Device, Tensor

Array = Any
Sampler = Callable[[np.dtype[Any], int], Array]


class Function(NamedTuple):
    """`ours` on a tensor, `numpys` on an array; mpmath knows it as `mpmaths`."""

    ours: Callable[[Tensor], Tensor]
    numpys: Callable[[Array], Array]
    mpmaths: str


POWER = 0.3
# fmt: off
FUNCTIONS = {
    "exp2": Function(Tensor.exp2, np.exp2, "lambda x: mp.mpf(2) ** x"),
    "log2": Function(Tensor.log2, np.log2, "lambda x: mp.log(x, 2)"),
    "sin": Function(Tensor.sin, np.sin, "mp.sin"),
    "cos": Function(Tensor.cos, np.cos, "mp.cos"),
    "tan": Function(Tensor.tan, np.tan, "mp.tan"),
    "exp": Function(Tensor.exp, np.exp, "mp.exp"),
    "log": Function(Tensor.log, np.log, "mp.log"),
    "sigmoid": Function(Tensor.sigmoid, lambda x: 1 / (1 + np.exp(-x)),
                        "lambda x: 1 / (1 + mp.exp(-x))"),
    "tanh": Function(Tensor.tanh, np.tanh, "mp.tanh"),
    "erf": Function(Tensor.erf, np.vectorize(math.erf, otypes=[float]), "mp.erf"),
    "sqrt": Function(Tensor.sqrt, np.sqrt, "mp.sqrt"),
    "rsqrt": Function(Tensor.rsqrt, lambda x: 1 / np.sqrt(x), "lambda x: 1 / mp.sqrt(x)"),
    "reciprocal": Function(Tensor.reciprocal, lambda x: 1 / x, "lambda x: 1 / x"),
    "x ** 0.3": Function(lambda t: t ** POWER, lambda x: x ** exponent(x),
                         "lambda x: x ** mp.mpf(0.3)"),
    "asin": Function(Tensor.asin, np.arcsin, "mp.asin"),
    "acos": Function(Tensor.acos, np.arccos, "mp.acos"),
    "atan": Function(Tensor.atan, np.arctan, "mp.atan"),
    "sinh": Function(Tensor.sinh, np.sinh, "mp.sinh"),
    "cosh": Function(Tensor.cosh, np.cosh, "mp.cosh"),
    "asinh": Function(Tensor.asinh, np.arcsinh, "mp.asinh"),
    "acosh": Function(Tensor.acosh, np.arccosh, "mp.acosh"),
    "atanh": Function(Tensor.atanh, np.arctanh, "mp.atanh"),
}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0]
# fmt: on
SWEPT = ("exp2", "log2", "sin", "cos")
CHUNK = 1 << 22


def main() -> None:
    parser = argparse.ArgumentParser(description="Tables of units in the last place.")
    parser.add_argument("--functions", default=",".join(FUNCTIONS))
    parser.add_argument("--devices", default="LLVM,C,PYTHON")
    parser.add_argument("--full", action="store_true", help="sweep all of float32")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    names = [name for name in FUNCTIONS if name in options.functions.split(",")]
    devices = [d for d in options.devices.split(",") if Device.available(d)]

    for dtype in (np.dtype("float32"), np.dtype("float64")):
        count = 1 << 16 if dtype.itemsize == 4 else 1 << 11 if has_mpmath() else 1 << 14
        oracle = "numpy float64" if dtype.itemsize == 4 else wide_oracle()
        print(f"\n## {dtype}, against {oracle}, {count} arguments a range: max / mean ULP\n")
        head("function", "range", *devices, "at", "wrong")
        for name in names:
            for label, sampler in RANGES.items():
                x = sampler(dtype, options.seed)(count)
                ranged(name, label, x, devices)
        print(f"\n## {dtype}, special values\n")
        head("function", "device", *[str(v) for v in SPECIAL])
        for name in names:
            for device in devices:
                special(name, device, dtype)

    step = 1 if options.full else 1 << 8
    print(f"\n## float32, every {step}th of all 2**32 numbers, against numpy float64\n")
    head("function", "device", "arguments", "max", "mean", "at", "wrong", "took")
    for name in [n for n in names if n in SWEPT]:
        for device in [d for d in devices if d != "PYTHON"]:
            sweep(name, device, step)


def log_spread(low: float, high: float) -> Callable[[np.dtype[Any], int], Any]:
    """Return a sampler of both signs, of every magnitude from `low` to `high` alike."""

    def of(dtype: np.dtype[Any], seed: int) -> Callable[[int], Array]:
        rng = np.random.default_rng(seed)
        info = np.finfo(dtype)
        least, most = (max(low, float(info.smallest_subnormal)), min(high, float(info.max)))
        span = np.log2(least), np.log2(most)

        def make(count: int) -> Array:
            sizes = np.exp2(rng.uniform(*span, count).astype(np.longdouble))
            return (sizes * rng.choice([-1, 1], count)).astype(dtype)

        return make

    return of


def subnormal(dtype: np.dtype[Any], seed: int) -> Callable[[int], Array]:
    tiny = float(np.finfo(dtype).tiny)
    rng = np.random.default_rng(seed)
    return lambda count: (rng.uniform(-1, 1, count) * tiny).astype(dtype)


def even(low: float, high: float) -> Callable[[np.dtype[Any], int], Any]:
    def of(dtype: np.dtype[Any], seed: int) -> Callable[[int], Array]:
        rng = np.random.default_rng(seed)
        return lambda count: rng.uniform(low, high, count).astype(dtype)

    return of


def whole(dtype: np.dtype[Any], seed: int) -> Callable[[int], Array]:
    """Return a sampler of all bit patterns, NaN and infinity among them."""
    uint, rng = np.dtype(f"u{dtype.itemsize}"), np.random.default_rng(seed)
    last = np.iinfo(uint).max
    return lambda count: rng.integers(0, last, count, uint, endpoint=True).view(dtype)


RANGES: dict[str, Callable[[np.dtype[Any], int], Any]] = {
    "subnormal": subnormal,
    "tiny, to 2**-20": log_spread(2.0**-126, 2.0**-20),
    "-1 to 1": even(-1, 1),
    "moderate, to 100": even(-100, 100),
    "large, to 2**30": log_spread(100, 2.0**30),
    "huge": log_spread(2.0**30, np.inf),
    "whole range": whole,
}


def head(*columns: str) -> None:
    row(*columns)
    row(*["---"] * len(columns))


def row(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


def ranged(name: str, label: str, x: Array, devices: list[str]) -> None:
    """Print one function on one range; nothing where it has no value there."""
    want = exact(name, x)
    with np.errstate(over="ignore"):
        if not np.isfinite(want.astype(x.dtype)).any():
            return
    cells, at, greatest, bad = [], "", -1.0, []
    for device in devices:
        off, wrong = compare(run(name, device, x), want)
        cells.append(f"{off.max():.2f} / {off.mean():.2f}")
        bad.append(str(wrong))
        if off.max() > greatest:
            greatest, at = off.max(), f"{x[off.argmax()]:.9g}"
    row(name, label, *cells, at, " ".join(bad))


def special(name: str, device: str, dtype: np.dtype[Any]) -> None:
    actual = run(name, device, np.array(SPECIAL, dtype))
    row(name, device, *[f"{v:.6g}" for v in actual])


def sweep(name: str, device: str, step: int) -> None:
    start = time.perf_counter()
    greatest, at, total, count, bad = -1.0, 0.0, 0.0, 0, 0
    for x in all_floats(step):
        with np.errstate(all="ignore"):
            want = FUNCTIONS[name].numpys(x.astype(np.float64))
        off, wrong = compare(run(name, device, x), want)
        if off.max() > greatest:
            greatest, at = off.max(), float(x[off.argmax()])
        total, count, bad = total + off.sum(), count + x.size, bad + wrong
    took = f"{time.perf_counter() - start:.0f} s"
    row(
        name, device, str(count), f"{greatest:.3f}", f"{total / count:.3f}",
        f"{at:.9g}", str(bad), took,
    )  # fmt: skip


def all_floats(step: int) -> Iterator[Array]:
    """Yield every `step`-th bit pattern of float32, in pieces."""
    for first in range(0, 1 << 32, CHUNK * step):
        last = min(first + CHUNK * step, 1 << 32)
        # The low bits of the pattern vary as well.
        bits = np.arange(first, last, step, dtype=np.uint32)
        if step > 1:
            bits += (bits // np.uint32(step) * np.uint32(37)) % np.uint32(step)
        yield bits.view(np.float32)


def run(name: str, device: str, x: Array) -> Array:
    with Context(DEV=device), np.errstate(all="ignore"):
        return FUNCTIONS[name].ours(Tensor(x)).numpy()


def compare(actual: Array, want: Array) -> tuple[Array, int]:
    """Return the distance of each result in ULP of the exact one, and how many are wrong."""
    info = np.finfo(actual.dtype)
    with np.errstate(all="ignore"):
        rounded = want.astype(actual.dtype)
        finite = np.isfinite(rounded)
        unit = np.spacing(np.maximum(np.abs(rounded), info.tiny)).astype(want.dtype)
        off = np.abs(actual.astype(want.dtype) - want) / unit
    both = finite & np.isfinite(actual)
    # The last finite number where the exact result rounds to infinity is one ULP away.
    top = ~finite & (np.abs(actual) == info.max) & ~np.isnan(rounded)
    same = both | top | (actual == rounded) | (np.isnan(actual) & np.isnan(rounded))
    return np.where(both, off, 0.0), int((~same).sum())


def exact(name: str, x: Array) -> Array:
    """Return the results in something wider than x."""
    function = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        if x.dtype.itemsize == 4:
            return function.numpys(x.astype(np.float64))
        wide = function.numpys(x.astype(np.longdouble))
    if not has_mpmath():
        return wide
    # Infinity and NaN are as numpy has them.
    formula, mp = mpmath_function(function.mpmaths)
    for i in np.flatnonzero(np.isfinite(wide) & np.isfinite(x)):
        if wide[i] != 0:
            wide[i] = np.longdouble(mp.nstr(formula(mp.mpf(float(x[i]))), 25))
    return wide


def exponent(x: Array) -> Any:
    """Return POWER, rounded as a tensor has it, in x's type: the wider one of the reference."""
    return x.dtype.type(np.float32(POWER) if x.dtype == np.float64 else POWER)


@cache
def has_mpmath() -> bool:
    return find_spec("mpmath") is not None


def wide_oracle() -> str:
    return "mpmath" if has_mpmath() else "numpy long double"


@cache
def mpmath_function(text: str) -> tuple[Callable[[Any], Any], Any]:
    import mpmath as mp

    mp.mp.dps = 40
    return eval(text, {"mp": mp}), mp


if __name__ == "__main__":
    main()
