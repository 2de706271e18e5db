"""Instruction -> line of source -> node -> user's line, and back, on five kernels.

Each kernel is code of several lines, as a user writes it, with a word behind the lines that
the tests name. What an instruction is (a multiply-add, a square root) says which line it must
lead to.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from tests.compiler import needs_c
from tests.kernels import EXAMPLES
from workbench import Opt, OptOps, Tensor, explore
from workbench.backends.render.llvm_locations import with_locations
from workbench.backends.runtime import jit
from workbench.backends.runtime.assembly import AsmLine, code_loops, readable
from workbench.errors import DeviceError
from workbench.ir.ops import Ops
from workbench.ir.rewrite import Rule
from workbench.ir.text import to_text
from workbench.ir.uop import UOp
from workbench.kernel.kernel import Compiled, Kernel
from workbench.trace import PassRecord, observe
from workbench.viz.model.provenance import Links, Origin, links_of, scheduled

RANDOM = np.random.default_rng(0)


def data(*shape: int) -> Tensor:
    return Tensor(RANDOM.standard_normal(shape).astype(np.float32))


def chain() -> Tensor:
    x, b = data(1024), data(1024)
    y = x * 3.0  # scale
    y = y + b  # shift
    y = y * y  # square
    y = y.sqrt()  # root
    return y.trunc()  # whole


def dense() -> Tensor:
    a, b, c = data(64, 64), data(64, 64), data(64)
    y = a @ b  # product
    y = y + c  # bias
    return y.relu()  # relu


def softmax() -> Tensor:
    x = data(32, 256)
    top = x.max(axis=1, keepdim=True)  # greatest
    y = x - top  # distance
    y = y.exp()  # exp
    total = y.sum(axis=1, keepdim=True)  # total
    return y / total  # share


def convolution() -> Tensor:
    x, w, b = data(1, 4, 16, 16), data(8, 4, 3, 3), data(8, 1, 1)
    x = x.pad(((0, 0), (0, 0), (1, 1), (1, 1)))  # border
    y = x.conv2d(w)  # window
    y = y + b  # bias
    return y.sqrt()  # root


def gathered() -> Tensor:
    table, weights = data(100, 32), data(16, 32)
    rows = Tensor(RANDOM.integers(0, 100, 16).astype(np.int32))  # rows
    y = table[rows]  # pick
    y = y * weights  # weigh
    return y.sum(axis=1)  # total


@dataclass(frozen=True)
class Case:
    """`opts` None: the default ones. `ir`, `c`: a pattern of lines of source, and the words of
    the user's lines that exactly those must lead to; `asm`: the same for x86 instructions."""

    make: Callable[[], Tensor]
    opts: tuple[Opt, ...] | None
    ir: dict[str, str]
    c: dict[str, str]
    asm: dict[str, str]


TILE = (
    Opt(OptOps.UPCAST, "g1", 16),
    Opt(OptOps.UPCAST, "g0", 4),
    Opt(OptOps.SPLIT, "r0", 8),
    Opt(OptOps.STAGE, "r0", 2),
)
# fmt: off
CASES = {
    "chain": Case(
        chain, None,
        {r"fmuladd": "scale shift", r"fmul ": "square", r"@llvm.sqrt": "root",
         r"@llvm.trunc": "whole"},
        {r"sqrt": "square root whole"},
        {r"vfmadd": "scale shift", r"vmulps": "square", r"vsqrtps": "root",
         r"vround|vrndscale": "whole"},
    ),
    "dense": Case(
        dense, TILE,
        {r"fmuladd": "product", r"phi <": "product", r"fadd ": "bias", r"fcmp ": "relu",
         r"%p3_v\d+ = load": "DATA bias", r"store .*%Bs": "DATA product", r"store .*%p0": "relu"},
        {r"^acc.* \+= ": "DATA product", r"= \*\(.*&p3\[": "DATA bias"},
        {r"vfmadd": "product", r"vaddps": "bias", r"vmaxps": "relu"},
    ),
    "dense-auto": Case(
        dense, None,
        {r"fmuladd": "product", r"fadd ": "bias", r"fcmp ": "relu"},
        {r"^acc.* \+= ": "product"},
        {r"vfmadd": "product", r"vaddps": "bias", r"vmaxps": "relu"},
    ),
    "softmax": Case(
        softmax, None,
        {r"fcmp ogt <.*%acc0": "greatest", r"@llvm.trunc|fmuladd|bitcast|shl ": "exp",
         r"fdiv ": "share"},
        {r"trunc": "exp"},
        {r"vfn?madd|vround|vrndscale|vpslld": "exp", r"vdivps": "share"},
    ),
    "convolution": Case(
        convolution, None,
        {r"fmuladd": "window", r"@llvm.sqrt": "root"},
        {r"sqrt": "bias root"},
        {r"vfmadd": "window", r"vsqrt.s": "root"},
    ),
    "gathered": Case(
        gathered, None,
        {r"= load i32": "rows pick", r"@llvm.masked.load": "DATA pick", r"fmul ": "weigh",
         r"fadd ": "total"},
        {r"= p1\[g0\];": "rows pick"},
        {r"vmulps": "weigh", r"vadd[ps]s": "total"},
    ),
}
# fmt: on


