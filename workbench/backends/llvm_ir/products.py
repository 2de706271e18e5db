"""Products of tiles in LLVM IR, on GPUs and on processors.

Sections: Products of tiles in LLVM IR for GPUs; Products of tiles on processors in LLVM IR,
where one lane holds whole tiles (Intel, AVX512_BF16 and AMX-BF16; Arm, BF16 of Advanced SIMD).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.backends.llvm_ir.instructions import broadcast, type_of
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError
from workbench.base.tensor_cores import TensorCore

# --------------------------------------------------------------------------------------------------
# Products of tiles in LLVM IR for GPUs: AMD's intrinsics (LLVM, "User Guide for AMDGPU Backend"),
# and PTX's mma.sync as inline assembly.
#
#     %wmma_0 = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16(<4 x half> %t0, <4 x half> %t1,
#               <4 x float> %acc0_0, i32 0, i32 0, i32 0)

Step = Callable[[str], str]
"""Writes an instruction, and returns the name of its value."""
Product = Callable[[TensorCore, Sequence[DType], Sequence[str], Step], str]
"""A function of the tensor core, and of the dtypes and names of A, B and C; it returns the last
instruction of C + A @ B."""
_ELEMENTS = {dtypes.float16: "half", dtypes.bfloat16: "i16", dtypes.float32: "float"}
_SEMICOLON = r"\3B"
"""A semicolon in a string, escaped: the text after a plain one is read as a comment of LLVM IR."""
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
    first one lowest, or a double."""
    if dtype.scalar is dtypes.float64:
        return [("double", value)]
    count = dtype.count * dtype.scalar.bits // 32
    words = step(f"bitcast {type_of(dtype)} {value} to <{count} x i32>")
    return [("i32", step(f"extractelement <{count} x i32> {words}, i32 {i}")) for i in range(count)]


# --------------------------------------------------------------------------------------------------
# Products of tiles on processors in LLVM IR, where one lane holds whole tiles (Intel, AVX512_BF16
# and AMX-BF16; Arm, BF16 of Advanced SIMD).
#
#     %wmma_0 = call <4 x float> @llvm.aarch64.neon.bfmmla(<4 x float> %acc0_0, <8 x bfloat> %t0,
#               <8 x bfloat> %t1)

_TILE_WORDS = 256
"""Words of 32 bits in a register of AMX."""
_TILE_BYTES = 64
"""Bytes of a row of such a register."""


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
    """For each row of C: a pair of A's elements along k, the same for all columns, times a pair of
    each column of B."""
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
    """Return the instruction that picks lanes of a vector, or of two."""
    picks = ", ".join(f"i32 {lane}" for lane in lanes)
    return f"shufflevector {kind} {vector}, {kind} {other}, <{len(lanes)} x i32> <{picks}>"


def _joined(parts: Sequence[str], count: int, step: Step) -> str:
    """Return the last instruction that concatenates vectors of `count` floats; their number is a
    power of two, 2 or more."""
    while True:
        kind = f"<{count} x float>"
        last = [
            _picked(kind, first, range(2 * count), second)
            for first, second in zip(parts[::2], parts[1::2], strict=True)
        ]
        if len(last) == 1:
            return last[0]
        parts, count = [step(each) for each in last], 2 * count
