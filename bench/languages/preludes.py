"""What compilers of C++ must know of languages that they do not have.

HIP comes with headers, which are not here: its words are attributes and builtins of clang's. Metal
has no compiler outside of macOS: clang reads its grammar, with its words declared.
"""

from __future__ import annotations

_SIZES = (2, 3, 4)
_HIP_TYPES = {
    "char": "signed char", "uchar": "unsigned char", "short": "short",
    "ushort": "unsigned short", "int": "int", "uint": "unsigned int", "longlong": "long long",
    "ulonglong": "unsigned long long", "float": "float", "double": "double",
}  # fmt: skip
_METAL_TYPES = {
    "char": "signed char", "uchar": "unsigned char", "short": "short",
    "ushort": "unsigned short", "int": "int", "uint": "unsigned", "long": "long",
    "ulong": "unsigned long", "float": "float", "half": "_Float16", "bool": "bool",
}  # fmt: skip
_FUNCTIONS = ("exp2", "log2", "sin", "cos", "sqrt", "trunc", "fmod", "fabs", "floor")


def _vectors(types: dict[str, str]) -> str:
    lines = []
    for name, kind in types.items():
        for size in _SIZES:
            attribute = f"__attribute__((ext_vector_type({size})))"
            lines.append(f"typedef {kind} {name}{size} {attribute};")
    return "\n".join(lines)


def _makers() -> str:
    lines = []
    for name, kind in _HIP_TYPES.items():
        for size in _SIZES:
            letters = "abcd"[:size]
            arguments = ", ".join(f"{kind} {x}" for x in letters)
            value = ", ".join(letters)
            vector = f"{name}{size}"
            head = f"static inline __device__ {vector} make_{vector}({arguments})"
            lines.append(f"{head} {{ return {vector}{{{value}}}; }}")
    return "\n".join(lines)


def _bits() -> str:
    pairs = (
        ("int", "int", "float", "float"), ("float", "float", "int", "int"),
        ("uint", "unsigned", "float", "float"), ("float", "float", "uint", "unsigned"),
        ("longlong", "long long", "double", "double"),
        ("double", "double", "longlong", "long long"),
    )  # fmt: skip
    return "\n".join(
        f"static inline __device__ {to} __{source}_as_{target}({kind} a)"
        f" {{ return __builtin_bit_cast({to}, a); }}"
        for source, kind, target, to in pairs
    )


def _math() -> str:
    lines = []
    for name in _FUNCTIONS:
        many = ", {0}" if name == "fmod" else ""
        for suffix, kind in (("", "double"), ("f", "float")):
            arguments = kind + many.format(kind)
            lines.append(f'extern "C" __device__ {kind} {name}{suffix}({arguments});')
    lines += [
        f"static inline __device__ {kind} {word}({kind} a, {kind} b)"
        f" {{ return a {sign} b ? a : b; }}"
        for kind in ("int", "unsigned")
        for word, sign in (("min", "<"), ("max", ">"))
    ]
    return "\n".join(lines)


def _shuffles() -> str:
    """Return HIP's functions that hand a value to another lane, by words of 32 bits."""
    lines = [
        "static inline __device__ int other_word(int a, int mask) {",
        "  int before = __builtin_amdgcn_mbcnt_lo(~0u, 0);",
        "  int lane = __builtin_amdgcn_mbcnt_hi(~0u, before);",
        "  return __builtin_amdgcn_ds_bpermute((lane ^ mask) * 4, a);",
        "}",
        "struct TwoWords { int low, high; };",
    ]
    for kind in ("int", "unsigned", "float"):
        word = "other_word(__builtin_bit_cast(int, a), mask)"
        lines.append(
            f"static inline __device__ {kind} __shfl_xor({kind} a, int mask)"
            f" {{ return __builtin_bit_cast({kind}, {word}); }}"
        )
    for kind in ("long long", "unsigned long long", "double"):
        lines += [
            f"static inline __device__ {kind} __shfl_xor({kind} a, int mask) {{",
            "  TwoWords w = __builtin_bit_cast(TwoWords, a);",
            "  w = {other_word(w.low, mask), other_word(w.high, mask)};",
            f"  return __builtin_bit_cast({kind}, w);",
            "}",
        ]
    return "\n".join(lines)


