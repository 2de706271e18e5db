"""Findings: the errors of a program of work-items, each with work-items, place and remedy.

Sections: Findings; Numbers of groups and work-items; The list of findings while the emulator
runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from workbench.backends.program.launch import LaunchShape
from workbench.base.errors import plural
from workbench.emulator.accesses import UnfinishedCopy
from workbench.emulator.cells import Conflict

# --------------------------------------------------------------------------------------------------
# Findings.

Kind = Literal[
    "race",
    "unfinished copy",
    "unwritten",
    "out of bounds",
    "misaligned",
    "division by 0",
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
    """A correct but slow access or branch, at a position of the linear program.

    Its warps take `transactions` where `least` would do; at a divergent branch these are the warps
    that go on, and the fewest that would hold the same work-items. `items` are two work-items of
    the worst warp, and `elements` the elements that they access.
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
    """One defect, at its first occurrence. `items` are its work-items, and `positions` the steps in
    the linear program at which they were, in the order in which `words` names them."""

    kind: Kind
    memory: str
    element: int
    items: tuple[WorkItem, ...]
    positions: tuple[int, ...]
    words: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.words}"


# --------------------------------------------------------------------------------------------------
# Numbers of groups and work-items: one among all, or those along x, y and z.


def along(number: int, sizes: Sequence[int]) -> tuple[int, int, int]:
    """Return a number as numbers along x, y and z; the last of `sizes` is along x."""
    parts = []
    for size in reversed(sizes):
        parts.append(number % size)
        number //= size
    x, y, z = (*parts, 0, 0, 0)[:3]
    return x, y, z


def among_all(x_y_z: Sequence[int], sizes: Sequence[int]) -> int:
    """Return numbers along x, y and z as one number: the inverse of `along`."""
    number = 0
    for size, place in zip(sizes, reversed([*x_y_z][: len(sizes)]), strict=True):
        number = number * size + place
    return number


# --------------------------------------------------------------------------------------------------
# The list of findings while the emulator runs: one for each pair of places, in words.

MOST_FINDINGS = 20


class FindingList:
    """Collects findings of a launch."""

    def __init__(self, launch: LaunchShape, group_items: int):
        self.launch, self.group_items = launch, group_items
        self.all: list[Finding] = []
        self._keys: set[tuple[str, str, tuple[int, ...]]] = set()

    def item(self, number: int) -> WorkItem:
        """Return a work-item by its number among all."""
        group, item = divmod(number, self.group_items)
        return WorkItem(along(group, self.launch.grid), along(item, self.launch.group))

    def race(self, name: str, conflict: Conflict, size: int) -> None:
        """Add a race: two accesses of one cell without a barrier between them."""
        element = conflict.cell % size
        one, other = (self.item(n) for n in conflict.items)
        first, second = conflict.verbs
        why = "no barrier is between"
        if one.group != other.group:
            why = "no barrier orders groups"
        words = f"{one} {first} {name}[{element}], and {other} {second} it: {why}"
        self.add("race", name, element, (one, other), conflict.positions, words)

    def unfinished(self, name: str, copy: UnfinishedCopy, size: int, verb: str) -> None:
        """Add an access of a cell before a copy to it is known to be complete."""
        element = copy.cell % size
        copier, other = (self.item(n) for n in copy.items)
        why = "nothing has committed it since"
        if copy.batches == 0:
            why = "no barrier has come since its wait"
        elif copy.batches > 0:
            why = f"its last {plural(copy.batches, 'batch')} may still be on the way"
        words = f"{other} {verb} {name}[{element}] before the copy that {copier} began is"
        words += f" complete: {why}"
        items = copier, other
        self.add("unfinished copy", name, element, items, copy.positions, words)

    def unwritten(self, name: str, element: int, number: int, position: int, size: int = 0) -> None:
        """Add a read of an unwritten value on which a result depends, or of one outside of a memory
        of `size` elements."""
        if size:
            self.outside(name, element, number, position, size, "reads")
            return
        item = self.item(number)
        words = f"{item} reads {name}[{element}], which no work-item has written"
        self.add("unwritten", name, element, (item,), (position,), words)

    def outside(
        self, name: str, element: int, number: int, position: int, size: int, verb: str
    ) -> None:
        """Add an access outside of its memory."""
        item = self.item(number)
        words = f"{item} {verb} {name}[{element}], and there are {size} elements"
        self.add("out of bounds", name, element, (item,), (position,), words)

    def misaligned(self, name: str, element: int, number: int, position: int, nbytes: int) -> None:
        """Add an access of several elements at once at an address that it cannot have."""
        item = self.item(number)
        words = f"{item} accesses {nbytes} bytes at once from {name}[{element}] on, an address that"
        words += f" is not a multiple of {nbytes}"
        self.add("misaligned", name, element, (item,), (position,), words)

    def division(self, number: int, position: int) -> None:
        """Add a division of whole numbers by 0, which has no value."""
        item = self.item(number)
        words = f"{item} divides a whole number by 0, which has no value"
        self.add("division by 0", "", 0, (item,), (position,), words)

    def divergent(self, absent: int, present: int, position: int) -> None:
        """Add a barrier that a work-item misses while another one of its group waits."""
        items = self.item(absent), self.item(present)
        words = f"{items[0]} does not come to a barrier that {items[1]} waits at"
        self.add("divergent barrier", "", 0, items, (position,), words)

    def partial_warp(self, absent: int, present: int, position: int) -> None:
        """Add a product of tiles in which only a part of a warp takes part."""
        items = self.item(absent), self.item(present)
        words = f"{items[0]} takes no part in a product of its warp's tiles: {items[1]} does"
        self.add("partial warp", "", 0, items, (position,), words)

    def partial_shuffle(self, absent: int, present: int, position: int) -> None:
        """Add a shuffle in which only a part of a warp takes part."""
        items = self.item(absent), self.item(present)
        words = f"{items[0]} takes no part in a shuffle of its warp: {items[1]} does"
        self.add("partial warp", "", 0, items, (position,), words)

    def inactive_lane(self, number: int, lane: int, position: int, why: str) -> None:
        """Add a shuffle in which a work-item reads a lane without a value; `why` says the cause."""
        item = self.item(number)
        words = f"{item} takes the value of lane {lane}, {why}"
        self.add("inactive lane", "", 0, (item,), (position,), words)

    def wrong(
        self, name: str, element: int, number: int, position: int, values: tuple[object, object]
    ) -> None:
        """Add a wrong element of an output; `number` is the work-item that wrote it, negative if
        none did, and `values` are the actual and the right one."""
        actual, right = values
        if number < 0:
            words = f"no work-item writes {name}[{element}], and {right} is right"
            self.add("unwritten", name, element, (), (), words)
        else:
            item = self.item(number)
            words = f"{item} writes {name}[{element}] = {actual}, and {right} is right"
            self.add("wrong value", name, element, (item,), (position,), words)

    def add(
        self,
        kind: Kind,
        memory: str,
        element: int,
        items: tuple[WorkItem, ...],
        positions: tuple[int, ...],
        words: str,
    ) -> None:
        """Add a finding, unless there are MOST_FINDINGS, or one of its kind, memory and steps."""
        key = kind, memory, positions
        if key not in self._keys and len(self.all) < MOST_FINDINGS:
            self._keys.add(key)
            self.all.append(Finding(kind, memory, element, items, positions, words))
