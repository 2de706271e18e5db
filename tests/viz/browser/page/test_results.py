"""Results: times and their ratios, checks, and what went wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser.browser import session_page, shown
from tests.viz.browser.page.live import LivePage
from tests.viz.browser.page.support import (
    MACHINE,
    Record,
    keys,
    send_reply,
    texts,
    timing,
    with_share,
)
from tests.viz.record.support import exported
from tests.viz.session.support import done, finish_jobs, prefetch_all, session_of
from tests.viz.support import matmul
from workbench.measure.kernel_time import doubts
from workbench.viz.session import prefetch

WRONG = (
    "WRONG: 3 of 9 elements compared with what the expression means before any rule, by the "
    "reference interpreter, greatest error 0.27 of the greatest value (tolerance 1.8e-06 of it)"
)


@pytest.mark.parametrize("width", [800, 1400])
def test_what_was_found_is_said_where_one_is(
    browser: Any, record: Record, tmp_path: Path, width: int
) -> None:
    """A check, and what went wrong with it, from Tune, where the results may be out of sight."""
    for page in shown(browser, tmp_path, session_page(record), width=width):
        page.focus(".wb")
        keys(page, "c")
        change = [["variants", 0, "check"], {"ok": False, "text": "wrong: 3 of 9"}]
        send_reply(page, "check", patch={"append": {}, "set": [change]})
        page.wait_for_selector(".wb-notices >> text=wrong: 3 of 9")
        page.wait_for_selector(
            ":is(.wb-verdict, .wb-at-hand) :text('wrong: 3 of 9') >> visible=true"
        )
        keys(page, "c")
        send_reply(page, "check", error={"what": "no data", "because": "", "try": ""})
        page.wait_for_selector("[role=alert]:has-text('no data') >> visible=true")
        keys(page, "[")  # also where the results are folded
        page.wait_for_selector(".wb-results", state="hidden")
        alert = page.locator(".wb-notices [role=alert]:has-text('no data')")
        alert.wait_for()
        alert.locator("[data-key=close-error]").click()
        alert.wait_for(state="detached")


@pytest.mark.parametrize("width", [500, 800])
def test_a_long_answer_leaves_the_bar_of_passes_as_it_is(
    browser: Any, record: Record, tmp_path: Path, width: int
) -> None:
    for page in shown(browser, tmp_path, session_page(record), width=width):
        page.focus(".wb")
        height = page.locator(".wb-bottom").evaluate("e => e.offsetHeight")
        keys(page, "c")
        change = [["variants", 0, "check"], {"ok": False, "text": WRONG}]
        send_reply(page, "check", patch={"append": {}, "set": [change]})
        notice = page.wait_for_selector(".wb-notice >> text=WRONG")
        assert page.locator(".wb-bottom").evaluate("e => e.offsetHeight") <= height + 4
        assert notice.get_attribute("title").endswith(WRONG)


def test_a_wrong_answer_is_marked_where_its_time_stands(session: Any) -> None:
    change = [["variants", 0, "check"], {"ok": False, "text": "wrong: 3 of 9"}]
    session.evaluate("p => hear({patch: p})", {"append": {}, "set": [change]})
    session.wait_for_selector("[data-key=variant-0] .wb-name >> text=\u2717")


def test_the_header_says_of_a_chosen_variant_that_it_is_wrong_or_failed(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    """In the board, which has no results: a time alone would say that it is right."""
    page_record = json.loads(json.dumps(record))
    plain = page_record["variants"][0]
    error = {"what": "the program crashed", "because": "SIGSEGV", "hint": ""}
    for fault in {"check": {"ok": False, "text": WRONG}}, {"error": error}:
        edited = {"name": "edited", "parent": 0, "kernel": 0, "edited": True}
        page_record["variants"].append(plain | edited | fault)
    last = len(page_record["variants"]) - 1
    for page in shown(browser, tmp_path, session_page(page_record), width=1040):
        for variant, word, title in (
            (last - 1, "WRONG", WRONG), (last, "failed", "the program crashed"),
        ):  # fmt: skip
            page.evaluate(f"show({{ mode: 'board', variant: {variant} }})")
            choice = page.locator(".wb-choices select[aria-label=variant]")
            expect(choice.locator("option:checked")).to_contain_text(word)
            assert title in choice.get_attribute("title")


def test_below_many_variants_what_is_wrong_and_what_can_be_asked_stay_in_sight(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    page_record = json.loads(json.dumps(record))
    plain = page_record["variants"][0]
    for number in range(14):
        more = {"name": f"edited {number}", "parent": 0, "kernel": 0, "edited": True}
        page_record["variants"].append(plain | more)
    page_record["variants"][-1]["check"] = {"ok": False, "text": WRONG}
    last = len(page_record["variants"]) - 1
    for page in shown(browser, tmp_path, session_page(page_record), width=953):
        page.set_viewport_size({"width": 953, "height": 640})
        page.click(f"[data-key=variant-{last}]")
        page.evaluate("document.querySelector('.wb-results').scrollTop = 0")
        pane = page.locator(".wb-results").bounding_box()
        for part in ".wb-at-hand > .wb-bad", "[data-key=time]", "[data-key=search]":
            box = page.locator(part).bounding_box()
            assert box["y"] + box["height"] <= pane["y"] + pane["height"] + 1, part
            covered = """(e) => { const b = e.getBoundingClientRect();
              return !e.contains(document.elementFromPoint(b.x + 9, b.y + b.height / 2)); }"""
            assert not page.locator(part).evaluate(covered), part
            whole = page.locator(part).evaluate("e => e.scrollHeight <= e.clientHeight + 1")
            assert whole, part
        assert page.locator(".wb-results").evaluate("e => e.scrollHeight > e.clientHeight")


def test_the_selected_variant_of_many_is_in_sight(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    """Above what lies over the end of the list; and the remedy of doubtful times is all there."""
    page_record = json.loads(json.dumps(record))
    page_record["variants"][0]["timing"] |= {"had": 0.4, "doubts": ["the machine was busy"]}
    plain = page_record["variants"][0]
    for number in range(24):
        more = {"name": f"edited {number}", "parent": 0, "kernel": 0, "edited": True}
        page_record["variants"].append(plain | more)
    last = len(page_record["variants"]) - 1
    for page in shown(browser, tmp_path, session_page(page_record), width=1100):
        for variant in (last, 0, last - 4):
            page.evaluate("(v) => show({ variant: v })", variant)
            covered = """(e) => { const b = e.getBoundingClientRect();
              return [b.top + 1, b.bottom - 2].some((y) =>
                !e.contains(document.elementFromPoint(b.x + 20, y))); }"""
            row = f"[data-key=variant-{variant}][aria-selected=true]"
            page.wait_for_selector(row)
            assert not page.locator(row).evaluate(covered), variant
            assert not page.locator("[data-key=time-stale]").evaluate(covered), variant
        page.evaluate("document.querySelector('.wb-results').scrollTop = 0")
        page.evaluate("() => new Promise((done) => requestAnimationFrame(done))")
        page.evaluate("() => show({ cold: true })")  # other changes leave the reader's place
        assert page.locator(".wb-results").evaluate("e => e.scrollTop") == 0


def test_a_caret_points_at_its_column(session: Any, record: Record) -> None:
    compiler_text = "error: expected type\n  iiiiiiii flot MMMMMM\n           ^"
    error = {"what": "cannot compile", "because": compiler_text, "try": ""}
    session.focus(".wb")
    keys(session, "c")
    send_reply(session, "check", error=error)
    letters = session.evaluate(LETTERS, ".wb-results [role=alert]")
    [caret] = [place for letter, place in letters if letter == "^"]
    [first] = [place for letter, place in letters if letter == "o"]
    assert caret == pytest.approx(first - 2 * (letters[1][1] - letters[0][1]), abs=0.5)


LETTERS = """(selector) => {
  const node = document.querySelector(`${selector} .wb-as-told`).firstChild, range = document.createRange();
  const from = node.data.indexOf("i");
  return [...node.data].map((letter, i) => {
    range.setStart(node, i);
    range.setEnd(node, i + 1);
    return [letter, range.getBoundingClientRect().left];
  }).slice(from);
}"""
"""Returns [letter, where it stands] of a message, from its first i on."""


def test_what_is_timed_says_so(session: Any, record: Record) -> None:
    """Also after another variant was chosen meanwhile, which is not timed."""
    other = next(i for i, v in enumerate(record["variants"]) if i and v["kernel"] == 0)
    session.focus(".wb")
    keys(session, "t")
    session.wait_for_selector("[data-key=variant-0]:has-text('timing')")
    session.click(f"[data-key=variant-{other}]")
    timed = texts(session, '[aria-label="variants"] :text("timing")')
    assert len(timed) == 1 and "2.00 ms" not in session.inner_text(".wb-results .wb-list >> nth=0")


def test_a_row_says_that_the_machine_was_busy(session: Any) -> None:
    """And that its samples lie far apart; a quiet time says neither."""
    said = "[...document.querySelectorAll('.wb-doubt')].map((row) => row.textContent)"
    words = [doubts(2.1, [1e-3]), doubts(1.1, [71e-6, 296e-6]), doubts(1.1, [1e-3])]
    rows = [timing(1e-3, 0.01) | {"doubts": lines} for lines in words]
    assert list(map(len, words)) == [1, 1, 0]
    for row, lines in zip(rows, words, strict=True):
        change = [["variants", 0, "timing"], row]
        session.evaluate("p => hear({patch: p})", {"append": {}, "set": [change]})
        session.wait_for_function(f"n => {said}.length === n", arg=len(lines))
        assert session.evaluate(said) == lines


def test_what_many_times_are_uncertain_of_is_said_once(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    """A line below each row pushed others out of sight; a row has its own figure in a sign. What
    was timed in turns on a busy machine is not called a time of another run."""
    page_record = json.loads(json.dumps(record))
    plain, shares = page_record["variants"][0], [0.08, 0.2, 0.51]
    rows = [
        plain
        | {"name": f"mine {n}", "parent": 0, "kernel": 0}
        | {"timing": timing(1e-3, 0.01) | {"had": had, "doubts": doubts(None, [1e-3], had)}}
        for n, had in enumerate(shares)
    ]
    page_record["variants"] += rows
    count = len(page_record["variants"])
    listed = sum(row["kernel"] == 0 for row in page_record["variants"])
    for page in shown(browser, tmp_path, session_page(page_record)):
        assert texts(page, ".wb-doubt") == [
            f"3 of {listed} times are not certain: the machine was busy: their kernels had 8.0% "
            "to 51% of a core"
        ]
        marks = page.locator(".wb-doubt-mark")
        titles = [marks.nth(n).get_attribute("title") for n in range(marks.count())]
        reasons = [row["timing"]["doubts"][0] for row in rows]
        assert [title.partition(".\n")[0] for title in titles] == reasons
        assert texts(page, ".wb-stale-line > span") == ["timed while the machine was busy"]
        page.click("[data-key=time-stale]")
        asked = page.evaluate("sent.find((m) => m.do === 'measure')")
        assert asked["variants"] == [0, *range(count - 3, count)]
        there = {"append": {}, "set": [[["elsewhere"], "H100 is not here"]]}
        page.evaluate("p => hear({patch: p})", there)
        expect(page.locator("[data-key=time-stale]")).to_have_count(0)


def test_a_long_wrong_answer_is_whole_on_a_click(session: Any) -> None:
    """It pushed variants out of sight."""
    change = [["variants", 0, "check"], {"ok": False, "text": WRONG}]
    session.evaluate("p => hear({patch: p})", {"append": {}, "set": [change]})
    wrong = session.locator(".wb-at-hand > .wb-bad")
    short = wrong.inner_text()
    assert len(short) < 70 and WRONG.startswith(short.removeprefix("\u2717 ").removesuffix(" …"))
    wrong.locator("summary").click()
    expect(wrong).to_contain_text(WRONG[-30:])
    change = [["variants", 0, "note"], "news"]  # it stays open
    session.evaluate("p => hear({patch: p})", {"append": {}, "set": [change]})
    expect(wrong).to_contain_text(WRONG[-30:])


def test_ratios_are_of_times_of_one_run(browser: Any, record: Record, tmp_path: Path) -> None:
    page_record = json.loads(json.dumps(record))
    (auto,) = [v for v in page_record["variants"] if v["name"] == "auto"][:1]
    auto["kernel"] = 0
    then = timing(1e-4, spread=0.0)  # the plain one takes 2 ms
    shown_as = []
    others = {"run": "b"}, {"samples": [1e-4]}, {"had": 0.08}
    for one in (then, *(then | other for other in others)):
        auto["timing"] = one
        for page in shown(browser, tmp_path, exported(page_record)):
            cells = texts(page, '.wb-variant:has-text("auto") .wb-figure')
            shown_as.append(tuple(cells[-2:]))
    assert shown_as == [
        ("± <0.1%", "20.0x"),
        ("*100 µs", "± <0.1%"),  # and no ratio: they were not timed in turns
        ("1 run", "20.0x"),
        ("100 µs", "busy"),  # of every sample others had a part
    ]


def test_the_headline_and_the_roofline_are_of_one_peak(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    """Of the threads that were used; every time has its spread; and nothing is above the peak."""
    page_record = json.loads(json.dumps(record))
    page_record["machine"] |= MACHINE
    kernel = page_record["kernels"][0] | {"flops": 1e9}
    page_record["kernels"][0] = kernel
    auto = next(v for v in page_record["variants"] if v["name"] == "auto")
    auto |= {"kernel": 0, "counts": page_record["variants"][0]["counts"]}
    headlines = []
    for median_s, threads, run in ((1e-2, 1, "a"), (1e-2, 2, "a"), (2e-3, 1, "b")):
        for row, s in ((page_record["variants"][0], 0.5), (auto, median_s)):
            figures = {"gflops": 1 / s, "threads": threads if row is auto else 1, "run": run}
            row["timing"] = with_share(timing(s, spread=0.02) | figures)
        page_record["variants"][0]["timing"]["run"] = "a"
        for page in shown(browser, tmp_path, exported(page_record), width=1900):
            headlines.append(page.inner_text(".wb-speed").replace("\n", " "))
            page.click('.wb-variant:has-text("auto")')
            page.get_by_text("roofs as numbers").click()
            label = page.locator(".wb-roof").get_attribute("aria-label")
            assert (
                "peak 400 GFLOP/s" in label and f"auto: {1e-9 * 1e9 / median_s:.0f} GFLOP" in label
            )
    one, two, over = headlines
    assert one == "plain 500 ms ± 2.0% 1.0% → auto 10.0 ms ± 2.0% 50% of one thread's peak"
    assert two == (
        "plain 500 ms ± 2.0% 1.0% of one thread's peak → auto 10.0 ms ± 2.0% 25% of peak"
    )
    assert over.startswith("plain 500 ms ± 2.0% 1.0%") and "*→ auto 2.00 ms ± 2.0%" in over
    assert "250%" not in over, "above the peak nothing is said"


def test_times_of_other_runs_are_marked_and_timed_again_together(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    page_record = json.loads(json.dumps(record))
    plain, auto = (
        next(v for v in page_record["variants"] if v["name"] == name) for name in ("plain", "auto")
    )
    auto["kernel"] = 0
    place = page_record["variants"].index(auto)
    auto["timing"] = timing(1e-4, spread=0.0)
    for page in shown(browser, tmp_path, session_page(page_record)):
        assert page.locator(".wb-stale-line").count() == 0, "all of one run"
    auto["timing"] |= {"run": "b", "earlier": True}
    for page in shown(browser, tmp_path, session_page(page_record)):
        row = page.inner_text(f"[data-key=variant-{place}]")
        assert "*100 µs" in row and "apart" in row and "20.0x" not in row
        assert "* timed in another run" in page.inner_text(".wb-stale-line")
        page.click("[data-key=time-stale]")
        asked = page.evaluate("sent.find((m) => m.do === 'measure')")
        assert asked["variants"] == [page_record["variants"].index(plain), place]
    del page_record["kernels"][1:]  # with which a baseline compares
    own = {"name": "numpy", "timing": timing(1e-3, 0.01) | {"run": "c"}, "error": None}
    page_record["baselines"] = [own]
    auto["timing"] = timing(1e-4, spread=0.0)
    for page in shown(browser, tmp_path, session_page(page_record)):
        page.click("[data-key=time-stale]")
        asked = page.evaluate("sent.find((m) => m.do === 'baseline')")
        assert asked["variants"] == [page_record["variants"].index(plain), place]


def test_a_baseline_of_several_kernels_is_compared_with_none(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    page_record = json.loads(json.dumps(record))
    count = len(page_record["kernels"])
    own = {"name": "torch", "timing": timing(1e-3, 0.01), "error": None}
    page_record["baselines"] = [own]
    for page in shown(browser, tmp_path, session_page(page_record)):
        text = " ".join(page.inner_text(".wb-baseline").split())
        assert count > 1 and text == f"torch 1.00 ms ± 1.0% all {count} kernels"
        assert "torch" not in page.inner_text(".wb-speed")


def test_a_model_of_a_framework_is_compared_with_the_run_of_all_kernels(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    """And with the selected kernel by the modules that this computes."""
    page_record = json.loads(json.dumps(record))
    page_record["kernels"][0]["modules"] = ["layer1.conv: conv2d"]
    modules = [{"path": "layer1.conv", "seconds": 2e-4}, {"path": "layer1", "seconds": 9e-4}]
    theirs = {
        "name": "torch eager", "timing": timing(1e-3, 0.01), "error": None,
        "about": "PyTorch 2, 4 threads", "modules": modules,
    }  # fmt: skip
    own = {"name": "all 3 kernels", "timing": timing(5e-4, 0.01), "error": None, "is_ours": True}
    page_record["baselines"] = [theirs, own]
    for page in shown(browser, tmp_path, session_page(page_record)):
        rows = [" ".join(text.split()) for text in page.locator(".wb-baseline").all_inner_texts()]
        assert rows[0] == "torch eager 1.00 ms ± 1.0% 0.50x"
        assert rows[1].startswith("all 3 kernels 500 µs ± 1.0% all ")
        line = page.inner_text(".wb-baseline + .wb-quiet")
        assert line == "200 µs in layer1.conv; PyTorch 2, 4 threads"


def test_every_time_has_its_spread_with_cold_caches_too(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    page_record = json.loads(json.dumps(record))
    cold = {"cold_s": 3e-3, "cold_spread": 0.07}
    page_record["variants"][0]["timing"] |= cold
    for width in (800, 1400):
        for page in shown(browser, tmp_path, exported(page_record), width=width):
            page.click(":text-is('cold')")
            text = " ".join(page.inner_text("[data-key=variant-0]").split())
            assert text.endswith("3.00 ms ± 7.0% 1x"), text
            page.click(":text-is('warm')")
            spread = page.locator("[data-key=variant-0] .wb-spread")
            assert spread.is_visible() and spread.inner_text() == "± 5.0%"


def test_saved_variants_of_other_notebooks_are_asked_for(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    page_record = json.loads(json.dumps(record)) | {"saved": 3}
    for page in shown(browser, tmp_path, session_page(page_record)):
        assert "3 saved variants:" in page.inner_text(".wb-results")
        page.click("[data-key=show-saved]")
        assert page.evaluate("sent.some((m) => m.do === 'saved')")
    for page in shown(browser, tmp_path, exported(page_record)):
        assert page.locator("[data-key=show-saved]").count() == 0


def test_an_edit_that_crashed_is_shown_on_request(
    browser: Any, nothing_saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session_of(matmul()) as session:
        done(session, "code", variant=0, language="LLVM")
        text = "\n".join(next(c for c in session.row(0).code if c.language == "LLVM").lines)
        text = text.replace("entry:", "entry:\n  call void @llvm.trap()")
        done(session, "edit", variant=0, language="LLVM", text=text)
    timed: list[int] = []
    monkeypatch.setattr(prefetch, "_time_or_ignore", lambda _, group: timed.extend(group))
    with session_of(matmul(), prefetches=True) as session:
        prefetch_all(session, measures=False)
        with LivePage(browser, tmp_path, session, width=800) as live:
            page, row = live.page, ".wb-buttons:has([data-key=show-edits-0])"
            assert "1 edited text that failed (the program crashed):" in page.inner_text(row)
            page.click("[data-key=show-edits-0]")
            live.answer("saved")
            assert page.locator(row).count() == 0
            (place,) = session.edited
            page.click(f"[data-key=variant-{place}]")
            live.answer()
            finish_jobs(session.jobs)
            live.answer()
            assert "the program crashed" in page.inner_text("[role=alert]")
            assert place not in timed and session.row(place).timing is None
            assert page.faults == []


def test_a_spread_that_says_nothing_is_cut_short(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    page_record = json.loads(json.dumps(record))
    page_record["variants"][0]["timing"] = timing(1e-3, spread=31.34)
    for page in shown(browser, tmp_path, exported(page_record)):
        assert "± >100%" in page.inner_text('[aria-label="variants"]')
        assert "3134" not in page.inner_text(".wb")


def test_other_devices_are_folded_and_emulators_stand_apart(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    page_record = json.loads(json.dumps(record))
    page_record["variants"][0]["elsewhere"] = [
        timing(1e-3, spread=0.01) | {"device": "C"},
        timing(1.5, spread=0.01, emulator=True) | {"device": "PYTHON"},
    ]
    for page in shown(browser, tmp_path, exported(page_record)):
        assert "1.00 ms" not in page.inner_text(".wb-results")
        fold = page.locator("[data-key='fold-other devices']")
        assert fold.inner_text() == "other devices: 1 time"
        fold.click()
        table = page.locator('[aria-label="variants of other devices"]').inner_text()
        assert "plain on C 1.00 ms ± 1.0% 2x" in " ".join(table.split())
        assert "1.50 s" not in table
        assert "EMULATOR (PYTHON)" in page.inner_text(".wb-results")
        assert "1.50 s ± 1.0%" in page.inner_text(".wb-results")


def test_emulated_times_stand_apart(browser: Any, record: Record, tmp_path: Path) -> None:
    emulated = json.loads(json.dumps(record))
    times = timing(1.5, spread=0.01, emulator=True)
    emulated["variants"][0]["timing"] = times | {"device": "PYTHON"}
    for page in shown(browser, tmp_path, exported(emulated)):
        assert "1.50 s" not in page.inner_text('[aria-label="variants"]')
        assert "1.50 s" not in page.inner_text(".wb-header")
        assert "EMULATOR (PYTHON)" in page.inner_text(".wb-results")


def test_long_names_and_wide_tables_are_not_cut(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    """A name takes more lines; where many buffers are wider than the pane, it scrolls below the
    loops, which stay."""
    large = json.loads(json.dumps(record))
    plain = large["variants"][0]
    name = ", ".join(f"UPCAST g{axis} 16" for axis in range(4))
    large["variants"].append(plain | {"name": name, "parent": 0})
    nest = plain["loops"]
    use = next(row["uses"] for row in nest["rows"] if row["uses"])
    cell = next(iter(use.values())) | {"cell": ["149G", "mem"], "level": "memory"}
    use |= {f"b{number}": cell for number in range(9)}
    nest["buffers"] += [nest["buffers"][0] | {"name": f"b{n}"} for n in range(9)]
    for page in shown(browser, tmp_path, exported(large), width=953):
        cut = "(all) => all.filter((e) => e.scrollWidth > e.clientWidth).length"
        row = page.locator(f"[data-key=variant-{len(large['variants']) - 1}]")
        assert row.locator(".wb-clip").inner_text() == name
        assert row.locator(".wb-clip").evaluate_all(cut) == 0
        levels = page.locator(".wb-nest-pane .wb-level")
        assert levels.count() > 9 and levels.evaluate_all(cut) == 0
        first = page.locator(".wb-loop > .wb-nest >> nth=0")
        at = first.bounding_box()["x"]
        page.locator(".wb-nest-pane").evaluate("(pane) => { pane.scrollLeft = 300; }")
        assert abs(first.bounding_box()["x"] - at) < 10


def test_a_hundred_thousand_results_are_a_short_list(session: Any, record: Record) -> None:
    """The fastest, the selected and the pinned ones; each below the one it was made from."""
    first = len(record["variants"])
    row = {**record["variants"][0], "code": [], "loops": None, "passes": [], "offers": []}
    row["timing"] = timing(1e-3, 0.01)
    session.evaluate(
        """([row, first]) => hear({ patch: { set: [], append: { variants: Array.from(
          { length: 1e5 },
          (_, i) => ({ ...row, name: `v${i}`, parent: first + i - 1,
            timing: { ...row.timing, median_s: 1 - i * 1e-6 } }),
        ) } } })""",
        [row, first],
    )
    rows = session.locator(".wb-results [role=treeitem]")
    expect(rows).to_have_count(300)
    said = session.locator(".wb-results [role=status]", has_text="more are not listed")
    assert f"{10**5 + own(record) - 300:,}" in said.inner_text()
    assert "v99999" in rows.last.inner_text(), "the fastest"
    session.evaluate(f"show({{ variant: {first + 7} }})")
    expect(session.locator(".wb-results [aria-selected=true]")).to_contain_text("v7")
    expect(rows).to_have_count(300)


def own(record: Record) -> int:
    """The number of variants of the first kernel that are listed without more."""
    return sum(v["kernel"] == 0 and not v["deleted"] for v in record["variants"])
