"""The matrix cores of AMD's GPUs.

Sources: AMD matrix instruction calculator (register layouts of v_mfma_*, CDNA2 and CDNA3); "How to
accelerate AI applications on RDNA 3 using WMMA", GPUOpen 2023, and the RDNA3 ISA, section "Wave
matrix multiply accumulate": there the lanes 16 to 31 hold copies of what lanes 0 to 15 hold of A
and B.
"""

from __future__ import annotations

from workbench.base.dtypes import DType, dtypes
from workbench.base.tensor_cores.layout import Fragment
from workbench.base.tensor_cores.tensor_core import TensorCore

_F32 = dtypes.float32
_WORDS = {dtypes.float16: "f16", dtypes.bfloat16: "bf16_1k", _F32: "f32"}
_SQUARE_16 = Fragment("n0 n1 n2 n3 m2 m3", "m0 m1")
_SQUARE_32 = Fragment("n0 n1 n2 n3 n4 m2", "m0 m1 m3 m4")


def _mfma(size: int, operand: DType) -> TensorCore:
    """Return v_mfma_f32 of 16x16 or 32x32: a lane has 4 steps of a row, or 1 of float32."""
    inside = "" if operand is _F32 else "k0 k1"
    outside = ["k0", "k1"] if operand is _F32 else ["k2", "k3"]
    rest = " ".join(outside[: 2 if size == 16 else 1])
    bits = size.bit_length() - 1
    rows, columns = (" ".join(f"{x}{i}" for i in range(bits)) for x in "mn")
    a, b = (Fragment(f"{line} {rest}", inside) for line in (rows, columns))
    k = a.size("k")
    name = f"__builtin_amdgcn_mfma_f32_{size}x{size}x{k}{_WORDS[operand]}"
    c = _SQUARE_16 if size == 16 else _SQUARE_32
    return TensorCore(size, size, k, operand, _F32, 64, a, b, c, name)


def _wmma(operand: DType) -> TensorCore:
    word = {dtypes.float16: "f16", dtypes.bfloat16: "bf16"}[operand]
    steps = "k0 k1 k2 k3"
    return TensorCore(
        16, 16, 16, operand, _F32, 32, Fragment("m0 m1 m2 m3 -", steps),
        Fragment("n0 n1 n2 n3 -", steps), Fragment("n0 n1 n2 n3 m0", "m1 m2 m3"),
        f"__builtin_amdgcn_wmma_f32_16x16x16_{word}_w32",
    )  # fmt: skip


RDNA3 = (_wmma(dtypes.float16), _wmma(dtypes.bfloat16))
CDNA = tuple(
    _mfma(size, operand) for operand in (dtypes.float16, dtypes.bfloat16, _F32) for size in (16, 32)
)


def tensor_cores(arch: str) -> tuple[TensorCore, ...]:
    """Return the matrix cores of an architecture such as "gfx1100", the preferred first."""
    if arch.startswith("gfx11"):
        return RDNA3
    return CDNA if arch in ("gfx90a", "gfx940", "gfx941", "gfx942", "gfx950") else ()
