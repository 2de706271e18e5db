"""Tokens of a text in a language like C, each with its line and column; comments, conditions and
macros of the preprocessor are resolved."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from workbench.base.errors import ParseError, plural

MOST_TOKENS = 200_000
"""Most tokens of a text, with its macros expanded."""
MOST_OF_MACRO = 1000
"""Most tokens of a macro, with the macros in it and their names."""
_MOST_SHOWN = 40
"""Most letters of a token in a message."""
_PATTERN = re.compile(
    r"(?P<space>(?:[ \t\r\f\v]|\\\r?\n)+)|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<newline>\n)"
    r"|(?P<number>0[bB][01]+[uUlL]*"
    r"|0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*(?:[pP][+-]?\d+)?[uUlLfFhi]*"
    r"|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[uUlLfFhi]*)"
    r'|(?P<name>[A-Za-z_]\w*)|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<letter>'[^'\\\n]')"
    r"|(?P<sign><<=|>>=|\+\+|--|->|::|\[\[|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]="
    r"|[-+*/%&|^~!<>=?:;,.(){}\[\]@#])",
    re.DOTALL,
)
_CONDITION = re.compile(r"(\w+)\s*(>=|<=|==|!=|>|<)\s*(\d+)\s*\Z")
_DEFINED = re.compile(r"(! )?defined (?:\( )?(\w+)(?: \))?\Z")


class Token(NamedTuple):
    """A token: its kind ("number", "name", "string", "letter", "sign" or "end"), its text, and its
    place in the text: line and column, from 1, and offset."""

    kind: str
    text: str
    line: int
    column: int
    offset: int


class _Macro(NamedTuple):
    """A macro: its words, and the names of its arguments (None: it takes none)."""

    parameters: tuple[str, ...] | None
    words: list[Token]


class _Conditional(NamedTuple):
    """A branch of an #if: whether its lines are read, and whether those of a later one may be."""

    is_read: bool
    may_follow: bool


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


def tokens_of(text: str, defined: dict[str, int], has_macros: bool = True) -> list[Token]:
    """Return the tokens of a text, the last one of kind "end". `defined` has the names that the
    compiler of the language defines, with their values; `has_macros`: the language has a
    preprocessor.

    Errors: SourceError for a character that begins no token, an unknown line of the preprocessor,
    and a text of too many tokens.
    """
    macros: dict[str, _Macro] = {}
    tokens: list[Token] = []
    branches = [_Conditional(is_read=True, may_follow=False)]
    line_tokens: list[Token] = []
    for token in _raw(text):
        if token.kind not in ("newline", "end"):
            line_tokens.append(token)
            continue
        is_end = token.kind == "end"
        if line_tokens and line_tokens[0].text == "#":
            if not has_macros:
                because = "this language has no preprocessor"
                raise SourceError(line_tokens[0], because, "const N: i32 = 16;")
            _directive(line_tokens, macros, defined, branches)
        elif branches[-1].is_read:
            is_last = is_end or len(line_tokens) > MOST_OF_MACRO
            expanded = _expanded(line_tokens, macros, is_last)
            if expanded is None:  # the arguments of a macro go on in the next line
                continue
            tokens += expanded
        if len(tokens) > MOST_TOKENS:
            because = f"the text has more than {MOST_TOKENS:,} words and signs"
            raise SourceError(token, because, "a shorter text")
        line_tokens = []
        if is_end:
            if len(branches) > 1:
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


def _expanded(tokens: list[Token], macros: dict[str, _Macro], is_last: bool) -> list[Token] | None:
    """Return tokens with macros replaced; None where the arguments of one do not end here, unless
    no line after them belongs to it (`is_last`). Words of a macro stand where its name does."""
    result: list[Token] = []
    place = 0
    while place < len(tokens):
        token, begin = tokens[place], place
        place += 1
        macro = macros.get(token.text) if token.kind == "name" else None
        if macro is None:
            result.append(token)
            continue
        if macro.parameters is not None and place < len(tokens) and tokens[place].text == "(":
            depth = 0
            while place < len(tokens):
                depth += (tokens[place].text == "(") - (tokens[place].text == ")")
                place += 1
                if depth == 0:
                    break
            if depth and not is_last:
                return None
        result += _macro_words(tokens[begin:place], macros)
    return result


def _macro_words(call: list[Token], macros: dict[str, _Macro]) -> list[Token]:
    """Return the tokens of a macro with its arguments. Macros in it are those of the place where it
    is used; a name inside of its own macro stays."""
    name = call[0]
    result: list[Token] = []
    left: list[tuple[Token, frozenset[str]]] = [(each, frozenset()) for each in reversed(call)]
    count = 0
    while left:
        word, around = left.pop()
        count += 1
        if count > MOST_OF_MACRO:
            because = f"the macro {name.text} has more than {MOST_OF_MACRO:,} words and signs"
            raise SourceError(name, because, "a function")
        macro = macros.get(word.text) if word.kind == "name" and word.text not in around else None
        takes = macro is not None and macro.parameters is not None
        if macro is None or takes and not (left and left[-1][0].text == "("):
            result.append(word)
            continue
        given = _given(left, macro.parameters or (), word) if takes else {}
        inside = around | {word.text}
        body: list[tuple[Token, frozenset[str]]] = []
        for each in macro.words:
            own = given.get(each.text) if each.kind == "name" else None
            placed = Token(each.kind, each.text, word.line, word.column, word.offset)
            body += [(placed, inside)] if own is None else own
        left += reversed(body)
    return result


