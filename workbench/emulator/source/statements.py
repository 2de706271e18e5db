"""The parser of statements that languages like C and WGSL share: blocks, jumps, assignments."""

from __future__ import annotations

from abc import abstractmethod

from workbench.base.dtypes import DType
from workbench.emulator.source.expressions import UPDATES, ExpressionParser
from workbench.emulator.source.syntax import (
    AssignmentStatement,
    BlockStatement,
    EvaluationStatement,
    Expr,
    JumpStatement,
    Number,
    SourceStatement,
)
from workbench.emulator.source.tokens import Token


class StatementParser(ExpressionParser):
    """Reads statements; each language adds its own."""

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

    def jump(self) -> JumpStatement:
        """Return the break, continue or return that stands here, with its end."""
        at = self.next()
        value = self.expression() if at.text == "return" and not self.is_next(";") else None
        self.expect(";")
        return JumpStatement(at, self.end, at.text, value)  # type: ignore[arg-type]  # one of three

    def assignment(self, at: Token, target: Expr, one: DType | None) -> SourceStatement:
        """Return what begins with the expression `target`: an assignment, a step by a number of the
        type `one`, or the expression alone."""
        if self.is_next("++", "--"):
            sign = self.next().text[0]
            return AssignmentStatement(at, self.end, target, sign, Number(at, 1, one))
        if self.token.text == "=" or self.token.text in UPDATES:
            sign = self.next().text[:-1]
            value = self.braces() if self.is_next("{") else self.expression()
            if self.token.text == "=":
                raise self.fault("an assignment in an expression is not followed", "two statements")
            return AssignmentStatement(at, self.end, target, sign, value)
        return EvaluationStatement(at, self.end, target)

    def whole_number(self, value: Expr) -> int:
        """Return a size that the text names. Errors: SourceError where it is not a number."""
        if not isinstance(value, Number) or not isinstance(value.value, int):
            raise self.fault("a number is expected here", at=value.at)
        return int(value.value)
