"""Instruction -> line of source -> node -> user's line, and back, on five kernels."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from functools import cache

import pytest

from tests.agreement.expressions import case
from tests.tools.compiler import needs_c
from tests.tools.kernels import EXAMPLES
from tests.viz.provenance.provenance_cases import CASES
from workbench import Opt, explore
from workbench.backends.llvm_ir.loops import with_locations
from workbench.backends.native import jit
from workbench.backends.native.program import AsmLine, code_loops, readable
from workbench.base.errors import DeviceError
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import ScheduleItem
from workbench.ir.text.printer import to_text
from workbench.kernel.compiled import compiled
from workbench.kernel.kernel import Compiled, Kernel
from workbench.pipeline import recorded
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.model.provenance import Links, Origin, links_of


@dataclass(frozen=True)
class Looked:
    """A kernel of a case, compiled, and its links."""

    compiled: Compiled
    links: Links


@cache
def looked(name: str, device: str) -> tuple[Looked, ...]:
    case = CASES[name]
    exploration = explore(case.make())
    stored = [item.nodes[0] for item in exploration.items if item.kernel is not None]
    kernels = [_with_opts(k, case.opts) for k in exploration.kernels]
    return tuple(
        Looked(program, links_of(program, exploration.passes, exploration.lines, node))
        for node, program in zip(stored, [k.compile(device) for k in kernels], strict=True)
    )


def _with_opts(kernel: Kernel, opts: tuple[Opt, ...] | None) -> Kernel:
    return kernel.optimized() if opts is None else kernel.apply(*opts)


def words(name: str, origin: Origin) -> str:
    """The words behind the user's lines of an origin; DATA for a line that makes tensors."""
    texts, first = inspect.getsourcelines(CASES[name].make)
    comments: dict[str, None] = {}
    inside = range(first, first + len(texts))
    for line in origin.lines:  # others are those that call it, and that it calls
        if line.name.endswith("provenance_cases.py") and line.line in inside:
            text = texts[line.line - first].strip()
            comments[text.partition("  # ")[2] or "DATA"] = None
    return " ".join(comments)


def all_words(name: str) -> set[str]:
    texts = inspect.getsource(CASES[name].make).splitlines()
    return {t.partition("  # ")[2] for t in texts} - {""}


def numbered(program: Looked) -> list[tuple[int, str]]:
    return [(n, t.strip()) for n, t in enumerate(program.compiled.source.split("\n"), 1)]


def check_patterns(name: str, patterns: dict[str, str], origins: list[tuple[str, Origin]]) -> None:
    for pattern, expected in patterns.items():
        lines = [(text, words(name, o)) for text, o in origins if re.search(pattern, text)]
        assert lines, f"nothing is {pattern}"
        wrong = [line for line in lines if line[1] != expected]
        assert not wrong, (pattern, expected, wrong[:3])


# source


@pytest.mark.parametrize("device", ["LLVM", "C"])
@pytest.mark.parametrize("name", CASES)
def test_lines_of_source_lead_to_the_users_lines(name: str, device: str) -> None:
    patterns = CASES[name].ir if device == "LLVM" else CASES[name].c
    origins = [
        (text, program.links.of_line(number))
        for program in looked(name, device)
        for number, text in numbered(program)
        if program.links.positions[number - 1]
    ]
    check_patterns(name, patterns, origins)


@pytest.mark.parametrize("device", ["LLVM", "C"])
@pytest.mark.parametrize("name", CASES)
def test_every_line_of_the_users_leads_to_code(name: str, device: str) -> None:
    names: set[str] = set()
    for program in looked(name, device):
        for number, _ in numbered(program):
            origin = program.links.of_line(number)
            names.update(words(name, origin).split())
    assert all_words(name) <= names


@pytest.mark.parametrize("device", ["LLVM", "C"])
@pytest.mark.parametrize("name", CASES)
def test_every_float_is_computed_for_someone(name: str, device: str) -> None:
    """Each node that makes, moves or stores a float knows its kernel, its tensor and a line."""
    for program in looked(name, device):
        floats = _floats(program.links)
        assert floats
        for node in floats:
            origin = program.links.of(node)
            assert origin.kernel and origin.tensor and origin.lines, node


def _floats(links: Links) -> list[UOp]:
    """The nodes that make, move or store floats and have code, constants apart."""
    code = {p for line in links.positions for p in line}
    nodes = [links.linear[position] for position in sorted(code)]
    values = [n for n in nodes if n.dtype.is_float or n.op is Ops.STORE]
    return [n for n in values if n.op is not Ops.BROADCAST or not n.src[0].is_const]


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_opt_says_what_it_made(name: str) -> None:
    """Where an opt did not, the code after it would come from nowhere."""
    kernel = Kernel.from_text(to_text(EXAMPLES[name].graph))
    by_op = {opt.op: opt for opt in kernel.legal_opts()}
    assert len(by_op) >= 2
    for opt in by_op.values():
        links = links_of(kernel.apply(opt).compile("LLVM"))
        for node in _floats(links):
            assert links.of(node).kernel, (opt, node)


