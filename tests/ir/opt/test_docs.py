"""What each opt's file shows at its top is what the opt does: statements before, and after.

On a mismatch the assertion shows the text that belongs there.
"""

from __future__ import annotations

import ast
import inspect
import pickle
import re
import sys
from textwrap import indent

import pytest

from tests.ir.opt.support import apply, opt
from tests.tools.kernels import LLVM, sum_of_columns
from workbench.ir.lower.lower import lower
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import Opt, OptOps
from workbench.ir.text.program import to_expr

BEFORE = sum_of_columns(12, 8).graph
MODULES = sorted({op.why_not.__module__ for op in OptOps})
REFUSED_EVERYWHERE = {"TC", "PIPELINE"}
"""On a processor: test_tc.py and test_pipeline.py have them on GPUs."""
SAME_AS_ANOTHER = {"SWAP"}
"""Of two loops, ORDER: its file says so."""


def shown(module: str) -> list[Opt]:
    """Return the opts that the docstring of a module shows: `NAME(..):` on lines of their own."""
    doc = inspect.getdoc(sys.modules[module]) or ""
    lines = re.findall(r"^([A-Z]+)\((.*)\):$", doc, re.MULTILINE)
    return [opt(name, *ast.literal_eval(f"({args},)" if args else "()")) for name, args in lines]


def statements(graph: UOp) -> list[str]:
    """Return the lines of the statement tree, without what stands above its first loop."""
    lines = to_expr(lower(graph, LLVM)[0]).split("\n")
    return lines[next(i for i, line in enumerate(lines) if line.startswith("for ")) :]


def beside(left: list[str], right: list[str]) -> str:
    """Return two columns of lines with an arrow between the first."""
    width = max(map(len, left))
    rows = max(len(left), len(right))
    left, right = (side + [""] * (rows - len(side)) for side in (left, right))
    return "\n".join(
        f"{a:{width}} {'' if i else '->':2} {b}".rstrip()
        for i, (a, b) in enumerate(zip(left, right, strict=True))
    )


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.rsplit(".")[-1])
def test_the_top_of_the_file_shows_before_and_after(module: str) -> None:
    doc = inspect.getdoc(sys.modules[module])
    assert doc is not None
    for each in shown(module):
        after = statements(apply(BEFORE, each))
        snippet = f"{each}:\n\n" + indent(beside(statements(BEFORE), after), "    ")
        assert snippet in doc, f"{module} should say\n\n{snippet}"


def test_every_opt_is_shown_in_its_file() -> None:
    ops = {each.op.name for module in MODULES for each in shown(module)}
    assert ops == {op.name for op in OptOps} - REFUSED_EVERYWHERE - SAME_AS_ANOTHER
    assert len(ops) > 9
    assert OptOps.PADTO is OptOps["PADTO"] is pickle.loads(pickle.dumps(OptOps.PADTO))
    swapped = apply(BEFORE, opt("SWAP", "g0", "r0"))
    assert swapped is apply(BEFORE, opt("ORDER", "r0", "g0")), "of two loops"


def test_a_file_that_shows_something_else_is_told() -> None:
    """The check can fail: an opt of another amount makes other statements."""
    doc = inspect.getdoc(sys.modules[OptOps.UPCAST.why_not.__module__]) or ""
    after = statements(apply(BEFORE, opt("UPCAST", "g0", 2)))
    assert indent(beside(statements(BEFORE), after), "    ") not in doc
