"""Every loop order and every list of splits computes the same.

Random forms of hand-built kernels run on both devices and on the reference interpreter, with
the output full of NaN before, and every level verified on the way. A failure prints Python
that builds the kernel again.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from tests.support import count
from tests.tools.kernels import (
    EXAMPLES,
    LLVM,
    Example,
    Form,
    interpreted,
    random_form,
    reordered,
    run,
    softmax,
)
from workbench.base.errors import WorkbenchError
from workbench.ir.lower.lower import lower
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import apply_opt
from workbench.ir.opt.opt import Opt, OptOps

FORMS = max(1, count(2000, 30) // len(EXAMPLES))
MOST_OPTS = 4


def check(example: Example, form: Form, seed: int) -> None:
    arrays = example.arrays(seed)
    expected = example.wanted(arrays)
    for device in ("reference interpreter", "PYTHON", "LLVM"):
        try:
            if device == "reference interpreter":
                actual = interpreted(form.graph, arrays)
            else:
                actual = run(form.graph, device, arrays)
        except WorkbenchError as error:
            pytest.fail(f"{device}: {error}\n{form.reproducer(seed)}")
        error = np.abs(actual - expected)
        if not np.allclose(actual, expected, rtol=1e-5, atol=1e-5):  # NaN left over is a failure
            pytest.fail(f"{device} is off by {error.max()}\n{form.reproducer(seed)}")


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_loop_order_gives_the_same_answer(name: str) -> None:
    example = EXAMPLES[name]
    for seed in range(FORMS):
        check(example, random_form(example, seed, 0), seed)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_list_of_splits_in_any_order_gives_the_same_answer(name: str) -> None:
    example = EXAMPLES[name]
    for seed in range(FORMS):
        check(example, random_form(example, 10_000 + seed, MOST_OPTS), seed)


def opts(*listed: tuple[str, str, Any]) -> tuple[Opt, ...]:
    return tuple(Opt(OptOps[op], axis, arg) for op, axis, arg in listed)


MATMUL = EXAMPLES["matmul_bias_relu"]
WORK_GROUPS = {
    "two tiles, one barrier": (MATMUL, opts(
        ("LOCAL", "g0", 4), ("LOCAL", "g1", 4), ("SPLIT", "r0", 4), ("STAGE", "r0", 1),
        ("STAGE", "r0", 2))),
    "a group": (MATMUL, opts(("LOCAL", "g1", 4), ("GROUP", "r0", 4))),
    "groups of two axes, two barriers": (MATMUL, opts(
        ("LOCAL", "g0", 2), ("SPLIT", "r0", 4), ("GROUPTOP", "r0", 3), ("GROUP", "r1", 2))),
    "a tile read by a group, two barriers": (MATMUL, opts(
        ("LOCAL", "g1", 4), ("STAGE", "g0", 1), ("GROUP", "r0", 4), ("UPCAST", "l0", 2))),
    "a row's tile, groups of both reductions": (softmax(4, 8), opts(
        ("LOCAL", "g0", 2), ("GROUP", "r0", 4), ("GROUPTOP", "r1", 2))),
    "tiles that stand there, and a group": (EXAMPLES["tiled_matmul"], opts(
        ("GROUP", "r1", 2), ("UPCAST", "a_f1", 2))),
}  # fmt: skip


@pytest.mark.parametrize("name", WORK_GROUPS)
def test_work_groups_agree_in_every_loop_order(name: str) -> None:
    """The emulator runs work-items in lock step, LLVM one after another as inner loops: where
    one reads what another has written, loops must have been split."""
    example, listed = WORK_GROUPS[name]
    graph = example.graph
    for opt in listed:
        graph, _ = apply_opt(graph, opt, LLVM)
    pick, barriers = random.Random(name), 0
    for seed in range(count(120, 30)):
        order = list(graph.arg.order)
        if seed:
            pick.shuffle(order)
        form = Form(example, listed, reordered(graph, order))
        barriers += is_split(form.graph)
        check(example, form, seed)
    assert barriers, "no order needed a barrier between work-items"


def is_split(graph: UOp) -> bool:
    """Whether an axis of a work-group has several loops that follow each other."""
    tree = lower(graph, LLVM)[0]
    loops = Counter(n.src[0] for n in walk(tree) if n.op is Ops.LOOP)
    kinds = (AxisType.LOCAL, AxisType.GROUP_REDUCE)
    return any(many > 1 and axis.axis_kind in kinds for axis, many in loops.items())


def walk(node: UOp) -> list[UOp]:
    inside = node.src[1:] if node.op is Ops.LOOP else node.src
    return [node, *(n for child in inside for n in walk(child))]


def test_all_orders_of_a_matmul() -> None:
    example = EXAMPLES["matmul_bias_relu"]
    for order in permutations(example.graph.arg.order):
        check(example, Form(example, (), reordered(example.graph, order)), 0)


def test_the_examples_are_many_enough() -> None:
    assert len(EXAMPLES) >= 5 and FORMS * len(EXAMPLES) > count(1800, 30)


def test_a_form_is_the_same_every_time_and_forms_differ() -> None:
    example = EXAMPLES["matmul_bias_relu"]
    forms = [random_form(example, seed, MOST_OPTS, LLVM).graph for seed in range(30)]
    again = [random_form(example, seed, MOST_OPTS, LLVM).graph for seed in range(30)]
    assert all(a is b for a, b in zip(forms, again, strict=True))
    assert len(set(forms)) > 20


def test_the_reproducer_builds_the_form() -> None:
    form = random_form(EXAMPLES["softmax"], 3, MOST_OPTS)
    scope: dict[str, object] = {}
    exec(form.reproducer(3).replace("print(kernel.check())", ""), scope)
    assert scope["kernel"].ast is form.graph  # type: ignore[attr-defined]
    assert scope["opts"] == list(form.opts)
