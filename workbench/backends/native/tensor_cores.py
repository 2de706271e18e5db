"""Matrix instructions of processors, as tensor cores of one lane that holds whole tiles.

Sources: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, VDPBF16PS and
TDPBF16PS (pairs of steps stand side by side, and B has the pairs of a column one after the other);
Arm Architecture Reference Manual for A-profile, BFMMLA (2 x 4 by 4 x 2, B by columns).
"""

from __future__ import annotations

from collections.abc import Container

from workbench.base.dtypes import dtypes
from workbench.base.tensor_cores.layout import Fragment
from workbench.base.tensor_cores.tensor_core import TensorCore


def _core(m: int, n: int, k: int, a: str, b: str, c: str, name: str) -> TensorCore:
    fragments = Fragment("", a), Fragment("", b), Fragment("", c)
    return TensorCore(m, n, k, dtypes.bfloat16, dtypes.float32, 1, *fragments, name)


BFMMLA = _core(2, 2, 4, "k0 k1 m0", "k0 k1 n0", "n0 m0", "bfmmla")
DPBF16PS = _core(4, 16, 2, "k0 m0 m1", "k0 n0 n1 n2 n3", "n0 n1 n2 n3 m0 m1", "dpbf16ps")
TDPBF16PS = _core(
    16, 16, 32, "k0 k1 k2 k3 k4 m0 m1 m2 m3", "k0 n0 n1 n2 n3 k1 k2 k3 k4",
    "n0 n1 n2 n3 m0 m1 m2 m3", "tdpbf16ps",
)  # fmt: skip
X86 = {"amx-bf16": TDPBF16PS, "avx512bf16": DPBF16PS}
ARM = {"bf16": BFMMLA}
"""By LLVM's names of the features that have them, the preferred first."""


def tensor_cores(features: Container[str]) -> tuple[TensorCore, ...]:
    """Return the tensor cores of a processor with these features, the preferred first."""
    return tuple(core for name, core in {**X86, **ARM}.items() if name in features)


def absence(family: str) -> str:
    """Return why a processor of a family ("x86_64") without such features has no tensor cores."""
    if family in ("x86_64", "amd64"):
        return "its processor has neither AMX-BF16 nor AVX512_BF16"
    if family in ("aarch64", "arm64"):
        return "its processor does not have BF16 (bfmmla)"
    return f"no compiler here has a product of matrices for {family}"
