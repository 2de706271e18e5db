"""The printer of IR text, which parses back (parser.py): one line per node, sources first.

    g0 = RANGE.index 512 {"g0", GLOBAL}
    p1 = PARAM.float32 {1, 512}
    v2 = INDEX.float32 p1, g0
    v3 = LOAD.float32 v2
    v4 = MUL.float32 v3, 2.0

A line is `name = OP.dtype sources {arg}`. The dtype void and the arg None are left out. A constant
stands where it is used; if its dtype is not the line's, it follows a colon (`512:index`). The last
line is the root. A linear program starts with the line LINEAR, and its lines are its steps. A line
with `let` is no step: it names a node that a step uses. A lone name repeats an earlier node as a
step. `parse(to_text(x)) is x` at every level.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench.base.dtypes import Const, DType, dtypes
from workbench.base.tensor_cores import Fragment, TensorCore
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import KernelInfo, Storage, UOp
from workbench.ir.node.views import WrittenCode

RESERVED = {"inf", "nan", "True", "False", "let", "LINEAR", *Ops.__members__}
"""Words that cannot be names of nodes."""
LETTERS = {Ops.REDUCE: "s", Ops.BUFFER: "b"}
"""First letters of names for nodes without a name of their own; v for other ops."""
_PLAIN_NAN = struct.pack("<d", math.nan)


def to_text(ir: UOp | Sequence[UOp]) -> str:
    """Return the text of a graph, or of a linear program (a tuple of UOps)."""
    linear = not isinstance(ir, UOp)
    listed = _listing((ir,) if isinstance(ir, UOp) else ir)
    used = {s for node, _ in listed for s in node.src}
    names, lines = NodeNames(), ["LINEAR"] if linear else []
    for node, is_step in listed:
        if node in names.by_node:
            lines.append(names.by_node[node])
            continue
        line = line_of(node, names.by_node)
        if node.dtype is not dtypes.void or node in used:
            line = f"{names.give(node)} = {line}"
        lines.append(line if is_step else f"let {line}" if linear else line)
    return "\n".join(lines)


class NodeNames:
    """Names for nodes, each used once: ranges, parameters and storage keep their own."""

    def __init__(self) -> None:
        self.by_node: dict[UOp, str] = {}
        self._used = set(RESERVED)

    def give(self, node: UOp) -> str:
        """Return the name of `node`, choosing one the first time."""
        if node in self.by_node:
            return self.by_node[node]
        name = own_name(node)
        if not name.isidentifier() or not name.isascii() or name in self._used:
            letter = LETTERS.get(node.op, "v")
            count = len(self.by_node)
            while (name := f"{letter}{count}") in self._used:
                count += 1
        self._used.add(name)
        self.by_node[node] = name
        return name


def own_name(node: UOp) -> str:
    """Return a node's own name ("" for most): `g0`, `p1`, a stage's name."""
    if not isinstance(node.arg, tuple) or not node.arg:
        return ""
    if node.op is Ops.PARAM:
        return f"p{node.slot}"
    named = node.op in (Ops.RANGE, Ops.VAR, Ops.STAGE, Ops.DEFINE)
    return str(node.name) if named else ""


def line_of(node: UOp, names: Mapping[UOp, str]) -> str:
    """Return `OP.dtype sources {arg}`; `names` has a name for each source but constants."""
    head = node.op.name + ("" if node.dtype is dtypes.void else f".{node.dtype}")
    sources = [_operand(s, node.dtype, names) for s in node.src]
    arg = "" if node.arg is None else f" {{{_arg_text(node.arg, node.op, top=True)}}}"
    return head + (f" {', '.join(sources)}" if sources else "") + arg


def brief(node: UOp) -> str:
    """Return one line with `node` and the ops of its sources, for messages."""
    names = {s: own_name(s) or f"{s.op.name}(..)" for s in node.src if not s.is_const}
    try:
        return line_of(node, names)
    except TypeError:  # an arg of a type that no op has
        return repr(node)


def number_text(value: Const) -> str:
    """Return `value` so that it reads back bit by bit."""
    if isinstance(value, float) and value != value and struct.pack("<d", value) != _PLAIN_NAN:
        return f"nan({int.from_bytes(struct.pack('>d', value), 'big'):#x})"
    return repr(value)


def _listing(program: Iterable[UOp]) -> list[tuple[UOp, bool]]:
    """List (node, whether it is a step): the nodes that a step needs come before it."""
    listed: list[tuple[UOp, bool]] = []
    visited: set[UOp] = set()
    for step in program:
        if all(s in visited or s.is_const for s in step.src):  # as in a linear program
            listed.append((step, True))
            visited.add(step)
            continue
        below = step.toposort(lambda n: n not in visited)
        listed.extend(
            [(n, False) for n in below if n is not step and n not in visited and not n.is_const]
        )
        listed.append((step, True))
        visited.update(below)
    return listed


def _operand(source: UOp, dtype: DType, names: Mapping[UOp, str]) -> str:
    if source.is_const:
        suffix = "" if source.dtype is dtype else f":{source.dtype}"
        return number_text(source.arg) + suffix
    return names[source]


_Record = KernelInfo | Storage | WrittenCode | TensorCore | Fragment
_RECORDS = (KernelInfo, Storage, WrittenCode, TensorCore, Fragment)


def _without_defaults(arg: _Record) -> tuple[Any, ...]:
    """Return the fields of an arg, without those at the end that have their default values."""
    parts = tuple(arg)
    while parts and arg._field_defaults.get(arg._fields[len(parts) - 1]) is parts[-1]:
        parts = parts[:-1]
    return parts


def _arg_text(arg: Any, op: Ops, top: bool = False) -> str:
    if isinstance(arg, _RECORDS):
        fields = [_arg_text(a, op) for a in _without_defaults(arg)]
        return f"{type(arg).__name__}({', '.join(fields)})"
    if isinstance(arg, tuple):
        inner = ", ".join(_arg_text(a, op) for a in arg) + ("," if len(arg) == 1 else "")
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
