"""`emulate(kernel)`: a kernel on a GPU that is not here, work-item by work-item."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.device import Device
from workbench.base.target import Target
from workbench.emulator.machine import Machine
from workbench.emulator.trace import Trace
from workbench.ir.node.uop import UOp
from workbench.pipeline import stages


def run_program(
    linear: Sequence[UOp], params: Sequence[object], warp_lanes: int = 32
) -> Trace:
    """Return the Trace of a linear program over arrays, one for each slot, which it writes to."""
    machine = Machine(linear, params, warp_lanes)
    machine.run()
    totals = machine.totals
    written = {
        n.place.param.slot for n in linear if n.op.name == "STORE" and not_local(n)
    }
    return Trace(
        tuple(linear),
        machine.launch,
        totals.accesses,
        totals.executed,
        totals.divergent,
        totals.barriers,
        tuple(machine.findings),
        {slot: machine.params[slot] for slot in sorted(written)},
    )


def not_local(store: UOp) -> bool:
    """Whether a STORE writes an argument."""
    return store.place.param.op.name == "PARAM"


def linear_program(kernel: UOp, device: str | Target) -> tuple[UOp, ...]:
    """Return the linear program of a kernel for a device, or a Target, with work-groups."""
    target = device if isinstance(device, Target) else Device[device].target
    return stages(kernel, target, "linear").linear
