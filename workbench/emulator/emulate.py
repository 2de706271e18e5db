"""`emulate(kernel)`: a kernel on a GPU that need not be here, work-item by work-item."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench.backends.device import Device
from workbench.backends.gpu.target import common_gpu
from workbench.backends.program.launch import LaunchShape
from workbench.base.arguments import require
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import DeviceError, WorkbenchError
from workbench.base.target import Target
from workbench.base.trace import unobserved
from workbench.emulator.checks.code import params_of, program_of, require_params
from workbench.emulator.checks.duration import emulation_s
from workbench.emulator.checks.edits import hints_of_edit
from workbench.emulator.checks.inefficiencies import inefficiencies
from workbench.emulator.checks.limits import (
    require_elements,
    require_fit,
    require_time,
)
from workbench.emulator.checks.wrong_values import find_wrong_values
from workbench.emulator.findings import Finding
from workbench.emulator.history import GroupHistory
from workbench.emulator.history_recorder import history_of
from workbench.emulator.machine import Machine, written_slots
from workbench.emulator.memory import spoil
from workbench.emulator.numbering import among_all
from workbench.emulator.trace import Trace
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import without
from workbench.kernel.run import random_values
from workbench.kernel.runnable import RunnableKernel
from workbench.pipeline import build, stages

Array = np.ndarray[Any, Any]
NOTHING: Mapping[int, Array] = MappingProxyType({})
MOST_PAGE_S = 10.0
"""Most seconds of all work-groups of a launch for a page; beyond it runs one of them."""
MOST_PAGE_BYTES = 4 << 20
"""Most bytes of the steps of a group in a page."""


def emulate(
    kernel: RunnableKernel | str,
    target: str | Target = "",
    history: bool | Sequence[int] = False,
    code: str | Sequence[UOp] | None = None,
) -> Trace:
    """Return the Trace of a run of `kernel`, on its own data, as a device with work-groups runs it:
    `target` is the name of one or of a machine ("CUDA:H100", "H100"), or a Target; "" is the
    kernel's device, or else a common GPU.

    `code` is another program for it, the text of its `emulate(kernel).code` that somebody edited:
    what it computes is compared with what the kernel does. The text of a program may also stand
    alone, in the kernel's place: it runs on seeded random data.

    With `history`, the numbers of a work-group along x, y and z, the Trace has each step of that
    group; True is the group of the first finding, else the first one.

    Errors: DeviceError for a device without work-groups; WorkbenchError where the kernel's data are
    not here, for a value that is not a kernel, and for a group that there is not; CompileError as
    `compile`; ParseError and VerifyError for code that is not a program; DeviceError for one too
    large for the device.
    """
    history = _group_numbers(history)
    if isinstance(kernel, str):
        return _alone(kernel, target_of(None, target), history)
    if not isinstance(kernel, RunnableKernel):
        because = f"{type(kernel).__name__} is neither a kernel nor text"
        hint = "explore(y).kernels[0]"
        raise WorkbenchError(f"cannot emulate {kernel!r:.60}", because, hint)
    gpu = target_of(kernel, target)
    linear, arrays = _program(kernel, gpu)
    fresh = _only_written(kernel.original.toposort(), kernel.original.outputs)
    spoil(arrays, fresh)
    if code is None:
        return emulated(linear, arrays, gpu, history, fresh=fresh)
    with hints_of_edit(code, linear):
        program = program_of(code)
        require_params(program, linear, kernel.original.outputs, gpu)
    expected = _results(kernel, fresh)
    return emulated(program, arrays, gpu, history, expected, fresh)


def _group_numbers(history: Any) -> bool | tuple[int, ...]:
    """Return whether there is a history, or the numbers of its group. Errors: WorkbenchError."""
    if isinstance(history, bool):
        return history
    try:
        return tuple(map(operator.index, history))
    except TypeError:
        because = "a group has a whole number along each of x, y and z"
        hint = "history=(0, 0, 0), or history=True"
        raise WorkbenchError(f"no group is {history!r:.60}", because, hint) from None


def _alone(code: str, gpu: Target, history: bool | Sequence[int]) -> Trace:
    with hints_of_edit(code):
        program = program_of(code)
    require_elements(program, gpu)
    generator = np.random.default_rng(0)
    arrays = [
        random_values(generator, dtype, length) if dtype.bits else np.zeros(0)
        for dtype, length in params_of(program, gpu)
    ]
    fresh = _only_written(program, written_slots(program))
    spoil(arrays, fresh)
    return emulated(program, arrays, gpu, history, fresh=fresh)


def _results(kernel: RunnableKernel, fresh: Set[int]) -> dict[int, Array]:
    """Return what a kernel without opts leaves in its outputs, by slot."""
    graph, device = kernel.original, Device.emulator.name
    with unobserved():
        buffers = kernel.data.buffers(graph, device)
        spoil([b.array for b in buffers], fresh)
        build(graph, device).program(buffers)
    return {slot: buffers[slot].array for slot in graph.outputs}


def _only_written(nodes: Iterable[UOp], slots: Iterable[int]) -> frozenset[int]:
    """Return those of the slots that no LOAD reads."""
    memories = (n.place.param for n in nodes if n.op is Ops.LOAD)
    return frozenset(slots) - {m.slot for m in memories if m.op is Ops.PARAM}


def emulate_for_steps(
    kernel: RunnableKernel,
    group: bool | Sequence[int],
    without: int | None = None,
    most_s: float = MOST_PAGE_S,
) -> Trace:
    """Return the Trace of a run with the steps of a group, as many as a page can have; `without`
    one of its barriers, by number. A launch that takes more than `most_s` seconds is not run: only
    that group is, and the counts are of it alone.

    Errors: DeviceError where that takes too long, too.
    """
    gpu = target_of(kernel)
    linear, arrays = _program(kernel, gpu)
    linear = _without_barrier(linear, without)
    fresh = _only_written(kernel.original.toposort(), kernel.original.outputs)
    spoil(arrays, fresh)
    memory = _memory(linear, arrays, gpu)
    before = [array.copy() for array in memory]
    machine = Machine(
        linear, memory, gpu.warp_lanes, fresh=fresh, copies_async=gpu.copies_async
    )
    is_whole = emulation_s(linear) <= most_s
    if is_whole:
        machine.run()
    else:
        require_time(linear, gpu, groups=1)
        machine.run(_group(machine.launch, group, ()), 1)
    number = _group(machine.launch, group, machine.findings.all)
    steps = history_of(
        linear, before, gpu.warp_lanes, number, MOST_PAGE_BYTES, _dtypes_of(arrays)
    )
    return _trace(machine, arrays, gpu, steps, is_whole)


def seconds_for_steps(kernel: RunnableKernel) -> float:
    """Return about how many seconds the steps of a group take, without a run of all groups."""
    return emulation_s(_program(kernel, target_of(kernel))[0], groups=1)


def emulate_if_small(kernel: RunnableKernel, most_s: float) -> Trace | None:
    """Return the Trace of a run; None where it takes more than `most_s` seconds."""
    gpu = target_of(kernel)
    linear, arrays = _program(kernel, gpu)
    return emulated(linear, arrays, gpu) if emulation_s(linear) <= most_s else None


def _without_barrier(linear: tuple[UOp, ...], number: int | None) -> tuple[UOp, ...]:
    if number is None:
        return linear
    places = [place for place, node in enumerate(linear) if node.op is Ops.BARRIER]
    if number >= len(places):
        because = f"the program has {len(places)} barriers"
        raise WorkbenchError(f"there is no barrier {number}", because)
    return (*linear[: places[number]], *linear[places[number] + 1 :])


def _program(
    kernel: RunnableKernel, gpu: Target
) -> tuple[tuple[UOp, ...], list[Array]]:
    kernel.require_data("cannot emulate this kernel")
    if kernel.ast.code is not None:
        what = f"cannot emulate the kernel {kernel.ast.arg.name}"
        because = f"it is written in {kernel.ast.code.language}: it has no steps to run one by one"
        raise DeviceError(what, because, ".run() or .time(), which run it")
    with unobserved(), without(kernel.rules_off):
        linear = stages(kernel.ast, gpu, "linear").linear
        require_elements(linear, gpu)
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
    require_fit(linear, target)
    memory = _memory(linear, arrays, target)
    before = [array.copy() for array in memory] if history is not False else []
    machine = Machine(
        linear, memory, target.warp_lanes, fresh=fresh, copies_async=target.copies_async
    )
    require_time(linear, target)
    machine.run()
    find_wrong_values(machine, expected)
    steps = None
    if history is not False:
        number = _group(machine.launch, history, machine.findings.all)
        steps = history_of(
            linear,
            before,
            target.warp_lanes,
            number,
            arguments=_dtypes_of(arrays),
        )
    return _trace(machine, arrays, target, steps)


def _memory(
    linear: Sequence[UOp], arrays: Sequence[Array], target: Target
) -> list[Array]:
    return [
        array.view(dtype.numpy) if dtype.bits else array
        for array, (dtype, _) in zip(arrays, params_of(linear, target), strict=False)
    ]


def _dtypes_of(arrays: Sequence[Array]) -> dict[int, DType]:
    return {slot: dtypes.from_numpy(a.dtype) for slot, a in enumerate(arrays)}


def _trace(
    machine: Machine,
    arrays: Sequence[Array],
    target: Target,
    steps: GroupHistory | None,
    is_whole: bool = True,
) -> Trace:
    """Return the Trace of a run over `arrays`, which the machine may have had as bits."""
    totals = machine.totals
    return Trace(
        machine.linear,
        machine.launch,
        machine.memory.counts,
        totals.executed,
        totals.divergent,
        totals.barriers,
        totals.shuffles,
        tuple(machine.findings.all),
        inefficiencies(machine),
        {slot: arrays[slot] for slot in sorted(written_slots(machine.linear))},
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
        what, last = f"there is no group {tuple(group)}", tuple(n - 1 for n in sizes)
        hint = (
            f"history={(0,) * len(sizes)} to {last}, along x, y and z; or history=True"
        )
        raise WorkbenchError(
            what, f"the grid is {grid}", hint if sizes else "history=True"
        )
    return among_all(numbers, launch.grid)


def target_of(kernel: RunnableKernel | None, target: str | Target = "") -> Target:
    """Return the Target that a kernel is emulated for. Errors: DeviceError."""
    require(target, (str, Target), "emulate: target", '"H100"')
    if isinstance(target, Target):
        gpu = target
    elif target:
        gpu = Device[Device.on_machine(machine=target)].target
    else:
        own = None if kernel is None else Device[kernel.device].target
        return own if own and own.has_groups else common_gpu("common GPU")
    if not gpu.has_groups:
        what = f"cannot emulate work-items of {gpu.device}"
        because = "it has no work-groups"
        raise DeviceError(what, because, "a device with work-groups, or no device")
    return gpu
