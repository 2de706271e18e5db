"""Provenance across a schedule: whose lines, where kernels or values are equal."""

from __future__ import annotations

from tests.viz.provenance.provenance_cases import data, dense
from workbench import Tensor, explore
from workbench.base.trace import PassRecord, observe
from workbench.ir.node.ops import Ops
from workbench.kernel.kernel import Kernel
from workbench.viz.model.provenance import links_of, scheduled


def test_equal_kernels_have_the_lines_of_their_own_value() -> None:
    a, b = data(64), data(64)
    first = a.sqrt().contiguous()
    second = b.sqrt().contiguous()
    exploration = explore(first, second)
    assert exploration.kernels[0].original is exploration.kernels[1].original
    program = exploration.kernels[0].compile("LLVM")
    lines = []
    for item in exploration.items:
        if item.kernel is not None:
            links = links_of(program, exploration.passes, exploration.lines, item.nodes[0])
            number = next(n for n, t in enumerate(program.source.split("\n"), 1) if "sqrt" in t)
            lines.append([line.text for line in links.of_line(number).lines])
    assert lines[0] == ["first = a.sqrt().contiguous()"]
    assert lines[1] == ["second = b.sqrt().contiguous()"]


def test_lines_are_those_of_this_expression() -> None:
    """The kernel of an earlier cell is the same object; its lines are not."""
    earlier = explore(data(64).sqrt())
    later = explore(data(64).sqrt())
    assert earlier.kernels[0].original is later.kernels[0].original
    program = later.kernels[0].compile("LLVM")
    links = links_of(program, later.passes, later.lines)
    texts = {line.text for places in links.positions for line in links.at(*places).lines}
    assert "later = explore(data(64).sqrt())" in texts
    assert "earlier = explore(data(64).sqrt())" not in texts


def test_equal_values_of_two_lines_have_both() -> None:
    x = data(64)
    y = (x * 2.0).sqrt()
    y = y + (x + x).sqrt()
    exploration = explore(y)
    program = exploration.kernels[0].compile("LLVM")
    links = links_of(program, exploration.passes, exploration.lines)
    roots = [n for n, t in enumerate(program.source.split("\n"), 1) if "@llvm.sqrt" in t]
    texts = {line.text for n in roots for line in links.of_line(n).lines}
    assert {"y = (x * 2.0).sqrt()", "y = y + (x + x).sqrt()"} <= texts


def test_a_kernel_of_text_has_no_lines_but_kernel_nodes() -> None:
    text = explore(data(64).sqrt()).kernels[0].to_text()
    program = Kernel.from_text(text).compile("LLVM")
    links = links_of(program)
    number = next(n for n, t in enumerate(program.source.split("\n"), 1) if "sqrt" in t)
    origin = links.of_line(number)
    assert [n.op for n in origin.kernel] == [Ops.SQRT] and not origin.lines


def test_every_kernel_of_a_schedule_is_found() -> None:
    x = data(64, 64)
    y = (x @ x).contiguous().sqrt() @ x
    exploration = explore(y)
    chains = list(scheduled(exploration.passes))
    assert [c.kernel for c in chains] == [k.original for k in exploration.kernels]
    assert [c.stored for c in chains] == [i.nodes[0] for i in exploration.items if i.kernel]
    for chain in chains:
        for record, place in zip(chain.records, chain.places, strict=True):
            assert record.name in (exploration.passes[place].name, "")


def test_links_are_bounded_like_matches() -> None:
    with observe(limit=10) as watching:
        explore_bare(dense())
    assert sum(_count(r) for r in watching.records) <= 10


def explore_bare(tensor: Tensor) -> None:
    tensor.schedule()


def _count(record: PassRecord) -> int:
    parts = [_count(p) if isinstance(p, PassRecord) else 1 for p in record.edges]
    return len(record.matches) + sum(parts)