@dataclass(frozen=True)
class Looked:
    """A kernel of a case, compiled, and its links."""

    compiled: Compiled
    links: Links


@cache
def looked(name: str, device: str) -> tuple[Looked, ...]:
    case = CASES[name]
    found = explore(case.make())
    stored = [item.node for item in found.items if item.kernel is not None]
    kernels = [_with_opts(k, case.opts) for k in found.kernels]
    return tuple(
        Looked(made, links_of(made, found.passes, node))
        for node, made in zip(stored, [k.compile(device) for k in kernels], strict=True)
    )


def _with_opts(kernel: Kernel, opts: tuple[Opt, ...] | None) -> Kernel:
    return kernel.optimized() if opts is None else kernel.apply(*opts)


def words(name: str, origin: Origin) -> str:
    """The words behind the user's lines of an origin; DATA for a line that makes tensors."""
    texts, first = inspect.getsourcelines(CASES[name].make)
    found: dict[str, None] = {}
    for line in origin.lines:
        inside = 0 <= line.line - first < len(texts)
        text = texts[line.line - first].strip() if inside else ""
        found[text.partition("  # ")[2] or "DATA"] = None
    return " ".join(found)


def all_words(name: str) -> set[str]:
    texts = inspect.getsource(CASES[name].make).splitlines()
    return {t.partition("  # ")[2] for t in texts} - {""}


def numbered(made: Looked) -> list[tuple[int, str]]:
    return [(n, t.strip()) for n, t in enumerate(made.compiled.source.split("\n"), 1)]


def check_patterns(
    name: str, wanted: dict[str, str], found: list[tuple[str, Origin]]
) -> None:
    for pattern, expected in wanted.items():
        lines = [
            (text, words(name, o)) for text, o in found if re.search(pattern, text)
        ]
        assert lines, f"nothing is {pattern}"
        wrong = [line for line in lines if line[1] != expected]
        assert not wrong, (pattern, expected, wrong[:3])


# source


@pytest.mark.parametrize("device", ["LLVM", "C"])
@pytest.mark.parametrize("name", CASES)
def test_lines_of_source_lead_to_the_users_lines(name: str, device: str) -> None:
    wanted = CASES[name].ir if device == "LLVM" else CASES[name].c
    found = [
        (text, made.links.of_line(number))
        for made in looked(name, device)
        for number, text in numbered(made)
        if made.links.positions[number - 1]
    ]
    check_patterns(name, wanted, found)


@pytest.mark.parametrize("device", ["LLVM", "C"])
@pytest.mark.parametrize("name", CASES)
def test_every_line_of_the_users_leads_to_code(name: str, device: str) -> None:
    seen: set[str] = set()
    for made in looked(name, device):
        for number, _ in numbered(made):
            origin = made.links.of_line(number)
            seen.update(words(name, origin).split())
            for line in origin.lines:
                assert number in made.links.text_lines(line)
    assert all_words(name) <= seen


@pytest.mark.parametrize("device", ["LLVM", "C"])
@pytest.mark.parametrize("name", CASES)
def test_every_float_is_computed_for_someone(name: str, device: str) -> None:
    """Each node that makes, moves or stores a float knows its kernel, its tensor and a line."""
    for made in looked(name, device):
        found = _floats(made.links)
        assert found
        for node in found:
            origin = made.links.of(node)
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


def test_axes_are_the_loops_around_and_the_lanes() -> None:
    (made,) = looked("dense", "LLVM")
    fma = next(n for n, t in numbered(made) if "fmuladd" in t)
    bias = next(n for n, t in numbered(made) if "fadd " in t)
    order = made.compiled.passes[-3].before.arg.order
    inside = made.links.of_line(fma).axes
    assert set(inside) == {*order, "u0", "u1"} - {"b_r1"}
    assert made.links.of_line(bias).axes == ("g0", "g1", "u0", "u1")
    statement = next(n for n in made.links.tree if n.op is Ops.ACCUMULATE)
    assert words("dense", made.links.of(statement)) == "product"


