"""Opts drawn at random, sensible and senseless: what `why_not` says is what `apply` does.

Each draw is a kernel (one that random opts have changed already) and an opt. Where it is
refused there is a reason and a hint, and `apply` says the same; where not, the kernel is
still one of its level, and computes what it did.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.ir.opt.support import apply, check_what_is_offered, opt
from tests.ir.samples import at, axis, kernel, load, param, reduced
from tests.support import LONG, count
from tests.tools.kernels import (
    EXAMPLES,
    TARGETS,
    Array,
    Example,
    convolution,
    interpreted,
    matmul_bias_relu,
    nested_reduction,
    run,
    softmax,
    transpose,
)
from workbench import Device
from workbench.base.errors import KernelOptError
from workbench.ir.lower.lower import lower
from workbench.ir.nest.estimates import count as count_steps
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import actions, apply_opt, why_not
from workbench.ir.opt.opt import Opt, OptOps, ranges
from workbench.ir.verify.verify import verify

PAIRS = 10_000
SEED = os.environ.get("WORKBENCH_TEST_SEED", "")
"""Another seed draws other pairs."""
WALKS = 40
"""Walks that all pairs are drawn on; a walk goes on from the kernel that an opt has made."""
MOST_OPTS = 6
STRANGE: list[Any] = [
    None, True, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 31, 32, 64, 100, 2**31, -4, 1.5,
    "4", "", "g0", "nonsense", (), [2], {}, object(), 10**30, float("nan"), OptOps.UPCAST,
]  # fmt: skip
RUN_ON = {"LLVM": 1, "PYTHON": 1} if LONG else {"LLVM": 3, "PYTHON": 9}
"""On each device every so-manieth kernel runs; the interpreter has the others."""
MOST_EMULATED = 200_000
"""Loads and stores of a kernel that the emulator runs: it takes microseconds for each."""


def sum_of_two(sizes: tuple[int, int, int]) -> Example:
    """One reduction over two axes, with one between them that stays."""
    rows, columns, planes = sizes
    g0, r0, r1 = axis("g0", columns), axis("r0", rows), axis("r1", planes)
    x = load(param(1, rows * columns * planes), (r0 * columns + g0) * planes + r1)
    graph = kernel("g0 r0 r1", (at(param(0, columns), g0), reduced(Ops.ADD, x, r0, r1), "g0"))
    return Example("sum_of_two", graph, lambda x: x.reshape(sizes).sum((0, 2)))


def turned(size: int, *opts: Opt) -> Example:
    """A transpose whose lanes are turned in registers from the start."""
    plain = transpose(size)
    return replace(plain, graph=apply(plain.graph, *opts))


ODD = {
    "odd matmul": matmul_bias_relu(7, 11, 13),
    "odd softmax": softmax(5, 9),
    "odd convolution": convolution(9, 3),
    "odd nested reduction": nested_reduction(3, 5, 7),
    "turned blocks": turned(24, opt("UPCAST", "g0", 8), opt("UPCAST", "g1", 8)),
    "odd turned blocks": turned(
        19,
        opt("PADTO", "g0", 4),
        opt("PADTO", "g1", 4),
        opt("UPCAST", "g0", 4),
        opt("UPCAST", "g1", 4),
    ),
    "sum over two axes": sum_of_two((12, 5, 9)),
    "one row": matmul_bias_relu(1, 3, 2),
}
FUZZED = EXAMPLES | ODD


def drawn(graph: UOp, dice: random.Random, sensible: list[Opt]) -> Opt:
    """Return an opt: of the action table, of an axis that is there, or anything at all."""
    axes = [*ranges(graph)]
    way = dice.random()
    if way < 0.5 and sensible:
        return dice.choice(sensible)
    op = dice.choice(list(OptOps))
    if op is OptOps.NOLOCALS and way < 0.9:
        return Opt(op)
    if way < 0.8:
        other = dice.choice(axes) if op.name in ("ORDER", "SWAP") else dice.randint(-1, 20)
        return Opt(op, dice.choice([*axes, 0, 1, 2]), other)
    return Opt(op, dice.choice([*axes, *STRANGE]), dice.choice([*axes, *STRANGE]))


def outcome(graph: UOp, opt: Opt, device: str) -> UOp | None:
    """Return what an opt makes of a kernel, None where it is refused; both ways must agree."""
    target = TARGETS[device]
    refusal = why_not(graph, opt, target)
    if refusal is None:
        candidate, named = apply_opt(graph, opt, target)
        assert why_not(graph, named, target) is None, "and by name it is legal too"
        assert apply_opt(graph, named, target) == (candidate, named)
        return candidate
    assert refusal.because and refusal.hint, f"{opt} is refused without a word: {refusal}"
    with pytest.raises(KernelOptError) as caught:
        apply_opt(graph, opt, target)
    error = caught.value
    assert (error.because, error.hint) == tuple(refusal) and error.what
    check_what_is_offered(graph, opt, refusal.hint, target)
    return None


@pytest.mark.timeout(600)
@pytest.mark.parametrize("device", TARGETS)
@pytest.mark.parametrize("name", FUZZED)
def test_what_is_refused_and_what_is_right(name: str, device: str) -> None:
    example = FUZZED[name]
    pairs = count(PAIRS) // len(FUZZED) // len(TARGETS)
    arrays = example.arrays(1)
    expected = example.wanted(arrays)
    legal = 0
    for walk in range(0, pairs, WALKS):
        dice = random.Random(f"{name} {device} {walk} {SEED}")
        graph, chosen = example.graph, list[Opt]()
        sensible = list(actions(graph, TARGETS[device]))
        for _ in range(min(WALKS, pairs - walk)):
            opt = drawn(graph, dice, sensible)
            try:
                candidate = outcome(graph, opt, device)
                if candidate is None:
                    continue
                legal += 1
                verify(candidate, "kernel")
                computes(candidate, expected, arrays, device, legal)
            except Exception as error:
                pytest.fail(f"{name} for {device}, {[*chosen, opt]}: {error!r}")
            if len(chosen) < MOST_OPTS and dice.random() < 0.3:
                graph, chosen = candidate, [*chosen, opt]
                sensible = list(actions(graph, TARGETS[device]))
    # about one draw in five is legal, but a single short walk may be unlucky
    assert legal >= max(1, pairs // 20), "too few were legal to mean anything"


def computes(graph: UOp, expected: Array, arrays: list[Array], device: str, number: int) -> None:
    """Fail unless the kernel computes `wanted`: run on its device now and then, else
    interpreted."""
    on_device = number % RUN_ON[device] == 0
    if device == "PYTHON" and on_device:
        counts = count_steps(lower(graph, TARGETS[device])[1], barriers=0, of_work_items=True)
        on_device = counts.loads + counts.stores <= MOST_EMULATED
    actual = run(graph, device, arrays) if on_device else interpreted(graph, arrays)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_walks_come_by_what_is_hard() -> None:
    """Legal draws of each op but GPUs'; padded reductions and fills; blocks turned in registers."""
    dice, ops = random.Random(2), set[str]()
    padded = {"REDUCE", "FILL", "GROUP_REDUCE", "LOCAL"}
    hard = {op.name for op in OptOps} - {"TC", "PIPELINE"} | {f"PADTO of {k}" for k in padded}
    hard.add("SHUFFLE")
    for name in [*reversed(FUZZED)] * 10:  # odd ones first
        ops |= walked(FUZZED[name].graph, dice)
        if ops >= hard:
            return
    pytest.fail(f"never met: {hard - ops}")


