"""A stand-in for clang's OpenCL header (OpenCL C specification, 1.2, "Supported data types"): types
and constants beyond the built-in functions, and functions of Intel's extensions.
"""

from __future__ import annotations

from workbench.backends.opencl.tensor_cores import XE_HPC, XE_HPG

NAME = "opencl-c-base.h"
"""Clang includes it by itself."""
_SCALARS = (
    "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "double",
)  # fmt: skip
_SHUFFLED = ("int", "uint", "long", "ulong", "float", "double")
_WORDS = """\
#pragma once
#define __opencl_c_named_address_space_builtins 1
#define cl_khr_fp64 1
#define cl_khr_fp16 1
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef uint cl_mem_fence_flags;
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define CHAR_BIT __CHAR_BIT__
#define INT_MAX __INT_MAX__
#define INT_MIN (-__INT_MAX__ - 1)
#define UINT_MAX (2u * __INT_MAX__ + 1u)
#define LONG_MAX __LONG_MAX__
#define LONG_MIN (-__LONG_MAX__ - 1l)
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define DBL_MAX __DBL_MAX__
#define M_PI_F 3.14159274101257f
#define M_LN2_F 0.693147180559945f
#define M_LOG2E_F 1.44269504088896f
#define MAXFLOAT __FLT_MAX__
#define INFINITY __builtin_inff()
#define HUGE_VALF __builtin_inff()
#define HUGE_VAL __builtin_inf()
#define NAN __builtin_nanf("")
"""


def _header() -> str:
    overloadable = "__attribute__((overloadable))"
    vectors = [
        f"typedef {kind} {kind}{size} __attribute__((ext_vector_type({size})));"
        for kind in _SCALARS
        for size in (2, 3, 4, 8, 16)
    ]
    bits = [  # those of 3 have the size of those of 4
        f"#define as_{kind}{size}(a) __builtin_astype((a), {kind}{size})"
        for kind in _SCALARS
        for size in ("", 2, 3, 4, 8, 16)
    ]
    shuffles = [
        f"{kind} {overloadable} intel_sub_group_shuffle_xor({kind} a, uint mask);"
        for kind in _SHUFFLED
    ]
    products = [
        f"float8 {overloadable} {core.instruction}({rows} a, int8 b, float8 c);"
        for cores, rows in ((XE_HPG, "int8"), (XE_HPC, "short8"))
        for core in cores
    ]
    return "\n".join([_WORDS.rstrip(), *vectors, *bits, *shuffles, *products, ""])


HEADER = _header()
"""The text of the header."""
