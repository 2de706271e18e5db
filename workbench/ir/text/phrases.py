"""Phrases: the text of each op, with slots for the texts of its sources.

`a*512 + b` is the phrase `{0}*512 + {1}` of a node, filled with the words of its sources. This file
has all phrases of text for people. `program.py` fills the slots and names shared values; the page
does so too, for states that it replays, from the phrases of the record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from workbench.base.dtypes import Const, DType, dtypes
from workbench.base.errors import WorkbenchError
from workbench.ir.node.ops import MOVEMENT, OPS, REDUCTIONS, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import WrittenCode
from workbench.ir.text.printer import own_name

# how tightly phrases bind
ATOM = 9
_UNARY = 8
LOOSE = -1
# fmt: off
LEAVES = frozenset({Ops.RANGE, Ops.PARAM, Ops.DEFINE, Ops.REG, Ops.VAR, Ops.BUFFER})
TENSOR = MOVEMENT | {
    Ops.BUFFER, Ops.IOTA, Ops.REDUCE_AXIS, Ops.CONTIGUOUS, Ops.COPY, Ops.CUSTOM,
    Ops.DETACH, Ops.GRADIENT,
}
_OWN_LINE = MOVEMENT | {
    Ops.REDUCE, Ops.STAGE, Ops.REDUCE_AXIS, Ops.CONTIGUOUS, Ops.COPY, Ops.CUSTOM, Ops.DETACH,
    Ops.GRADIENT,
}  # fmt: skip
_NEVER_NAMED = LEAVES | {Ops.CONST, Ops.INVALID, Ops.INDEX}
# fmt: on
OwnLine = Literal["never", "always", "shared", "shared and long"]


class Slot(NamedTuple):
    """The words of source number `source`, in parentheses if they bind less tightly than `tight`. A
    `signed` one begins with +, or with - before the `negated` parts."""

    source: int
    tight: int = LOOSE
    signed: bool = False


Part = str | Slot


class Phrase(NamedTuple):
    """How a node reads among others (`parts`), and how tightly that binds.

    `negated` are its parts after a minus sign that replaces its own. `root` are its parts at the
    end of a graph, `statement` its parts in a statement tree, () where they equal `parts`;
    the sources from `body` on are lines inside of that line. `line` says when the node gets a name
    and a line of its own: never, always, where it is used twice, or where it is used twice and its
    text is long.
    """

    parts: tuple[Part, ...]
    binds: int = ATOM
    negated: tuple[Part, ...] = ()
    root: tuple[Part, ...] = ()
    statement: tuple[Part, ...] = ()
    body: int | None = None
    line: OwnLine = "shared"


def phrase(node: UOp) -> Phrase:
    """Return how a node reads."""
    op = node.op
    if op in LEAVES:
        return _leaf(own_name(node))
    if node.arg is not None or op in _OF_SOURCES:
        return _phrase(node)
    key = op, node.dtype, len(node.src)
    cached = _PHRASES.get(key)
    if cached is None:
        cached = _PHRASES[key] = _phrase(node)
    return cached


_OF_SOURCES = frozenset({Ops.WHERE, Ops.END, Ops.LOOP, Ops.IF})
"""Ops whose phrase depends on what their sources are."""
_PHRASES: dict[tuple[Ops, DType, int], Phrase] = {}
"""Phrases of nodes without an argument."""


def _phrase(node: UOp) -> Phrase:
    special = _SPECIAL.get(node.op)
    if special is not None:
        return special(node)
    if OPS[node.op].symbol and len(node.src) == 2:
        return _infix(node)
    return _called(node)


def typed(node: UOp) -> str:
    """Return the dtype and shape of a node as text."""
    try:
        return f"{node.dtype}[{', '.join(map(str, node.shape))}]"
    except (WorkbenchError, TypeError, ValueError):  # the error of a broken graph shows it, too
        return f"{node.dtype}[?]"


def _line(node: UOp) -> OwnLine:
    if node.op in _NEVER_NAMED or node.dtype is dtypes.void:
        return "never"
    if node.op in _OWN_LINE:
        return "always"
    simple = node.dtype in (dtypes.index, dtypes.bool) or node.op is Ops.LOAD
    return "shared and long" if simple else "shared"


@lru_cache(maxsize=1024)
def _leaf(name: str) -> Phrase:
    return Phrase((name,), line="never")


def _infix(node: UOp) -> Phrase:
    sign, binds = OPS[node.op].symbol, OPS[node.op].precedence
    first, line = Slot(0, binds + (binds == 1)), _line(node)
    if node.op is Ops.ADD:
        second = Slot(1, binds + 1, signed=True)
        return Phrase((first, " ", second), binds, line=line)
    space = "" if node.op is Ops.MUL and node.dtype is dtypes.index else " "
    parts = (first, f"{space}{sign}{space}", Slot(1, binds + 1))
    return Phrase(parts, binds, line=line)


def _constant(node: UOp) -> Phrase:
    key = node.dtype, repr(node.arg)  # 0.0 equals -0.0, and is another text
    cached = _CONSTANTS.get(key)
    if cached is None:
        if len(_CONSTANTS) >= _MOST_CONSTANTS:
            _CONSTANTS.clear()
        cached = _CONSTANTS[key] = _constant_phrase(node)
    return cached


_CONSTANTS: dict[tuple[DType, str], Phrase] = {}
_MOST_CONSTANTS = 4096


def _constant_phrase(node: UOp) -> Phrase:
    words = _number(node.arg, node)
    is_negative = not node.dtype.is_bool and node.arg < 0
    return Phrase(
        (words,),
        _UNARY if words.startswith("-") else ATOM,
        (_number(-node.arg, node),) if is_negative else (),
        line="never",
    )


def _number(value: Const, node: UOp) -> str:
    """Return the shortest text that only `value` has among the values of its dtype."""
    if not node.dtype.is_float:
        return repr(value)
    words = str(node.dtype.numpy.type(value))
    whole = words.lstrip("-").isdigit()  # a bfloat16 prints as 3
    return f"{words}.0" if whole else words


def _negative(node: UOp) -> Phrase:
    if node.op is Ops.NOT:
        return Phrase(("~", Slot(0, _UNARY + 1)), _UNARY, line=_line(node))
    negated = (Slot(0, OPS[Ops.ADD].precedence + 1),)
    return Phrase(("-", Slot(0, _UNARY + 1)), _UNARY, negated, line=_line(node))


def _cast(node: UOp) -> Phrase:
    if node.op is Ops.CAST:
        return Phrase((f"{node.dtype}(", Slot(0), ")"), line=_line(node))
    return Phrase(("bitcast(", Slot(0), f", {node.dtype})"), line=_line(node))


def _gradient(node: UOp) -> Phrase:
    if len(node.src) != 3:
        return _called(node)
    place = "below" if node.arg is None else f"source {node.arg} of"
    parts = ("GRADIENT(of ", Slot(0), f", {place} ", Slot(1), ", given ", Slot(2), ")")
    return Phrase(parts, line=_line(node))


def _indexed(node: UOp) -> Phrase:
    memory, count = Slot(0, ATOM), len(node.src)
    if count == 1:  # storage of one element
        return Phrase((memory,), line="never")
    return Phrase((memory, "[", *_slots(range(1, count)), "]"), line="never")


def _loaded(node: UOp) -> Phrase:
    if len(node.src) == 1:
        return Phrase((Slot(0),), line=_line(node))
    return Phrase(("LOAD(", Slot(0), " where ", Slot(1), ")"), line=_line(node))


def _where(node: UOp) -> Phrase:
    if node.src[2].op is Ops.INVALID:
        return Phrase((Slot(1), " where ", Slot(0)), LOOSE, line=_line(node))
    return Phrase(("where(", *_slots(range(3)), ")"), line=_line(node))


def _reduced(node: UOp) -> Phrase:
    """Return `REDUCE(add, value, ranges)`, or `HREDUCE(add, lanes)`."""
    parts = call_parts(node.op.name, len(node.src), before=_lower(node.arg))
    return Phrase(parts, line=_line(node))


def _exchanged(node: UOp) -> Phrase:
    """Return `EXCHANGE(tile, rows -> fragment)`: the two layouts, which say what each lane has, are
    too long for a line."""
    parts = call_parts("EXCHANGE", len(node.src), after="rows -> fragment")
    return Phrase(parts, line=_line(node))


def _staged(node: UOp) -> Phrase:
    parts = call_parts("STAGE", len(node.src))
    if node.buffers > 1:
        parts = (*parts, f" in {node.buffers} buffers")
    return Phrase(parts, line=_line(node))


def _reduced_axes(node: UOp) -> Phrase:
    match node.arg:
        case (Ops() as how, axes):
            parts = (f"REDUCE_AXIS({_lower(how)}, ", Slot(0), f", axes={axes})")
            return Phrase(parts, line=_line(node))
    return _called(node)


def _custom(node: UOp) -> Phrase:
    """Return `CUSTOM(name, sources)`, with the number of the output where there are several."""
    match node.arg:
        case (str() as name, number, shapes, _):
            after = f"output {number}" if len(shapes) > 1 else ""
            parts = call_parts("CUSTOM", len(node.src), before=name, after=after)
            return Phrase(parts, line=_line(node))
    return _called(node)


def _code(node: UOp) -> Phrase:
    """Return `C(sources)`, without the text, which is shown as the kernel's source."""
    name = node.arg.language if isinstance(node.arg, WrittenCode) else node.op.name
    return Phrase(call_parts(name, len(node.src)), line=_line(node))


