"""HTML elements: escaped text, folds, tables of passes and opts. Strings in, strings out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from workbench.viz.model.kinds import KIND_LOOKS
from workbench.viz.still.style import STYLE

MOST_LINES = 1000
"""Most lines of code in one block."""


def page(*parts: str) -> str:
    """Return parts as one self-contained fragment with its own style sheet."""
    return f'<div class="wb-ex"><style>\n{STYLE}\n</style>{"".join(parts)}</div>'


def tag(name: str, content: str, kind: str = "", **more: str) -> str:
    """Return an element around `content`, which is HTML already; attributes are escaped."""
    pairs = ({"class": kind} if kind else {}) | more
    attributes = "".join(f' {key}="{escape(value)}"' for key, value in pairs.items())
    return f"<{name}{attributes}>{content}</{name}>"


def code(words: str) -> str:
    """Return text as inline code."""
    return tag("code", escape(words))


def source(words: str) -> str:
    """Return text of several lines as a block of code, cut where it is very long."""
    lines = words.split("\n")
    if len(lines) > MOST_LINES:
        more = f"... and {len(lines) - MOST_LINES:,} more lines"
        words = "\n".join([*lines[:MOST_LINES], more])
    return tag("pre", escape(words), "src")


def fold(summary: str, body: str, is_open: bool = False) -> str:
    """Return `body` under a line that shows and hides it; both are HTML."""
    state = " open" if is_open else ""
    return f"<details{state}><summary>{summary}</summary>{tag('div', body, 'body')}</details>"


def muted(words: str) -> str:
    """Return text in a muted colour."""
    return tag("span", escape(words), "mu")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], kinds: Sequence[str] = ()) -> str:
    """Return a table of cells that are HTML already; `kinds` are the columns' classes."""
    kinds = kinds or [""] * len(heads)
    head = "".join(tag("th", h, k) for h, k in zip(heads, kinds, strict=True))
    body = "".join(
        tag("tr", "".join(tag("td", c, k) for c, k in zip(row, kinds, strict=True))) for row in rows
    )
    markup = f"<table><thead>{tag('tr', head)}</thead><tbody>{body}</tbody></table>"
    return tag("div", markup, "scroll")


def chip(kind: str) -> str:
    """Return the letter of an axis kind on its colour."""
    look = KIND_LOOKS[kind]
    paint = f"color:{look.ink};background-color:{look.colour}"
    return tag("span", look.letter, "chip", style=paint, title=look.name)


def bars(around: Sequence[str], step: int = 16) -> str:
    """Return the style of a cell inside loops: a bar per loop, in its colour and pattern."""
    layers = [
        f"{KIND_LOOKS[kind].pattern} {8 + step * depth}px 0/5px 100% no-repeat"
        for depth, kind in enumerate(around)
    ]
    paint = f"background:{','.join(layers)};" if layers else ""
    return f"{paint}padding-left:{8 + step * len(around)}px"
