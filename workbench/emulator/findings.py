"""Findings: the errors of a program of work-items, each with work-items, place and remedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "race",
    "unfinished copy",
    "unwritten",
    "out of bounds",
    "divergent barrier",
    "partial warp",
    "inactive lane",
    "wrong value",
]

InefficiencyKind = Literal["uncoalesced", "bank conflict", "divergent branch"]


@dataclass(frozen=True)
class WorkItem:
    """A work-item, by its numbers along x, y and z."""

    group: tuple[int, int, int]
    item: tuple[int, int, int]

    def __str__(self) -> str:
        return f"work-item {self.item} of group {self.group}"


@dataclass(frozen=True)
class Inefficiency:
    """What is right and slow, at a position of the linear program.

    Warps take `transactions` there where `least` would do (at a divergent branch: as many warps go
    on as would hold the work-items that do); `items` are two work-items of the worst warp, and
    `elements` what they access.
    """

    kind: InefficiencyKind
    memory: str
    elements: tuple[int, ...]
    items: tuple[WorkItem, WorkItem]
    position: int
    transactions: int
    least: int
    words: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.words}"


@dataclass(frozen=True)
class Finding:
    """One defect, at its first occurrence. `items` are the work-items that it happened to, and
    `positions` what they were at in the linear program, in the order of the words."""

    kind: Kind
    memory: str
    element: int
    items: tuple[WorkItem, ...]
    positions: tuple[int, ...]
    words: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.words}"
