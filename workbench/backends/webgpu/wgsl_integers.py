"""Integers that WGSL lacks: of 64 bits, as two words of 32 bits, the lower one first; and of less
than 32 bits, packed in words.

A value of 64 bits is a `vec2<u32>`, in memory as well. The function that is called decides whether
its bits are a signed number. Source: Knuth, The Art of Computer Programming 2, section 4.3.1: the
product by halves of words, the division bit by bit.

Sections: Integers of 64 bits, which WGSL lacks; Elements of less than 32 bits, packed in WGSL's
words of 32 bits.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from workbench.backends.program.text import ATOM, EQUAL, UNARY, Expression, call, paren
from workbench.base.dtypes import DType
from workbench.ir.node.ops import Ops

# --------------------------------------------------------------------------------------------------
# Integers of 64 bits, which WGSL lacks.

LONG_TYPE = "vec2<u32>"
"""The type of a value of 64 bits."""
_MASK = (1 << 32) - 1
_FUNCTIONS = """\
fn add_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let low: u32 = a.x + b.x;
  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn neg_64(a: vec2<u32>) -> vec2<u32> {
  return add_64(~a, vec2<u32>(1u, 0u));
}

fn abs_64(a: vec2<u32>) -> vec2<u32> {
  return select(a, neg_64(a), bitcast<i32>(a.y) < 0);
}

fn mul_64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let c: vec2<u32> = vec2<u32>(a.x & 0xffffu, a.x >> 16u);
  let d: vec2<u32> = vec2<u32>(b.x & 0xffffu, b.x >> 16u);
  let middle: u32 = c.y * d.x + ((c.x * d.x) >> 16u);
  let other: u32 = c.x * d.y + (middle & 0xffffu);
  let high: u32 = c.y * d.y + (middle >> 16u) + (other >> 16u);
  return vec2<u32>(a.x * b.x, high + a.x * b.y + a.y * b.x);
}

fn less_uint64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return select(a.y < b.y, a.x < b.x, a.y == b.y);
}

fn less_int64(a: vec2<u32>, b: vec2<u32>) -> bool {
  return select(bitcast<i32>(a.y) < bitcast<i32>(b.y), a.x < b.x, a.y == b.y);
}

fn max_uint64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(a, b, less_uint64(a, b));
}

fn min_uint64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(a, b, less_uint64(b, a));
}

fn max_int64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(a, b, less_int64(a, b));
}

fn min_int64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return select(a, b, less_int64(b, a));
}

fn shl_64(a: vec2<u32>, n: u32) -> vec2<u32> {
  if (n >= 32u) { return vec2<u32>(0u, a.x << (n - 32u)); }
  return vec2<u32>(a.x << n, (a.y << n) | ((a.x >> 1u) >> (31u - n)));
}

fn shr_uint64(a: vec2<u32>, n: u32) -> vec2<u32> {
  if (n >= 32u) { return vec2<u32>(a.y >> (n - 32u), 0u); }
  return vec2<u32>((a.x >> n) | ((a.y << 1u) << (31u - n)), a.y >> n);
}

fn shr_int64(a: vec2<u32>, n: u32) -> vec2<u32> {
  let flip: vec2<u32> = vec2<u32>(u32(bitcast<i32>(a.y) >> 31u));
  return shr_uint64(a ^ flip, n) ^ flip;
}

fn divide_64(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
  if (a.y == 0u && b.y == 0u) { return vec4<u32>(a.x / b.x, 0u, a.x % b.x, 0u); }
  var value: vec2<u32> = a;
  var rest: vec2<u32> = vec2<u32>(0u, 0u);
  for (var i: u32 = 0u; i < 64u; i++) {
    let is_more: bool = rest.y >= 0x80000000u;
    rest = shl_64(rest, 1u) | vec2<u32>(value.y >> 31u, 0u);
    value = shl_64(value, 1u);
    if (is_more || !less_uint64(rest, b)) {
      rest = add_64(rest, neg_64(b));
      value.x |= 1u;
    }
  }
  return vec4<u32>(value, rest);
}

fn div_uint64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return divide_64(a, b).xy;
}

fn mod_uint64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  return divide_64(a, b).zw;
}

fn div_int64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let value: vec2<u32> = divide_64(abs_64(a), abs_64(b)).xy;
  return select(value, neg_64(value), bitcast<i32>(a.y ^ b.y) < 0);
}

fn mod_int64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
  let rest: vec2<u32> = divide_64(abs_64(a), abs_64(b)).zw;
  return select(rest, neg_64(rest), bitcast<i32>(a.y) < 0);
}

fn words_of_int32(a: i32) -> vec2<u32> {
  return vec2<u32>(u32(a), u32(a >> 31u));
}

