"""LLVM instructions that move values between the lanes of a vector.

As in instructions.py, `emit` writes the first instructions, and the last one is returned.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.llvm_ir.instructions import Emit, combine, type_of
from workbench.base.dtypes import DType
from workbench.ir.node.ops import Ops


def broadcast(scalar: str, dtype: DType, emit: Emit) -> str:
    """Return the instruction that puts one value into every lane."""
    kind = type_of(dtype)
    lane = f"{type_of(dtype.scalar)} {scalar}"
    first = emit(f"insertelement {kind} poison, {lane}, i64 0")
    zeros = f"<{dtype.count} x i32> zeroinitializer"
    return f"shufflevector {kind} {first}, {kind} poison, {zeros}"


def stack(scalars: Sequence[str], dtype: DType, emit: Emit) -> str:
    """Return the instruction that completes a vector of one value per lane."""
    kind, vector, step = type_of(dtype), "poison", ""
    for lane, scalar in enumerate(scalars):
        if step:
            vector = emit(step)
        value = f"{type_of(dtype.scalar)} {scalar}"
        step = f"insertelement {kind} {vector}, {value}, i64 {lane}"
    return step


def extract(vector: str, dtype: DType, lane: int) -> str:
    """Return the instruction that takes one lane out."""
    return f"extractelement {type_of(dtype)} {vector}, i64 {lane}"


def shuffle(vectors: Sequence[str], dtype: DType, picks: Sequence[int]) -> str:
    """Return the instruction that picks lanes out of two vectors."""
    kind = type_of(dtype)
    mask = ", ".join(f"i32 {lane}" for lane in picks)
    a, b = vectors
    return f"shufflevector {kind} {a}, {kind} {b}, <{dtype.count} x i32> <{mask}>"


def combine_lanes(op: Ops, vector: str, dtype: DType, emit: Emit) -> str:
    """Return the instruction that completes the combination of all lanes.

    Halves are combined with each other until one lane is left; an odd lane is combined last.
    """
    odd: list[str] = []
    step = extract(vector, dtype, 0)
    while dtype.count > 1:
        half = dtype.vec(dtype.count // 2)
        if dtype.count % 2:
            odd.append(emit(extract(vector, dtype, dtype.count - 1)))
        parts = [_part(vector, dtype, half, number, emit) for number in (0, 1)]
        step, dtype = combine(op, half, parts, emit), half
        if dtype.count > 1:
            vector = emit(step)
    for lane in odd:
        step = combine(op, dtype, (emit(step), lane), emit)
    return step


def _part(vector: str, dtype: DType, half: DType, number: int, emit: Emit) -> str:
    first = number * half.count
    if half.count == 1:
        return emit(extract(vector, dtype, first))
    picks = ", ".join(f"i32 {first + lane}" for lane in range(half.count))
    kind = type_of(dtype)
    mask = f"<{half.count} x i32> <{picks}>"
    return emit(f"shufflevector {kind} {vector}, {kind} poison, {mask}")
