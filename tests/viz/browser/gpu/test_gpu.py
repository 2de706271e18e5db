"""The pane GPU: a reader runs a kernel on the emulator, steps through it, looks at work-items, cells
and findings; the page that is exported has the steps."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import convert

from tests.viz.browser.browser import drawn, leave, opened, stop_clock
from tests.viz.browser.gpu.cells import hovered, inked, labels, pick
from tests.viz.browser.page.live import LivePage
from tests.viz.browser.page.support import keys, texts
from tests.viz.browser.scans.scan import THEMES, barriers, unexplained
from tests.viz.record.support import exported, plain
from tests.viz.session.handlers.test_stepping import halves, tiled
from tests.viz.session.support import session_of, unpacked
from tests.viz.support import array
from workbench import Opt, OptOps, Tensor, explore
from workbench.viz.schema.record import PageRecord
from workbench.viz.session.handlers import inspection as stepping
from workbench.viz.session.session import Session


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    """A session of a tiled product, which nobody has run on the emulator."""
    with session_of(explore(array(32, 32) @ array(32, 32))) as matmul_session:
        tiled(matmul_session)
        yield matmul_session


@pytest.fixture(scope="module")
def live(
    browser: Any, tmp_path_factory: pytest.TempPathFactory, session: Session
) -> Iterator[LivePage]:
    """The page of the session in the pane."""
    with LivePage(browser, tmp_path_factory.mktemp("gpu"), session) as live:
        live.page.focus(".wb")
        live.answer()
        variant = len(session.kernels) - 1
        live.page.evaluate("v => show({ variant: v, mode: 'gpu' })", variant)
        yield live


@pytest.fixture(scope="module")
def ran(live: LivePage) -> Any:
    """The page after the run, for which nobody has to ask."""
    live.answer("emulate")
    return live.page


@pytest.fixture
def stepped(ran: Any) -> Any:
    """The page as after the run: all tests share it."""
    pick(ran, "gpu-lane", 0, 32)
    ran.focus(".wb")
    keys(ran, "Home")
    return ran


STEP = "parseInt(document.querySelector('.wb-gpu-bar .wb-player-words').textContent.slice(5))"


def step(page: Any) -> str:
    words: str = page.inner_text(".wb-gpu-bar .wb-player-words")
    return words


def line(page: Any) -> str:
    (text,) = texts(page, ".wb-gpu-lines [aria-selected=true] code")
    return text.strip()


def test_stepping_forward_and_back(stepped: Any) -> None:
    assert step(stepped) == "step 0 of 148"
    assert line(stepped).startswith("g1 in 2 (work-group")
    keys(stepped, "j j j j j")
    assert (step(stepped), line(stepped)) == ("step 5 of 148, r0 = 0", "for r0 in 2 (reduce):")
    keys(stepped, "j j")
    assert line(stepped).startswith("As[l0*16 + l1] = p1[")
    keys(stepped, "k")
    assert step(stepped) == "step 6 of 148, r0 = 0"
    keys(stepped, "End")
    assert step(stepped) == "step 147 of 148"
    stepped.fill("[data-key=gpu-steps]", "9")
    assert step(stepped) == "step 9 of 148, r0 = 0"
    stepped.click("[data-key=gpu-line-11]")
    assert line(stepped) == "barrier" and step(stepped).endswith("r0 = 0")


def test_playing_takes_twenty_steps_a_second(browser: Any, tmp_path: Path) -> None:
    product = explore(array(32, 32) @ array(32, 32), device="CUDA:H100", show="gpu")
    page = opened(browser, product.to_html(tmp_path / "alone.html"))
    stop_clock(page)
    page.clock.pause_at(page.evaluate("Date.now() + 60_000"))
    page.click("[data-key=gpu-play]")
    page.clock.run_for(1000)
    assert step(page).startswith("step 20 of ")
    page.click("[data-key=gpu-play]")
    page.clock.run_for(1000)
    assert step(page).startswith("step 20 of "), "it is paused"
    page.focus(".wb")
    keys(page, "End")
    page.click("[data-key=gpu-play]")
    page.clock.run_for(150)
    assert step(page).startswith("step 3 of "), "from the beginning"
    leave(browser, page)


def test_work_items_and_what_they_hold(stepped: Any) -> None:
    keys(stepped, "j j j j j j")
    assert "256 of 256 on" in stepped.inner_text(".wb-gpu-lanes [role=status]")
    pick(stepped, "gpu-lane", 37, 32)
    rows = texts(stepped, ".wb-gpu-registers tr")
    by_name = dict(row.split() for row in rows)
    assert by_name == {"g1": "0", "g0": "0", "l1": "5", "l0": "2", "acc2": "0", "r0": "0"}
    assert "holds" in stepped.inner_text(".wb-gpu-registers caption")


def test_an_access_and_its_transactions(stepped: Any) -> None:
    keys(stepped, "j j j j j j")
    words = stepped.inner_text(".wb-gpu-access")
    assert "reads p1: 32 transactions, 1,024 bytes wanted, 1,024 moved" in words
    assert "warp 0: 4 sectors of 32 bytes; wanted: 128 of 128 bytes" in words
    wanted = labels(stepped, "gpu-sector")
    assert len(wanted) == 32 and wanted[9] == "p1[9]: work-item 9 (9, 0)"
    stepped.click("[data-key=gpu-line-10]")
    words = stepped.inner_text(".wb-gpu-access")
    assert "reads As: 8 passes over the banks, no conflict" in words
    busy = [text for text in labels(stepped, "gpu-bank") if "nothing" not in text]
    assert busy == ["bank 0: As[0]", "bank 16: As[16]"], "two rows of work-items read a word each"


def test_a_cell_and_its_history(stepped: Any) -> None:
    assert stepped.inner_text(".wb-gpu-memories").count("256 unwritten") == 2
    stepped.click("[data-key=gpu-line-10]")
    assert "unwritten;" not in stepped.inner_text(".wb-gpu-memories")
    pick(stepped, "gpu-cell-3", 53, 32)
    uses = texts(stepped, ".wb-gpu-history [data-item]")
    assert len(uses) == 1 and "work-item 53 (5, 3) writes" in uses[0]
    stepped.click("[data-key=gpu-use-0]")
    assert step(stepped) == "step 7 of 148, r0 = 0"
    held = texts(stepped, ".wb-gpu-registers caption")
    assert held == ["work-item 53 (5, 3) holds"]
    reads_well(stepped)


def test_an_exported_page_has_the_steps(
    browser: Any, tmp_path: Path, session: Session, stepped: Any
) -> None:
    path = tmp_path / "exported.html"
    view = f"view: {{ variant: {len(session.kernels) - 1}, mode: 'gpu' }}"
    html = exported(plain(session.record)).replace("view: {}", view)
    path.write_text(html, encoding="utf-8")
    page = opened(browser, path)
    page.focus(".wb")
    keys(page, "Home j j j j j j")
    assert step(page) == "step 6 of 148, r0 = 0"
    assert "wanted: 128 of 128 bytes" in page.inner_text(".wb-gpu-access")
    assert page.get_attribute("[data-key=gpu-group-0]", "disabled") is not None
    leave(browser, page)


def test_another_group(live: LivePage, stepped: Any) -> None:
    stepped.fill("[data-key=gpu-group-0]", "1")
    stepped.press("[data-key=gpu-group-0]", "Enter")
    requests = [r for r in live.answer("emulate") if r["do"] == "emulate"]
    (request,) = requests
    assert request["group"] == [1, 0]
    stepped.focus(".wb")
    keys(stepped, "End")
    assert "g1 1" in [" ".join(t.split()) for t in texts(stepped, ".wb-gpu-registers tr")]


def test_a_barrier_is_taken_away(live: LivePage, stepped: Any) -> None:
    stepped.click("[data-key=gpu-line-8]")
    assert line(stepped) == "barrier"
    stepped.click("[data-key=gpu-without]")
    live.answer("emulate")
    found = stepped.locator(".wb-gpu-finding:has(.wb-bad)")
    assert {text.split()[0] for text in found.all_inner_texts()} == {"race"}
    assert "As[" in found.first.inner_text() and "writes" in found.first.inner_text()
    later = step(stepped)
    found.first.click()
    assert line(stepped).startswith("As[l0*16 + l1] = "), "from the read to the write"
    chosen = stepped.locator(".wb-gpu-memories .wb-cells-active[aria-selected=true]")
    cell = chosen.get_attribute("aria-label")
    assert cell.startswith("As[0] = ") and "work-item 0 (0, 0)" in cell
    found.first.click()
    assert step(stepped) == later
    assert stepped.inner_text(".wb-gpu-bar .wb-bad") == "without barrier 1"
    assert stepped.inner_text("[data-key=emulate]") == "put the barrier back"
    stepped.click("[data-key=emulate]")
    live.answer("emulate")
    assert found.count() == 0 and stepped.locator(".wb-gpu-bar .wb-bad").count() == 0


OUTSIDE = """() => {
  const pane = document.querySelector(".wb-gpu").getBoundingClientRect();
  const parts = document.querySelectorAll(".wb-gpu-bar > *, .wb-gpu-body > *, .wb-header > *");
  const outside = [...parts].filter((part) => {
    const { left, right, width } = part.getBoundingClientRect();
    return width > 0 && (left < pane.left - 1 || right > pane.right + 1);
  });
  return [document.documentElement.scrollWidth - innerWidth, ...outside.map((e) => e.className)];
}"""
"""Returns by how much the page is wider than the window, and the parts that leave the pane."""


def reads_well(page: Any) -> None:
    """Nothing is in the way of a reader, at any width."""
    for width in (800, 953, 1400):
        page.set_viewport_size({"width": width, "height": 700})
        drawn(page)
        wider, *outside = page.evaluate(OUTSIDE)
        assert wider <= 0 and outside == [], width
    assert barriers(page, THEMES) == {}
    assert unexplained(page) == []


def test_a_file_of_the_pane_opens_there_and_has_the_steps(browser: Any, tmp_path: Path) -> None:
    """Of a product by a tensor core: an element lights up its lane, a lane its elements."""
    a, b = (Tensor(halves(seed)) for seed in (0, 1))
    ex = explore(a @ b, device="CUDA", target="H100", show="gpu")
    page = opened(browser, ex.to_html(tmp_path / "alone.html"))
    assert not page.is_visible(".wb-modes") and step(page).startswith("step 0 of ")
    chosen = "[aria-label=variant] option:checked"
    assert page.inner_text(chosen) == "auto", "the variant with the default opts"
    page.select_option("[aria-label=variant]", label="plain")
    assert "groups of 1 work-item" in page.inner_text(".wb-gpu-program .wb-heading")
    page.click("[data-key=gpu-default-opts]")
    assert page.inner_text(chosen) == "auto"
    place = page.locator(".wb-gpu-line:has-text('WMMA(') code").first
    assert not page.is_visible(".wb-gpu-tiles")
    place.click()
    while "no memory" not in page.inner_text(".wb-gpu-access"):
        page.click("[data-key=gpu-next]")
    assert line(page).startswith(place.inner_text().strip()[:12])
    pick(page, "gpu-C", 27, 8)
    words = page.inner_text(".wb-gpu-tiles [role=status]")
    shown = re.match(r"C\[3, 3\] = (\S+) → (\S+): lane 13, element 1 of ", words)
    assert shown and words.endswith("A[3, 0]·B[0, 3] + … + A[3, 15]·B[15, 3]")
    step_of = halves(0)[3, :16].astype(float) @ halves(1)[:16, 3]
    assert float(shown[2]) - float(shown[1]) == pytest.approx(step_of, abs=1e-4)
    assert texts(page, ".wb-gpu-registers caption")[0].startswith("work-item 13 ")
    terms = [text for name in "AB" for text in labels(page, f"gpu-{name}") if "in a term" in text]
    assert len(terms) == 32
    pick(page, "gpu-lane", 5, 32)
    own = [
        text for name in "ABC" for text in labels(page, f"gpu-{name}") if "selected lane" in text
    ]
    assert len(own) == 8 + 4 + 4 and all("lane 5, " in text for text in own)
    assert "lane 5 of warp 0" in page.inner_text(".wb-gpu-tiles caption")
    reads_well(page)
    leave(browser, page)


def test_a_line_and_a_cell_are_in_sight(browser: Any, tmp_path: Path) -> None:
    """Default opts of a product: a vector of each work-item takes several passes, which are no
    conflict; lines are whole; what is said of a cell is on the first screen."""
    product = explore(array(64, 64) @ array(64, 64), device="CUDA:H100", show="gpu")
    page = opened(browser, product.to_html(tmp_path / "alone.html"), width=900)
    page.locator(".wb-gpu-line:has-text('= p1[')").first.click()
    page.click("[data-key=gpu-next]")
    words = page.inner_text(".wb-gpu-access")
    assert "no conflict" in words and re.search(r"16 bytes .*, \d parts of 8 work", words)
    assert len(labels(page, "gpu-bank")) > 32
    assert "conflicts in" not in page.inner_text(".wb-gpu-access")
    clipped = page.evaluate(
        """() => [...document.querySelectorAll(".wb-gpu-line code")].filter(
          (code) => code.scrollWidth > code.clientWidth + 1).map((code) => code.textContent)"""
    )
    assert clipped == []
    name = page.locator(".wb-gpu-memories .wb-cells").first.get_attribute("data-key")[:-1]
    pick(page, name, 0, 32)
    box = page.locator(".wb-gpu-history").bounding_box()
    assert box["height"] > 30 and box["y"] + box["height"] <= 700
    assert "As[0]" in page.inner_text(".wb-gpu-history")
    leave(browser, page)


def test_a_file_says_how_it_would_have_a_run(browser: Any, tmp_path: Path) -> None:
    product = explore(array(8, 8) @ array(8, 8), device="CUDA:H100")
    page = opened(browser, product.to_html(tmp_path / "page.html"))
    page.focus(".wb")
    keys(page, "6")
    words = page.inner_text(".wb-gpu")
    assert "one of this pane alone" in words and "run on the emulator" not in words
    leave(browser, page)


def test_what_takes_long_waits_for_a_click(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepping, "UNASKED_S", 1e-9)
    with session_of(explore(array(8, 8) @ array(8, 8), device="CUDA:H100")) as there:
        with LivePage(browser, tmp_path, there) as live:
            page = live.page
            page.focus(".wb")
            live.answer()
            keys(page, "6")
            (first,) = [r for r in live.answer("emulate") if r["do"] == "emulate"]
            assert first["unasked"] and not page.is_visible(".wb-gpu-body")
            page.click(".wb-gpu [data-key=emulate]")
            (second,) = [r for r in live.answer("emulate") if r["do"] == "emulate"]
            assert not second["unasked"] and page.is_visible(".wb-gpu-body")


def test_side_by_side_is_what_the_device_makes(browser: Any, tmp_path: Path) -> None:
    """WebGPU's compiler is in the browser: there is no machine code to show."""
    total = explore(array(8, 8).sum(1), device="WEBGPU:BROWSER")
    page = opened(browser, total.to_html(tmp_path / "page.html"))
    page.focus(".wb")
    keys(page, "4")
    right = page.locator(".wb-side-column").nth(1)
    chosen = right.locator("[role=tab][aria-selected=true]")
    assert chosen.all_inner_texts() == ["WGSL"]
    assert "fn " in right.inner_text() and "asm" not in page.inner_text(".wb-board")
    leave(browser, page)


