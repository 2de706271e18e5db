"""The values of a search: how candidates are measured, and what came of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from workbench.ir.node.uop import UOp
from workbench.search.moves import Opts


class SearchStopped(Exception):
    """Raised by whoever measures or is asked: somebody wants the search to end."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of one candidate. Units: seconds of one run; `ratio` is to the other in the same
    turns. `digest` names the program; `same` one that was measured before; else `error`."""

    seconds: float | None = None
    ratio: float | None = None
    digest: str = ""
    same: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Patience:
    """When to give a candidate up: after `first_s` seconds of its first run, or when it takes
    `ratio` times as long as the one it is measured against."""

    first_s: float
    ratio: float


class Measure(Protocol):
    """Measures `kernels`, each in turn with `against`, in their order. Without `patience` it
    takes the time that there is; `thorough` is longer, and compares the answers."""

    def __call__(
        self,
        against: UOp,
        kernels: Sequence[UOp],
        patience: Patience | None,
        thorough: bool,
    ) -> Iterable[Measured]: ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel that was tried: `opts` on the un-optimised kernel, `how` they come from those of
    `parent` (None: a start). `seconds` is None where it was not measured; `note` says why."""

    number: int
    parent: int | None
    opts: Opts
    how: str
    seconds: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """All candidates, the number of the best, and how many times as fast as the first start it was
    when both were measured last (None: they were not). `ended` says why the search did."""

    candidates: tuple[Candidate, ...]
    best: int
    speedup: float | None
    ended: str
