"""C expressions: words, and how tightly they bind, so that parentheses stand only where needed."""

from __future__ import annotations

Expression = tuple[str, int]
"""An expression and how tightly it binds."""

ATOM, UNARY, MUL, ADD, SHIFT, LESS, EQUAL, AND, XOR, OR, BOTH, EITHER, CHOICE, LOOSE = (
    range(15, 1, -1)
)
"""C's precedences, the tightest first: a name, -a, a*b, a+b, a<<b, a<b, a==b, a&b, a^b, a|b,
a&&b, a||b, a?b:c, and what takes anything."""


def paren(text: Expression, tight: int) -> str:
    """Return the words of an expression, in parentheses if it binds less than `tight`."""
    words, binds = text
    return words if binds >= tight else f"({words})"


def signed(words: str) -> Expression:
    """Return a constant as an expression: a minus binds less than a name."""
    return words, UNARY if words.startswith("-") else ATOM


def call(name: str, *arguments: str) -> Expression:
    """Return the call of a function or builtin."""
    return f"{name}({', '.join(arguments)})", ATOM
