"""The text of a kernel, read by the emulator, computes what the kernel's own program computes, in
every language; without one of its barriers a race is named."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.agreement.programs import program
from tests.emulator.test_copies import kernel as pipelined
from tests.emulator.test_machine import TILED, product
from tests.support import count
from workbench import Kernel, Tensor, emulate, explore
from workbench.base.errors import LanguageError, WorkbenchError
from workbench.emulator.steps import Trace
from workbench.ir.meaning import closeness

MACHINES = ["CUDA:H100", "HIP:MI300X", "WEBGPU:BROWSER", "OPENCL:Iris Xe", "METAL:M3"]
BARRIER = re.compile(
    r"(?:__syncthreads\(\)|workgroupBarrier\(\)|barrier\(CLK_LOCAL_MEM_FENCE\)"
    r"|threadgroup_barrier\(mem_flags::mem_threadgroup\));"
)
ACCURATE = 4
"""Limits of rounding: sums of floats are added in another order."""


def require_alike(trace: Trace, expected: Trace, note: object) -> None:
    """Assert that a run has no defect, and the outputs of another run."""
    assert not trace.findings, (note, trace.with_lines(trace.findings[0]))
    assert trace.outputs.keys() == expected.outputs.keys(), note
    for slot, right in expected.outputs.items():
        errors = closeness.errors(trace.outputs[slot], right)
        limit = ACCURATE * closeness.limit_of(trace.outputs[slot], right)
        assert not (errors > limit).any(), (note, slot)


def kernels_of(seed: int, machine: str) -> Iterator[Kernel]:
    """Yield kernels of a random program with opts for a machine."""
    dice = random.Random(seed)
    for kernel in explore(program(seed).tensor("LLVM")).kernels[:2]:
        there = kernel.on(machine).kernel
        if dice.random() < 0.6:
            yield there.optimized()
            continue
        for _ in range(3):
            legal = list(there.legal_opts())
            there = there.apply(dice.choice(legal)) if legal else there
        yield there


@pytest.mark.parametrize("machine", MACHINES)
def test_random_kernels(machine: str) -> None:
    tried = 0
    for seed in range(count(120, 8)):
        for kernel in kernels_of(seed, machine):
            try:
                text, expected = kernel.code_for(machine), emulate(kernel, machine)
            except (LanguageError, WorkbenchError) as refusal:
                assert refusal.because
                continue
            require_alike(emulate(kernel, machine, code=text), expected, (seed, machine))
            tried += 1
    assert tried > count(120, 8) // 2


def floats(*shape: int) -> Tensor:
    dice = np.random.default_rng(sum(shape))
    return Tensor(dice.normal(size=shape).astype(np.float32)).realize()


def halves(*shape: int) -> Tensor:
    return floats(*shape).cast("float16").realize()


MODELS = {
    "products of floats": lambda: floats(32, 32) @ floats(32, 48),
    "tensor cores": lambda: halves(32, 32) @ halves(32, 32),
    "softmax": lambda: floats(8, 64).softmax(),
    "sums of rows": lambda: floats(4, 256).sum(axis=1),
    "convolution": lambda: floats(1, 2, 8, 8).conv2d(floats(4, 2, 3, 3)),
    "layer norm": lambda: floats(4, 64).layernorm(),
    "bools": lambda: floats(33) > 0,
    "sines": lambda: floats(40).sin() + floats(40).log2(),
    "integers of 64 bits": lambda: (floats(20) * 100).cast("int64") // 7,
    "bytes": lambda: (floats(21) * 10).cast("int8") + 3,
}  # fmt: skip


@pytest.mark.parametrize("machine", MACHINES)
def test_kernels_of_models_with_the_default_opts(machine: str) -> None:
    refused = []
    for name, make in MODELS.items():
        kernel = explore(make()).kernels[-1].on(machine).kernel.optimized()
        try:
            text = kernel.code_for(machine)
        except LanguageError:
            refused.append(name)
            continue
        expected = emulate(kernel, machine)
        trace = emulate(kernel, machine, code=text)
        require_alike(trace, expected, (name, machine))
        assert trace.launch.grid == expected.launch.grid, name
        assert sum(trace.barriers.values()) == sum(expected.barriers.values()), name
        own, other = trace.total("global"), expected.total("global")
        assert own.bytes_wanted >= other.bytes_wanted or machine == "WEBGPU:BROWSER", name
    assert len(refused) <= 2, refused


WITH_CORES = ["HIP:MI300X", "CUDA:H100", "CUDA:A100", "CUDA:RTX 4090", "METAL:M3"]
CHANGED = {
    "a constant": (re.compile(r"(max_float\d+\(.*?), 0\.0f\)"), r"\1, 0.5f)"),
    "an index": (re.compile(r"\(lane & \d+\)"), "(lane & 0)"),
}


@pytest.mark.parametrize("of_halves", [False, True])
@pytest.mark.parametrize("machine", WITH_CORES)
def test_edited_products_of_tensor_cores(machine: str, of_halves: bool) -> None:
    """Tiles without a line of their own have names in each step, too."""
    if not of_halves and machine.startswith("CUDA"):
        pytest.skip("its tensor cores have no float32")
    make = halves if of_halves else floats
    graph = (make(48, 32) @ make(32, 48)).relu()
    kernel = explore(graph).kernels[-1].on(machine).kernel.optimized()
    text, expected = kernel.code_for(machine), emulate(kernel, machine)
    renamed = re.sub(r"\bacc2\b", "total", text)
    assert "wmma_" in text and renamed != text
    for code in (text, renamed):
        trace = emulate(kernel, machine, code=code, history=True)
        require_alike(trace, expected, machine)
        assert trace.history is not None
        assert trace.history.names.keys() >= trace.history.values.keys()
        held = trace.step(-1).registers(0).keys()
        assert "left" in held or any(name.startswith("A of ") for name in held), held
    for what, (pattern, other) in CHANGED.items():
        changed = pattern.sub(other, text)
        assert changed != text, what
        trace = emulate(kernel, machine, code=changed, history=True)
        assert trace.findings and str(trace.step(-1)), what


def test_a_fault_of_the_emulator_is_named_with_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, _ = product(32)
    text = kernel.code_for("CUDA:H100")

    def fails(*_: object) -> None:
        raise KeyError("a value")

    with monkeypatch.context() as patch:
        patch.setattr("workbench.emulator.machine.computed", fails)
        with pytest.raises(WorkbenchError, match="cannot run this program") as raised:
            emulate(kernel, "CUDA:H100", code=text)
        line = raised.value.line
        words = f"KeyError: 'a value': it is at line {line}, "
        assert line and words in raised.value.because, raised.value
    with monkeypatch.context() as patch:
        patch.setattr("workbench.emulator.source.calls.CallTranslation.call", fails)
        with pytest.raises(WorkbenchError, match="cannot read this") as raised:
            emulate(kernel, "CUDA:H100", code=text)
        line = raised.value.line
        assert line is not None and "(" in text.split("\n")[line - 1]


@pytest.mark.parametrize("machine", MACHINES)
def test_each_barrier_of_a_tiled_product_is_needed(machine: str) -> None:
    kernel, _ = product(32)
    text = kernel.code_for(machine)
    barriers = list(BARRIER.finditer(text))
    assert len(barriers) == 2
    for place in barriers:
        line = text.count("\n", 0, place.start()) + 1
        trace = emulate(kernel, machine, code=text[: place.start()] + text[place.end() :])
        assert {f.kind for f in trace.findings} == {"race"}, line
        for finding in trace.findings:
            lines = trace.numbers(finding)
            assert len(lines) == 2 and all("s[" in text.split("\n")[n - 1] for n in lines)
            assert f"  line {lines[0]}:  " in trace.with_lines(finding)


def test_every_barrier_of_sums_that_a_group_shares() -> None:
    """By a tree in shared memory, over several warps."""
    kernel = explore(floats(2, 4096).sum(axis=1)).kernels[-1].on("CUDA:H100").kernel.optimized()
    text = kernel.code_for("CUDA:H100")
    barriers = list(BARRIER.finditer(text))
    assert barriers and not emulate(kernel, "CUDA:H100", code=text).findings
    for place in barriers:
        trace = emulate(kernel, "CUDA:H100", code=text[: place.start()] + text[place.end() :])
        kinds = {f.kind for f in trace.findings}
        assert kinds & {"race", "unwritten"}, text.count("\n", 0, place.start()) + 1


def test_asynchronous_copies_and_a_wait_that_is_too_short() -> None:
    for of_halves, buffers in ((False, 2), (True, 3)):
        kernel = pipelined(of_halves, buffers)
        text = kernel.code_for("CUDA:H100")
        trace = emulate(kernel, "CUDA:H100", code=text)
        require_alike(trace, emulate(kernel, "CUDA:H100"), (of_halves, buffers))
        short = re.sub(r"wait_group \d", f"wait_group {buffers}", text)
        assert short != text
        kinds = {f.kind for f in emulate(kernel, "CUDA:H100", code=short).findings}
        assert "unfinished copy" in kinds


def test_steps_are_those_of_the_text() -> None:
    kernel, _ = product(32)
    text = kernel.code_for("CUDA:H100")
    trace = emulate(kernel, "CUDA:H100", code=text, history=True)
    assert trace.history is not None
    step = trace.step(-1)
    assert step.line.text == text.split("\n")[step.line.number - 1].strip()
    held: dict[str, Any] = trace.step(100).registers(17)
    assert (held["l1"], held["l0"], held["g0"]) == (1, 1, 0) and "acc2" in held
    assert TILED and trace.step(100).rounds.keys() == {"r0", "r1"}
