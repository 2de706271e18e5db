"""The parser of IR text: it makes the same nodes again from the text that `printer.py` writes. No
code is evaluated.

A line is matched as a whole; its arg is parsed as a Python expression, of which only literals,
tuples and the names of the IR's own enums and tuples are known.
"""

from __future__ import annotations

import ast
import math
import re
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

from workbench.base.dtypes import Const, DType, dtypes
from workbench.base.errors import ParseError, cut
from workbench.base.tensor_cores import Fragment, TensorCore
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import KernelInfo, Storage, UOp
from workbench.ir.node.views import WrittenCode
from workbench.ir.text.printer import RESERVED

_NODE = re.compile(
    r"(?P<let>let\s+)?(?:(?P<name>[A-Za-z_]\w*)\s*=\s*)?(?P<op>\w+)(?:\.(?P<dtype>\w+))?"
    r"(?:\s+(?P<src>[^{]*?))?\s*(?:\{(?P<arg>.*)\})?",
    re.ASCII,
)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
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


def parse(text: str) -> UOp | tuple[UOp, ...]:
    """Return the graph, or the linear program, that `text` describes. No code is evaluated.

    Errors: ParseError with the line number and what was expected there.
    """
    values: dict[str, UOp] = {}
    steps: list[UOp] = []
    linear = False
    for number, raw in enumerate(text.split("\n"), 1):
        words = raw.strip()
        if not words or words.startswith("#"):
            continue
        if words == "LINEAR" and not steps and not values:
            linear = True
            continue
        line = _Line(number, words)
        node, is_step = line.read(values)
        if is_step or not linear:
            steps.append(node)
    if linear:
        return tuple(steps)
    if not steps:
        raise ParseError("the text holds no node", "expected lines like v1 = ADD.float32 v0, 2.0")
    return steps[-1]