# rules


def pooled() -> Tensor:
    x = data(1, 2, 9, 9)
    return x.max_pool2d((3, 3), stride=2, padding=1)


def turned() -> Tensor:
    return (data(6, 8).permute(1, 0).reshape(48) + 1).contiguous()


def led_to(links: Links, records: list[PassRecord], *nodes: UOp) -> list[str]:
    """What led to nodes, the latest first: the rule, or the pass that is a function."""
    found = []
    for cause in links.why(*nodes):
        record = records[cause.place]
        is_rule = cause.number > 0 and isinstance(record.matches[0].rule, Rule)
        rule = record.matches[cause.number - 1].rule.name if is_rule else ""
        found.append(rule or record.name)
    return found


TILED = (Opt(OptOps.UPCAST, "g1", 8), Opt(OptOps.UPCAST, "g0", 2))
VECTOR = ["linearize", "statement-tree", "opt-upcast", "opt-upcast", "rangeify"]
# fmt: off
LED = {
    # of a matmul with bias and relu: a sum step, the bias, and an index that an opt split
    "product": (dense, TILED, "fmuladd", Ops.FMA, VECTOR),
    "bias": (dense, TILED, "fadd ", Ops.ADD, VECTOR),
    "index": (dense, TILED, r"mul i64 %g1, 8", Ops.MUL, ["linearize", "opt-upcast"]),
    # of a softmax: what exp2 is made of, and a multiply-add that came of two of its operations
    "shift": (softmax, (), "shl ", Ops.SHL,
              ["linearize", "exp2-polynomial", "statement-tree", "rangeify"]),
    "reduced": (softmax, (), r"fmuladd.*0x3EDD94AE", Ops.FMA,
                ["linearize", "form-fma", "statement-tree", "rangeify"]),
    # of a padded pooling: the load under its gate, and one side of the gate
    "window": (pooled, (), r"= load float", Ops.LOAD,
               ["linearize", "load-gate", "distribute", "rangeify", "mod-congruent", "mod-terms",
                "mod-congruent"]),
    "border": (pooled, (), r"icmp slt i64 0, ", Ops.CMPLT, ["linearize", "rangeify", "at-most"]),
    # lanes in a division: the index is simplified at each of them
    "lane": (turned, (Opt(OptOps.UPCAST, "g0", 2),), r"srem i64", Ops.CMOD,
             ["mod-nonnegative", "mod-common-factor", "add-zero", "linearize", "opt-upcast",
              "rangeify"]),
}
# fmt: on


@pytest.mark.parametrize("name", LED)
def test_rules_that_made_an_instruction(name: str) -> None:
    make, opts, pattern, op, wanted = LED[name]
    found = explore(make())
    compiled = found.kernels[-1].apply(*opts).compile("LLVM")
    links = links_of(compiled, found.passes)
    lines = compiled.source.split("\n")
    (number, *_) = [n for n, t in enumerate(lines, 1) if re.search(pattern, t)]
    nodes = [links.linear[p] for p in links.positions[number - 1]]
    assert op in [n.op for n in nodes]
    records = [*found.passes, *compiled.passes]
    assert led_to(links, records, *nodes) == wanted


# instructions


@pytest.mark.parametrize("name", CASES)
def test_instructions_lead_to_the_users_lines(name: str) -> None:
    found = [
        (line.text, origin)
        for made in looked(name, "LLVM")
        for line, origin in _assembly(made)
    ]
    if jit.is_x86() and any("vfmadd" in text for text, _ in found):
        check_patterns(name, CASES[name].asm, found)
    seen = {w for _, origin in found for w in words(name, origin).split()}
    assert all_words(name) <= seen


@pytest.mark.parametrize("device", ["LLVM", pytest.param("C", marks=needs_c)])
@pytest.mark.parametrize("name", CASES)
def test_instructions_of_a_loop_lead_to_a_line_or_a_loop(
    name: str, device: str
) -> None:
    for made in looked(name, device):
        lines = _assembly(made)
        loops = code_loops([line for line, _ in lines])
        assert loops
        for loop in loops:
            for line, origin in lines[loop.start : loop.stop]:
                assert line.is_label or origin.lines or origin.axes, line


