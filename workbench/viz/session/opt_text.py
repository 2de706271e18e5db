"""The parser of opts in text that a user typed or pasted, which is never evaluated.

It accepts printed opts: `UPCAST("g1", 4)`, `Opt(OptOps.UPCAST, "g1", 4)`, several of them with
commas or on lines, in brackets or not, and the whole of `Kernel.to_python()`, whose arguments of
`.apply(...)` it reads; also `Opt("UPCAST", "g1", 4)`, and what the page shows: `UPCAST g1 4`,
or `upcast:g1:4`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from workbench.base.errors import ParseError
from workbench.base.words import cut
from workbench.ir.opt.opt import Opt, OptKind, OptOps
from workbench.viz.model.opts import WHOLE

MOST_CHARACTERS = 200_000
MOST_OPTS = 100
MOST_TEXT = 60
"""Characters of a text that an error repeats."""
EXAMPLE = 'UPCAST("g1", 4)'
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*|[0-9]{1,9}")


def parse_opts(text: str) -> tuple[Opt, ...]:
    """Return the opts that `text` lists, in order.

    Errors: ParseError for other text.
    """
    if len(text) > MOST_CHARACTERS:
        raise ParseError("cannot read the opts", "the text is too long", EXAMPLE)
    in_words = _opts_in_words(text)
    if in_words is not None:
        return _few(in_words)
    try:
        tree = ast.parse(text.strip())
        opts = [opt for statement in tree.body for opt in _of_statement(statement)]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, ParseError):
            raise
        because = getattr(error, "msg", None) or "it is nested too deeply"
        if because.startswith("invalid syntax"):
            typed = cut(text.strip(), MOST_TEXT)
            because = f"{typed} is neither an opt nor words such as UPCAST g1 4"
        raise ParseError("cannot read the opts", str(because), EXAMPLE) from None
    return _few(opts)


def _few(opts: list[Opt]) -> tuple[Opt, ...]:
    if len(opts) > MOST_OPTS:
        because = f"there are {len(opts)} of them, more than {MOST_OPTS}"
        raise ParseError("cannot read the opts", because, EXAMPLE)
    return tuple(opts)


def _opts_in_words(text: str) -> list[Opt] | None:
    """Return the opts of a text like "UPCAST g1 4, UNROLL r0 whole"; None for any other."""
    rows = [row.strip() for row in re.split(r"[,;\n]", text)]
    parts = [re.split(r"[\s:]+", row) for row in rows if row]
    opts = []
    for op, *arguments in parts:
        op = op.upper()
        is_shown = op in OptOps.__members__ and len(arguments) <= 2
        if not is_shown or not all(map(_WORD.fullmatch, arguments)):
            return None
        axis, arg = ([*map(_value_of, arguments), None, None])[:2]
        opts.append(Opt(OptOps[op], axis, arg))
    return opts or None


def _value_of(word: str) -> int | str:
    if word == WHOLE:
        return 0
    return int(word) if word.isdecimal() else word


def parse_opt(text: str) -> Opt:
    """Return the one opt of `text`. Errors: ParseError for none, or several."""
    opts = parse_opts(text)
    if len(opts) != 1:
        because = f"it holds {len(opts)} opts"
        raise ParseError(f"{cut(text, MOST_TEXT)} is not one opt", because, EXAMPLE)
    return opts[0]


def _of_statement(statement: ast.stmt) -> Iterator[Opt]:
    match statement:
        case ast.ImportFrom(module="workbench"):
            return
        case ast.Assign(value=value) | ast.Expr(value=value):
            yield from _of_value(value)
        case _:
            raise _not_an_opt(statement)


def _of_value(value: ast.expr) -> Iterator[Opt]:
    match value:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _of_value(part)
        case ast.Call(func=ast.Attribute(attr="apply"), args=parts, keywords=[]):
            for part in parts:
                yield from _of_value(part)
        case ast.Call(func=ast.Attribute(value=ast.Name("Kernel"), attr="from_text")):
            return  # a kernel without opts
        case ast.Call(func=ast.Name("Opt"), args=[ast.Constant(str(op)), *parts], keywords=words):
            yield _opt(value, _op_of(ast.Name(op)), parts, words)
        case ast.Call(func=ast.Name("Opt"), args=[op, *parts], keywords=words):
            yield _opt(value, _op_of(op), parts, words)
        case ast.Call(func=function, args=parts, keywords=words):
            yield _opt(value, _op_of(function), parts, words)
        case _:
            raise _not_an_opt(value)


def _op_of(value: ast.expr) -> OptKind:
    match value:
        case ast.Name(name) | ast.Attribute(value=ast.Name("OptOps"), attr=name):
            if name.upper() in OptOps.__members__:
                return OptOps[name.upper()]
    raise _not_an_opt(value)


def _opt(whole: ast.expr, op: OptKind, parts: list[ast.expr], words: list[ast.keyword]) -> Opt:
    fields = dict(zip(("axis", "arg"), map(_literal, parts), strict=False))
    for word in words:
        if word.arg not in ("axis", "arg") or word.arg in fields:
            raise _not_an_opt(whole)
        fields[word.arg] = _literal(word.value)
    if len(parts) > 2:
        raise _not_an_opt(whole)
    return Opt(op, fields.get("axis"), fields.get("arg"))


def _literal(value: ast.expr) -> int | str | None:
    match value:
        case ast.Constant(value=plain) if plain is None or type(plain) in (int, str):
            return plain  # type: ignore[return-value]  # narrowed by type(), not isinstance
        case ast.Name(name):
            raise ParseError(
                f"{cut(name, MOST_TEXT)} is a name without quotes",
                "the name of an axis stands in quotes",
                f'"{cut(name, MOST_TEXT)}", as in {EXAMPLE}',
            )
    raise _not_an_opt(value)


def _not_an_opt(node: ast.AST) -> ParseError:
    names = ", ".join(OptOps.__members__)
    return ParseError(
        f"{cut(ast.unparse(node), MOST_TEXT)} is not an opt", f"there are {names}", EXAMPLE
    )