fn words_of_float32(x: f32) -> vec2<u32> {
  let high: f32 = trunc(abs(x) * 2.3283064e-10f);
  let value: vec2<u32> = vec2<u32>(u32(abs(x) - high * 4294967296.0f), u32(high));
  return select(value, neg_64(value), x < 0.0f);
}

fn float32_of_uint64(a: vec2<u32>) -> f32 {
  let zeros: u32 = select(countLeadingZeros(a.y), 32u + countLeadingZeros(a.x), a.y == 0u);
  if (zeros >= 40u) { return f32(a.x); }
  let n: u32 = 40u - zeros;
  let whole: u32 = shr_uint64(a, n).x;
  let rest: vec2<u32> = add_64(a, neg_64(shl_64(vec2<u32>(whole, 0u), n)));
  let half: vec2<u32> = shl_64(vec2<u32>(1u, 0u), n - 1u);
  let is_up: bool = less_uint64(half, rest) || (all(half == rest) && (whole & 1u) != 0u);
  return f32(whole + select(0u, 1u, is_up)) * bitcast<f32>((127u + n) << 23u);
}

fn float32_of_int64(a: vec2<u32>) -> f32 {
  let size: f32 = float32_of_uint64(abs_64(a));
  return select(size, -size, bitcast<i32>(a.y) < 0);
}"""
_TEXTS: Mapping[str, str] = {text[3 : text.index("(")]: text for text in _FUNCTIONS.split("\n\n")}
NAMES = frozenset(_TEXTS)
"""The names of the functions."""
# fmt: off
_OF_WORDS: Mapping[Ops, str] = {
    Ops.ADD: "add_64", Ops.MUL: "mul_64", Ops.NEG: "neg_64", Ops.SHL: "shl_64",
}
_OF_NUMBERS: Mapping[Ops, str] = {
    Ops.CDIV: "div", Ops.CMOD: "mod", Ops.SHR: "shr", Ops.MAX: "max", Ops.MIN: "min",
}
# fmt: on


def has_words(dtype: DType) -> bool:
    """Whether a value of a scalar dtype is two words."""
    return dtype.kind in ("int", "uint") and dtype.bits == 64


def constant(value: int) -> Expression:
    """Return the words of an integer."""
    return call(LONG_TYPE, f"{value & _MASK}u", f"{value >> 32 & _MASK}u")


def operation(op: Ops, dtype: DType, arguments: Sequence[Expression]) -> Expression | None:
    """Return an operation on integers of 64 bits; None where the language has an operator."""
    words = [each for each, _ in arguments]
    if op in (Ops.CMPEQ, Ops.CMPNE):
        name, sign = ("all", "==") if op is Ops.CMPEQ else ("any", "!=")
        a, b = (paren(each, EQUAL + 1) for each in arguments)
        return call(name, f"{a} {sign} {b}")
    if op is Ops.CMPLT:
        return call(f"less_{dtype.name}", *words)
    if op is Ops.CMPLE:
        return f"!less_{dtype.name}({words[1]}, {words[0]})", UNARY
    if op in (Ops.SHL, Ops.SHR):
        words[1] = low_word(arguments[1])[0]
    if op in _OF_WORDS:
        return call(_OF_WORDS[op], *words)
    return call(f"{_OF_NUMBERS[op]}_{dtype.name}", *words) if op in _OF_NUMBERS else None


def cast(value: Expression, source: DType, dtype: DType) -> Expression:
    """Return a number as an integer of two words, or an integer of two words as a float."""
    if not has_words(dtype):
        return call(f"float32_of_{source.name}", value[0])
    if has_words(source):
        return value
    if source.is_bool:
        return call(LONG_TYPE, f"u32({value[0]})", "0u")
    if source.kind == "uint":
        return call(LONG_TYPE, value[0], "0u")
    return call(f"words_of_{'float32' if source.is_float else 'int32'}", value[0])


def low_word(value: Expression) -> Expression:
    """Return the lower word of a value, a u32."""
    return f"{paren(value, ATOM)}.x", ATOM


def calls(text: str) -> set[str]:
    """Return the names of the functions that a text calls."""
    return {name for name in _TEXTS if f"{name}(" in text}


def functions(names: Iterable[str]) -> list[str]:
    """Return the texts of functions, and of the functions that they call."""
    needed = set[str]()
    pending = {*names}
    while pending:
        needed |= pending
        pending = {each for name in pending for each in calls(_TEXTS[name])} - needed
    return [text for name, text in _TEXTS.items() if name in needed]


# --------------------------------------------------------------------------------------------------
# Elements of less than 32 bits, packed in WGSL's words of 32 bits.
#
#     fn load_p1(i: i32) -> u32 { return extractBits(p1[i >> 2u], u32(i & 3) << 3u, 8u); }
#     fn store_p0(i: i32, value: u32) {
#       let at: u32 = u32(i & 3) << 3u;
#       atomicAnd(&p0[i >> 2u], ~(255u << at));
#       atomicOr(&p0[i >> 2u], (value & 255u) << at);
#     }
#
# Several work-items may write elements of one word: each changes only the bits of its own element,
# in two atomic steps. Whole words are stored at once.

WORD_BITS = 32
_PARTS = "xyzw"


def is_packed(dtype: DType) -> bool:
    """Whether several elements share a word of memory; a bool is a byte there."""
    return dtype.bits < WORD_BITS


def fills_words(dtype: DType) -> bool:
    """Whether a vector has all elements of its words."""
    return dtype.count > 1 and dtype.itemsize % (WORD_BITS // 8) == 0


def word_count(dtype: DType, size: int) -> int:
    """Return the number of words of `size` elements."""
    return -(-size * dtype.itemsize * 8 // WORD_BITS)


class _Access(NamedTuple):
    name: str
    dtype: DType
    kind: str


class PackedMemory:
    """The functions that load and store elements of arrays, each once."""

    def __init__(self) -> None:
        self._loads: dict[_Access, None] = {}
        self._stores: dict[_Access, None] = {}

    def load(self, name: str, index: str, dtype: DType, kind: str) -> str:
        """Return the call that loads a value of `dtype`; `kind` is its type in WGSL."""
        access = _Access(name, dtype, kind)
        self._loads[access] = None
        return f"{_function_name('load', access)}({index})"

    def store(self, name: str, index: str, dtype: DType, kind: str, value: str) -> str:
        """Return the statement that stores a value of `dtype`."""
        access = _Access(name, dtype, kind)
        self._stores[access] = None
        return f"{_function_name('store', access)}({index}, {value});"

    def functions(self, atomic: Container[str]) -> list[str]:
        """Return the texts of the functions; `atomic` has the names of arrays of atomic words."""
        return [
            *(_load(access, access.name in atomic) for access in self._loads),
            *(_store(access) for access in self._stores),
        ]


def _function_name(what: str, access: _Access) -> str:
    count = access.dtype.count
    return f"{what}{count if count > 1 else ''}_{access.name}"


def _word(access: _Access, more: int = 0) -> str:
    """Return the word of element `i`, or the one `more` words after it."""
    index = f"i >> {(WORD_BITS // _bits(access)).bit_length() - 1}u"
    return f"{access.name}[{f'({index}) + {more}' if more else index}]"


def _bits(access: _Access) -> int:
    return access.dtype.scalar.itemsize * 8


def _first_bit(access: _Access) -> str:
    """Return the number of the first bit of element `i` in its word."""
    bits = _bits(access)
    return f"u32(i & {WORD_BITS // bits - 1}) << {bits.bit_length() - 1}u"


def _load(access: _Access, is_atomic: bool) -> str:
    dtype, bits = access.dtype, _bits(access)

    def part(word: int, at: str) -> str:
        place = _word(access, word)
        text = f"atomicLoad(&{place})" if is_atomic else place
        if dtype.kind == "int":
            text = f"bitcast<i32>({text})"
        return f"extractBits({text}, {at}, {bits}u)"

    value = part(0, _first_bit(access))
    if dtype.count > 1:
        starts = [divmod(lane * bits, WORD_BITS) for lane in range(dtype.count)]
        lanes = ", ".join(part(word, f"{at}u") for word, at in starts)
        value = f"{access.kind}({lanes})"
    head = f"fn {_function_name('load', access)}(i: i32) -> {access.kind}"
    return f"{head} {{ return {value}; }}"


def _masked(access: _Access, value: str) -> str:
    """Return the bits of an element in a word whose other bits are 0."""
    word = f"u32({value})" if access.dtype.kind == "int" else value
    return f"({word} & {(1 << _bits(access)) - 1}u)"


def _store(access: _Access) -> str:
    dtype, bits = access.dtype, _bits(access)
    mask, place = f"{(1 << bits) - 1}u", _word(access)
    head = f"fn {_function_name('store', access)}(i: i32, value: {access.kind}) {{"
    if dtype.count == 1:
        lines = [
            f"let at: u32 = {_first_bit(access)};",
            f"atomicAnd(&{place}, ~({mask} << at));",
            f"atomicOr(&{place}, {_masked(access, 'value')} << at);",
        ]
        return "\n  ".join([head, *lines]) + "\n}"
    share = WORD_BITS // bits
    lines = []
    for first in range(0, dtype.count, share):
        parts = " | ".join(
            f"({_masked(access, f'value.{_PARTS[first + i]}')} << {i * bits}u)"
            for i in range(share)
        )
        lines.append(f"atomicStore(&{_word(access, first // share)}, {parts});")
    return "\n  ".join([head, *lines]) + "\n}"
