"""The WEBGPU device: a GPU through WebGPU.

Sections: The Target that every implementation of WebGPU supports; The GPU that the device uses
through wgpu; Memory of WebGPU; The WEBGPU runtime; The WEBGPU device.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.backends.compilers.refusal import errors_in, refusal
from workbench.backends.gpu.driver import GpuDriver
from workbench.backends.gpu.work_group_device import WorkGroupDevice
from workbench.backends.memory import Buffer, Bytes, Memory
from workbench.backends.program.launch import grid_size
from workbench.backends.program.text import Source
from workbench.backends.webgpu.wgsl import WGSL, Wgsl
from workbench.base.errors import CompileError, DeviceError
from workbench.base.installation import library
from workbench.base.interrupts import once
from workbench.base.target import Target

# --------------------------------------------------------------------------------------------------
# The Target that every implementation of WebGPU supports.
#
# Source: W3C, WebGPU, section "Limits": the default of each limit, which every implementation
# supports.


def target(
    device: str,
    group_items: int = 256,
    shared_bytes: int = 16 << 10,
    grid_limit: int = (1 << 16) - 1,
    group_limits: tuple[int, ...] = (256, 256, 64),
) -> Target:
    """Return the Target of an implementation with these limits.

    Transcendentals are functions of the language (`wgsl.py`): the polynomials of other devices
    need 64 bits, and sums in the written order, which an implementation may change.
    """
    return Target(
        device,
        vector_bytes=16,
        grid_limits=(grid_limit,) * 3,
        group_items=group_items,
        group_limits=group_limits,
        warp_lanes=32,
        native_transcendentals=True,
        shared_bytes=shared_bytes,
        scratch_bytes=4 << 10,
        stack_bytes=1 << 30,
    )


MACHINES: Mapping[str, Target] = {"BROWSER": target("BROWSER")}
"""The machines of the WEBGPU device, by name."""


# --------------------------------------------------------------------------------------------------
# The GPU that the device uses through wgpu: its queue, its limits.

LIMITS = (
    "max-buffer-size",
    "max-storage-buffer-binding-size",
    "max-storage-buffers-per-shader-stage",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-size-x",
    "max-compute-workgroup-size-y",
    "max-compute-workgroup-size-z",
    "max-compute-workgroup-storage-size",
)
"""Limits that the device requests as high as the GPU has them."""


class WebGpuDriver(GpuDriver):
    """One GPU (WebGPU's adapter), and `mark`, a small buffer: reading it waits for all launches."""

    name = "WEBGPU"
    package = "wgpu"
    absence = "wgpu finds no GPU with a Vulkan, Metal or Direct3D driver"

    def __init__(self, gpu: Any):
        limits = {name: gpu.limits[name] for name in LIMITS}
        self.gpu, self.device = gpu, gpu.request_device_sync(required_limits=limits)
        usage = library("wgpu").BufferUsage
        self.mark = self.device.create_buffer_with_data(
            data=np.zeros(1, np.uint32), usage=usage.COPY_SRC
        )

    @staticmethod
    def find() -> Any | None:
        # without this variable EGL complains
        os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
        wgpu = library("wgpu")
        try:
            return wgpu.gpu.request_adapter_sync(power_preference="high-performance")
        except (wgpu.GPUError, RuntimeError):
            return None

    @property
    def queue(self) -> Any:
        """The queue of launches and copies."""
        return self.device.queue

    def target(self) -> Target:
        limits = self.gpu.limits
        return target(
            self.name,
            min(limits[name] for name in LIMITS[3:5]),
            limits["max-compute-workgroup-storage-size"],
            limits["max-compute-workgroups-per-dimension"],
            tuple(limits[name] for name in LIMITS[4:7]),
        )

    def wait(self) -> None:
        self.queue.read_buffer(self.mark)  # it comes after all that was submitted


# --------------------------------------------------------------------------------------------------
# Memory of WebGPU: a handle is a GPUBuffer, of whole words of 4 bytes.

WORD = 4


def whole_words(nbytes: int) -> int:
    """Return a number of bytes rounded up to whole words."""
    return -(-nbytes // WORD) * WORD


class WebGpuMemory(Memory):
    """Memory of the GPU, through WebGPU."""

    alignment_bytes = 256
    offset_bytes = 256

    def allocate(self, size_bytes: int, alignment_bytes: int) -> Any:
        most = WebGpuDriver.current().device.limits["max-storage-buffer-binding-size"]
        if size_bytes > most:
            raise MemoryError(f"a buffer has at most {most:,} bytes")
        wgpu = library("wgpu")
        usage = wgpu.BufferUsage
        use = usage.STORAGE | usage.COPY_SRC | usage.COPY_DST
        try:
            size = max(WORD, whole_words(size_bytes))
            return WebGpuDriver.current().device.create_buffer(size=size, usage=use)
        except wgpu.GPUError as error:
            raise MemoryError(str(error)) from error

    def free(self, handle: Any) -> None:
        handle.destroy()

    def copy_in(self, handle: Any, offset: int, data: Bytes) -> None:
        whole = data.size // WORD * WORD
        if whole:
            WebGpuDriver.current().queue.write_buffer(handle, offset, data[:whole])
        if whole < data.size:  # the rest of the last word stays as it is
            last = self._read(handle, offset + whole, WORD)
            last[: data.size - whole] = data[whole:]
            WebGpuDriver.current().queue.write_buffer(handle, offset + whole, last)

    def copy_out(self, handle: Any, offset: int, data: Bytes) -> None:
        if data.size:
            words = self._read(handle, offset, whole_words(data.size))
            data[:] = words[: data.size]

    def copy(
        self, target: Any, target_offset: int, source: Any, source_offset: int, size_bytes: int
    ) -> None:
        if size_bytes % WORD or target is source:
            data = self._read(source, source_offset, whole_words(size_bytes))
            self.copy_in(target, target_offset, data[:size_bytes])
        elif size_bytes:
            commands = WebGpuDriver.current().device.create_command_encoder()
            place = target, target_offset, size_bytes
            commands.copy_buffer_to_buffer(source, source_offset, *place)
            WebGpuDriver.current().queue.submit([commands.finish()])

    def _read(self, handle: Any, offset: int, nbytes: int) -> Bytes:
        words = WebGpuDriver.current().queue.read_buffer(handle, offset, nbytes)
        return np.frombuffer(words, np.uint8).copy()


# --------------------------------------------------------------------------------------------------
# The WEBGPU runtime: WGSL to a Program, through wgpu's compiler (naga).

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
        places = [p for p in written_bindings(source.text) if p < len(self.slots)]
        self.written = {self.slots[place] for place in places}

    def require_code(self) -> None:
        """Compile now. Errors: CompileError."""
        _ = self.pipeline

    @once
    def pipeline(self) -> Any:
        """The compiled kernel, as a compute pipeline of WebGPU."""
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


def written_bindings(text: str) -> list[int]:
    """Return the numbers of the bindings that a text declares as storage with write access.
    Attributes may stand in any order, with spaces and comments between them."""
    count = 1
    while count:  # comments may be nested
        text, count = _COMMENT.subn(" ", text)
    matches = (_BINDING.search(attributes) for attributes in _STORAGE.findall(text))
    return [int(match[1]) for match in matches if match]


class WebGpuLaunch:
    """A kernel bound to its memory.

    WebGPU does not bind one GPUBuffer for writing and for reading, not even different parts of it:
    such an input is copied, and the kernel reads the copy.
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
        """Return the mean seconds per run of a batch, by this process's clock."""
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


# --------------------------------------------------------------------------------------------------
# The WEBGPU device.


class WebGpuDevice(WorkGroupDevice):
    """WGSL on a GPU, through WebGPU."""

    name = "WEBGPU"
    has_machine_code = False
    about = "a GPU through WebGPU"
    extra = "webgpu"
    needs = (
        "with a GPU's Vulkan, Metal or Direct3D driver; without one a page runs the kernels of"
        ' "WEBGPU:BROWSER" where it is read'
    )
    rank = 99
    queues = True
    language = WGSL
    memory: Memory = WebGpuMemory()
    driver = WebGpuDriver
    program = WebGpuProgram
    runs_in_page = True

    @property
    def machines(self) -> Mapping[str, Target]:
        return MACHINES

    def dialect(self) -> Wgsl:
        return Wgsl()


DEVICE = WebGpuDevice()
