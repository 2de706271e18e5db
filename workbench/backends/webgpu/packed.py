"""Elements of less than 32 bits, packed in WGSL's words of 32 bits.

    fn load_p1(i: i32) -> u32 { return extractBits(p1[i >> 2u], u32(i & 3) << 3u, 8u); }
    fn store_p0(i: i32, value: u32) {
      let at: u32 = u32(i & 3) << 3u;
      atomicAnd(&p0[i >> 2u], ~(255u << at));
      atomicOr(&p0[i >> 2u], (value & 255u) << at);
    }

Several work-items may write elements of one word. Each changes the bits of its own element, in two
steps between which those of others stay as they are; whole words are stored at once.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from workbench.base.dtypes import DType

WORD_BITS = 32
_PARTS = "xyzw"


def is_packed(dtype: DType) -> bool:
    """Whether several elements share a word of memory; a bool is a byte there."""
    return dtype.bits < WORD_BITS


def fills_words(dtype: DType) -> bool:
    """Whether a vector has all elements of its words."""
    return dtype.count > 1 and dtype.itemsize % (WORD_BITS // 8) == 0


def word_count(dtype: DType, size: int) -> int:
    """Return the words of `size` elements."""
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
        """Return the call that loads `dtype`, of which `kind` is the language's type."""
        access = _Access(name, dtype, kind)
        self._loads[access] = None
        return f"{_function('load', access)}({index})"

    def store(self, name: str, index: str, dtype: DType, kind: str, value: str) -> str:
        """Return the statement that stores a value of `dtype`."""
        access = _Access(name, dtype, kind)
        self._stores[access] = None
        return f"{_function('store', access)}({index}, {value});"

    def functions(self, atomic: Container[str]) -> list[str]:
        """Return the functions; `atomic` has the names of arrays that are written."""
        return [
            *(_load(access, access.name in atomic) for access in self._loads),
            *(_store(access) for access in self._stores),
        ]


def _function(what: str, access: _Access) -> str:
    count = access.dtype.count
    return f"{what}{count if count > 1 else ''}_{access.name}"


def _place(access: _Access, more: int = 0) -> str:
    """Return the place of the word of element `i`, or of one after it."""
    index = f"i >> {(WORD_BITS // _bits(access)).bit_length() - 1}u"
    return f"{access.name}[{f'({index}) + {more}' if more else index}]"


def _bits(access: _Access) -> int:
    return access.dtype.scalar.itemsize * 8


def _at(access: _Access) -> str:
    """Return where the bits of element `i` begin in its word."""
    bits = _bits(access)
    return f"u32(i & {WORD_BITS // bits - 1}) << {bits.bit_length() - 1}u"


def _load(access: _Access, is_atomic: bool) -> str:
    dtype, bits = access.dtype, _bits(access)

    def part(word: int, at: str) -> str:
        place = _place(access, word)
        text = f"atomicLoad(&{place})" if is_atomic else place
        if dtype.kind == "int":
            text = f"bitcast<i32>({text})"
        return f"extractBits({text}, {at}, {bits}u)"

    value = part(0, _at(access))
    if dtype.count > 1:
        starts = [divmod(lane * bits, WORD_BITS) for lane in range(dtype.count)]
        lanes = ", ".join(part(word, f"{at}u") for word, at in starts)
        value = f"{access.kind}({lanes})"
    head = f"fn {_function('load', access)}(i: i32) -> {access.kind}"
    return f"{head} {{ return {value}; }}"


def _masked(access: _Access, value: str) -> str:
    """Return the bits of an element of which all others are 0."""
    word = f"u32({value})" if access.dtype.kind == "int" else value
    return f"({word} & {(1 << _bits(access)) - 1}u)"


def _store(access: _Access) -> str:
    dtype, bits = access.dtype, _bits(access)
    mask, place = f"{(1 << bits) - 1}u", _place(access)
    head = f"fn {_function('store', access)}(i: i32, value: {access.kind}) {{"
    if dtype.count == 1:
        lines = [
            f"let at: u32 = {_at(access)};",
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
        lines.append(f"atomicStore(&{_place(access, first // share)}, {parts});")
    return "\n  ".join([head, *lines]) + "\n}"
