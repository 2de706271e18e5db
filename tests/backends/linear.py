"""Small linear programs, written by hand, and how to run them on numpy arrays.

They are rendered for the default device, LLVM or C: `with Context(DEV="C")`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.backends.c import c_device as runtime_c
from workbench.backends.c.c_dialect import C
from workbench.backends.c_like import render as render_c
from workbench.backends.device import Device
from workbench.backends.llvm import llvm_device as runtime_llvm
from workbench.backends.llvm_ir import render as render_llvm
from workbench.backends.memory import Buffer
from workbench.backends.native.program import NativeProgram
from workbench.backends.program.text import Source
from workbench.base.dtypes import Const, DType, dtypes
from workbench.base.target import Target
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import KernelInfo, Storage, UOp

TARGET = Target("LLVM", vector_bytes=32)
Array = np.ndarray[Any, Any]


def axis(name: str, size: int, kind: AxisType = AxisType.GLOBAL) -> UOp:
    return UOp.range(size, name, kind)


def param(slot: int, dtype: DType, size: int) -> UOp:
    return UOp(Ops.PARAM, dtype, (), (slot, size))


def scratch(name: str, dtype: DType, *shape: int) -> UOp:
    return UOp(Ops.DEFINE, dtype, (), Storage(name, shape, "scratch"))


def at(memory: UOp, index: UOp | int) -> UOp:
    where = UOp.index(index) if isinstance(index, int) else index
    return UOp(Ops.INDEX, memory.dtype, (memory, where))


def load_from(address: UOp, lanes: int = 1, where: UOp | None = None) -> UOp:
    gate = () if where is None else (where,)
    return UOp(Ops.LOAD, address.dtype.vec(lanes), (address, *gate))


def store(address: UOp, value: UOp) -> UOp:
    return UOp(Ops.STORE, dtypes.void, (address, value))


def register(name: str, dtype: DType, lane: int = 0) -> UOp:
    return UOp(Ops.REG, dtype, (), (name, lane))


def put(target: UOp, value: UOp) -> UOp:
    return UOp(Ops.SET, dtypes.void, (target, value))


def broadcast(value: UOp, lanes: int) -> UOp:
    return UOp(Ops.BROADCAST, value.dtype.vec(lanes), (value,))


def constant_lanes(dtype: DType, *values: Const) -> UOp:
    return UOp(Ops.LANES, dtype.vec(len(values)), (), values)


def begin(over: UOp, arg: str | None = None) -> UOp:
    return UOp(Ops.LOOP, dtypes.void, (over,), arg)


def end(over: UOp) -> UOp:
    return UOp(Ops.ENDLOOP, dtypes.void, (over,))


_STATEMENTS = (Ops.LOOP, Ops.ENDLOOP, Ops.SET, Ops.STORE)
_LEAVES = (Ops.CONST, Ops.PARAM, Ops.RANGE, Ops.LANES, Ops.REG)


def program(*statements: UOp, name: str = "k") -> tuple[UOp, ...]:
    """Return a linear program: the statements, each value just before its first use.

    Values in a loop are written again in the next one, as they must be if a range or a
    register they read has changed.
    """
    linear = [UOp(Ops.BLOCK, dtypes.void, (), KernelInfo(name, ()))]
    written: set[UOp] = set()
    for statement in statements:
        if statement.op in (Ops.LOOP, Ops.ENDLOOP):
            linear.append(statement)
            written = {n for n in written if n.op is Ops.DEFINE}
            continue
        for node in statement.toposort():
            if node in written or node.op in _LEAVES or node.op in _STATEMENTS:
                continue
            linear.append(node)
            written.add(node)
        linear.append(statement)
        if statement.op is Ops.SET:
            written = {n for n in written if statement.src[0] not in n.toposort()}
    return tuple(linear)


def source_of(*statements: UOp, name: str = "k", target: Target = TARGET) -> Source:
    return render(program(*statements, name=name), target)


def render(linear: tuple[UOp, ...], target: Target = TARGET) -> Source:
    """Return the source of a program for the default device; it has no statement tree."""
    if Device.DEFAULT == "C":
        return render_c.render(C(), linear[0], linear, target)
    return render_llvm.render(linear, target)


def load(source: Source) -> NativeProgram:
    """Return the Program of a source on the device that it is for."""
    return runtime_c.load(source) if is_c(source) else runtime_llvm.load(source)


def is_c(source: Source) -> bool:
    return source.language == "C"


def buffer_of(array: Array) -> Buffer:
    """Return a Buffer with a copy of an array's elements."""
    buffer = Buffer("LLVM", dtypes.from_numpy(array.dtype), array.size)
    buffer.array[:] = array.reshape(-1)
    return buffer


def run(source: Source, *arrays: Array) -> Array:
    """Run a kernel on copies of `arrays` and return argument 0 as it is afterwards."""
    buffers = [buffer_of(a) for a in arrays]
    load(source)(buffers)
    return buffers[0].array.reshape(arrays[0].shape)


def program_of(*statements: UOp, name: str = "k") -> NativeProgram:
    return load(source_of(*statements, name=name))


def poisoned(size: int, dtype: DType = dtypes.float32) -> Array:
    """Return an array that holds what no kernel here computes."""
    return np.full(size, 77, dtype.numpy)


def each(size: int, lanes: int = 1, name: str = "g0") -> tuple[UOp, UOp]:
    """Return (axis, index of its first element) for `size` elements, `lanes` at a time."""
    over = axis(name, size // lanes)
    return over, over if lanes == 1 else over * lanes


def elementwise(op: Ops, result: DType, sources: Sequence[DType], size: int, lanes: int) -> Source:
    """Return a kernel that applies `op` to its arguments, element by element."""
    over, index = each(size, lanes)
    loads = [
        load_from(at(param(1 + n, dtype, size), index), lanes) for n, dtype in enumerate(sources)
    ]
    value = UOp(op, result.vec(lanes), tuple(loads))
    out = at(param(0, result, size), index)
    return source_of(begin(over, "chunked"), store(out, value), end(over))
