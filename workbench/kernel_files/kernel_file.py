"""Kernel files: kernels that ran, with their opts and what these became, a line of JSON a kernel.

A line has the IR text of a kernel before its opts, so that any later version can compile it again.
A line of a program has what its schedule was made by. A file may be anybody's: it is parsed, never
evaluated, and a line that is no row is refused by itself.
Source of the idea: tinygrad's LOGKERNS and process replay.

Sections: Rows of a kernel file; Kernel files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from msgspec import Meta, Struct
from msgspec.structs import replace

from workbench.base.errors import plural
from workbench.base.files import FileKind, write_whole
from workbench.base.json_lines import RefusedLine, parse_lines, read_text, refusals
from workbench.base.terminal import Printed
from workbench.base.typed import Count, to_json, typed_json
from workbench.ir.node.uop import UOp
from workbench.ir.verify.tensor import kernel_of, verified
from workbench.search.realization import OptsOrigin
from workbench.search.tuning_file import Name, opts_of

MOST_BYTES = 256 << 20
"""A file of more bytes is not read."""
KERNEL_FILE = FileKind("kernel file", r'\{"row":')

# --------------------------------------------------------------------------------------------------
# Rows of a kernel file.

Text = Annotated[str, Meta(max_length=4000)]
Tally = Annotated[dict[Text, Count], Meta(max_length=2000)]
"""How often each rule fired, each decision was taken, or each instruction runs."""
Key = tuple[str, ...]


class CapturedKernel(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="row", tag="kernel"
):
    """A kernel of a `program` as it ran on a device of a machine, by a version of this package.

    `axes` are its sizes without opts. `opts` are a text, null where they are not known, and
    `origin` says who chose them; `steps` are those of the default opts, with their reasons. It ran
    `launches` times, first from the `line` of the user. `source` is a hash of its source of
    `source_lines` lines ("": there is none), `counts` are those of a run of the program, `rules`
    the passes with the rules that fired. `note` is a remark. `ir` is the kernel before its opts.
    """

    kernel: Name
    program: Name = ""
    device: Name
    machine: Name
    version: Name
    axes: Text
    opts: Text | None
    origin: OptsOrigin
    launches: Count = 0
    line: Name = ""
    source: Annotated[str, Meta(pattern="^([0-9a-f]{32})?$")] = ""
    source_lines: Count = 0
    counts: Tally = {}
    steps: Annotated[list[Text], Meta(max_length=100)] = []
    rules: Tally = {}
    note: Text = ""
    ir: Annotated[str, Meta(max_length=1 << 20)]

    @property
    def key(self) -> Key:
        """What makes it another kernel: rows of equal keys are one."""
        opts = "unknown" if self.opts is None else self.opts
        return self.program, self.device, self.machine, self.version, opts, self.ir

    def graph(self) -> UOp:
        """Return the kernel before its opts, verified.

        Errors: ParseError for a text that is not a kernel, VerifyError for one that breaks a rule.
        """
        return verified(kernel_of(self.ir))


class CapturedProgram(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="row", tag="program"
):
    """A program: how often each rule of scheduling fired, and how often a value was stored or fused
    for each reason."""

    program: Name
    device: Name
    machine: Name
    version: Name
    rules: Tally
    decisions: Tally

    @property
    def key(self) -> Key:
        """What makes it another program."""
        return self.program, self.device, self.machine, self.version


# --------------------------------------------------------------------------------------------------
# Kernel files.


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KernelFile(Printed):
    """The rows of kernel files by their keys, in the order in which kernels first ran. `refused`
    has the lines that are no rows, by number from 1, with the reasons."""

    kernels: Mapping[Key, CapturedKernel]
    programs: Mapping[Key, CapturedProgram]
    refused: Sequence[RefusedLine] = ()

    @classmethod
    def of(
        cls, rows: Iterable[CapturedKernel | CapturedProgram], refused: Sequence[RefusedLine] = ()
    ) -> Self:
        """Return the file of some rows. Of rows of one key it has the last, with the greatest
        number of launches: a file that is merged twice changes nothing."""
        kernels: dict[Key, CapturedKernel] = {}
        programs: dict[Key, CapturedProgram] = {}
        for row in rows:
            if isinstance(row, CapturedProgram):
                programs[row.key] = row
                continue
            known = kernels.get(row.key, row)
            launches = max(known.launches, row.launches)
            kernels[row.key] = replace(row, launches=launches, note=row.note or known.note)
        return cls(kernels, programs, tuple(refused))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the file of a text. Lines that are no rows are refused, each by itself."""
        return cls.of(*parse_lines(text, _row))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Return the file at `path`. Errors: FileError for one that cannot be read."""
        hint = "the path of a file that workbench.capture_kernels has written"
        return cls.parse(read_text(path, MOST_BYTES, hint))

    def merged(self, *others: KernelFile) -> KernelFile:
        """Return the rows of this file and of others."""
        return KernelFile.of(row for file in (self, *others) for row in file.rows)

    @property
    def rows(self) -> list[CapturedKernel | CapturedProgram]:
        """All rows: those of programs first."""
        return [*self.programs.values(), *self.kernels.values()]

    def text(self) -> str:
        """Return the file as text."""
        return "".join(f"{to_json(row)}\n" for row in self.rows)

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the file whole or not at all; return its path. Errors: WorkbenchError where nothing
        can be written there."""
        return write_whole(path, KERNEL_FILE, self.text)

    @property
    def complaint(self) -> str:
        """Which lines are no rows, with the reasons; "" if all are."""
        if not self.refused:
            return ""
        count = plural(len(self.refused), "line")
        return f"{count} refused: {'; '.join(refusals(self.refused))}"

    def __str__(self) -> str:
        lines = [
            f"{row.kernel}: {row.axes or 'no axes'}; {_opts(row)}, on {row.device}; "
            f"{plural(row.launches, 'launch')}"
            for row in self.kernels.values()
        ]
        return "\n".join([*lines, *filter(None, [self.complaint])]) or "no kernels"


def _opts(row: CapturedKernel) -> str:
    return "unknown opts" if row.opts is None else row.opts or "no opts"


def _row(line: str) -> CapturedKernel | CapturedProgram:
    """Return the row of a line. Errors: ValueError for any other line, and for words that cannot
    be printed; ParseError for opts that are none."""
    row: CapturedKernel | CapturedProgram = typed_json(line, CapturedKernel | CapturedProgram)  # type: ignore[arg-type]
    words = [row.program, row.device, row.machine, row.version, *row.rules]
    if isinstance(row, CapturedProgram):
        words += row.decisions
    else:
        words += [row.kernel, row.axes, row.line, row.note, *row.steps, *row.counts]
        opts_of(row.opts or "")
    if not all(map(str.isprintable, words)):
        raise ValueError("a text in it cannot be printed")
    return row
