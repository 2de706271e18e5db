"""Differences of two kernel files, with the reasons: opts with their steps, rules, decisions.

Kernels of a program are equal if they have one IR and become one source. Others are paired by
their IR, then by their names; what is left is new or gone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from workbench.base.errors import plural
from workbench.base.terminal import Printed
from workbench.kernel_files.kernel_file import CapturedKernel, KernelFile

MOST_KERNELS = 30
"""Most kernels of a program that are printed."""
Place = tuple[str, str]
"""A program and a device."""


@dataclass(frozen=True, slots=True, repr=False)
class ProgramDifference(Printed):
    """The differences of a program on a device: the pairs of kernels that changed, the kernels that
    are `gone` and `new`, how many are the `same`, and how often rules of scheduling and decisions
    differ, before and after."""

    name: str
    changed: tuple[tuple[CapturedKernel, CapturedKernel], ...]
    gone: tuple[CapturedKernel, ...]
    new: tuple[CapturedKernel, ...]
    same: int
    rules: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    decisions: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        """Whether any kernel differs."""
        return bool(self.changed or self.gone or self.new)

    def __str__(self) -> str:
        parts = [(self.changed, "changed"), (self.gone, "gone"), (self.new, "new")]
        words = [f"{len(rows)} {word}" for rows, word in parts if rows]
        lines = [f"{self.name}: {', '.join([*words, f'{self.same} as before'])}"]
        lines += _tally("rules of scheduling", self.rules)
        lines += _tally("decisions", self.decisions)
        kernels = [
            *(f"  - {_described(row)}" for row in self.gone),
            *(f"  + {_described(row)}" for row in self.new),
            *("\n".join(_pair_lines(*pair)) for pair in self.changed),
        ]
        lines += kernels[:MOST_KERNELS]
        if len(kernels) > MOST_KERNELS:
            lines.append(f"  .. and {plural(len(kernels) - MOST_KERNELS, 'more kernel')}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, repr=False)
class KernelDifferences(Printed):
    """The differences of two files by program. They print without programs that are the same."""

    programs: tuple[ProgramDifference, ...]
    complaints: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        """Whether any kernel differs."""
        return any(each.differs for each in self.programs)

    def __str__(self) -> str:
        different = [each for each in self.programs if each.differs]
        same = sum(each.same for each in self.programs)
        changed = sum(len(each.changed) + len(each.gone) + len(each.new) for each in different)
        head = f"{plural(changed, 'kernel')} differ" if changed != 1 else "1 kernel differs"
        of = f" in {plural(len(different), 'program')}" if different else ""
        lines = [f"{head}{of}, {same} are as before", *map(str, different), *self.complaints]
        return "\n".join(lines)


def kernel_differences(old: KernelFile, new: KernelFile) -> KernelDifferences:
    """Return the differences between two kernel files, by program and device."""
    rows_old, rows_new = _by_place(old), _by_place(new)
    programs = [
        _program(place, rows_old.get(place, []), rows_new.get(place, []), old, new)
        for place in dict.fromkeys((*rows_old, *rows_new))
    ]
    named = (("old", old), ("new", new))
    complaints = [f"{name} file: {file.complaint}" for name, file in named if file.complaint]
    return KernelDifferences(tuple(programs), tuple(complaints))


def _by_place(file: KernelFile) -> dict[Place, list[CapturedKernel]]:
    rows: dict[Place, list[CapturedKernel]] = defaultdict(list)
    for row in file.kernels.values():
        rows[row.program, row.device].append(row)
    return rows


def _program(
    place: Place,
    old: Sequence[CapturedKernel],
    new: Sequence[CapturedKernel],
    old_file: KernelFile,
    new_file: KernelFile,
) -> ProgramDifference:
    pairs, gone, added = _pairs(old, new)
    changed = [(a, b) for a, b in pairs if _facts(a) != _facts(b)]
    sides = [
        next((p for p in file.programs.values() if (p.program, p.device) == place), None)
        for file in (old_file, new_file)
    ]
    rules: dict[str, tuple[int, int]] = {}
    decisions: dict[str, tuple[int, int]] = {}
    if sides[0] is not None and sides[1] is not None:
        rules = _different(sides[0].rules, sides[1].rules)
        decisions = _different(sides[0].decisions, sides[1].decisions)
    name = f"{place[0] or 'kernels'} on {place[1]}"
    same = len(pairs) - len(changed)
    return ProgramDifference(
        name, tuple(changed), tuple(gone), tuple(added), same, rules, decisions
    )


def _facts(row: CapturedKernel) -> tuple[str, str, str | None]:
    """Return what makes a kernel another one."""
    return row.ir, row.source, row.opts


def _pairs(
    old: Iterable[CapturedKernel], new: Iterable[CapturedKernel]
) -> tuple[list[tuple[CapturedKernel, CapturedKernel]], list[CapturedKernel], list[CapturedKernel]]:
    """Return pairs of kernels, and those of each side without a partner."""
    left, right = list(old), list(new)
    pairs = []
    for key in (_facts, lambda row: row.ir, lambda row: row.kernel, lambda row: row.axes):
        partners: dict[object, list[CapturedKernel]] = defaultdict(list)
        for row in right:
            partners[key(row)].append(row)
        unpaired = []
        for row in left:
            own = partners.get(key(row))
            if own:
                partner = own.pop(0)
                pairs.append((row, partner))
                right.remove(partner)
            else:
                unpaired.append(row)
        left = unpaired
    return pairs, left, right


def _different(old: Mapping[str, int], new: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return the counts that differ, before and after."""
    a, b = Counter(old), Counter(new)
    return {key: (a[key], b[key]) for key in dict.fromkeys((*old, *new)) if a[key] != b[key]}


def _tally(label: str, counts: Mapping[str, tuple[int, int]]) -> list[str]:
    words = ", ".join(f"{key} {a:,} -> {b:,}" for key, (a, b) in counts.items())
    return [f"  {label}: {words}"] if words else []


def _described(row: CapturedKernel) -> str:
    opts = "unknown opts" if row.opts is None else row.opts or "no opts"
    return f"{row.kernel}: {row.axes or 'no axes'}; {opts}"


def _pair_lines(old: CapturedKernel, new: CapturedKernel) -> Iterator[str]:
    """Yield what changed in a kernel, and why."""
    yield f"  ~ {old.kernel}" + (f" -> {new.kernel}" if old.kernel != new.kernel else "")
    if old.ir != new.ir:
        a, b = (row.ir.count("\n") + 1 for row in (old, new))
        sizes = "" if old.axes == new.axes else f"; axes {old.axes} -> {new.axes}"
        yield f"      IR before opts differs: {a} -> {b} nodes{sizes}"
    if old.opts != new.opts:
        yield f"      opts     {old.opts or 'none'}"
        yield f"            -> {new.opts or 'none'}"
        yield from (f"      no more  {step}" for step in old.steps if step not in new.steps)
        yield from (f"      because  {step}" for step in new.steps if step not in old.steps)
    yield from (f"    {line}" for line in _tally("rules", _different(old.rules, new.rules)))
    yield from (f"    {line}" for line in _tally("counts", _different(old.counts, new.counts)))
    if old.source != new.source:
        yield f"      source: {old.source_lines} -> {new.source_lines} lines"
