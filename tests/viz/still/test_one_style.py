"""Still pictures and the page have one style: shapes, colours, fonts."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

from check_page import OFFLINE, deno

from tests.viz.support import softmax
from workbench.viz.model.graph import FAMILIES, folded
from workbench.viz.page.document import css
from workbench.viz.record.record import build
from workbench.viz.schema.record import Shape
from workbench.viz.still.picture import picture
from workbench.viz.still.svg import DARK, LIGHT, graph_svg, outline
from workbench.viz.still.svg import SVG_STYLE as STYLE

THEMED = re.compile(r"--wb-g-(\w+): ?([^;]+);")


def test_colours_are_those_of_the_table() -> None:
    """The page says each twice a theme: for a system's choice and for JupyterLab's."""
    said: dict[str, list[str]] = {}
    for name, value in THEMED.findall(css()):
        said.setdefault(name, []).append(value)
    wanted = {f.letter: [f.light, f.dark] for f in FAMILIES}
    wanted |= {"edge": [LIGHT["outline"], DARK["outline"]], "region": [LIGHT["tint"], DARK["tint"]]}
    assert {name: said[name] for name in wanted} == {
        name: both * 2 for name, both in wanted.items()
    }
    for light, dark in wanted.values():
        assert light in STYLE and dark in STYLE


def test_shapes_are_those_of_the_page(capfd: Any) -> None:
    script, shapes = "tests/viz/still/outlines.js", get_args(Shape)
    assert deno("run", "--quiet", "--no-check", *OFFLINE, script, *shapes) == 0
    drawn = json.loads(capfd.readouterr().out)
    assert drawn == {shape: outline(shape, 96, 34) for shape in shapes}
    assert {family.shape for family in FAMILIES} <= set(shapes)


def test_texts_are_those_of_the_page() -> None:
    fonts = re.findall(r"font-family:([^;}]+)", STYLE)
    assert fonts
    assert f"--wb-sans:{fonts[0]}" in re.sub(r"([,:]) ", r"\1", css())
    assert "font-size:12px" in STYLE and ".small{font-size:10px}" in STYLE


def test_a_value_looks_alike_in_both() -> None:
    ex = softmax()
    svg = graph_svg(picture(folded(ex.graph)))
    boxes = re.findall(r'<path class="node (\w)( stored)?"', svg)
    record = build(ex)
    drawn = record.plan.nodes
    reading = record.nodes.reading
    families = [record.readings[reading[node.n]].family for node in drawn]
    assert [letter for letter, _ in boxes] == families
    stored = [node.stored_by is not None for node in drawn]
    assert [bool(mark) for _, mark in boxes] == stored