def _end(node: UOp) -> Phrase:
    if not node.src or node.src[0].op is not Ops.STORE:
        return _called(node)
    ranges = [part for i in range(1, len(node.src)) for part in (" ", Slot(i))]
    return _called(node)._replace(root=(Slot(0), "  END", *ranges))


def _written(node: UOp) -> Phrase:
    sign = "="
    if node.op is Ops.ACCUMULATE and node.arg is not None:
        sign = REDUCTIONS[node.combines].update
    lanes = None if node.arg is None else node.vector
    more = (f"  (lanes {lanes})",) if lanes else ()
    statement = (Slot(0), f" {sign} ", Slot(1), *more)
    return _called(node)._replace(statement=statement)


def _loop(node: UOp) -> Phrase:
    axis = node.src[0] if node.src else node
    if axis.op is not Ops.RANGE:
        return _called(node)
    notes = dict.fromkeys([axis.axis_kind.words, *([node.arg] if node.arg else [])])
    head = "for ", Slot(0), f" in {axis.extent} ({', '.join(map(str, notes))})"
    if len(node.src) == 1:  # in a linear program its body follows it
        return _called(node)._replace(statement=(*head, ":"))
    return _called(node)._replace(statement=(*head, " {"), body=1)


def _loop_end(node: UOp) -> Phrase:
    return _called(node)._replace(statement=("end of ", Slot(0)))


