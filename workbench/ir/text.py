"""IR as text that parses back: one line per node, sources first.

    g0 = RANGE.index 512 {"g0", GLOBAL}
    p1 = PARAM.float32 {1, 512}
    v2 = INDEX.float32 p1, g0
    v3 = LOAD.float32 v2
    v4 = MUL.float32 v3, 2.0

A line is `name = OP.dtype sources {arg}`. The dtype void and the arg None are left out; a
constant stands where it is used, with its dtype behind a colon where that is not the line's
own (`512:index`). The last line is the root. A linear program starts with the line LINEAR;
its lines are its steps, except those with `let`, which only name what a step uses, and a
lone name is a step that has appeared before. `parse(to_text(x)) is x` at every level.
"""

from __future__ import annotations

import ast
import math
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from workbench.dtypes import Const, DType, dtypes
from workbench.errors import ParseError
from workbench.ir.axis import AxisType
from workbench.ir.ops import Ops
from workbench.ir.uop import KernelInfo, Storage, UOp

_TUPLES: dict[str, Any] = {"KernelInfo": KernelInfo, "Storage": Storage}
_RESERVED = {"inf", "nan", "True", "False", "let", "LINEAR", *Ops.__members__}
_LETTERS = {Ops.REDUCE: "s", Ops.BUFFER: "b"}
_PLAIN_NAN = struct.pack("<d", math.nan)


def to_text(ir: UOp | Sequence[UOp]) -> str:
    """Return the text of a graph, or of a linear program (a tuple of UOps)."""
    linear = not isinstance(ir, UOp)
    listed = _listing((ir,) if isinstance(ir, UOp) else ir)
    used = {s for node, _ in listed for s in node.src}
    names, lines = Names(), ["LINEAR"] if linear else []
    for node, is_step in listed:
        if node in names.given:
            lines.append(names.given[node])
            continue
        line = line_of(node, names.given)
        if node.dtype is not dtypes.void or node in used:
            line = f"{names.give(node)} = {line}"
        lines.append(line if is_step else f"let {line}" if linear else line)
    return "\n".join(lines)


def parse(text: str) -> UOp | tuple[UOp, ...]:
    """Return the graph, or the linear program, that `text` describes. No code is evaluated.

    Errors: ParseError with the number of the line and what was expected there.
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
        raise ParseError(
            "the text holds no node", "expected lines like v1 = ADD.float32 v0, 2.0"
        )
    return steps[-1]


class Names:
    """Names for nodes, each used once: ranges, parameters and storage keep their own."""

    def __init__(self) -> None:
        self.given: dict[UOp, str] = {}
        self._taken = set(_RESERVED)

    def give(self, node: UOp) -> str:
        """Return the name of `node`, choosing one the first time."""
        if node in self.given:
            return self.given[node]
        name = own_name(node)
        if not name.isidentifier() or not name.isascii() or name in self._taken:
            letter = _LETTERS.get(node.op, "v")
            count = len(self.given)
            while (name := f"{letter}{count}") in self._taken:
                count += 1
        self._taken.add(name)
        self.given[node] = name
        return name


def own_name(node: UOp) -> str:
    """Return the name a node brings along ("" for most): `g0`, `p1`, a stage's name."""
    if not isinstance(node.arg, tuple) or not node.arg:
        return ""
    if node.op is Ops.PARAM:
        return f"p{node.arg[0]}"
    named = node.op in (Ops.RANGE, Ops.VAR, Ops.STAGE, Ops.DEFINE)
    return str(node.arg[0]) if named else ""


def line_of(node: UOp, names: Mapping[UOp, str]) -> str:
    """Return `OP.dtype sources {arg}`; a source without a name shows as its op."""
    head = node.op.name + ("" if node.dtype is dtypes.void else f".{node.dtype}")
    sources = [_operand(s, node.dtype, names) for s in node.src]
    arg = "" if node.arg is None else f" {{{_arg_text(node.arg, node.op, top=True)}}}"
    return head + (f" {', '.join(sources)}" if sources else "") + arg


