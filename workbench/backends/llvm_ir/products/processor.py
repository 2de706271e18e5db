"""Products of tiles on processors in LLVM IR, where one lane holds whole tiles (Intel, AVX512_BF16
and AMX-BF16; Arm, BF16 of Advanced SIMD).

    %wmma_0 = call <4 x float> @llvm.aarch64.neon.bfmmla(<4 x float> %acc0_0, <8 x bfloat> %t0,
              <8 x bfloat> %t1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.backends.llvm_ir.lanes import broadcast
from workbench.base.dtypes import dtypes
from workbench.base.errors import CompileError
from workbench.base.tensor_cores.tensor_core import TensorCore

Step = Callable[[str], str]
"""Writes an instruction, and returns the name of its value."""
_TILE_WORDS = 256
"""Words of 32 bits in a register of AMX."""
_TILE_BYTES = 64
"""Bytes of a row of it."""


def processor_product(core: TensorCore, values: Sequence[str], step: Step) -> str:
    """Return the last instruction of C + A @ B; `values` are A, B (bits of bfloat16) and C.

    Errors: CompileError for an instruction of other machines.
    """
    write = _PRODUCTS.get(core.instruction)
    if write is None:
        because = f"no processor has an instruction for {core}"
        raise CompileError("render", because, hint="the list of opts without TC")
    return write(core, values, step)


def _bfmmla(core: TensorCore, values: Sequence[str], step: Step) -> str:
    a, b = (step(f"bitcast <8 x i16> {v} to <8 x bfloat>") for v in values[:2])
    name = "llvm.aarch64.neon.bfmmla"
    arguments = f"<4 x float> {values[2]}, <8 x bfloat> {a}, <8 x bfloat> {b}"
    return f"call <4 x float> @{name}({arguments})"


def _dpbf16ps(core: TensorCore, values: Sequence[str], step: Step) -> str:
    """Each row of C adds pairs of A's row, the same in all columns, times pairs of B's columns."""
    pairs = step(f"bitcast <{2 * core.m} x i16> {values[0]} to <{core.m} x i32>")
    b = step(f"bitcast <32 x i16> {values[1]} to <32 x bfloat>")
    whole = f"<{core.m * core.n} x float>"
    rows = []
    for row in range(core.m):
        pair = step(f"extractelement <{core.m} x i32> {pairs}, i64 {row}")
        a = step(broadcast(pair, dtypes.int32.vec(core.n), step))
        a = step(f"bitcast <16 x i32> {a} to <32 x bfloat>")
        c = step(_picked(whole, values[2], range(row * core.n, (row + 1) * core.n)))
        arguments = f"<16 x float> {c}, <32 x bfloat> {a}, <32 x bfloat> {b}"
        name = "llvm.x86.avx512bf16.dpbf16ps.512"
        rows.append(step(f"call <16 x float> @{name}({arguments})"))
    return _joined(rows, core.n, step)


def _tdpbf16ps(core: TensorCore, values: Sequence[str], step: Step) -> str:
    words = f"<{_TILE_WORDS} x i32>"
    kinds = ("<512 x i16>", "<512 x i16>", "<256 x float>")
    tiles = []
    for value, kind in zip(values, kinds, strict=True):
        vector = step(f"bitcast {kind} {value} to {words}")
        cast = "llvm.x86.cast.vector.to.tile.v256i32"
        tiles.append(step(f"call x86_amx @{cast}({words} {vector})"))
    a, b, c = tiles
    sizes = f"i16 {core.m}, i16 {_TILE_BYTES}, i16 {_TILE_BYTES}"
    arguments = f"{sizes}, x86_amx {c}, x86_amx {a}, x86_amx {b}"
    total = step(f"call x86_amx @llvm.x86.tdpbf16ps.internal({arguments})")
    cast = "llvm.x86.cast.tile.to.vector.v256i32"
    vector = step(f"call {words} @{cast}(x86_amx {total})")
    return f"bitcast {words} {vector} to {kinds[2]}"


_PRODUCTS: dict[str, Callable[[TensorCore, Sequence[str], Step], str]] = {
    "bfmmla": _bfmmla,
    "dpbf16ps": _dpbf16ps,
    "tdpbf16ps": _tdpbf16ps,
}


def _picked(kind: str, vector: str, lanes: Sequence[int], other: str = "poison") -> str:
    """Return the instruction that picks lanes out of a vector, or of two."""
    picks = ", ".join(f"i32 {lane}" for lane in lanes)
    return f"shufflevector {kind} {vector}, {kind} {other}, <{len(lanes)} x i32> <{picks}>"


def _joined(parts: Sequence[str], count: int, step: Step) -> str:
    """Return the last instruction that puts vectors of `count` floats, a power of two of them, one
    after the other."""
    while True:
        kind = f"<{count} x float>"
        last = [
            _picked(kind, first, range(2 * count), second)
            for first, second in zip(parts[::2], parts[1::2], strict=True)
        ]
        if len(last) == 1:
            return last[0]
        parts, count = [step(each) for each in last], 2 * count