def _given(
    left: list[tuple[Token, frozenset[str]]], parameters: tuple[str, ...], name: Token
) -> dict[str, list[tuple[Token, frozenset[str]]]]:
    """Take the arguments of a macro from the words that are left; return them by name."""
    parts: list[list[tuple[Token, frozenset[str]]]] = [[]]
    depth = 0
    while left:
        word = left.pop()
        text = word[0].text
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        if depth == 0:
            break
        if text == "," and depth == 1:
            parts.append([])
        elif text != "(" or depth > 1:
            parts[-1].append(word)
    if depth:
        raise SourceError(name, f"the arguments of the macro {name.text} do not end", "a `)`")
    if not parameters and parts == [[]]:
        return {}
    if len(parts) != len(parameters):
        takes, gets = plural(len(parameters), "argument"), len(parts)
        raise SourceError(name, f"the macro {name.text} takes {takes}, and gets {gets}")
    return dict(zip(parameters, parts, strict=True))


def _directive(
    tokens: list[Token],
    macros: dict[str, _Macro],
    defined: dict[str, int],
    branches: list[_Conditional],
) -> None:
    """Obey a line of the preprocessor; the last of `branches` says whether lines here are read."""
    at, *words = tokens
    name = words[0].text if words else ""
    rest = " ".join(word.text for word in words[1:])
    if name in ("if", "ifdef", "ifndef"):
        is_read = branches[-1].is_read
        holds = is_read and _holds(at, name, rest, macros, defined)
        branches.append(_Conditional(holds, is_read and not holds))
    elif name in ("elif", "else", "endif"):
        if len(branches) == 1:
            raise SourceError(at, f"#{name} has no #if before it")
        before = branches.pop()
        if name != "endif":
            may = before.may_follow
            holds = may and (name == "else" or _holds(at, "if", rest, macros, defined))
            branches.append(_Conditional(holds, name == "elif" and may and not holds))
    elif not branches[-1].is_read:
        return
    elif name == "define":
        _define(at, words[1:], macros)
    elif name == "undef":
        macros.pop(rest, None)
    elif name == "error":
        raise SourceError(at, f"#error: {rest[:_MOST_SHOWN]}")
    elif name not in ("include", "pragma"):
        raise SourceError(at, f"#{name} is not known", "#define, #if, #else, #endif")


def _define(at: Token, words: list[Token], macros: dict[str, _Macro]) -> None:
    """Add the macro of a #define."""
    if not words or words[0].kind != "name":
        raise SourceError(at, "#define has no name", "#define TILE 16")
    name, *words = words
    parameters: tuple[str, ...] | None = None
    if words and words[0].text == "(" and words[0].offset == name.offset + len(name.text):
        end = next((i for i, word in enumerate(words) if word.text == ")"), 0)
        inside = words[1:end]
        names, commas = inside[::2], inside[1::2]
        is_list = all(n.kind == "name" for n in names) and all(c.text == "," for c in commas)
        if not end or not is_list or len(inside) % 2 == 0 and inside:
            raise SourceError(at, f"{name.text} has no list of names in ()", "#define ADD(a, b) ..")
        parameters, words = tuple(n.text for n in names), words[end + 1 :]
    if any(word.text == "#" for word in words):
        because = f"`#` in the macro {name.text} is not supported"
        raise SourceError(at, because, "a function, or the words themselves")
    macros[name.text] = _Macro(parameters, words)


def _holds(
    at: Token, kind: str, rest: str, macros: dict[str, _Macro], defined: dict[str, int]
) -> bool:
    """Whether the condition of an #if, #ifdef or #ifndef holds."""
    if kind != "if":
        return (rest in macros or rest in defined) == (kind == "ifdef")
    asked = _DEFINED.match(rest)
    if asked is not None:
        return (asked[2] in macros or asked[2] in defined) == (asked[1] is None)
    numbers = defined | {
        name: int(macro.words[0].text)
        for name, macro in macros.items()
        if len(macro.words) == 1 and macro.words[0].text.isdecimal()
    }
    if rest.isdecimal() or rest in numbers:
        return (int(rest) if rest.isdecimal() else numbers[rest]) != 0
    match = _CONDITION.match(rest)
    if match is None or match[1] not in numbers:
        names = ", ".join(numbers) or "none"
        because = f"`#if {rest[:_MOST_SHOWN]}` compares no known name with a number"
        raise SourceError(at, because, f"one of the known names: {names}")
    value, bound = numbers[match[1]], int(match[3])
    return {
        ">=": value >= bound,
        "<=": value <= bound,
        "==": value == bound,
        "!=": value != bound,
        ">": value > bound,
        "<": value < bound,
    }[match[2]]
