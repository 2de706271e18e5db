"""Programs that the compiler wrote, each with one thing taken away or changed: what was needed is
named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.emulator.assembly import GPU
from tests.emulator.device import NAME
from tests.emulator.test_machine import product
from workbench import Kernel, Opt, OptOps, Tensor, emulate, explore
from workbench.base.dtypes import dtypes
from workbench.base.target import SHUFFLE_ALL
from workbench.emulator.steps import Trace
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

Program = tuple[UOp, ...]
WARPS = replace(GPU, shuffle_dtypes=SHUFFLE_ALL)
pytestmark = pytest.mark.usefixtures("device")
_BEGINS = (Ops.IF, Ops.LOOP)
_ENDS = (Ops.ENDIF, Ops.ENDLOOP)


def values(*shape: int) -> Tensor:
    rng = np.random.default_rng(0)
    array = rng.standard_normal(shape, dtype=np.float32)
    return Tensor(array, device=NAME).realize()


def default(tensor: Tensor) -> Kernel:
    return explore(tensor).kernels[-1].optimized()


def grouped(tensor: Tensor, *opts: Opt) -> Kernel:
    return explore(tensor).kernels[-1].apply(*opts)


KERNELS: dict[str, Callable[[], Kernel]] = {
    "tiled product": lambda: product(32)[0],
    "sum": lambda: grouped(values(4, 64).sum(1), Opt(OptOps.GROUP, "r0", 32)),
    "sum of all": lambda: grouped(values(1000).sum(), Opt(OptOps.GROUPTOP, "r0", 8)),
    "product": lambda: default(values(40, 40) @ values(40, 40)),
    "convolution": lambda: default(values(1, 3, 12, 12).conv2d(values(4, 3, 3, 3))),
    "softmax": lambda: default(values(8, 100).softmax()),
    "layer norm": lambda: default(values(8, 96).layernorm()),
    "variance": lambda: default(values(4, 200).var(1)),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_barrier_taken_away(name: str) -> None:
    """It is a race, or the compiler has put it where no access needs it, and nothing changes."""
    kernel = KERNELS[name]()
    linear = right(kernel).linear
    races, others = 0, 0
    for place in at(linear, Ops.BARRIER):
        findings = emulate(kernel, GPU, code=without(linear, place)).findings
        races += any(f.kind == "race" for f in findings)
        others += not findings
    assert races + others == len(at(linear, Ops.BARRIER))
    assert races > others


@pytest.mark.parametrize("name", KERNELS)
def test_a_guard_taken_away(name: str) -> None:
    kernel = KERNELS[name]()
    linear = right(kernel).linear
    for place in at(linear, Ops.IF):
        ends = [i for i in at(linear, Ops.ENDIF) if i > place]
        close = next(i for i in ends if linear[i].src == linear[place].src)
        changed = once(without(linear, place, close))
        assert emulate(kernel, GPU, code=changed).findings, (name, place)


@pytest.mark.parametrize("name", KERNELS)
def test_half_of_a_tile(name: str) -> None:
    kernel = KERNELS[name]()
    linear = right(kernel).linear
    for define in (n for n in linear if n.op is Ops.DEFINE and n.space == "shared"):
        rows, *rest = define.memory_shape
        shape = ((rows + 1) // 2, *rest) if rows > 1 else (1, *[n // 2 for n in rest])
        half = define.replace(arg=define.arg._replace(shape=shape))
        changed = tuple(n.substitute({define: half}) for n in linear)
        findings = emulate(kernel, GPU, code=changed).findings
        assert "out of bounds" in {f.kind for f in findings}


def right(kernel: Kernel) -> Trace:
    trace = emulate(kernel, GPU)
    assert not trace.findings, str(trace)
    return trace


def at(linear: Program, op: Ops) -> list[int]:
    return [place for place, node in enumerate(linear) if node.op is op]


def without(linear: Program, *places: int) -> Program:
    return tuple(n for i, n in enumerate(linear) if i not in places)


def once(linear: Program) -> Program:
    """Return a program without steps of a value that it has already, outside of IFs."""
    known: set[UOp] = set()
    steps: list[UOp] = []
    depth = 0
    for node in linear:
        if node.dtype is dtypes.void or node not in known:
            steps.append(node)
        depth += (node.op in _BEGINS) - (node.op in _ENDS)
        if not depth:
            known.add(node)
    return tuple(steps)


def summed(items: int, *more: Opt) -> Kernel:
    """Rows of parts of a sum, which warps combine."""
    rng = np.random.default_rng(0)
    array = rng.integers(1, 9, (4, 2 * items)).astype(np.float32)
    x = Tensor(array, device=NAME).realize()
    return grouped(x.sum(1), Opt(OptOps.GROUP, "r0", items), *more)


def shuffled(kernel: Kernel) -> Program:
    trace = emulate(kernel, WARPS)
    assert trace.shuffles and not trace.findings, str(trace)
    return trace.linear


def exchanged(linear: Program, place: int, distance: int) -> Program:
    """Return a program with a shuffle over another distance."""
    right = linear[place]
    wrong = right.replace(arg=distance)
    return tuple(n.substitute({right: wrong}) for n in linear)


def kinds(kernel: Kernel, code: Program) -> set[str]:
    return {f.kind for f in emulate(kernel, WARPS, code=code).findings}


def test_a_wrong_distance() -> None:
    """A lane adds what it has already, through two others, and never what is far from it."""
    kernel = summed(64)
    linear = shuffled(kernel)
    for place in at(linear, Ops.WARP_SHUFFLE):
        own = linear[place].arg
        one, other = [n for n in (16, 8, 4, 2, 1) if n != own][:2]
        assert kinds(kernel, exchanged(linear, place, one ^ other)) == {"wrong value"}


def test_a_distance_beyond_the_warp() -> None:
    kernel = summed(64)
    linear = shuffled(kernel)
    for place in at(linear, Ops.WARP_SHUFFLE):
        code = exchanged(linear, place, 32)
        first, *_ = emulate(kernel, WARPS, code=code).findings
        assert first.positions == (place,)
        assert str(first) == (
            "inactive lane: work-item (0, 0, 0) of group (0, 0, 0) takes the value of lane 32,"
            " and there is none"
        )


def test_a_distance_beyond_the_group() -> None:
    kernel = summed(16)
    linear = shuffled(kernel)
    place = at(linear, Ops.WARP_SHUFFLE)[0]
    assert "inactive lane" in kinds(kernel, exchanged(linear, place, 16))


def test_no_barrier_between_the_shuffles() -> None:
    """The second ones take what other warps store."""
    kernel = summed(256)
    linear = shuffled(kernel)
    (place,) = at(linear, Ops.BARRIER)
    findings = emulate(kernel, WARPS, code=without(linear, place)).findings
    race = next(f for f in findings if f.kind == "race")
    assert race.memory == "group0" and len(race.items) == 2


@pytest.mark.parametrize("first, kind", [(16, "partial warp"), (4, "inactive lane"), (32, "")])
def test_a_shuffle_in_a_branch(first: int, kind: str) -> None:
    """Of the 64 work-items the `first` do it, over 8 lanes: a whole warp may, half of one not."""
    kernel = summed(64)
    linear = shuffled(kernel)
    place = next(p for p in at(linear, Ops.WARP_SHUFFLE) if linear[p].arg == 8)
    axis = next(n.axis for n in linear if n.op is Ops.SPECIAL and n.role == "item")
    condition = axis < first
    begin = UOp(Ops.IF, dtypes.void, (condition,))
    end = UOp(Ops.ENDIF, dtypes.void, (condition,))
    step = [place, place + 1, place + 2]
    assert [linear[p].op for p in step[1:]] == [Ops.ADD, Ops.SET]
    inside = [linear[p] for p in step]
    code = (*linear[:place], condition, begin, *inside, end, *linear[step[-1] + 1 :])
    findings = emulate(kernel, WARPS, code=code).findings
    named = [f for f in findings if f.kind != "wrong value"]
    assert [f.kind for f in named] == ([kind] if kind else [])
    assert all(f.positions == (place + 2,) for f in named)
    assert len(findings) > len(named), "what the others have is wrong then"


def test_a_shuffle_of_what_nobody_wrote() -> None:
    """It comes from the lane that reads it, and is found where the result is stored."""
    kernel = summed(256)
    linear = shuffled(kernel)
    (cell,) = [p for p in at(linear, Ops.STORE) if linear[p].place.param.name == "group0"]
    findings = emulate(kernel, WARPS, code=without(linear, cell)).findings
    assert {f.kind for f in findings} >= {"unwritten"}
    assert next(f for f in findings if f.kind == "unwritten").memory == "group0"
