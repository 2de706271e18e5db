"""A reader who sees little, or uses no mouse, can use the page: axe-core, whose rules are those of
WCAG 2, reports nothing serious of any scene, in light and in dark: in a short run every other scene
of one page, the scenes between them of another one, and each in one theme.

What axe cannot see has its tests elsewhere: that keys lead everywhere (page/test_keys.py), and the
contrast of text in pictures (page/test_looks.py). More scenes are in scans/.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import LONG
from tests.viz.browser.browser import leave, opened, session_page
from tests.viz.browser.scans.acts import click, press, unfold_everything
from tests.viz.browser.scans.scan import THEMES, barriers
from tests.viz.browser.scans.scenes import Scenes
from tests.viz.record import models
from tests.viz.record.support import exported, plain
from tests.viz.support import matmul, softmax
from workbench.viz import explore
from workbench.viz.record.record import build

Record = dict[str, Any]

SCENES: Scenes = {
    "Tune, a loop and a line": (
        press("1"), click(".wb-loops [data-item]"), click(".wb-code-body [data-line]"),
    ),
    "Tune, an opt": (click(".wb-offer[data-opt]"),),
    "Tune, what is not legal": (press("1"), click("[data-key=refused-true]")),
    "Tune, machine code": (click("[data-key=code-asm]"), unfold_everything),
    "Rewrites, a step": (press("2 j j"), unfold_everything),
    "Rewrites, the whole graph": (press("g g"),),
    "Plan": (press("3"),),
    "Plan, a decision": (click(".wb-plan-list [data-item]"), unfold_everything),
    "Plan, unfolded": (press("3 o o"),),
    "Plan, the film": (press("s j j"),),
    "Side by side": (press("1 4"), click(".wb-side [data-line] >> nth=9")),
    "Board": (press("0"),),
    "help": (press("1 ?"),),
    "export": (press("? e"),),
}  # fmt: skip
"""What is done from one scene to the next."""
FEW = ("Rewrites, a step", "Plan", "Plan, unfolded", "Side by side")
"""Those in which many kernels look unlike few."""
LIVE: Scenes = {
    "an opt of a variant": (
        press("1"), click("[role=treeitem]:has-text('auto')"),
        click("[aria-label='opts of this variant'] [data-item]"),
    ),
    "the editor": (click(".wb-code-bar [data-key=edit]"),),
}  # fmt: skip
"""Where Python answers."""


@pytest.fixture(scope="module")
def records() -> dict[str, Record]:
    explorations = {
        "softmax": softmax(),
        "matmul": matmul(),
        "many kernels": explore(models.perceptron(12).softmax(-1)),
    }
    return {name: plain(build(ex)) for name, ex in explorations.items()}


@pytest.fixture
def scan(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Show some HTML as wide as that; return what axe says of the scenes that follow, by scene: of
    every `step`th from `start` on, in both themes or in one after the other, from the `first`."""
    pages = []

    def scan_scenes(
        html: str, width: int, scenes: Scenes, first: str = "", start: int = 0, step: int = 1
    ) -> dict[str, list[str]]:
        path = tmp_path / f"{len(pages)}.html"
        path.write_text(html, encoding="utf-8")
        page = opened(browser, path, width=width)
        pages.append(page)
        findings = {}
        alternate = itertools.cycle(THEMES if first == THEMES[0] else THEMES[::-1])
        for number, (name, acts) in enumerate(scenes.items()):
            for act in acts:
                act(page)
            if number % step != start:
                continue
            themes = [next(alternate)] if first else THEMES
            for theme, texts in barriers(page, themes).items():
                findings[f"{name}, {theme}"] = texts
        return findings

    yield scan_scenes
    for page in pages:
        leave(browser, page)


@pytest.mark.parametrize(("name", "width", "start"), [("softmax", 1400, 0), ("matmul", 800, 1)])
def test_no_scene_has_a_serious_finding(
    scan: Any, records: dict[str, Record], name: str, width: int, start: int
) -> None:
    html = exported(records[name])
    if LONG:
        assert scan(html, width, SCENES) == {}
    else:
        assert scan(html, width, SCENES, THEMES[start], start, step=2) == {}


def test_nor_has_one_of_many_kernels(scan: Any, records: dict[str, Record]) -> None:
    scenes = {name: SCENES[name] for name in FEW}
    assert scan(exported(records["many kernels"]), 953, scenes, "" if LONG else "dark") == {}


def test_nor_has_what_needs_python(scan: Any, records: dict[str, Record]) -> None:
    assert scan(session_page(records["matmul"]), 1400, LIVE, "" if LONG else "light") == {}


def test_what_is_wrong_is_reported(scan: Any, records: dict[str, Record]) -> None:
    """A scan of nothing would find nothing."""
    faint = '<p style="color: #bbb; background: #fff">faint</p><img src="">'
    html = exported(records["matmul"]).replace("</body>", f"{faint}</body>")
    findings = scan(html, 1400, {"Tune": (press("1"),)})
    assert "color-contrast" in str(findings["Tune, dark"])
    assert "image-alt" in str(findings["Tune, light"])
