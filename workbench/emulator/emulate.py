"""`emulate(kernel)`: a kernel run as a GPU runs it, work-item by work-item, on any machine."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np

from workbench.backends.device import Device
from workbench.backends.gpu.work_group_device import common_gpu
from workbench.backends.program.analysis import analyse
from workbench.backends.program.launch import launch_shape
from workbench.backends.program.text import require_readable
from workbench.base.errors import DeviceError, WorkbenchError, require
from workbench.base.target import Target
from workbench.base.tensor_cores import is_transposed
from workbench.base.trace import unobserved
from workbench.edited import EditedIR, edited_ir
from workbench.emulator.checks import (
    emulation_s,
    hints_of_edit,
    params_of,
    program_of,
    require_elements,
    require_params,
)
from workbench.emulator.machine import written_slots
from workbench.emulator.memory import spoil
from workbench.emulator.program import emulated, steps_emulated
from workbench.emulator.source.languages import language_of
from workbench.emulator.source.meaning import KernelArguments, KernelContext
from workbench.emulator.source.program import NO_ANNOTATIONS, TextProgram
from workbench.emulator.source.translation import read_program
from workbench.emulator.steps import Trace
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import without
from workbench.ir.text.program import ProgramLine
from workbench.kernel.run import random_values
from workbench.kernel.runnable import RunnableKernel
from workbench.pipeline import build, stages

Array = np.ndarray[Any, Any]
MOST_PAGE_S = 10.0
"""Most seconds of a launch for a page; of a longer launch only one work-group runs."""
UNASKED_S = 2.0
"""Most seconds of a run that the user did not ask for."""


def emulate(
    kernel: RunnableKernel | str,
    target: str | Target = "",
    history: bool | Sequence[int] = False,
    code: str | Sequence[UOp] | None = None,
) -> Trace:
    """Return the Trace of a run of `kernel`, on its own data, as a device with work-groups runs it:
    `target` is the name of such a device or of a machine ("CUDA:H100", "H100"), or a Target; "" is
    the kernel's device, or else a common GPU.

    `code` is another program for the kernel: the text of its source after an edit, in CUDA C++,
    HIP, OpenCL C, Metal or WGSL; its `emulate(kernel).code` after an edit; or steps. What the
    program computes is compared with what the kernel does. The text of a linear program may also be
    given in the kernel's place: it runs on seeded random data.

    With `history`, the numbers of a work-group along x, y and z, the Trace has each step of that
    group; True is the group of the first finding, else the first one.

    Errors: DeviceError for a device without work-groups; WorkbenchError if the kernel's data are
    not here, for a value that is not a kernel, and for a group that does not exist; CompileError as
    `compile`; ParseError and VerifyError for code that is not a program; DeviceError for a program
    that is too large for the device or the emulator, and for a kernel that a user wrote as source.
    """
    history = _group_numbers(history)
    if isinstance(kernel, str):
        return _emulate_text(kernel, target_of(None, target), history)
    if not isinstance(kernel, RunnableKernel):
        because = f"{type(kernel).__name__} is neither a kernel nor text"
        hint = "explore(y).kernels[0]"
        raise WorkbenchError(f"cannot emulate {kernel!r:.60}", because, hint)
    gpu = target_of(kernel, target)
    linear, arrays, fresh = _program(kernel, gpu)
    if code is None:
        return emulated(linear, arrays, gpu, history, fresh=fresh)
    if isinstance(code, str):
        language = language_of(code, _own_language(gpu))
        if language is not None:
            text = text_program(code, language, linear, gpu)
            expected = _results(kernel, fresh)
            whole = in_words(arrays, text.linear, gpu)
            trace = emulated(text.linear, whole, gpu, history, expected, fresh, text)
            return _with_own_outputs(trace, arrays)
    with hints_of_edit(code, linear):
        program = program_of(code)
        require_params(program, linear, kernel.original.outputs, gpu)
    expected = _results(kernel, fresh)
    return emulated(program, arrays, gpu, history, expected, fresh)


def _own_language(gpu: Target) -> str:
    """Return the language of a target's device; "" for a Target of no device."""
    devices = (device for device in Device if gpu.device.split(":")[0] == device.name)
    language = next((device.language for device in devices), None)
    return "" if language is None else language.name