def walked(graph: UOp, dice: random.Random) -> set[str]:
    """Return what a walk comes by: legal ops, what PADTO pads, and shuffles at its end."""
    target, names = TARGETS["LLVM"], set[str]()
    for _ in range(WALKS // 2):
        opt = drawn(graph, dice, list(actions(graph, target)))
        if why_not(graph, opt, target) is None:
            before = ranges(graph)
            graph, named = apply_opt(graph, opt, target)
            names.add(named.op.name)
            if named.op is OptOps.PADTO:
                names.add(f"PADTO of {before[str(named.axis)].axis_kind.name}")
    shuffles = any(n.op is Ops.SHUFFLE for n in lower(graph, target)[1])
    return names | ({"SHUFFLE"} if shuffles else set())


def test_the_draws_are_many_and_of_all_kinds() -> None:
    dice = random.Random(0)
    graph = EXAMPLES["matmul_bias_relu"].graph
    sensible = list(actions(graph, TARGETS["LLVM"]))
    opts = [drawn(graph, dice, sensible) for _ in range(400)]
    assert {o.op for o in opts} == set(OptOps)
    legal = sum(why_not(graph, o, TARGETS["LLVM"]) is None for o in opts)
    assert 40 < legal < 360
    assert Device.available("LLVM") and (LONG or count(PAIRS) >= 1000)