@pytest.mark.parametrize("seed", range(30))
def test_every_instruction_leads_to_the_expression(seed: int) -> None:
    """Where a pass derives a node from nothing, what comes of it would come from nowhere. With
    the default opts, and with one of every kind that is legal."""
    exploration = explore(case(seed).run("LLVM")[0])
    for item, kernel in zip(_stored(exploration), exploration.kernels, strict=True):
        by_op = {opt.op: opt for opt in kernel.legal_opts()}
        for one in (kernel, kernel.optimized(), *map(kernel.apply, by_op.values())):
            record = recorded(one.original, "LLVM", "source", one.applied_opts)
            program = compiled("LLVM", record, one.estimates)
            links = links_of(program, exploration.passes, exploration.lines, item.nodes[0])
            for node in links.linear:
                assert node.op in STRUCTURE or _is_of_loops(node) or links.of(node).tensor, (
                    one.applied_opts, node, item.nodes
                )  # fmt: skip


STRUCTURE = (Ops.BLOCK, Ops.LOOP, Ops.ENDLOOP, Ops.DEFINE)


def _stored(exploration: Exploration) -> list[ScheduleItem]:
    return [item for item in exploration.items if item.kernel is not None]


def _is_of_loops(node: UOp) -> bool:
    """Whether a node is of constants and the counters of loops alone, and no condition: opts
    make such indexes of the axes, which everything in a kernel shares."""
    leaves = {n.op for n in node.toposort() if not n.src}
    is_condition = node.dtype.is_bool and node.ranges
    return leaves <= {Ops.CONST, Ops.LANES} and not is_condition


def test_axes_are_the_loops_around_and_the_lanes() -> None:
    (program,) = looked("dense", "LLVM")
    fma = next(n for n, t in numbered(program) if "fmuladd" in t)
    bias = next(n for n, t in numbered(program) if "fadd " in t)
    order = program.compiled.passes[-3].before.arg.order
    inside = program.links.of_line(fma).axes
    assert set(inside) == {*order, "u0", "u1"} - {"b_r1"}
    assert program.links.of_line(bias).axes == ("g0", "g1", "u0", "u1")
    statement = next(n for n in program.links.tree if n.op is Ops.ACCUMULATE)
    assert words("dense", program.links.of(statement)) == "product"


# instructions


@pytest.mark.parametrize("name", CASES)
def test_instructions_lead_to_the_users_lines(name: str) -> None:
    origins = [
        (line.text, origin)
        for program in looked(name, "LLVM")
        for line, origin in _assembly(program)
    ]
    if jit.is_x86() and any("vfmadd" in text for text, _ in origins):
        check_patterns(name, CASES[name].asm, origins)
    names = {w for _, origin in origins for w in words(name, origin).split()}
    assert all_words(name) <= names


@pytest.mark.parametrize("device", ["LLVM", pytest.param("C", marks=needs_c)])
@pytest.mark.parametrize("name", CASES)
def test_instructions_of_a_loop_lead_to_a_line_or_a_loop(name: str, device: str) -> None:
    for program in looked(name, device):
        lines = _assembly(program)
        loops = code_loops([line for line, _ in lines])
        assert loops
        for loop in loops:
            for line, origin in lines[loop.start : loop.stop]:
                assert line.is_label or origin.lines or origin.axes, line


@pytest.mark.parametrize("device", ["LLVM", pytest.param("C", marks=needs_c)])
@pytest.mark.parametrize("name", CASES)
def test_asking_for_lines_changes_no_instruction(name: str, device: str) -> None:
    for program in looked(name, device):
        plain = readable(program.compiled.assembly)
        assert [line.text for line in program.compiled.assembly_lines] == [
            line.text for line in plain
        ]
        assert not any(line.source_line for line in plain)
        assert any(line.source_line for line in program.compiled.assembly_lines)


def _assembly(program: Looked) -> list[tuple[AsmLine, Origin]]:
    lines = program.compiled.assembly_lines
    return list(zip(lines, program.links.of_assembly(lines), strict=True))


def test_an_emulator_has_no_instructions() -> None:
    (program,) = looked("dense", "PYTHON")
    with pytest.raises(DeviceError, match="no machine code"):
        _ = program.compiled.assembly_lines
    assert program.links.of_line(1) == Origin()


def test_locations_take_numbers_that_are_free() -> None:
    (program,) = looked("dense", "LLVM")
    text = program.compiled.source + '!0 = !{!"mine"}\n!mine = !{!0}\n'
    lines = readable(jit.compile_assembly(with_locations(text)))
    assert lines == program.compiled.assembly_lines
