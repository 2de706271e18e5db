"""Patterns: graph shapes with names, written as expressions, compiled once to Python code.

    x, c = var("x"), const("c")
    (x + c) * 2                     # matches ADD under MUL, binds x and c

The same name twice must be the same node. A pattern prints as the expression it is; matchers are
compiled lazily, one function per rule. Source of the idea: ISLE (Cranelift) and tinygrad's UPat
tables; both sides of a rule are patterns wherever possible.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from numbers import Real
from typing import Any, NoReturn

from workbench.base.dtypes import Const, DType, dtypes
from workbench.base.errors import DTypeError, WorkbenchError, require
from workbench.ir.node.ops import COMPARE, OPS, Ops
from workbench.ir.node.uop import UOp

Matcher = Callable[[UOp], "UOp | None"]
Way = tuple[int, ...]
"""The source positions that lead from a pattern, or a node, down to a part of it."""
Spans = dict[Way, tuple[int, int]]


class Pat:
    """A pattern. `ops` None matches any op, `src` None any sources; with `more`, further sources
    may follow. `value` is the value of a CONST, `kind` a kind of dtype (`var`)."""

    __slots__ = ("arg", "kind", "more", "name", "ops", "src", "value")

    def __init__(
        self,
        ops: Ops | tuple[Ops, ...] | None,
        src: tuple[Pat, ...] | None = None,
        *,
        name: str | None = None,
        value: Const | None = None,
        kind: str | None = None,
        arg: Any = None,
        more: bool = False,
    ):
        if kind is not None and not (isinstance(kind, str) and kind in _KINDS):
            raise WorkbenchError(
                f"a pattern cannot ask for {kind!r:.40}",
                "the kinds of values are " + ", ".join(_KINDS),
                f'var("x", "{next(iter(_KINDS))}")',
            )
        self.ops = (ops,) if isinstance(ops, Ops) else ops
        self.more = more
        self.src, self.name, self.value, self.kind, self.arg = (src, name, value, kind, arg)

    def _with(self, op: Ops, other: Pat | Const) -> Pat:
        return Pat(op, (self, literal_or(other)))

    def __add__(self, other: Pat | Const) -> Pat:
        return self._with(Ops.ADD, other)

    def __mul__(self, other: Pat | Const) -> Pat:
        return self._with(Ops.MUL, other)

    # A constant stands on the right, in patterns as in graphs.
    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Pat | Const) -> Pat:
        return self._with(Ops.FDIV, other)

    def __floordiv__(self, other: Pat | Const) -> Pat:
        return self._with(Ops.IDIV, other)

    def __mod__(self, other: Pat | Const) -> Pat:
        return self._with(Ops.MOD, other)

    def __and__(self, other: Pat | Const) -> Pat:
        return self._with(Ops.AND, other)

    def __or__(self, other: Pat | Const) -> Pat:
        return self._with(Ops.OR, other)

    def __xor__(self, other: Pat | Const) -> Pat:
        return self._with(Ops.XOR, other)

    def __lshift__(self, other: Pat | Const) -> Pat:
        return self._with(Ops.SHL, other)

    def __rshift__(self, other: Pat | Const) -> Pat:
        return self._with(Ops.SHR, other)

    def __pow__(self, other: Pat | Const) -> Pat:
        return self._with(Ops.POW, other)

    def __lt__(self, other: Pat | Const) -> Pat:
        return self._with(Ops.CMPLT, other)

    def __le__(self, other: Pat | Const) -> Pat:
        return self._with(Ops.CMPLE, other)

    def __gt__(self, other: Pat | Const) -> Pat:
        return literal_or(other)._with(Ops.CMPLT, self)

    def __ge__(self, other: Pat | Const) -> Pat:
        return literal_or(other)._with(Ops.CMPLE, self)

    def __rtruediv__(self, other: Const) -> Pat:
        return literal(other)._with(Ops.FDIV, self)

    def __rfloordiv__(self, other: Const) -> Pat:
        return literal(other)._with(Ops.IDIV, self)

    def __rmod__(self, other: Const) -> Pat:
        return literal(other)._with(Ops.MOD, self)

    def __rpow__(self, other: Const) -> Pat:
        return literal(other)._with(Ops.POW, self)

    def __sub__(self, other: object) -> Pat:
        return self._no_difference(other)

    def __rsub__(self, other: object) -> Pat:
        return self._no_difference(other)

    def _no_difference(self, other: object) -> NoReturn:
        raise DTypeError(
            f"cannot subtract in a pattern, with {self} and {other}",
            "no op of a graph subtracts: a - b is a + -b of floats, and a + b * -1 of integers",
            "x + -y, x + y * -1, or x + -1 for x - 1",
        )

    def __neg__(self) -> Pat:
        return Pat(Ops.NEG, (self,))

    def __invert__(self) -> Pat:
        return Pat(Ops.NOT, (self,))

    def where(self, yes: Pat | Const, no: Pat | Const) -> Pat:
        """Return the pattern of a WHERE with this one as its condition."""
        return Pat(Ops.WHERE, (self, literal_or(yes), literal_or(no)))

    def __repr__(self) -> str:
        return self.written()[0]

    def written(self) -> tuple[str, Spans]:
        """Return the pattern as text, and where each part of it stands there: (start, end) by
        the source positions that lead to the part."""
        spans: Spans = {}
        pieces: list[str] = []
        self._write((), pieces, spans)
        return "".join(pieces), spans

    def _write(self, way: Way, pieces: list[str], spans: Spans) -> None:
        start = sum(map(len, pieces))
        if self.src is None:
            pieces.append(self._leaf_text())
        else:
            op = self.ops[0] if self.ops and len(self.ops) == 1 else None
            infix = OPS[op].symbol if op and len(self.src) == 2 else ""
            between = f" {infix} " if infix else ", "
            name = "" if self.name is None else f"{self.name}="
            pieces.append(f"{name}{'' if infix else op_names(self.ops)}(")
            for place, part in enumerate(self.src):
                pieces += [between] if place else []
                part._write((*way, place), pieces, spans)
            pieces.append(f"{between}..)" if self.more else ")")
        spans[way] = start, sum(map(len, pieces))

    def _leaf_text(self) -> str:
        if self.value is not None:
            return repr(self.value)
        kind = "" if self.kind is None else f":{self.kind}"
        names = "" if self.ops in (None, (Ops.CONST,)) else op_names(self.ops)
        if self.name is None:
            return (names or "_") + kind
        return f"{self.name}={names}" if names else self.name + kind


def op_names(ops: tuple[Ops, ...] | None) -> str:
    """Return names as "MAX|MIN"; "_" for any op, and the first three of more than four."""
    if ops is None:
        return "_"
    more = "|.." if len(ops) > 4 else ""
    return "|".join(o.name for o in (ops[:3] if more else ops)) + more


def var(name: str, kind: str | None = None) -> Pat:
    """Match any node; `kind` is a dtype kind ("bool", "index", "float", "integer", ..)."""
    return Pat(None, None, name=_named(name, "var"), kind=kind)


def const(name: str, kind: str | None = None) -> Pat:
    """Match any CONST."""
    return Pat(Ops.CONST, None, name=_named(name, "const"), kind=kind)


def _named(name: object, function: str) -> str:
    named: str = require(name, str, f"{function}: name", f'{function}("x")')
    return named


def literal(value: Const) -> Pat:
    """Match the CONST with this value (0 and 0.0 and False alike; -0.0 counts as 0.0)."""
    return Pat(Ops.CONST, None, value=value)


def literal_or(part: Pat | Const) -> Pat:
    """Return a pattern as it is, and the pattern of a number. Errors: DTypeError for others."""
    if isinstance(part, Pat):
        return part
    if not isinstance(part, Real):
        raise DTypeError(
            f"cannot make a pattern of {type(part).__name__} {part!r:.40}",
            "the parts of a pattern are patterns and Python numbers",
            'var("x") for any value, const("c") for any constant',
        )
    return literal(part)


def op(
    ops: Ops | tuple[Ops, ...], *src: Pat | Const, name: str | None = None, arg: Any = None
) -> Pat:
    """Match an op over exactly these sources."""
    return Pat(ops, tuple(map(literal_or, src)), name=name, arg=arg)


_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "index": ("index",),
    "float": ("float",),
    "integer": ("int", "uint", "index"),
    "exact": ("bool", "int", "uint", "index"),
    "value": ("bool", "int", "uint", "float"),
}
"""The kinds of dtype that a pattern may ask for, and the values of `DType.kind` that fit each."""


def fits_kind(kind: str, dtype: DType) -> bool:
    """Return whether a pattern of `kind` takes values of `dtype`."""
    return dtype.kind in _KINDS[kind]


MOST_COMPARED = 4
"""Most ops that a matcher compares one by one; more are looked up in a set."""


class _Code:
    """The source text of one matcher while it is being written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, str] = {}
        self.env: dict[str, Any] = {"UOp": UOp, "CONST": Ops.CONST, "_BOOL": dtypes.bool}

    def bind(self, value: Any, hint: str) -> str:
        name = f"_{hint}{len(self.env)}"
        self.env[name] = value
        return name

    def need(self, condition: str) -> None:
        self.lines.append(f"    if not ({condition}): return None")

    def match(self, pat: Pat, node: str, is_op_checked: bool = False) -> None:
        if pat.ops is not None and not is_op_checked:
            if len(pat.ops) > MOST_COMPARED:
                self.need(f"{node}.op in {self.bind(frozenset(pat.ops), 'ops')}")
            else:
                ops = [self.bind(o, "op") for o in pat.ops]
                self.need(" or ".join(f"{node}.op is {o}" for o in ops))
        if pat.kind is not None:
            fits = _KINDS[pat.kind]
            is_one = len(fits) == 1
            self.need(f"{node}.dtype.kind {f'== {fits[0]!r}' if is_one else f'in {fits}'}")
        if pat.value is not None:
            self.need(f"{node}.arg == {self.bind(pat.value, 'v')}")
        if pat.arg is not None:
            self.need(f"{node}.arg == {self.bind(pat.arg, 'arg')}")
        if pat.name is not None:
            if pat.name in self.names:
                self.need(f"{node} is {self.names[pat.name]}")
            self.names.setdefault(pat.name, node)
        if pat.src is not None:
            self.need(f"len({node}.src) {'>=' if pat.more else '=='} {len(pat.src)}")
            for i, part in enumerate(pat.src):
                child = f"{node}_{i}"
                self.lines.append(f"    {child} = {node}.src[{i}]")
                self.match(part, child)

    def call(self, fn: Callable[..., Any]) -> str:
        missing = [p for p in inspect.signature(fn).parameters if p not in self.names]
        if missing:
            raise TypeError(f"{fn} asks for {missing}, which the pattern does not name")
        args = ", ".join(self.names[p] for p in inspect.signature(fn).parameters)
        return f"{self.bind(fn, 'fn')}({args})"

    def build(self, pat: Pat, dtype: str) -> str:
        """Return the expression that constructs `pat`; literals have the dtype `dtype` (an
        expression)."""
        if pat.value is not None:
            return f"UOp(CONST, {dtype}, (), {self.bind(pat.value, 'v')})"
        if pat.src is None:
            if pat.name not in self.names:
                raise WorkbenchError(
                    f"the right side of a rule has {pat.name}",
                    "its left side names " + (", ".join(self.names) or "nothing"),
                    "a name of the left side",
                )
            return self.names[pat.name]
        assert pat.ops is not None
        if pat.ops[0] is Ops.WHERE:
            condition = self.build(pat.src[0], "_BOOL")
            parts = [condition, *[self.build(p, dtype) for p in pat.src[1:]]]
            result = dtype
        else:
            inner = self._operand_dtype(pat, dtype)
            parts = [self.build(p, inner) for p in pat.src]
            compares = pat.ops[0] in COMPARE
            result = f"{self.bind(_bool_dtype, 'dt')}({inner})" if compares else inner
        return f"UOp({self.bind(pat.ops[0], 'op')}, {result}, ({', '.join(parts)},))"

    def _operand_dtype(self, pat: Pat, dtype: str) -> str:
        for part in pat.src or ():
            if part.src is None and part.name in self.names:
                return f"{self.names[part.name]}.dtype"
        return dtype


def _bool_dtype(dtype: DType) -> DType:
    return dtypes.bool.vec(dtype.count)


def compile_rule(
    match: Pat, becomes: Pat | Callable[..., UOp | None], where: Callable[..., bool] | None
) -> Matcher:
    """Return a function from a node (whose op fits) to its replacement, or None."""
    code = _Code()
    code.match(match, "n", is_op_checked=match.ops is not None and len(match.ops) == 1)
    if where is not None:
        code.need(code.call(where))
    result = code.build(becomes, "n.dtype") if isinstance(becomes, Pat) else code.call(becomes)
    code.lines.append(f"    return {result}")
    exec("def matcher(n):\n" + "\n".join(code.lines), code.env)  # text of this file, not of a user
    matcher: Matcher = code.env["matcher"]
    return matcher
