"""How long the page takes to answer what a reader does, with 2 kernels and with 300.

    python bench/interactions.py [kernels ..]

Headless Chromium on the exported page, offline; for the editor, the page before a Python session
that does not answer. Each action is a real click or key, done some times. `answer` is the browser's
own event timing, from the event to the frame that shows the answer, in steps of 8 ms; `work` is
the time that the page's thread computed, which does not depend on what else the machine does. A
long task is one above 50 ms, in which the page can answer nothing. Budget: the median of `work` is
no long task; exit status 1 where one is over.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the tests know how to drive a page

from tests.viz.browser.browser import chromium, opened, session_page  # noqa: E402
from tests.viz.record import models  # noqa: E402
from tests.viz.record.support import exported, plain  # noqa: E402
from tests.viz.support import softmax  # noqa: E402
from workbench.viz import explore  # noqa: E402
from workbench.viz.record.record import build  # noqa: E402

KERNELS = (2, 300)
ROUNDS = 7
LONG_MS = 50
"""What the Long Tasks standard calls long, and the budget of a step."""
OBSERVE = """() => {
  window.seen = { events: [], tasks: [] };
  const observe = (type, list, more) => new PerformanceObserver((entries) => {
    for (const { duration } of entries.getEntries()) list.push(duration);
  }).observe({ type, ...more });
  observe("event", seen.events, { durationThreshold: 16 });
  observe("longtask", seen.tasks);
}"""
COLLECT = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  for (let i = 0; i < 3; i++) await frame();
  await new Promise((act) => setTimeout(act, 30)); // entries are told when the page is idle
  const { events, tasks } = seen;
  return [Math.max(0, ...events.splice(0)), tasks.splice(0)];
}"""

IN_SIGHT = """(selector) => [...document.querySelectorAll(selector)].flatMap((e) => {
  const { x, y, width, height } = e.getBoundingClientRect();
  const [left, top] = [x + Math.min(width / 2, 60), y + Math.min(height / 2, 10)];
  const hit = width && height ? document.elementFromPoint(left, top) : null;
  return hit && (e.contains(hit) || hit.contains(e)) ? [[left, top]] : [];
}).slice(0, 5)"""
"""Returns where some elements are that a reader can click."""

Act = Callable[[Any, int], object]


class Action(NamedTuple):
    """What a reader does, the `turn`-th time; `start` leads to where it can be done."""

    name: str
    start: Callable[[Any], object]
    act: Act


def click(selector: str) -> Act:
    """Return a click at one of the first elements in sight that a selector finds, in turns."""

    def act(page: Any, turn: int) -> None:
        points = page.evaluate(IN_SIGHT, selector)
        if not points:
            raise LookupError(f"nothing in sight: {selector}")
        page.mouse.click(*points[turn % len(points)])

    return act


def press(*keys: str) -> Act:
    """Return a press of one of some keys, in turns."""
    return lambda page, turn: page.keyboard.press(keys[turn % len(keys)])


def keys(*pressed: str) -> Callable[[Any], object]:
    """Return what presses some keys while nothing but the page has the focus."""

    def start(page: Any) -> None:
        page.focus(".wb")
        for key in pressed:
            page.keyboard.press(key)

    return start


def field(selector: str, mode: str) -> Callable[[Any], object]:
    """Return what puts the cursor into a field of a mode."""
    return lambda page: (keys(mode)(page), page.click(selector))


def scrub(page: Any, turn: int) -> None:
    box = page.locator(".wb-player-steps").bounding_box()
    share = (turn + 1) / (ROUNDS + 1)
    page.mouse.click(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)


