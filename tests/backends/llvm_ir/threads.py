"""Programs of work-items on this machine's processor: a thread for each work-item, and barriers of
threads, between which lanes exchange values. So what LLVM IR for GPUs computes is compared with
numpy, without a GPU."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from threading import Barrier, Thread
from typing import Any

from workbench.backends.contract import DeviceInfo
from workbench.backends.gpu.work_group_device import common_gpu
from workbench.backends.llvm_ir.gpu_render import render_gpu
from workbench.backends.llvm_ir.gpu_targets import GpuTarget
from workbench.backends.memory import Buffer
from workbench.backends.native import jit
from workbench.backends.native.host_memory import host_memory
from workbench.backends.program.launch import LaunchShape, grid_size, group_size
from workbench.backends.program.text import Language, Source
from workbench.base.target import SHUFFLE_ALL, Target
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import LoopRole

_DIMENSIONS = 3


class HostThreads(GpuTarget):
    """A work-item's numbers are in memory, and a barrier and a shuffle are functions of Python's:
    all are arguments after the others."""

    language = Language("threads", "work-items as threads", ";.*$", "")
    family = "threads"
    triple = ""
    convention = ""
    spaces: Mapping[str, int] = {"global": 1, "shared": 3, "private": 0}
    doubles = frozenset(GpuTarget.functions)

    def __init__(self, has_masks: bool):
        self.has_masks = has_masks

    def number(self, role: LoopRole, dimension: int) -> str:
        place = dimension + (0 if role == "grid" else _DIMENSIONS)
        return f"load i32, ptr getelementptr (i32, ptr %numbers, i64 {place})"

    def barrier(self) -> Sequence[str]:
        return ["call void %wait()"]

    def exchange(self, word: str, distance: int, step: Callable[[str], str]) -> str:
        return f"call i32 %exchange(ptr %numbers, i32 {word}, i32 {distance})"

    def attributes(self, launch: LaunchShape) -> str:
        return ""


class ThreadsDevice(DeviceInfo):
    """A device whose kernels are LLVM IR of work-items, which threads of this processor run."""

    about = "work-items as threads"
    how_to_get = "it is always there"
    memory = host_memory
    language = HostThreads.language
    can_abort = False

    def __init__(self, has_masks: bool = True):
        self.gpu = HostThreads(has_masks)
        self.name = "THREADS" if has_masks else "LANES"

    @property
    def is_available(self) -> bool:
        return True

    def _target(self) -> Target:
        sizes = replace(common_gpu(self.name), group_items=16, warp_lanes=4)
        return replace(sizes, grid_limits=(1 << 12,) * 3, shuffle_dtypes=SHUFFLE_ALL)

    def render(self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None) -> Source:
        return render_gpu(self.gpu, linear, self.target)

    def load(self, source: Source) -> ThreadsProgram:
        return ThreadsProgram(source)


class ThreadsProgram:
    """A kernel, run by a thread for each work-item of a group."""

    def __init__(self, source: Source):
        self.source = source
        self.code = jit.load_object(jit.compile_object(host_text(source)), source.name)

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> ThreadsLaunch:
        return ThreadsLaunch(self, [b.address for b in buffers])


class ThreadsLaunch:
    """A kernel and the addresses of its memory."""

    def __init__(self, program: ThreadsProgram, addresses: list[int]):
        self.program, self.addresses = program, addresses

    def __call__(self, wait: bool = True) -> None:
        source = self.program.source
        used = [slot for slot, (dtype, _) in enumerate(source.params) if dtype.bits]
        pointers = [self.addresses[slot] for slot in used]
        group = group_size(source.launch)
        barrier = Barrier(math.prod(group))

        words = [0] * math.prod(group)

        def stop() -> None:
            barrier.wait()

        def exchange(numbers: int, word: int, distance: int) -> int:
            x, y, z = (ctypes.c_int32 * 6).from_address(numbers)[_DIMENSIONS:]
            item = x + group[0] * (y + group[1] * z)
            words[item] = word
            barrier.wait()
            other = words[item ^ distance]
            barrier.wait()
            return other

        i32 = ctypes.c_int32
        callback = ctypes.CFUNCTYPE(None)(stop)
        exchanges = ctypes.CFUNCTYPE(i32, ctypes.c_void_p, i32, i32)(exchange)
        functions = [ctypes.cast(f, ctypes.c_void_p).value for f in (callback, exchanges)]
        kinds = [ctypes.c_void_p] * (len(pointers) + 3)
        function = ctypes.CFUNCTYPE(None, *kinds)(self.program.code.address)
        for place in product(*map(range, grid_size(source.launch))):
            numbers = [(ctypes.c_int32 * 6)(*place, *item) for item in product(*map(range, group))]
            _together(
                [_call(function, [*pointers, ctypes.addressof(n), *functions]) for n in numbers]
            )

    def move(self, slot: int, buffer: Buffer) -> None:
        self.addresses[slot] = buffer.address


def _call(function: Callable[..., None], arguments: list[Any]) -> Callable[[], None]:
    return lambda: function(*arguments)


def _together(calls: Sequence[Callable[[], None]]) -> None:
    if len(calls) == 1:
        calls[0]()
        return
    threads = [Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def host_text(source: Source) -> str:
    """Return the kernel as a function that takes its numbers, the barrier and the shuffle as last
    arguments."""
    lines = []
    for line in source.text.split("\n"):
        if line.startswith("define "):
            line = line.replace(") #0", ", ptr %numbers, ptr %wait, ptr %exchange) #0", 1)
            line = line.replace("(, ", "(")
        if "getelementptr (i32, ptr %numbers" in line:
            pad, name = (line[: len(line) - len(line.lstrip())], line.split(" = ")[0].strip())
            place = line.rpartition("i64 ")[2].rstrip(")")
            step = f"{name}.at = getelementptr i32, ptr %numbers, i64 {place}"
            lines.append(pad + step)
            line = f"{pad}{name} = load i32, ptr {name}.at"
        lines.append(line)
    return "\n".join(lines)
