"""Oclgrind, another program by other people, agrees with the emulator on planted defects."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from tests.backends.oclgrind.support import need_simulator
from tests.emulator.assembly import GPU
from tests.emulator.defects import DEFECTS, RIGHT, SLOW, Defect, kernel_of
from tests.emulator.device import Emulated, registered
from tests.emulator.kernels import Array, Handwritten
from tests.emulator.test_mutants import KERNELS, Program, at, right, without
from tests.support import LONG, count
from workbench import emulate
from workbench.backends.c_like.render import render
from workbench.backends.device import Device
from workbench.backends.gpu.cpp import OpenCLC
from workbench.backends.oclgrind.oclgrind_device import Simulation, findings, simulated
from workbench.backends.program.launch import grid_size, group_size
from workbench.ir.node.ops import Ops

UNSEEN = {
    "all work-items write the sum": "the same value, written twice, is no race to it",
    "added to an output that nobody cleared": "memory has zeros when a kernel begins",
    "read by one round too few": "it does not know which elements a kernel should write",
    "an accumulator that nobody sets": "the renderer refuses to write it",
}
"""What Oclgrind does not see, beside right programs that compute something else."""
VISIBLE = [d for d in DEFECTS if d.kind not in (*SLOW, "wrong value")]
SEEN = [d for d in VISIBLE if d.name not in UNSEEN]


@pytest.fixture(scope="module")
def device() -> Iterator[Emulated]:
    with registered() as emulator:
        yield emulator


def test_defects() -> None:
    need_simulator()
    assert len(SEEN) >= 40 and len(VISIBLE) - len(SEEN) == len(UNSEEN)
    for defect in random.Random(0).sample(SEEN, count(len(SEEN))):
        _agrees(defect)


def _agrees(defect: Defect) -> None:
    """After a race, or a barrier that not all come to, others may follow, each by its own order."""
    written = kernel_of(defect.kernel, defect.choices)
    kinds, _ = simulation(written)
    assert defect.kind in kinds, defect.name
    assert kinds & {f.kind for f in written.run().findings}, defect.name


@pytest.mark.parametrize("kernel, choices", RIGHT[:: 1 if count(10) > 1 else 4])
def test_right_kernels(kernel: str, choices: dict[str, object]) -> None:
    need_simulator()
    written = kernel_of(kernel, choices)
    kinds, output = simulation(written)
    assert kinds == set()
    expected = written.output.ravel()
    np.testing.assert_allclose(output, expected, rtol=1e-4)


@pytest.mark.parametrize("name", [*KERNELS] if LONG else ["sum", "convolution"])
def test_barriers_of_compiled_kernels(name: str, device: Emulated) -> None:
    """Whether one may be taken away, both say of each."""
    need_simulator()
    kernel = KERNELS[name]()
    linear = right(kernel).linear
    buffers = kernel.data.buffers(kernel.original, Device.emulator.name)
    arrays = [buffer.array for buffer in buffers]
    assert simulated_kinds(linear, arrays)[0] == set()
    for place in at(linear, Ops.BARRIER):
        changed = without(linear, place)
        kinds, _ = simulated_kinds(changed, arrays)
        findings = emulate(kernel, GPU, code=changed).findings
        assert ("race" in kinds) == any(f.kind == "race" for f in findings), place


def simulation(written: Handwritten) -> tuple[set[str], Array]:
    """Return what kinds of findings Oclgrind has of a kernel, and its output."""
    output = np.zeros_like(written.output)
    return simulated_kinds(tuple(written.program.steps), (output, *written.inputs))


def simulated_kinds(steps: Program, arrays: Sequence[Array]) -> tuple[set[str], Array]:
    """Return what kinds of findings Oclgrind has of a program in OpenCL C, and param 0 after it."""
    source = render(OpenCLC(), steps[0], steps, GPU)
    arguments = [a.tobytes() for a in arrays]
    group = group_size(source.launch)
    items = tuple(n * m for n, m in zip(grid_size(source.launch), group, strict=True))
    request = Simulation(source.text, source.name, arguments, items, group)
    after, report, _ = simulated(request)
    kinds = {finding.kind for finding in findings(report)}
    return kinds, np.frombuffer(after[0], arrays[0].dtype)
