"""C expressions: text with its precedence, so that only needed parentheses are written."""

from __future__ import annotations

Expression = tuple[str, int]
"""An expression and how tightly it binds."""

# C's precedences: a greater number binds tighter
ATOM = 15  # a name
UNARY = 14  # -a
MUL = 13  # a * b
ADD = 12  # a + b
SHIFT = 11  # a << b
LESS = 10  # a < b
EQUAL = 9  # a == b
AND = 8  # a & b
XOR = 7  # a ^ b
OR = 6  # a | b
BOTH = 5  # a && b
EITHER = 4  # a || b
CHOICE = 3  # a ? b : c
LOOSE = 2  # what takes anything


def paren(text: Expression, tight: int) -> str:
    """Return the text of an expression, in parentheses if it binds less than `tight`."""
    words, binds = text
    return words if binds >= tight else f"({words})"


def signed(words: str) -> Expression:
    """Return a constant as an expression: a minus binds less than a name."""
    return words, UNARY if words.startswith("-") else ATOM


def call(name: str, *arguments: str) -> Expression:
    """Return the call of a function or builtin."""
    return f"{name}({', '.join(arguments)})", ATOM
