"""Warp shuffles in LLVM IR: machines exchange words of 32 bits, so values are converted to words
and back.

    %t0 = bitcast float %acc0_0 to i32
    %t1 = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %t0, i32 16, i32 31)
    %shuffle_0 = bitcast i32 %t1 to float
"""

from __future__ import annotations

from collections.abc import Callable

from workbench.backends.llvm_ir.instructions import bits_of, type_of
from workbench.base.dtypes import DType

Step = Callable[[str], str]
"""Writes an instruction, and returns the name of its value."""
WORD = 32


def shuffled(dtype: DType, value: str, exchange: Step, step: Step) -> str:
    """Return the last instruction of a shuffle of `value`; `exchange` writes that of a word, and
    returns its name."""
    if dtype.count == 1:
        return _shuffled_scalar(dtype, value, exchange, step)
    kind, one = type_of(dtype), type_of(dtype.scalar)
    whole, last = "poison", ""
    for i in range(dtype.count):
        if last:
            whole = step(last)
        lane = step(f"extractelement {kind} {value}, i32 {i}")
        other = step(_shuffled_scalar(dtype.scalar, lane, exchange, step))
        last = f"insertelement {kind} {whole}, {one} {other}, i32 {i}"
    return last


def _shuffled_scalar(dtype: DType, value: str, exchange: Step, step: Step) -> str:
    bits, kind = bits_of(dtype), type_of(dtype)
    plain = f"i{bits}"
    if dtype.is_float:
        value = step(f"bitcast {kind} {value} to {plain}")
    if bits <= WORD:
        word = value if bits == WORD else step(f"zext {plain} {value} to i32")
        result = exchange(word)
        last = f"trunc i32 {result} to {plain}" if bits < WORD else ""
    else:
        above = step(f"lshr {plain} {value}, {WORD}")
        parts = [step(f"trunc {plain} {part} to i32") for part in (value, above)]
        low, high = (step(f"zext i32 {exchange(p)} to {plain}") for p in parts)
        top = step(f"shl {plain} {high}, {WORD}")
        last = f"or disjoint {plain} {low}, {top}"
    if not dtype.is_float:
        return last or f"bitcast i32 {result} to i32"
    return f"bitcast {plain} {step(last) if last else result} to {kind}"
