"""The colour and pattern of each kind of axis, in pictures and on the page.

The colours are Okabe and Ito's, which people with any colour vision tell apart; each kind has a
pattern of its own, too, seen on the bars beside a loop's body.
"""

from __future__ import annotations

from typing import NamedTuple

from workbench.ir.node.axis import AxisType
from workbench.viz.schema.record import KindRow

# fmt: off
PATTERNS = {
    "plain":   "linear-gradient({full},{full})",
    "rails":   "linear-gradient(90deg,{full} 1.3px,transparent 1.3px 2.7px,{full} 2.7px)",
    "dotted":  "repeating-linear-gradient({full} 0 4px,{pale} 4px 6px)",
    "dashed":  "repeating-linear-gradient({full} 0 12px,{pale} 12px 16px)",
    "ruled":   "repeating-linear-gradient({full} 0 2px,{pale} 2px 3px)",
    "hatched": "repeating-linear-gradient(135deg,{full} 0 3px,{pale} 3px 5px)",
    "half":    "linear-gradient(90deg,{full} 2px,{pale} 2px)",
    "morse":   "repeating-linear-gradient({full} 0 6px,{pale} 6px 8px,{full} 8px 10px,{pale} 10px"
               " 12px)",
    "slanted": "repeating-linear-gradient(45deg,{full} 0 3px,{pale} 3px 5px)",
    "fine":    "repeating-linear-gradient({pale} 0 3px,{full} 3px 5px)",
}
# fmt: on
"""CSS images by name, with the full colour and a pale one to fill in."""
PALE = "59"
"""Opacity of the pale colour in CSS: a third."""


def pattern(kind: AxisType) -> str:
    """Return the pattern of a kind in its colour, as a CSS image."""
    return PATTERNS[kind.pattern].format(full=kind.colour, pale=kind.colour + PALE)


def ink(kind: AxisType) -> str:
    """Return the colour of letters on the colour of a kind: the one that has more contrast."""
    light = _luminance(kind.colour) + 0.05
    return "#ffffff" if 1.05 / light > light / 0.05 else "#000000"


def _luminance(colour: str) -> float:
    """Return the relative luminance of a colour, from 0 to 1, as WCAG defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


class KindLook(NamedTuple):
    """How text and pictures show a kind of axis: its letter, in `ink` on its colour or pattern,
    its name, and what it is for."""

    letter: str
    name: str
    caption: str
    colour: str
    ink: str
    pattern: str


KIND_LOOKS = {
    k.name: KindLook(k.badge, k.words, k.caption, k.colour, ink(k), pattern(k)) for k in AxisType
}
"""The looks by the name of the kind."""


def style_rules() -> str:
    """Return the style of every kind for the page: a letter's colours, and the pattern of bars."""
    rules = [
        f".wb-k-{name} {{ --kind: {look.colour}; --ink: {look.ink}; }}\n"
        f".wb-k.wb-k-{name} {{ background: {look.pattern}; }}"
        for name, look in KIND_LOOKS.items()
    ]
    return "\n".join(rules)


def kind_rows() -> dict[str, KindRow]:
    """Return a row for every kind, by name."""
    return {
        name: KindRow(look.letter, look.name, look.caption) for name, look in KIND_LOOKS.items()
    }
