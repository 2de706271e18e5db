"""What the tests of the page share: what a reader does and sees, and what Python answers."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from tests.viz.browser.browser import stop_clock
from workbench.base.typed import typed
from workbench.measure.speeds import Rate, Speeds
from workbench.viz.record.about import share_row, speed_rows
from workbench.viz.schema.variant import TimingRow

Record = dict[str, Any]
SPEEDS = Speeds(
    peak={"f32": Rate(2e11, 4e11), "f64": Rate(1e11, 2e11)},
    read={"L1": Rate(2e11, 4e11), "memory": Rate(1.2e10, 2e10)},
    copy={"L1": Rate(1.6e11, 3e11), "memory": Rate(9e9, 1.5e10)},
    fma_s=1e-9, scalar_s=1e-10, launch_s=1e-6, hand_over_s=5e-6,
)  # fmt: skip
MACHINE = to_builtins(speed_rows(SPEEDS)._asdict())
"""A machine of two cores, as a record tells it."""
ANSWER_WITHIN_MS = 3001
"""A page that has no answer by then says so."""


def keys(page: Any, pressed: str) -> None:
    for key in pressed.split():
        page.keyboard.press(key)


def focused(page: Any) -> str:
    key: str = page.evaluate("document.activeElement.dataset.key || ''")
    return key


def texts(page: Any, selector: str) -> list[str]:
    lines: list[str] = page.locator(selector).all_inner_texts()
    return lines


def selected(page: Any, label: str) -> list[str]:
    return texts(page, f'[aria-label="{label}"] [aria-selected="true"]')


def step_twice(page: Any, record: Record) -> None:
    """Go to the second step of the first kernel's pass of most rewrites."""
    variant = next(v for v in record["variants"] if v["kernel"] == 0)
    passes = [*range(len(record["passes"]))]
    shared = [p for p in passes if record["passes"][p]["variant"] is None]
    here = [*shared, *variant["passes"]]
    rules = [p for p in here if record["passes"][p]["unit"] in ("rewrite", "step")]
    place = max(rules, key=lambda p: len(record["passes"][p]["rewrites"]))
    steps = len(record["passes"][place]["rewrites"])
    assert steps >= 2
    page.focus(".wb")
    keys(page, "1")
    page.click("[data-key=kernel-0]")
    page.click(f"[data-key=pass-{place}]")
    page.focus(".wb")
    for step in (1, 2):
        keys(page, "j")
        page.wait_for_function(
            "text => document.querySelector('.wb-rw-at').textContent === text",
            arg=f"{step} of {steps}",
        )


def falls_silent(page: Any) -> None:
    """From now on nobody answers the page, and a test can move its time forward. On a slow machine
    it may say by itself that nobody answers: what is typed must be there before."""
    page.wait_for_function("sent.length > 0")
    page.evaluate("window.mute = true")
    stop_clock(page)


def send_reply(
    page: Any, do: str, error: Any = None, patch: Any = None, result: Any = None
) -> None:
    """Answer the last request `do`."""
    page.wait_for_function("(d) => sent.some((m) => m.do === d)", arg=do)
    request = page.evaluate("(d) => sent.findLast((m) => m.do === d)", do)
    page.evaluate("sent.length = 0")
    reply = {"id": request["id"], "ok": error is None, "error": error}
    page.evaluate("(r) => hear(r)", reply | {"result": result, "patch": patch})


def with_share(row: Record, speeds: Speeds | None = SPEEDS) -> Record:
    """Return a timing as a record of a machine has it: with its share of the peak."""
    share = share_row(typed(row, TimingRow), speeds)
    return row | {"share": to_builtins(share)}


def timing(median_s: float, spread: float, emulator: bool = False) -> Record:
    return {
        "median_s": median_s, "min_s": median_s, "spread": spread,
        "samples": [median_s] * 3, "cold_s": None, "gflops": 1.0, "gbytes": 1.0, "device": "LLVM",
        "emulator": emulator, "kind": "f32", "threads": 1, "run": "a", "earlier": False,
    }  # fmt: skip
