"""The cost of one run of a kernel by a model: the base class of processors and GPUs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from workbench.base.display import Printed
from workbench.ir.nest.estimates import Counts, Estimates

REST = 0.15
"""Share of the time of the other parts that is added to the slowest one: parts overlap, but not
completely."""


@dataclass(frozen=True, slots=True, repr=False)
class Bottleneck(Printed):
    """`what` a kernel waits for, in a word or two, and `why`, in numbers."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


@dataclass(frozen=True, slots=True, repr=False)
class RunCost(Printed, ABC):
    """The cost of one warm run of a kernel.

    `bytes_from` has, for each level of memory, the bytes that move from there towards the core and
    back. `seconds` has the time of each part alone. `kind` names the peak that it is compared with.
    """

    estimates: Estimates
    counts: Counts
    bytes_from: Mapping[str, int]
    seconds: Mapping[str, float]
    kind: str

    @property
    def predicted_s(self) -> float:
        """The predicted time of one run."""
        return sum(self.contributions.values()) + self.launch_s

    @property
    def contributions(self) -> dict[str, float]:
        """The seconds that each part adds to a run: those of the slowest, and a share of others."""
        slowest = max(self.seconds, key=lambda part: self.seconds[part])
        return {p: s if p == slowest else REST * s for p, s in self.seconds.items()}

    @property
    def intensity(self) -> float:
        """Operations for each byte that the algorithm needs."""
        return self.estimates.intensity

    @property
    def limit(self) -> str:
        """The slowest part."""
        return max(self.seconds, key=lambda part: self.seconds[part])

    @property
    @abstractmethod
    def launch_s(self) -> float:
        """The time of an empty launch."""

    @property
    @abstractmethod
    def parallel(self) -> tuple[int, str]:
        """On how many of what it runs: (2, "thread")."""

    @abstractmethod
    def roofs(self) -> dict[str, float]:
        """Return the roofs in operations per second: "peak" of the arithmetic, and for each level
        its bandwidth times the operations per byte from it. A level without traffic is absent."""

    @abstractmethod
    def notes(self) -> list[str]:
        """Return what else is known of the run, a line each."""
