"""Products of tiles in LLVM IR for GPUs: AMD's intrinsics (LLVM, "User Guide for AMDGPU Backend"),
and PTX's mma.sync as inline assembly.

    %wmma_0 = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half> %t0, <4 x half> %t1,
              <4 x float> %acc0_0, i32 0, i32 0, i32 0)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.backends.llvm_ir.instructions import type_of
from workbench.base.dtypes import DType, dtypes
from workbench.base.tensor_cores.tensor_core import TensorCore

Step = Callable[[str], str]
"""Writes an instruction, and returns the name of its value."""
Product = Callable[[TensorCore, Sequence[DType], Sequence[str], Step], str]
"""Returns the last instruction of C + A @ B: of the tensor core, the dtypes and the names of A, B
and C."""
_ELEMENTS = {dtypes.float16: "half", dtypes.bfloat16: "i16", dtypes.float32: "float"}
_SEMICOLON = r"\3B"
"""In a string: what stands behind a semicolon of LLVM IR is a comment."""
_LETTERS = {"float": "f", "double": "d", "i32": "r"}


def amd_product(
    core: TensorCore, dtypes_of: Sequence[DType], values: Sequence[str], step: Step
) -> str:
    """Return the call of v_mfma or v_wmma; `values` are A, B and C, of `dtypes_of`."""
    count, total = core.a.per_lane, type_of(dtypes_of[2])
    element = _ELEMENTS[core.operand]
    kind = element if count == 1 else f"<{count} x {element}>"
    a, b = (
        value if type_of(dtype) == kind
        else step(f"bitcast {type_of(dtype)} {value} to {kind}")
        for value, dtype in zip(values[:2], dtypes_of[:2], strict=True)
    )  # fmt: skip
    name = core.instruction.removeprefix("__builtin_amdgcn_")
    more = ""
    if name.startswith("mfma_f32_"):
        shape = name.removeprefix("mfma_f32_").replace("_1k", ".1k")
        name, more = f"mfma.f32.{shape}", ", i32 0, i32 0, i32 0"
    else:
        lanes = {"half": "f16", "i16": "i16"}[element]
        word = "f16" if core.operand is dtypes.float16 else "bf16"
        name = f"wmma.f32.{core.shape}.{word}.v{core.c.per_lane}f32.v{count}{lanes}"
    arguments = f"{kind} {a}, {kind} {b}, {total} {values[2]}{more}"
    return f"call {total} @llvm.amdgcn.{name}({arguments})"


def ptx_product(
    core: TensorCore, dtypes_of: Sequence[DType], values: Sequence[str], step: Step
) -> str:
    """Return the last of the instructions that put the result of mma.sync in a vector."""
    operands = [
        registers
        for value, dtype in zip(values[:2], dtypes_of[:2], strict=True)
        for registers in [_registers(value, dtype, step)]
    ]
    total = type_of(core.accumulator)
    count = core.c.per_lane
    vector = type_of(dtypes_of[2])
    sums = [(total, step(f"extractelement {vector} {values[2]}, i32 {i}")) for i in range(count)]
    inputs = [*operands[0], *operands[1], *sums]
    groups, number = [], 0
    for size in (count, len(operands[0]), len(operands[1]), count):
        groups.append("{" + ", ".join(f"${number + i}" for i in range(size)) + "}")
        number += size
    letters = [f"={_LETTERS[total]}"] * count + [_LETTERS[kind] for kind, _ in inputs]
    result = "{ " + ", ".join([total] * count) + " }"
    arguments = ", ".join(f"{kind} {value}" for kind, value in inputs)
    text = f"{core.instruction} {', '.join(groups)}{_SEMICOLON}"
    parts = step(f'call {result} asm sideeffect "{text}", "{",".join(letters)}"({arguments})')
    whole = "poison"
    for i in range(count):
        part = step(f"extractvalue {result} {parts}, {i}")
        last = f"insertelement {vector} {whole}, {total} {part}, i32 {i}"
        if i < count - 1:
            whole = step(last)
    return last


def _registers(value: str, dtype: DType, step: Step) -> list[tuple[str, str]]:
    """Return the registers of a fragment, each with its type: 32 bits for several elements, the
    first lowest, or a double."""
    if dtype.scalar is dtypes.float64:
        return [("double", value)]
    count = dtype.count * dtype.scalar.bits // 32
    words = step(f"bitcast {type_of(dtype)} {value} to <{count} x i32>")
    return [("i32", step(f"extractelement <{count} x i32> {words}, i32 {i}")) for i in range(count)]
