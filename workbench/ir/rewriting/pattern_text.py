"""Rules as text: `x * 2 -> x + x`. Both sides are parsed to patterns; no code is evaluated.

    x:float * c -> c * x        # a name of any value, of one kind; a name that begins with c, and
    max(x, x) -> x              # has only digits after it, is a constant
    where(a < b, a, b) -> min(a, b)

The text is what a pattern prints, with as few parentheses as Python needs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from difflib import get_close_matches

from workbench.base.errors import ParseError, WorkbenchError, plural
from workbench.ir.node.ops import ELEMENTWISE, OPS, Ops
from workbench.ir.rewriting.patterns import Pat, const, literal, var

ARROW = "->"
MOST_CHARACTERS = 1000
MOST_PARTS = 60
"""Most parts of a side."""
_NO_ARROW = re.compile(r"=>|-->?|- >|(?<![<>=!])=(?!=)|[\u2192\u21d2]")
"""What people write in place of an arrow."""
_CONSTANT = re.compile(r"c\d*\Z")
_SIGN = re.compile(r"\w+|.")
_KIND = re.compile(r"\b([A-Za-z]\w*)\s*:\s*([a-z]+)\b")
_INFIX: Mapping[type[ast.operator], Ops] = {
    ast.Add: Ops.ADD, ast.Mult: Ops.MUL, ast.Div: Ops.FDIV, ast.FloorDiv: Ops.IDIV,
    ast.Mod: Ops.MOD, ast.BitAnd: Ops.AND, ast.BitOr: Ops.OR, ast.BitXor: Ops.XOR,
    ast.LShift: Ops.SHL, ast.RShift: Ops.SHR,
}  # fmt: skip
_COMPARED: Mapping[type[ast.cmpop], tuple[Ops, bool]] = {
    ast.Lt: (Ops.CMPLT, False), ast.LtE: (Ops.CMPLE, False), ast.Gt: (Ops.CMPLT, True),
    ast.GtE: (Ops.CMPLE, True), ast.Eq: (Ops.CMPEQ, False), ast.NotEq: (Ops.CMPNE, False),
}  # fmt: skip
_CALLED = {
    op.name.lower(): op
    for op, row in OPS.items()
    if op in ELEMENTWISE and "k" in row.levels and op not in (Ops.CAST, Ops.BITCAST)
}
"""The ops that a text may call, by name."""
_SUPPORTED = "names, numbers, signs such as + * / // % < & and calls such as max(x, y)"


def parse_sides(text: str) -> tuple[Pat, Pat]:
    """Return the patterns of both sides of a rule.

    Errors: ParseError, with the column, for a text that is no rule.
    """
    if not isinstance(text, str) or text.count(ARROW) != 1:
        raise _arrow_fault(text)
    if len(text) > MOST_CHARACTERS:
        raise _fault(text, 0, f"a rule has at most {MOST_CHARACTERS:,} characters")
    left, right = text.split(ARROW)
    kinds: dict[str, str] = {}
    match = _RuleSide(text, 0, left, kinds, {}).pattern()
    names = _names(match)
    becomes = _RuleSide(text, len(left) + len(ARROW), right, kinds, names).pattern()
    if match.src is None:
        raise _fault(text, 0, "the left side is a single name or number: it has no op to match")
    if becomes.src is not None and str(match) == str(becomes):
        raise _fault(text, len(left), "both sides are the same")
    return match, becomes


def _arrow_fault(text: object) -> ParseError:
    """Return the error of a text without one arrow: at the second, or at what stands there instead
    of one."""
    one = "a rule has one -> between its sides, and this has"
    if not isinstance(text, str):
        return _fault(text, 0, f"{one} none")
    count = text.count(ARROW)
    if count:
        return _fault(text, text.rindex(ARROW), f"{one} {count}")
    instead = _NO_ARROW.search(text)
    if instead is None:
        return _fault(text, len(text.rstrip()), f"{one} none")
    meant = f"{text[: instead.start()]}{ARROW}{text[instead.end() :]}"
    return _fault(text, instead.start(), f"{one} {instead[0]}", f"{meant:.80}")


def _names(pat: Pat) -> dict[str, Pat]:
    names = {} if pat.name is None else {pat.name: pat}
    for part in pat.src or ():
        names |= _names(part)
    return names


def _fault(text: object, column: int, because: str, hint: str = "x * 2 -> x + x") -> ParseError:
    shown = str(text) if len(str(text)) <= 80 else f"{str(text)[:80]}.."
    error = ParseError(f"column {column + 1}: this is no rule", because, hint, where=shown)
    error.line = 1
    return error


def _unmatched_bracket(words: str) -> tuple[int, str] | None:
    """Return the column of a bracket of a side without its other one, and what is wrong with it."""
    waiting: list[int] = []
    for column, sign in enumerate(words):
        if sign == "(":
            waiting.append(column)
        elif sign == ")" and not waiting:
            return column, "this ) closes no ("
        elif sign == ")":
            waiting.pop()
    return (waiting[-1], "this ( is not closed") if waiting else None


class _RuleSide:
    """One side of a rule, which begins at column `begin` of its text. `names` are those of the left
    side, {} for the left side itself."""

    def __init__(
        self, text: str, begin: int, words: str, kinds: dict[str, str], names: Mapping[str, Pat]
    ):
        self.text, self.kinds, self.names = text, kinds, names
        self.side = "right" if begin else "left"
        self.parts = 0
        for found in _KIND.finditer(words):
            name, kind = found.groups()
            if kinds.setdefault(name, kind) != kind:
                because = f"{name} is of the kind {kinds[name]}, and of {kind}"
                raise _fault(text, begin + found.start(), because)
        # as many characters as before, so that columns stay
        plain = _KIND.sub(lambda m: m[1] + " " * (len(m[0]) - len(m[1])), words)
        self.words = plain.strip()
        self.begin = begin + len(plain) - len(plain.lstrip())

    def pattern(self) -> Pat:
        """Return the side as a pattern. Errors: ParseError."""
        if not self.words:
            raise _fault(self.text, self.begin, f"the {self.side} side is empty")
        unmatched = _unmatched_bracket(self.words)
        if unmatched is not None:
            column, because = unmatched
            raise _fault(self.text, self.begin + column, because)
        try:
            tree = ast.parse(f"({self.words}\n)", mode="eval").body
            return self.read(tree)
        except SyntaxError as error:
            raise self.syntax_fault(error) from None
        except (RecursionError, MemoryError, ValueError, OverflowError) as error:
            if isinstance(error, ParseError):
                raise
            raise _fault(self.text, self.begin, "it is too deep, or a number is too long") from None

    def syntax_fault(self, error: SyntaxError) -> ParseError:
        """Return the error of a side that Python does not read either, at what stands there."""
        is_at_end = (error.lineno or 1) > 1
        at = len(self.words) if is_at_end else max(0, (error.offset or 2) - 2)
        sign = _SIGN.match(self.words, at)
        if "forgot a comma" in error.msg:
            parts = self.words[at : max(at, (error.end_offset or 0) - 2) or None]
            why = f"a sign or a comma is missing in `{parts}`"
        elif sign is None:
            why = "it ends too early"
        else:
            why = f"`{sign[0]}` is not expected"
        because = f"this does not read as an expression: {why}"
        return _fault(self.text, self.begin + at, because)

    def fault(self, tree: ast.AST, because: str, hint: str = "x * 2 -> x + x") -> ParseError:
        column = self.begin + max(0, getattr(tree, "col_offset", 1) - 1)
        return _fault(self.text, column, because, hint)

    def read(self, tree: ast.expr) -> Pat:
        """Return an expression as a pattern."""
        self.parts += 1
        if self.parts > MOST_PARTS:
            raise self.fault(tree, f"a side has at most {MOST_PARTS} parts")
        match tree:
            case ast.Name():
                return self.name(tree)
            case ast.Constant(value=bool() | int() | float() as value):
                return literal(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return literal(-value)
            case ast.UnaryOp(op=ast.USub()):
                return Pat(Ops.NEG, (self.read(tree.operand),))
            case ast.UnaryOp(op=ast.Invert() | ast.Not()):
                return Pat(Ops.NOT, (self.read(tree.operand),))
            case ast.BinOp(op=ast.Sub()):
                because = "no op of a graph subtracts: a - b is a + -b, or a + b * -1 of integers"
                raise self.fault(tree, because, "x + -y")
            case ast.BinOp() if type(tree.op) in _INFIX:
                sides = self.read(tree.left), self.read(tree.right)
                return Pat(_INFIX[type(tree.op)], sides)
            case ast.Compare(ops=[sign], comparators=[other]) if type(sign) in _COMPARED:
                op, is_turned = _COMPARED[type(sign)]
                pair = self.read(tree.left), self.read(other)
                return Pat(op, pair[::-1] if is_turned else pair)
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                return self.call(tree, name)
            case ast.Tuple():
                raise self.fault(tree, "a comma stands outside of a call: a side is one expression")
        raise self.fault(tree, f"`{ast.unparse(tree)[:40]}` is not supported", _SUPPORTED)

    def name(self, tree: ast.Name) -> Pat:
        """Return a name: of a value, or of a constant."""
        if tree.id == "_":
            raise self.fault(tree, "every value has a name", "x")
        if self.names and tree.id not in self.names:
            listed = ", ".join(self.names)
            because = f"the left side has no {tree.id}: it names {listed}"
            raise self.fault(tree, because, "only names of the left side")
        kind = self.kinds.get(tree.id)
        try:
            return const(tree.id, kind) if _CONSTANT.match(tree.id) else var(tree.id, kind)
        except WorkbenchError as error:
            near = get_close_matches(str(kind), error.because.replace(",", "").split(), 1)
            raise self.fault(tree, error.because, f"{tree.id}:{(near or ['float'])[0]}") from None

    def call(self, tree: ast.Call, name: str) -> Pat:
        """Return the call of an op."""
        op = _CALLED.get(name.lower())
        if op is None:
            near = get_close_matches(name.lower(), _CALLED, 2)
            hint = f"{' or '.join(near)}; all are " if near else ""
            raise self.fault(tree, f"there is no op {name[:40]}", hint + ", ".join(_CALLED))
        arity = OPS[op].arity or len(tree.args)
        if len(tree.args) != arity:
            because = f"{name} has {plural(arity, 'operand')}, and gets {len(tree.args)}"
            raise self.fault(tree, because, f"{name}({', '.join('xyz'[:arity])})")
        return Pat(op, tuple(self.read(part) for part in tree.args))
