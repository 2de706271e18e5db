"""Which outputs may take over the memory of an input; run so, kernels compute the same."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from tests.ir.samples import at, axis, kernel, load, param, reduced, stage
from tests.ir.schedule.support import Array, kernels, numbers, softmax
from tests.support import count
from tests.tools.kernels import legal_opt
from workbench import Device, Tensor, dtypes
from workbench.backends.memory import Buffer
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, gated
from workbench.ir.opt.apply import apply_opt
from workbench.ir.schedule.in_place import reads_where_it_writes
from workbench.ir.verify.verify import verify
from workbench.pipeline import build
from workbench.search.realization import tuned

X, Y = numbers(24, 24), numbers(24, 24, seed=1)


# Name -> whether the kernel of the tensor may write over x, which it reads first.
CASES: dict[str, tuple[bool, Callable[[Tensor], Tensor]]] = {
    "x + 1": (True, lambda x: x + 1),
    "x + y": (True, lambda x: x + Tensor(Y)),
    "x + y.T": (True, lambda x: x + Tensor(Y).T),
    "x.exp() of x's own": (True, lambda x: x.exp() * x),
    "x + a row": (True, lambda x: x + Tensor(Y)[0]),
    "x @ y + x": (False, lambda x: x @ Tensor(Y) + x),
    "x + y @ y": (True, lambda x: x + Tensor(Y) @ Tensor(Y)),
    "what is summed is not x's own": (True, lambda x: (x[:, :, None] * Tensor(Y)).sum(2)),
    "x.T": (False, lambda x: x.T.contiguous()),
    "x + x.T": (False, lambda x: x + x.T),
    "x flipped": (False, lambda x: x.flip(0) * 2),
    "x + its first row": (False, lambda x: x + x[0]),
    "x + its sum": (False, lambda x: x + x.sum()),
    "softmax": (False, softmax),
    "padded columns of x": (True, lambda x: x + x[:, :4].pad(((0, 0), (0, 20)))),
    "columns of x elsewhere": (False, lambda x: x + x[:, :4].pad(((0, 0), (20, 0)))),
    "half of x": (True, lambda x: x[:12] + 1),
    "the other half of x": (False, lambda x: x[12:] + 1),
    "every second of x": (False, lambda x: x[::2] + 1),
    "the sum of x": (False, lambda x: x.sum(1)),
    "x as doubles": (False, lambda x: x.cast(dtypes.float64)),
    "x as integers": (True, lambda x: x.cast(dtypes.int32)),
    "repeated x": (False, lambda x: x[None].expand(3, 24, 24) + 1),
    "rows picked by x": (False, lambda x: Tensor(Y)[x[0].cast(dtypes.int32).abs()]),
}  # fmt: skip


def writes(*parts: tuple[int, UOp], order: str = "g0 g1") -> UOp:
    """Return the kernel that writes values of g0 and g1 to slots."""
    stored = [(at(param(slot, 576), FLAT), value, "g0 g1") for slot, value in parts]
    return kernel(order, *stored)


G0, G1, R0, F0 = axis("g0", 24), axis("g1", 24), axis("r0", 24), axis("f0", 24)
FLAT = G0 * 24 + G1
OLD, OTHER = load(param(2, 576), FLAT), load(param(3, 576), FLAT)
GATED = load(param(2, 576), gated(FLAT, G1 < 5))
ROW = stage("row", (24,), load(param(2, 576), G0 * 24 + F0), F0)
TOTAL = reduced(Ops.ADD, load(param(3, 576), G0 * 24 + R0), R0)
SHARED = reduced(Ops.ADD, load(param(2, 576), FLAT), G1)
# Name -> whether slot 0 may be written over slot 2, which the kernel reads.
OF_KERNELS: dict[str, tuple[bool, UOp]] = {
    "another output reads it before": (True, writes((1, OLD + OTHER), (0, OLD * 2))),
    "another output reads it after": (False, writes((0, OLD * 2), (1, OLD + OTHER))),
    "another output reads it before a sum": (
        False, writes((1, OLD + TOTAL), (0, OLD * 2), order="g0 g1 r0")),
    "another output reads something else": (
        True, writes((0, OLD + TOTAL), (1, OTHER * 2), order="g0 g1 r0")),
    "a gate": (True, writes((0, GATED + OTHER))),
    "a row of it": (False, writes((0, at(ROW, G1) + OTHER), order="g0 f0 g1")),
    "a sum over the range that writes it": (False, writes((0, SHARED + OTHER))),
    "a sum beside": (True, writes((0, OLD * TOTAL), order="g0 g1 r0")),
    "a gate of what is written": (
        False, kernel("g0 g1", (at(param(0, 576), gated(FLAT, G1 < 5)), OLD, "g0 g1"))),
    "an element written twice": (
        False, kernel("g0 g1", (at(param(0, 576), G0), load(param(2, 576), G0) * OTHER, "g0 g1"))),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_which_kernels_may_write_over_what_they_read(name: str) -> None:
    expected, make = CASES[name]
    (graph, *_) = kernels(make(Tensor(X).realize()))
    assert reads_where_it_writes(graph, 1, 0) is expected
    if expected:
        _same_in_place(graph)


@pytest.mark.parametrize("name", OF_KERNELS)
def test_which_of_several_outputs_may(name: str) -> None:
    expected, graph = OF_KERNELS[name]
    verify(graph, "kernel")
    assert reads_where_it_writes(graph, 2, 0) is expected
    if expected:
        _same_in_place(graph, 2)


def test_what_is_not_read_may_be_written_over() -> None:
    (graph,) = kernels(Tensor(X).realize() + 1)
    assert reads_where_it_writes(graph, 7, 0)
    assert not reads_where_it_writes(graph, 1, 7), "it writes no such slot"
    assert not reads_where_it_writes(graph, 0, 0)


def _same_in_place(graph: UOp, slot: int = 1) -> None:
    """Check that a kernel, with some opts, computes the same with slot 0 over another slot."""
    pick, target = random.Random(0), Device["LLVM"].target
    forms = [graph, tuned(graph, "LLVM")]
    for _ in range(count(60)):
        form = graph
        for _ in range(pick.randint(1, 3)):
            opt = legal_opt(form, pick, target)
            form = form if opt is None else apply_opt(form, opt, target)[0]
        forms.append(form)
    expected = _outputs(graph, "PYTHON", None)
    for place, form in enumerate(forms):
        for device in ("LLVM", "PYTHON")[: 1 if place % 4 else 2]:
            for actual, want in zip(_outputs(form, device, slot), expected, strict=True):
                np.testing.assert_allclose(actual, want, rtol=1e-4, atol=1e-4)


def _outputs(graph: UOp, device: str, over: int | None) -> list[Array]:
    """Return what a kernel writes, with slot 0 in the memory of slot `over`."""
    params = {n.slot: n for n in graph.toposort() if n.op is Ops.PARAM}
    memory = [Buffer(device, dtypes.float32, 0) for _ in range(max(params) + 1)]
    for slot, node in params.items():
        values = np.resize(X + slot, node.length).astype(node.dtype.numpy)
        memory[slot] = Buffer.of(device, node.dtype, values)
    if over is not None:
        memory[0] = memory[over].part(0, params[0].dtype, params[0].length)
    build(graph, device).program(memory)
    return [memory[s].to_numpy()[: params[s].length] for s in graph.outputs]