def test_counts_stand_beside_lines_of_source(browser: Any, tmp_path: Path) -> None:
    product = explore(array(32, 32) @ array(32, 32), device="CUDA", target="H100")
    with session_of(product) as there, LivePage(browser, tmp_path, there) as live:
        variant = tiled(there)
        there.handle({"id": 1, "do": "code", "variant": variant, "language": "CUDA"})
        there.handle({"id": 2, "do": "emulate", "variant": variant})
        page = live.page
        page.focus(".wb")
        live.answer()
        page.evaluate("v => show({ variant: v, mode: 'tune', language: 'CUDA' })", variant)
        costs = page.locator(".wb-code-pane .wb-line:has(.wb-line-cost:not(:empty))")
        by_line = {
            text.split("\n")[-1].strip()[:4]: text.split("\n")[1]
            for text in costs.all_inner_texts()
        }
        assert by_line == {"As[l": "256", "Bs[l": "256", "p0[g": "128"}
        title = costs.first.locator(".wb-line-cost").get_attribute("title")
        assert title.splitlines() == [
            "writes As: 64 passes over the banks, no conflict",
            "reads p1: 256 transactions, 8,192 bytes wanted, 8,192 moved",
        ]


def test_words_of_two_halves_of_a_wave_do_not_meet(browser: Any, tmp_path: Path) -> None:
    """64 work-items, 32 banks: four waves take two passes each, and none is for a conflict."""
    product = explore(array(32, 32) @ array(32, 32), device="HIP", target="MI300X")
    with session_of(product) as there, LivePage(browser, tmp_path, there) as live:
        variant = tiled(there)
        there.handle({"id": 1, "do": "emulate", "variant": variant})
        row = there.row(variant).gpu
        assert row is not None and row.warp_lanes == 64
        shared = [a for a in row.accesses if row.memories[a.memory].space == "shared"]
        page = live.page
        page.focus(".wb")
        live.answer()
        page.evaluate("v => show({ variant: v, mode: 'gpu' })", variant)
        for access in shared[:3]:
            assert (access.transactions, access.conflicts) == (8, 0)
            page.fill("[data-key=gpu-steps]", str(access.step))
            (words,) = texts(page, ".wb-gpu-access p")
            assert words == "warp 0: 2 parts of 32 work-items: 2 passes"
            assert len(labels(page, "gpu-bank")) % 32 == 0


