"""simdgroup_matrix of Apple's GPUs, from the seventh family (M1) on.

Sources: Metal Shading Language Specification, 2.7 and 6.7 (simdgroup_matrix, 8 x 8); Apple does
not document which lane holds which element: P. Turner, metal-benchmarks, "SIMD-group matrix",
measured it, and MLX (`steel/gemm/mma.h`) relies on it.
"""

from __future__ import annotations

from workbench.base.dtypes import DType, dtypes
from workbench.base.tensor_cores.layout import Fragment
from workbench.base.tensor_cores.tensor_core import TensorCore


def _layout(row: str, column: str) -> Fragment:
    return Fragment(f"{column}1 {row}0 {row}1 {column}2 {row}2", f"{column}0")


def _simdgroup(operand: DType) -> TensorCore:
    return TensorCore(
        8, 8, 8, operand, dtypes.float32, 32, _layout("m", "k"), _layout("k", "n"),
        _layout("m", "n"), "simdgroup_multiply_accumulate",
    )  # fmt: skip


SIMDGROUP = (_simdgroup(dtypes.float16), _simdgroup(dtypes.float32))


def tensor_cores(arch: str) -> tuple[TensorCore, ...]:
    """Return the shapes of an architecture such as "apple7": all since that one have them."""
    family = arch.lower().removeprefix("apple")
    return SIMDGROUP if family.isdecimal() and int(family) >= 7 else ()
