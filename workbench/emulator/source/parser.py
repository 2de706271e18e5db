"""The parser that languages like C and WGSL share: expressions, blocks, jumps, assignments. Each
language adds its types, statements and functions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from workbench.base.dtypes import DType, dtypes
from workbench.emulator.source.languages import SourceLanguage
from workbench.emulator.source.syntax import (
    AssignmentOf,
    AssignmentStatement,
    Binary,
    BlockStatement,
    Braces,
    Call,
    Choice,
    EvaluationStatement,
    Expr,
    JumpStatement,
    MemberOf,
    Name,
    Number,
    SourceStatement,
    SourceStruct,
    StepOf,
    Subscript,
    SwitchCase,
    SwitchStatement,
    Type,
    Unary,
)
from workbench.emulator.source.tokens import SourceError, Token, shown, tokens_of

ARRAY_OF_LANES = "s"
"""The part of a vector that is an array of its lanes."""
MOST_DEPTH = 100
"""Most parentheses, blocks and operators inside of each other."""
_BINDS = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
SUM = _BINDS["+"]
"""How tightly the signs of a sum bind."""
UPDATES = frozenset("+= -= *= /= %= &= |= ^= <<= >>=".split())


class SourceParser(ABC):
    """Reads the tokens of a text from left to right."""

    def __init__(self, text: str, language: SourceLanguage):
        self.text, self.language = text, language
        self.tokens = tokens_of(text, dict(language.defined), not language.is_wgsl)
        self.place = 0
        self.types = dict(language.types) | dict(language.vectors)
        self.structs: dict[str, SourceStruct] = {}
        self._depth = 0

    # tokens

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.place]

    def ahead(self, count: int = 1) -> Token:
        """Return a token after the next one."""
        return self.tokens[min(self.place + count, len(self.tokens) - 1)]

    def next(self) -> Token:
        """Return the next token, and go past it."""
        token = self.token
        self.place += token.kind != "end"
        return token

    def is_next(self, *texts: str) -> bool:
        """Whether the next token is one of these signs or words."""
        return self.token.text in texts and self.token.kind in ("sign", "name")

    def accept(self, *texts: str) -> bool:
        """Go past the next token if it is one of these; return whether it is."""
        if not self.is_next(*texts):
            return False
        self.place += 1
        return True

    def expect(self, text: str) -> Token:
        """Go past a sign or word. Errors: SourceError if another one stands here."""
        if text == ">" and self.token.text == ">>":  # two brackets that close
            at = self.token
            self.tokens[self.place] = Token("sign", ">", at.line, at.column + 1, at.offset + 1)
            return at
        if not self.is_next(text):
            because = f"`{text}` is expected here, and {shown(self.token)} stands here"
            last = self.tokens[max(0, self.place - 1)]
            is_missing = text == ";" and last.line < self.token.line
            hint = f"a `;` at the end of line {last.line}" if is_missing else ""
            raise self.fault(because, hint)
        return self.next()

    def name(self, what: str) -> Token:
        """Return the name that stands here. Errors: SourceError if there is none."""
        if self.token.kind != "name":
            raise self.fault(f"{what} is expected here, and {shown(self.token)} stands here")
        return self.next()

    def fault(self, because: str, hint: str = "", at: Token | None = None) -> SourceError:
        """Return the error for the next token, or for another one."""
        return SourceError(at or self.token, because, hint)

    @property
    def end(self) -> int:
        """The offset at which the last token ends."""
        last = self.tokens[max(0, self.place - 1)]
        return last.offset + len(last.text)

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Errors: SourceError below MOST_DEPTH levels."""
        self._depth += 1
        if self._depth > MOST_DEPTH:
            because = f"more than {MOST_DEPTH} parentheses and blocks are open here"
            raise self.fault(because, "a name for a part of it")
        yield
        self._depth -= 1

    # types

    @abstractmethod
    def type_here(self) -> Type | None:
        """Return the type that stands here, and go past it; None, and stay, if there is none."""

    def required_type(self) -> Type:
        """Return the type that stands here, and go past it. Errors: SourceError if none does."""
        kind = self.type_here()
        if kind is None:
            raise self.fault(f"a type is expected here, and {shown(self.token)} stands here")
        return kind

    @abstractmethod
    def prefix(self) -> Expr | None:
        """Return an expression that begins with a type, as casts do; None if there is none."""

    # expressions

    def expression(self) -> Expr:
        """Return the expression that stands here."""
        with self.deeper():
            return self._choice()

    def assigned(self) -> Expr:
        """Return the expression that stands here, which may assign to what it begins with."""
        target = self.expression()
        at = self.token
        if self.language.is_wgsl or not (at.text == "=" or at.text in UPDATES):
            return target
        self.place += 1
        with self.deeper():
            return AssignmentOf(at, target, at.text[:-1], self.assigned())

    def _choice(self) -> Expr:
        condition = self._binary(1)
        if not self.is_next("?") or self.language.is_wgsl:
            return condition
        at = self.next()
        yes = self.expression()
        self.expect(":")
        return Choice(at, condition, yes, self.expression())

    def _binary(self, least: int) -> Expr:
        left = self.unary()
        while True:
            at = self.token
            binds = _BINDS.get(at.text, 0) if at.kind == "sign" else 0
            if binds < least:
                return left
            self.place += 1
            with self.deeper():
                left = Binary(at, at.text, left, self._binary(binds + 1))

    def unary(self) -> Expr:
        """Return the operand that stands here, with the signs before it."""
        at = self.token
        if at.text in ("++", "--"):
            self._require_steps(at)
            self.place += 1
            with self.deeper():
                return StepOf(at, self.unary(), at.text[0], is_before=True)
        if at.kind == "sign" and at.text in "-+!~*&":
            self.place += 1
            with self.deeper():
                return Unary(at, at.text, self.unary())
        own = self.prefix()
        return own if own is not None else self.suffixed(self.operand())

    def suffixed(self, value: Expr) -> Expr:
        """Return a value with the subscripts and members after it."""
        while True:
            at = self.token
            if self.accept("["):
                index = self.expression()
                self.expect("]")
                value = Subscript(at, value, index)
            elif self.accept("."):
                name = self.name("the name of a part").text
                if name == "thread_elements" and self.is_next("("):  # of a matrix of Metal
                    self.arguments()
                    name = ARRAY_OF_LANES
                value = MemberOf(at, value, name)
            elif at.text in ("++", "--") and not self.language.is_wgsl:
                self.place += 1
                value = StepOf(at, value, at.text[0], is_before=False)
            elif at.text in ("++", "--") and self.ahead().text not in (";", ")"):
                self._require_steps(at)
            else:
                return value

    def _require_steps(self, at: Token) -> None:
        """Errors: SourceError where the language steps variables only in statements."""
        if self.language.is_wgsl:
            because = f"{shown(at)} inside of an expression is not supported"
            raise self.fault(because, "i++ as a statement of its own")

    def operand(self) -> Expr:
        at = self.token
        if at.kind == "number":
            self.place += 1
            return self._number(at)
        if at.kind == "string":
            self.place += 1
            because = "a text in quotes is no value here: the emulator prints nothing"
            raise self.fault(because, "the steps of a work-item, which show each value", at)
        if at.kind == "letter":
            self.place += 1
            return Number(at, ord(at.text[1]) & 0x7F, dtypes.int8)
        if self.accept("("):
            inside = self.assigned()
            if self.is_next(",") and not self.language.is_wgsl:
                because = "a comma between two expressions is not supported"
                raise self.fault(because, "two statements")
            self.expect(")")
            return inside
        if self.is_next("{"):
            return self.braces()
        if at.kind != "name":
            raise self.fault(f"a value is expected here, and {shown(at)} stands here")
        self.place += 1
        while self.is_next("::"):  # a namespace
            self.place += 1
            at = self.name("a name")
        if at.text in ("true", "false"):
            return Number(at, at.text == "true", dtypes.bool)
        types = self._types_in_brackets(at)
        if self.is_next("("):
            return Call(at, at.text, self.arguments(), types)
        return Name(at, at.text)

    def _types_in_brackets(self, at: Token) -> tuple[Type, ...]:
        """Return the types in <> after a name, if all in there are types."""
        if not self.is_next("<"):
            return ()
        begin = self.place
        self.place += 1
        kind = self.type_here()
        if kind is None or not self.is_next(">"):
            self.place = begin
            return ()
        self.place += 1
        return (kind,)

    def braces(self) -> Braces:
        """Return the values in braces."""
        at = self.expect("{")
        parts = []
        while not self.accept("}"):
            parts.append(self.expression())
            if not self.is_next("}"):
                self.expect(",")
        return Braces(at, tuple(parts))

    def arguments(self) -> tuple[Expr, ...]:
        """Return the arguments of a call."""
        self.expect("(")
        parts: list[Expr] = []
        while not self.accept(")"):
            parts.append(self.expression())
            if not self.is_next(")"):
                self.expect(",")
        return tuple(parts)

    def _number(self, at: Token) -> Number:
        words = at.text
        lower = words.lower()
        is_hex, is_binary = lower.startswith("0x"), lower.startswith("0b")
        is_float = "p" in lower if is_hex else any(c in lower for c in ".e")
        body = words.rstrip("uUlLi" if is_hex and not is_float else "uUlLfFhi")
        suffix = words[len(body) :].lower()
        is_float = is_float or suffix in ("f", "h")
        try:
            value: int | float
            if is_float:
                value = float.fromhex(body) if is_hex else float(body)
            else:
                is_octal = not is_hex and body.startswith("0") and body != "0"
                is_octal = is_octal and not is_binary
                value = int(body, 16 if is_hex else 2 if is_binary else 8 if is_octal else 10)
        except (ValueError, OverflowError):
            raise self.fault(f"{shown(at)} is no number", at=at) from None
        dtype = self._number_type(at, value, suffix, is_hex or is_binary)
        if dtype is not None and dtype.is_int and not dtype.min <= value <= dtype.max:
            raise self.fault(f"{shown(at)} does not fit {dtype}", at=at)
        return Number(at, value, dtype)

    def _number_type(
        self, at: Token, value: int | float, suffix: str, is_hex: bool
    ) -> DType | None:
        is_wgsl = self.language.is_wgsl
        if isinstance(value, float):
            if not math.isfinite(value):
                raise self.fault(f"{shown(at)} is greater than any float", at=at)
            names = {"f": dtypes.float32, "h": dtypes.float16}
            if suffix in names:
                return names[suffix]
            if suffix not in ("", "l"):
                raise self.fault(f"{shown(at)} has an unknown suffix", "1.0f", at)
            double = dtypes.float64 if self.language.has_doubles else dtypes.float32
            return None if is_wgsl else double
        if suffix == "u":
            wide = value > dtypes.uint32.max and not is_wgsl
            return dtypes.uint64 if wide else dtypes.uint32
        if suffix == "i" and is_wgsl:
            return dtypes.int32
        if suffix in ("ul", "ull", "lu", "llu"):
            return dtypes.uint64
        if suffix in ("l", "ll"):
            return dtypes.uint64 if is_hex and value > dtypes.int64.max else dtypes.int64
        if suffix:
            raise self.fault(f"{shown(at)} has an unknown suffix", "16u", at)
        if is_wgsl:
            return None
        fitting = [dtypes.int32, *([dtypes.uint32] if is_hex else []), dtypes.int64, dtypes.uint64]
        return next((d for d in fitting if value <= d.max), dtypes.uint64)

    # statements

    @abstractmethod
    def statement(self) -> list[SourceStatement]:
        """Return the statement that stands here; [] for an empty one, several for a declaration of
        several variables."""

    def block(self) -> BlockStatement:
        """Return the block in braces that stands here."""
        at = self.expect("{")
        body: list[SourceStatement] = []
        with self.deeper():
            while not self.is_next("}"):
                if self.token.kind == "end":
                    raise self.fault(f"the brace of line {at.line} does not close", "a `}`")
                body += self.statement()
        self.expect("}")
        return BlockStatement(at, self.end, tuple(body))

    def switch(self) -> SwitchStatement:
        """Return the switch that stands here: in C its cases fall through."""
        at, falls_through = self.expect("switch"), not self.language.is_wgsl
        value = self.expression()
        end = self.end
        opening = self.expect("{")
        cases: list[SwitchCase] = []
        with self.deeper():
            while not self.accept("}"):
                cases.append(self._case(opening))
        return SwitchStatement(at, end, value, tuple(cases), falls_through)

    def _case(self, opening: Token) -> SwitchCase:
        """Return the labels that stand here, and the statements after them."""
        labels: list[Expr] = []
        is_default = False
        while self.is_next("case", "default"):
            if self.next().text == "default":
                is_default = True
            else:
                more = True
                while more and not self.is_next(":", "{"):
                    if self.language.is_wgsl and self.accept("default"):
                        is_default = True
                    else:
                        labels.append(self.expression())
                    more = self.language.is_wgsl and self.accept(",")
            if not self.accept(":") and not self.language.is_wgsl:
                self.expect(":")
        if not labels and not is_default:
            because = f"`case` or `default` is expected here, and {shown(self.token)} stands here"
            raise self.fault(because)
        body: list[SourceStatement] = []
        while not self.is_next("case", "default", "}"):
            if self.token.kind == "end":
                raise self.fault(f"the brace of line {opening.line} does not close", "a `}`")
            body += self.statement()
        return SwitchCase(tuple(labels), is_default, tuple(body))

    def jump(self) -> JumpStatement:
        """Return the break, continue or return that stands here, with its end."""
        at = self.next()
        value = self.expression() if at.text == "return" and not self.is_next(";") else None
        self.expect(";")
        return JumpStatement(at, self.end, at.text, value)  # type: ignore[arg-type]  # one of three

    def assignment(self, at: Token, target: Expr, one: DType | None) -> SourceStatement:
        """Return what begins with the expression `target`: an assignment, a step by a number of the
        type `one`, or the expression alone."""
        if isinstance(target, Unary) and isinstance(target.value, StepOf) and target.sign == "*":
            step = target.value.at
            because = f"{shown(step)} after {shown(at)} steps what {shown(at)} stands before"
            raise self.fault(because, "brackets, as in (*p)++", step)
        if isinstance(target, StepOf):
            number = Number(at, 1, one)
            return AssignmentStatement(at, self.end, target.target, target.sign, number)
        if self.is_next("++", "--"):
            sign = self.next().text[0]
            return AssignmentStatement(at, self.end, target, sign, Number(at, 1, one))
        if self.token.text == "=" or self.token.text in UPDATES:
            sign = self.next().text[:-1]
            value = self.braces() if self.is_next("{") else self.assigned()
            return AssignmentStatement(at, self.end, target, sign, value)
        return EvaluationStatement(at, self.end, target)

    def whole_number(self, value: Expr) -> int:
        """Return a size that the text names. Errors: SourceError where it is not a number."""
        if not isinstance(value, Number) or not isinstance(value.value, int):
            raise self.fault("a number is expected here", at=value.at)
        return int(value.value)
