"""The proposal of a step of the default opts: opts, and the counts that decided on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.base.terminal import Printed
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import Opt, OptKind, OptOps

PADDING = 1.2
"""An axis is rounded up to whole vectors where it grows by at most this factor."""
LITTLE = 1.03
"""Factor by which an axis may grow for wider lanes."""


@dataclass(frozen=True, slots=True)
class HeuristicStep:
    """A step that fired: its opts, and the counts that decided it."""

    name: str
    opts: tuple[Opt, ...]
    why: str
    counts: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        """The step in three lines: its opts, why it fired, and the counts that decided it."""
        opts = ", ".join(str(opt) for opt in self.opts)
        counts = ", ".join(f"{name} {n:,}" for name, n in self.counts_in_words)
        lines = [f"{self.name}: {opts}" if opts else self.name, f"    {self.why}"]
        return "\n".join([*lines, *([f"    {counts}"] if counts else [])])

    @property
    def counts_in_words(self) -> tuple[tuple[str, float], ...]:
        """The counts under names for people: "tile_bytes" is "tile bytes"."""
        return tuple((name.replace("_", " "), n) for name, n in self.counts.items())


class HeuristicSteps(Printed, tuple[HeuristicStep, ...]):
    """Steps in the order in which they fired; printed, each with its opts, why, and counts."""

    __slots__ = ()

    def __str__(self) -> str:
        numbered = (f"{number}. {step}" for number, step in enumerate(self, 1))
        return "\n".join(numbered) or "no steps"


NO_STEPS = HeuristicSteps()


def split(axis: UOp, op: OptKind, amount: int) -> tuple[Opt, ...]:
    """Return the opts that give `op` `amount` elements of `axis`, with PADTO where they do not
    divide it."""
    name = axis.axis_name
    padded = (Opt(OptOps.PADTO, name, amount),) if axis.extent % amount else ()
    return (*padded, Opt(op, name, amount))


def choose_lanes(axis: UOp, op: OptKind, choices: tuple[int, ...]) -> tuple[int, tuple[Opt, ...]]:
    """Return (lanes, the opts for them); 1 lane, without opts, where no choice fits.

    `choices` are amounts, the best first. Where none of the better half divides the axis, it is
    rounded up to one if that costs little; else the other half is tried.
    """
    extent = axis.extent
    preferences = choices[: max(1, len(choices) // 2)]
    lanes = _divisor(extent, preferences)
    lanes = lanes or _rounded(extent, preferences, LITTLE)
    lanes = lanes or _rounded(extent, preferences, PADDING)
    lanes = lanes or _divisor(extent, choices)
    lanes = lanes or _rounded(extent, choices, PADDING) or 1
    return lanes, split(axis, op, lanes)


def _divisor(extent: int, choices: tuple[int, ...]) -> int:
    return next((c for c in choices if c > 1 and extent % c == 0), 0)


def _rounded(extent: int, choices: tuple[int, ...], most: float) -> int:
    """Return the first choice that `extent` can be rounded up to within a growth of `most`
    times."""
    fits = (c for c in choices if c > 1 and -(-extent // c) * c <= extent * most)
    return next(fits, 0)
