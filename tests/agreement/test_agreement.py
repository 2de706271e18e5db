"""Random expressions agree with numpy on every device, as scheduled, as opted, as rewritten.

A failure prints its seed and a script to paste.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.agreement.expressions import Case, case
from tests.agreement.hunt import attempts, report
from tests.agreement.programs import Program, whole_program
from tests.ir.node.test_bounds import evaluate
from tests.support import LONG, count
from tests.tools.compiler import needs_c
from tests.tools.kernels import legal_opt
from workbench import Device, Kernel, dtypes
from workbench.backends.c.c_device import CProgram, compile_many
from workbench.backends.memory import Buffer
from workbench.backends.python.python_device import EmulatorProgram, render
from workbench.base.errors import CompileError
from workbench.base.trace import PassRecord, observe
from workbench.check.meanings import Meanings
from workbench.execution.buffers import memory_of
from workbench.execution.realize import planned
from workbench.ir.lower.lower import lower
from workbench.ir.meaning.interpret import interpret_kernel, interpret_tensor
from workbench.ir.nest.loops import kinds
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import replay
from workbench.ir.verify.verify import verify
from workbench.kernel.inputs import FromSchedule
from workbench.kernel.run import ScheduleRun
from workbench.pipeline import build
from workbench.search.realization import tuned

BLOCK = 20
# one start for all workers of a run, another one for the next run
RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(time.time())
START = random.Random(RUN).randrange(1 << 30) if LONG else 0
DEVICES = ("LLVM", "PYTHON")


def blocks(n_long: int, size: int = BLOCK) -> list[range]:
    """Return ranges of seeds: the same in every short run, new ones in each long run."""
    return [range(START + i, START + i + size) for i in range(0, count(n_long), size)]


# Of the branches in the package that 1,000 of them take, 300 take all but 1 in 140, and programs,
# which have more dtypes and ops, take more: a short run has 150 and 100 programs, and 50 of each on
# C, whose compiler takes longer than all else.
EXPRESSIONS = [
    *[(seeds, device) for seeds in blocks(10_000 if LONG else 1_500, 50) for device in DEVICES],
    *[pytest.param(seeds, "C", marks=needs_c) for seeds in blocks(10_000 if LONG else 500, 50)],
]
PROGRAMS = [
    *[(seeds, device) for seeds in blocks(10_000 if LONG else 1_000, 50) for device in DEVICES],
    *[pytest.param(seeds, "C", marks=needs_c) for seeds in blocks(10_000 if LONG else 500, 50)],
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("seeds", "device"), EXPRESSIONS, ids=str)
def test_expressions_agree_with_numpy(seeds: range, device: str) -> None:
    cases = [case(seed) for seed in seeds]
    compiled = _compiled_together(cases) if device == "C" else []
    for sample in cases:
        with _reported(sample, device):
            tensor, expected = sample.run(device)
            verify(tensor.uop, "tensor")
            actual = tensor.numpy()
            assert actual.shape == expected.shape
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=sample.tolerance())
    assert all(program.is_compiled for program in compiled)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("seeds", "device"), PROGRAMS, ids=str)
def test_programs_agree_with_numpy(seeds: range, device: str) -> None:
    """All dtypes and what is at their edges, with the default opts and random ones."""
    for attempt in attempts(seeds, device, "mixed"):
        if attempt.verdict or attempt.refusal:
            pytest.fail(report(attempt))


@contextmanager
def _reported(sample: Case, device: str) -> Iterator[None]:
    """Say which expression it was that failed, as a script to paste."""
    try:
        yield
    except Exception as error:
        pytest.fail(f"seed {sample.seed} on {device}: {error}\n\n{sample.script(device)}")


def _compiled_together(cases: list[Case]) -> list[CProgram]:
    """Compile the kernels of many expressions in one call of the C compiler.

    The programs must be held until the expressions run. Where one is refused, the expression
    meets it again by itself, and says its seed.
    """
    sources = []
    for sample in cases:
        with _reported(sample, "C"):
            items = planned([sample.run("C")[0].uop])[0].items
            kernels = [item.kernel for item in items if item.kernel is not None]
            sources += [build(tuned(kernel, "C"), "C").source for kernel in kernels]
    try:
        return compile_many(sources)
    except CompileError:
        return []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seeds", blocks(600), ids=str)
def test_random_opts_and_loop_orders_agree(seeds: range) -> None:
    for seed in seeds:
        sample = drawn(seed)
        with observe() as watching:
            schedule, outputs = planned([sample.run("LLVM")[0].uop])
        items = schedule.items
        run = ScheduleRun(items, Meanings(watching.records, outputs), tuned)
        dice = random.Random(seed)
        for number, item in enumerate(items):
            if item.kernel is not None:
                shapes = tuple(node.shape for node in item.nodes)
                data = FromSchedule(run, number)
                plain = Kernel(item.kernel, item.kernel, data, shapes)
                _opts_agree(plain, dice, sample)


def drawn(seed: int) -> Case | Program:
    """Return a random expression, or as often a program of all dtypes but floats."""
    return whole_program(seed) if seed % 2 else case(seed)


def _opts_agree(plain: Kernel, dice: random.Random, sample: Case | Program) -> None:
    target = Device["LLVM"].target
    opted = plain
    for _ in range(dice.randint(0, 4)):
        opt = legal_opt(opted.ast, dice, target)
        if opt is not None:
            opted = opted.apply(opt)
    order = list(opted.order)
    if dice.random() < 0.5:
        dice.shuffle(order)
        info = opted.ast.arg._replace(order=tuple(order))
        opted = replace(opted, ast=kinds(opted.ast.replace(arg=info)))
    try:
        verify(opted.ast, "kernel")
        lowered, linear = lower(opted.ast, target)
        verify(lowered, "lowered")
        verify(linear, "linear")
        for device in DEVICES:
            result = opted.check(device)
            assert result.ok, f"{device}: {result}"
    except Exception as error:
        pytest.fail(
            f"seed {sample.seed}, {opted.applied_opts}, order {order}: {error}\n\n"
            f"{plain.to_python()}\n{sample.script()}"
        )


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seeds", blocks(400), ids=str)
def test_every_match_keeps_the_value(seeds: range) -> None:
    """Each state of each rewrite pass computes what the state before it computes."""
    for seed in seeds:
        sample = drawn(seed)
        tensor, _ = sample.run("LLVM")
        with observe() as watching:
            items = planned([tensor.uop])[0].items
        for record in watching.records:
            if record.name == "simplify-tensor":
                _tensor_matches_agree(record, sample)
            elif record.name == "simplify-kernel":
                _kernel_states_agree(record, sample)
            elif record.name == "simplify-index":
                _indexes_agree(record, sample)
        for item in items[-1:]:
            if item.kernel is not None and seed % 5 == 0:
                _lowered_states_agree(item.kernel, sample)


def _tensor_matches_agree(record: PassRecord, sample: Case | Program) -> None:
    for match in record.matches:
        if match.before.op is Ops.SINK or match.before.op is Ops.COPY:
            continue
        want = interpret_tensor(match.before, _held(match.before))
        actual = interpret_tensor(match.after, _held(match.after))
        same(actual, want, f"rule {match.rule}", sample)


def _held(root: UOp) -> dict[UOp, Any]:
    buffers = [n for n in root.toposort() if n.op is Ops.BUFFER]
    return {n: memory_of(n).array.reshape(n.shape) for n in buffers}


def _kernel_states_agree(record: PassRecord, sample: Case | Program) -> None:
    inputs = _inputs(record.before)
    want = interpret_kernel(record.before, inputs)[0]
    for number in range(1, len(record.matches) + 1):
        state = replay(record.before, record.matches, number)
        if number < len(record.matches) and state.op is not Ops.SINK:
            continue
        rule = record.matches[number - 1].rule
        same(interpret_kernel(_ordered(state), inputs)[0], want, f"rule {rule}", sample)
    assert replay(record.before, record.matches) is record.after


def _indexes_agree(record: PassRecord, sample: Case | Program) -> None:
    """At any point of their ranges, what was rewritten and what it became are the same number."""
    assert record.parent in ("decide", "rangeify")
    assert replay(record.before, record.matches) is record.after
    dice = random.Random(sample.seed)
    pairs = zip(record.before.src, record.after.src, strict=True)
    rules = [(m.before, m.after) for m in record.matches]
    for before, after in (*pairs, *rules):
        for _ in range(20):
            point = {r: dice.randrange(r.extent) for r in before.ranges}
            assert evaluate(after, point) == evaluate(before, point), (before, after)


def _ordered(state: UOp) -> UOp:
    """Drop axes that a rewrite has made needless from the loop order."""
    present = {n.axis_name for n in state.toposort() if n.op is Ops.RANGE}
    order = tuple(n for n in state.arg.order if n in present)
    return state.replace(arg=state.arg._replace(order=order))


def _inputs(kernel: UOp) -> list[Any]:
    generator = np.random.default_rng(7)
    params = sorted((n for n in kernel.toposort() if n.op is Ops.PARAM), key=lambda n: n.arg[0])
    arrays = []
    for param in params:
        values = generator.integers(-9, 10, param.arg[1])
        arrays.append((values % 2 if param.dtype.is_bool else values).astype(param.dtype.numpy))
    return arrays


def _lowered_states_agree(kernel: UOp, sample: Case | Program) -> None:
    with observe() as watching:
        lower(kernel, Device["LLVM"].target)
    record = next(r for r in watching.records if r.name == "decompose")
    want = _emulated(record.before)
    for number in range(1, len(record.matches) + 1):
        state = replay(record.before, record.matches, number)
        same(_emulated(state), want, f"rule {record.matches[number - 1].rule}", sample)


def _emulated(block: UOp) -> Any:
    source = render(block)
    buffers = []
    for array, (_, size) in zip(_inputs(block), source.params, strict=True):
        buffer = Buffer("PYTHON", _dtype(array), max(size, array.size))
        buffer.array[:] = array
        buffers.append(buffer)
    EmulatorProgram(source)(buffers)
    return buffers[0].array


def _dtype(array: Any) -> Any:
    return dtypes.from_numpy(array.dtype)


def same(actual: Any, want: Any, what: str, sample: Case | Program) -> None:
    with np.errstate(all="ignore"):
        close = np.allclose(actual, want, rtol=2e-5, atol=sample.tolerance(), equal_nan=True)
    if not close:
        pytest.fail(
            f"{what} changes the value, seed {sample.seed}\n{actual}\n{want}\n{sample.script()}"
        )
