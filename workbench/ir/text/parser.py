"""The parser of IR text: it makes the same nodes again from the text that `printer.py` writes. No
code is evaluated.

A line is read from left to right; its arg is parsed as a Python expression, of which only literals,
tuples and the names of the IR's own enums and tuples are known. The text may be one that a user
types: the work grows with its length, and every fault has its line and its column.
"""

from __future__ import annotations

import ast
import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple

from workbench.base.dtypes import Const, DType, dtypes
from workbench.base.errors import ParseError, cut
from workbench.base.tensor_cores import Fragment, TensorCore
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import KernelInfo, Storage, UOp
from workbench.ir.node.views import WrittenCode
from workbench.ir.text.printer import RESERVED

MOST_LANES = 1 << 14
"""Most lanes of a dtype: a program has code for each of them."""
_HEAD = re.compile(
    r"(?P<let>let\s+)?(?:(?P<name>[A-Za-z_]\w*)\s*=\s*)?(?P<op>\w+)(?P<dot>\.(?P<dtype>\w*))?",
    re.ASCII,
)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_EXAMPLE = "v1 = ADD.float32 v0, 2.0"
_MOST_SEARCHED = 2000
"""Most names among which the one that a user meant is looked for."""
_MOST_BITS = 14_000
"""Most bits of an integer: Python prints no integer of more than 4,300 digits."""
_WORDS: dict[str, Const] = {"True": True, "False": False, "inf": math.inf, "nan": math.nan}
_TUPLES: dict[str, Any] = {
    "KernelInfo": KernelInfo,
    "Storage": Storage,
    "WrittenCode": WrittenCode,
    "TensorCore": TensorCore,
    "Fragment": Fragment,
}
_DTYPES = {d.name: d for d in vars(dtypes).values() if isinstance(d, DType)}
_TABLES: dict[str, Mapping[str, Any]] = {
    "Ops": Ops.__members__,
    "AxisType": AxisType.__members__,
    "dtypes": _DTYPES,
}


