"""Powers, remainders and rounding of zeros of either sign, infinities, NaN, halves and huge
numbers: what numpy says, on all devices, as tensors and as Python numbers on either side."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest

from tests.agreement.edge_cases import INTEGERS, REFERENCE, Array, Case, computed, drawn
from workbench.backends.device import Device
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import LanguageError

DEVICES = [REFERENCE, *(d for d in Device.names() if Device.available(d))]
FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64)
INF, NAN = float("inf"), float("nan")
BASES = [0.0, 1.0, INF, 2.0, 0.5, 2.5, 3.0, 0.1, 1.0000001, 100.0]
POWERS = [0.0, 1.0, 2.0, 3.0, 0.5, 0.3, 1.5, 2.5, 15.5, 16.0, 17.0, 17.5, 18.0, 33.0, 101.0]
POWERS += [1 / 3, 1e10, 1e10 + 1, 2.0**24 + 1, 2.0**53 - 1, 1e30, INF]


def of_either_sign(values: list[float], dtype: DType) -> Array:
    with np.errstate(all="ignore"):
        return np.array([*values, *(-v for v in values), NAN], dtype.numpy)


def close(actual: Array, want: Array, ulps: int) -> Array:
    """Return where floats agree: NaN and infinity as they are, zeros with their sign, numbers
    to within `ulps` units in the last place; integers where they are equal."""
    assert actual.dtype == want.dtype
    if actual.dtype.kind != "f":
        return np.asarray(actual == want)
    info = np.finfo(want.dtype)
    with np.errstate(all="ignore"):
        far = np.abs(actual.astype(np.float64) - want.astype(np.float64))
        near = far <= ulps * (np.abs(want.astype(np.float64)) * info.eps + info.tiny)
        near = (actual == want) | np.isfinite(actual) & np.isfinite(want) & near
        signs = np.signbit(actual) == np.signbit(want)
    return np.asarray(near & signs | np.isnan(actual) & np.isnan(want))


def pairs(left: Array, right: Array) -> tuple[Array, Array]:
    a, b = np.meshgrid(left, right, indexing="ij")
    return a.reshape(-1).copy(), b.reshape(-1).copy()


def powers(dtype: DType) -> Iterator[Case]:
    base, exponent = of_either_sign(BASES, dtype), of_either_sign(POWERS, dtype)
    with np.errstate(all="ignore"):
        a, b = pairs(base, exponent)
        yield Case("t ** t", lambda t, u: t**u, (a, b), a**b)
        for n in exponent.tolist():
            want = np.power(base, np.full_like(base, n))
            if n == 0.5:  # the square root, as numpy and PyTorch have it
                want = np.sqrt(base)
            yield Case(f"t ** {n}", lambda t, n=n: t**n, (base,), want)
        for n in base.tolist():
            want = np.power(np.full_like(exponent, n), exponent)
            yield Case(f"{n} ** t", lambda t, n=n: n**t, (exponent,), want)


def whole_powers(dtype: DType) -> Iterator[Case]:
    low, high = int(dtype.min), int(dtype.max)
    bases = [0, 1, 2, 3, 7, 10, -1, -2, -3, low, low + 1, high - 1, high]
    base = np.array([n for n in bases if low <= n <= high], dtype.numpy)
    exponents = (0, 1, 2, 3, 5, 13, 31, 32, 39, 40, 63, 64, 65, 127, high)
    exponent = np.array(exponents, dtype.numpy)
    a, b = pairs(base, exponent)
    yield Case("t ** t", lambda t, u: t**u, (a, b), a**b)
    for n in (2, 3, 5):
        want = np.array(n, dtype.numpy) ** exponent
        yield Case(f"{n} ** t", lambda t, n=n: n**t, (exponent,), want)
    if dtype.kind == "int":  # the fraction cut off; 1 / 0 is 0
        a, b = pairs(base, np.array([-1, -2, -3, low], dtype.numpy))
        want = np.where(abs(a) == 1, a ** (b & 1), 0).astype(dtype.numpy)
        yield Case("t ** negative", lambda t, u: t**u, (a, b), want)


SIZES = [
    0.0,
    1.0,
    2.5,
    0.5,
    7.0,
    0.1,
    1e-3,
    1e10,
    3e38,
    1e300,
    1e-30,
    6e4,
    1e-45,
    5e-324,
    3.0,
    2.0**53,
    sys.float_info.max,
    INF,
]


def remainders(dtype: DType) -> Iterator[Case]:
    """Of numbers of all sizes: what is left is exact, and rounded once."""
    values, a, b = of_all_sizes(dtype)
    yield Case("t % t", lambda t, u: t % u, (a, b), remainder(a, b))
    for n in DIVISORS:
        by = np.full_like(values, n)
        want = remainder(values, by), remainder(by, values)
        yield Case(f"t % {n}", lambda t, n=n: t % n, (values,), want[0])
        yield Case(f"{n} % t", lambda t, n=n: n % t, (values,), want[1])


def quotients(dtype: DType) -> Iterator[Case]:
    """Of numbers of all sizes: a quotient is exact, and rounded once."""
    values, a, b = of_all_sizes(dtype)
    yield Case("t // t", lambda t, u: t // u, (a, b), quotient(a, b))
    for n in DIVISORS:
        want = quotient(values, np.full_like(values, n))
        yield Case(f"t // {n}", lambda t, n=n: t // n, (values,), want)


def whole_quotients(dtype: DType) -> Iterator[Case]:
    """Beside a whole multiple that a float still has all bits of, where quotients are rounded
    to it from either side."""
    rng = np.random.default_rng(0)
    b = rng.standard_normal(2000).astype(dtype.numpy)
    most = min(dtype.fraction_bits + 1, 15)  # of float16 there are no more
    for bits in (0, most - 3, dtype.fraction_bits - 2, dtype.fraction_bits):
        times = np.floor(np.exp2(bits + rng.random(b.size)))
        with np.errstate(all="ignore"):
            a = np.nextafter((times * b).astype(dtype.numpy), dtype.numpy.type(0))
        yield Case(f"2**{bits}, //", lambda t, u: t // u, (a, b), quotient(a, b))
        yield Case(f"2**{bits}, %", lambda t, u: t % u, (a, b), remainder(a, b))


def large_quotients(dtype: DType) -> Iterator[Case]:
    """Of a few bits more than a float has: some are the middle between two floats, and more."""
    rng = np.random.default_rng(0)
    b = rng.standard_normal(2000).astype(dtype.numpy)
    for more in range(1, 5):
        times = np.exp2(dtype.fraction_bits + more + rng.random(b.size))
        a = (times * b * rng.choice([-1.0, 1.0], b.size)).astype(dtype.numpy)
        yield Case(f"{more} more, //", lambda t, u: t // u, (a, b), quotient(a, b))
        yield Case(f"{more} more, %", lambda t, u: t % u, (a, b), remainder(a, b))


DIVISORS = (2.5, -0.1, 7.0, 1e-3)


def of_all_sizes(dtype: DType) -> tuple[Array, Array, Array]:
    """Return values, and pairs of these and others."""
    values = of_either_sign(SIZES, dtype)
    word = np.dtype(f"u{dtype.itemsize}")
    rng = np.random.default_rng(0)
    bits = rng.integers(0, np.iinfo(word).max, (2, 500), word).view(dtype.numpy)
    # of the largest numbers, whose nearest multiple may exceed what a float holds
    largest = float(np.finfo(dtype.numpy).max) * (1 - 2e-8 * rng.random(500))
    top = largest.astype(dtype.numpy), bits[1]
    every = pairs(values, values)
    a, b = (np.concatenate(half) for half in zip(every, bits, top, strict=True))
    return values, a, b


@np.errstate(all="ignore")
def remainder(a: Array, b: Array) -> Array:
    """Return a % b in whole numbers: numpy's is rounded twice. At zeros and infinities numpy's."""
    result = np.mod(a, b)
    for i, x, y in finite(a, b):
        result[i] = math.copysign(float(Fraction(x) % Fraction(y)), y)
    return result


@np.errstate(all="ignore")
def quotient(a: Array, b: Array) -> Array:
    """Return floor(a / b) in whole numbers; numpy's may be one off. Zeros are numpy's."""
    result = np.floor_divide(a, b)
    for i, x, y in finite(a, b):
        whole = Fraction(x) // Fraction(y)
        fits = abs(whole) < (1 << 1024) - (1 << 970)
        if whole:
            result[i] = float(whole) if fits else (INF if whole > 0 else -INF)
    return result


def finite(a: Array, b: Array) -> Iterator[tuple[int, float, float]]:
    for i, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        if math.isfinite(x) and math.isfinite(y) and y:
            yield i, x, y


HALVES = [0.0, 0.3, 0.5, 0.49999997, 0.50000006, 1.5, 2.5, 1023.5, 1024.5, 511.5, 1e-8]
LARGE = [2.0**22 + 0.5, 2.0**23 - 0.5, 2.0**23 + 1, 2.0**52 - 0.5, 2.0**53, 1e30, INF]


def roundings(dtype: DType) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    halves = (rng.integers(-99, 99, 64) / 2).astype(dtype.numpy)
    x = np.concatenate([of_either_sign(HALVES + LARGE, dtype), halves])
    yield Case("round", lambda t: t.round(), (x,), np.round(x))
    yield Case("floor", lambda t: t.floor(), (x,), np.floor(x))
    yield Case("ceil", lambda t: t.ceil(), (x,), np.ceil(x))
    yield Case("trunc", lambda t: t.trunc(), (x,), np.trunc(x))


MOST = 5
"""Cases of one table that a device computes whose compiler takes long: of tensors, and some others.
What is special in a number beside a tensor is found on the way to a kernel, which is one for all
devices."""


GRIDS: list[tuple[Callable[[DType], Iterator[Case]], DType, int]] = [
    # the units in the last place that each may be off
    *((powers, d, u) for d, u in zip(FLOATS, (1, 256, 2048), strict=True)),
    *((whole_powers, d, 0) for d in INTEGERS),
    *((remainders, d, 0) for d in FLOATS),
    *((quotients, d, 0) for d in FLOATS),
    *((whole_quotients, d, 0) for d in FLOATS),
    *((large_quotients, d, 0) for d in FLOATS[1:]),
    *((roundings, d, 0) for d in FLOATS),
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("make", "dtype", "ulps"), GRIDS, ids=[f"{g[0].__name__}-{g[1]}" for g in GRIDS]
)
def test_special_values(
    make: Callable[[DType], Iterator[Case]], dtype: DType, ulps: int, device: str
) -> None:
    cases = drawn(list(make(dtype)), f"{make.__name__} {dtype} {device}", device, MOST)
    wrong = []
    try:
        results = list(computed(cases, device))
    except LanguageError as error:
        pytest.skip(error.because)
    for case, actual in zip(cases, results, strict=True):
        for i in itertools.islice(np.flatnonzero(~close(actual, case.want, ulps)), 3):
            operands = ", ".join(str(a[i]) for a in case.inputs)
            wrong.append(f"{case.name} of {operands} is {actual[i]}, not {case.want[i]}")
    assert not wrong, "\n".join(wrong)