def _launch_number(node: UOp) -> Phrase:
    axis = node.src[0] if node.src else node
    if axis.op is not Ops.RANGE or node.arg is None:
        return _called(node)
    what = {"grid": "work-group", "item": "work-item"}[node.role or "item"]
    along = dict(enumerate("xyz")).get(node.dimension, node.dimension)
    words = f" in {axis.extent} ({what} {along})"
    return _called(node)._replace(statement=(Slot(0), words))


def _barrier(node: UOp) -> Phrase:
    return _called(node)._replace(statement=("barrier",))


def _shuffled(node: UOp) -> Phrase:
    parts = ("shuffle(", Slot(0), f", lane ^ {node.arg})")
    return Phrase(parts, line=_line(node))


def _if(node: UOp) -> Phrase:
    if len(node.src) == 1:  # in a linear program its body follows it
        return _called(node)._replace(statement=("if ", Slot(0), ":"))
    return _called(node)._replace(statement=("if ", Slot(0), " {"), body=1)


def _if_end(node: UOp) -> Phrase:
    return _called(node)._replace(statement=("end of if ", Slot(0)))


def _called(node: UOp) -> Phrase:
    """Return `name(sources, arg)`; computing ops in lower case, the others as they are."""
    name = node.op.name.lower() if node.is_elementwise else node.op.name
    body = 0 if node.op in (Ops.SINK, Ops.BLOCK) else None
    parts = call_parts(name, len(node.src), after=_arg(node))
    return Phrase(parts, body=body, line=_line(node))


@lru_cache(maxsize=4096)
def call_parts(name: str, count: int, before: str = "", after: str = "") -> tuple[Part, ...]:
    """Return the parts of a call of `count` sources, with words before and after them."""
    listed: list[Part] = [before] if before else []
    listed += [Slot(i) for i in range(count)]
    listed += [after] if after else []
    return f"{name}(", *_with_commas(listed), ")"


def _slots(sources: Sequence[int]) -> list[Part]:
    return _with_commas([Slot(i) for i in sources])


def _with_commas(parts: Sequence[Part]) -> list[Part]:
    return [piece for part in parts for piece in (", ", part)][1:]


def _arg(node: UOp) -> str:
    return "" if node.arg is None else str(node.arg)


def _lower(op: object) -> str:
    return op.name.lower() if isinstance(op, Ops) else str(op)


_SPECIAL: dict[Ops, Callable[[UOp], Phrase]] = {
    Ops.CONST: _constant,
    Ops.NEG: _negative,
    Ops.NOT: _negative,
    Ops.GRADIENT: _gradient,
    Ops.CAST: _cast,
    Ops.BITCAST: _cast,
    Ops.INDEX: _indexed,
    Ops.LOAD: _loaded,
    Ops.WHERE: _where,
    Ops.REDUCE: _reduced,
    Ops.HREDUCE: _reduced,
    Ops.EXCHANGE: _exchanged,
    Ops.CUSTOM: _custom,
    Ops.EXTERN: _code,
    Ops.STAGE: _staged,
    Ops.REDUCE_AXIS: _reduced_axes,
    Ops.END: _end,
    Ops.STORE: _written,
    Ops.ACCUMULATE: _written,
    Ops.SET: _written,
    Ops.BARRIER: _barrier,
    Ops.WARP_SHUFFLE: _shuffled,
    Ops.LOOP: _loop,
    Ops.ENDLOOP: _loop_end,
    Ops.SPECIAL: _launch_number,
    Ops.IF: _if,
    Ops.ENDIF: _if_end,
}
