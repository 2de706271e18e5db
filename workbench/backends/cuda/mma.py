"""Products of tiles in CUDA C++: PTX's mma.sync, in a function that takes what a lane holds.

    __device__ inline float4 wmma_16x8x8_float16(unsigned short a0, .., float4 c) {
      asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, .."
          : "+f"(c.x), .. : "r"(a0 | (unsigned)a1 << 16), ..);
      return c;
    }

An operand of 16 or 8 bits shares a register of 32 bits with its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.base.dtypes import DType, dtypes
from workbench.base.tensor_cores.tensor_core import TensorCore

REGISTER_BITS = 32
_LETTERS = {dtypes.float32: "f", dtypes.float64: "d", dtypes.int32: "r"}
"""What inline assembly calls a register of a type."""


def mma_function(name: str, core: TensorCore, kinds: tuple[str, str]) -> str:
    """Return the function of a tensor core; `kinds` are the types of an element of an operand, and
    of the vector of the accumulators."""
    kind, total = kinds
    a = [f"a{i}" for i in range(core.a.per_lane)]
    b = [f"b{i}" for i in range(core.b.per_lane)]
    c = [f"c.{part}" for part in "xyzw"[: core.c.per_lane]]
    inputs = [_registers(words, core.operand) for words in (a, b)]
    counts = [len(c), *(len(words) for words in inputs)]
    groups, number = [], 0
    for count in counts:
        groups.append(", ".join(f"%{number + i}" for i in range(count)))
        number += count
    operands = ", ".join(f"{{{group}}}" for group in (*groups, groups[0]))
    letter = _LETTERS[core.accumulator]
    outputs = ", ".join(f'"+{letter}"({part})' for part in c)
    source = "d" if core.operand is dtypes.float64 else "r"
    values = ", ".join(f'"{source}"({words})' for side in inputs for words in side)
    parameters = ", ".join(f"{kind} {word}" for word in (*a, *b))
    return "\n".join(
        [
            f"__device__ inline {total} {name}({parameters}, {total} c) {{",
            f'  asm volatile("{core.instruction} {operands};"',
            f"      : {outputs}",
            f"      : {values});",
            "  return c;",
            "}",
        ]
    )


def _registers(words: Sequence[str], operand: DType) -> list[str]:
    """Return the registers that hold elements, the first element lowest."""
    if operand is dtypes.float64:
        return list(words)
    if operand is dtypes.float32:
        return [f"__float_as_uint({word})" for word in words]
    size = REGISTER_BITS // operand.bits
    word_type = "unsigned char" if operand.bits == 8 else "unsigned short"
    cast = f"({word_type})" if operand.is_int else ""
    registers = []
    for begin in range(0, len(words), size):
        parts = [f"{cast}{words[begin]}"] + [
            f"(unsigned){cast}{words[begin + i]} << {i * operand.bits}"
            for i in range(1, size)
        ]
        registers.append(" | ".join(parts))
    return registers
