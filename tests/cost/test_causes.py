"""What forty kernels wait for on four made machines: arithmetic decides it, not the model."""

from __future__ import annotations

from tests.cost.causes import MADE, ROWS
from tests.support import LONG, by_rows
from workbench import explore
from workbench.cost.bottleneck import bottleneck
from workbench.cost.kernel_cost import Bottleneck, Cost, cost
from workbench.ir.opt.apply import apply_opt

NEAR = 0.75
"""A cause whose part is as large as this share of the largest may be named as well."""
PAIRS = [
    (name, machine)
    for n, name in enumerate(ROWS)
    for m, machine in enumerate(MADE)
    if LONG or m == n % len(MADE)
]
"""In a short run each kernel is on one of the machines."""


def answer(name: str, machine_name: str) -> tuple[Cost, Bottleneck]:
    row, machine = ROWS[name], MADE[machine_name]
    kernel = plain = explore(row.make(machine.lanes)).kernels[-1].ast
    for opt in row.opts(machine.lanes):
        kernel, _ = apply_opt(kernel, opt, machine.target)
    result = cost(kernel, machine.target, machine.speeds, plain)
    return result, bottleneck(result, machine.target)


@by_rows(("name", "machine"), PAIRS)
def test_a_cause_is_the_one_that_arithmetic_finds(name: str, machine: str) -> None:
    parts = ROWS[name].parts(MADE[machine])
    largest = max(parts.values())
    possible = {cause for cause, cycles in parts.items() if cycles >= NEAR * largest}
    result, found = answer(name, machine)
    assert found.what in possible, f"{found}; by hand {parts}\n{result}"
