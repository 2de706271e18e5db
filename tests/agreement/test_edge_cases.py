"""Casts, bit casts and integer arithmetic at the edges: one answer on all devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.agreement.edge_cases import (
    ALL,
    FLOATS,
    REFERENCE,
    SMALL,
    Array,
    Case,
    bitcasts,
    casts,
    computed,
    converted,
    drawn,
    integers,
    numbers,
    padded,
    same,
)
from tests.support import count
from workbench.backends.device import Device
from workbench.base.dtypes import DType, dtypes

RUNNABLE = [d for d in Device.names() if Device.available(d)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("cases", [casts, bitcasts, integers], ids=lambda f: f.__name__)
@pytest.mark.parametrize("device", [REFERENCE, *RUNNABLE])
def test_edge_cases(cases: Callable[[], Iterator[Case]], device: str) -> None:
    case_list = list(cases())
    case_list = drawn(case_list, device, device, len(case_list) // 4)
    if device in ("LLVM", "C"):  # as scalars, and as whole vectors
        case_list = [*map(uneven, case_list), *map(padded, case_list)]
    for case, actual in zip(case_list, computed(case_list, device), strict=True):
        right = same(actual, case.want)
        wrong = [a[~right][:4] for a in (*case.inputs, actual, case.want)]
        assert right.all(), f"{case.name} on {device}: of {wrong[:-2]} {wrong[-2:]}"


def uneven(case: Case) -> Case:
    """Return the case with an odd number of values, which no vector divides."""
    if case.want.size % 2:
        return case
    inputs = tuple(np.append(a, a[:1]) for a in case.inputs)
    return Case(case.name, case.operation, inputs, np.append(case.want, case.want[:1]))


def test_constants_are_cast_as_arrays_are() -> None:
    for source in ALL:
        values = numbers(source)
        for result in ALL:
            want = converted(values, source, result)
            actual = np.array([result.const(v) for v in values.tolist()], result.numpy)
            assert same(actual, want).all(), f"{source} as {result}"


@pytest.mark.parametrize("device", RUNNABLE)
def test_every_low_precision_is_a_float32_and_back(device: str) -> None:
    cases = []
    for dtype in SMALL:
        values = every(dtype)
        with np.errstate(all="ignore"):
            wide = values.astype(np.float32)
        cases.append(Case(f"{dtype} widened", lambda t: t.float(), (values,), wide))
        back = Case(f"{dtype} rounded", lambda t, d=dtype: t.cast(d), (wide,), values)
        cases.append(back)
    for case, actual in zip(cases, computed(cases, device), strict=True):
        assert same(actual, case.want).all(), case.name


def every(dtype: DType) -> Array:
    """Return a value for each code of a low-precision type."""
    return np.arange(1 << dtype.bits).astype(f"u{dtype.itemsize}").view(dtype.numpy)


@pytest.mark.parametrize("device", RUNNABLE)
def test_rounding_to_low_precision_types(device: str) -> None:
    cases = []
    for result in SMALL:
        for source in (dtypes.float32, dtypes.float64):
            values = close_calls(source, result)
            want = converted(values, source, result)
            name = f"{source} as {result}"
            cases.append(Case(name, lambda t, d=result: t.cast(d), (values,), want))
    for case, actual in zip(cases, computed(cases, device), strict=True):
        right = same(actual, case.want)
        assert right.all(), f"{case.name}: {case.inputs[0][~right][:4]}"


def close_calls(source: DType, result: DType) -> Array:
    """Return random floats of all sizes, the middle of each pair of neighbours in `result`, and
    the floats just beside it."""
    rng, size = (np.random.default_rng(0), count(100_000 if result.bits == 8 else 1_000_000))
    word = np.uint32 if source.bits == 32 else np.uint64
    limit = int(np.iinfo(word).max)
    anything = rng.integers(0, limit, size, word).view(source.numpy)
    sizes = 10.0 ** rng.uniform(-10, 6, size)
    usual = (rng.standard_normal(sizes.size) * sizes).astype(source.numpy)
    with np.errstate(all="ignore"):
        numbers = np.sort(every(result).astype(np.float64))
        numbers = numbers[np.isfinite(numbers)]
        middle = ((numbers[1:] + numbers[:-1]) / 2).astype(source.numpy)
        up, down = (source.numpy.type(end) for end in (np.inf, -np.inf))
        beside = [np.nextafter(middle, up), np.nextafter(middle, down)]
    return np.concatenate([anything, usual, middle, *beside])


@pytest.mark.parametrize("device", RUNNABLE)
@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_arithmetic_rounds_each_result(dtype: DType, device: str) -> None:
    """Each op computes in float32 and rounds: what numpy's types do, bit for bit, but for those of
    8 bits, which know no saturation there."""
    values = numbers(dtype)
    a, b = (grid.reshape(-1).copy() for grid in np.meshgrid(values, values))
    cases = []
    for name, (tensors, arrays, inputs) in arithmetic(dtype, a, b).items():
        with np.errstate(all="ignore"):
            if dtype in dtypes.fp8s:
                wide = arrays(*(x.astype(np.float32) for x in inputs))
                want = wide if wide.dtype == bool else converted(wide, dtypes.float32, dtype)
            else:
                want = arrays(*inputs)
        cases.append(Case(name, tensors, inputs, want))
    cases = drawn(cases, f"{dtype} {device}", device, len(cases) // 3)
    for case, actual in zip(cases, computed(cases, device), strict=True):
        want = case.want
        if dtypes.from_numpy(want.dtype).is_float:  # the sign of a zero is free in sums
            actual, want = actual + want.dtype.type(0), want + want.dtype.type(0)
        right = same(actual, want)
        wrong = [x[~right][:4] for x in (*case.inputs, actual, want)]
        assert right.all(), f"{case.name} on {device}: {wrong}"


def arithmetic(dtype: DType, a: Array, b: Array) -> dict[str, Any]:
    """Return operations by name: of tensors, of arrays, and their inputs."""
    scale = np.array(dtype.const(2.0**-20), dtype.numpy)
    both, one = (a, b), (numbers(dtype),)

    def rounded(x: Array) -> Array:
        if dtype not in dtypes.fp8s:
            return x
        return converted(x, dtypes.float32, dtype).astype(np.float32)

    same: dict[str, tuple[Callable[..., Any], tuple[Array, ...]]] = {
        "a + b": (lambda a, b: a + b, both),
        "a - b": (lambda a, b: a - b, both),
        "a * b": (lambda a, b: a * b, both),
        "a / b": (lambda a, b: a / b, both),
        "a < b": (lambda a, b: a < b, both),
        "a == b": (lambda a, b: a == b, both),
        "a <= b": (lambda a, b: a <= b, both),
        "-a": (lambda a: -a, one),
    }
    return {name: (f, f, inputs) for name, (f, inputs) in same.items()} | {
        "a * b + a": (lambda a, b: a * b + a, lambda a, b: rounded(a * b) + a, both),
        "maximum": (lambda a, b: a.maximum(b), np.maximum, both),
        "where": (lambda a, b: (a < b).where(a, b), lambda a, b: np.where(a < b, a, b), both),
        "abs": (lambda a: a.abs(), np.abs, one),
        "sqrt": (lambda a: a.sqrt(), np.sqrt, one),
        "trunc": (lambda a: a.trunc(), np.trunc, one),
        "a / 2**-20": (lambda a: a / 2.0**-20, lambda a: a / scale.astype(a.dtype), one),
    }


def test_the_table_finds_what_is_wrong() -> None:
    values = np.array([0.0, 1.0, np.nan], np.float16)
    assert same(values, values.copy()).all()
    assert not same(values, -values)[:2].any()
    assert not same(values, values.astype(np.float32)).any()
    assert all(numbers(dtype).size > 16 for dtype in FLOATS)
