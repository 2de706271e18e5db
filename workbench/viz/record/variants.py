"""A kernel with opts as a variant of a record: axes, loop nest, code, cost, counts."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import asdict
from itertools import starmap

from msgspec.structs import replace

from workbench.backends.compilers.compilers import MachineCode
from workbench.backends.device import Device, DeviceInfo
from workbench.backends.native.program import AsmLine
from workbench.backends.program.text import Language
from workbench.base.errors import WorkbenchError
from workbench.cost.predicted_cost import bottleneck_of
from workbench.edited import IRLevel, ir_text
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.heuristic.step import HeuristicSteps
from workbench.ir.opt.opt import families
from workbench.ir.rewriting.rewrite import without
from workbench.ir.text.parser import read
from workbench.ir.text.program import tree_lines
from workbench.kernel.kernel import Compiled, Kernel
from workbench.kernel.performance import cost_of
from workbench.measure.speeds import Speeds
from workbench.pipeline import Stages
from workbench.viz.listing.instructions import help_of
from workbench.viz.model.decisions import draws_numbers
from workbench.viz.model.loops import kernel_nest, kernel_recipe, named
from workbench.viz.model.title import decoded
from workbench.viz.model.words import named_count, opt_row
from workbench.viz.record.about import ASSEMBLY, IR_LANGUAGES, IR_TEXTS, STATEMENTS
from workbench.viz.record.links import Linker
from workbench.viz.record.nodes import Nodes, bounded
from workbench.viz.record.page_run import page_launch
from workbench.viz.schema.record import KernelRow
from workbench.viz.schema.variant import (
    AxisRow,
    CodeLink,
    CodeRow,
    CostRow,
    ErrorWords,
    Nest,
    NestRow,
    StepRow,
    VariantRow,
)

MOST_LINES = 3000
"""Most lines of a program; of a longer one the others are counted."""


def variant_row(
    number: int, kernel: Kernel, name: str, parent: int | None, when: int = 0
) -> VariantRow:
    """Return a variant of kernel `number` with the fields that are cheap to compute.

    Units: `when` it was made, in seconds of the epoch.
    """
    return VariantRow(
        kernel=number,
        parent=parent,
        name=name,
        when=when,
        deleted=False,
        opts=[str(opt) for opt in kernel.applied_opts],
        opt_rows=[opt_row(opt) for opt in kernel.applied_opts],
        recipe=kernel_recipe(number, kernel),
        steps=step_rows(kernel.steps),
        axes=[AxisRow(a.name, a.kind.name, a.size) for a in kernel.axes],
        bars=bar_rows(kernel),
        python="",
        loops=None,
        code=[],
        counts=None,
        passes=[],
        offers=[],
        refused=[],
        check=None,
        timing=None,
        elsewhere=[],
        bound=None,
        cost=None,
        error=None,
        note="",
        edited=False,
        searches=[],
        rules_off=list(kernel.rules_off),
    )


def kernel_row(
    kernel: Kernel,
    line: int | None = None,
    inner: Sequence[int] = (),
    decision: int | None = None,
    root: int = 0,
) -> KernelRow:
    """Return the row of a kernel. A record also has places: of the user's `line`, of the lines that
    it called (`inner`), of the `decision` to store the result, of the un-optimised variant
    (`root`)."""
    estimates = kernel.estimates
    return KernelRow(
        title=bounded(kernel.title or kernel.name),
        name=kernel.name,
        decoded=decoded(kernel.original),
        line=line,
        inner=list(inner),
        flops=estimates.flops,
        bytes=estimates.bytes,
        decision=decision,
        root=root,
        module=bounded(kernel.modules[0].path) if kernel.modules else "",
        modules=[bounded(str(call)) for call in kernel.modules],
        fused=bounded(fused_modules(kernel)),
        phases=list(kernel.phases),
        opts_in_code=bounded(kernel.opts_in_code),
        draws_numbers=draws_numbers(kernel.original),
    )


def fused_modules(kernel: Kernel) -> str:
    """Return the modules that a kernel computes besides its first one, in the order of the code:
    "+ bn2, relu, avgpool". A path is written without that of the named module around the first one,
    whose own operators have the names of their methods."""
    first = kernel.modules[0].path if kernel.modules else ""
    around = first.rstrip(".0123456789").rpartition(".")[0]
    names = [
        call.method if call.path == around else call.path.removeprefix(f"{around}.")
        for call in kernel.modules[:0:-1]
        if call.path != first
    ]
    listed = list(dict.fromkeys(filter(None, names)))
    more = [f"{len(listed) - MOST_FUSED} more"] if len(listed) > MOST_FUSED else []
    return f"+ {', '.join([*listed[:MOST_FUSED], *more])}" if listed else ""


MOST_FUSED = 4
"""Most modules that a kernel is said to compute besides its first."""


def kernel_origin(kernel: Kernel) -> str:
    """Return the module and the method that made a kernel, the other modules in it, then the cell
    or the file of the user's line; "" where none is known."""
    fused = fused_modules(kernel)
    module = [" ".join(filter(None, (str(call), fused))) for call in kernel.modules[:1]]
    return "  ".join([*module, *([] if kernel.line is None else [str(kernel.line)])])


