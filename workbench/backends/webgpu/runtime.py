"""The WEBGPU runtime: WGSL to a Program, through wgpu's compiler (naga)."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

from workbench.backends.buffer import Buffer
from workbench.backends.compilers.refusal import errors_in, refusal
from workbench.backends.program.launch import grid_size
from workbench.backends.program.source import Source
from workbench.backends.webgpu.driver import WebGpuDriver
from workbench.backends.webgpu.memory import WORD, whole_words
from workbench.base.errors import CompileError, DeviceError
from workbench.base.forking import once
from workbench.base.libraries import library

_STORAGE = re.compile(r"((?:@\s*\w+\s*\([^()]*\)\s*)+)var\s*<\s*storage\s*,\s*read_write\s*,?\s*>")
_BINDING = re.compile(r"@\s*binding\s*\(\s*(\d+)")
_COMMENT = re.compile(r"//[^\n]*|/\*(?:(?!/\*|\*/).)*\*/", re.DOTALL)


class WebGpuProgram:
    """A kernel in WGSL; it is compiled when it is first bound.

    Errors: CompileError if the text is refused, or has more buffers than the GPU binds.
    """

    def __init__(self, source: Source):
        self.source = source
        self.slots = source.slots
        places = [p for p in written_places(source.text) if p < len(self.slots)]
        self.written = {self.slots[place] for place in places}

    def require_code(self) -> None:
        """Errors: CompileError."""
        _ = self.pipeline

    @once
    def pipeline(self) -> Any:
        """The compiled program."""
        with errors_in(self.source):
            return self._compiled()

    def _compiled(self) -> Any:
        device, wgpu = WebGpuDriver.current().device, library("wgpu")
        most = device.limits["max-storage-buffers-per-shader-stage"]
        if len(self.slots) > most:
            because = f"it has {len(self.slots)} buffers, and this GPU binds {most} at most"
            raise CompileError("webgpu", because, hint="fewer inputs")
        try:
            module = device.create_shader_module(code=self.source.text)
            stage = {"module": module, "entry_point": self.source.name}
            return device.create_compute_pipeline(layout="auto", compute=stage)
        except wgpu.GPUError as error:
            raise refusal("webgpu", str(error), self.source.text) from error

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> WebGpuLaunch:
        return WebGpuLaunch(self, buffers)


def written_places(text: str) -> list[int]:
    """Return the numbers of the bindings that a text declares as memory that it writes: attributes
    stand in any order, with spaces and comments between them."""
    count = 1
    while count:  # comments may be in each other
        text, count = _COMMENT.subn(" ", text)
    matches = (_BINDING.search(attributes) for attributes in _STORAGE.findall(text))
    return [int(match[1]) for match in matches if match]


class WebGpuLaunch:
    """A kernel and its memory.

    A GPUBuffer that a kernel writes cannot be bound to be read, too, whatever the parts: of such an
    input a copy is read.
    """

    def __init__(self, program: WebGpuProgram, buffers: Sequence[Buffer]):
        self.program, self.buffers = program, [*buffers]
        self.pipeline = program.pipeline
        self.grid = grid_size(program.source.launch)
        self._group: Any = None
        self._copies: dict[int, Any] = {}

    def move(self, slot: int, buffer: Buffer) -> None:
        self.buffers[slot] = buffer
        self._group = None

    def __call__(self, wait: bool = True) -> None:
        self._submit(1)
        if wait:
            WebGpuDriver.current().wait()

    def mean_s(self, batch: int) -> float:
        """Return the seconds of one of a batch of runs, by this process's clock."""
        WebGpuDriver.current().wait()
        begin = time.perf_counter()
        self._submit(batch)
        WebGpuDriver.current().wait()
        return (time.perf_counter() - begin) / batch

    def _submit(self, runs: int) -> None:
        wgpu, device = library("wgpu"), WebGpuDriver.current().device
        try:
            self._bind()
            commands = device.create_command_encoder()
            for _ in range(runs):
                self._encode(commands)
            device.queue.submit([commands.finish()])
        except wgpu.GPUError as error:
            name = self.program.source.name
            because = " ".join(str(error).split())[:400]
            raise DeviceError(f"WEBGPU cannot launch {name}", because) from error

    def _encode(self, commands: Any) -> None:
        for slot, copy in self._copies.items():
            buffer = self.buffers[slot]
            size = whole_words(buffer.nbytes)
            commands.copy_buffer_to_buffer(buffer.handle, buffer.offset, copy, 0, size)
        work = commands.begin_compute_pass()
        work.set_pipeline(self.pipeline)
        work.set_bind_group(0, self._group)
        work.dispatch_workgroups(*self.grid)
        work.end()

    def _bind(self) -> None:
        if self._group is not None:
            return
        device, usage = WebGpuDriver.current().device, library("wgpu").BufferUsage
        slots, written_slots = self.program.slots, self.program.written
        written = {id(self.buffers[slot].handle) for slot in written_slots}
        self._copies = {
            slot: device.create_buffer(
                size=max(WORD, whole_words(self.buffers[slot].nbytes)),
                usage=usage.STORAGE | usage.COPY_DST,
            )
            for slot in slots
            if slot not in written_slots and id(self.buffers[slot].handle) in written
        }
        entries = [
            {"binding": place, "resource": self._resource(slot)} for place, slot in enumerate(slots)
        ]
        layout = self.pipeline.get_bind_group_layout(0)
        self._group = device.create_bind_group(layout=layout, entries=entries)

    def _resource(self, slot: int) -> dict[str, Any]:
        buffer = self.buffers[slot]
        size = max(WORD, whole_words(buffer.nbytes))
        if slot in self._copies:
            return {"buffer": self._copies[slot], "offset": 0, "size": size}
        return {"buffer": buffer.handle, "offset": buffer.offset, "size": size}