def test_a_shuffle_shows_whose_value_a_lane_takes(browser: Any, tmp_path: Path) -> None:
    total = explore(array(8, 512).sum(1), device="CUDA", target="H100")
    with session_of(total) as there, LivePage(browser, tmp_path, there) as live:
        opt = str(Opt(OptOps.GROUP, "r0", 128))
        reply = there.handle({"id": 1, "do": "apply", "variant": 0, "opt": opt})
        variant = reply.result.variant
        there.handle({"id": 2, "do": "emulate", "variant": variant})
        row = there.row(variant).gpu
        assert row is not None
        page = live.page
        page.focus(".wb")
        live.answer()
        page.evaluate("v => show({ variant: v, mode: 'gpu' })", variant)
        lines = [place for place, each in enumerate(row.lines) if each.distance]
        assert [row.lines[p].distance for p in lines[:5]] == [16, 8, 4, 2, 1]
        assert {row.lines[p].shuffles for p in lines} == {8 * 4}, "four warps of a group"
        page.click(f"[data-key=gpu-line-{lines[0]}]")
        assert line(page) == "group0w = group0w + shuffle(group0w, lane ^ 16)"
        pick(page, "gpu-lane", 35, 32)
        words = page.inner_text(".wb-gpu-lanes [data-term=shuffle]")
        assert words == "takes the value of work-item 51"
        assert "whose value work-item 35 takes" in hovered(page, "gpu-lane", 51, 32)
        reads_well(page)
        page.click(f"[data-key=gpu-line-{lines[0] - 1}]")
        assert "whose value" not in hovered(page, "gpu-lane", 51, 32)
        assert page.inner_text(".wb-gpu-lanes [data-term=shuffle]") == ""


