"""The beam search by itself, measured by a made-up machine that knows what is fast."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from tests.ir.opt.support import MATMUL, PRIME, apply, opt
from tests.search.support import seconds
from tests.tools.kernels import LLVM, matmul_bias_relu
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import why_not
from workbench.ir.opt.opt import axes
from workbench.search.beam import search
from workbench.search.moves import (
    Measured,
    Move,
    Patience,
    Problem,
    SearchOutcome,
    SearchStopped,
    applied,
    moves,
)

PLAIN = Move((), "start: plain")
TUNED = Move((opt("UPCAST", "g1", 4),), "start: tuned")


class Machine:
    """Measures by a formula, with noise if wanted."""

    def __init__(self, noise: float = 0.0, fails: Callable[[UOp], str] = lambda ast: ""):
        self.quick: list[UOp] = []
        self.thorough: list[UOp] = []
        self._dice, self._noise, self._fails = random.Random(0), noise, fails

    def __call__(
        self, against: UOp, kernels: Sequence[UOp], patience: Patience | None, thorough: bool
    ) -> Iterator[Measured]:
        for ast in kernels:
            (self.thorough if thorough else self.quick).append(ast)
            error = self._fails(ast)
            if error:
                yield Measured(error=error)
                continue
            took, other = self._noisy(ast), self._noisy(against)
            yield Measured(took, took / other, str(id(ast)))

    def _noisy(self, ast: UOp) -> float:
        return seconds(ast) * (1 + self._noise * self._dice.random())


def searched(
    machine: Machine,
    most: int = 60,
    kernel: UOp = MATMUL,
    starts: Sequence[Move] = (),
    problem: Problem = lambda ast: "",
) -> SearchOutcome:
    return search(
        kernel, starts or [PLAIN, TUNED], LLVM, machine, 2,
        is_over=lambda: len(machine.quick) >= most, problem=problem,
    )  # fmt: skip


class BusyMachine(Machine):
    """Other programs have the cores in every run of a kernel without opts."""

    def __call__(self, against: UOp, *asked: Any) -> Iterator[Measured]:
        for measured in super().__call__(against, *asked):
            yield replace(measured, is_sure=against is not MATMUL)


def test_how_many_times_as_fast_is_not_said_of_a_disturbed_start() -> None:
    result = searched(BusyMachine())
    assert result.best != 0 and result.speedup is None


def test_it_finds_what_is_fast_and_keeps_the_tree() -> None:
    machine = Machine()
    result = searched(machine)
    best = result.candidates[result.best]
    ast = applied(MATMUL, best.opts, LLVM)
    assert ast is not None and seconds(ast) == 1 / 8
    assert result.speedup == 8.0
    for trial in result.candidates[2:]:
        assert trial.parent is not None and trial.parent < trial.number
        assert trial.how and applied(MATMUL, trial.opts, LLVM) is not None
    assert [t.how for t in result.candidates[:2]] == ["start: plain", "start: tuned"]
    parents = {t.parent for t in result.candidates}
    assert {0, 1} <= parents, "both lines are followed"


def test_nothing_is_tried_twice() -> None:
    machine = Machine()
    searched(machine)
    assert len(machine.quick) == len(set(machine.quick))


def test_it_ends_when_nothing_is_left() -> None:
    small = matmul_bias_relu(1, 3, 1).graph
    result = searched(Machine(), most=10_000, kernel=small, starts=[PLAIN])
    assert result.ended == "nothing left to try" and len(result.candidates) > 3


@pytest.mark.parametrize("seed", range(5))
def test_noise_does_not_make_it_return_worse(seed: int) -> None:
    machine = Machine(noise=3.0)
    machine._dice.seed(seed)
    start = Move((opt("UPCAST", "g1", 8),), "start: best there is")
    result = searched(machine, starts=[start])
    ast = applied(MATMUL, result.candidates[result.best].opts, LLVM)
    assert ast is not None
    if result.best:  # it was measured against the start, last of all
        assert machine.thorough[-1] is ast
    else:
        assert result.speedup == 1.0


def test_a_start_that_is_best_is_returned() -> None:
    start = Move((opt("UPCAST", "g1", 8),), "start: best there is")
    result = searched(Machine(), starts=[start])
    assert result.best == 0 and result.speedup == 1.0


def test_what_fails_is_noted_and_the_search_goes_on() -> None:
    def fails(ast: UOp) -> str:
        return "it crashed" if len(axes(ast)) > len(axes(MATMUL)) + 1 else ""

    result = searched(Machine(fails=fails))
    notes = [t for t in result.candidates if t.note]
    assert notes and {t.note for t in notes} == {"it crashed"}
    assert all(t.seconds is None for t in notes)
    assert result.speedup == 8.0


@pytest.mark.parametrize("right", ["start", "slowest", "none"])
def test_a_wrong_answer_is_never_returned(right: str) -> None:
    """Whether the start is right, or only a candidate that is slower than it, or none is."""
    asked: list[UOp] = []

    def problem(ast: UOp) -> str:
        asked.append(ast)
        is_right = ast is MATMUL if right == "start" else seconds(ast) > seconds(MATMUL)
        return "" if is_right and right != "none" else "WRONG"

    result = searched(Machine(), starts=[PLAIN], problem=problem)
    best = result.candidates[result.best]
    assert any(t.note == "WRONG" for t in result.candidates) and asked
    if right == "start":
        assert result.best == 0 and result.speedup == 1.0 and not best.note
    elif right == "slowest":
        assert result.speedup is None
    else:
        assert result.best == 0 and result.speedup is None and best.note == "WRONG"


def test_if_the_start_cannot_be_measured_whatever_ran_is_better() -> None:
    result = searched(Machine(fails=lambda ast: "over time" if ast is MATMUL else ""))
    assert result.candidates[0].note == "over time" and result.speedup is None
    assert result.best != 0
    result = searched(Machine(fails=lambda ast: "over time"))
    assert result.best == 0 and result.speedup is None and len(result.candidates) == 2


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SearchStopped])
@pytest.mark.parametrize("after", [0, 1, 2, 30])
def test_it_can_be_stopped_at_any_time(stop: type[BaseException], after: int) -> None:
    class Stops(Machine):
        def __call__(
            self, against: UOp, kernels: Sequence[UOp], patience: Patience | None, thorough: bool
        ) -> Iterator[Measured]:
            if len(self.quick) >= after:
                raise stop
            return super().__call__(against, kernels, patience, thorough)

    result = searched(Stops())
    assert result.ended in ("interrupted", "stopped")
    timed = [t.seconds for t in result.candidates if t.seconds is not None]
    if after > 1:
        best = result.candidates[result.best].seconds
        assert best is not None and best <= min(timed) * 1.04


def test_moves_are_one_more_one_otherwise_or_one_less() -> None:
    opts = (opt("UPCAST", "g1", 4), opt("ORDER", "r0", "g1"), opt("UNROLL", "r0", 2))
    neighbours = list(moves(MATMUL, opts, apply(MATMUL, *opts), LLVM))
    listed = [move for move, _ in neighbours]
    assert all(applied(MATMUL, move.opts, LLVM) is ast for move, ast in neighbours)
    assert len({m.opts for m in listed}) == len(listed)
    lengths = [len(m.opts) for m in listed]
    assert {2, 3, 4} == set(lengths)
    for move in listed:
        if len(move.opts) == 4:
            assert move.opts[:3] == opts
            assert why_not(apply(MATMUL, *opts), move.opts[3], LLVM) is None
    early = {m.opts[-1].op.name for m in islice(listed, 20)}
    assert {"UPCAST", "ORDER", "STAGE", "UNROLL"} <= early, "a little of everything first"


def test_opts_that_no_longer_apply_are_no_move() -> None:
    assert applied(PRIME, (opt("UPCAST", "g0", 2),), LLVM) is None
    assert applied(PRIME, (opt("UPCAST", "g0", 0), opt("UPCAST", "g0", 7)), LLVM) is None
