"""The matrix engines of Intel's GPUs (XMX).

Source: OpenCL extension cl_intel_subgroup_matrix_multiply_accumulate: 8 rows of A, a row in each
element (as a short in sub-groups of 16, as an int that packs two columns in sub-groups of 8), and
pairs of rows of B packed in ints.
"""

from __future__ import annotations

from workbench.base.dtypes import DType, dtypes
from workbench.base.tensor_cores.layout import Fragment
from workbench.base.tensor_cores.tensor_core import TensorCore


def _dpas(lanes: int, operand: DType) -> TensorCore:
    columns = " ".join(f"n{i}" for i in range(lanes.bit_length() - 1))
    a = Fragment("k1 k2 k3", "k0 m0 m1 m2")
    if lanes == 16:
        a = Fragment("k0 k1 k2 k3", "m0 m1 m2")
    word = "f16" if operand is dtypes.float16 else "bf16"
    return TensorCore(
        8, lanes, 16, operand, dtypes.float32, lanes, a, Fragment(columns, "k0 k1 k2 k3"),
        Fragment(columns, "m0 m1 m2"), f"intel_sub_group_{word}_{word}_matrix_mad_k16",
    )  # fmt: skip


XE_HPG = (_dpas(8, dtypes.float16), _dpas(8, dtypes.bfloat16))
XE_HPC = (_dpas(16, dtypes.float16), _dpas(16, dtypes.bfloat16))


def tensor_cores(arch: str) -> tuple[TensorCore, ...]:
    """Return the matrix engines of an architecture: of Arc ("xe-hpg", "dg2") or of Data Center GPU
    Max ("xe-hpc", "pvc")."""
    word = arch.lower().replace("_", "-")
    if word in ("xe-hpg", "dg2", "acm-g10"):
        return XE_HPG
    return XE_HPC if word in ("xe-hpc", "pvc") else ()
