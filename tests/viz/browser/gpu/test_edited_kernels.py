"""Kernels that somebody edits in a page: compiled and run by the browser, in an exported file too."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser.browser import leave, stop_clock
from tests.viz.browser.gpu.support import data, record_of, tensor
from tests.viz.browser.gpu.test_kernels import shows, store_of

EDITOR, FAULT, SAID = ".wb-editor", ".wb-editor-status", ".wb-browser"
KEPT = """(() => {
  const ask = GPUAdapter.prototype.requestDevice;
  window.devices = [];
  GPUAdapter.prototype.requestDevice = async function (...words) {
    const device = await ask.apply(this, words);
    window.devices.push(device);
    return device;
  };
})()"""
"""From now on `devices` are the GPUs that the page has opened."""


@pytest.fixture
def record() -> dict[str, Any]:
    return record_of((tensor(data(4, 10)) * 2 + 1).relu())


@pytest.fixture
def page(record: dict[str, Any], browser: Any, tmp_path: Path) -> Any:
    """An exported page whose kernel is being edited."""
    page = shows(browser, tmp_path, record)
    page.evaluate(KEPT)
    page.click('[data-key="variant-0"]')
    page.click(f'[data-key="code-{language(record)}"]')
    page.click(".wb-code-bar >> text=edit")
    page.wait_for_selector(EDITOR)
    yield page
    leave(browser, page)


def language(record: dict[str, Any]) -> str:
    return str(record["variants"][0]["code"][1]["language"])


def text_of(record: dict[str, Any], store: str) -> str:
    """Return the program with another store."""
    lines, at = store_of(record)
    return "\n".join([*lines[:at], store, *lines[at + 1 :]])


def store_in(record: dict[str, Any]) -> str:
    lines, at = store_of(record)
    return lines[at]


def says(page: Any, words: str) -> str:
    """Run, and return what the page says when it has said some words."""
    page.click("[data-key=run-edit]")
    expect(page.locator(SAID)).to_contain_text(re.compile(words))
    expect(page.locator("[data-key=run-edit]")).to_have_text("Run the edited code")
    return str(page.inner_text(SAID))


def test_an_edited_kernel_is_compared_and_timed(record: dict[str, Any], page: Any) -> None:
    """Beside the kernel that it was edited from, which runs for its time."""
    expect(page.locator(FAULT)).to_contain_text("✓ compiles")
    right = store_in(record).replace(" = ", " = 0.0f + ")
    page.fill(EDITOR, text_of(record, right))
    words = says(page, "the kernel itself takes")
    assert "✓ right: 40 elements" in words and "of the edited text" in words
    assert len(re.findall(r"[\d.]+ (?:s|ms|µs) ", words)) == 2, words
    page.fill(EDITOR, text_of(record, right + "  // again"))
    expect(page.locator(SAID)).to_contain_text("of the text before it was changed")
    page.click("text=Cancel")
    assert "of the edited text" not in page.inner_text(SAID)
    assert "✓ right" in page.inner_text(SAID), "the kernel's own run is kept"


def test_a_wrong_answer_is_said(record: dict[str, Any], page: Any) -> None:
    store = store_in(record).replace(";", " + 0.5f;")
    page.fill(EDITOR, text_of(record, store))
    assert "WRONG in 40 elements" in says(page, "WRONG")


def test_what_the_compiler_refuses_is_at_its_line(record: dict[str, Any], page: Any) -> None:
    _, at = store_of(record)
    page.fill(EDITOR, text_of(record, "  p0[0] = undefined_name;"))
    expect(page.locator(FAULT)).to_contain_text(re.compile(rf"line {at + 1}: .*undefined_name"))
    marked = page.locator(".wb-editor-lines .wb-line").nth(at)
    expect(marked).to_have_class(re.compile("wb-line-error"))
    assert f"at line {at + 1}" in says(page, "undefined_name")
    page.fill(EDITOR, text_of(record, store_in(record)))
    expect(page.locator(FAULT)).to_contain_text("✓ compiles")
    assert "✓ right" in says(page, "the kernel itself takes")


def test_attributes_stand_in_any_order(record: dict[str, Any], page: Any) -> None:
    text = text_of(record, store_in(record))
    other, count = re.subn(
        r"(@group\(0\)) (@binding\(\d+\)) var<storage, (\w+)>",
        r"\2 // of the kernel: @binding(9)\n  /* here */ \1\nvar < storage , \3 >",
        text,
    )
    assert count == 2
    page.fill(EDITOR, other)
    expect(page.locator(FAULT)).to_contain_text("✓ compiles")
    assert "✓ right" in says(page, "the kernel itself takes")


def test_what_no_compiler_reads_is_refused(record: dict[str, Any], page: Any) -> None:
    lines, at = store_of(record)
    written = "\n".join([*lines[: at + 1], "// x", *lines[at + 1 :]])
    for code in ("nul", "lone"):
        page.evaluate(
            """([text, code]) => {
              const editor = document.querySelector(".wb-editor");
              const odd = code === "nul" ? "\\0" : "\\ud800";
              editor.value = text.replace("// x", "// " + odd);
              editor.dispatchEvent(new Event("input", { bubbles: true }));
            }""",
            [written, code],
        )
        expect(page.locator(FAULT)).to_contain_text(re.compile(rf"line {at + 2}: .*shown"))
        assert f"at line {at + 2}" in says(page, "the one shown")
        is_right_again(record, page)


def is_right_again(record: dict[str, Any], page: Any) -> None:
    """Run the kernel as it was; the words of an earlier run are gone."""
    page.fill(EDITOR, text_of(record, store_in(record)))
    expect(page.locator(FAULT)).to_contain_text("✓ compiles")
    assert "✓ right" in says(page, "the kernel itself takes")


def test_what_is_written_stays_after_cancel(record: dict[str, Any], page: Any) -> None:
    plain, written = text_of(record, store_in(record)), text_of(record, "  // mine")
    page.fill(EDITOR, written)
    page.click("text=Cancel")
    page.click(".wb-code-bar >> text=edit")
    assert page.input_value(EDITOR) == written
    page.click("[data-key=undo-edit]")
    assert page.input_value(EDITOR) == plain
    expect(page.locator("[data-key=undo-edit]")).to_be_hidden()
    page.click("text=Cancel")
    page.click(".wb-code-bar >> text=edit")
    assert page.input_value(EDITOR) == plain


COUNTED = """(() => {
  const make = GPUDevice.prototype.createBuffer;
  const destroy = GPUBuffer.prototype.destroy;
  window.live = new Set();
  GPUDevice.prototype.createBuffer = function (...words) {
    const buffer = make.apply(this, words);
    window.live.add(buffer);
    return buffer;
  };
  GPUBuffer.prototype.destroy = function () {
    window.live.delete(this);
    return destroy.apply(this);
  };
})()"""
"""From now on `live` are the buffers of GPUs that nobody has destroyed."""


def test_a_run_leaves_no_buffers(record: dict[str, Any], page: Any) -> None:
    """Also one that the browser refuses once they are made."""
    page.evaluate(COUNTED)
    text = text_of(record, store_in(record))
    page.fill(EDITOR, text)
    assert "✓ right" in says(page, "the kernel itself takes")
    assert page.evaluate("live.size") == 0
    page.fill(EDITOR, text.replace("@binding(1)", "@binding(7)"))
    assert "✓ right" not in says(page, "[Bb]inding")
    assert page.evaluate("live.size") == 0


def test_an_input_may_be_left_out(record: dict[str, Any], page: Any) -> None:
    place, _ = re.match(r" *(p0\[.*?\]) = (.*);", store_in(record)).groups()  # type: ignore[union-attr]
    page.fill(EDITOR, text_of(record, f"  {place} = 1.0f;"))
    assert "WRONG in" in says(page, "WRONG")


UNFIT = (
    (r"@compute", "", "entry"),
    (r"fn \w+\(@", "fn another(@", "entry"),
    (r"@binding\(1\)", "@binding(7)", "[Bb]inding"),
    (r"@workgroup_size\(.*?\)", "@workgroup_size(100000)", "workgroup"),
)
"""What is changed in a program, so that it cannot be launched, and what the page says of it."""


def test_what_cannot_be_launched_is_said(record: dict[str, Any], page: Any) -> None:
    for before, after, because in UNFIT:
        page.fill(EDITOR, re.sub(before, after, text_of(record, store_in(record)), count=1))
        assert "✓ right" not in says(page, because), after
        is_right_again(record, page)


def test_a_lost_gpu_costs_the_kernel_alone(record: dict[str, Any], page: Any) -> None:
    assert "✓ right" in says(page, "the kernel itself takes")
    page.evaluate("devices.at(-1).destroy()")
    assert "✓ right" in says(page, "of the edited text"), "it is opened anew"
    assert page.evaluate("devices.length") == 2


ENDLESS = (
    "var n = 1u; while (n != 0u) { n = (n * 5u) | 1u; }",
    "var n = 1u; loop { n = n | 1u; /* } */ if (n == 0u) { break; } }",
    "var n = 1u; for (var i = 0u; i < 9u; i += 0u) { for (; n != 0u;) { n += 2u; } }",
)


def test_one_that_does_not_end_costs_the_kernel_alone(record: dict[str, Any], page: Any) -> None:
    store = store_in(record).replace(";", " + f32(n);", 1)
    ends = "var n = 0u; for (var i = 0u; i < 1000u; i += 1u) { n += i & 0u; }"
    for loop in ENDLESS:
        page.fill(EDITOR, text_of(record, f"  {loop} {store}"))
        assert "goes around more than" in says(page, "is not run"), loop
        page.fill(EDITOR, text_of(record, f"  {ends} {store}"))
        assert "✓ right" in says(page, "right")


def test_the_page_says_what_takes_too_long(record: dict[str, Any], page: Any) -> None:
    """It waits for a GPU that does not answer no longer than it says, and takes another one."""
    stop_clock(page)
    page.evaluate("() => { GPUQueue.prototype.submit = () => {}; }")
    page.evaluate("() => { GPUBuffer.prototype.mapAsync = () => new Promise(() => {}); }")
    page.fill(EDITOR, text_of(record, store_in(record)))
    page.click("[data-key=run-edit]")
    expect(page.locator("[data-key=run-edit]")).to_have_text("Running…")
    page.wait_for_function("devices.length")
    page.clock.fast_forward(31_000)
    expect(page.locator(SAID)).to_contain_text("has not run the kernel in 30 s")


def test_a_live_page_does_not_ask_python(record: dict[str, Any], session: Any) -> None:
    session.click(f'[data-key="code-{language(record)}"]')
    session.click(".wb-code-bar >> text=edit")
    expect(session.locator(FAULT)).to_contain_text("✓ compiles")
    assert "✓ right" in says(session, "the kernel itself takes")
    asked = session.evaluate("sent.map((message) => message.do)")
    assert "compile" not in asked and "edit" not in asked
