"""Inefficiencies of a run: uncoalesced accesses, bank conflicts, divergent branches."""

from __future__ import annotations

from collections.abc import Iterator

from workbench.emulator.accesses import AccessCount, WorstWarp
from workbench.emulator.findings import Inefficiency, InefficiencyKind
from workbench.emulator.machine import Machine
from workbench.ir.nest.accesses import name_of


def inefficiencies(machine: Machine) -> tuple[Inefficiency, ...]:
    """Return them, the one of most transactions first."""
    listed = [*_of_accesses(machine), *_of_branches(machine)]
    return tuple(sorted(listed, key=lambda n: n.least - n.transactions))


def _of_accesses(machine: Machine) -> Iterator[Inefficiency]:
    for position, count in machine.memory.counts.items():
        if count.worst is not None:
            yield _of_access(machine, position, count, count.worst)


def _of_access(
    machine: Machine, position: int, count: AccessCount, worst: WorstWarp
) -> Inefficiency:
    name = name_of(machine.linear[position].place.param)
    one, other = (machine.findings.item(n) for n in worst.items)
    verb = "writes" if count.is_store else "reads"
    first, second = (f"{name}[{element}]" for element in worst.elements)
    what = "transactions" if count.space == "global" else "passes"
    kind: InefficiencyKind = "uncoalesced" if count.space == "global" else "bank conflict"
    words = (
        f"{one} {verb} {first}, and {other} {second}: their warp takes"
        f" {worst.transactions} {what}, and {worst.least} would do"
    )
    total = count.transactions, count.least
    pair = (one, other)
    return Inefficiency(kind, name, worst.elements, pair, position, *total, words)


def _of_branches(machine: Machine) -> Iterator[Inefficiency]:
    for position, branch in machine.totals.branches.items():
        if branch.items is not None and branch.warps > branch.least:
            one, other = (machine.findings.item(n) for n in branch.items)
            words = (
                f"{one} goes on and {other} of its warp does not: {branch.warps:,} warps"
                f" do, and {branch.least:,} would hold all work-items that do"
            )
            pair, total = (one, other), (branch.warps, branch.least)
            yield Inefficiency("divergent branch", "", (), pair, position, *total, words)
