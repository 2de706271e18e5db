"""Which rules made an instruction, the latest first."""

from __future__ import annotations

import re

import pytest

from tests.viz.provenance.provenance_cases import data, dense, softmax
from workbench import Opt, OptOps, Tensor, explore
from workbench.base.trace import PassRecord
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import Rule
from workbench.viz.model.provenance import Links, links_of


def pooled() -> Tensor:
    x = data(1, 2, 9, 9)
    return x.max_pool2d((3, 3), stride=2, padding=1)


def turned() -> Tensor:
    return (data(6, 8).permute(1, 0).reshape(48) + 1).contiguous()


def led_to(links: Links, records: list[PassRecord], *nodes: UOp) -> list[str]:
    """What led to nodes, the latest first: the rule, or the pass that is a function."""
    names = []
    for cause in links.why(*nodes):
        record = records[cause.place]
        rule = record.matches[cause.number - 1].rule if cause.number > 0 else None
        names.append(rule.name if isinstance(rule, Rule) else record.name)
    return names


TILED = (Opt(OptOps.UPCAST, "g1", 8), Opt(OptOps.UPCAST, "g0", 2))
UPCAST = ["opt-upcast", "opt-upcast"]
READ = ["push-through-op", "rangeify"]
MOVED = "push-through-movement"
SUMMED = [
    "linearize",
    "form-fma",
    "decompose",
    "statement-tree",
    *UPCAST,
    "push-through-op",
    "open-reduction",
    "rangeify",
]
"""The rule changes what is added; the sum around it is made anew by its pass."""
# fmt: off
LED = {
    # of a matmul with bias and relu: a sum step, the bias, and an index that an opt split
    "product": (dense, TILED, "fmuladd", Ops.FMA, SUMMED),
    "bias": (dense, TILED, "fadd ", Ops.ADD, ["linearize", "statement-tree", *UPCAST, *READ]),
    "index": (dense, TILED, r"mul i64 %g1, 8", Ops.MUL,
              ["linearize", *UPCAST, "load-memory", MOVED, MOVED, MOVED, *READ]),
    # of a softmax: what exp2 is made of, and a multiply-add of its formula
    "shift": (softmax, (), "shl ", Ops.SHL,
              ["linearize", "exp2-polynomial", "statement-tree", "exp-formula", *READ]),
    "reduced": (softmax, (), r"fmuladd.*0x3EDD94AE", Ops.FMA,
                ["linearize", "statement-tree", "exp-formula", *READ]),
    # of a padded pooling: the load under its gate, and one side of the gate
    "window": (pooled, (), r"= load float", Ops.LOAD,
               ["linearize", "load-gate", "distribute", "load-memory", "push-through-pad",
                *[MOVED] * 6, "rangeify", "mod-congruent", "mod-terms", "mod-congruent",
                "decide"]),
    "border": (pooled, (), r"icmp slt i64 0, ", Ops.CMPLT,
               ["linearize", "push-through-pad", "rangeify", "at-most", "decide"]),
    # lanes in a division: the index is simplified at each of them
    "lane": (turned, (Opt(OptOps.UPCAST, "g0", 2),), r"srem i64", Ops.CMOD,
             ["mod-nonnegative", "mod-common-factor", "add-zero", "linearize", "opt-upcast",
              MOVED, "rangeify", "decide"]),
}
# fmt: on


@pytest.mark.parametrize("name", LED)
def test_rules_that_made_an_instruction(name: str) -> None:
    make, opts, pattern, op, expected = LED[name]
    exploration = explore(make())
    compiled = exploration.kernels[-1].apply(*opts).compile("LLVM")
    links = links_of(compiled, exploration.passes, exploration.lines)
    lines = compiled.source.split("\n")
    (number, *_) = [n for n, t in enumerate(lines, 1) if re.search(pattern, t)]
    nodes = [links.linear[p] for p in links.positions[number - 1]]
    assert op in [n.op for n in nodes]
    records = [*exploration.passes, *compiled.passes]
    assert led_to(links, records, *nodes) == expected
