"""Rounds of a loop at once: what they compute, count and find is what they do step by step."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.emulator import defects
from tests.emulator.assembly import GPU
from tests.emulator.test_mutants import once, without
from tests.support import count
from workbench import Kernel, Tensor, dtypes, emulate, explore
from workbench.emulator.checks import STEP_S, emulation_s, repeats, rounds_at_once
from workbench.emulator.emulate import _program
from workbench.emulator.machine import Machine
from workbench.emulator.program import _memory
from workbench.emulator.rounds import Rounds
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import legal_opts
from workbench.ir.opt.heuristic.default_opts import heuristic

Array = np.ndarray[Any, Any]
Program = tuple[UOp, ...]


def drawn(dice: random.Random, *shape: int) -> Tensor:
    kind = dice.choice([dtypes.float32, dtypes.float32, dtypes.float16, dtypes.int32, dtypes.int8])
    array = np.random.default_rng(dice.randint(0, 99)).integers(-9, 10, shape)
    return Tensor(array.astype(np.float32) / (4 if kind.is_float else 1)).cast(kind).realize()


VALUES: list[Callable[[random.Random], Tensor]] = [
    lambda d: drawn(d, d.randint(1, 5), d.randint(1, 40)).sum(d.randint(0, 1)),
    lambda d: drawn(d, d.randint(1, 5), d.randint(4, 40)).max(1),
    lambda d: drawn(d, d.randint(1, 4), d.randint(4, 50)).float().softmax(),
    lambda d: drawn(d, d.randint(1, 4), d.randint(4, 50)).float().layernorm(),
    lambda d: drawn(d, 3, d.randint(4, 30)).cumsum(1),
    lambda d: (lambda k: drawn(d, 5, k) @ drawn(d, k, d.randint(1, 20)))(d.randint(4, 40)),
    lambda d: drawn(d, 1, 3, 9, 9).conv2d(drawn(d, 4, 3, 3, 3), padding=d.randint(0, 1)),
    lambda d: drawn(d, d.randint(4, 20), d.randint(4, 20)).T.contiguous(),
    lambda d: drawn(d, d.randint(1, 6), d.randint(4, 30)).float().sigmoid().prod(1),
    lambda d: drawn(d, 4, d.randint(4, 30)).argmax(1),
    lambda d: drawn(d, 20)[Tensor([d.randint(0, 19) for _ in range(12)])],
    lambda d: drawn(d, 3, d.randint(4, 30)).pad(((0, 0), (2, 1))).sum(1),
]


def kernel_of(dice: random.Random) -> Kernel:
    """Return a kernel: plain, with default opts, or with legal ones that are drawn."""
    kernels: Sequence[Kernel] = ()
    while not kernels:  # a value of one element may need none
        kernels = explore(dice.choice(VALUES)(dice)).kernels
    kernel = dice.choice(kernels)
    how = dice.choice(["plain", "default", "drawn"])
    if how == "default":
        return kernel.apply(*heuristic(kernel.original, GPU)[1])
    for _ in range(dice.randint(1, 3) if how == "drawn" else 0):
        offers = legal_opts(kernel.ast, GPU)
        kernel = kernel.apply(*[dice.choice(offers)] if offers else [])
    return kernel


def broken(linear: Program, dice: random.Random) -> Program:
    """Return a program with a step taken away: what a round then reads, or writes, depends on the
    others."""
    kinds = Ops.BARRIER, Ops.STORE, Ops.SET
    places = [p for p, node in enumerate(linear) if node.op in kinds]
    return once(without(linear, dice.choice(places)))


def run(linear: Program, arrays: Sequence[Array], batches: bool, **how: Any) -> tuple[Any, ...]:
    """Return all that a run leaves; of a NaN not its sign, which numpy itself does not keep."""
    memory = [array.copy() for array in arrays]
    machine = Machine(linear, memory, GPU, batches=batches, **how)
    machine.run()
    totals, counts = machine.totals, machine.memory.counts
    logs = [(w.items.tolist(), w.positions.tolist()) for w in logs_of(machine, len(memory))]
    contents = [np.where(array == array, array, 0).tobytes() for array in memory]
    return totals, counts, machine.findings.all, logs, contents


def logs_of(machine: Machine, slots: int) -> list[Any]:
    logs = [machine.memory.writes(slot) for slot in range(slots)]
    return [log for log in logs if log is not None]


def check(linear: Program, arrays: Sequence[Array], **how: Any) -> None:
    together, alone = (run(linear, arrays, batches, **how) for batches in (True, False))
    for one, other in zip(together, alone, strict=True):
        assert one == other


def arguments(kernel: Kernel) -> tuple[Program, list[Array], frozenset[int]]:
    linear, arrays, fresh = _program(kernel, GPU)
    copies = [array.copy() for array in arrays]
    return linear, _memory(linear, copies, GPU), fresh


def test_random_kernels() -> None:
    for seed in range(count(170)):
        dice = random.Random(seed)
        linear, arrays, fresh = arguments(kernel_of(dice))
        most = dice.choice([1, 40, 1 << 14])
        print(seed)
        check(linear, arrays, fresh=fresh, lanes_at_once=most)
        check(broken(linear, dice), arrays, fresh=fresh, lanes_at_once=most)


@pytest.mark.parametrize("defect", defects.DEFECTS, ids=lambda d: d.name)
def test_planted_defects(defect: defects.Defect) -> None:
    program, output, inputs, is_fresh = defects.kernel_of(defect.kernel, defect.choices)
    arrays = [np.zeros_like(output), *inputs]
    arrays = [array.ravel() for array in arrays]
    check(program.steps, arrays, fresh=frozenset({0} if is_fresh else ()))


def test_long_rows_take_no_longer_than_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rounds of a row are a few steps of numpy's."""
    x = Tensor(np.ones((1, 4096), np.float32)).realize()
    kernel = explore(x.softmax()).kernels[-1]
    steps = list[int]()
    computed = Machine._step

    def note(machine: Machine, position: int, node: UOp) -> None:
        steps.append(position)
        computed(machine, position, node)

    monkeypatch.setattr(Machine, "_step", note)
    trace = emulate(kernel, GPU)
    assert len(steps) < 200 and not trace.findings
    assert max(trace.executed.values()) == 4096
    np.testing.assert_allclose(trace.outputs[0], 1 / 4096, rtol=1e-5)
    steps.clear()
    assert emulate(kernel, GPU, history=True).history is not None
    assert len(steps) > 4096, "who steps sees each round"


