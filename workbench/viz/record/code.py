"""The code of variants in the record: compiled for their device and others, rendered in other
languages, linked to statements, nodes and passes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

from workbench.backends.device import Device, DeviceInfo
from workbench.backends.program.text import Language
from workbench.base.errors import WorkbenchError
from workbench.base.trace import PassRecord
from workbench.edited import IRLevel
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import rules_in_force
from workbench.kernel.kernel import Compiled, Kernel
from workbench.pipeline import Recorded
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.listing.instructions import Statements, statements_of
from workbench.viz.model.ancestry import Ancestry
from workbench.viz.model.loops import compiled_passes, named
from workbench.viz.model.provenance import ScheduledKernels, links_of
from workbench.viz.record import variants as rows
from workbench.viz.record.changes import Changes
from workbench.viz.record.links import Linker, loaded, readable, to_read
from workbench.viz.record.nodes import Lines, Nodes
from workbench.viz.record.passes import Owner, PassRows
from workbench.viz.schema.record import PageRecord
from workbench.viz.schema.variant import CodeRow, Nest

T = TypeVar("T")


class VariantCode:
    """Adds the code of variants and its passes to a record; `kernels` is the record's growing list
    of kernels, by variant. Errors are raised, except in `add_readable_or_error`."""

    def __init__(
        self,
        exploration: Exploration,
        record: PageRecord,
        changes: Changes,
        kernels: Sequence[Kernel],
        passes: PassRows,
        nodes: Nodes,
        lines: Lines,
    ):
        self._exploration, self._kernels = exploration, kernels
        self._record, self._changes = record, changes
        self._passes, self._nodes, self._lines = passes, nodes, lines
        self._compilations = Compilations(kernels)
        self._scheduled = ScheduledKernels(exploration.passes)
        self._caused: defaultdict[Ancestry | None, set[UOp]] = defaultdict(set)
        """The nodes that have the causes of the passes before their kernel, by their ancestry."""
        self._linked: dict[tuple[object, ...], tuple[list[CodeRow], Nest]] = {}
        """Code and loops by the identities of the two compilations, which are kept in
        `_compilations`, and by the lines of each node."""

    def add_c(self, variant: int) -> None:
        """Add the C of a variant."""
        code = rows.readable_code(self._compilations.source(variant)[0])
        self._changes.put(("variants", variant, "code"), [code])

    def compile(self, variant: int) -> None:
        """Compile a variant for its device; add its passes and its counts."""
        compiled = self._compiled(variant)
        self._add_passes(variant, compiled.passes)
        if compiled.built.kernel.code is None:  # a kernel given as source has no counts
            counts = rows.counts_row(compiled)
            self._changes.put(("variants", variant, "counts"), counts)

    def registers(self, variant: int) -> int | None:
        """Return the registers of a work-item by the compiler, for a machine with published
        figures; None for other devices, and where the compiler is missing or does not say."""
        if not Device[self._kernels[variant].device].has_hardware:
            return None
        with suppress(WorkbenchError):
            code = self._compiled(variant).machine_code
            return None if code is None else code.use.registers
        return None

    def add_compiled(self, variant: int) -> None:
        """Add what a variant was compiled to: its code in each language of its device, and its
        loops with their links."""
        own = Device[self._kernels[variant].device]
        linker, c_linker, in_c = self._linkers(variant, self._compiled(variant))
        code, nest = self._linked_rows(variant, linker, c_linker, in_c)
        new = {row.language for row in code}
        before = self._record.variants[variant].code
        others = [row for row in before if row.language not in new]  # a page may show them
        self._changes.put(("variants", variant, "code"), [*code, *others])
        self._changes.put(("variants", variant, "loops"), nest)
        for language in own.languages:
            if language is not own.language:
                self.add_readable_or_error(variant, own, language)
        self._add_causes(linker)
        if c_linker.links.ancestry is not linker.links.ancestry:
            self._add_causes(c_linker)

    def add_elsewhere(self, variant: int, device: DeviceInfo) -> None:
        """Add the machine code and the statement tree of a variant for another device."""
        compiled = self._compilations.program(variant, device.name)
        linker, c_linker, in_c = self._linkers(variant, compiled)
        code = rows.compiled_code(compiled, linker, in_c, c_linker)
        self._add_causes(linker)
        others = rows.without_device(self._record.variants[variant].code_elsewhere, device.name)
        both = [*others, *(row for row in code if rows.is_of_one_device(row))]
        self._changes.put(("variants", variant, "code_elsewhere"), both)

    def add_ir(self, variant: int, level: IRLevel) -> None:
        """Add the text of a level of the IR of a variant, as it is edited."""
        compiled = self._compiled(variant)
        _, c_linker, _ = self._linkers(variant, compiled)
        self._put_code(variant, rows.ir_row(compiled, c_linker, level))
        self._add_causes(c_linker)

    def add_readable(self, variant: int, device: DeviceInfo, language: Language) -> None:
        """Add the code of a variant in a language of a device, which need not be available here.

        Errors: those of the renderer, which may be the user's.
        """
        number = self._record.variants[variant].kernel
        source = readable(self._kernels[variant], device.name, language)
        compiled = to_read(self._compiled(variant), source, device.name)
        in_c = to_read(self._compiled(variant), self._compilations.source(variant))
        linker = self._linker(compiled, number, statements_of(in_c))
        row = rows.program_row(device, compiled, linker.source(), language)
        self._put_code(variant, row)

    def add_readable_or_error(self, variant: int, device: DeviceInfo, language: Language) -> None:
        """Add the code of a variant in a language of a device, or the error that its renderer
        raises."""
        try:
            self.add_readable(variant, device, language)
        except Exception as error:
            row = rows.code_row(device, [], (), language, rows.error_row(error))
            self._put_code(variant, row)

    def add_texts(self, places: Sequence[int], records: Sequence[PassRecord]) -> None:
        """Add the states of passes as text."""
        for place, record in zip(places, records, strict=True):
            for name, text in self._passes.texts(record).items():
                self._changes.put(("passes", place, name), text)

    def _put_code(self, variant: int, row: CodeRow) -> None:
        """Add code to a variant, in place of its code in the same language."""
        code = self._record.variants[variant].code
        others = [other for other in code if other.language != row.language]
        self._changes.put(("variants", variant, "code"), [*others, row])

    def _compiled(self, variant: int) -> Compiled:
        """Return a variant, compiled once for its device. If that fails, the passes up to the error
        are added."""
        try:
            return self._compilations.program(variant)
        except Exception as error:
            passes = self._compilations.passes_before(variant, error)
            self._add_passes(variant, passes, failed=True)
            raise

    def _add_passes(
        self, variant: int, records: Sequence[PassRecord], failed: bool = False
    ) -> None:
        """Add the passes that compile a variant for its device."""
        number = self._record.variants[variant].kernel
        owner = self._compilations.owner(variant)
        python = compiled_passes(self._kernels[variant].device, failed)
        places = self._passes.add(records, number, owner, python)
        self._changes.put(("variants", variant, "passes"), places)
        self.add_texts(places, records)

    def _linkers(self, variant: int, compiled: Compiled) -> tuple[Linker, Linker, Compiled]:
        """Return the linker of a program, the linker of the same program in C, and the latter."""
        number = self._record.variants[variant].kernel
        in_c = to_read(compiled, self._compilations.source(variant))
        statements = statements_of(in_c)
        linker = self._linker(compiled, number, statements)
        c_linker = linker.elsewhere(in_c) or self._linker(in_c, number, statements)
        return linker, c_linker, in_c

    def _linked_rows(
        self, variant: int, linker: Linker, c_linker: Linker, in_c: Compiled
    ) -> tuple[list[CodeRow], Nest]:
        """Return the code and the loops of a variant with their links; equal kernels that come from
        the same lines share them."""
        compiled = self._compiled(variant)
        links = linker.links
        of_nodes = tuple(links.of(node).lines for node in links.kernel)
        key = id(compiled.built), id(in_c.built), of_nodes
        if key not in self._linked:
            code = rows.compiled_code(compiled, linker, in_c, c_linker)
            nest = rows.nest_row(self._kernels[variant], self._nodes, linker)
            self._linked[key] = code, nest
        code, nest = self._linked[key]
        return list(map(copy, code)), named(nest, self._kernels[variant])

    def _linker(self, compiled: Compiled, number: int, statements: Statements) -> Linker:
        ex = self._exploration
        items = [item for item in ex.items if item.kernel is not None]
        passes = (*ex.passes, *compiled.passes)
        links = links_of(compiled, ex.passes, ex.lines, items[number].nodes[0], self._scheduled)
        places = tuple(map(self._passes.place, passes))
        return Linker(links, self._nodes, self._lines, places, statements)

    def _add_causes(self, linker: Linker) -> None:
        """Add causes to nodes, which may have others already: kernels may share nodes. The schedule
        caused most of them, and those are added with the first of its kernels that has links."""
        known = self._caused[linker.links.ancestry.base]
        for node, causes in linker.causes(known):
            known.add(self._nodes.at(node))
            current = self._nodes.columns.causes[node]
            both = [*current, *(row for row in causes if row not in current)]
            if both != current:
                self._changes.put(("nodes", "causes", node), both)


class Compilations:
    """The compilations of variants, by variant and device; `kernels` is the record's growing list
    of kernels, by variant."""

    def __init__(self, kernels: Sequence[Kernel]):
        self._kernels = kernels
        self._programs: dict[Owner, Compiled] = {}
        self._sources: dict[int, Recorded] = {}
        self._equal: dict[tuple[object, ...], Any] = {}
        """Compilations by all that determines them: equal kernels of several variants share one."""
        self._failures: dict[tuple[Owner, str], tuple[PassRecord, ...]] = {}

    def source(self, variant: int) -> Recorded:
        """Return a variant up to its readable source; it is lowered and rendered once."""
        cached = self._sources.get(variant)
        if cached is None:
            stages, passes = self._shared(variant, "", readable)
            cached = self._sources[variant] = stages, tuple(map(replace, passes))
        return cached

    def _shared(self, variant: int, device: str, compile_it: Callable[[Kernel], T]) -> T:
        """Return `compile_it` of a variant, which is called once for equal kernels. Callers copy
        the passes, since a record lists each variant's passes separately."""
        kernel = self._kernels[variant]
        opts = kernel.original, kernel.applied_opts, kernel.rules_off
        info = Device[device] if device else None
        key = kernel.ast, *opts, info, rules_in_force()
        if key not in self._equal:
            self._equal[key] = compile_it(kernel)
        shared: T = self._equal[key]
        return shared

    def program(self, variant: int, device: str = "") -> Compiled:
        """Return a variant compiled for a device ("": its own)."""
        kernel = self._kernels[variant]
        name = device or kernel.device
        owner = Owner(variant, name)
        cached = self._programs.get(owner)
        if cached is None:
            if name == Device.reader.name:
                cached = loaded(kernel, self.source(variant))
            else:
                compiled = self._shared(variant, name, lambda k: k.compile(name))
                cached = replace(compiled, passes=tuple(map(replace, compiled.passes)))
            self._programs[owner] = cached
        return cached

    def passes_before(self, variant: int, error: Exception) -> tuple[PassRecord, ...]:
        """Return the passes of a variant up to the `error` that compiling it ended with. They are
        kept, since compiling it again would mostly fail again."""
        failure = self.owner(variant), str(error)
        if failure not in self._failures:
            kernel = self._kernels[variant]
            self._failures[failure] = kernel.observed(kernel.device)
        return self._failures[failure]

    def owner(self, variant: int) -> Owner:
        """Return the owner of the passes that compile a variant for its device."""
        return Owner(variant, self._kernels[variant].device)
