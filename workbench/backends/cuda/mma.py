"""Functions of tiles in CUDA C++, around PTX's mma.sync and ldmatrix: the first multiplies the
fragments of a lane, the second loads them.

    __device__ inline float4 wmma_16x8x16_float16(unsigned a0, .., unsigned b0, .., float4 c) {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, .."
          : "+f"(c.x), .. : "r"(a0), ..);
      return c;
    }

An operand of 16 or 8 bits shares a register of 32 bits with its neighbours. Source: PTX ISA 8.5,
"Warp Level Matrix Instructions".
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.base.dtypes import DType, dtypes
from workbench.base.tensor_cores import TensorCore

REGISTER_BITS = 32
_LETTERS = {dtypes.float32: "f", dtypes.float64: "d", dtypes.int32: "r"}
"""The letters of register types in inline assembly."""


def mma_function(name: str, core: TensorCore, total: str) -> str:
    """Return the function that multiplies tiles on a tensor core; `total` is the type of a vector
    of its accumulators."""
    is_double = core.operand is dtypes.float64
    bits = core.operand.bits if is_double else REGISTER_BITS
    sides = [
        [f"{letter}{i}" for i in range(fragment.per_lane * core.operand.bits // bits)]
        for letter, fragment in (("a", core.a), ("b", core.b))
    ]
    c = [f"c.{part}" for part in "xyzw"[: core.c.per_lane]]
    groups, number = [], 0
    for count in (len(c), *map(len, sides)):
        groups.append(", ".join(f"%{number + i}" for i in range(count)))
        number += count
    operands = ", ".join(f"{{{group}}}" for group in (*groups, groups[0]))
    letter = _LETTERS[core.accumulator]
    outputs = ", ".join(f'"+{letter}"({part})' for part in c)
    source, kind = ("d", "double") if is_double else ("r", "unsigned")
    words = [word for side in sides for word in side]
    values = ", ".join(f'"{source}"({word})' for word in words)
    parameters = ", ".join(f"{kind} {word}" for word in words)
    return "\n".join(
        [
            f"__device__ inline {total} {name}({parameters}, {total} c) {{",
            f'  asm("{core.instruction} {operands};"',
            f"      : {outputs}",
            f"      : {values});",
            "  return c;",
            "}",
        ]
    )


def matrix_function(name: str, count: int, transposed: bool) -> str:
    """Return the function that reads `count` matrices of 8 rows of 16 bytes: each lane passes the
    address of one row, and gets its word of each matrix."""
    vector = f"uint{count}" if count > 1 else "unsigned"
    parts = [f"r.{c}" for c in "xyzw"[:count]] if count > 1 else ["r"]
    outputs = ", ".join(f'"=r"({part})' for part in parts)
    numbers = ", ".join(f"%{i}" for i in range(count))
    word = f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' if transposed else ''}.shared.b16"
    return "\n".join(
        [
            f"__device__ inline {vector} {name}(const void *row) {{",
            f"  {vector} r;",
            f'  asm volatile("{word} {{{numbers}}}, [%{count}];"',
            f"      : {outputs}",
            '      : "r"((unsigned)__cvta_generic_to_shared(row)) : "memory");',
            "  return r;",
            "}",
        ]
    )


def registers(words: Sequence[str], operand: DType) -> list[str]:
    """Return the registers that hold these elements, the first element in the lowest bits."""
    if operand is dtypes.float64:
        return list(words)
    if operand is dtypes.float32:
        return [f"__float_as_uint({word})" for word in words]
    size = REGISTER_BITS // operand.bits
    word_type = "unsigned char" if operand.bits == 8 else "unsigned short"
    cast = f"({word_type})" if operand.kind == "int" else ""
    registers = []
    for begin in range(0, len(words), size):
        parts = [f"{cast}{words[begin]}"] + [
            f"(unsigned){cast}{words[begin + i]} << {i * operand.bits}" for i in range(1, size)
        ]
        registers.append(" | ".join(parts))
    return registers
