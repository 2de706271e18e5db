"""What a compiler of C++ must know of Metal, which has no compiler outside of macOS: clang reads
its grammar, with its words declared."""

from __future__ import annotations

_SIZES = (2, 3, 4)
_METAL_TYPES = {
    "char": "signed char", "uchar": "unsigned char", "short": "short",
    "ushort": "unsigned short", "int": "int", "uint": "unsigned", "long": "long",
    "ulong": "unsigned long", "float": "float", "half": "_Float16", "bool": "bool",
}  # fmt: skip
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
            lines.append(f"typedef vec{size}<{kind}> {name}{size}, packed_{name}{size};")
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
template <typename T> T fma(T a, T b, T c) {{ return a; }}
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
