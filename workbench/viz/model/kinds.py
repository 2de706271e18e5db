"""How each kind of axis looks: letter, name, colour and pattern. Never colour alone.

The colours are Okabe and Ito's, which people with any colour vision tell apart.
"""

from __future__ import annotations

from typing import NamedTuple

from workbench.ir.node.axis import AxisType


class KindStyle(NamedTuple):
    """`letter` and `name` say what `colour` and `pattern` show; `ink` is legible on `colour`."""

    letter: str
    name: str
    colour: str
    pattern: str
    ink: str


# fmt: off
KINDS: dict[AxisType, KindStyle] = {
    AxisType.GLOBAL:       KindStyle("G", "global", "#0072B2", "plain", "#ffffff"),
    AxisType.LOOP:         KindStyle("O", "loop", "#999999", "plain", "#000000"),
    AxisType.LOCAL:        KindStyle("L", "local", "#56B4E9", "dotted", "#000000"),
    AxisType.THREAD:       KindStyle("T", "thread", "#009E73", "dashed", "#000000"),
    AxisType.GROUP_REDUCE: KindStyle("GR", "group", "#D55E00", "hatched", "#000000"),
    AxisType.REDUCE:       KindStyle("R", "reduce", "#D55E00", "plain", "#000000"),
    AxisType.UPCAST:       KindStyle("U", "upcast", "#E69F00", "dotted", "#000000"),
    AxisType.UNROLL:       KindStyle("N", "unroll", "#CC79A7", "dotted", "#000000"),
    AxisType.WARP:         KindStyle("W", "warp", "#F0E442", "hatched", "#000000"),
    AxisType.FILL:         KindStyle("F", "fill", "#F0E442", "plain", "#000000"),
}
# fmt: on