@pytest.mark.parametrize("device", ["LLVM", pytest.param("C", marks=needs_c)])
@pytest.mark.parametrize("name", CASES)
def test_asking_for_lines_changes_no_instruction(name: str, device: str) -> None:
    for made in looked(name, device):
        plain = readable(made.compiled.assembly)
        assert [line.text for line in made.compiled.assembly_lines] == [
            line.text for line in plain
        ]
        assert not any(line.source_line for line in plain)
        assert any(line.source_line for line in made.compiled.assembly_lines)


def _assembly(made: Looked) -> list[tuple[AsmLine, Origin]]:
    lines = made.compiled.assembly_lines
    return list(zip(lines, made.links.of_assembly(lines), strict=True))


def test_an_emulator_has_no_instructions() -> None:
    (made,) = looked("dense", "PYTHON")
    with pytest.raises(DeviceError, match="no machine code"):
        _ = made.compiled.assembly_lines
    assert made.links.of_line(1) == Origin()


def test_locations_take_numbers_that_are_free() -> None:
    (made,) = looked("dense", "LLVM")
    text = made.compiled.source + '!0 = !{!"mine"}\n!mine = !{!0}\n'
    found = readable(jit.compile_assembly(with_locations(text)))
    assert found == made.compiled.assembly_lines


# schedules


def test_equal_kernels_have_the_lines_of_their_own_value() -> None:
    a, b = data(64), data(64)
    first = a.sqrt().contiguous()
    second = b.sqrt().contiguous()
    found = explore(first, second)
    assert found.kernels[0].original is found.kernels[1].original
    made = found.kernels[0].compile("LLVM")
    lines = []
    for item in found.items:
        if item.kernel is not None:
            links = links_of(made, found.passes, item.node)
            number = next(
                n for n, t in enumerate(made.source.split("\n"), 1) if "sqrt" in t
            )
            lines.append([line.text for line in links.of_line(number).lines])
    assert lines[0] == ["first = a.sqrt().contiguous()"]
    assert lines[1] == ["second = b.sqrt().contiguous()"]


def test_lines_are_those_of_this_expression() -> None:
    """The kernel of an earlier cell is the same object; its lines are not."""
    earlier = explore(data(64).sqrt())
    later = explore(data(64).sqrt())
    assert earlier.kernels[0].original is later.kernels[0].original
    made = later.kernels[0].compile("LLVM")
    links = links_of(made, later.passes)
    texts = {
        line.text for places in links.positions for line in links.at(*places).lines
    }
    assert "later = explore(data(64).sqrt())" in texts
    assert "earlier = explore(data(64).sqrt())" not in texts


def test_equal_values_of_two_lines_have_both() -> None:
    x = data(64)
    y = (x * 2.0).sqrt()
    y = y + (x + x).sqrt()
    found = explore(y)
    made = found.kernels[0].compile("LLVM")
    links = links_of(made, found.passes)
    roots = [n for n, t in enumerate(made.source.split("\n"), 1) if "@llvm.sqrt" in t]
    seen = {line.text for n in roots for line in links.of_line(n).lines}
    assert {"y = (x * 2.0).sqrt()", "y = y + (x + x).sqrt()"} <= seen


def test_a_kernel_of_text_has_no_lines_but_kernel_nodes() -> None:
    text = explore(data(64).sqrt()).kernels[0].to_text()
    made = Kernel.from_text(text).compile("LLVM")
    links = links_of(made)
    number = next(n for n, t in enumerate(made.source.split("\n"), 1) if "sqrt" in t)
    origin = links.of_line(number)
    assert [n.op for n in origin.kernel] == [Ops.SQRT] and not origin.lines


def test_every_kernel_of_a_schedule_is_found() -> None:
    x = data(64, 64)
    y = (x @ x).contiguous().sqrt() @ x
    found = explore(y)
    chains = list(scheduled(found.passes))
    assert [c.kernel for c in chains] == [k.original for k in found.kernels]
    assert [c.stored for c in chains] == [i.node for i in found.items if i.kernel]
    for chain in chains:
        for record, place in zip(chain.records, chain.places, strict=True):
            assert record.name in (found.passes[place].name, "")


def test_links_are_bounded_like_matches() -> None:
    with observe(limit=10) as watching:
        explore_bare(dense())
    assert sum(_count(r) for r in watching.records) <= 10


def explore_bare(tensor: Tensor) -> None:
    tensor.schedule()


def _count(record: PassRecord) -> int:
    parts = [_count(p) if isinstance(p, PassRecord) else 1 for p in record.links]
    return len(record.matches) + sum(parts)
