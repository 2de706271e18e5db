"""What the page costs in a browser: to open, to step through rewrites, to draw a plan.

    python bench/page.py

Headless Chromium on the exported page, from disk and with the network off. A step is timed from
the key to the end of the frame that shows it. Budgets: a step 50 ms at the median on the largest
pass of a 480-node kernel, a 2,000-node graph open in 1.5 s at the median of three; exit status 1
where one is over.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from msgspec import to_builtins
from playwright.sync_api import sync_playwright
from record import EXPRESSIONS

from workbench.viz import explore
from workbench.viz.page.document import export_html
from workbench.viz.record.record import build

NAMES = ("softmax", "one kernel, 480 nodes", "graph of 2,000 nodes")
OPEN_S = {"graph of 2,000 nodes": 1.5}
STEP_MS = {"one kernel, 480 nodes": 50}
ROUNDS = 3
INFINITE = float("inf")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
_STEPS = """async (most) => {
  const root = document.querySelector(".wb");
  root.focus();
  const shown = () => new Promise((done) => requestAnimationFrame(() => {
    const after = new MessageChannel();
    after.port1.onmessage = done;
    after.port2.postMessage(0);
  }));
  const where = () => document.querySelector(".wb-rw-at")?.textContent ?? "";
  const pass = () => document.querySelector(".wb-rw-passes [aria-selected=true]")?.dataset.key;
  const first = pass(), times = [];
  for (let before = ""; times.length < most && before !== where() && pass() === first; ) {
    before = where();
    const start = performance.now();
    root.dispatchEvent(new KeyboardEvent("keydown", {key: "j", bubbles: true, cancelable: true}));
    await shown();
    if (before !== where()) times.push(performance.now() - start);
  }
  return times;
}"""


class Steps(NamedTuple):
    """How long steps took, sorted. Units: milliseconds."""

    times_ms: tuple[float, ...]

    @property
    def median_ms(self) -> float:
        """Return the median; 0 where there were no steps."""
        return median(self.times_ms) if self.times_ms else 0.0

    def __str__(self) -> str:
        if not self.times_ms:
            return "no steps"
        late = self.times_ms[int(0.95 * (len(self.times_ms) - 1))]
        return f"{len(self.times_ms)}, {self.median_ms:.0f} ms, {late:.0f} ms"


def main() -> int:
    chromium_path = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if chromium_path is None:
        print("not measured: no Chromium on PATH")
        return 0
    print(f"{'expression':24} {'page':>8} {'open':>8} {'plan':>8}   steps: count, median, p95")
    over = []
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium_path, args=[*FLAGS])
        for name in NAMES:
            record = build(explore(EXPRESSIONS[name]()))
            path = Path(folder) / "page.html"
            path.write_text(export_html(record), encoding="utf-8")
            over += measure(browser, name, path, largest(to_builtins(record)))
        browser.close()
    for text in over:
        print(f"over its budget: {text}")
    return 1 if over else 0


def largest(record: dict[str, Any]) -> str:
    """Return the name of the pass of the first kernel with the most rewrites of nodes."""
    listed = [record["passes"][p] for p in record["variants"][0]["passes"]]
    name: str = max(listed, key=lambda row: len(row["rewrites"]))["name"]
    return name


def measure(browser: Any, name: str, path: Path, largest_pass: str) -> list[str]:
    """Print the rows of an expression; return what was over its budget."""
    page = browser.new_context(viewport={"width": 1400, "height": 760}, offline=True).new_page()
    open_s = median(opening(page, path) for _ in range(ROUNDS))
    page.click(".wb-header", position={"x": 4, "y": 4})
    drawing = time.perf_counter()
    page.keyboard.press("3")
    page.wait_for_selector(".wb-plan .wb-g-stage > *")
    page.evaluate("new Promise(requestAnimationFrame)")
    end = time.perf_counter()
    page.keyboard.press("2")
    page.click(f'.wb-rw-pass:has-text("{largest_pass}")')
    size = f"{path.stat().st_size / 1e3:5,.0f} kB"
    columns = f"{size} {open_s:6.2f} s {end - drawing:6.2f} s"
    alone = steps(page)
    print(f"{name:24} {columns}   {largest_pass}: {alone}")
    page.click(f'.wb-rw-pass:has-text("{largest_pass}")')  # past its end is the next one
    page.keyboard.press("g")
    whole = steps(page)
    print(f"{'  with the whole graph':24} {'':26}   {largest_pass}: {whole}")
    page.context.close()
    over = [f"{name} opens in {open_s:.2f} s"] if open_s > OPEN_S.get(name, INFINITE) else []
    slow = [s.median_ms for s in (alone, whole) if s.median_ms > STEP_MS.get(name, INFINITE)]
    return over + [f"{name}, a step in {ms:.0f} ms" for ms in slow]


def opening(page: Any, path: Path) -> float:
    """Return the seconds until an exported file shows its panes."""
    start = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_selector(".wb-board")
    return time.perf_counter() - start


def steps(page: Any) -> Steps:
    """Step to the end of the pass that is shown; return how long the steps took."""
    page.focus(".wb-rw-list [data-item] >> nth=0")
    page.keyboard.press("Home")
    page.wait_for_timeout(300)
    return Steps(tuple(sorted(page.evaluate(_STEPS, 100))))


if __name__ == "__main__":
    sys.exit(main())
