"""The predicted cost of a kernel on any machine: this one by its measured speeds, others by their
published figures.
"""

from __future__ import annotations

from workbench.base.errors import WorkbenchError
from workbench.base.forking import free_lock
from workbench.base.target import Hardware, Target
from workbench.cost.bottleneck import bottleneck
from workbench.cost.gpu.gpu_bottleneck import gpu_bottleneck
from workbench.cost.gpu.gpu_cost import GpuCost, gpu_cost
from workbench.cost.kernel_cost import Cost, cost
from workbench.cost.run_cost import Bottleneck, RunCost
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import RulesInForce, rules_in_force
from workbench.measure.speeds import Rate, Speeds

KEPT_COSTS = 512
"""Costs that are memoised, the last ones: a page asks for those of the same kernels again."""
LEVEL_STEP = 2.0
"""How much slower each cache is than the one before, where its speed is not published."""
_lock = free_lock()
Key = tuple[UOp, Target, UOp, RulesInForce, int | None]
_costs: dict[Key, tuple[Speeds | None, RunCost]] = {}


def predicted_cost(
    kernel: UOp,
    target: Target,
    speeds: Speeds | None = None,
    original: UOp | None = None,
    registers: int | None = None,
) -> RunCost:
    """Return the cost of a kernel (a SINK) for a target: of equal kernels it is computed once.

    `speeds` are those of this machine; a machine that is not here has its own. `original` is the
    kernel without opts: its operations and bytes are those of the algorithm. `registers` of a
    work-item are those that a compiler said. Errors: CompileError where it cannot be lowered;
    DeviceError for a work-group that is too large; WorkbenchError for source text, whose loops are
    unknown, and for a machine without published figures.
    """
    if kernel.code is not None:
        what = f"the kernel {kernel.arg.name} has no predicted cost"
        because = f"it is written in {kernel.code.language}, and its loops are not known"
        raise WorkbenchError(what, because, ".time() measures it")
    plain = kernel if original is None else original
    key = kernel, target, plain, rules_in_force(), registers
    memoised = _costs.get(key)
    if memoised is not None and memoised[0] == speeds:
        return memoised[1]
    result = _cost(kernel, target, speeds, plain, registers)
    if key[3] == rules_in_force():  # else a rule was added, and may have been used
        with _lock:
            _costs.pop(key, None)
            _costs[key] = speeds, result
            while len(_costs) > KEPT_COSTS:
                del _costs[next(iter(_costs))]
    return result


def bottleneck_of(cost: RunCost, target: Target, measured_s: float | None = None) -> Bottleneck:
    """Return what a kernel of this cost waits for; `measured_s` is the measured time of a run."""
    if isinstance(cost, GpuCost):
        return gpu_bottleneck(cost)
    assert isinstance(cost, Cost)
    return bottleneck(cost, target, measured_s)


def _cost(
    kernel: UOp, target: Target, speeds: Speeds | None, original: UOp, registers: int | None
) -> RunCost:
    hardware = target.hardware
    if hardware is not None and target.has_groups:
        return gpu_cost(kernel, target, original, registers)
    machine = speeds if hardware is None else published_speeds(hardware, target)
    if machine is None or target.has_groups:
        what = f"there is no predicted cost for {target.device}"
        raise WorkbenchError(what, "its figures are not known", "a machine that has them")
    return cost(kernel, target, machine, original)


def published_speeds(hardware: Hardware, target: Target) -> Speeds:
    """Return the speeds of a processor that is not here, by its published figures. Those of caches
    are mostly not published: each is a step slower than the one before."""
    units, clock = hardware.units, hardware.clock_hz
    peak = {
        kind: Rate(hardware.peak(dtype) / units, hardware.peak(dtype))
        for kind, dtype in (("f32", "float32"), ("f64", "float64"))
    }
    dram = hardware.bandwidth("DRAM")
    speed = hardware.bandwidth("L1") or 32 * clock * units
    read: dict[str, Rate] = {}
    for level, _ in target.caches:
        speed = hardware.bandwidth(level) or speed
        read[level] = Rate(speed / units, speed)
        speed = max(dram, speed / LEVEL_STEP)
    read["memory"] = Rate(min(dram, 4 * dram / units), dram)
    sizes = [4, *(n for n in (16, 32, 64) if n <= target.vector_bytes)]
    each = {str(n): 1 / (clock * target.starts(n)) for n in sizes}
    return Speeds(
        peak, read, read, target.fma_cycles / clock, each["4"], 1e-6, hardware.launch_s,
        cycle_s=1 / clock, each_s=each,
    )  # fmt: skip
