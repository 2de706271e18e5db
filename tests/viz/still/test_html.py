"""The HTML: balanced, self-contained, escaped, legible, quick."""

from __future__ import annotations

import pickle
import re
from base64 import b64decode
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from tests.viz.support import array, matmul, softmax
from workbench import nn
from workbench.base.context import Context
from workbench.base.source import SourceLine
from workbench.base.terminal import bundle
from workbench.ir.node.ops import AxisType
from workbench.ir.opt.opt import Opt, OptOps
from workbench.tensor.tensor import Tensor
from workbench.viz import explore, formatters
from workbench.viz.exploration.exploration import MOST_KERNELS
from workbench.viz.model.decisions import draws_numbers
from workbench.viz.model.graph import FAMILIES, PATTERNS, ink
from workbench.viz.page.document import css
from workbench.viz.record.record import build
from workbench.viz.schema.variant import OfferRow
from workbench.viz.still.cards import offers_part, source
from workbench.viz.still.svg import DARK, LIGHT, SANS, kernel_colour

VOID = {"br", "img"}
NAMESPACE = "{http://www.w3.org/2000/svg}"
DATA = "data:image/svg+xml;base64,"


class Checker(HTMLParser):
    """Collects tags and attributes; fails where they do not balance."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(k, v or "") for k, v in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(k, v or "") for k, v in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


def picture(value: object) -> str:
    mime_bundle = bundle(value)
    assert mime_bundle is not None
    assert set(mime_bundle) == {"text/html", "text/plain"}
    return mime_bundle["text/html"]


def check(html: str) -> Checker:
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    assert not checker.tags & {
        "script",
        "iframe",
        "link",
        "object",
        "embed",
        "form",
        "svg",  # GitHub, and JupyterLab where it does not trust a notebook, take it out
    }
    assert not [k for k, _ in checker.attributes if k.startswith("on")]
    assert "://" not in html
    sources = [v for k, v in checker.attributes if k in ("src", "srcset", "href")]
    assert all(v.startswith(DATA) for v in sources), "nothing is fetched"
    assert "url(" not in html and "@import" not in html
    return checker


def values() -> dict[str, object]:
    ex = softmax()
    kernel = ex.kernels[0].apply(Opt(OptOps.UPCAST, "g0", 4))
    compiled = kernel.compile("LLVM")
    return {
        "exploration": ex,
        "nothing": explore(Tensor(2.0)),
        "kernel": kernel,
        "compiled": compiled,
        "pass": next(p for p in compiled.passes if p.matches),
        "decide": next(p for p in ex.passes if p.name == "decide"),
    }


def test_well_formed_and_self_contained() -> None:
    for value in values().values():
        check(picture(value))


def test_what_the_picture_of_an_exploration_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formatters, "DETAIL_S", 60.0)
    html = picture(matmul())
    text = re.sub(r"<style>.*?</style>|<[^>]+>", " ", html, flags=re.DOTALL)
    for words in (
        "1 kernel, 3 copies, on LLVM", "matmul+bias+relu", "sum over axis 2", "p0 out",
        "it is a result that was asked for", "legal opts", "Source", "define void",
        "linearize", "Scheduling: ", "rangeify",
    ):  # fmt: skip
        assert words in text, words
    assert 'alt="The tensor graph, 11 nodes; kernel 1 matmul+bias+relu"' in html


def svg_of(html: str) -> str:
    return b64decode(html.partition(DATA)[2].partition('"')[0]).decode()


def test_the_picture_stands_alone_and_a_table_says_the_same() -> None:
    html = picture(softmax())
    svg = svg_of(html)
    root = ElementTree.fromstring(svg)
    assert (root.get("width"), root.get("height")) in re.findall(
        r'width="(\d+)" height="(\d+)"', html
    )
    assert "var(" not in svg and "currentColor" not in svg, "no page is around it"
    assert "prefers-color-scheme:dark" in svg
    assert svg.count('class="wb-g-region"') == 2
    words = ["".join(t.itertext()) for t in root.iter(f"{NAMESPACE}text")]
    listed = html.partition("The graph as a table")[2].partition("</table>")[0]
    for node in build(softmax(), "first").plan.nodes:
        assert node.label in words and f"<td>{escape(node.label)}</td>" in listed


def test_a_still_has_the_style_of_the_page() -> None:
    """One painter and one sheet: the page chooses of two colours, and a still has both themes."""
    chosen = re.findall(r"--wb-g-([A-Za-z]+): ?light-dark\(([^,]+), ([^)]+)\)", css())
    themed = {name: (light, dark) for name, light, dark in chosen}
    region = list(dict.fromkeys(re.findall(r"--wb-g-region: ?([^;]+);", css())))
    assert {*FAMILIES, "edge"} <= themed.keys() and len(region) == 2
    fonts = re.search(r"--wb-sans: ?([^;]+);", css())
    assert fonts is not None and re.sub(", ", ",", fonts[1]) == SANS
    light, _, dark = svg_of(picture(softmax())).partition("@media(prefers-color-scheme:dark)")
    for in_light, in_dark in [*(themed[name] for name in ("M", "V", "R", "A", "edge")), region]:
        assert in_light in light and in_dark in dark.partition("</style>")[0]
    assert "light-dark" not in light + dark, "some programs that show pictures do not know it"


def test_a_still_is_the_drawing_of_the_page() -> None:
    """Boxes in the order of the plan with their families, frames round what is stored, the bytes
    of what is read from memory, and the titles for which there is room."""
    svg = ElementTree.fromstring(svg_of(picture(softmax())))
    groups = [(g.get("class", "").split(), g) for g in svg.iter(f"{NAMESPACE}g")]
    boxes = [classes for classes, _ in groups if "wb-g-node" in classes]
    record = build(softmax(), "first")
    plan, readings, reading = record.plan, record.readings, record.nodes.reading
    families = [f"wb-g-f{readings[reading[node.n]].family}" for node in plan.nodes]
    assert [next(c for c in box if c.startswith("wb-g-f")) for box in boxes] == families
    stored = [node.stored_by is not None for node in plan.nodes]
    assert ["wb-g-stored" in box for box in boxes] == stored
    texts = {
        kind: ["".join(g.itertext()) for classes, g in groups if f"wb-g-words-{kind}" in classes]
        for kind in ("bytes", "title")
    }
    assert texts == {"bytes": ["12 KiB"] * 2, "title": ["max+exp", "sum+div"]}


def test_kernels_are_numbered_as_in_the_page() -> None:
    """From 1: in the picture, on the cards, in the table and in the words beside it."""
    ex = softmax()
    html = picture(ex)
    first, second = (kernel.title for kernel in ex.kernels)
    badges = re.findall(r'<span class="no">(\d+)</span> ?(?:<b>)?([^<]+)<', html)
    assert badges == [("1", first), ("2", second)] * 2, "the legend, and the cards"
    svg = ElementTree.fromstring(svg_of(html))
    discs = [g for g in svg.iter(f"{NAMESPACE}g") if g.get("class") == "wb-g-badge"]
    numbers = [t.text for disc in discs for t in disc.iter(f"{NAMESPACE}text")]
    assert numbers == ["1", "2"]
    assert f"; kernel 1 {first}; kernel 2 {second}" in html
    cells = re.findall(r"<td>([\d, ]+) \(stored by (\d)\)</td>", html)
    assert cells == [("1", "1"), ("2", "2")]
    many = [array(4 + n) + float(n + 1) for n in range(MOST_KERNELS + 2)]
    listed = picture(explore(*many)).partition("2 more kernels, by title")[2]
    assert re.findall(r"<td>(\d+)</td>", listed)[:2] == ["13", "14"]
    assert "kernel 12: " in str(explore(*many)) and MOST_KERNELS == 12


def test_names_are_escaped() -> None:
    ex = matmul()
    bad = '<script>alert("x")</script>&'
    line = SourceLine(bad, 1, bad)
    kernel = replace(ex.kernels[0], title=bad, line=line)
    html = picture(replace(ex, kernels=(kernel,), line=line))
    assert "script" not in check(html).tags
    ElementTree.fromstring(svg_of(html))
    assert "&lt;script&gt;" in html


def test_a_large_graph_is_said_in_words() -> None:
    x = array(4)
    for _ in range(160):
        x = (x + 1.5).sqrt()
    html = picture(explore(x))
    check(html)
    assert "too many for this picture" in html


def test_many_kernels_are_listed() -> None:
    tensors = [array(4 + n).exp2() for n in range(15)]
    html = picture(explore(*tensors))
    check(html)
    assert "3 more kernels" in html


def test_kernels_that_draw_weights_are_listed_below_the_others() -> None:
    layers = [nn.Linear(8, 16), nn.Linear(16, 4)]
    ex = explore(layers[1](layers[0](array(2, 8)).relu()))
    html = picture(ex)
    check(html)
    cards, _, listed = html.partition("weights: 4 kernels, computed before")
    badges = re.findall(r'<div class="title"><span class="no">(\d+)</span>', cards)
    assert [int(n) - 1 for n in badges] == [
        n for n, kernel in enumerate(ex.kernels) if not draws_numbers(kernel.ast)
    ]
    assert re.findall(r"<td>(\d+)</td>", listed)[:4] == [
        str(n + 1) for n, kernel in enumerate(ex.kernels) if draws_numbers(kernel.ast)
    ]
    random = picture(explore(Tensor.rand(3, 4), Tensor.rand(4, 3)))
    assert "computed before" not in random


def test_details_stop_when_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formatters, "DETAIL_S", 0.0)
    html = picture(matmul())
    check(html)
    assert ".legal_opts()" in html


def test_the_default_opts_say_why() -> None:
    kernel = softmax().kernels[0].optimized()
    html = picture(kernel)
    check(html)
    mime_bundle = bundle(kernel)
    assert mime_bundle is not None and str(kernel.steps) in mime_bundle["text/plain"]
    for step in kernel.steps:
        assert escape(step.why) in html
        assert all(name in html for name, _ in step.counts_in_words)
    assert "Why these opts" not in picture(kernel.apply(*kernel.legal_opts()[:1]))


def test_opts_by_kind() -> None:
    opts = [Opt(OptOps.UPCAST, "g0", 2), Opt(OptOps.ORDER, "a", "b"), Opt(OptOps.UPCAST, "g0", 4)]
    offers = [
        OfferRow(str(o), o.op.name, [], o.op.here, o.op.on_a_gpu, None, "", None, None, False, None)
        for o in opts
    ]
    html = offers_part(offers)
    words = re.findall(r'<div class="capt">(.*?)</div>', html)
    assert words == [escape(OptOps.UPCAST.caption), escape(OptOps.ORDER.caption)]
    groups = re.findall(r'<div class="opts">(.*?)</div>', html)
    assert [re.findall(r"<code>(.*?)</code>", group) for group in groups] == [
        [escape('UPCAST("g0", 2)'), escape('UPCAST("g0", 4)')],
        [escape('ORDER("a", "b")')],
    ]
    assert "3 legal opts" in html and "2 UPCAST, 1 ORDER" in html


def test_a_kernel_is_shown_on_its_own_device() -> None:
    """The card of a kernel that was pickled had the code of the default device."""
    own = explore(Tensor([1.0, 2.0], device="PYTHON") * 2).kernels[0]
    for kernel in (own, pickle.loads(pickle.dumps(own))):
        with Context(LIVE=0):
            html = picture(kernel)
        assert kernel.device == "PYTHON" in html and "device LLVM" not in html


def test_long_source_is_cut() -> None:
    assert "and 500 more lines" in source("\n".join(["x"] * 1500))


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours, as the WCAG defines it."""
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_axis_kind_is_legible_and_named() -> None:
    kinds = list(AxisType)
    assert len({k.letter for k in kinds}) == len({k.badge for k in kinds}) == len(kinds)
    assert {k.pattern for k in kinds} == set(PATTERNS) and len(PATTERNS) == len(kinds)
    assert len({k.caption for k in kinds}) == len({k.words for k in kinds}) == len(kinds)
    assert min(contrast(k.colour, ink(k)) for k in kinds) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_themes_are_legible(theme: dict[str, str]) -> None:
    for word in ("fg", "muted"):
        for ground in ("bg", "card"):
            assert contrast(theme[word], theme[ground]) >= 4.5
    assert min(contrast(kernel_colour(i), "#111111") for i in range(8)) >= 4.5
