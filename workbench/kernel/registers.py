"""The registers of a work-item, as a compiler of the machine reports them: for predictions and the
page.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError
from workbench.base.trace import unobserved
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import RulesInForce, rules_in_force
from workbench.pipeline import build

KEPT_KERNELS = 512
"""Kernels whose registers are memoised, the last ones."""


def compiled_registers(kernel: UOp, device: str) -> int | None:
    """Return the registers of a work-item of a kernel (a SINK) for a device whose costs are by
    published figures; None where no compiler says them. What was compiled once is on disk."""
    info = Device[device]
    if not info.has_groups or not info.has_hardware or kernel.code is not None:
        return None
    return _registers(kernel, info.name, rules_in_force())


@lru_cache(maxsize=KEPT_KERNELS)
def _registers(kernel: UOp, device: str, rules: RulesInForce) -> int | None:
    with suppress(WorkbenchError), unobserved():
        code = getattr(build(kernel, device).program, "machine_code", None)
        return None if code is None else code.use.registers
    return None
