"""The records in whose pages the scenes are: small ones that have something to show in every pane."""

from __future__ import annotations

import copy

from tests.viz.browser.page.support import MACHINE, Record, timing
from tests.viz.record import models
from tests.viz.record.support import plain
from tests.viz.support import softmax
from workbench.viz import Exploration, explore
from workbench.viz.record.record import build

CANDIDATES = [
    [0, None, "start: as given", 2e-3, ""],
    [1, 0, 'UPCAST("g0", 4)', 1e-3, ""],
    [2, 0, "UPCAST", None, "did not end"],
    [3, 1, 'UNROLL("r0", 4)', 5e-4, ""],
]


def timed(exploration: Exploration) -> Record:
    """A record whose variants are timed on a known machine, by a search among others; an offer of
    each is measured, instructions have costs, and the passes of the compiler are known."""
    record: Record = plain(build(exploration))
    record["machine"] |= MACHINE
    for i, variant in enumerate(record["variants"]):
        variant["timing"] = timing(2e-3 / (i + 1), spread=0.05) | {"run": "ab"[i % 2]}
        for offer in variant["offers"][:2]:
            offer |= {"measured": 2.0, "spread": 0.1, "seconds": 1e-3}
            offer["differs"] = offer is variant["offers"][0]
        for code in variant["code"]:
            if code.get("help"):
                code |= priced(code)
    return record


def priced(code: Record) -> Record:
    """Return what llvm-mca and a compiler would say of machine code."""
    ports = [{"p0": 0.5, "p5": 0.5}, {"p23": 1.0}, {}]
    states = {"Initial": [0, 1, 2], "Peephole": [0, 3, 2]}
    return {
        "costs": [[4, 0.5, ports[i % 3]] for i in range(len(code["lines"]))],
        "costs_by": "llvm-mca, znver4",
        "made_by": {
            "lines": ["entry:", "  COPY $rdi", "  RET", "  MOV $rdi"],
            "passes": [
                {"name": name, "title": "A pass", "lines": lines} for name, lines in states.items()
            ],
        },
    }


def unpriced(record: Record) -> Record:
    """Return a record in which nobody has asked what instructions cost."""
    result = copy.deepcopy(record)
    for variant in result["variants"]:
        for code in variant["code"]:
            for name in ("costs", "costs_by", "made_by"):
                code.pop(name, None)
    return result


def asked(question: str) -> Record:
    record: Record = plain(build(softmax(question)))
    return record


def many_kernels() -> Record:
    """Twelve equal layers and a softmax: 13 kernels."""
    return timed(explore(models.perceptron(12).softmax(-1)))
