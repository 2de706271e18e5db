"""Programs that the compiler wrote, each with one thing taken away or changed: what was needed is
named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.emulator.assembly import GPU
from tests.emulator.device import NAME
from tests.emulator.test_machine import product
from workbench import Kernel, Opt, OptOps, Tensor, emulate, explore
from workbench.base.dtypes import dtypes
from workbench.emulator.trace import Trace
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

Program = tuple[UOp, ...]
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
