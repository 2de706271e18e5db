"""The emulator names every planted defect, and finds nothing wrong with right kernels."""

from __future__ import annotations

from typing import Any

import pytest

from tests.emulator.defects import DEFECTS, RIGHT, Defect, kernel_of
from tests.support import by_rows
from workbench.emulator.findings import Finding, Inefficiency
from workbench.emulator.steps import Trace
from workbench.ir.nest.accesses import name_of
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


@by_rows("defect", DEFECTS, ids=lambda d: d.name)
def test_it_is_named(defect: Defect) -> None:
    trace = kernel_of(defect.kernel, defect.choices).run()
    listed = [*trace.findings, *trace.inefficiencies]
    assert any(_names(trace, f, defect) for f in listed), "\n".join(map(str, listed))


@pytest.mark.parametrize("kernel, choices", RIGHT)
def test_right_kernels(kernel: str, choices: dict[str, Any]) -> None:
    assert kernel_of(kernel, choices).run().findings == ()


def test_there_are_enough() -> None:
    assert len(DEFECTS) == len({d.name for d in DEFECTS}) >= 60


def _names(trace: Trace, found: Finding | Inefficiency, defect: Defect) -> bool:
    is_finding = isinstance(found, Finding)
    positions = found.positions if is_finding else (found.position,)
    elements = (found.element,) if is_finding else found.elements
    return (
        found.kind == defect.kind
        and tuple(_statement(trace.linear[p]) for p in positions) == defect.statements
        and (defect.element is None or defect.element in elements)
        and defect.items in (None, tuple(w.item[0] for w in found.items))
        and defect.groups in (None, tuple(w.group[0] for w in found.items))
        and (found.kind != "race" or len(set(found.items)) == 2)
    )


def _statement(node: UOp) -> str:
    memory = f" {name_of(node.place.param)}" if node.op in (Ops.LOAD, Ops.STORE) else ""
    return node.op.name + memory
