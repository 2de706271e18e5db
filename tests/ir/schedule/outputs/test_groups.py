"""Kernels that store several values: which are joined, why, and that they compute the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.agreement.hunt import replace_result
from tests.agreement.programs import Program, program
from tests.ir.schedule.support import Array, numbers, planned
from tests.support import count
from tests.test_pass_steps import check
from tests.tools.compiler import needs_c
from tests.tools.kernels import legal_opt
from workbench import Context, Device, Tensor
from workbench.base.trace import observe
from workbench.execution import realize
from workbench.execution.buffers import memory_of
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_opt
from workbench.ir.schedule.build import in_order
from workbench.ir.schedule.by_hand import HandChoices
from workbench.ir.schedule.plan import ScheduleItem
from workbench.ir.verify.verify import verify
from workbench.pipeline import build
from workbench.search.realization import tuned

X, Y = numbers(24, 40), numbers(24, 40, seed=1)
LONG, WIDE = numbers(1 << 20), numbers(600, 600)
TX, TY, TLONG, TWIDE = Tensor(X), Tensor(Y), Tensor(LONG), Tensor(WIDE)
Made = Callable[[], tuple[Sequence[Tensor], Sequence[Array]]]


def adam() -> tuple[Sequence[Tensor], Sequence[Array]]:
    p, g, m, v = (numbers(48, 64, seed=s) for s in range(4))
    t = [Tensor(a) for a in (p, g, m, np.abs(v))]
    m2, v2 = t[2] * 0.9 + t[1] * 0.1, t[3] * 0.99 + t[1] * t[1] * 0.01
    n2, w2 = m * 0.9 + g * 0.1, np.abs(v) * 0.99 + g * g * 0.01
    step = t[0] - m2 / (v2.sqrt() + 1e-3) * 0.01
    return (step, m2, v2), (p - n2 / (np.sqrt(w2) + 1e-3) * 0.01, n2, w2)


def sums(x: Array, y: Array, tx: Tensor, other: Tensor) -> tuple[Sequence[Tensor], Sequence[Array]]:
    """Results of a sum, of each other, and of a sum of theirs."""
    total, n = tx.sum(), x.astype(float).sum()
    c, d = total + 2, total * 2
    e = c * d
    f = (other - d).sum() - e
    of_f = (y.astype(float) - n * 2).sum() - (n + 2) * n * 2
    return (c, d, e, f), (n + 2, n * 2, (n + 2) * n * 2, of_f)


def nested(x: Array, y: Array, tx: Tensor, ty: Tensor) -> tuple[Sequence[Tensor], Sequence[Array]]:
    """Two equal groups; the second one reads a result of the first, whose other result is asked for
    last, so that the second is complete before the first."""
    zero = Tensor([0.0]).realize()
    one = tx + zero
    first, square = one.sum(1), one.square().sum(1)
    other = ty + first.mean().reshape(1).contiguous()
    results = first, other.sum(1), other.square().sum(1), square
    y = y + x.sum(1).mean()
    return results, (x.sum(1), y.sum(1), (y * y).sum(1), (x * x).sum(1))


def behind(x: Array, tx: Tensor) -> tuple[Sequence[Tensor], Sequence[Array]]:
    """Two sums over the columns that are joined would need themselves through a third kernel."""
    rows = tx.sum(0)
    other = (tx - rows).max(1).contiguous()
    again = (tx * other.reshape(-1, 1)).sum(0)
    n = x.sum(0)
    return (rows, again), (n, (x * (x - n).max(1)[:, None]).sum(0))


# Name -> how many kernels the results need, how many values the last one stores, and the results.
CASES: dict[str, tuple[int, int, Made]] = {
    "mean and variance": (1, 2, lambda: (
        (TX.mean(1), TX.var(1)), (X.mean(1), X.var(1, ddof=1)))),
    "moments in one loop": (1, 2, lambda: (
        (TX.sum(1), (TX * TX).sum(1)), (X.sum(1), (X * X).sum(1)))),
    "the same over columns": (1, 2, lambda: (
        (TX.sum(0), (TX * TX).sum(0)), (X.sum(0), (X * X).sum(0)))),
    "columns of a large array wait": (2, 1, lambda: (
        (TWIDE.mean(0), TWIDE.var(0)), (WIDE.mean(0), WIDE.var(0, ddof=1)))),
    "three results of one sum": (1, 3, lambda: (
        [TX.sum() + n for n in (1, 2, 3)], [X.sum() + n for n in (1, 2, 3)])),
    "three results of one long sum": (2, 3, lambda: (
        [TLONG.sum() + n for n in (1, 2, 3)], [LONG.sum() + n for n in (1, 2, 3)])),
    "c, d, e and f": (1, 4, lambda: sums(X, Y, TX, TY)),
    "c, d, e and f of many": (4, 1, lambda: sums(LONG, LONG, TLONG, TLONG)),
    "an optimiser's step": (1, 3, adam),
    "x and its gradient": (1, 2, lambda: (
        (TX.relu(), (TX > 0) * TY), (np.maximum(X, 0), (X > 0) * Y))),
    "small ones without a common read": (1, 2, lambda: (
        (TX + 1, TY * 2), (X + 1, Y * 2))),
    "large ones without a common read": (2, 1, lambda: (
        (TWIDE + 1, Tensor(WIDE + 1) * 2), (WIDE + 1, (WIDE + 1) * 2))),
    "other shapes": (2, 1, lambda: ((TX + 1, TX.T * 2), (X + 1, X.T * 2))),
    "axes of one element": (1, 2, lambda: (
        (TX.mean(1, keepdim=True), TX.max(1)), (X.mean(1)[:, None], X.max(1)))),
    "a product and what it is for": (1, 2, lambda: (
        ((h := TX @ TY.T), h.relu()), (X @ Y.T, np.maximum(X @ Y.T, 0)))),
    "two products": (2, 1, lambda: (
        (TWIDE @ TWIDE, TWIDE @ Tensor(WIDE + 1)),
        (WIDE @ WIDE, WIDE @ (WIDE + 1)))),
    "a path through another kernel": (3, 1, lambda: behind(X, TX)),
    "read at other elements": (2, 1, lambda: (
        ((h := TX[:, :24].exp()), h + h.T), ((e := np.exp(X[:, :24])), e + e.T))),
    "a group complete before an equal one": (3, 2, lambda: nested(X, Y, TX, TY)),
    "more than a kernel stores": (2, 4, lambda: (
        [TX + n for n in range(1, 13)], [X + n for n in range(1, 13)])),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_which_values_one_kernel_stores(name: str) -> None:
    kernels, outputs, make = CASES[name]
    results, wanted = make()
    items = [i for i in planned(*results).items if i.kernel is not None]
    assert (len(items), len(items[-1].nodes)) == (kernels, outputs)
    for item in items:
        assert item.kernel is not None
        verify(item.kernel, "kernel")
        for decision in item.decisions:
            assert ("stored by one kernel" in decision.reason) is (len(item.nodes) > 1)
            assert decision.estimates.get("outputs", 1) == len(item.nodes)
    for device in ("LLVM", "PYTHON")[: 1 + (max(r.size for r in wanted) < 2000)]:
        own = [t.to(device) for t in make()[0]]
        Tensor.realize(*own)
        for tensor, want in zip(own, wanted, strict=True):
            np.testing.assert_allclose(tensor.numpy(), want, rtol=2e-3, atol=1e-3)


def test_a_user_may_ask_for_a_kernel_of_its_own() -> None:
    one, other = TX + 1, TX * 2
    roots = [one.uop, other.uop]
    assert sum(item.kernel is not None for item in planned(one, other).items) == 1
    node = planned(one, other).decisions[0].node
    items = realize.planned(roots, HandChoices({node: True}))[0].items
    assert sum(item.kernel is not None for item in items) == 2


def test_items_come_after_what_they_read() -> None:
    x = Tensor(X)
    chain = [x]
    for _ in range(5):
        chain.append((chain[-1] + 1).contiguous())
    items = planned(*chain).items
    mixed = in_order(random.Random(0).sample(items, len(items)))
    written: set[UOp] = set()
    for item in mixed:
        assert all(b in written or b not in planned_buffers(items) for b in item.inputs)
        written.update(item.outputs)


def planned_buffers(items: Sequence[ScheduleItem]) -> set[UOp]:
    return {buffer for item in items for buffer in item.outputs}


def test_the_steps_of_rangeify_lead_to_it() -> None:
    joined = 0
    for name in CASES:
        with observe() as watching:
            items = planned(*CASES[name][2]()[0]).items
        joined += sum(len(item.nodes) > 1 for item in items)
        check(next(r for r in watching.records if r.name == "rangeify"))
    assert joined > 8


@pytest.mark.parametrize("device", ["LLVM", pytest.param("C", marks=needs_c), "PYTHON"])
def test_all_values_of_random_programs_at_once(device: str) -> None:
    """Each line of a program is a result: they are right with the default opts and random ones."""
    joined = 0
    for seed in range(count(1000, 30) if device == "LLVM" else count(100)):
        joined += _run_all(seed, device)
    assert joined


def _run_all(seed: int, device: str) -> int:
    drawn = program(seed)
    pick, tensors = random.Random(seed), drawn.tensors(device)
    with Context(DEV=device):
        schedule, simple = realize.planned([t.uop for t in tensors])
    for item in schedule.items:
        if item.kernel is None:
            realize.run_item(item, tuned)
            continue
        kernel = tuned(item.kernel, device)
        for _ in range(pick.choice((0, 2))):
            opt = legal_opt(kernel, pick, Device[device].target)
            kernel = kernel if opt is None else apply_opt(kernel, opt, Device[device].target)[0]
        build(kernel, device).program([memory_of(b) for b in item.buffers])
    for number, (tensor, node) in enumerate(zip(tensors, simple, strict=True), 1):
        actual = replace_result(tensor, node.substitute(schedule.stored)).numpy()
        wrong = _cut(drawn, number).wrong(actual)
        assert not wrong, f"seed {seed}, line {number}: {wrong}\n" + "\n".join(drawn.lines)
    return sum(len(item.nodes) > 1 for item in schedule.items)


def _cut(drawn: Program, lines: int) -> Program:
    return replace(drawn, lines=drawn.lines[:lines], values=drawn.values[:lines])
