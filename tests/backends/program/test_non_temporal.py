"""Non-temporal stores: where they are chosen, how they are written, and that they are right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from tests.backends.linear import at, axis, begin, end, load_from, param, program, store
from workbench import Device, Tensor, explore, pipeline
from workbench.backends.llvm.llvm_device import load
from workbench.backends.llvm_ir.render import render
from workbench.backends.memory import Buffer
from workbench.backends.native import jit
from workbench.backends.program.non_temporal import non_temporal_stores
from workbench.backends.program.text import Source
from workbench.base.dtypes import dtypes
from workbench.base.errors import DeviceError
from workbench.base.target import Target
from workbench.ir.node.ops import AxisType
from workbench.ir.rewriting.passes import Memo

L2, LAST = 1 << 10, 16 << 10


def random(*shape: int) -> Tensor:
    rng = np.random.default_rng(0)
    return Tensor(rng.standard_normal(shape, dtype=np.float32)).realize()


@pytest.fixture(autouse=True)
def small_caches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels of a few kilobytes are too much for the caches of this LLVM device."""
    device = Device["LLVM"]
    small = replace(device.target, vector_bytes=64, caches=(("L2", L2),), non_temporal_bytes=LAST)
    monkeypatch.setitem(vars(device), "target", small)
    monkeypatch.setattr(pipeline, "_programs", Memo())
    yield


def source(expression: Tensor) -> Source:
    """Return the default program of an expression that is one kernel."""
    (kernel,) = explore(expression).kernels
    result: Source = kernel.optimized().built("LLVM").source
    return result


CHOICES: dict[str, tuple[Callable[[], Tensor], tuple[int, ...]]] = {
    "more than the caches hold": (lambda: random(2048) + random(2048), (0,)),
    "just what they hold": (lambda: random(2048) * 2, ()),
    "more, read from one": (lambda: random(2560) * 2, (0,)),
    "more written than read": (lambda: random(64, 1).expand(64, 64) + 1, ()),
    "an output that a core can keep": (lambda: random(128, 64).sum(0), ()),
    "little of a large table": (
        lambda: random(256, 64)[Tensor(np.arange(0, 16, dtype=np.int32))],
        (),
    ),
    "a tail behind a mask": (lambda: random(8192)[1:6000] * 2, (0,)),
    "rows that begin inside of lines": (lambda: random(64, 67).softmax(), ()),
    "turned": (lambda: random(64, 64).T.contiguous(), (0,)),
    "a row kept": (lambda: random(64, 64).softmax(), (0,)),
}


@pytest.mark.parametrize("name", CHOICES)
def test_where_they_are_chosen(name: str) -> None:
    expression, slots = CHOICES[name]
    assert source(expression()).aligned == slots


PLACES = {
    "one vector after the other": (8, [0], 8, False, True),
    "with a loop in between": (8, [0], 8, True, False),
    "every other half of a line": (8, [0], 16, False, False),
    "lines, far apart": (8, [0, 8], 64, True, True),
    "in any order": (8, [8, 0], 64, True, True),
    "halves of two lines": (8, [8, 16], 64, False, False),
    "two vectors that go on": (8, [0, 8], 16, False, True),
    "a vector that is not aligned": (8, [4], 8, False, False),
    "scalars": (1, [0], 1, False, False),
}


@pytest.mark.parametrize("name", PLACES)
def test_lines_are_written_at_once(name: str) -> None:
    """(lanes of a vector of float32, its offsets, what a step moves on, a loop inside, chosen)."""
    lanes, offsets, step, has_loop, chosen = PLACES[name]
    g0, r0 = axis("g0", 100), axis("r0", 2, AxisType.REDUCE)
    out, operand = (param(slot, dtypes.float32, 100 * step + 64) for slot in range(2))
    inner = [begin(r0), end(r0)] if has_loop else []
    places = [g0 * step + offset for offset in offsets]
    stores = [store(at(out, i), load_from(at(operand, i), lanes)) for i in places]
    linear = program(begin(g0), *inner, *stores, end(g0))
    non_temporal = non_temporal_stores(
        linear, Target("LLVM", caches=(("L2", 0),), non_temporal_bytes=1)
    )
    assert non_temporal == (set(stores) if chosen else set())