def brief(node: UOp) -> str:
    """Return one line that shows `node` and hints at its sources, for messages."""
    names = {s: own_name(s) or f"{s.op.name}(..)" for s in node.src if not s.is_const}
    try:
        return line_of(node, names)
    except TypeError:  # an arg of a type that no op has
        return repr(node)


def number_text(value: Const) -> str:
    """Return `value` so that it reads back bit by bit."""
    if (
        isinstance(value, float)
        and value != value
        and struct.pack("<d", value) != _PLAIN_NAN
    ):
        return f"nan({int.from_bytes(struct.pack('>d', value), 'big'):#x})"
    return repr(value)


def _listing(program: Iterable[UOp]) -> list[tuple[UOp, bool]]:
    """List (node, whether it is a step): what a step needs comes before it."""
    listed: list[tuple[UOp, bool]] = []
    done: set[UOp] = set()
    for step in program:
        below = step.toposort(lambda n: n not in done)
        listed.extend(
            [
                (n, False)
                for n in below
                if n is not step and n not in done and not n.is_const
            ]
        )
        listed.append((step, True))
        done.update(below)
    return listed


def _operand(source: UOp, dtype: DType, names: Mapping[UOp, str]) -> str:
    if source.is_const:
        suffix = "" if source.dtype is dtype else f":{source.dtype}"
        return number_text(source.arg) + suffix
    return names[source]


def _arg_text(arg: Any, op: Ops, top: bool = False) -> str:
    if isinstance(arg, (KernelInfo, Storage)):
        return f"{type(arg).__name__}({', '.join(_arg_text(a, op) for a in arg)})"
    if isinstance(arg, tuple):
        inner = ", ".join(_arg_text(a, op) for a in arg) + (
            "," if len(arg) == 1 else ""
        )
        return inner if top else f"({inner})"
    if isinstance(arg, Ops):
        return repr(arg) if op is Ops.RANGE else arg.name
    if isinstance(arg, AxisType):
        return arg.name if op is Ops.RANGE else repr(arg)
    if isinstance(arg, str):
        escaped = arg.encode("unicode_escape").decode().replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(arg, float):
        return number_text(arg)
    if arg is None or isinstance(arg, (bool, int, DType)):
        return repr(arg)
    raise TypeError(f"an arg of type {type(arg).__name__} has no text")


# reading

_NODE = re.compile(
    r"(?P<let>let\s+)?(?:(?P<name>[A-Za-z_]\w*)\s*=\s*)?(?P<op>\w+)(?:\.(?P<dtype>\w+))?"
    r"(?:\s+(?P<src>[^{]*?))?\s*(?:\{(?P<arg>.*)\})?",
    re.ASCII,
)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_WORDS: dict[str, Const] = {
    "True": True,
    "False": False,
    "inf": math.inf,
    "nan": math.nan,
}


