"""Schedules: how many kernels, in what order, on which buffers; equal ones are one object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.agreement.programs import program
from tests.ir.schedule.support import COUNTS, A, B, C, agrees, kernels, planned, softmax
from tests.support import by_rows, count
from workbench import Context, Tensor, dtypes
from workbench.base.trace import Repeats, observe
from workbench.execution.buffers import memory_of
from workbench.execution.memory_plan import is_realized, to_numpy
from workbench.execution.realize import realize
from workbench.ir.meaning.interpret import interpret_tensor
from workbench.ir.node.construct import identity
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import without
from workbench.search.realization import tuned
from workbench.viz.model.ancestry import Ancestry


@by_rows("name", COUNTS)
def test_kernel_counts(name: str) -> None:
    expected, build = COUNTS[name]
    assert len(kernels(*build())) == expected


@by_rows("name", COUNTS)
def test_what_the_kernels_compute_is_what_the_graph_means(name: str) -> None:
    for tensor in COUNTS[name][1]():
        buffers = {n for n in tensor.uop.toposort() if n.op is Ops.BUFFER}
        arrays = {b: memory_of(b).array.reshape(b.shape) for b in buffers}
        expected = interpret_tensor(tensor.uop, arrays, widen=True)
        agrees(tensor, np.broadcast_to(expected, tensor.shape))


@pytest.mark.parametrize("kind", [Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN])
@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_nothing_is_computed_of_values_without_elements(kind: Ops, device: str) -> None:
    """Not even where the rule is off that makes constants of them."""
    with Context(DEV=device), without(["empty-is-constant"]):
        nothing = Tensor(A)[3:3] * 2
        (value,) = realize([nothing.uop], tuned)
        assert not nothing.schedule() and to_numpy(value).shape == (0, 48)
        row = UOp(Ops.REDUCE_AXIS, dtypes.float32, (nothing.uop,), (kind, (0,)))
        padded = Tensor(nothing.uop).pad(((1, 1), (2, 0))) + Tensor(A)[:2, :1]
        values = [row + Tensor(A)[:1].uop, padded.uop]
        results = [to_numpy(node) for node in realize(values, tuned)]
    np.testing.assert_array_equal(results[0], A[:1] + identity(kind, dtypes.float32).arg)
    np.testing.assert_array_equal(results[1], np.broadcast_to(A[:2, :1], (2, 50)))


def test_scheduling_runs_nothing() -> None:
    x = Tensor(A) + 1
    items = x.schedule()
    assert len(items) == 2 and not is_realized(x.uop)


def test_kernels_come_after_what_they_read() -> None:
    x = Tensor(A) @ Tensor(B)
    items = planned((x @ Tensor(A)).contiguous() @ Tensor(B), x).items
    written: set[UOp] = set()
    for item in items:
        target, *sources = item.buffers
        assert target not in written
        assert all(s in written or s.arg[1] == "NPY" for s in sources)
        written.add(target)


def test_a_copy_has_no_kernel_and_a_kernel_lists_its_buffers_by_slot() -> None:
    for item in planned(Tensor(A) @ Tensor(B) + Tensor(C)).items:
        if item.kernel is None:
            assert len(item.buffers) == 2
            continue
        params = [n for n in item.kernel.toposort() if n.op is Ops.PARAM]
        signature = {p.arg[0]: (p.dtype, p.arg[1]) for p in params}
        assert signature == {i: (b.dtype, b.size) for i, b in enumerate(item.buffers)}


def test_dtypes_of_buffers() -> None:
    plan = planned(Tensor(A).cast(dtypes.int32) + 1)
    assert plan.items[-1].buffers[0].dtype is dtypes.int32


def test_equal_kernels_are_one_object() -> None:
    (a,), (b,) = kernels(Tensor(A) @ Tensor(B)), kernels(Tensor(A + 1) @ Tensor(B - 1))
    assert a is b
    (a,), (b,) = kernels(Tensor(A) + 1), kernels(Tensor(A) + 2)
    assert a is not b
    first, second = kernels(Tensor(A).exp() + 1, Tensor(A * 2).exp() + 1)
    assert first is second


Made = tuple[object, ...]


def layers(times: int) -> tuple[Tensor, ...]:
    """Return a network of equal layers, its input and a gradient."""
    x = first = Tensor(A)
    for number in range(times):
        x = x + softmax(x @ Tensor(B + number)) @ Tensor(A * (number + 1))
    return x, x.sum().gradient(first)[0]


def made(tensors: Sequence[Tensor]) -> tuple[list[Made], list[Made], list[set[UOp]]]:
    """Return the items of a schedule with their BUFFERs numbered, what was recorded of its passes,
    and the values of the expression that each kernel comes from."""
    with observe() as watching:
        plan = planned(*tensors)
    numbers: dict[UOp, int] = {}
    items: list[Made] = [
        (i.kernel, [numbers.setdefault(b, len(numbers)) for b in i.buffers], i.nodes, i.decisions)
        for i in plan.items
    ]
    passes: list[Made] = [
        (r.name, r.parent, len(r.matches), r.dropped, *[n for n in (r.before, r.after) if r.parent])
        for r in watching.records
    ]
    ancestry = Ancestry()
    for record in watching.records:
        ancestry.add(record)
    values = UOp.sink(*[n for i in plan.items for n in i.nodes]).toposort().keys()
    kernels = [i.kernel for i in plan.items if i.kernel is not None]
    return items, passes, [{*ancestry.of(*k.toposort())} & values for k in kernels]


def test_building_equal_kernels_once_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the schedule nor its records, but for times: with and without `Repeats`."""
    random = [tuple(program(seed).tensors("LLVM")) for seed in range(count(200))]
    expressions = [layers(4), *[build() for _, build in COUNTS.values()], *random]
    once = [made(tensors) for tensors in expressions]
    is_equal: list[bool] = []

    def make_each(self: Any, key: Any, parts: Any, make: Callable[[], Any]) -> Any:
        is_equal.append(key in self._first)
        self._first[key] = None
        return make()

    monkeypatch.setattr(Repeats, "value", make_each)
    for tensors, expected in zip(expressions, once, strict=True):
        assert made(tensors) == expected
    assert is_equal.count(True) > 20


def test_axes_are_named_in_order() -> None:
    (kernel,) = kernels(softmax(Tensor(A[:8, :8])))
    assert kernel.arg.order[0] == "g0"
    for name in kernel.arg.order:
        assert name[0] in "girf" and name[1:].isdigit()
    (kernel,) = kernels((Tensor(A) @ Tensor(B) + Tensor(C)).relu())
    assert kernel.arg.order == ("g0", "g1", "r0")
