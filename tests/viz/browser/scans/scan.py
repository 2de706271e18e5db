"""What two scans find in a page as it stands: axe-core, whose rules are those of WCAG 2, and the words
and signs that nothing explains."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from axe_playwright_python.base import AXE_FILE_PATH

from tests.viz.browser.browser import drawn

Finding = str
THEMES = ("dark", "light")

_ONE_OF_EACH = """() => {
  axe.configure({ rules: [{ id: "color-contrast", selector: "[data-look]" }] });
  const looks = new Set();
  const groundOf = (e) => {
    const { backgroundColor, backgroundImage, opacity, filter } = getComputedStyle(e);
    const all = `${backgroundColor} ${backgroundImage} ${opacity} ${filter}`;
    return all === "rgba(0, 0, 0, 0) none 1 none" ? "" : all;
  };
  window.markLooks = () => {
    const grounds = new Map();
    const ground = (e) => grounds.get(e) ?? (grounds.set(e, groundOf(e)), grounds.get(e));
    for (const e of document.querySelectorAll("[data-look]")) delete e.dataset.look;
    for (const e of document.querySelectorAll("body, body *")) {
      const hasText = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
      if (!hasText && !e.matches("input, select, textarea") || !e.checkVisibility()) continue;
      const { color, fontSize, fontWeight, textShadow } = getComputedStyle(e);
      const isOff = e.closest(":disabled, [aria-disabled=true]") !== null;
      const look = [e.localName, color, fontSize, fontWeight, textShadow, isOff];
      for (let at = e; at; at = at.parentElement) look.push(ground(at));
      for (const { x, y, width, height } of e.getClientRects()) {
        const below = document.elementsFromPoint(x + width / 2, y + height / 2).map(ground);
        look.push(...below.slice(0, below.findIndex((text) => text.startsWith("rgb(")) + 1));
      }
      const key = look.filter((part) => part !== "").join("|");
      if (!looks.has(key)) e.dataset.look = "";
      looks.add(key);
    }
  };
}"""
"""The rule of contrast takes most of axe's time, and most texts of a page are lines of code. From now on
it is asked of the first text of each look: its colours and sizes, on the same ground."""

_AXE = """async (rules) => {
  const runOnly = rules.length ? rules : undefined;
  markLooks();
  const { violations } = await axe.run(document, { runOnly, resultTypes: ["violations"] });
  return violations.filter(({ impact }) => ["serious", "critical"].includes(impact))
    .flatMap(({ id, impact, nodes }) => nodes.map(({ html, any, all, none }) =>
      `${id}: ${html.slice(0, 200)}: ${[...any, ...all, ...none].map((c) => c.message).join("; ")}`));
}"""
"""Returns what axe calls serious or critical, by some of its rules or by all: the rule, the element,
what is wrong."""
_OF_COLOURS = ["color-contrast", "link-in-text-block"]
"""All that another theme can change."""


_PLAIN = frozenset("""
    add again ask because best cannot copied did dismiss done element end estimated find fits fold
    forced found from full guess hide input it its kernel line loop measured memory name needs not
    nothing of one or path predicted python read run running save search session shape show step
    stop the then time timed timing to try value which
    x y e a b c
""".split())  # fmt: skip
"""Words of everyday language, and of the names in the expressions of the tests."""

_UNEXPLAINED = r"""(plain) => {
  const own = (e) =>
    [...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data).join(" ").trim();
  const says = (e) =>
    e.getAttribute("title") ?? [...e.children].find((c) => c.localName === "title")?.textContent;
  const isExplained = (e) => {
    const text = e.textContent.trim();
    for (let at = e; at && !at.matches(".wb"); at = at.parentElement) {
      const title = says(at)?.trim();
      if (title && title !== text) return true;
    }
    return false;
  };
  const isCode = (e) => e.closest(".wb-code-body, .wb-source, .wb-expr, .wb-rw-pattern");
  const isFigure = (text) =>
    /^<?[\d.,]+ ?(%|ns|µs|ms|s|[KMGT]?i?B|[kMG]|GFLOP\/s)?( [\d.,]+ ?(ns|µs|ms|s))?$/.test(text);
  const isPlain = (text) => text.toLowerCase().split(/[\s.,:;()?]+/).every((w) =>
    !w || plain.includes(w) || /^\d+$/.test(w));
  const where = (e) => `${e.parentElement.getAttribute("class")} > ${e.getAttribute("class")}`;
  const missing = new Set();
  for (const e of document.querySelectorAll(".wb *")) {
    if (!e.getClientRects().length || e.closest(".wb-g-svg, .wb-words-sheet, option")) continue;
    if (e.localName === "title" || isCode(e)) continue;
    const text = own(e);
    const isMark = !text && e.matches("i, canvas, path, circle, rect, line");
    const isLabel = text && text.length <= 32 && text.split(/\s+/).length <= 4 && !isFigure(text);
    if (!isMark && !(isLabel && !isPlain(text))) continue;
    if (!isExplained(e)) missing.add(`${text || e.localName} in ${where(e)}`);
  }
  return [...missing];
}"""
"""Returns the short texts and the marks that one can see and that nothing explains."""


@cache
def _axe() -> str:
    return Path(AXE_FILE_PATH).read_text(encoding="utf-8") + "; null"


def barriers(page: Any, themes: Sequence[str] = THEMES) -> dict[str, list[Finding]]:
    """Return by theme what axe calls serious or critical; the page is left in the last one, in which
    all rules are tried."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_axe())
        page.evaluate(_ONE_OF_EACH)
    findings = {}
    for theme in themes:
        page.emulate_media(color_scheme=theme)
        drawn(page)
        rules = [] if theme == themes[-1] else _OF_COLOURS
        findings[theme] = page.evaluate(_AXE, rules)
    return {theme: texts for theme, texts in findings.items() if texts}


def unexplained(page: Any) -> list[Finding]:
    """Return the short texts and the marks that one can see and that nothing explains."""
    drawn(page)
    texts: list[Finding] = page.evaluate(_UNEXPLAINED, sorted(_PLAIN))
    return texts
