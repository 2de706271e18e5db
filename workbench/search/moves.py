"""The moves and values of a search: adding, changing or removing an opt; candidates and times.

Opts to add come in an order that tries each kind and axis early: one of each in turn, medium
amounts before small and large ones.

Sections: The moves of a search; The values of a search; The ranking of candidates by a model.
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
from workbench.pickles import pickled

# --------------------------------------------------------------------------------------------------
# The moves of a search.

MEDIUM_AMOUNT = 12
"""The medium amount: amounts near it are tried first."""
Opts = tuple[Opt, ...]


class Move(NamedTuple):
    """A list of opts, and in words how it differs from its parent's."""

    opts: Opts
    how: str


def moves(kernel: UOp, opts: Opts, current: UOp, target: Target) -> Iterator[tuple[Move, UOp]]:
    """Yield the moves from `opts`, each with its kernel. `current` is `kernel` with `opts`."""
    for pair in zip_longest(_longer(opts, current, target), _varied(kernel, opts, target)):
        yield from (candidate for candidate in pair if candidate is not None)


def _longer(opts: Opts, current: UOp, target: Target) -> Iterator[tuple[Move, UOp]]:
    for opt in in_turns(list(actions(current, target))):
        candidate = apply_if_legal(current, opt, target)
        if candidate is not None:
            yield Move((*opts, opt), f"+ {opt}"), candidate


def applied(kernel: UOp, opts: Opts, target: Target) -> UOp | None:
    """Return `kernel` with `opts` applied; None if one of them is not legal."""
    for opt in opts:
        next_kernel = apply_if_legal(kernel, resolve(kernel, opt, target), target)
        if next_kernel is None:
            return None
        kernel = next_kernel
    return kernel


def in_turns(opts: Sequence[Opt]) -> list[Opt]:
    """Return opts in turns: one of each kind and axis, then a second one of each, and so on."""
    turns: dict[tuple[OptKind, str], int] = {}
    keys: list[tuple[int, int, int, Opt]] = []
    for opt in sorted(opts, key=_distance):
        kind = opt.op, str(opt.axis)
        turns[kind] = turns.get(kind, 0) + 1
        keys.append((turns[kind], opt.op.promise, len(keys), opt))
    return [key[-1] for key in sorted(keys, key=lambda key: key[:3])]


def _distance(opt: Opt) -> float:
    """Return the distance of an amount from the medium one; infinity for the whole axis, 0 for an
    argument that is not an amount."""
    if not isinstance(opt.arg, int):
        return 0.0
    return abs(math.log2(opt.arg / MEDIUM_AMOUNT)) if opt.arg else math.inf


def _varied(kernel: UOp, opts: Opts, target: Target) -> Iterator[tuple[Move, UOp]]:
    for move in _changed(opts, target):
        candidate = applied(kernel, move.opts, target)
        if candidate is not None:
            yield move, candidate


def _changed(opts: Opts, target: Target) -> Iterator[Move]:
    """Yield `opts` with one of them changed or removed, from the last one to the first."""
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
    """Raised by `measure` or `is_over` when a user stops the search."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurement of one candidate. Units: `seconds` of one run. `ratio` is its time as a
    multiple of the time of the kernel in the same turns. `spread` is the spread of its runs, as a
    share of their median (None: too few runs). `digest` names the program, `same` an equal program
    that was measured before. `error` says why there is no time. Unless it `is_sure`, other programs
    had the cores in every run of one of the two kernels."""

    seconds: float | None = None
    ratio: float | None = None
    digest: str = ""
    same: str = ""
    error: str = ""
    spread: float | None = None
    is_sure: bool = True


@dataclass(frozen=True, slots=True)
class Patience:
    """Limits of a candidate. It is given up if its first run takes longer than `first_s` seconds,
    or if it takes `ratio` times as long as the kernel that it is measured against."""

    first_s: float
    ratio: float


class Measure(Protocol):
    """A function that measures `kernels` in order, each in turns with `against`. Without `patience`
    a candidate may take all the time that is left; `thorough` takes more samples."""

    def __call__(
        self, against: UOp, kernels: Sequence[UOp], patience: Patience | None, thorough: bool
    ) -> Iterable[Measured]: ...


Problem = Callable[[UOp], str]
"""A function that returns what is wrong with the result of a candidate; "" if it is right."""


@pickled
@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate: `opts` for the kernel without opts. `how` says how they differ from the opts of
    candidate `parent` (None: a start). `seconds` is None if it was not measured; `note` says why,
    or what is wrong with it. `spread` is the spread of its runs, as a share of their median (None:
    too few runs)."""

    number: int
    parent: int | None
    opts: Opts
    how: str
    seconds: float | None = None
    note: str = ""
    spread: float | None = None


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """All candidates, the number of the best, and how many times as fast as the first start it is
    (None: not compared at the end). `ended` says why the search ended."""

    candidates: tuple[Candidate, ...]
    best: int
    speedup: float | None
    ended: str


# --------------------------------------------------------------------------------------------------
# The ranking of candidates by a model, for machines that are elsewhere.
#
# The times are the predictions of the page. They have no noise, and no results are checked.
# Candidates that may be the best are compiled, if there is a compiler for the machine: it reports
# their registers, which are estimated for all others.

HOPELESS = 1.5
"""A candidate is not compiled if its estimated time is at least this many times that of the kernel
it is compared with."""


@dataclass(frozen=True, slots=True)
class ByPrediction:
    """Predicts the times of kernels that compute the same as `kernel`, on `target`; `stop` is
    called before each."""

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
        """Return the predicted seconds; `compiles`: with the registers that a compiler reports.
        Errors: those of `predicted_cost`."""
        registers = compiled_registers(kernel, self.target.device) if compiles else None
        cost = predicted_cost(kernel, self.target, original=self.kernel, registers=registers)
        return cost.predicted_s
