"""Copies that go on while a program does: a wait that is missing, or too short, is named."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

from tests.emulator.test_mutants import at, without
from tests.support import count
from workbench import Kernel, Opt, OptOps, Tensor, dtypes, emulate, explore
from workbench.base.errors import WorkbenchError
from workbench.emulator.findings import Finding
from workbench.ir.nest.accesses import async_stores
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

Program = tuple[UOp, ...]
FLOATS = (
    Opt(OptOps.LOCAL, "g0", 8), Opt(OptOps.LOCAL, "g1", 8), Opt(OptOps.SPLIT, "r0", 4),
    Opt(OptOps.ORDER, "r0", "l0"), Opt(OptOps.STAGE, "r0", 1), Opt(OptOps.STAGE, "r0", 2),
)  # fmt: skip
HALVES = (
    Opt(OptOps.TC, "g0 g1 r0", "16x8x16"), Opt(OptOps.LOCAL, "g0", 2), Opt(OptOps.SPLIT, "r0", 2),
    Opt(OptOps.ORDER, "r0", "l0"), Opt(OptOps.ORDER, "r1", "l0"), Opt(OptOps.STAGE, "r0", 1),
    Opt(OptOps.UPCAST, "a_r1", 8), Opt(OptOps.STAGE, "r0", 2),
)  # fmt: skip
KERNELS = {
    "floats, 2 buffers": (False, 2),
    "floats, 3 buffers": (False, 3),
    "floats, 4 buffers": (False, 4),
    "halves, 2 buffers": (True, 2),
    "halves, 3 buffers": (True, 3),
}
FAULTS = {
    "a count one too large": lambda p, n: counted(p, -1, n - 1),
    "a count of nine": lambda p, n: counted(p, -1, 9),
    "a barrier that waits for no copy": lambda p, n: counted(p, -1, None),
    "no barrier in the loop": lambda p, n: without(p, barriers(p)[-1]),
    "the barrier after the reads": lambda p, n: moved(p, barriers(p)[-1], last_read(p)),
    "no barrier before each of the first tiles": lambda p, n: without(p, barriers(p)[0]),
    "first tiles in one batch": lambda p, n: counted(p, 0, None),
    "a buffer filled that is read": lambda p, n: with_buffer(p, False, n),
    "a tile read a step too early": lambda p, n: with_buffer(p, True, 1),
}  # fmt: skip


@cache
def kernel(of_halves: bool, buffers: int, device: str = "CUDA:H100") -> Kernel:
    dice = np.random.default_rng(buffers)
    dtype = np.float16 if of_halves else np.float32
    shape = (32, 128) if of_halves else (16, 40)
    a = Tensor(dice.standard_normal(shape).astype(dtype))
    b = Tensor(dice.standard_normal((shape[1], shape[0] // 2)).astype(dtype))
    plain = explore(a @ b, device=device).kernels[-1]
    opts = HALVES if of_halves else FLOATS
    return plain.apply(*opts, Opt(OptOps.PIPELINE, "r0", buffers))


def barriers(linear: Program) -> list[int]:
    return at(linear, Ops.BARRIER)


def counted(linear: Program, which: int, batches: int | None) -> Program:
    place = barriers(linear)[which]
    return (*linear[:place], construct.barrier(batches), *linear[place + 1 :])


def moved(linear: Program, place: int, after: int) -> Program:
    rest = linear[place + 1 : after + 1]
    return (*linear[:place], *rest, linear[place], *linear[after + 1 :])


def last_read(linear: Program) -> int:
    """Return the place behind the reads that follow the last barrier, outside of their loops."""
    depth, end = 0, 0
    start = barriers(linear)[-1]
    for place, node in enumerate(linear[start:], start):
        depth += (node.op is Ops.LOOP) - (node.op is Ops.ENDLOOP)
        if depth == 0 and node.op in (Ops.ENDLOOP, Ops.WMMA):
            end = place
        if depth < 0:
            break
    return end


def with_buffer(linear: Program, of_reads: bool, later: int) -> Program:
    """Let each step of the loop read, or fill, the buffer of a step some steps `later`."""
    (axis,) = {n.axis for n in linear if n.op is Ops.LOOP and n.axis.axis_name == "r0"}
    numbers = [n for n in linear if n.op in (Ops.CMOD, Ops.AND) and axis in n.ranges]
    reads, fills = (next(n for n in numbers if (n.src[0] is axis) == r) for r in (True, False))
    old = reads if of_reads else fills
    new = old.replace(src=(axis + later, old.src[1]))
    return settled([n.substitute({old: new}) for n in linear])


def settled(linear: list[UOp]) -> Program:
    """Return a program in which each value stands before its use, once."""
    steps: list[UOp] = []
    opened: list[set[UOp]] = [set()]
    for node in linear:
        for value in node.toposort():
            known = any(value in scope for scope in opened)
            if value is not node and value.op not in STANDS and not known:
                steps.append(value)
                opened[-1].add(value)
        if node.dtype is not dtypes.void and any(node in scope for scope in opened):
            continue
        if node.op in (Ops.ENDLOOP, Ops.ENDIF):
            opened.pop()
        steps.append(node)
        opened[-1].add(node)
        if node.op in (Ops.LOOP, Ops.IF):
            opened.append(set())
    return tuple(steps)


STANDS = frozenset({Ops.CONST, Ops.RANGE, Ops.PARAM, Ops.DEFINE, Ops.REG, Ops.LANES, Ops.AFTER})


# the one tile that a kernel of two buffers fills before the loop needs no barrier of its own
CASES = [
    (name, fault)
    for name, (_, buffers) in KERNELS.items()
    for fault in FAULTS
    if buffers > 2 or "first" not in fault
]


@pytest.mark.parametrize(("name", "fault"), CASES)
def test_a_planted_fault_is_named(name: str, fault: str) -> None:
    """All 41 are, by the copy and the access, or as a race."""
    of_halves, buffers = KERNELS[name]
    right = kernel(of_halves, buffers)
    linear = emulate(right).linear
    findings = emulate(right, code=FAULTS[fault](linear, buffers)).findings
    kinds = {f.kind for f in findings}
    assert kinds & {"unfinished copy", "race"}, (kinds, findings[:1])
    if "count" in fault or "waits for no copy" in fault:
        assert "unfinished copy" in kinds


def test_who_reads_what_too_early_is_said() -> None:
    right = kernel(False, 3)
    wrong = counted(emulate(right).linear, -1, 2)
    trace = emulate(right, code=wrong, history=True)
    finding = trace.findings[0]
    assert str(finding) == (
        "unfinished copy: work-item (0, 0, 0) of group (0, 0, 0) reads As[0] before the copy that"
        " work-item (0, 0, 0) of group (0, 0, 0) began is complete: its last 2 batches may"
        " still be on the way"
    )
    assert trace.history is not None
    steps = trace.history.steps_of(finding)  # a barrier is between them
    assert [int(trace.history.positions[step]) for step in steps] == [*finding.positions]
    store, load = (wrong[position] for position in finding.positions)
    assert store in async_stores(wrong) and load.op is Ops.LOAD


def test_where_no_copy_goes_on_by_itself_a_count_says_nothing() -> None:
    right = kernel(False, 3, "HIP:MI300X")
    wrong = counted(emulate(right).linear, -1, 9)
    assert not emulate(right, code=wrong).findings


MACHINES = ("CUDA:H100", "CUDA:A100", "CUDA:RTX 4090", "HIP:MI300X", "METAL:M3")


def expression(dice: random.Random) -> Tensor:
    """Return a product, a window, or rows, of some dtype and odd sizes."""
    numbers = np.random.default_rng(dice.getrandbits(32))
    dtype = dice.choice([np.float32, np.float32, np.float16, np.int32])

    def array(*shape: int) -> Tensor:
        return Tensor((numbers.random(shape) * 8).astype(dtype))

    m, n, k = (dice.choice([8, 16, 24, 32, 33]) for _ in range(3))
    k *= dice.choice([1, 2, 4])
    kind = dice.randrange(6)
    if kind == 0:
        return (array(m, k) @ array(k, n)).relu()
    if kind == 1:
        return array(2, m, k) @ array(2, k, n)
    if kind == 2:
        return array(m, k) @ array(n, k).T + array(n)
    if kind == 3:
        return array(1, 4, 10, 10).conv2d(array(8, 4, 3, 3))
    if kind == 4:
        return array(m, k).sum(dice.choice([0, 1]))
    return array(m, k).cast(dtypes.float32).softmax(-1)


def variants(dice: random.Random) -> Iterator[Kernel]:
    """Yield a kernel with its default opts, some of them, or opts for tiles, and a few random legal
    ones; where that is legal, with tiles that are filled ahead."""
    kernel = explore(expression(dice), device=dice.choice(MACHINES)).kernels[-1]
    opts = [*kernel.optimized().applied_opts]
    if dice.random() < 0.5:
        opts = [*FLOATS] if kernel.original.op is Ops.SINK else opts
    opts = [o for o in opts if o.op is not OptOps.PIPELINE]
    opts += dice.sample([*kernel.legal_opts()], 1) if dice.random() < 0.3 else []
    for opt in opts:
        kernel = applied(kernel, opt)
    for _ in range(dice.randrange(3)):
        kernel = applied(kernel, dice.choice([*kernel.legal_opts()] or [opts[0]]))
    ahead = [o for o in kernel.legal_opts() if o.op is OptOps.PIPELINE]
    yield kernel.apply(dice.choice(ahead)) if ahead else kernel


def applied(kernel: Kernel, opt: Opt) -> Kernel:
    return kernel if kernel.why_not(opt) else kernel.apply(opt)


@pytest.mark.parametrize("block", range(count(25, 3)))
def test_right_programs_have_no_findings(block: int) -> None:
    ahead = ran = 0
    for seed in range(100 * block, 100 * block + count(20)):
        for variant in variants(random.Random(seed)):
            try:
                trace = emulate(variant)
            except WorkbenchError:
                continue  # too large for the machine, or too long
            found: tuple[Finding, ...] = trace.findings
            assert not found, (seed, variant.applied_opts, str(found[0]))
            ran += 1
            ahead += any(o.op is OptOps.PIPELINE for o in variant.applied_opts)
    assert ran >= count(20) // 2 and (ahead or count(20) < 20)
