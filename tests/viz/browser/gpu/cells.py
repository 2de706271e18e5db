"""Cells on a canvas, where a reader finds them: a test computes the place of a cell, and the page says
which one stands there."""

from __future__ import annotations

from typing import Any

_POINT = """([name, cell, columns]) => {
  const el = document.querySelector(`[data-key="${name}s"]`), all = el.querySelector(".wb-cells-all");
  const count = Number(el.querySelector("[role=option]").getAttribute("aria-setsize"));
  const height = all.offsetHeight / Math.ceil(count / columns);
  const [x, y] = [cell % columns + 0.5, Math.floor(cell / columns) + 0.5];
  el.scrollIntoView({ block: "center" });
  el.scrollTop = y * height - el.clientHeight / 2;
  const box = all.getBoundingClientRect();
  return [box.left + x * box.width / columns, box.top + y * height];
}"""
"""Scrolls a grid of a number of columns to a cell; returns the point where the cell should be."""
_INK = """([name, x, y]) => {
  const canvas = document.querySelector(`[data-key="${name}s"] canvas`);
  const box = canvas.getBoundingClientRect(), ratio = canvas.width / box.width;
  const { data } = canvas.getContext("2d").getImageData((x - box.left) * ratio, (y - box.top) * ratio, 1, 1);
  return "#" + [...data].slice(0, 3).map((v) => v.toString(16).padStart(2, "0")).join("");
}"""


def pick(page: Any, name: str, cell: int, columns: int) -> None:
    """Click where a cell of a grid should be."""
    page.mouse.click(*page.evaluate(_POINT, [name, cell, columns]))


def hovered(page: Any, name: str, cell: int, columns: int) -> str:
    """Return what the page says where a cell of a grid should be."""
    page.mouse.move(*page.evaluate(_POINT, [name, cell, columns]))
    title: str = page.get_attribute(f'[data-key="{name}s"]', "title")
    return title


def inked(page: Any, name: str, cell: int, columns: int) -> str:
    """Return the colour where a cell of a grid should be."""
    colour: str = page.evaluate(_INK, [name, *page.evaluate(_POINT, [name, cell, columns])])
    return colour


def labels(page: Any, name: str) -> list[str]:
    """Return what a screen reader says of each cell, which a reader walks with keys."""
    page.focus(f'[data-key="{name}s"]')
    page.keyboard.press("Home")
    active = page.locator(f'[data-key="{name}s"] [role=option]')
    count = int(active.get_attribute("aria-setsize"))
    spoken = [active.get_attribute("aria-label")]
    for _ in range(count - 1):
        page.keyboard.press("ArrowRight")
        spoken.append(active.get_attribute("aria-label"))
    return spoken
