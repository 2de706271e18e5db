"""The languages of kernels that the emulator reads: their words, types and conversions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from workbench.base.dtypes import DType, dtypes
from workbench.emulator.source.syntax import Space

_C_TYPES = {
    "void": dtypes.void, "bool": dtypes.bool, "char": dtypes.int8, "signed char": dtypes.int8,
    "unsigned char": dtypes.uint8, "short": dtypes.int16, "unsigned short": dtypes.uint16,
    "int": dtypes.int32, "unsigned int": dtypes.uint32, "long": dtypes.int64,
    "unsigned long": dtypes.uint64, "float": dtypes.float32, "uchar": dtypes.uint8,
    "ushort": dtypes.uint16, "uint": dtypes.uint32, "ulong": dtypes.uint64,
    "size_t": dtypes.uint64, "int8_t": dtypes.int8, "uint8_t": dtypes.uint8,
    "int16_t": dtypes.int16, "uint16_t": dtypes.uint16, "int32_t": dtypes.int32,
    "uint32_t": dtypes.uint32, "int64_t": dtypes.int64, "uint64_t": dtypes.uint64,
}  # fmt: skip
_GPU_CPP = {
    "double": dtypes.float64, "long long": dtypes.int64, "unsigned long long": dtypes.uint64,
    "__half": dtypes.float16, "half": dtypes.float16, "__nv_bfloat16": dtypes.bfloat16,
    "_Float16": dtypes.float16, "__bf16": dtypes.bfloat16,
}  # fmt: skip
_VECTORS = {
    "char": dtypes.int8, "uchar": dtypes.uint8, "short": dtypes.int16, "ushort": dtypes.uint16,
    "int": dtypes.int32, "uint": dtypes.uint32, "long": dtypes.int64, "ulong": dtypes.uint64,
    "longlong": dtypes.int64, "ulonglong": dtypes.uint64, "float": dtypes.float32,
    "double": dtypes.float64, "half": dtypes.float16, "bool": dtypes.bool,
    "__half": dtypes.float16, "__nv_bfloat16": dtypes.bfloat16, "bfloat": dtypes.bfloat16,
}  # fmt: skip
_WGSL = {
    "bool": dtypes.bool, "i32": dtypes.int32, "u32": dtypes.uint32, "f32": dtypes.float32,
    "f16": dtypes.float16,
}  # fmt: skip

_MATRICES = {
    "simdgroup_float8x8": dtypes.float32.vec(2), "simdgroup_half8x8": dtypes.float16.vec(2),
    "simdgroup_bfloat8x8": dtypes.bfloat16.vec(2),
}  # fmt: skip
"""Matrices of Metal, of which each lane has two elements."""


_CUDA_SPACES: dict[str, Space] = {"__shared__": "shared"}
_OPENCL_SPACES: dict[str, Space] = {
    "__local": "shared", "local": "shared", "__global": "global", "global": "global",
    "__constant": "global", "constant": "global", "__private": "private", "private": "private",
}  # fmt: skip
_METAL_SPACES: dict[str, Space] = {
    "threadgroup": "shared", "device": "global", "constant": "global", "thread": "private",
}  # fmt: skip
_WGSL_SPACES: dict[str, Space] = {
    "storage": "global", "workgroup": "shared", "private": "private",
}  # fmt: skip


@dataclass(frozen=True)
class SourceLanguage:
    """A language. `defined` are the names that its compiler defines; `types` its scalars, `vectors`
    its vectors by name; `spaces` its words for memories, and `kernel_words` those before a kernel.
    `converts`: operands of two types get a common one. `awaits_returned`: a barrier also waits for
    work-items that have returned, for ever. `has_doubles`: a literal such as 1.5 is a double.
    `masks_shifts`: a value is shifted by the amount modulo its bits. `compares_as_ints`: a
    comparison of vectors gives integers, -1 where it holds. `fills_lanes`: lanes of a vector that
    its braces have no value for are 0. `is_zeroed`: memory that a text declares begins as 0."""

    name: str
    defined: Mapping[str, int]
    types: Mapping[str, DType]
    vectors: Mapping[str, DType]
    spaces: Mapping[str, Space]
    kernel_words: frozenset[str] = frozenset()
    converts: bool = True
    awaits_returned: bool = True
    has_doubles: bool = True
    masks_shifts: bool = False
    compares_as_ints: bool = False
    fills_lanes: bool = False
    is_zeroed: bool = False
    is_wgsl: bool = False


def _vectors(*counts: int) -> dict[str, DType]:
    return {f"{name}{n}": kind.vec(n) for name, kind in _VECTORS.items() for n in counts}


LANGUAGES: Mapping[str, SourceLanguage] = {
    each.name: each
    for each in (
        SourceLanguage(
            "CUDA", {"__CUDA_ARCH__": 900}, _C_TYPES | _GPU_CPP, _vectors(1, 2, 3, 4),
            _CUDA_SPACES, frozenset({"__global__"}), awaits_returned=False, fills_lanes=True,
        ),
        SourceLanguage(
            "HIP", {"__HIP_PLATFORM_AMD__": 1}, _C_TYPES | _GPU_CPP, _vectors(1, 2, 3, 4),
            _CUDA_SPACES, frozenset({"__global__"}), awaits_returned=False,
        ),
        SourceLanguage(
            "OpenCL C", {"__OPENCL_VERSION__": 120},
            _C_TYPES | {"double": dtypes.float64, "half": dtypes.float16},
            _vectors(2, 3, 4, 8, 16), _OPENCL_SPACES, frozenset({"__kernel", "kernel"}),
            masks_shifts=True, compares_as_ints=True,
        ),
        SourceLanguage(
            "Metal", {"__METAL_VERSION__": 310},
            _C_TYPES | {"half": dtypes.float16, "bfloat": dtypes.bfloat16},
            _vectors(2, 3, 4) | _MATRICES, _METAL_SPACES, frozenset({"kernel"}),
            has_doubles=False,
        ),
        SourceLanguage(
            "WGSL", {}, _WGSL, {}, _WGSL_SPACES, converts=False, masks_shifts=True,
            is_zeroed=True, is_wgsl=True,
        ),
    )
}  # fmt: skip
"""The languages that the emulator reads, by the names that devices give them."""
_SIGNS = (
    (r"@compute\b|\bfn\s+\w+\s*\(", "WGSL"),
    (r"\b(?:__kernel|get_local_id|get_group_id)\b", "OpenCL C"),
    (r"\bthreadgroup_position_in_grid\b|\bmetal_stdlib\b", "Metal"),
    (r"\b__global__\b", "CUDA"),
)
"""Words by which the language of a text is known."""


def language_of(text: str, own: str) -> str | None:
    """Return the language of a kernel's text: `own` where it may be that; None for another text."""
    for pattern, name in _SIGNS:
        if re.search(pattern, text):
            return own if {own, name} == {"CUDA", "HIP"} else name
    return None