HIP = f"""
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(n) __attribute__((amdgpu_flat_work_group_size(n, n)))
#define __syncthreads() __builtin_amdgcn_s_barrier()
struct Block {{
  __declspec(property(get = gx)) unsigned x;
  __declspec(property(get = gy)) unsigned y;
  __declspec(property(get = gz)) unsigned z;
  __device__ unsigned gx() const {{ return __builtin_amdgcn_workgroup_id_x(); }}
  __device__ unsigned gy() const {{ return __builtin_amdgcn_workgroup_id_y(); }}
  __device__ unsigned gz() const {{ return __builtin_amdgcn_workgroup_id_z(); }}
}};
struct Item {{
  __declspec(property(get = gx)) unsigned x;
  __declspec(property(get = gy)) unsigned y;
  __declspec(property(get = gz)) unsigned z;
  __device__ unsigned gx() const {{ return __builtin_amdgcn_workitem_id_x(); }}
  __device__ unsigned gy() const {{ return __builtin_amdgcn_workitem_id_y(); }}
  __device__ unsigned gz() const {{ return __builtin_amdgcn_workitem_id_z(); }}
}};
static constexpr __device__ Block blockIdx;
static constexpr __device__ Item threadIdx;
{_shuffles()}
{_vectors(_HIP_TYPES)}
{_makers()}
{_bits()}
{_math()}
"""
_LETTERS = "xyzw"


def _metal_vectors() -> str:
    """Vectors with constructors and operators, as Metal has them."""
    lines = []
    for size in _SIZES:
        letters = _LETTERS[:size]
        fields = ", ".join(letters)
        arguments = ", ".join(f"T {x}_" for x in letters)
        own = ", ".join(f"{x}({x}_)" for x in letters)
        same = ", ".join(f"{x}(a)" for x in letters)
        lines.append(f"""
template <typename T> struct vec{size} {{
  T {fields};
  vec{size}() = default;
  vec{size}(T a) : {same} {{}}
  vec{size}({arguments}) : {own} {{}}""")
        for sign in "+-*/":
            lanes = ", ".join(f"a.{x} {sign} b.{x}" for x in letters)
            head = f"friend vec{size} operator{sign}(vec{size} a, vec{size} b)"
            lines.append(f"  {head} {{ return vec{size}({lanes}); }}")
            update = f"vec{size} &operator{sign}=(vec{size} b)"
            lines.append(f"  {update} {{ return *this = *this {sign} b; }}")
        minus = ", ".join(f"-{x}" for x in letters)
        lines.append(f"  vec{size} operator-() const {{ return vec{size}({minus}); }}")
        lines.append("};")
        for name, kind in _METAL_TYPES.items():
            lines.append(
                f"typedef vec{size}<{kind}> {name}{size}, packed_{name}{size};"
            )
    return "\n".join(lines)


METAL = f"""
#define kernel
#define device
#define threadgroup
#define thread
#define constant const
#define NAN __builtin_nanf("")
#define INFINITY __builtin_inff()
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef _Float16 half;
{_metal_vectors()}
namespace metal {{
enum class mem_flags {{ mem_threadgroup }};
inline void threadgroup_barrier(mem_flags) {{}}
template <typename T, typename S> T as_type(S a) {{ return __builtin_bit_cast(T, a); }}
template <typename T> T select(T a, T b, bool c) {{ return c ? b : a; }}
template <typename T> T min(T a, T b) {{ return a < b ? a : b; }}
template <typename T> T max(T a, T b) {{ return a > b ? a : b; }}
template <typename T> T simd_shuffle_xor(T a, ushort mask) {{
  static_assert(sizeof(T) < 8 && !__is_same(T, bool), "no such shuffle");
  return a;
}}
template <typename T> T exp2(T a) {{ return a; }}
template <typename T> T log2(T a) {{ return a; }}
template <typename T> T sin(T a) {{ return a; }}
template <typename T> T cos(T a) {{ return a; }}
template <typename T> T sqrt(T a) {{ return a; }}
template <typename T> T trunc(T a) {{ return a; }}
template <typename T> T fmod(T a, T b) {{ return a; }}
template <typename T> struct matrix8x8 {{
  T elements[2];
  T *thread_elements() {{ return elements; }}
}};
typedef matrix8x8<float> simdgroup_float8x8;
typedef matrix8x8<half> simdgroup_half8x8;
template <typename T, typename S>
void simdgroup_multiply_accumulate(
    matrix8x8<T> &d, matrix8x8<S> a, matrix8x8<S> b, matrix8x8<T> c) {{ d = c; }}
}}
"""
