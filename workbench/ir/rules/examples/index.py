"""Examples of the index rules, checked by tests: graphs, and their results in words."""

from __future__ import annotations

from workbench.base.dtypes import dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, gated, invalid
from workbench.ir.rewriting.example_graphs import axis, load, param, reduced

g0 = axis("g0", 2)
a, b, n = axis("g2", 5), axis("g3", 40), axis("g4", 7)
EXAMPLES: dict[str, list[tuple[UOp, str]]] = {
    "gather-terms": [(a * 2 + a, "g2*3"), ((a + 3) + b, "g2 + g3 + 3"), ((a + b) + a * -1, "g3")],
    "rejoin-div-mod": [
        ((b // 8) * 8 + b % 8, "g3"),
        (b % 8 + (n + (b // 8) * 8), "g3 + g4"),
        ((b // 8) * 24 + (b % 8) * 3, "g3*3"),
        ((b + (b // 8) * 24) + (b % 8) * 3, "g3*4"),
    ],
    "distribute": [((a + 3) * 4, "g2*4 + 12")],
    "div-terms": [
        ((a * 8 + n) // 8, "g2"),
        ((a * 8 + b) // 8, "g2 + g3 // 8"),
        ((b + 16) // 8, "(g3 + 16) // 8"),
    ],
    "mod-terms": [
        ((a * 8 + n) % 8, "g4"),
        ((a * 8 + b) % 8, "g3 % 8"),
        (a % 8, "g2"),
    ],
    "div-congruent": [((a * 10 + n) // 9, "(g2*10 + g4) // 9"), ((g0 * 10 + n) // 9, "g0")],
    "mod-congruent": [((g0 * 10 + n) % 9, "g0 + g4"), ((n * 11 + 8) % 12, "g4*-1 + 8")],
    "div-common-factor": [
        ((b * 2 + 1) // 6, "g3 // 3"),
        ((a * 4 + b * 6) // 8, "(g2*2 + g3*3) // 4"),
    ],
    "mod-common-factor": [((b * 2 + 1) % 6, "g3 % 3*2 + 1")],
    "div-div": [((b // 3) // 4, "g3 // 12")],
    "mod-mod": [((b % 12) % 4, "g3 % 4")],
    "less-than": [(b * 4 + 3 < 30, "g3 < 7"), (b + 3 < 10, "g3 < 7")],
    "negated-less": [(b * -1 < -7, "7 < g3"), (b * -2 < -13, "6 < g3")],
    "greater-than": [(b * 4 + 3 > 30, "6 < g3")],
    "at-most": [(b <= 7, "g3 < 8"), (b >= 7, "6 < g3")],
    "and-twice": [(((b < 7) & (n < 3)) & (b < 7), "(g3 < 7) & (g4 < 3)")],
    "reduce-independent": [
        (reduced(Ops.ADD, load(param(1, 5), a), b), "p1[g2] * 40.0"),
        (reduced(Ops.MAX, load(param(1, 5), a), b), "p1[g2]"),
        (reduced(Ops.ADD, load(param(1, 5), a), a, b), "REDUCE(add, p1[g2] * 40.0, g2)"),
    ],
    "load-invalid": [(load(param(1, 5), invalid()), "0.0")],
    "load-gate": [
        (
            (a < 3).where(load(param(1, 3), gated(a, a < 3)), UOp.const(dtypes.float32, 0.0)),
            "p1[g2 where g2 < 3]",
        )
    ],
}  # fmt: skip