class Place(NamedTuple):
    """A place in a text, from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Listing:
    """IR text that was read. `ir` is the graph, or the steps of a linear program; `steps` has the
    place of each step of a program, `nodes` that of each node that a line makes."""

    ir: UOp | tuple[UOp, ...]
    steps: tuple[Place, ...]
    nodes: Mapping[UOp, Place]


def parse(text: str) -> UOp | tuple[UOp, ...]:
    """Return the graph, or the linear program, that `text` describes. No code is evaluated.

    Errors: ParseError with the line, the column and what was expected there.
    """
    return read(text).ir


def read(text: str) -> Listing:
    """Return what `text` describes, with its lines. Errors: as `parse`."""
    values: dict[str, UOp] = {}
    nodes: dict[UOp, Place] = {}
    steps: list[UOp] = []
    places: list[Place] = []
    linear = False
    for number, raw in enumerate(text.split("\n"), 1):
        words = raw.strip()
        if not words or words.startswith("#"):
            continue
        if words == "LINEAR" and not steps and not values:
            linear = True
            continue
        line = _Line(number, words, raw.index(words[0]))
        node, is_step, at = line.read(values)
        place = line.place(at)
        nodes.setdefault(node, place)
        if is_step or not linear:
            steps.append(node)
            places.append(place)
    if linear:
        return Listing(tuple(steps), tuple(places), nodes)
    if not steps:
        raise ParseError("the text holds no node", f"expected lines like {_EXAMPLE}")
    return Listing(steps[-1], (), nodes)


class _Line:
    """One line of text, with its number and its indentation for messages. Places are offsets in
    `text`."""

    def __init__(self, number: int, text: str, indent: int):
        self.number, self.text, self.indent = number, text, indent

    def fail(self, at: int, problem: str, expected: str, hint: str = "") -> ParseError:
        problem, where = cut(problem, 200), cut(self.text, 400)
        return ParseError(problem, f"expected {expected}", hint, where).placed(*self.place(at))

    def place(self, at: int) -> Place:
        """Return the place of an offset."""
        return Place(self.number, self.indent + at + 1)

    def read(self, values: dict[str, UOp]) -> tuple[UOp, bool, int]:
        """Return the line's node, whether it is a step, and the place of its op; name the node in
        `values`."""
        if self.text in values:
            return values[self.text], True, 0
        match = _HEAD.match(self.text)
        if match is None:
            raise self.fail(0, "not a node", "name = OP.dtype sources {arg}")
        op = Ops.__members__.get(match["op"])
        if op is None:
            raise self._no_op(match["op"], match.start("op"), values)
        dtype = dtypes.void
        if match["dot"] is not None:
            dtype = self.dtype(match["dtype"], match.start("dtype"))
        name = match["name"]
        if name is not None and (name in values or name in RESERVED):
            expected = "a name of its own for each value"
            raise self.fail(match.start("name"), f"the name {name} is taken", expected)
        begin, end = match.end(), self._end_of_sources(match.end())
        src = tuple(
            self.operand(words, at, dtype, values) for words, at in self._sources(begin, end)
        )
        node = self.node(op, dtype, src, end, match.start("op"))
        if name is not None:
            values[name] = node
        return node, match["let"] is None, match.start("op")

    def _no_op(self, word: str, at: int, values: Mapping[str, UOp]) -> ParseError:
        problem = f"{cut(word, 60)} is neither an op nor a value named above"
        known = values if word == self.text else Ops.__members__
        return self.fail(at, problem, "an op", _near(word, known))

    def _end_of_sources(self, begin: int) -> int:
        """Return the place of the brace of the arg; without an arg the end of the line."""
        brace = self.text.find("{", begin)
        end = len(self.text) if brace < 0 else brace
        if end > begin and not self.text[begin].isspace():
            problem = f"{cut(self.text[begin:end], 40)!r} after the op"
            raise self.fail(begin, problem, "a space, and the sources")
        if brace >= 0 and not self.text.endswith("}"):
            raise self.fail(brace, "the brace is not closed", "} at the end of the line")
        return end

    def _sources(self, begin: int, end: int) -> Iterator[tuple[str, int]]:
        """Yield each source as text, with its place."""
        whole = self.text[begin:end]
        if not whole.strip():
            return
        at = begin
        for part in whole.split(","):
            words = part.strip()
            yield words, at + (part.index(words[0]) if words else 0)
            at += len(part) + 1

    def node(self, op: Ops, dtype: DType, src: tuple[UOp, ...], end: int, at: int) -> UOp:
        has_arg = end < len(self.text)
        arg = self.arg(self.text[end + 1 : -1], end + 1, op) if has_arg else None
        if op is Ops.CONST and (not _is_number(arg) or not dtype.bits):
            raise self.fail(at, "a constant without a value", "CONST.dtype {number}")
        if op is Ops.LANES and not (
            isinstance(arg, tuple) and arg and all(map(_is_number, arg)) and dtype.bits
        ):
            raise self.fail(at, "lanes without values", "LANES.dtype {number, ..}")
        if op is Ops.RANGE and (len(src) != 1 or not isinstance(arg, tuple) or len(arg) != 2):
            raise self.fail(at, "not a range", 'RANGE.index size {"name", KIND}')
        try:
            return UOp(op, dtype, src, arg)
        except (OverflowError, TypeError, ValueError):  # a number that no dtype holds
            raise self.fail(end, f"{op.name} has no such arg", f"one that {dtype} holds") from None

    def dtype(self, words: str, at: int) -> DType:
        scalar, count = words, "1"
        if words not in _DTYPES:
            scalar, _, count = words.rpartition("x")
        if scalar not in _DTYPES or not (count.isascii() and count.isdecimal()) or len(count) > 9:
            expected = f"{', '.join(_DTYPES)}, or like float32x8"
            raise self.fail(at, f"no dtype {words}", expected, _near(words, _DTYPES))
        if not 1 <= int(count) <= MOST_LANES:
            problem = f"no dtype has {int(count):,} lanes"
            raise self.fail(at, problem, f"1 to {MOST_LANES:,} lanes", f"{scalar}x8")
        return _DTYPES[scalar].vec(int(count))

    def operand(self, words: str, at: int, dtype: DType, values: Mapping[str, UOp]) -> UOp:
        if words in values:
            return values[words]
        if _NAME.fullmatch(words) and words not in _WORDS:
            expected = "the name of a line above, or a number"
            raise self.fail(at, f"no value {words}", expected, _near(words, values))
        value, colon, suffix = words.partition(":")
        dtype = self.dtype(suffix.strip(), at + len(value) + 1) if colon else dtype
        return UOp.const(dtype, self.constant(value.strip(), at, dtype))

    def constant(self, words: str, at: int, dtype: DType) -> Const:
        try:
            value = _WORDS[words] if words in _WORDS else self.arg(words, at, Ops.CONST)
            if dtype.is_float and isinstance(value, (int, float)) and not isinstance(value, bool):
                return float(value)
            if type(value) is (bool if dtype.is_bool else int) and dtype.bits:
                if dtype.const(value) == value:
                    return bool(value) if dtype.is_bool else int(value)
        except OverflowError:
            pass
        expected = "the name of a line above, or a number that the dtype holds"
        raise self.fail(at, f"{cut(words, 60)!r} is not a {dtype}", expected)

    def arg(self, words: str, at: int, op: Ops) -> Any:
        """Return the value of an arg that begins at `at`."""
        try:
            return self.value(ast.parse(f"({words})", mode="eval").body, op, at - 1)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            if isinstance(error, ParseError):
                raise
            offset = getattr(error, "offset", None) or 1
            place = at + min(max(0, offset - 2), len(words))
            problem = f"cannot read the arg {cut(words, 100)!r}"
            raise self.fail(place, problem, "values and tuples of them") from None

    def value(self, tree: ast.expr, op: Ops, at: int) -> Any:
        """Return the value that `tree` spells; only literals and the IR's own names are known. `at`
        is the place of the text that was parsed."""
        match tree:
            case ast.Constant(value=int() as number) if number.bit_length() > _MOST_BITS:
                raise self.fail(at + tree.col_offset, "an integer of too many digits", "a number")
            case ast.Constant(value=None | bool() | int() | float() | str()):
                return tree.value
            case ast.Tuple():
                return tuple([self.value(part, op, at) for part in tree.elts])
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
                return -self.value(tree.operand, op, at)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id="inf")):
                return -math.inf
            case ast.Name(id="inf" | "nan" as word):
                return _WORDS[word]
            case ast.Name():
                table = "AxisType" if op is Ops.RANGE else "Ops"
                return self.member(table, tree.id, at + tree.col_offset)
            case ast.Attribute(value=ast.Name(id=table)):
                return self.member(table, tree.attr, at + tree.col_offset)
            case ast.Call(keywords=[]):
                return self.call(tree, [self.value(part, op, at) for part in tree.args], op, at)
        raise self._unread(tree, at, "a number, string, name or tuple")

    def member(self, table: str, name: str, at: int) -> Any:
        members = _TABLES.get(table, {})
        if name not in members:
            expected = "one of " + ", ".join(members or _TABLES)
            raise self.fail(at, f"no {table} {name}", expected, _near(name, members))
        return members[name]

    def call(self, tree: ast.Call, args: list[Any], op: Ops, at: int) -> Any:
        match tree.func:
            case ast.Name(id="nan") if len(args) == 1 and _is_nan(args[0]):
                return struct.unpack(">d", args[0].to_bytes(8, "big"))[0]
            case ast.Name(id=name) if name in _TUPLES:
                kind = _TUPLES[name]
                least = len(kind._fields) - len(kind._field_defaults)
                if least <= len(args) <= len(kind._fields):
                    return kind(*args)
                problem, fields = f"{name} with {len(args)} parts", ", ".join(kind._fields)
                raise self.fail(at + tree.col_offset, problem, fields)
            case ast.Attribute(value=value, attr="vec") if len(args) == 1:
                scalar = self.value(value, op, at)
                if isinstance(scalar, DType) and type(args[0]) is int:
                    if 0 < args[0] <= MOST_LANES:
                        return scalar.vec(args[0])
        raise self._unread(tree, at, "KernelInfo(..), Storage(..)")

    def _unread(self, tree: ast.expr, at: int, expected: str) -> ParseError:
        problem = f"cannot read {cut(ast.unparse(tree), 100)!r}"
        return self.fail(at + tree.col_offset, problem, expected)


def _near(word: str, names: Iterable[str]) -> str:
    """Return the name that a user may have meant by `word`; "" if none is like it."""
    among = {name.lower(): name for name in [*names][-_MOST_SEARCHED:]}
    return "".join(among[near] for near in get_close_matches(word[:60].lower(), among, 1))


def _is_number(value: object) -> bool:
    return isinstance(value, (bool, int, float))


def _is_nan(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 64
