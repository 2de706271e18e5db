"""What a step of a work-group costs the browser, in the pane GPU.

    python bench/gpu_steps.py

Headless Chromium, no GPU; a session answers the page. Steps go forward and back through two runs on
the emulator: of the default opts, and of a plain tile in shared memory; `conflicts` are those of a
run's words in banks. `thread` is the time that the page's thread computed, by its own clock;
`browser` is the processor time of all processes, with what draws the picture: both depend little on
what else the machine does. `a second` is how many steps one core has time for. Budget: a step takes
30 ms of the browser, which leaves time to play 20 a second; exit status 1 where one takes more.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the tests know how to drive a page

from notebook import Meter  # noqa: E402

from tests.viz.browser.browser import chromium, drawn  # noqa: E402
from tests.viz.browser.gpu.support import TILED  # noqa: E402
from tests.viz.browser.page.live import LivePage  # noqa: E402
from tests.viz.session.support import session_of  # noqa: E402
from workbench import Opt, Tensor, explore  # noqa: E402

DEVICE, SIZE = "CUDA:H100", 256
STEPS = 200
STEP_MS = 30
STEP = """async ([key, count]) => {
  const root = document.querySelector(".wb");
  root.focus();
  for (let step = 0; step < count; step++) {
    root.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    await new Promise(requestAnimationFrame);
  }
  await new Promise(requestAnimationFrame);
}"""


def main() -> int:
    over = []
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        print(
            f"{'a step, ms':20}{'thread':>8}{'browser':>9}{'a second':>10}{'elements':>10}"
            f"{'conflicts':>11}"
        )
        for name, opts in (("auto", ()), ("a tile", TILED)):
            with run(browser, Path(folder), opts) as (page, conflicts):
                meter = Meter(page, browser)
                for key, way in (("j", "forward"), ("k", "back")):
                    thread_ms, browser_ms = step_ms(meter, key)
                    elements = page.evaluate("document.querySelectorAll('*').length")
                    title = f"{name}, {way}"
                    figures = f"{thread_ms:8.1f}{browser_ms:9.1f}{1e3 / browser_ms:10.0f}"
                    print(f"{title:20}{figures}{elements:10,}{conflicts:11,}", flush=True)
                    over += [title] if browser_ms > STEP_MS else []
    print(f"over {STEP_MS} ms: {'; '.join(over) or 'nothing'}")
    return int(bool(over))


def step_ms(meter: Meter, key: str) -> tuple[float, float]:
    """Return the milliseconds of the page's thread, and of the browser, for each of the steps that
    a key leads to."""
    thread_ms, browser_s = meter.work_ms(), meter.browser_s()
    meter.page.evaluate(STEP, [key, STEPS])
    total_ms = meter.work_ms() - thread_ms, 1e3 * (meter.browser_s() - browser_s)
    return total_ms[0] / STEPS, total_ms[1] / STEPS


@contextmanager
def run(browser: Any, folder: Path, opts: Sequence[Opt]) -> Iterator[tuple[Any, int]]:
    """Yield the page that shows a run of a product with some opts, without any with the default
    ones; and the bank conflicts of the run."""
    a, b = (Tensor.empty(SIZE, SIZE, device=DEVICE) for _ in range(2))
    with session_of(explore(a @ b)) as session:
        session.complete()
        variant = next(i for i, row in enumerate(session.record.variants) if row.name == "auto")
        for place, opt in enumerate(opts):
            request = {"do": "apply", "variant": variant if place else 0, "opt": str(opt)}
            reply = session.handle({"id": 1, **request})
            assert reply.ok, reply.error
            variant = reply.result.variant
        with LivePage(browser, folder, session) as live:
            live.page.focus(".wb")
            live.answer()
            live.page.evaluate("(variant) => show({ variant, mode: 'gpu' })", variant)
            live.answer("emulate")
            drawn(live.page)
            trace = session.row(variant).gpu
            assert trace is not None
            yield live.page, sum(access.conflicts for access in trace.accesses)


if __name__ == "__main__":
    sys.exit(main())
