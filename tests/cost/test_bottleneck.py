"""What a kernel waits for, where the answer is plain: on a machine that is the same everywhere."""

from __future__ import annotations

import pytest

from tests.kernel.support import TARGET, array, cost_of, kernel_of, upcast
from workbench.cost.bottleneck import bottleneck
from workbench.ir.opt.opt import Opt, OptOps

MATMUL = lambda: array(96, 96) @ array(96, 96)  # noqa: E731

CASES = {
    "one sum": (
        MATMUL,
        (),
        "FMA latency: 1 independent accumulator, needs 8 in loop r0",
    ),
    "two sums": (
        MATMUL,
        (upcast("g0", 2),),
        "FMA latency: 2 independent accumulators, needs 8",
    ),
    "two vectors": (
        MATMUL,
        (upcast("g1", 16),),
        "FMA latency: 2 independent accumulators, needs 8",
    ),
    "6x16": (
        MATMUL,
        (upcast("g1", 16), upcast("g0", 6)),
        "arithmetic: nothing but 12 multiply-adds a step",
    ),
    "too large a tile": (
        MATMUL,
        (upcast("g1", 16), upcast("g0", 12)),
        "registers: 27 values at once, 16 registers: 11 go through memory in loop r0",
    ),
    "loads": (
        MATMUL,
        (upcast("g1", 8), upcast("g0", 12)),
        "load ports: 13 loads for 12 multiply-adds",
    ),
    "sum": (
        lambda: array(96, 96).sum(axis=1),
        (),
        "add latency: 1 independent accumulator",
    ),
    "memory": (lambda: array(1 << 22) + array(1 << 22), (), "memory: 64 MiB at the 12"),
    "L2": (
        lambda: array(1 << 15) + 1,
        (upcast("g0", 16),),
        "L2 bandwidth: 384 KiB at the 100 GB/s",
    ),
    "one number": (
        lambda: array(1 << 12).sin(),
        (),
        "no vector lanes: 1 element per instruction, a register holds 8",
    ),
    "little": (lambda: array(8) + array(8), (), "launch: it takes 1 µs, the work "),
}


@pytest.mark.parametrize("name", CASES)
def test_the_sentence(name: str) -> None:
    make, opts, sentence = CASES[name]
    answer = bottleneck(cost_of(kernel_of(make()), *opts), TARGET)
    assert str(answer).startswith(sentence), str(answer)


def test_a_launch_takes_no_longer_than_what_was_measured() -> None:
    cost = cost_of(kernel_of(array(8) + array(8)))
    assert str(bottleneck(cost, TARGET, 3e-6)).startswith("launch: it takes 1 µs, ")
    assert str(bottleneck(cost, TARGET, 0.7e-6)).startswith("launch: it takes 0.7 µs, ")
    threads = cost_of(kernel_of(array(64) + array(64)), Opt(OptOps.THREAD, "g0", 2))
    assert "takes 3.4 µs, " in str(bottleneck(threads, TARGET, 3.4e-6))


def test_threads_are_spoken_of() -> None:
    kernel = kernel_of(array(1 << 22) + array(1 << 22))
    answer = bottleneck(cost_of(kernel, Opt(OptOps.THREAD, "g0", 2)), TARGET)
    assert str(answer) == "memory: 64 MiB at the 16 GB/s of 2 threads"