def step_rows(steps: HeuristicSteps) -> list[StepRow]:
    """Return the steps of the default opts: what each applied, why, and the counts behind it."""
    return [
        StepRow(
            step.name,
            [str(opt) for opt in step.opts],
            step.why,
            ", ".join(starmap(named_count, step.counts_in_words)),
        )
        for step in steps
    ]


def bar_rows(kernel: Kernel) -> list[list[int]]:
    """Return the families of a kernel's axes, by place: the axes that are split from one axis of
    the un-optimised kernel."""
    places = {axis.name: place for place, axis in enumerate(kernel.axes)}
    with without(kernel.rules_off):
        axis_families = families(kernel.original, kernel.applied_opts)
    return [[places[name] for name in names] for names in axis_families]


def error_row(error: Exception) -> ErrorWords:
    """Return an error as what, because, try."""
    if isinstance(error, WorkbenchError):
        what, because, hint = error.what, error.because, error.hint
    else:
        what, because, hint = type(error).__name__, str(error), ""
    line, column = (getattr(error, name, None) for name in ("line", "column"))
    return ErrorWords(bounded(what), bounded(because), bounded(hint), line, column)


# loops


def nest_row(kernel: Kernel, nodes: Nodes, linker: Linker | None = None) -> Nest:
    """Return the loop nest of a kernel, its rows with their nodes. With a linker, statements have
    all nodes and user's lines that they come from, and loops the lines of the statements in them.

    Errors: CompileError where the kernel needs more scratch than the target gives.
    """

    def links(node: UOp) -> tuple[list[int], list[int]]:
        if linker is None or node.op is Ops.RANGE:
            return [nodes.add(node)], []
        return linker.statement(node)

    nest = kernel_nest(kernel, links)
    _add_lines_to_loops(nest.rows)
    return nest


def equal_nest(nest: Nest, kernel: Kernel) -> Nest:
    """Return the loop nest of a kernel that is equal to the one of `nest`, with rows of its own."""
    return replace(named(nest, kernel), rows=[copy(row) for row in nest.rows])


def _add_lines_to_loops(rows: Sequence[NestRow]) -> None:
    """Give loops and lanes the user's lines of the statements in them."""
    around: list[NestRow] = []
    for row in rows:
        del around[row.depth :]
        if row.kind != "statement":
            around.append(row)
            continue
        for loop in around:
            loop.lines += [n for n in row.lines if n not in loop.lines]


# code


def source_row(compiled: Compiled) -> CodeRow:
    """Return the whole source of a kernel, as the compiler of its device gets it."""
    language = compiled.built.source.language
    return CodeRow(language, compiled.device, compiled.source.split("\n"), [])


def readable_code(stages: Stages) -> CodeRow:
    """Return a kernel's code in the language that all kernels can be read in; the code need not be
    able to run."""
    return code_row(Device.reader, stages.source.text.split("\n"))


def compiled_code(
    compiled: Compiled, linker: Linker, in_c: Compiled, c_linker: Linker
) -> list[CodeRow]:
    """Return a kernel's code: in the language of all kernels, its device's source, machine code,
    the statement tree."""
    first, own = Device.reader, Device[compiled.device]
    rows = [code_row(first, in_c.source.split("\n"), c_linker.source())]
    if own is not first and own.language is not None:
        rows.append(program_row(own, compiled, linker.source()))
    if hasattr(type(compiled.built.program), "machine_code"):  # of an instance it would compile
        rows += elsewhere_rows(own, compiled, linker)
    elif getattr(compiled.built.program, "assembly", None) is not None:
        asm_lines = compiled.assembly_lines
        rows.append(assembly_row(own, asm_lines, linker.assembly(asm_lines)))
    tree = tree_lines(compiled["lowered"])
    text = [line for line, _ in tree]
    return [*rows, code_row(own, text, c_linker.tree(tree), STATEMENTS)]


def ir_row(compiled: Compiled, linker: Linker, level: IRLevel) -> CodeRow:
    """Return the text of a level of the IR, as it is edited; a line has the link of its node."""
    text = ir_text(compiled.built, level)
    nodes = {place.line: node for node, place in read(text).nodes.items()}
    lines = text.split("\n")
    pairs = [(line, nodes.get(number)) for number, line in enumerate(lines, 1)]
    return code_row(Device[compiled.device], lines, linker.tree(pairs), IR_TEXTS[level])