def text_program(code: str, language: str, linear: Sequence[UOp], gpu: Target) -> TextProgram:
    """Return the program of a kernel's text; `linear` is the kernel's own.

    Errors: SourceError, a ParseError, with line and column; CompileError for a text that is too
    long.
    """
    require_readable(code)
    params = analyse(tuple(linear), gpu).params
    slots = tuple(param.slot for param in params)
    nbytes = tuple(param.length * param.dtype.scalar.itemsize for param in params)
    layouts = {
        (n.dtype.itemsize // 4, is_transposed(*n.arg)): n.arg
        for n in linear
        if n.op is Ops.EXCHANGE
    }
    context = KernelContext(
        launch_shape(linear),
        KernelArguments(slots, nbytes),
        gpu.warp_lanes,
        gpu.tensor_cores,
        layouts,
    )
    return read_program(code, language, context)


def _with_own_outputs(trace: Trace, arrays: Sequence[Array]) -> Trace:
    """Return a trace whose outputs have the sizes and dtypes of a kernel's own `arrays`."""
    outputs = {
        slot: array.view(np.uint8)[: arrays[slot].nbytes].view(arrays[slot].dtype)
        for slot, array in trace.outputs.items()
    }
    return replace(trace, outputs=outputs)


def in_words(arrays: Sequence[Array], linear: Sequence[UOp], gpu: Target) -> list[Array]:
    """Return arrays with whole elements as a program from a text has them: it may read bytes by
    words, and then an array ends with the bytes that its last word lacks."""
    padded = [*arrays]
    for slot, (dtype, length) in enumerate(params_of(linear, gpu)):
        lacking = length * dtype.itemsize - arrays[slot].nbytes
        if lacking > 0:
            data = arrays[slot].view(np.uint8)
            padded[slot] = np.concatenate([data, np.zeros(lacking, np.uint8)])
    return padded


def _group_numbers(history: Any) -> bool | tuple[int, ...]:
    """Return whether to record a history, or the numbers of its group. Errors: WorkbenchError."""
    if isinstance(history, bool):
        return history
    try:
        return tuple(map(operator.index, history))
    except TypeError:
        because = "a group has a whole number along each of x, y and z"
        hint = "history=(0, 0, 0), or history=True"
        raise WorkbenchError(f"no group is {history!r:.60}", because, hint) from None


def _emulate_text(code: str, gpu: Target, history: bool | Sequence[int]) -> Trace:
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
    """Return the outputs of the kernel without opts, by slot."""
    graph, device = kernel.original, Device.emulator.name
    with unobserved():
        buffers = kernel.data.buffers(graph, device)
        spoil([b.array for b in buffers], fresh)
        build(graph, device).program(buffers)
    return {slot: buffers[slot].array for slot in graph.outputs}


def _only_written(nodes: Iterable[UOp], slots: Iterable[int]) -> frozenset[int]:
    """Return the `slots` that no LOAD reads."""
    memories = (n.place.param for n in nodes if n.op is Ops.LOAD)
    return frozenset(slots) - {m.slot for m in memories if m.op is Ops.PARAM}


def emulate_for_steps(
    kernel: RunnableKernel,
    target: Target,
    group: bool | Sequence[int] = True,
    without: int | None = None,
    most_s: float = MOST_PAGE_S,
    edited: TextProgram | EditedIR | None = None,
) -> Trace:
    """Return the Trace of a run with the steps of a group, as many as a page can have. `without` is
    the number of a barrier that is left out. If the launch takes more than `most_s` seconds, only
    that group runs, and the counts are of it alone; of an edited program a sample of groups.

    What an `edited` program computes is compared with what the kernel does. On a target without
    work-groups it runs as a single work-item.

    Errors: DeviceError for a program that is too large, if that group takes too long, too, and for
    a text that does not end.
    """
    if edited is None:
        linear, arrays, fresh = _program(kernel, target)
        steps = _without_barrier(linear, without)
        return steps_emulated(steps, arrays, target, group, most_s, fresh)
    arrays, fresh = _data(kernel, edited.linear, target)
    steps = _without_barrier(edited.linear, without)
    text = edited if isinstance(edited, TextProgram) else _listed(edited)
    whole, expected = in_words(arrays, steps, target), _results(kernel, fresh)
    own = _linear(kernel, target)
    trace = steps_emulated(steps, whole, target, group, most_s, fresh, expected, text, own)
    return _with_own_outputs(trace, arrays)


def defects_of_edit(
    kernel: RunnableKernel, target: Target, edited: EditedIR, most_s: float
) -> Trace:
    """Return the Trace, without steps, of a run of edited IR, which ends after `most_s` seconds.

    Errors: DeviceError for a program that is too large, or takes longer.
    """
    arrays, fresh = _data(kernel, edited.linear, target)
    text, expected = _listed(edited), _results(kernel, fresh)
    return emulated(edited.linear, arrays, target, False, expected, fresh, text, most_s=most_s)


def read_text(kernel: RunnableKernel, target: Target, language: str, code: str) -> TextProgram:
    """Return the program of a kernel's text for a target. Errors: as `text_program`."""
    return text_program(code, language, _linear(kernel, target), target)


def read_ir(kernel: RunnableKernel, device: str, text: str) -> EditedIR:
    """Return the edited text of a level of a kernel's IR. Errors: as `edited_ir`."""
    with without(kernel.rules_off):
        return edited_ir(kernel.ast, device, text)


def _listed(edited: EditedIR) -> TextProgram | None:
    """Return a linear program with the lines of its text; None for a statement tree, whose program
    has no text of the user's."""
    if edited.level == "tree":
        return None
    lines, depth, linear = edited.text.split("\n"), 0, edited.linear
    listed = []
    for position, (node, place) in enumerate(zip(linear, edited.listing.steps, strict=True)):
        depth -= node.op in (Ops.ENDLOOP, Ops.ENDIF)
        words = lines[place.line - 1].strip()
        listed.append(ProgramLine(words, depth, (position,), "", place.line))
        depth += node.op in (Ops.LOOP, Ops.IF)
    return TextProgram("IR", linear, tuple(listed), NO_ANNOTATIONS)


def seconds_for_steps(kernel: RunnableKernel) -> float:
    """Return about how many seconds the steps of one group take."""
    return emulation_s(_program(kernel, target_of(kernel))[0], groups=1)


def emulate_if_small(kernel: RunnableKernel, most_s: float) -> Trace | None:
    """Return the Trace of a run; None if it would take more than `most_s` seconds."""
    gpu = target_of(kernel)
    linear, arrays, fresh = _program(kernel, gpu)
    return emulated(linear, arrays, gpu, fresh=fresh) if emulation_s(linear) <= most_s else None


def _without_barrier(linear: tuple[UOp, ...], number: int | None) -> tuple[UOp, ...]:
    if number is None:
        return linear
    places = [place for place, node in enumerate(linear) if node.op is Ops.BARRIER]
    if number >= len(places):
        because = f"the program has {len(places)} barriers"
        raise WorkbenchError(f"there is no barrier {number}", because)
    nothing = UOp.index(0)  # in its place, so that the other steps keep theirs
    return (*linear[: places[number]], nothing, *linear[places[number] + 1 :])


def _program(
    kernel: RunnableKernel, gpu: Target
) -> tuple[tuple[UOp, ...], list[Array], frozenset[int]]:
    """Return a kernel's program, its data by slot, and the slots that only it writes, whose data
    are wrong values."""
    kernel.require_data("cannot emulate this kernel")
    if kernel.ast.code is not None:
        what = f"cannot emulate the kernel {kernel.ast.arg.name}"
        because = f"it is written in {kernel.ast.code.language}: it has no steps to run one by one"
        raise DeviceError(what, because, ".run() or .time(), which run it")
    linear = _linear(kernel, gpu)
    return linear, *_data(kernel, linear, gpu)


def _linear(kernel: RunnableKernel, target: Target) -> tuple[UOp, ...]:
    """Return a kernel's own program for a target."""
    with unobserved(), without(kernel.rules_off):
        return stages(kernel.ast, target, "linear").linear


def _data(
    kernel: RunnableKernel, linear: Sequence[UOp], gpu: Target
) -> tuple[list[Array], frozenset[int]]:
    """Return the data of a kernel's program as `_program` does."""
    kernel.require_data("cannot emulate this kernel")
    require_elements(linear, gpu)
    with unobserved(), without(kernel.rules_off):
        buffers = kernel.data.buffers(kernel.original, Device.emulator.name)
    arrays = [b.array.copy() for b in buffers]  # a text may write to an input
    fresh = _only_written(kernel.original.toposort(), kernel.original.outputs)
    spoil(arrays, fresh)
    return arrays, fresh


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
