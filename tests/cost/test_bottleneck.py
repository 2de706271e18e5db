"""What a kernel waits for, where the answer is plain: on a machine that is the same everywhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.kernel.support import SPEEDS, TARGET, applied, array, cost_of, kernel_of, upcast
from workbench.base.target import Target
from workbench.cost.bottleneck import bottleneck
from workbench.cost.kernel_cost import Cost, cost
from workbench.ir.opt.opt import Opt, OptOps

MATMUL = lambda: array(96, 96) @ array(96, 96)  # noqa: E731

CASES = {
    "one sum": (MATMUL, (), "FMA latency: 1 independent accumulator, needs 8 in loop r0"),
    "two sums": (MATMUL, (upcast("g0", 2),), "FMA latency: 2 independent accumulators, needs 8"),
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
    "sum": (lambda: array(96, 96).sum(axis=1), (), "add latency: 1 independent accumulator"),
    "memory": (
        lambda: array(1 << 22) + array(1 << 22),
        (),
        "memory: 64 MiB at 16 GB/s, where reads alone come at 12",
    ),
    "L2": (
        lambda: array(1 << 15) + 1,
        (upcast("g0", 16),),
        "L2 bandwidth: 384 KiB at 150 GB/s, where reads alone come at 100",
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
    little = cost_of(kernel_of(array(8) + array(8)))
    assert str(bottleneck(little, TARGET, 3e-6)).startswith("launch: it takes 1 µs, ")
    assert str(bottleneck(little, TARGET, 0.7e-6)).startswith("launch: it takes 0.7 µs, ")
    threads = cost_of(kernel_of(array(64) + array(64)), Opt(OptOps.THREAD, "g0", 2))
    assert "takes 3.4 µs, " in str(bottleneck(threads, TARGET, 3.4e-6))


def test_threads_are_spoken_of() -> None:
    kernel = kernel_of(array(1 << 22) + array(1 << 22))
    answer = bottleneck(cost_of(kernel, Opt(OptOps.THREAD, "g0", 2)), TARGET)
    words = "memory: 64 MiB at 21.3 GB/s of 2 threads, where reads alone come at 16"
    assert str(answer) == words


def product(size: int, opts: tuple[Opt, ...] = (upcast("g1", 16), upcast("g0", 4))) -> Cost:
    kernel = kernel_of(array(size, size) @ array(size, size))
    return cost(applied(kernel, *opts), TARGET, FEW_SETS, kernel)


FEW_SETS = replace(
    SPEEDS, far={"L2": 90e9, "L3": 40e9, "memory": 2e9},
    in_sets={"1": 6e9, "2": 12e9, "4": 24e9},
)  # fmt: skip
"""A core that waits for a line before it asks for another one of the same set."""


PACKED = (
    upcast("g1", 16), upcast("g0", 4), Opt(OptOps.ORDER, "g1", "g0"),
    Opt(OptOps.STAGE, "g1", 2),
)  # fmt: skip


def test_a_panel_in_a_few_sets_is_a_wall_and_a_packed_one_is_none() -> None:
    """At the speed of streams such products were said to be held up by arithmetic, at half of the
    peak. Where no power of two divides a row, lines fall into all sets."""
    wall, next_to_it = (bottleneck(product(n), TARGET) for n in (512, 496))
    order = "runs of 64 bytes, 2,048 bytes apart, in 2 of the 64 sets of L1, wait for each other"
    assert wall.what == "L3 bandwidth" and order in wall.why
    assert "sets" not in next_to_it.why
    assert bottleneck(product(512, PACKED), TARGET).what == "arithmetic"


def test_sets_that_are_to_blame_are_named_with_what_would_move_without() -> None:
    """Column sums: 1,024 lines fall into 1 set of L1 and 16 of L2."""
    sums = kernel_of(array(1024, 1024).sum(axis=0))
    answer = bottleneck(cost(sums, TARGET, FEW_SETS, sums), TARGET)
    assert answer.what == "L3 bandwidth" and "64.1 MiB at 6.01 of the 50 GB/s" in answer.why
    assert "; 4.01 MiB if lines could lie anywhere in L2, not only in their set" in answer.why
    spread = kernel_of(array(1008, 1008).sum(axis=0))
    assert bottleneck(cost(spread, TARGET, FEW_SETS, spread), TARGET).what == "add latency"


def test_what_takes_nearly_as_long_is_told() -> None:
    assert "; the core takes " in bottleneck(product(496), TARGET).why
    assert "from L3 take" not in bottleneck(product(496, PACKED), TARGET).why


def test_a_time_that_nothing_explains_is_not_explained() -> None:
    """A product at 41 % of the peak was said to be held up by arithmetic."""
    packed = product(496, PACKED)
    for factor, words in (
        (0.6, "arithmetic: "), (1.4, "arithmetic: "),
        (2.0, "unexplained: 2 times as long as predicted, at 4"),
        (0.2, "unexplained: 5 times faster than predicted"),
    ):  # fmt: skip
        answer = bottleneck(packed, TARGET, factor * packed.predicted_s)
        assert str(answer).startswith(words), str(answer)
    slow = bottleneck(packed, TARGET, 2 * packed.predicted_s)
    assert "% of the peak" in slow.why and "not explained by arithmetic: " in slow.why


def test_accumulators_needed_go_by_the_width_of_the_code() -> None:
    """A core that begins two multiply-adds of up to 32 bytes in a cycle, and one of 64."""
    wide = Target("LLVM", vector_bytes=64, vector_registers=32)
    figures = replace(
        SPEEDS, cycle_s=0.25e-9, add_s=0.75e-9,
        each_s={"4": 0.125e-9, "32": 0.125e-9, "64": 0.25e-9},
    )  # fmt: skip
    plain = kernel_of(array(64, 512) @ array(512, 64))
    for opts, needed in (((), 8), ((upcast("g1", 8),), 8), ((upcast("g1", 16),), 4)):
        kernel = applied(plain, *opts)
        answer = bottleneck(cost(kernel, wide, figures, plain), wide)
        assert answer.what == "FMA latency" and f"needs {needed} in" in answer.why
    sums = kernel_of(array(4, 4096).sum(axis=1))
    assert "needs 6 in" in bottleneck(cost(sums, wide, figures), wide).why, "3 cycles, 2 in each"
