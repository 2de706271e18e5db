"""The tensor cores of NVIDIA's GPUs.

Source: PTX ISA 8.5, "Matrix multiply-accumulate operation using mma instruction", the sections
"Matrix Fragments for mma.m8n8k4 with .f64", "mma.m16n8k8", "mma.m16n8k16" and "mma.m16n8k32". Its
groupID is the lane's number // 4, its threadID_in_group the lane's number % 4.
"""

from __future__ import annotations

from workbench.base.dtypes import DType, dtypes
from workbench.base.tensor_cores.layout import Fragment
from workbench.base.tensor_cores.tensor_core import TensorCore

LANES = 32
_C = Fragment("n1 n2 m0 m1 m2", "n0 m3")
_TYPES = {
    dtypes.float16: "f16", dtypes.bfloat16: "bf16", dtypes.float32: "tf32",
    dtypes.int8: "s8", dtypes.fp8e4m3: "e4m3", dtypes.fp8e5m2: "e5m2",
}  # fmt: skip


def _mma(k: int, operand: DType, a: Fragment, b: Fragment) -> TensorCore:
    word = _TYPES[operand]
    is_int = operand.is_int
    total, accumulator = ("s32", dtypes.int32) if is_int else ("f32", dtypes.float32)
    name = f"mma.sync.aligned.m16n8k{k}.row.col.{total}.{word}.{word}.{total}"
    rounded = "tf32" if operand is dtypes.float32 else ""
    return TensorCore(16, 8, k, operand, accumulator, LANES, a, b, _C, name, rounded)


def _of_16_bits(k: int, operand: DType) -> TensorCore:
    more = " k3" if k == 16 else ""
    a = Fragment("k1 k2 m0 m1 m2", f"k0 m3{more}")
    return _mma(k, operand, a, Fragment("k1 k2 n0 n1 n2", f"k0{more}"))


def _of_8_bits(operand: DType) -> TensorCore:
    a = Fragment("k2 k3 m0 m1 m2", "k0 k1 m3 k4")
    return _mma(32, operand, a, Fragment("k2 k3 n0 n1 n2", "k0 k1 k4"))


_TF32 = _mma(
    8, dtypes.float32, Fragment("k0 k1 m0 m1 m2", "m3 k2"), Fragment("k0 k1 n0 n1 n2", "k2")
)
_F64 = TensorCore(
    8, 8, 4, dtypes.float64, dtypes.float64, LANES,
    Fragment("k0 k1 m0 m1 m2"), Fragment("k0 k1 n0 n1 n2"),
    Fragment("n1 n2 m0 m1 m2", "n0"), "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
)  # fmt: skip

TURING = (_of_16_bits(8, dtypes.float16),)
AMPERE = (
    _of_16_bits(16, dtypes.float16), _of_16_bits(16, dtypes.bfloat16),
    _of_16_bits(8, dtypes.float16), _of_16_bits(8, dtypes.bfloat16),
    _of_8_bits(dtypes.int8), _F64, _TF32,
)  # fmt: skip
ADA = (*AMPERE, _of_8_bits(dtypes.fp8e4m3), _of_8_bits(dtypes.fp8e5m2))


def tensor_cores(arch: str) -> tuple[TensorCore, ...]:
    """Return the tensor cores of an architecture such as "sm_90", the preferred first."""
    number = int(arch.removeprefix("sm_").rstrip("af") or 0)
    for least, cores in ((89, ADA), (80, AMPERE), (75, TURING)):
        if number >= least:
            return cores
    return ()
