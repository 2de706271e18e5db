"""What each opt's file shows at its top is what the opt does: statements before, and after.

On a mismatch the assertion shows the text that belongs there.
"""

from __future__ import annotations

import inspect
import pickle
import sys
from textwrap import indent
from types import ModuleType

import pytest

from tests.ir.opt.support import apply, opt
from tests.tools.kernels import LLVM, sum_of_columns
from workbench.ir.lower.lower import lower
from workbench.ir.node.uop import UOp
from workbench.ir.opt.kinds import (
    group,
    local,
    nolocals,
    order,
    padto,
    split,
    stage,
    tc,
    thread,
    unroll,
    upcast,
)
from workbench.ir.opt.opt import Opt, OptOps
from workbench.ir.text.readable import to_expr

BEFORE = sum_of_columns(12, 8).graph
SHOWN: dict[ModuleType, tuple[Opt, ...]] = {
    upcast: (opt("UPCAST", "g0", 4),),
    unroll: (opt("UNROLL", "r0", 4),),
    local: (opt("LOCAL", "g0", 4),),
    thread: (opt("THREAD", "g0", 2),),
    group: (opt("GROUP", "r0", 4), opt("GROUPTOP", "r0", 4)),
    split: (opt("SPLIT", "r0", 4),),
    padto: (opt("PADTO", "g0", 6), opt("PADTO", "r0", 8)),
    order: (opt("ORDER", "r0", "g0"),),
    stage: (opt("STAGE", "g0", 1),),
    nolocals: (opt("NOLOCALS"),),
}
REFUSED_EVERYWHERE = {tc}


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


@pytest.mark.parametrize("module", SHOWN, ids=lambda m: m.__name__.rsplit(".")[-1])
def test_the_top_of_the_file_shows_before_and_after(module: ModuleType) -> None:
    doc = inspect.getdoc(module)
    assert doc is not None
    for each in SHOWN[module]:
        after = statements(apply(BEFORE, each))
        snippet = f"{each}:\n\n" + indent(beside(statements(BEFORE), after), "    ")
        assert snippet in doc, f"{module.__name__} should say\n\n{snippet}"


def test_every_opt_has_a_file_that_is_shown_here() -> None:
    assert {sys.modules[op.why_not.__module__] for op in OptOps} == {
        *SHOWN,
        *REFUSED_EVERYWHERE,
    }
    ops = {o.op for opts in SHOWN.values() for o in opts}
    assert ops == set(OptOps) - {OptOps.TC, OptOps.SWAP}
    assert OptOps.PADTO is OptOps["PADTO"] is pickle.loads(pickle.dumps(OptOps.PADTO))
    swapped = apply(BEFORE, opt("SWAP", "g0", "r0"))
    assert swapped is apply(BEFORE, *SHOWN[order]), "of two loops, and says so"
