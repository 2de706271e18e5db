"""The values of a search: how candidates are measured, and the result of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from workbench.ir.node.uop import UOp
from workbench.search.moves import Opts


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
