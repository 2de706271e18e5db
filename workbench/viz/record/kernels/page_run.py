"""What a page needs to run a kernel in the browser that shows it: its launch, its buffers, and the
right answer, by the reference interpreter."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import numpy as np

from workbench.backends.device import Device, DeviceInfo
from workbench.backends.program.launch import grid_size
from workbench.backends.program.source import Source, signature
from workbench.base.dtypes import DType
from workbench.base.errors import WorkbenchError
from workbench.check.answer import as_narrow
from workbench.check.reference import FULL_STEPS, blank, lane_steps, reduce_steps
from workbench.execution.buffers import Array
from workbench.ir.meaning.interpret_kernel import interpret_kernel
from workbench.ir.node.ops import Ops
from workbench.kernel.check_run import arrays
from workbench.kernel.kernel import Kernel
from workbench.viz.schema.page_run import PageBuffer, PageData
from workbench.viz.schema.variant import ErrorWords, PageLaunch

MOST_BYTES = 256 << 10
"""Bytes of all buffers of a kernel that a page carries at most."""


def page_launch(source: Source, device: DeviceInfo) -> PageLaunch:
    """Return how a page launches a program of a device that `runs_in_page`."""
    module = base64.b64encode(device.page_module(source)).decode()
    memory = device.page_stack_bytes, source.scratch_bytes
    grid = list(grid_size(source.launch))
    return PageLaunch(source.name, grid, source.slots, module, *memory)


def page_data(kernel: Kernel) -> PageData:
    """Return the buffers of a kernel with its inputs and its answer; or why there are none: they
    are too large, or nothing says what is right."""
    try:
        return PageData(_buffers(kernel))
    except WorkbenchError as error:
        return PageData([], ErrorWords(error.what, error.because, error.hint))


def _buffers(kernel: Kernel) -> list[PageBuffer]:
    params = signature(n for n in kernel.original.toposort() if n.op is Ops.PARAM)
    nbytes = sum(size * dtype.itemsize for dtype, size in params if dtype.bits)
    what = f"a page cannot carry the buffers of {kernel.name}"
    if nbytes > MOST_BYTES:
        because = f"they have {nbytes / 1024:,.0f} KiB"
        raise WorkbenchError(what, because, f"at most {MOST_BYTES >> 10} KiB")
    if lane_steps(kernel.original) > FULL_STEPS:
        because = "the reference interpreter would take long to say what is right"
        raise WorkbenchError(what, because, "a smaller tensor")
    slots = kernel.original.outputs
    buffers = kernel.data.buffers(kernel.original, Device.processor.name)
    inputs = arrays(buffers, slots)
    answers = _answers(kernel, slots, inputs)
    return [
        _row(dtype, array, answers.get(slot))
        for slot, ((dtype, _), array) in enumerate(zip(params, inputs, strict=True))
    ]


def _answers(
    kernel: Kernel, slots: Sequence[int], inputs: Sequence[Array]
) -> dict[int, tuple[Array, float]]:
    """Return for each output what is right, in its own dtype, and by how much an element may be
    off: by more than usual where numbers cancel, which the kernel's own dtypes show."""
    empty, steps = blank(inputs, slots), reduce_steps(kernel.original)
    wide = interpret_kernel(kernel.original, empty, widen=True)
    narrow = interpret_kernel(kernel.original, empty)
    answers: dict[int, tuple[Array, float]] = {}
    for slot, want, own in zip(slots, wide, narrow, strict=True):
        if own.dtype.kind in "iub":
            answers[slot] = own, 0.0
            continue
        _, tolerance = as_narrow(own, want, own, steps)
        with np.errstate(over="ignore"):
            right = np.where(np.isfinite(own), want, own).astype(own.dtype)
        answers[slot] = right, tolerance
    return answers


def _row(dtype: DType, values: Array, answer: tuple[Array, float] | None) -> PageBuffer:
    right, tolerance = (values, 0.0) if answer is None else answer
    data = base64.b64encode(np.ascontiguousarray(right).tobytes()).decode("ascii")
    return PageBuffer(dtype.name, values.size, answer is not None, data, tolerance)