def test_how_they_are_written() -> None:
    sum_source = source(random(2048) + random(2048))
    stores = [s.strip() for s in sum_source.text.splitlines() if s.strip().startswith("store")]
    assert stores
    assert all("<16 x float>" in s for s in stores)
    assert all(s.endswith(", align 64, !nontemporal !0") for s in stores)
    assert sum_source.text.count("fence seq_cst\n  ret void") == 1
    assert ";   p0 is written with non-temporal stores\n" in sum_source.text
    ready = load(sum_source)
    if jit.is_x86():
        assert "movntps" in ready.assembly
    assert {line.source_line for line in ready.assembly_lines} & {
        n for n, s in enumerate(sum_source.text.splitlines(), 1) if "!nontemporal" in s
    }, "a store's line is that of its instruction"


@pytest.mark.parametrize("shape", [(64, 1024), (127, 640), (1, 48_000)])
@pytest.mark.parametrize("name", ["float64", "int32", "float16", "uint16", "int8", "bool"])
def test_they_are_right(name: str, shape: tuple[int, ...]) -> None:
    dtype, rng = np.dtype(name), np.random.default_rng(1)
    a, b = (rng.integers(0, 2, shape).astype(dtype) for _ in range(2))
    result = Tensor(a).realize() * Tensor(b).realize()
    assert source(result).aligned == (0,)
    expected = a * b
    assert np.array_equal(result.numpy(), expected)


@pytest.mark.parametrize("seed", range(12))
def test_they_are_right_at_odd_sizes(seed: int) -> None:
    """Tails, pads, turned blocks, rows kept: of what is stored whole and what is not."""
    rng = np.random.default_rng(seed)
    rows, columns = (int(n) for n in rng.integers(60, 200, 2))
    columns -= seed % 2 * columns % 16
    a = rng.standard_normal((rows, columns), dtype=np.float32)
    x = Tensor(a).realize()
    e = np.exp(a - a.max(1, keepdims=True))
    cases = {
        "pad": (x.pad(((1, 0), (0, 3))) * 2, np.pad(a, ((1, 0), (0, 3))) * 2),
        "turned": (x.T.contiguous(), a.T),
        "softmax": (x.softmax(), e / e.sum(1, keepdims=True)),
        "flip": (x.flip(1) + x, a[:, ::-1] + a),
        "matmul": (x @ x.T, a @ a.T),
    }
    assert source(x.softmax()).aligned == (() if columns % 16 else (0,))
    for name, (ours, expected) in cases.items():
        actual = ours.numpy()
        assert np.allclose(actual, expected, rtol=1e-4, atol=1e-4), (seed, name)


def test_a_buffer_that_begins_inside_of_a_line_is_refused() -> None:
    sum_source = source(random(2048) + random(2048))
    whole = [Buffer("LLVM", *param) for param in sum_source.params]
    longer = Buffer("LLVM", sum_source.params[0][0], 4096)
    with pytest.raises(DeviceError, match="begins inside of a cache line"):
        load(sum_source).bind([longer.window(1, 2048), *whole[1:]])
    load(sum_source).bind([longer.window(16, 2048), *whole[1:]])()


def test_without_need_a_kernel_is_as_it_was() -> None:
    (kernel,) = explore(random(2048) + random(2048)).kernels
    built = kernel.optimized().built("LLVM")
    plain = render(built.linear, replace(kernel.target, non_temporal_bytes=0))
    assert plain.aligned == ()
    assert "nontemporal" not in plain.text
    assert "fence" not in plain.text
