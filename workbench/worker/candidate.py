"""A candidate kernel as data: what the worker process and executors compile and run.

    {"ast": IR text, "device": name, "source": edited text or None, "rules_off": [name, ...],
     "program": {..}, "ir": edited text}

The last three may be left out. An edited source replaces the rendered one; everything else that a
launch needs is the kernel's. Edited IR ("ir") replaces a level of the kernel, and all after it.
Another process lacks the rules that were registered in this one: if there are any, "program" has
the Source that was rendered here, as data.

Sections: A candidate kernel as data; The data of candidates, in the memory of the device that
runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from workbench.backends.device import Device
from workbench.backends.elsewhere import Elsewhere
from workbench.backends.memory import Buffer, Memory
from workbench.backends.program.text import Source
from workbench.edited import edited_ir
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import without
from workbench.pipeline import Stages, build, stages
from workbench.worker.rows import Row, kernel_row, parsed, source_of

# --------------------------------------------------------------------------------------------------
# A candidate kernel as data.

Run = Callable[[], object]


def row_of(ast: UOp, device: str, rules_off: Sequence[str]) -> Row:
    """Return a kernel as plain data for another process."""
    return kernel_row(ast, device, rules_off, lambda: build(ast, device).source)


def compiled(candidate: Row) -> tuple[Source, Any]:
    """Return a candidate's source and program.

    Errors: CompileError; DeviceError where the device is missing.
    """
    kernel = parsed(candidate["ast"])
    with without(candidate.get("rules_off", ())):
        if "ir" in candidate:
            edited = edited_ir(kernel, candidate["device"], candidate["ir"]).stages
            return edited.source, stages(edited, candidate["device"]).program
        if candidate["source"] is None and "program" not in candidate:
            built = build(kernel, candidate["device"])
            return built.source, built.program
        if "program" in candidate:
            source = source_of(candidate["program"])
            rendered = Stages(kernel, kernel, kernel, (), source)
        else:
            rendered = stages(kernel, candidate["device"], upto="source")
            source = rendered.source
        if candidate["source"] is not None:
            changed = replace(source, linear=rendered.linear).edited(candidate["source"])
            device = Device[candidate["device"]]
            if isinstance(device, Elsewhere):  # an edited text is compiled, but not emulated
                return source, device.load(changed)
            source = changed
        program = stages(replace(rendered, source=source), candidate["device"]).program
    return source, program


def bind(candidate: Row, buffers: Sequence[Buffer]) -> tuple[Source, Run]:
    """Return a candidate's source and a function that runs it on `buffers`.

    Errors: as `compiled`, and DeviceError where the buffers do not fit.
    """
    source, program = compiled(candidate)
    return source, program.bind(buffers)


# --------------------------------------------------------------------------------------------------
# The data of candidates, in the memory of the device that runs them.


class KernelData:
    """A kernel's buffers by slot in this process's memory, and copies of them in other memories.
    Devices with the same memory run on the same buffers."""

    def __init__(self, buffers: Sequence[Buffer]):
        self.buffers = buffers
        self._copies: dict[Memory, Sequence[Buffer]] = {}

    def on(self, device: str) -> Sequence[Buffer]:
        """Return the buffers in the memory of a device. Errors: DeviceError."""
        info = Device[device]
        if info.memory.shares_host_memory:
            return self.buffers
        if info.memory not in self._copies:
            copies = [Buffer(info.name, b.dtype, b.size) for b in self.buffers]
            for copy, buffer in zip(copies, self.buffers, strict=True):
                copy.copy_from(buffer)
            self._copies[info.memory] = copies
        return self._copies[info.memory]