def conflicts_of(row: Any, access: Any) -> set[int]:
    """Return the elements of an access of shared memory whose bank has another word for the same part
    of a warp, one work-item after the other."""
    itemsize = row.memories[access.memory].itemsize
    first = np.frombuffer(base64.b64decode(access.first.data), "<i4")
    bits = np.frombuffer(base64.b64decode(access.active), np.uint8)
    active = np.unpackbits(bits, bitorder="little")
    together = max(1, 32 // max(1, access.lanes * itemsize // 4))
    waiting: set[int] = set()
    for start in range(0, len(first), together):
        words: dict[int, set[int]] = {}
        parts = range(start, min(start + together, len(first)))
        elements = [
            int(first[item]) + lane
            for item in parts
            for lane in range(access.lanes)
            if active[item * access.lanes + lane]
        ]
        for element in elements:
            word = element * itemsize // 4
            words.setdefault(word % 32, set()).add(word)
        slow = {word for bank in words.values() if len(bank) > 1 for word in bank}
        waiting |= {element for element in elements if element * itemsize // 4 in slow}
    return waiting


@pytest.mark.parametrize("is_half", [False, True])
def test_a_row_of_shared_memory_has_a_word_of_each_bank(
    is_half: bool, browser: Any, tmp_path: Path
) -> None:
    """An element stands where its bytes are in the banks, whatever the shape of its array; what waits
    for another word of its bank is marked."""
    a, b = (Tensor(halves(s)) for s in (0, 1)) if is_half else (array(64, 64), array(64, 64))
    path = explore(a @ b, device="CUDA:H100", show="gpu").to_html(tmp_path / "alone.html")
    packed = path.read_text(encoding="utf-8").partition('id="record">')[2].partition("<")[0]
    record = convert(unpacked(packed), PageRecord)
    row = next(v.gpu for v in record.variants if v.gpu and v.name.startswith("auto"))
    page = opened(browser, path)
    page.set_viewport_size({"width": 1400, "height": 1200})
    shared = [a for a in row.accesses if row.memories[a.memory].space == "shared"]
    slow = next((a for a in shared if a.conflicts), shared[0])
    page.fill("[data-key=gpu-steps]", str(slow.step))
    waiting = conflicts_of(row, slow)
    assert bool(waiting) == bool(slow.conflicts)
    memory = row.memories[slow.memory]
    name, columns = f"gpu-cell-{slow.memory}", 128 // memory.itemsize
    size = int(np.prod(memory.shape))
    words = page.inner_text(f".wb-gpu-memory:has([data-key={name}s]) [role=status]")
    assert (f"{len(waiting)} elements in a bank conflict" in words) == bool(waiting)
    for element in {0, 1, columns - 1, columns, size // 3, size - 1, *[*waiting][:3]}:
        shown = hovered(page, name, element, columns)
        assert re.match(rf"{memory.name}\[{element}\][ :]", shown)
        assert f", bank {element * memory.itemsize // 4 % 32}" in shown
        assert ("in a bank conflict" in shown) == (element in waiting)
    memories = [m for m in row.memories if m.space == "shared"]
    cells = sum(int(np.prod(m.shape)) for m in memories) + int(np.prod(row.items))
    parts = page.locator(".wb-gpu-right *").count()
    assert parts < 160 < cells, "a cell is no element"
    leave(browser, page)


def test_cells_by_keys_and_in_either_theme(stepped: Any) -> None:
    keys(stepped, "j j j j j j")
    at = step(stepped)
    stepped.focus("[data-key=gpu-lanes]")
    keys(stepped, "ArrowRight ArrowDown ArrowDown ArrowLeft ArrowUp ArrowRight")
    active = stepped.get_attribute("[data-key=gpu-lanes]", "aria-activedescendant")
    assert stepped.get_attribute(f"#{active}", "aria-label") == "work-item 33 (1, 2): on"
    assert step(stepped) == at, "arrows are those of the cells"
    assert "work-item 0 " in stepped.inner_text(".wb-gpu-registers caption")
    keys(stepped, "Enter")
    assert "work-item 33 " in stepped.inner_text(".wb-gpu-registers caption")
    keys(stepped, "j")
    assert step(stepped) != at, "letters are those of the steps"
    colours = {}
    for theme in THEMES:
        stepped.emulate_media(color_scheme=theme)
        drawn(stepped)
        colours[theme] = inked(stepped, "gpu-lane", 40, 32)
    assert colours["light"] == "#0b57d0" and colours["dark"] == "#7cb7ff"