def test_what_is_expected_to_run_at_once_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of a program's duration before it runs counts as many rounds at once."""
    done: dict[int, int] = {}
    run_rounds = Rounds.run

    def note(rounds: Rounds) -> bool:
        is_regular = run_rounds(rounds)
        done.setdefault(rounds.plan.begin - 1, rounds.count if is_regular else 1)
        return is_regular

    monkeypatch.setattr(Rounds, "run", note)
    seen = 0
    for seed in range(count(170)):
        linear, arrays, fresh = arguments(kernel_of(random.Random(seed)))
        print(seed)
        machine = Machine(linear, arrays, GPU, fresh)
        machine.run()
        items = min(math.prod([*machine.launch.grid, *machine.launch.group]), 1 << 14)
        expected = rounds_at_once(linear, items)
        loops = {p: r for p, r in expected.items() if linear[p].op is Ops.LOOP}
        assert {p: r for p, r in loops.items() if r > 1 and p in done} == done
        seen += len(done)
        done.clear()
    assert seen


def test_a_long_row_is_expected_to_take_little() -> None:
    row = explore(Tensor(np.ones((1, 8192), np.float32)).softmax()).kernels[-1]
    linear = arguments(row)[0]
    steps = sum(times for _, times in repeats(linear))
    assert emulation_s(linear) < steps * STEP_S / 20
