"""Tuning files: the opts that searches found for kernels, a line of JSON a kernel.

A line has the kernel by a hash of its text, the device and the machine, and the version of this
package; the opts as text; and both times, which were measured in turns. Lines of other machines and
versions stay in a file, and are used there. A file may be anybody's: it is parsed, never evaluated,
and opts are applied only if they are legal.

Sections: Rows of a tuning file; Opts as text; Tuning files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Self

from msgspec import Meta, Struct

from workbench.backends.device import Device
from workbench.backends.native.machine import cpu
from workbench.backends.native.thread_pool import cores
from workbench.base.cache import key_of
from workbench.base.errors import DeviceError, ParseError, cut, plural
from workbench.base.files import FileKind, write_whole
from workbench.base.installation import version
from workbench.base.json_lines import MOST_REASONS, RefusedLine, parse_lines, read_text, refusals
from workbench.base.terminal import Printed
from workbench.base.typed import Positive, to_json, typed_json
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import Opt, OptOps
from workbench.ir.text.printer import to_text
from workbench.ir.text.program import to_expr

FILE_NAME = "workbench-tuning.jsonl"
"""The name of the tuning file that a folder has."""
MOST_BYTES = 16 << 20
"""A file of more bytes is not read."""
TUNING_FILE = FileKind("tuning file", r'\{"kernel":')
MOST_OPTS = 40
"""Most opts of a line."""

# --------------------------------------------------------------------------------------------------
# Rows of a tuning file.

Name = Annotated[str, Meta(max_length=200)]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
Key = tuple[str, str, str, str]


class TuningRow(Struct, frozen=True, forbid_unknown_fields=True):
    """The opts of a kernel on a machine. `kernel` is its name, `hash` that of its text without
    opts, and `structure` that of its text without sizes. `opts` are a text. Units: `time_us` and
    `default_us` are microseconds of a run with these opts and with the default opts, which were
    measured in turns. `when` is a day, in UTC."""

    kernel: Name
    hash: Hash
    structure: Hash
    device: Name
    machine: Name
    version: Name
    opts: Annotated[str, Meta(max_length=4000)]
    time_us: Positive
    default_us: Positive
    when: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]

    @property
    def key(self) -> Key:
        """What the opts are for: rows of equal keys replace each other."""
        return self.hash, self.device, self.machine, self.version

    @property
    def speedup(self) -> float:
        """How many times as fast as with the default opts the kernel is."""
        return self.default_us / self.time_us


def kernel_hash(kernel: UOp) -> str:
    """Return the hash of the text of a kernel without opts."""
    return key_of(to_text(kernel))[:32]


_NUMBERS = re.compile(r"(?<![\w.])\d+(?![\w.])|(?<=\b[sv])\d+|^kernel .*", re.MULTILINE)


def structure_hash(kernel: UOp) -> str:
    """Return a hash that is equal for kernels that differ in sizes alone. Such kernels have the
    same names of axes, so that the opts of one can be tried on another."""
    return key_of(_NUMBERS.sub("#", to_expr(kernel)))[:32]


def machine_of(device: str) -> str:
    """Return the name of the machine behind a device: times of another machine are not those of
    this one, nor are those on another number of cores."""
    info = Device[device].source_device
    own = f"{cpu()}, {cores()} cores"
    hardware = info.target.hardware
    return own if info.is_processor or hardware is None else f"{hardware.name}, {own}"


def _is_of_here(row: TuningRow) -> bool:
    """Whether a row was measured on this machine."""
    try:
        return row.machine == machine_of(row.device)
    except DeviceError:  # a device that this machine lacks, or that nobody has
        return False


# --------------------------------------------------------------------------------------------------
# Opts as text: `UPCAST("g1", 4), THREAD("g0", 2)`, as they print.

_VALUE = r'"[^"\\]{1,60}"|\d{1,9}'
_OPT = re.compile(rf"([A-Z_]{{1,40}})\((?:({_VALUE})(?:, ({_VALUE}))?)?\)(?:, (?=\S)|\Z)")
EXAMPLE = 'UPCAST("g1", 4), THREAD("g0", 2)'


def opts_text(opts: Iterable[Opt]) -> str:
    """Return opts as the text of a row."""
    return ", ".join(map(str, opts))


def opts_of(text: str) -> tuple[Opt, ...]:
    """Return the opts of the text of a row. Errors: ParseError for any other text."""
    opts: list[Opt] = []
    rest = text
    while rest:
        match = _OPT.match(rest)
        if match is None or match[1] not in OptOps.__members__:
            raise ParseError("cannot read the opts", f"{cut(repr(rest), 60)} is no opt", EXAMPLE)
        opts.append(Opt(OptOps[match[1]], *map(_value, match.groups()[1:])))
        rest = rest[match.end() :]
        if len(opts) > MOST_OPTS:
            raise ParseError("cannot read the opts", f"there are more than {MOST_OPTS}", EXAMPLE)
    return tuple(opts)


def _value(text: str | None) -> int | str | None:
    if text is None:
        return None
    return text[1:-1] if text[0] == '"' else int(text)


# --------------------------------------------------------------------------------------------------
# Tuning files.


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TuningFile(Printed):
    """The rows of tuning files by their keys. `refused` has the lines that are no rows, by number
    from 1, with the reasons."""

    rows: Mapping[Key, TuningRow]
    refused: Sequence[RefusedLine] = ()

    @classmethod
    def of(cls, rows: Iterable[TuningRow]) -> Self:
        """Return the file of some rows: of rows of one key it has that of the greatest speed-up."""
        best: dict[Key, TuningRow] = {}
        for row in rows:
            known = best.get(row.key)
            if known is None or (row.speedup, row.when) > (known.speedup, known.when):
                best[row.key] = row
        return cls(best)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the file of a text. Lines that are no rows are refused, each by itself."""
        rows, refused = parse_lines(text, _row)
        return cls(cls.of(rows).rows, tuple(refused))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Return the file at `path`. Errors: FileError for one that cannot be read."""
        hint = "the path of a file that a search has written"
        return cls.parse(read_text(path, MOST_BYTES, hint))

    def merged(self, *others: TuningFile) -> TuningFile:
        """Return the rows of this file and of others: the faster one of each key."""
        return TuningFile.of(row for file in (self, *others) for row in file.rows.values())

    def row_for(self, kernel: UOp, device: str) -> TuningRow | None:
        """Return the row of a kernel on a device of this machine, by this version; None if there is
        none."""
        if not self.rows:
            return None
        return self.rows.get((kernel_hash(kernel), device, machine_of(device), version()))

    def text(self) -> str:
        """Return the file as text, in an order that does not depend on when rows were found."""
        rows = sorted(self.rows.values(), key=lambda r: (r.device, r.machine, r.kernel, r.key))
        return "".join(f"{to_json(row)}\n" for row in rows)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the file whole or not at all; return its path. Errors: WorkbenchError where nothing
        can be written there."""
        return write_whole(path, TUNING_FILE, self.text)

    @property
    def complaint(self) -> str:
        """Which lines are of no use here and why, with numbers of lines; "" if there are none.
        Rows of other machines count only if there are none of this one."""
        others = [row for row in self.rows.values() if row.version != version()]
        own = [row for row in self.rows.values() if row.version == version()]
        reasons = refusals(self.refused)
        if others:
            names = _listed(row.version for row in others)
            reasons.append(f"{len(others)} of version {names}, and this is {version()}")
        unused = len(self.refused) + len(others)
        if own and not any(_is_of_here(row) for row in own):
            unused += len(own)
            reasons.append(f"{len(own)} of another machine: {_listed(row.machine for row in own)}")
        if not unused:
            return ""
        count = len(self.refused) + len(self.rows)
        return f"{unused} of {plural(count, 'line')} not used: {'; '.join(reasons)}"

    def __str__(self) -> str:
        lines = [
            f"{row.kernel}: {row.opts or 'no opts'}; {row.time_us:.4g} µs, {row.speedup:.3g} times"
            f" as fast as the default opts, on {row.device} ({row.machine})"
            for row in self.rows.values()
        ]
        return "\n".join([*lines, *filter(None, [self.complaint])]) or "no rows"


def _listed(names: Iterable[str]) -> str:
    listed = sorted(set(names))
    return "; ".join(listed[:MOST_REASONS]) + ("; .." if len(listed) > MOST_REASONS else "")


def _row(line: str) -> TuningRow:
    """Return the row of a line. Errors: ValueError for any other line, and for a name that cannot
    be printed; ParseError for opts that are none."""
    row = typed_json(line, TuningRow)
    if not all(map(str.isprintable, (row.kernel, row.device, row.machine, row.version))):
        raise ValueError("a name in it cannot be printed")
    date.fromisoformat(row.when)
    opts_of(row.opts)
    return row
