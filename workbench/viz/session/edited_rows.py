"""Edited source as rows of a record: the text, and its machine code."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from workbench.backends.compilers.machine_code import MachineCode
from workbench.backends.device import Device
from workbench.backends.native.assembly import AsmLine
from workbench.base.sequences import common_prefix
from workbench.viz.record.variants import assembly_row, code_row, machine_code_row
from workbench.viz.schema.variant import CodeLink, CodeRow


def edited_code(
    device: str,
    text: str,
    original: CodeRow | None,
    assembly: Sequence[AsmLine],
    elsewhere: MachineCode | None,
) -> list[CodeRow]:
    """Return the rows of edited source, and of its machine code where that is known, which may be
    that of a machine `elsewhere`. Lines before the first change, and after the last one, have the
    links of the `original`."""
    info, lines = Device[device], text.split("\n")
    originals = [None] * len(lines) if original is None else _links(original, lines)
    computed = {line.source_line for line in assembly}
    links = [
        replace(link or CodeLink([], [], [], [], None), statement=number)
        if link is not None or number in computed
        else None
        for number, link in enumerate(originals, 1)
    ]
    rows = [code_row(info, lines, links)]
    of_lines = [_of_line(links, line.source_line) for line in assembly]
    if elsewhere is not None:
        rows.append(machine_code_row(info, elsewhere, of_lines))
    elif assembly:
        rows.append(assembly_row(info, assembly, of_lines))
    return rows


def _links(original: CodeRow, lines: Sequence[str]) -> list[CodeLink | None]:
    """Return the links of lines that stand in the original: what begins and what ends alike."""
    before = len(common_prefix(tuple(original.lines), tuple(lines)))
    rest = tuple(original.lines[before:][::-1]), tuple(lines[before:][::-1])
    after = len(common_prefix(*rest))
    changed: list[CodeLink | None] = [None] * (len(lines) - before - after)
    tail = original.links[len(original.links) - after :] if after else []
    return [*original.links[:before], *changed, *tail]


def _of_line(links: Sequence[CodeLink | None], number: int | None) -> CodeLink | None:
    link = links[number - 1] if number and number <= len(links) else None
    return None if link is None else replace(link, source=[number or 0])
