"""Tokens of a text in a language like C, each with its line and column; comments, conditions and
macros of the preprocessor are resolved."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from workbench.base.errors import ParseError

MOST_TOKENS = 200_000
"""Most tokens of a text, with its macros expanded."""
MOST_OF_MACRO = 1000
"""Most tokens of a macro, with the macros in it and their names."""
_MOST_SHOWN = 40
"""Most letters of a token in a message."""
_PATTERN = re.compile(
    r"(?P<space>(?:[ \t\r\f\v]|\\\r?\n)+)|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<newline>\n)"
    r"|(?P<number>0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*(?:[pP][+-]?\d+)?[uUlLfFhi]*"
    r"|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[uUlLfFhi]*)"
    r'|(?P<name>[A-Za-z_]\w*)|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<sign><<=|>>=|\+\+|--|->|::|\[\[|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]="
    r"|[-+*/%&|^~!<>=?:;,.(){}\[\]@#])",
    re.DOTALL,
)
_CONDITION = re.compile(r"(\w+)\s*(>=|<=|==|!=|>|<)\s*(\d+)\s*\Z")


class Token(NamedTuple):
    """A token: its kind ("number", "name", "string", "sign" or "end"), its text, and its place in
    the text: line and column, from 1, and offset."""

    kind: str
    text: str
    line: int
    column: int
    offset: int


class SourceError(ParseError):
    """A text that the emulator cannot read: `line` and `column` are those of its fault, from 1."""

    def __init__(self, at: Token, because: str, hint: str = ""):
        super().__init__("the emulator cannot read this", because, hint)
        self.at = at
        self.placed(at.line, at.column)


def shown(token: Token) -> str:
    """Return a token in words: `for`, or the end of the text."""
    if token.kind == "end":
        return "the end of the text"
    cut = token.text if len(token.text) <= _MOST_SHOWN else token.text[:_MOST_SHOWN] + ".."
    return f"`{cut}`"


def tokens_of(text: str, defined: dict[str, int]) -> list[Token]:
    """Return the tokens of a text, the last one of kind "end". `defined` has the names that the
    compiler of the language defines, with their values.

    Errors: SourceError for a character that begins no token, an unknown line of the preprocessor,
    and a text of too many tokens.
    """
    macros: dict[str, list[Token]] = {}
    tokens: list[Token] = []
    is_read = [True]
    line_tokens: list[Token] = []
    for token in _raw(text):
        if token.kind not in ("newline", "end"):
            line_tokens.append(token)
            continue
        if line_tokens and line_tokens[0].text == "#":
            _directive(line_tokens, macros, defined, is_read)
        elif is_read[-1]:
            tokens += _expanded(line_tokens, macros)
        if len(tokens) > MOST_TOKENS:
            because = f"the text has more than {MOST_TOKENS:,} words and signs"
            raise SourceError(token, because, "a shorter text")
        line_tokens = []
        if token.kind == "end":
            if len(is_read) > 1:
                raise SourceError(token, "an #if has no #endif", "an #endif")
            tokens.append(token)
    return tokens


def _raw(text: str) -> Iterator[Token]:
    line, begin, offset = 1, 0, 0
    while offset < len(text):
        match = _PATTERN.match(text, offset)
        if match is None:
            at = Token("sign", text[offset], line, offset - begin + 1, offset)
            raise SourceError(at, f"{shown(at)} begins nothing in this language")
        kind, words = match.lastgroup or "", match[0]
        if words == "/" and text.startswith("/*", offset):
            at = Token("sign", "/*", line, offset - begin + 1, offset)
            raise SourceError(at, "this comment does not end", "*/")
        if kind not in ("space", "comment"):
            yield Token(kind, words, line, offset - begin + 1, offset)
        newlines = words.count("\n")
        if newlines:
            line, begin = line + newlines, offset + words.rindex("\n") + 1
        offset = match.end()
    yield Token("end", "", line, offset - begin + 1, offset)


def _expanded(tokens: list[Token], macros: dict[str, list[Token]]) -> list[Token]:
    """Return tokens with macros replaced; their tokens stand at the place of the macro's name."""
    result: list[Token] = []
    for token in tokens:
        if token.kind != "name" or token.text not in macros:
            result.append(token)
            continue
        place = token.line, token.column, token.offset
        result += [Token(word.kind, word.text, *place) for word in _macro_words(token, macros)]
    return result


def _macro_words(name: Token, macros: dict[str, list[Token]]) -> list[Token]:
    """Return the tokens of a macro. Macros in it are those of the place where it is used; a name
    inside of its own macro stays."""
    result: list[Token] = []
    left: list[tuple[Token, frozenset[str]]] = [(name, frozenset())]
    count = 0
    while left:
        word, around = left.pop()
        count += 1
        if count > MOST_OF_MACRO:
            because = f"the macro {name.text} has more than {MOST_OF_MACRO:,} words and signs"
            raise SourceError(name, because, "a function")
        if word.kind == "name" and word.text in macros and word.text not in around:
            left += [(each, around | {word.text}) for each in reversed(macros[word.text])]
        else:
            result.append(word)
    return result


def _directive(
    tokens: list[Token],
    macros: dict[str, list[Token]],
    defined: dict[str, int],
    is_read: list[bool],
) -> None:
    """Obey a line of the preprocessor; the last of `is_read` says whether lines here are read."""
    at, *words = tokens
    name = words[0].text if words else ""
    rest = " ".join(word.text for word in words[1:])
    if name in ("if", "ifdef", "ifndef"):
        is_read.append(is_read[-1] and _holds(at, name, rest, {*macros}, defined))
    elif name in ("else", "endif"):
        if len(is_read) == 1:
            raise SourceError(at, f"#{name} has no #if before it")
        was_read = is_read.pop()
        if name == "else":
            is_read.append(is_read[-1] and not was_read)
    elif name == "elif":
        raise SourceError(at, "#elif is not supported", "#else, and an #if inside of it")
    elif not is_read[-1]:
        return
    elif name == "define":
        if len(words) < 2 or words[1].kind != "name":
            raise SourceError(at, "#define has no name", "#define TILE 16")
        after = words[1].offset + len(words[1].text)
        if len(words) > 2 and words[2].text == "(" and words[2].offset == after:
            because = f"the macro {words[1].text} has arguments"
            raise SourceError(at, because, "a function, or the words themselves")
        macros[words[1].text] = words[2:]
    elif name == "undef":
        macros.pop(rest, None)
    elif name not in ("include", "pragma"):
        raise SourceError(at, f"#{name} is not known", "#define, #if, #else, #endif")


def _holds(at: Token, kind: str, rest: str, macros: set[str], defined: dict[str, int]) -> bool:
    if kind != "if":
        return (rest in macros or rest in defined) == (kind == "ifdef")
    if rest in ("0", "1"):
        return rest == "1"
    match = _CONDITION.match(rest)
    if match is None or match[1] not in defined:
        names = ", ".join(defined) or "none"
        because = f"`#if {rest[:_MOST_SHOWN]}` compares no known name with a number"
        raise SourceError(at, because, f"one of the known names: {names}")
    value, bound = defined[match[1]], int(match[3])
    return {
        ">=": value >= bound,
        "<=": value <= bound,
        "==": value == bound,
        "!=": value != bound,
        ">": value > bound,
        "<": value < bound,
    }[match[2]]
