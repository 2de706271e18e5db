"""The moves of a search: add an opt, change one opt of the list, or remove it.

Opts to add come in an order that tries each kind and axis early: one of each in turn, medium
amounts before small and large ones.

Sections: The moves of a search; The values of a search; The ranking of candidates by a model,
for machines on which they cannot run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple, Protocol

from workbench.base.errors import WorkbenchError
from workbench.base.target import Target
from workbench.cost.predicted_cost import predicted_cost
from workbench.ir.node.uop import UOp
from workbench.ir.opt.apply import actions, apply_if_legal, resolve
from workbench.ir.opt.opt import Opt, OptKind
from workbench.kernel.compiled import compiled_registers

# --------------------------------------------------------------------------------------------------
# The moves of a search.

MIDDLING = 12
"""The medium amount: amounts near it are tried first."""
Opts = tuple[Opt, ...]


class Move(NamedTuple):
    """A list of opts, and in words how it differs from the one before."""

    opts: Opts
    how: str


def moves(kernel: UOp, opts: Opts, current: UOp, target: Target) -> Iterator[tuple[Move, UOp]]:
    """Yield the moves from `opts`, with which `kernel` became `current`, each with the kernel that
    it gives."""
    for pair in zip_longest(_longer(opts, current, target), _varied(kernel, opts, target)):
        yield from (candidate for candidate in pair if candidate is not None)


def _longer(opts: Opts, current: UOp, target: Target) -> Iterator[tuple[Move, UOp]]:
    for opt in in_turns(list(actions(current, target))):
        candidate = apply_if_legal(current, opt, target)
        if candidate is not None:
            yield Move((*opts, opt), f"+ {opt}"), candidate


def applied(kernel: UOp, opts: Opts, target: Target) -> UOp | None:
    """Return `kernel` with `opts` applied; None where one of them is not legal."""
    for opt in opts:
        next_kernel = apply_if_legal(kernel, resolve(kernel, opt, target), target)
        if next_kernel is None:
            return None
        kernel = next_kernel
    return kernel


def in_turns(opts: Sequence[Opt]) -> list[Opt]:
    """Return opts in an order in which one of each op and axis comes before the second of any."""
    turns: dict[tuple[OptKind, str], int] = {}
    keys: list[tuple[int, int, int, Opt]] = []
    for opt in sorted(opts, key=_distance):
        kind = opt.op, str(opt.axis)
        turns[kind] = turns.get(kind, 0) + 1
        keys.append((turns[kind], opt.op.promise, len(keys), opt))
    return [key[-1] for key in sorted(keys, key=lambda key: key[:3])]


def _distance(opt: Opt) -> float:
    """Return the distance of an amount from the medium one; the whole axis comes last."""
    if not isinstance(opt.arg, int):
        return 0.0
    return abs(math.log2(opt.arg / MIDDLING)) if opt.arg else math.inf


def _varied(kernel: UOp, opts: Opts, target: Target) -> Iterator[tuple[Move, UOp]]:
    for move in _changed(opts, target):
        candidate = applied(kernel, move.opts, target)
        if candidate is not None:
            yield move, candidate


def _changed(opts: Opts, target: Target) -> Iterator[Move]:
    """Yield `opts` with one of them changed or left out, the last ones first."""
    for place in reversed(range(len(opts))):
        opt, before, after = opts[place], opts[:place], opts[place + 1 :]
        others = [Opt(opt.op, opt.axis, n) for n in opt.op.amounts_on(target)]
        for other in sorted(others, key=_distance):
            if other != opt:
                yield Move((*before, other, *after), f"{other} for {opt}")
        yield Move((*before, *after), f"- {opt}")


# --------------------------------------------------------------------------------------------------
# The values of a search: how candidates are measured, and the result of each.


class SearchStopped(Exception):
    """Raised by `measure` or `is_over` where a user stops the search."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurement of one candidate. Units: seconds of one run; `ratio` is to the time of the
    other in the same turns, `spread` that of its runs as a share of their median (None: too few to
    tell). `digest` names the program, `same` an equal program that was measured before; without a
    time, `error` says why."""

    seconds: float | None = None
    ratio: float | None = None
    digest: str = ""
    same: str = ""
    error: str = ""
    spread: float | None = None


@dataclass(frozen=True, slots=True)
class Patience:
    """Limits of a candidate: it is given up after `first_s` seconds of its first run, or when it
    takes `ratio` times as long as the one it is measured against."""

    first_s: float
    ratio: float


class Measure(Protocol):
    """Measures `kernels`, each in turns with `against`, in their order. Without `patience` a
    candidate may take all the time that is left; `thorough` takes more samples."""

    def __call__(
        self, against: UOp, kernels: Sequence[UOp], patience: Patience | None, thorough: bool
    ) -> Iterable[Measured]: ...


Problem = Callable[[UOp], str]
"""Returns what is wrong with the answer of a candidate; "" where it is right."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate: `opts` on the un-optimised kernel; `how` they differ from those of `parent`
    (None: a start). `seconds` is None where it was not measured; `note` says why; `spread` is that
    of its runs, as a share of their median (None: too few to tell)."""

    number: int
    parent: int | None
    opts: Opts
    how: str
    seconds: float | None = None
    note: str = ""
    spread: float | None = None


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """All candidates, the number of the best, and how many times as fast as the first start it was
    in the last measurement of both (None: there was none). `ended` says why the search ended."""

    candidates: tuple[Candidate, ...]
    best: int
    speedup: float | None
    ended: str


# --------------------------------------------------------------------------------------------------
# The ranking of candidates by a model, for machines on which they cannot run.
#
# The numbers are those that the page predicts with; they have no noise, and no reader compares
# answers. Candidates that may be the best are compiled, where a compiler for the machine is here:
# it says how many registers they take, which is estimated for all others.

HOPELESS = 1.5
"""How much slower than the best one so far a candidate is estimated that is not compiled."""


@dataclass(frozen=True, slots=True)
class ByPrediction:
    """Predicts kernels that compute what `kernel` does, on `target`; before each, `stop` is
    asked."""

    kernel: UOp
    target: Target
    stop: Callable[[], bool] = lambda: False

    def __call__(
        self, against: UOp, kernels: Sequence[UOp], patience: Patience | None, thorough: bool
    ) -> Iterator[Measured]:
        for kernel in kernels:
            if self.stop():
                raise SearchStopped
            yield self._one(against, kernel)

    def _one(self, against: UOp, kernel: UOp) -> Measured:
        try:
            other_s = self._seconds(against, True)
            seconds = other_s
            if kernel is not against:
                seconds = self._seconds(kernel, False)
            if kernel is not against and seconds < HOPELESS * other_s:
                seconds = self._seconds(kernel, True)
        except WorkbenchError as error:
            return Measured(error=f"{error.what}: {error.because}")
        return Measured(seconds, seconds / other_s)

    def _seconds(self, kernel: UOp, compiles: bool) -> float:
        """Errors: as `predicted_cost`."""
        registers = compiled_registers(kernel, self.target.device) if compiles else None
        cost = predicted_cost(kernel, self.target, original=self.kernel, registers=registers)
        return cost.predicted_s