def elsewhere_rows(device: DeviceInfo, compiled: Compiled, linker: Linker) -> list[CodeRow]:
    """Return the machine code for a machine that is not here, or the error of its compiler; []
    without machine code."""
    try:
        code = compiled.machine_code
    except WorkbenchError as error:
        return [code_row(device, [], (), ASSEMBLY, error_row(error))]
    if code is None:
        return []
    return [machine_code_row(device, code, linker.assembly(code.lines))]


def machine_code_row(
    device: DeviceInfo, code: MachineCode, links: Sequence[CodeLink | None]
) -> CodeRow:
    """Return the machine code for a machine that is not here, with the resources that it takes."""
    row = code_row(device, [line.text for line in code.lines], links, ASSEMBLY)
    live = [None if each is None else each.count for each in code.live]
    live = [*live, *[None] * len(row.lines)][: len(row.lines)] if live else []
    help_words = help_of(row.lines, code.family)
    return replace(row, help=help_words, note=code.about, live=live)


def program_row(
    device: DeviceInfo,
    compiled: Compiled,
    links: Sequence[CodeLink | None],
    language: Language | None = None,
) -> CodeRow:
    """Return the source of a kernel in a language of a device, with its launch where a page can run
    it."""
    row = code_row(device, compiled.source.split("\n"), links, language)
    if device.runs_in_page:
        row.launch = page_launch(compiled.built.source, device)
    return row


def is_of_one_device(code: CodeRow) -> bool:
    """Whether a program differs from device to device, as machine code and statement trees do."""
    return code.language in (ASSEMBLY.name, STATEMENTS.name, *IR_LANGUAGES)


def without_device(code: Sequence[CodeRow], device: str) -> list[CodeRow]:
    """Return the programs that are for other devices than `device`."""
    return [row for row in code if row.device != device]


def assembly_row(
    device: DeviceInfo, code: Sequence[AsmLine], links: Sequence[CodeLink | None]
) -> CodeRow:
    """Return machine code, with explanations of its instructions."""
    lines = [line.text for line in code]
    row = code_row(device, lines, links, ASSEMBLY)
    return replace(row, help=help_of(row.lines))


def code_row(
    device: DeviceInfo,
    lines: Sequence[str],
    links: Sequence[CodeLink | None] = (),
    language: Language | None = None,
    error: ErrorWords | None = None,
) -> CodeRow:
    """Return a program for a device as lines, each with its link or None; or the `error` in its
    place. `language` is None for the device's own."""
    written = language or device.language
    assert written is not None, f"{device.name} has no language"
    page_lines = [line.expandtabs(8) for line in lines[:MOST_LINES]]
    while page_lines and not page_lines[-1]:
        page_lines.pop()
    linked: list[CodeLink | None] = [*links, *[None] * len(lines)][: len(page_lines)]
    if len(lines) > MOST_LINES:
        page_lines.append(f"... and {len(lines) - MOST_LINES:,} more lines")
        linked.append(None)
    return CodeRow(written.name, device.name, page_lines, linked, error)


def cost_rows(
    kernel: Kernel, speeds: Speeds | None, measured_s: float | None, registers: int | None = None
) -> tuple[str, CostRow] | None:
    """Return the bottleneck of a kernel, and its cost by its loop nest, on a machine of these
    speeds; None where they are unknown, or the kernel cannot be predicted. `measured_s` is the
    measured time of a run, if known.

    For a GPU, and for a machine that is not here, published figures take the place of `speeds`.

    Units: bytes from each level in one run; seconds of each part alone, "core" with the loads and
    stores of L1; roofs in operations per second.
    """
    device = Device[kernel.device]
    is_here = device.is_processor or device.is_emulator
    if not device.has_hardware and (speeds is None or not is_here):
        return None
    try:
        cost = cost_of(kernel, kernel.device, speeds, registers)
    except WorkbenchError:
        return None
    row = CostRow(
        kind=cost.kind,
        threads=cost.parallel[0],
        of=cost.parallel[1],
        notes=cost.notes(),
        flops=cost.estimates.flops,
        bytes=dict(cost.bytes_from),
        seconds=dict(cost.seconds),
        roofs=dict(cost.roofs()),
        limit=cost.limit,
        predicted_s=cost.predicted_s,
        launch_s=cost.launch_s,
    )
    return str(bottleneck_of(cost, kernel.target, measured_s)), row


def counts_row(compiled: Compiled) -> dict[str, int]:
    """Return the counts of one run of the program."""
    return asdict(compiled.counts)
