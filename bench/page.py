"""What the page costs in a browser: to open, to step through rewrites, to draw a plan.

    python bench/page.py

Headless Chromium on the exported page, from disk and with the network off. A step is timed from
the key to the end of the frame that shows it. Budgets: a step 50 ms at the median on the largest
pass of a 480-node kernel, a 2,000-node graph open in 1.5 s.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from record import EXPRESSIONS

from workbench.viz import explore
from workbench.viz.page import export_html
from workbench.viz.record.record import build

NAMES = ("softmax", "one kernel, 480 nodes", "graph of 2,000 nodes")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
_STEPS = """async (most) => {
  const root = document.querySelector(".wb");
  root.focus();
  const shown = () => new Promise((done) => requestAnimationFrame(() => {
    const after = new MessageChannel();
    after.port1.onmessage = done;
    after.port2.postMessage(0);
  }));
  const where = () => document.querySelector(".wb-rw-at").textContent;
  const times = [];
  for (let before = ""; times.length < most && before !== where(); ) {
    before = where();
    const start = performance.now();
    root.dispatchEvent(new KeyboardEvent("keydown", {key: "j", bubbles: true, cancelable: true}));
    await shown();
    if (before !== where()) times.push(performance.now() - start);
  }
  return times;
}"""


def main() -> int:
    found = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if found is None:
        print("not measured: no Chromium on PATH")
        return 0
    print(
        f"{'expression':24} {'page':>8} {'open':>8} {'plan':>8}   steps: count, median, p95"
    )
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=found, args=[*FLAGS])
        for name in NAMES:
            record = json.loads(json.dumps(build(explore(EXPRESSIONS[name]()))))
            path = Path(folder) / "page.html"
            path.write_text(export_html(record), encoding="utf-8")
            measure(browser, name, path, largest(record))
        browser.close()
    return 0


def largest(record: dict[str, Any]) -> str:
    """Return the name of the pass of the first kernel with the most rewrites of nodes."""
    listed = [record["passes"][p] for p in record["variants"][0]["passes"]]
    name: str = max(listed, key=lambda row: len(row["rewrites"]))["name"]
    return name


def measure(browser: Any, name: str, path: Path, largest_pass: str) -> None:
    page = browser.new_context(
        viewport={"width": 1400, "height": 760}, offline=True
    ).new_page()
    start = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_selector(".wb-body")
    opened = time.perf_counter()
    page.click(".wb-header", position={"x": 4, "y": 4})
    drawing = time.perf_counter()
    page.keyboard.press("3")
    page.wait_for_selector(".wb-plan .wb-g-stage > *")
    page.evaluate("new Promise(requestAnimationFrame)")
    drawn = time.perf_counter()
    page.keyboard.press("2")
    page.click(f'.wb-rw-pass:has-text("{largest_pass}")')
    size = f"{path.stat().st_size / 1e3:5,.0f} kB"
    columns = f"{size} {opened - start:6.2f} s {drawn - drawing:6.2f} s"
    print(f"{name:24} {columns}   {largest_pass}: {steps(page)}")
    page.keyboard.press("Home")
    page.keyboard.press("g")
    print(f"{'  with the whole graph':24} {'':26}   {largest_pass}: {steps(page)}")
    page.context.close()


def steps(page: Any) -> str:
    """Step to the end of the pass that is shown; return how long the steps took."""
    page.focus(".wb-rw-list [data-item] >> nth=0")
    page.keyboard.press("Home")
    page.wait_for_timeout(300)
    times = sorted(page.evaluate(_STEPS, 100))
    if not times:
        return "no steps"
    median, late = times[len(times) // 2], times[int(0.95 * (len(times) - 1))]
    return f"{len(times)}, {median:.0f} ms, {late:.0f} ms"


if __name__ == "__main__":
    sys.exit(main())