ACTIONS = (
    Action("select a kernel", keys("1"), click(".wb-kernels [data-item]")),
    Action("next kernel", lambda page: page.click("[data-key=kernel-0]"), press("j")),
    Action("sort kernels", keys("1"), click(".wb-kernels [data-key^=sort-]")),
    Action("filter kernels", field(".wb-kernels input", "1"), press("m", "a", "x", "Backspace")),
    Action("filter no more", field(".wb-kernels input", "1"), press("Backspace")),
    Action("select a loop", keys("1"), click(".wb-loops [data-item]")),
    Action("select a line of code", keys("1"), click(".wb-code-body [data-line]")),
    Action("mark an opt", keys("1"), click(".wb-offer[data-opt]")),
    Action("filter opts", keys("1", "/"), press("u", "p", "c", "Backspace")),
    Action("open a language", keys("1"), click("[data-key^=code-]")),
    Action("select a line of the notebook", keys("1"), click(".wb-sources [data-item]")),
    Action("Rewrites, Plan, Tune", keys("1"), press("2", "3", "1")),
    Action("Plan, Tune", keys("1"), press("3", "1")),
    Action("step rewrites", keys("2"), press("j")),
    Action("step, the whole graph", keys("2", "g"), press("j")),
    Action("draw the whole graph", keys("2"), press("g")),
    Action("select a pass", keys("2"), click("[data-key^=rw-pass]")),
    Action("select a rewrite", keys("2"), click(".wb-rw-list [data-item]")),
    Action("select a node", keys("2"), click(".wb-rw .wb-g-box")),
    Action("select in the plan", keys("3"), click(".wb-plan .wb-g-box")),
    Action("select a decision", keys("3"), click(".wb-plan-list [data-item]")),
    Action("unfold, fold", keys("3"), press("o", "O")),
    Action("the film, in and out", keys("3"), press("s")),
    Action("step the film", keys("3"), press("j")),
    Action("scrub the film", keys("3"), scrub),
    Action("help, in and out", keys("1"), press("?")),
    Action("export, in and out", keys("1"), press("e")),
)  # fmt: skip
EDITING = (
    Action("type in the editor", lambda page: (keys("1")(page), page.click("[data-key=edit]")),
           press("/", "x", "Enter", "1")),
)  # fmt: skip
"""What needs Python."""


def main() -> int:
    kernels = [int(text) for text in sys.argv[1:]] or KERNELS
    late = []
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        for count in kernels:
            ex = softmax() if count == 2 else explore(models.perceptron(count))
            record = plain(build(ex))
            path = Path(folder) / "page.html"
            print(
                f"{f'{count} kernels, ms':24} {'answer':>7} {'worst':>7} {'work':>7} {'worst':>7}"
                "   long tasks"
            )
            for html, actions in ((exported(record), ACTIONS), (session_page(record), EDITING)):
                path.write_text(html, encoding="utf-8")
                for name in measure(browser, path, actions):
                    late.append(f"{count} kernels, {name}")
            print()
    print(f"over {LONG_MS} ms: {'; '.join(late) or 'nothing'}")
    return int(bool(late))


def measure(browser: Any, path: Path, actions: tuple[Action, ...]) -> list[str]:
    """Print a row for each action; return the names of those that are late."""
    page = opened(browser, path)
    page.evaluate(OBSERVE)
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    late = []
    for name, start, act in actions:
        start(page)
        page.evaluate(COLLECT)
        answers_ms, works_ms, tasks_ms = [], [], []
        for turn in range(ROUNDS):
            before_ms = thread_ms(devtools)
            try:
                act(page, turn)
            except LookupError:
                break  # the boxes of a large picture are on a canvas
            answer_ms, long_ms = page.evaluate(COLLECT)
            works_ms.append(thread_ms(devtools) - before_ms)
            answers_ms.append(answer_ms)
            tasks_ms += long_ms
        if not works_ms:
            print(f"{name:24} nothing in sight", flush=True)
            continue
        times_ms = [pick(ms) for ms in (answers_ms, works_ms) for pick in (median, max)]
        longest = f"{len(tasks_ms)}, up to {max(tasks_ms):.0f} ms" if tasks_ms else "-"
        print(f"{name:24} {' '.join(f'{ms:7.0f}' for ms in times_ms)}   {longest}", flush=True)
        if median(works_ms) > LONG_MS:
            late.append(name)
    page.context.close()
    return late


def thread_ms(devtools: Any) -> float:
    """Return how long the page's thread has computed."""
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return 1e3 * next(row["value"] for row in metrics if row["name"] == "TaskDuration")


if __name__ == "__main__":
    sys.exit(main())
