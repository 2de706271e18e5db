"""HeuristicStep: a step of the default opts, with its opts and the counts that led to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.base.terminal import Printed
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import Opt, OptKind, OptOps
from workbench.pickles import pickled

PADDING = 1.2
"""Greatest factor by which an axis may grow to be a multiple of a vector or another amount."""
SMALL_PADDING = 1.03
"""Greatest factor by which an axis may grow to get wider lanes."""


@pickled
@dataclass(frozen=True, slots=True)
class HeuristicStep:
    """A step that fired: its opts, and the counts that led to them."""

    name: str
    opts: tuple[Opt, ...]
    why: str
    counts: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        """The step in up to three lines: its opts, why it fired, and its counts."""
        opts = ", ".join(str(opt) for opt in self.opts)
        counts = ", ".join(f"{name} {n:,}" for name, n in self.counts_in_words)
        lines = [f"{self.name}: {opts}" if opts else self.name, f"    {self.why}"]
        return "\n".join([*lines, *([f"    {counts}"] if counts else [])])

    @property
    def counts_in_words(self) -> tuple[tuple[str, float], ...]:
        """The counts with spaces in their names: "tile_bytes" is "tile bytes"."""
        return tuple((name.replace("_", " "), n) for name, n in self.counts.items())


@pickled
class HeuristicSteps(Printed, tuple[HeuristicStep, ...]):
    """Steps in the order in which they fired. They print with their opts, reasons and counts."""

    __slots__ = ()

    def __str__(self) -> str:
        numbered = (f"{number}. {step}" for number, step in enumerate(self, 1))
        return "\n".join(numbered) or "no steps"


NO_STEPS = HeuristicSteps()


def split(axis: UOp, op: OptKind, amount: int) -> tuple[Opt, ...]:
    """Return the opts that apply `op` to `amount` elements of `axis`, after PADTO if the amount
    does not divide the axis."""
    name = axis.axis_name
    padded = (Opt(OptOps.PADTO, name, amount),) if axis.extent % amount else ()
    return (*padded, Opt(op, name, amount))


def choose_lanes(axis: UOp, op: OptKind, choices: tuple[int, ...]) -> tuple[int, tuple[Opt, ...]]:
    """Return the number of lanes and the opts for them. If no choice fits, return 1 lane, with an
    opt that is not legal.

    `choices` are amounts, the best first. A divisor in the better half of them is tried first, then
    padding to one of that half, then the other half.
    """
    extent = axis.extent
    preferences = choices[: max(1, len(choices) // 2)]
    lanes = _divisor(extent, preferences)
    lanes = lanes or _rounded(extent, preferences, SMALL_PADDING)
    lanes = lanes or _rounded(extent, preferences, PADDING)
    lanes = lanes or _divisor(extent, choices)
    lanes = lanes or _rounded(extent, choices, PADDING) or 1
    return lanes, split(axis, op, lanes)


def _divisor(extent: int, choices: tuple[int, ...]) -> int:
    return next((c for c in choices if c > 1 and extent % c == 0), 0)


def _rounded(extent: int, choices: tuple[int, ...], most: float) -> int:
    """Return the first choice to which `extent` can be padded, at most by the factor `most`; 0 for
    none."""
    fits = (c for c in choices if c > 1 and -(-extent // c) * c <= extent * most)
    return next(fits, 0)