class _Line(NamedTuple):
    """One line of text, with its number for messages."""

    number: int
    text: str

    def fail(self, problem: str, expected: str) -> ParseError:
        return ParseError(
            f"line {self.number}: {problem}", f"expected {expected}", "", self.text
        )

    def read(self, values: dict[str, UOp]) -> tuple[UOp, bool]:
        """Return the line's node and whether it is a step; name it in `values`."""
        if self.text in values:
            return values[self.text], True
        found = _NODE.fullmatch(self.text)
        if found is None:
            raise self.fail("not a node", "name = OP.dtype sources {arg}")
        op = Ops.__members__.get(found["op"])
        if op is None:
            raise self.fail(
                f"{found['op']} is neither an op nor a value named above", "an op"
            )
        dtype = dtypes.void if found["dtype"] is None else self.dtype(found["dtype"])
        words = [w.strip() for w in found["src"].split(",")] if found["src"] else []
        src = tuple([self.operand(w, dtype, values) for w in words])
        node = self.node(op, dtype, src, found["arg"])
        name = found["name"]
        if name is not None and (name in values or name in _RESERVED):
            raise self.fail(
                f"the name {name} is taken", "a name of its own for each value"
            )
        if name is not None:
            values[name] = node
        return node, found["let"] is None

    def node(
        self, op: Ops, dtype: DType, src: tuple[UOp, ...], words: str | None
    ) -> UOp:
        arg = None if words is None else self.arg(words, op)
        if op is Ops.CONST and (not _is_number(arg) or not dtype.bits):
            raise self.fail("a constant without a value", "CONST.dtype {number}")
        if op is Ops.LANES and not (
            isinstance(arg, tuple) and all(map(_is_number, arg))
        ):
            raise self.fail("lanes without values", "LANES.dtype {number, ..}")
        if op is Ops.RANGE and (
            len(src) != 1 or not isinstance(arg, tuple) or len(arg) != 2
        ):
            raise self.fail("not a range", 'RANGE.index size {"name", KIND}')
        return UOp(op, dtype, src, arg)

    def dtype(self, words: str) -> DType:
        scalar, count = words, "1"
        if words not in _DTYPES:
            scalar, _, count = words.rpartition("x")
        if scalar not in _DTYPES or not count.isdecimal() or int(count) < 1:
            raise self.fail(
                f"no dtype {words}", f"{', '.join(_DTYPES)}, or like float32x8"
            )
        return _DTYPES[scalar].vec(int(count))

    def operand(self, words: str, dtype: DType, values: dict[str, UOp]) -> UOp:
        if words in values:
            return values[words]
        if _NAME.fullmatch(words) and words not in _WORDS:
            raise self.fail(
                f"no value {words}", "the name of a line above, or a number"
            )
        value, colon, suffix = words.partition(":")
        dtype = self.dtype(suffix.strip()) if colon else dtype
        return UOp.const(dtype, self.constant(value.strip(), dtype))

    def constant(self, words: str, dtype: DType) -> Const:
        try:
            value = _WORDS[words] if words in _WORDS else self.arg(words, Ops.CONST)
            if (
                dtype.is_float
                and isinstance(value, (int, float))
                and not isinstance(value, bool)
            ):
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
            raise self.fail(
                f"cannot read the arg {words!r}", "values and tuples of them"
            ) from None

    def value(self, tree: ast.expr, op: Ops) -> Any:
        """Return the value that `tree` spells; only literals and our own names are known."""
        match tree:
            case ast.Constant(value=None | bool() | int() | float() | str()):
                return tree.value
            case ast.Tuple():
                return tuple([self.value(part, op) for part in tree.elts])
            case ast.UnaryOp(
                op=ast.USub(), operand=ast.Constant(value=int() | float() as number)
            ):
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
        raise self.fail(
            f"cannot read {ast.unparse(tree)!r}", "a number, string, name or tuple"
        )

    def member(self, table: str, name: str) -> Any:
        known = _TABLES.get(table, {})
        if name not in known:
            raise self.fail(
                f"no {table} {name}", "one of " + ", ".join(known or _TABLES)
            )
        return known[name]

    def call(self, tree: ast.Call, args: list[Any], op: Ops) -> Any:
        match tree.func:
            case ast.Name(id="nan") if len(args) == 1 and _is_bits(args[0]):
                return struct.unpack(">d", args[0].to_bytes(8, "big"))[0]
            case ast.Name(id=name) if name in _TUPLES:
                kind = _TUPLES[name]
                if len(args) == len(kind._fields):
                    return kind(*args)
                raise self.fail(
                    f"{name} with {len(args)} parts", ", ".join(kind._fields)
                )
            case ast.Attribute(value=value, attr="vec") if len(args) == 1:
                scalar = self.value(value, op)
                if isinstance(scalar, DType) and type(args[0]) is int and args[0] > 0:
                    return scalar.vec(args[0])
        raise self.fail(
            f"cannot read {ast.unparse(tree)!r}", "KernelInfo(..), Storage(..)"
        )


def _is_number(value: object) -> bool:
    return isinstance(value, (bool, int, float))


def _is_bits(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 64


_DTYPES = {d.name: d for d in vars(dtypes).values() if isinstance(d, DType)}
_TABLES: dict[str, Mapping[str, Any]] = {
    "Ops": Ops.__members__,
    "AxisType": AxisType.__members__,
    "dtypes": _DTYPES,
}