class _Line(NamedTuple):
    """One line of text, with its number for messages."""

    number: int
    text: str

    def fail(self, problem: str, expected: str) -> ParseError:
        what = f"line {self.number}: {cut(problem, 200)}"
        error = ParseError(what, f"expected {expected}", where=cut(self.text, 400))
        error.line = self.number
        return error

    def read(self, values: dict[str, UOp]) -> tuple[UOp, bool]:
        """Return the line's node and whether it is a step; name it in `values`."""
        if self.text in values:
            return values[self.text], True
        match = _NODE.fullmatch(self.text)
        if match is None:
            raise self.fail("not a node", "name = OP.dtype sources {arg}")
        op = Ops.__members__.get(match["op"])
        if op is None:
            raise self.fail(f"{match['op']} is neither an op nor a value named above", "an op")
        dtype = dtypes.void if match["dtype"] is None else self.dtype(match["dtype"])
        words = [w.strip() for w in match["src"].split(",")] if match["src"] else []
        src = tuple([self.operand(w, dtype, values) for w in words])
        node = self.node(op, dtype, src, match["arg"])
        name = match["name"]
        if name is not None and (name in values or name in RESERVED):
            raise self.fail(f"the name {name} is taken", "a name of its own for each value")
        if name is not None:
            values[name] = node
        return node, match["let"] is None

    def node(self, op: Ops, dtype: DType, src: tuple[UOp, ...], words: str | None) -> UOp:
        arg = None if words is None else self.arg(words, op)
        if op is Ops.CONST and (not _is_number(arg) or not dtype.bits):
            raise self.fail("a constant without a value", "CONST.dtype {number}")
        if op is Ops.LANES and not (isinstance(arg, tuple) and all(map(_is_number, arg))):
            raise self.fail("lanes without values", "LANES.dtype {number, ..}")
        if op is Ops.RANGE and (len(src) != 1 or not isinstance(arg, tuple) or len(arg) != 2):
            raise self.fail("not a range", 'RANGE.index size {"name", KIND}')
        return UOp(op, dtype, src, arg)

    def dtype(self, words: str) -> DType:
        scalar, count = words, "1"
        if words not in _DTYPES:
            scalar, _, count = words.rpartition("x")
        if scalar not in _DTYPES or not count.isdecimal() or int(count) < 1:
            raise self.fail(f"no dtype {words}", f"{', '.join(_DTYPES)}, or like float32x8")
        return _DTYPES[scalar].vec(int(count))

    def operand(self, words: str, dtype: DType, values: dict[str, UOp]) -> UOp:
        if words in values:
            return values[words]
        if _NAME.fullmatch(words) and words not in _WORDS:
            raise self.fail(f"no value {words}", "the name of a line above, or a number")
        value, colon, suffix = words.partition(":")
        dtype = self.dtype(suffix.strip()) if colon else dtype
        return UOp.const(dtype, self.constant(value.strip(), dtype))

    def constant(self, words: str, dtype: DType) -> Const:
        try:
            value = _WORDS[words] if words in _WORDS else self.arg(words, Ops.CONST)
            if dtype.is_float and isinstance(value, (int, float)) and not isinstance(value, bool):
                return float(value)
            if type(value) is (bool if dtype.is_bool else int) and dtype.bits:
                if dtype.const(value) == value:
                    return bool(value) if dtype.is_bool else int(value)
        except OverflowError:
            pass
        raise self.fail(f"{words!r} is not a {dtype}", "a number that the dtype holds")

    def arg(self, words: str, op: Ops) -> Any:
        try:
            return self.value(ast.parse(f"({words})", mode="eval").body, op)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            if isinstance(error, ParseError):
                raise
            raise self.fail(f"cannot read the arg {words!r}", "values and tuples of them") from None

    def value(self, tree: ast.expr, op: Ops) -> Any:
        """Return the value that `tree` spells; only literals and the IR's own names are known."""
        match tree:
            case ast.Constant(value=None | bool() | int() | float() | str()):
                return tree.value
            case ast.Tuple():
                return tuple([self.value(part, op) for part in tree.elts])
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id="inf")):
                return -math.inf
            case ast.Name(id="inf" | "nan" as word):
                return _WORDS[word]
            case ast.Name():
                return self.member("AxisType" if op is Ops.RANGE else "Ops", tree.id)
            case ast.Attribute(value=ast.Name(id=table)):
                return self.member(table, tree.attr)
            case ast.Call(keywords=[]):
                return self.call(tree, [self.value(part, op) for part in tree.args], op)
        raise self.fail(f"cannot read {ast.unparse(tree)!r}", "a number, string, name or tuple")

    def member(self, table: str, name: str) -> Any:
        members = _TABLES.get(table, {})
        if name not in members:
            raise self.fail(f"no {table} {name}", "one of " + ", ".join(members or _TABLES))
        return members[name]

    def call(self, tree: ast.Call, args: list[Any], op: Ops) -> Any:
        match tree.func:
            case ast.Name(id="nan") if len(args) == 1 and _is_bits(args[0]):
                return struct.unpack(">d", args[0].to_bytes(8, "big"))[0]
            case ast.Name(id=name) if name in _TUPLES:
                kind = _TUPLES[name]
                least = len(kind._fields) - len(kind._field_defaults)
                if least <= len(args) <= len(kind._fields):
                    return kind(*args)
                raise self.fail(f"{name} with {len(args)} parts", ", ".join(kind._fields))
            case ast.Attribute(value=value, attr="vec") if len(args) == 1:
                scalar = self.value(value, op)
                if isinstance(scalar, DType) and type(args[0]) is int and args[0] > 0:
                    return scalar.vec(args[0])
        raise self.fail(f"cannot read {ast.unparse(tree)!r}", "KernelInfo(..), Storage(..)")


def _is_number(value: object) -> bool:
    return isinstance(value, (bool, int, float))


def _is_bits(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 64
