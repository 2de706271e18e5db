"""Kernels that run in the browser: the launch, the buffers, and the right results."""

from __future__ import annotations

import base64

import numpy as np

from workbench.backends.device import Device, DeviceInfo
from workbench.backends.program.launch import grid_size
from workbench.backends.program.text import Source, signature
from workbench.base.dtypes import DType
from workbench.base.errors import WorkbenchError
from workbench.base.trace import unobserved
from workbench.check.answer import FULL_STEPS, lane_steps
from workbench.check.nearness import References, limits
from workbench.execution.buffers import Array
from workbench.ir.node.ops import Ops
from workbench.kernel.kernel import Kernel
from workbench.kernel.run import arrays
from workbench.viz.schema.record import PageBuffer, PageData
from workbench.viz.schema.variant import ErrorWords, PageLaunch

MOST_BYTES = 256 << 10
"""Most bytes of all buffers of a kernel that a page carries."""


def page_launch(source: Source, device: DeviceInfo) -> PageLaunch:
    """Return the launch of a program on a device that `runs_in_page`."""
    module = base64.b64encode(device.page_module(source)).decode()
    memory = device.page_stack_bytes, source.scratch_bytes
    grid = list(grid_size(source.launch))
    return PageLaunch(source.name, grid, source.slots, module, *memory)


def page_data(kernel: Kernel) -> PageData:
    """Return the buffers of a kernel, with its inputs and its right results; or the error that says
    why a page cannot have them."""
    try:
        return _data(kernel)
    except WorkbenchError as error:
        return PageData([], ErrorWords(error.what, error.because, error.hint))


def _data(kernel: Kernel) -> PageData:
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
    with unobserved():
        check = kernel.data.check_run(kernel.original, Device.processor.name)
        sizes = [check.buffers[slot].size for slot in slots]
        right = check.reference.outputs(sizes)
    if right is None:
        because = "its expression is too large to be computed in full"
        raise WorkbenchError(what, because, "a smaller tensor")
    answers = dict(zip(slots, map(_answer, right), strict=True))
    rows = [
        _row(dtype, array, answers.get(slot))
        for slot, ((dtype, _), array) in enumerate(
            zip(params, arrays(check.buffers, slots), strict=True)
        )
    ]
    return PageData(rows, against=check.reference.against)


def _answer(right: References) -> tuple[Array, float]:
    """Return the right values of an output in its own dtype, and the most that an element may be
    off (0.0 for integers and bools). More than usual is allowed where numbers cancel, as the
    difference between float64 and the expression's dtypes shows."""
    own = right.narrow
    if own.dtype.kind in "iub":
        return own, 0.0
    near = limits(right)
    tolerance = float(near.max(initial=0.0))
    with np.errstate(all="ignore"):
        is_near = np.isfinite(own) & (np.abs(own - right.wide) <= near)
        exact = np.where(is_near, right.wide, own).astype(own.dtype)
    return exact, tolerance


def _row(dtype: DType, values: Array, answer: tuple[Array, float] | None) -> PageBuffer:
    right, tolerance = (values, 0.0) if answer is None else answer
    data = base64.b64encode(np.ascontiguousarray(right).tobytes()).decode("ascii")
    return PageBuffer(dtype.name, values.size, answer is not None, data, tolerance)
