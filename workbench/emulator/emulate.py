"""`emulate(kernel)`: a kernel on a GPU that need not be here, work-item by work-item."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench.backends.device import Device
from workbench.backends.gpu.target import common_gpu
from workbench.backends.program.analysis import analyse
from workbench.backends.program.launch import LaunchShape, launch_shape
from workbench.backends.program.source import signature
from workbench.base.errors import DeviceError, WorkbenchError
from workbench.base.target import Target
from workbench.base.trace import unobserved
from workbench.emulator.findings import Finding
from workbench.emulator.history import GroupHistory
from workbench.emulator.history_recorder import history_of
from workbench.emulator.inefficiencies import inefficiencies
from workbench.emulator.machine import Machine
from workbench.emulator.numbering import among_all
from workbench.emulator.trace import Trace
from workbench.emulator.wrong_values import find_wrong_values
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import without
from workbench.kernel.runnable import RunnableKernel
from workbench.pipeline import stages

Array = np.ndarray[Any, Any]
NOTHING: Mapping[int, Array] = MappingProxyType({})
MOST_WORK = 1 << 28
"""Most nodes that work-items may execute for a page; it takes some ten seconds."""
MOST_PAGE_BYTES = 4 << 20
"""Most bytes of the steps of a group in a page."""


def emulate(
    kernel: RunnableKernel,
    target: str | Target = "",
    history: bool | Sequence[int] = False,
) -> Trace:
    """Return the Trace of a run of `kernel`, on its own data, as a device with work-groups runs it:
    `target` is the name of one, or a Target; "" is the kernel's device, or else a common GPU.

    With `history`, the numbers of a work-group along x, y and z, the Trace has each step of that
    group; True is the group of the first finding, else the first one.

    Errors: DeviceError for a device without work-groups; WorkbenchError where the kernel's data are
    not here, and for a group that there is not; CompileError as `compile`.
    """
    gpu = target_of(kernel, target)
    linear, arrays = _program(kernel, gpu)
    return emulated(linear, arrays, gpu, history)


def emulate_for_steps(kernel: RunnableKernel, group: bool | Sequence[int]) -> Trace:
    """Return the Trace of a run with the steps of a group, as many as a page can have. A launch of
    too many work-items is not run: only that group is, and the counts are of it alone."""
    gpu = target_of(kernel)
    linear, arrays = _program(kernel, gpu)
    memory = _memory(linear, arrays, gpu)
    before = [array.copy() for array in memory]
    machine = Machine(linear, memory, gpu.warp_lanes)
    is_whole = work_of(linear) <= MOST_WORK
    if is_whole:
        machine.run()
    else:
        machine.run(_group(machine.launch, group, ()), 1)
    number = _group(machine.launch, group, machine.findings.all)
    steps = history_of(linear, before, gpu.warp_lanes, number, MOST_PAGE_BYTES)
    return _trace(machine, memory, gpu, steps, is_whole)


def work_of(linear: Sequence[UOp]) -> int:
    """Return how many nodes all work-items of a launch execute together."""
    launch = launch_shape(linear)
    times, total = math.prod((*launch.grid, *launch.group)), 0
    for node in linear:
        total += times
        if node.op is Ops.LOOP:
            times *= node.axis.extent
        elif node.op is Ops.ENDLOOP:
            times //= node.axis.extent
    return total


def _program(
    kernel: RunnableKernel, gpu: Target
) -> tuple[tuple[UOp, ...], list[Array]]:
    kernel.require_data("cannot emulate this kernel")
    with unobserved(), without(kernel.rules_off):
        linear = stages(kernel.ast, gpu, "linear").linear
        buffers = kernel.data.buffers(kernel.original, Device.emulator.name)
    return linear, [b.array for b in buffers]


def emulated(
    linear: Sequence[UOp],
    arrays: Sequence[Array],
    target: Target,
    history: bool | Sequence[int] = False,
    expected: Mapping[int, Array] = NOTHING,
    fresh: Set[int] = frozenset(),
) -> Trace:
    """Return the Trace of a linear program over `arrays`, one for each slot, which it writes to;
    `history` as in `emulate`.

    `expected` are right outputs, by slot: what differs is a finding. What the arrays of the slots
    `fresh` hold before counts as written by nobody.
    """
    memory = _memory(linear, arrays, target)
    before = [array.copy() for array in memory] if history is not False else []
    machine = Machine(linear, memory, target.warp_lanes, fresh=fresh)
    machine.run()
    find_wrong_values(machine, expected)
    steps = None
    if history is not False:
        number = _group(machine.launch, history, machine.findings.all)
        steps = history_of(linear, before, target.warp_lanes, number)
    return _trace(machine, memory, target, steps)


def _memory(
    linear: Sequence[UOp], arrays: Sequence[Array], target: Target
) -> list[Array]:
    params = signature(analyse(tuple(linear), target).params)
    return [
        array.view(dtype.numpy) if dtype.bits else array
        for array, (dtype, _) in zip(arrays, params, strict=False)
    ]


def _trace(
    machine: Machine,
    memory: Sequence[Array],
    target: Target,
    steps: GroupHistory | None,
    is_whole: bool = True,
) -> Trace:
    totals = machine.totals
    written = {n.place.param for n in machine.linear if n.op is Ops.STORE}
    slots = sorted(p.slot for p in written if p.op is Ops.PARAM)
    return Trace(
        machine.linear,
        machine.launch,
        machine.memory.counts,
        totals.executed,
        totals.divergent,
        totals.barriers,
        tuple(machine.findings.all),
        inefficiencies(machine),
        {slot: memory[slot] for slot in slots},
        steps,
        is_whole,
        target,
    )


def _group(
    launch: LaunchShape, group: bool | Sequence[int], findings: Sequence[Finding]
) -> int:
    if isinstance(group, bool):
        items = [item for finding in findings[:1] for item in finding.items]
        return among_all(items[0].group, launch.grid) if items else 0
    sizes = [*reversed(launch.grid)]
    numbers = [*group, 0, 0, 0][: len(sizes)]
    fits = len(group) <= max(3, len(sizes)) and not any(group[len(sizes) :])
    if not fits or any(
        not 0 <= n < size for n, size in zip(numbers, sizes, strict=True)
    ):
        grid = " x ".join(map(str, sizes)) or "1"
        raise WorkbenchError(f"there is no group {tuple(group)}", f"the grid is {grid}")
    return among_all(numbers, launch.grid)


def target_of(kernel: RunnableKernel, target: str | Target = "") -> Target:
    """Return the Target that a kernel is emulated for. Errors: DeviceError."""
    if isinstance(target, Target):
        gpu = target
    elif target:
        gpu = Device[target].target
    else:
        own = Device[kernel.device].target
        return own if own.has_groups else common_gpu("common GPU")
    if not gpu.has_groups:
        what = f"cannot emulate work-items of {gpu.device}"
        because = "it has no work-groups"
        raise DeviceError(what, because, "a device with work-groups, or no device")
    return gpu
