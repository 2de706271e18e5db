"""This machine's peak: a loop of multiply-adds in registers; and the time of an empty launch.

The speed of a kernel is given as a share of the peak (see `speeds`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.backends.program.launch import LaunchShape
from workbench.backends.program.text import Source
from workbench.base.dtypes import DType, dtypes

# A multiply-add takes about 4 cycles, and two can begin in each: 8 must be in flight; 12
# accumulators and two operands still fit in the 16 registers of AVX.
_SUMS = 12
_STEPS = 20_000
_CYCLES = 16
"""Operations of one step, which wait for each other. They hide the instructions of the loop."""


@dataclass(frozen=True, slots=True)
class Peak:
    """A loop of arithmetic alone: `run()` executes `flops` operations."""

    run: Callable[[], None]
    flops: int

    def gflops(self, seconds: float) -> float:
        """Return the speed, in GFLOP/s, of a run that took `seconds`."""
        return self.flops / seconds / 1e9


@lru_cache
def run_peak(
    dtype: DType = dtypes.float32, threads: int = 1, sums: int = _SUMS, lanes: int = 0
) -> Peak:
    """Return the multiply-add loop of a float dtype, on `threads` threads of the pool.

    `sums` is the number of independent accumulators: with one, each multiply-add waits for the one
    before. `lanes` is the vector width, in elements per instruction; 0 is a whole register.

    Errors: DeviceError without llvmlite.
    """
    lanes = lanes or Device.processor.target.vector_bytes // dtype.itemsize
    program = Device.processor.load(_fma_source(dtype, lanes, threads, sums))
    numbers = Buffer(Device.processor.name, dtype, sums * lanes)
    numbers.array[:] = 0.5  # x = x * 0.5 + 0.5 stays in (0, 1]
    return Peak(program.bind([numbers]), threads * 2 * sums * lanes * _STEPS)


@lru_cache
def run_cycles(
    dtype: DType = dtypes.int64, threads: int = 1, steps: int = _STEPS, chains: int = 1
) -> Peak:
    """Return a loop whose `flops` operations wait for each other, on each of `threads` threads.
    They are additions of floats; or of integers, alternating with xor, each of one cycle on every
    core. A compiler would merge two integer additions. Operations of different `chains` do not
    wait: with many, as many begin in each cycle as the core can begin.

    Errors: DeviceError without llvmlite.
    """
    kind, add, other = "i64", "add", "xor"
    if dtype.is_float:
        kind, add, other = {32: "float", 64: "double"}[dtype.bits], "fadd", "fadd"
    each, many = range(_CYCLES), range(chains)
    lines = [
        "define void @cycles(ptr %args, i64 %lo, i64 %hi) {",
        "entry:",
        "  %p0 = load ptr, ptr %args, align 8",
        *(f"  %at{k} = getelementptr {kind}, ptr %p0, i64 {k}" for k in many),
        *(f"  %start{k} = load {kind}, ptr %at{k}, align 4" for k in many),
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ %lo, %entry ], [ %i.next, %loop ]",
        *(
            f"  %x0.{k} = phi {kind} [ %start{k}, %entry ], [ %x{_CYCLES}.{k}, %loop ]"
            for k in many
        ),
        *(
            f"  %x{n + 1}.{k} = {other if n % 2 else add} {kind} %x{n}.{k}, %start0"
            for n in each
            for k in many
        ),
        "  %i.next = add i64 %i, 1",
        "  %more = icmp slt i64 %i.next, %hi",
        "  br i1 %more, label %loop, label %done",
        "done:",
        *(f"  store {kind} %x{_CYCLES}.{k}, ptr %at{k}, align 4" for k in many),
        "  ret void",
        "}",
        "",
    ]
    shape = LaunchShape.on_processor(steps, threads)
    text, params = "\n".join(lines), ((dtype, chains),)
    source = Source("cycles", "LLVM IR", text, params, launch=shape)
    numbers = Buffer(Device.processor.name, dtype, chains)
    numbers.array[:] = range(1, chains + 1)  # equal ones would be one for a compiler
    return Peak(Device.processor.load(source).bind([numbers]), chains * _CYCLES * steps)


@lru_cache
def run_nothing(threads: int = 1) -> Callable[[], None]:
    """Return a launch of an empty kernel on `threads` threads of the pool.

    Errors: DeviceError without llvmlite.
    """
    text = "define void @nothing(ptr %args, i64 %lo, i64 %hi) {\n  ret void\n}\n"
    params = ((dtypes.float32, 1),)
    shape = LaunchShape.on_processor(threads, threads)
    program = Device.processor.load(Source("nothing", "LLVM IR", text, params, launch=shape))
    run: Callable[[], None] = program.bind([Buffer(Device.processor.name, dtypes.float32, 1)])
    return run


def _fma_source(dtype: DType, lanes: int, threads: int, sums: int) -> Source:
    """Return a kernel in which each thread updates `sums` vectors in registers _STEPS times."""
    scalar, suffix = ("float", "f32") if dtype.bits == 32 else ("double", "f64")
    kind = f"<{lanes} x {scalar}>"
    fma = f"call {kind} @llvm.fmuladd.v{lanes}{suffix}"
    name = f"fma_peak_{suffix}"
    size = f"align {dtype.itemsize}"
    each = range(sums)
    lines = [
        f"define void @{name}(ptr %args, i64 %lo, i64 %hi) {{",
        "entry:",
        "  %p0 = load ptr, ptr %args, align 8",
        f"  %half = load {kind}, ptr %p0, {size}",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ %lo, %entry ], [ %i.next, %loop ]",
        *(f"  %x{n} = phi {kind} [ %half, %entry ], [ %y{n}, %loop ]" for n in each),
        *(f"  %y{n} = {fma}({kind} %x{n}, {kind} %half, {kind} %half)" for n in each),
        "  %i.next = add i64 %i, 1",
        "  %more = icmp slt i64 %i.next, %hi",
        "  br i1 %more, label %loop, label %done",
        "done:",
    ]
    for n in each:
        lines.append(f"  %at{n} = getelementptr {kind}, ptr %p0, i64 {n}")
        lines.append(f"  store {kind} %y{n}, ptr %at{n}, {size}")
    text = "\n".join([*lines, "  ret void", "}", ""])
    params = ((dtype, sums * lanes),)
    shape = LaunchShape.on_processor(_STEPS, threads)
    return Source(name, "LLVM IR", text, params, launch=shape)
